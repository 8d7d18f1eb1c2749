//! The real nginx with some servers, and larder with what the import makes of them.

use std::process::Command;

use crate::imported_beside::Beside;

/// `name`: of the folder. `files`: their names, which they hold, too.
pub fn start(name: &str, servers: &str, files: &[&str]) -> Beside {
    let (mut beside, servers) = Beside::new(&format!("nginx-{name}"), servers);
    let head = "daemon off; master_process off; pid nginx.pid; error_log error.log;\nevents {}\nhttp {\naccess_log off;\n\
        client_body_temp_path tmp; proxy_temp_path tmp; fastcgi_temp_path tmp; uwsgi_temp_path tmp; scgi_temp_path tmp;\n\
        types { text/html html; text/plain txt; }";
    beside.file("tmp/x", "");
    files.iter().for_each(|name| drop(beside.file(name, name)));
    let conf = beside.file("nginx.conf", &format!("{head}\n{servers}\n}}\n"));
    let mut nginx = Command::new("nginx");
    nginx.arg("-p").arg(&beside.folder).arg("-c").arg(&conf).args(["-e", "error.log"]);
    beside.start(&conf, nginx);
    beside
}
