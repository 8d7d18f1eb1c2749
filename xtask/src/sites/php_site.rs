//! A site in PHP as Debian runs it: MariaDB, php-fpm and nginx, all started by us in one folder, on sockets there and on one free
//! port of the loopback.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::ports;
use crate::project::Stopwatch;
use crate::sites::nginx_program::{self, is_root};
use crate::sites::site_processes::SiteProcesses;

const START_SECONDS_MAX: f64 = 60.0;
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What must be there, and the package of Debian's that brings it.
const NEEDED: &[(&str, &str)] = &[
    ("/usr/sbin/nginx", "nginx"),
    ("/usr/sbin/mariadbd", "mariadb-server"),
    ("/usr/bin/mariadb-install-db", "mariadb-server"),
    ("/usr/bin/php", "php-cli"),
];

pub struct PhpSite {
    pub processes: SiteProcesses,
    /// Where nginx listens.
    pub port: u16,
    /// Where larder listens for what the site itself says to it.
    pub purge_port: u16,
}

/// Says which packages are missing, and how they are installed without a service being started.
pub fn check_packages(others: &[(&str, &str)]) -> Result<(), String> {
    let mut missing: Vec<&str> = NEEDED
        .iter()
        .chain(others)
        .filter(|(path, _)| !Path::new(path).exists())
        .map(|(_, package)| *package)
        .collect();
    if php_fpm().is_none() {
        missing.push("php-fpm");
    }
    missing.dedup();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "these packages are missing (names as in Debian 12):\n    apt-get install --no-install-recommends {}\n\
             Their services need not run; while this file is there and can be executed, apt starts none:\n    \
             printf '#!/bin/sh\\nexit 101\\n' >/usr/sbin/policy-rc.d",
            missing.join(" ")
        )),
    }
}

/// `php-fpm8.2` and the like.
fn php_fpm() -> Option<PathBuf> {
    let all = std::fs::read_dir("/usr/sbin").ok()?.flatten().map(|entry| entry.path());
    all.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("php-fpm"))).max()
}

impl PhpSite {
    /// A folder with a database in it, and the files of a package in `docs`.
    pub fn set_up(name: &str, package: &str) -> Result<PhpSite, String> {
        let mut processes = SiteProcesses::set_up(name)?;
        let folder = processes.folder.clone();
        // Links that lead out of the package are followed; some lead to what only a configured system has.
        let copied = Command::new("cp").arg("-rL").arg(package).arg(folder.join("docs")).output();
        copied.map_err(|error| format!("cp: {error}"))?;
        let user: &[&str] = if is_root() { &["--user=root"] } else { &[] };
        let mut install = Command::new("mariadb-install-db");
        install.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]).args(user);
        processes.run(install.arg(format!("--datadir={}", folder.join("db").display())))?;
        let mut database = Command::new("/usr/sbin/mariadbd");
        database.args(["--no-defaults", "--skip-networking", "--innodb-flush-log-at-trx-commit=0"]).args(user);
        for (name, file) in [("datadir", "db"), ("socket", "db.sock"), ("pid-file", "db.pid")] {
            database.arg(format!("--{name}={}", folder.join(file).display()));
        }
        processes.start("mariadb", database)?;
        wait_for(&mut processes, "mariadb", "db.sock")?;
        Ok(PhpSite { processes, port: ports::free()?, purge_port: ports::free()? })
    }

    /// Runs a program of PHP's to its end.
    pub fn php(&self, arguments: &[&str]) -> Result<String, String> {
        self.processes.run(Command::new("php").args(["-d", "display_errors=stderr"]).args(arguments))
    }

    /// How many requests PHP has had to answer: pages add a byte each to this file.
    pub fn requests_count(&self) -> usize {
        let file = std::fs::metadata(self.processes.folder.join("php-requests"));
        file.map_or(0, |file| usize::try_from(file.len()).unwrap_or(usize::MAX))
    }

    /// Makes an empty database.
    pub fn make_database(&self, name: &str) -> Result<(), String> {
        let script = format!(
            "$c = new mysqli('localhost', 'root', '', '', 0, '{}'); $c->query('CREATE DATABASE {name}');",
            self.processes.folder.join("db.sock").display()
        );
        self.php(&["-r", &script]).map(|_| ())
    }

    /// Starts php-fpm, and nginx with these locations.
    pub fn serve(&mut self, locations: &str) -> Result<(), String> {
        let folder = self.processes.folder.clone();
        let user = if is_root() { "user = root\n" } else { "" };
        let conf = format!(
            "[global]\ndaemonize = no\n[site]\nlisten = {}\n{user}pm = static\npm.max_children = 4\n",
            folder.join("php.sock").display()
        );
        let conf = self.processes.write("php-fpm.conf", &conf)?;
        let mut fpm = Command::new(php_fpm().ok_or("there is no php-fpm")?);
        fpm.arg("-F").arg("-y").arg(conf);
        if is_root() {
            fpm.arg("-R");
        }
        self.processes.start("php-fpm", fpm)?;
        wait_for(&mut self.processes, "php-fpm", "php.sock")?;
        for name in ["mime.types", "fastcgi_params"] {
            let there = Path::new("/etc/nginx").join(name);
            std::fs::copy(&there, folder.join(name)).map_err(|error| format!("{}: {error}", there.display()))?;
        }
        let server = format!(
            "server {{ listen 127.0.0.1:{}; root docs; index index.php;\n{locations}\n\
             location ~ \\.php(?:$|/) {{ fastcgi_split_path_info ^(.+?\\.php)(/.*)$; include fastcgi_params;\n\
             fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; fastcgi_param PATH_INFO $fastcgi_path_info;\n\
             fastcgi_pass unix:{}; }} }}",
            self.port,
            folder.join("php.sock").display()
        );
        self.processes.write("nginx.conf", &nginx_program::conf(&server))?;
        self.processes.start("nginx", nginx_program::command(&folder))?;
        let processes = &mut self.processes;
        ports::wait(self.port, START_SECONDS_MAX, || processes.is_up())
            .map_err(|why| format!("{why}: {}", self.processes.last_words("nginx")))
    }
}

/// Waits until a program takes connections on its socket.
fn wait_for(processes: &mut SiteProcesses, name: &str, socket: &str) -> Result<(), String> {
    let (watch, path) = (Stopwatch::start(), processes.folder.join(socket));
    while UnixStream::connect(&path).is_err() {
        if !processes.is_up() || watch.seconds() > START_SECONDS_MAX {
            return Err(format!("{name} does not start: {}", processes.last_words(name)));
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}
