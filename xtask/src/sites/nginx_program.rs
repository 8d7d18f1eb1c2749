//! The nginx of this system, with a configuration that writes nowhere but into a folder of the run's.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

/// A whole configuration around what is said of servers.
pub fn conf(inside: &str) -> String {
    let user = if is_root() { "user root;" } else { "" };
    format!(
        "daemon off; pid nginx.pid; error_log stderr; {user}\nevents {{}}\nhttp {{\n\
         access_log off; include mime.types; client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3;\n\
         uwsgi_temp_path t4; scgi_temp_path t5;\n{inside}\n}}\n"
    )
}

/// How it is started in a folder that has an `nginx.conf`.
pub fn command(folder: &Path) -> Command {
    let mut command = Command::new("nginx");
    command.arg("-p").arg(folder).arg("-c").arg(folder.join("nginx.conf"));
    command
}

/// Programs that change their user want to be told not to.
pub fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}
