//! The real nginx with a published configuration. What it refuses is taken out, as far as it names one directive: modules that are
//! not here, and variables of theirs.

use std::path::Path;
use std::process::Command;

use crate::import_corpus::NotCompared;
use crate::import_corpus::directive_text::{Directive, change, write};
use crate::import_corpus::made_to_run::ForNginx;
use crate::ports;
use crate::sites::site_processes::SiteProcesses;

const START_SECONDS_MAX: f64 = 10.0;
/// So much is taken out before it is said that the file does not run.
const REFUSED_MAX: usize = 60;

/// Starts it. Returns what was taken out. Only what `nginx -t` says of the configuration is a refusal.
pub fn start(made: &mut ForNginx, site: &mut SiteProcesses) -> Result<Vec<String>, NotCompared> {
    let mut gone = Vec::new();
    loop {
        let text = write(&mut made.all);
        let file = site.write("nginx.conf", &text)?;
        let Err(said) = site.run(nginx(&site.folder.clone(), &file).arg("-t")) else { break };
        if is_of_machine(&said) {
            return Err(NotCompared::Failed(format!("nginx does not start: {said}")));
        }
        let refused = || NotCompared::Refused(format!("nginx takes it not: {said}"));
        if gone.len() > REFUSED_MAX {
            return Err(refused());
        }
        gone.push(give_way(&mut made.all, &said).ok_or_else(refused)?);
    }
    let file = site.folder.join("nginx.conf");
    site.start("nginx", nginx(&site.folder.clone(), &file))?;
    for port in made.ports.values() {
        ports::wait(*port, START_SECONDS_MAX, || site.is_up())
            .map_err(|why| format!("{why}: {}", site.last_words("nginx")))?;
    }
    Ok(gone)
}

fn nginx(folder: &Path, file: &Path) -> Command {
    let mut command = Command::new("nginx");
    command.arg("-p").arg(folder).arg("-c").arg(file);
    command
}

/// Does it speak of a port, a descriptor or a folder that it cannot have, and not of what is written?
fn is_of_machine(said: &str) -> bool {
    let opened =
        ["bind() to", "could not bind", "socket()", "listen()", "mkdir()", "Too many open files", "No space left"];
    opened.iter().any(|word| said.contains(word)) || !said.contains("[emerg]")
}

/// Changes what nginx names in what it says. Returns what was done; `None`: it names nothing.
fn give_way(all: &mut Vec<Directive>, said: &str) -> Option<String> {
    let said = said.split("[emerg]").nth(1)?.split(" / ").next()?;
    let named = |before: &str, after: &str| Some(said.split_once(before)?.1.split_once(after)?.0.to_owned());
    let mut insert = |directive: Directive| {
        let http = all.iter_mut().find(|directive| directive.name() == "http")?;
        http.block.as_mut()?.insert(0, directive);
        Some(())
    };
    if let Some(variable) = named("unknown \"", "\" variable") {
        let map = Directive::block_of(&format!("map $host ${variable}"), vec![Directive::of("default \"\"")]);
        insert(map)?;
        return Some(format!("${variable} is empty"));
    }
    if let Some(zone) = named("zero size shared memory zone \"", "\"").or(named("shared memory zone \"", "\"")) {
        let words = [format!("zone={zone}"), zone.clone()];
        change(all, &[], &mut |directive, _| !directive.words[1..].iter().any(|word| words.contains(word)));
        return Some(format!("zone {zone}"));
    }
    let line: usize = said.rsplit_once("nginx.conf:")?.1.trim().parse().ok()?;
    let mut gone = None;
    change(all, &[], &mut |directive, _| {
        let is_it = directive.line == line && gone.is_none();
        if is_it {
            gone = Some(directive.words.join(" "));
        }
        !is_it
    });
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_taken_is_no_refusal() {
        assert!(is_of_machine("nginx: [emerg] bind() to 127.0.0.1:80 failed (98: Address already in use)"));
        assert!(is_of_machine("sh: nginx: not found"));
        assert!(!is_of_machine("nginx: [emerg] unknown directive \"brotli\" in /x/nginx.conf:2"));
    }

    #[test]
    fn what_nginx_does_not_know_gives_way() {
        let mut all = vec![Directive::block_of("http", vec![Directive::of("brotli on"), Directive::of("gzip on")])];
        write(&mut all);
        let said = "nginx: nginx: [emerg] unknown directive \"brotli\" in /tmp/x/nginx.conf:2 / nginx: test failed";
        assert_eq!(give_way(&mut all, said).as_deref(), Some("brotli on"));
        assert_eq!(write(&mut all), "http {\ngzip on;\n}\n");
        give_way(&mut all, "nginx: [emerg] unknown \"geo\" variable / x").expect("a map");
        assert_eq!(write(&mut all), "http {\nmap $host $geo {\ndefault \"\";\n}\ngzip on;\n}\n");
        assert_eq!(give_way(&mut all, "nginx: [emerg] no such luck"), None);
    }
}
