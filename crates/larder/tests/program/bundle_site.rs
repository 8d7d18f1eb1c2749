//! A site with a script bundle that changes: jQuery, as Debian packs it, and the same with a line changed, behind nginx and larder with TLS and
//! dictionaries. Which version is served the query says.

use std::path::{Path, PathBuf};

use crate::bench_command::Nginx;
use crate::peer_process::free_address;
use crate::secure_site::TestAuthority;
use crate::tls_site::{NAME, TlsSite};

/// Some 290 KB.
const BUNDLE: &str = "/usr/share/javascript/jquery/jquery.js";

pub struct BundleSite {
    pub larder: TlsSite,
    pub folder: PathBuf,
    /// The authority's file.
    pub authority: String,
    _nginx: Nginx,
}

/// A version of the bundle.
pub fn bundle(version: u32) -> String {
    let text = std::fs::read_to_string(BUNDLE).expect("jQuery is installed: see ./setup");
    let line = "\tversion = \"";
    assert_eq!(text.matches(line).count(), 1);
    text.replace(line, &format!("\tbundled = window.bundled = {version},\n{line}"))
}

impl BundleSite {
    /// `compress`: lines for `[compress]`; `settings`: of nginx's server.
    pub fn start(name: &str, compress: &str, settings: &str) -> BundleSite {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bundle-{name}-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("root")).expect("the target folder can be written");
        let write = |file: &str, text: &str| {
            std::fs::write(folder.join(file), text).expect("the target folder can be written");
            folder.join(file).display().to_string()
        };
        for version in 1..=3 {
            write(&format!("root/bundle-{version}.js"), &bundle(version));
        }
        let origin = free_address();
        let settings = format!(
            "include /etc/nginx/mime.types; etag off; add_header Cache-Control max-age=600; {settings}\n\
             location = /bundle.js {{ rewrite ^ /bundle-$arg_v.js break; }}"
        );
        let nginx = Nginx::start_with(&folder, origin, "", &settings);
        let authority = TestAuthority::new();
        let certificate = authority.certificate(NAME, 2040);
        let authority = write("authority.pem", &authority.pem);
        let others = format!("[compress]\ndictionaries = true\n{compress}\n[[listen]]\naddress = \"127.0.0.1:0\"");
        let mut larder = TlsSite::start("", &others);
        std::fs::write(larder.directory.join("site.pem"), &certificate.chain)
            .expect("the target folder can be written");
        std::fs::write(larder.directory.join("site.key"), &certificate.key).expect("the target folder can be written");
        let echo = larder.origin.to_string();
        larder.change(|config| config.replace(&echo, &origin.to_string()));
        BundleSite { larder, folder, authority, _nginx: nginx }
    }
}

impl Drop for BundleSite {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
