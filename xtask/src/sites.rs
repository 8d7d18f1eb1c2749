//! `cargo xtask sites`: larder in front of sites that people run. By command, and not part of the tests: what it needs is large.

use std::path::Path;
use std::process::Command;

use crate::project::Project;

mod nginx_configs;
mod published_conf;
mod site_processes;
mod spelled_paths;

const HELP: &str = "sites nginx FOLDER";

pub fn task(project: &Project, options: &[&str]) -> Result<(), String> {
    match options {
        ["nginx", folder] => nginx_configs::task(project, folder),
        _ => Err(HELP.to_string()),
    }
}

/// A whole configuration of nginx that writes nowhere but into its own folder.
fn nginx_conf(inside: &str) -> String {
    let user = if is_root() { "user root;" } else { "" };
    format!(
        "daemon off; pid nginx.pid; error_log stderr; {user}\nevents {{}}\nhttp {{\n\
         access_log off; include mime.types; client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3;\n\
         uwsgi_temp_path t4; scgi_temp_path t5;\n{inside}\n}}\n"
    )
}

fn nginx(folder: &Path) -> Command {
    let mut command = Command::new("nginx");
    command.arg("-p").arg(folder).arg("-c").arg(folder.join("nginx.conf"));
    command
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}
