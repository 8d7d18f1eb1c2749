//! The real Apache with a configuration of a test's own, and larder with what the import makes of that.

use std::process::Command;

use crate::imported_beside::Beside;

/// All of `site` is for everybody.
pub const FILES: &str = "DocumentRoot HERE/site\n<Directory HERE/site>\nRequire all granted\n</Directory>\n";

const PROCESS: &str = "ServerRoot HERE\nPidFile HERE/pid\nDefaultRuntimeDir HERE\nErrorLog HERE/error.log\nTypesConfig HERE/none\n\
     User www-data\nGroup www-data\nStartServers 1\nServerName unnamed.test\nListen A1\n\
     <Directory />\nRequire all denied\nAllowOverride None\n</Directory>\n";

/// `site`: names and texts of files. `before`: what else needs the folder, before either starts.
pub fn start(
    name: &str,
    (modules, words): (&[&str], &str),
    site: &[(&str, &str)],
    before: impl FnOnce(&Beside),
) -> Beside {
    let loaded: String = modules
        .iter()
        .map(|module| format!("LoadModule {module}_module /usr/lib/apache2/modules/mod_{module}.so\n"))
        .collect();
    let (mut beside, text) = Beside::new(name, &format!("{loaded}{PROCESS}{words}\n"));
    site.iter().for_each(|(name, text)| drop(beside.file(name, text)));
    beside.file("none", "");
    before(&beside);
    let conf = beside.file("httpd.conf", &text);
    let mut command = Command::new("/usr/sbin/apache2");
    command.arg("-X").arg("-f").arg(&conf);
    beside.start(&conf, command);
    beside
}

pub fn host(words: &str) -> String {
    format!("<VirtualHost *:*>\nServerName a.test\n{words}\n</VirtualHost>")
}
