//! larder with what `larder import` made of a published configuration, and the list of what that did not carry over.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::ports;
use crate::project::Project;
use crate::sites::site_processes::SiteProcesses;

const START_SECONDS_MAX: f64 = 20.0;

pub struct LarderSide {
    /// Lines of the configuration that were not carried over, as the import lists them.
    pub left: Vec<usize>,
    /// Ports here, by those that the configuration names.
    pub ports: BTreeMap<String, u16>,
}

/// Imports the file and starts what came of it. `opened`: a planted fault, which shows this folder wherever a route is closed.
pub fn start(
    project: &Project,
    site: &mut SiteProcesses,
    file: &str,
    places: &[String],
    opened: Option<&Path>,
) -> Result<LarderSide, String> {
    let mut import = Command::new(project.larder());
    import.current_dir(&site.folder).args(["import", "--json", "--prefix"]).arg(&site.folder).arg(file);
    let output = import.output().map_err(|error| format!("larder import: {error}"))?;
    let said: Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| format!("larder import: {}", String::from_utf8_lossy(&output.stderr)))?;
    let text = said["text"].as_str().ok_or("larder import made no text")?;
    let left =
        said["left"].as_array().into_iter().flatten().filter_map(|row| Some(row["line"].as_u64()? as usize)).collect();
    if !["\n[[route]]", "\n[forward]"].iter().any(|word| text.contains(word)) {
        // Nothing was carried over, and larder does not even start.
        return Ok(LarderSide { left, ports: BTreeMap::new() });
    }
    let mut listens = BTreeMap::new();
    for place in places {
        listens.insert(place.clone(), ports::free()?);
    }
    let (text, listening) = at_home(text, &listens, ports::free()?);
    if listening.is_empty() {
        // Without a listener larder would take the port that it has by default.
        return Ok(LarderSide { left, ports: BTreeMap::new() });
    }
    let text = match opened {
        Some(root) => text.replace("closed = true", &format!("root = \"{}\"\ndotfiles = true", root.display())),
        None => text,
    };
    site.write("larder.toml", &text)?;
    let mut larder = Command::new(project.larder());
    larder.args(["serve", "--no-supervisor", "--config", "larder.toml", "--admin", "off", "--workers", "1"]);
    site.start("larder", larder)?;
    for port in listening.values() {
        ports::wait(*port, START_SECONDS_MAX, || site.is_up())
            .map_err(|why| format!("{why}: {}", site.last_words("larder")))?;
    }
    Ok(LarderSide { left, ports: listening })
}

/// Each listener at its port here and without TLS, the log nowhere, and one listener with TLS for those who are led there.
fn at_home(text: &str, ports: &BTreeMap<String, u16>, of_tls: u16) -> (String, BTreeMap<String, u16>) {
    let mut listening = BTreeMap::new();
    let mut sections: Vec<String> = Vec::new();
    let mut tls = None;
    for section in text.split("\n[").map(str::to_owned) {
        if section.starts_with("log]") || section.starts_with("[disk]]") {
            continue;
        }
        if !section.starts_with("[listen]]") {
            sections.push(section);
            continue;
        }
        let value = |line: &str| line.split('"').nth(1).unwrap_or_default().to_owned();
        let place = section.lines().find(|line| line.starts_with("address")).map(value).unwrap_or_default();
        tls = tls.or(section.lines().find(|line| line.starts_with("tls = ")).map(str::to_owned));
        let Some(port) = ports.get(&place).filter(|_| !listening.contains_key(&place)) else { continue };
        let lines = section.lines().filter(|line| !line.starts_with("tls = "));
        let lines: Vec<String> = lines.map(|line| line.replace(&place, &format!("127.0.0.1:{port}"))).collect();
        listening.insert(place, *port);
        sections.push(format!("{}\n", lines.join("\n")));
    }
    if let Some(tls) = tls {
        sections.insert(1.min(sections.len()), format!("[listen]]\naddress = \"127.0.0.1:{of_tls}\"\n{tls}\n"));
    }
    (sections.join("\n["), listening)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_are_at_home() {
        let text = "# Made\n\n[[listen]]\naddress = \"*:80\"\nmode = \"redirect\"\n\n[[listen]]\naddress = \"*:443\"\n\
            tls = { cert = [\"a\"] }\n\n[[route]]\npath = \"/\"\n\n[log]\npath = \"/x\"\n";
        let ports = [("*:80".to_owned(), 1080), ("*:443".to_owned(), 1443)].into();
        let (made, listening) = at_home(text, &ports, 9443);
        assert_eq!(listening, ports);
        let expect = "# Made\n\n[[listen]]\naddress = \"127.0.0.1:9443\"\ntls = { cert = [\"a\"] }\n\n[[listen]]\n\
            address = \"127.0.0.1:1080\"\nmode = \"redirect\"\n\n[[listen]]\naddress = \"127.0.0.1:1443\"\n\n\
            [[route]]\npath = \"/\"\n";
        assert_eq!(made, expect);
    }
}
