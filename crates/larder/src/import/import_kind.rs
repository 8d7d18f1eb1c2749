//! Whose configuration a file is: what `--kind` says, else its name, else what only one program's files say. Where none of these
//! decides, nothing is guessed: a file that is read as another program's would be printed line by line as not understood.

use std::path::Path;

use clap::ValueEnum;

use crate::check_vcl::{begins_as_vcl, read_vcl};
use crate::import::{apache_conf, caddy_file, haproxy_conf, nginx_conf, squid_conf};

/// The programs whose files are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ImportKind {
    Nginx,
    Apache,
    Haproxy,
    Caddy,
    Squid,
    /// Of Varnish 1 to 3, or of 4.
    Vcl,
}

/// Does a text say what only files of this program say?
type Telling = fn(&str) -> bool;

const TELLING: [(ImportKind, Telling); 5] = [
    (ImportKind::Nginx, nginx_conf::is_nginx),
    (ImportKind::Apache, apache_conf::is_apache),
    (ImportKind::Haproxy, haproxy_conf::is_haproxy),
    (ImportKind::Caddy, caddy_file::is_caddy),
    (ImportKind::Squid, squid_conf::is_squid),
];

impl ImportKind {
    /// The error says which flag decides.
    pub fn of(file: &Path) -> Result<ImportKind, String> {
        match by_name(file) {
            Some(kind) => Ok(kind),
            None => by_content(&read_vcl(file)?),
        }
    }

    fn program(self) -> &'static str {
        match self {
            ImportKind::Nginx => "nginx",
            ImportKind::Apache => "Apache",
            ImportKind::Haproxy => "HAProxy",
            ImportKind::Caddy => "Caddy",
            ImportKind::Squid => "Squid",
            ImportKind::Vcl => "Varnish",
        }
    }
}

fn by_name(file: &Path) -> Option<ImportKind> {
    let name = file.file_name()?.to_string_lossy().to_lowercase();
    match name.as_str() {
        "nginx.conf" => Some(ImportKind::Nginx),
        "httpd.conf" | "apache2.conf" => Some(ImportKind::Apache),
        "haproxy.cfg" => Some(ImportKind::Haproxy),
        "squid.conf" => Some(ImportKind::Squid),
        name if name.ends_with(".vcl") => Some(ImportKind::Vcl),
        _ => caddy_file::is_caddyfile(file).then_some(ImportKind::Caddy),
    }
}

fn by_content(bytes: &[u8]) -> Result<ImportKind, String> {
    const DECIDES: &str = "--kind nginx, apache, haproxy, caddy, squid or vcl decides";
    let text = String::from_utf8_lossy(bytes);
    let told: Vec<ImportKind> = TELLING.iter().filter(|(_, is_its)| is_its(&text)).map(|(kind, _)| *kind).collect();
    match told[..] {
        [kind] => Ok(kind),
        [] if begins_as_vcl(bytes) => Ok(ImportKind::Vcl),
        [] => Err(format!("nothing in it says whose configuration it is: {DECIDES}")),
        [one, other, ..] => {
            let (one, other) = (one.program(), other.program());
            Err(format!("it may be a configuration of {one} or of {other}: {DECIDES}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Result<ImportKind, &str>) {
        let found = by_content(text.as_bytes());
        match (&found, expect) {
            (Err(said), Err(part)) => assert!(said.contains(part) && said.contains("--kind"), "{text}: {said}"),
            (found, expect) => assert_eq!(found.as_ref().ok(), expect.ok().as_ref(), "{text}"),
        }
    }

    #[test]
    fn a_file_is_told_by_what_it_says() {
        check("server {\n listen 80;\n}\n", Ok(ImportKind::Nginx));
        check("frontend a\n bind :80\n", Ok(ImportKind::Haproxy));
        check("<VirtualHost *:80>\n</VirtualHost>\n", Ok(ImportKind::Apache));
        check("http_port 3128\nhttp_access allow all\n", Ok(ImportKind::Squid));
        check("backend a { .host = \"a\"; }\n", Ok(ImportKind::Vcl));
        check("vcl 4.1;\nimport std;\nbackend http {\n}\n", Ok(ImportKind::Vcl));
        check("a.test {\n reverse_proxy 127.0.0.1:3000\n}\n", Ok(ImportKind::Caddy));
        // Options of Caddy's are Squid's words, too.
        check("{\n http_port 8080\n}\n:8080\nbasic_auth {\n ann $2a$14$x\n}\n", Ok(ImportKind::Caddy));
        check("import common\na.test\nfile_server\n", Ok(ImportKind::Caddy));
    }

    #[test]
    fn what_is_nobodys_is_not_guessed() {
        check("", Err("nothing in it says"));
        check("[[route]]\nrespond = \"hi\"\nredirect = \"/\"\n", Err("nothing in it says"));
        check("http_port 3128\nreverse_proxy a:1\n", Err("of Caddy or of Squid"));
        check("{\n http_port 8080\n}\n", Err("nothing in it says"));
    }

    #[test]
    fn a_name_tells_before_what_it_holds() {
        for (name, expect) in [
            ("/etc/nginx/nginx.conf", Some(ImportKind::Nginx)),
            ("/etc/apache2/apache2.conf", Some(ImportKind::Apache)),
            ("haproxy.cfg", Some(ImportKind::Haproxy)),
            ("squid.conf", Some(ImportKind::Squid)),
            ("Caddyfile.site", Some(ImportKind::Caddy)),
            ("default.vcl", Some(ImportKind::Vcl)),
            ("site.conf", None),
        ] {
            assert_eq!(by_name(Path::new(name)), expect, "{name}");
        }
    }
}
