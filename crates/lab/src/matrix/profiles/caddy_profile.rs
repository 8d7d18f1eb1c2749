//! Caddy as a server of files: it has no cache of its own. Told in JSON, which its versions agree on.

use serde_json::{Value, json};

use crate::answer_coding::ContentCoding;
use crate::matrix::server_profile::{Launch, Profile, Role, Site, Speaks, words};

pub(super) const CADDY: Profile = Profile {
    name: "caddy",
    binary: Some("caddy"),
    install: "apt-get install caddy",
    version_argument: "version",
    role: Role::Static,
    speaks: Speaks::EVERYTHING,
    codings: &[ContentCoding::Gzip, ContentCoding::Zstd],
    behind: None,
    options: &[],
    keeps_children: true,
    launch: caddy,
};

/// Go takes the number of its threads from the processors that it may run on.
fn caddy(site: &Site<'_>) -> Result<Launch, String> {
    let protocols: &[&str] = match (site.front.http2, site.front.tls) {
        (false, _) => &["h1"],
        (true, None) => &["h1", "h2c"],
        (true, Some(_)) => &["h1", "h2"],
    };
    let mut handlers = vec![json!({ "handler": "file_server", "root": site.docroot })];
    if let Some(coding) = site.encoding {
        let encodings = json!({ (coding.name()): {} });
        handlers.insert(0, json!({ "handler": "encode", "encodings": encodings }));
    }
    let mut server = json!({
        "listen": [site.address().to_string()],
        "protocols": protocols,
        "idle_timeout": "1h",
        "automatic_https": { "disable": true },
        "routes": [{ "handle": handlers }],
    });
    let mut apps = json!({});
    if let Some(files) = site.front.tls {
        server["tls_connection_policies"] = json!([{}]);
        apps["tls"] = json!({ "certificates": { "load_files": [{ "certificate": files.chain, "key": files.key }] } });
    }
    apps["http"] = json!({ "servers": { "lab": server } });
    let config: Value = json!({
        // Nothing is kept for the next start, and nothing outside of its directory.
        "admin": { "disabled": true, "config": { "persist": false } },
        "storage": { "module": "file_system", "root": site.path("storage") },
        "apps": apps,
    });
    let text = serde_json::to_string_pretty(&config).map_err(|error| error.to_string())?;
    let arguments = words(["run", "--config", &site.path("caddy.json")]);
    Ok(Launch { arguments, configs: vec![site.write("caddy.json", text)?], ..Launch::default() })
}
