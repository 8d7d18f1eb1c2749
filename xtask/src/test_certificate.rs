//! A certificate for tasks that start a larder with TLS, made by openssl.

use std::path::Path;
use std::process::{Command, Stdio};

/// `site.pem` and `site.key`, of nobody but itself.
pub fn make(folder: &Path) -> Result<(), String> {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30"])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", "site.key", "-out", "site.pem"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if made.as_ref().is_ok_and(|status| status.success()) { Ok(()) } else { Err(format!("openssl: {made:?}")) }
}
