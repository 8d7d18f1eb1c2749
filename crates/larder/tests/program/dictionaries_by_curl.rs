//! What differs from a dictionary, over HTTP/1.1 and HTTP/2 with TLS, asked for by curl and read by the program zstd of the system.

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use crate::bundle_site::{BundleSite, bundle};
    use crate::peer_process::wait_for;
    use crate::tls_site::NAME;

    const BROWSER: &str = "Accept-Encoding: gzip, deflate, br, zstd, dcb, dcz";

    /// Head and body of an answer, as they came.
    fn get(site: &BundleSite, words: &[&str], path: &str) -> (String, Vec<u8>) {
        let (scheme, port) = match words.contains(&"--http1.0") {
            true => ("http", site.larder.second().port()),
            false => ("https", site.larder.tls.port()),
        };
        let file = site.folder.join("raw");
        let at = format!("{NAME}:{port}:127.0.0.1");
        let mut command = Command::new("curl");
        command.args(["-sS", "--max-time", "20", "-D", "-", "--resolve", &at, "--cacert", &site.authority, "-o"]);
        let output = command.arg(&file).args(words).arg(format!("{scheme}://{NAME}:{port}{path}")).output();
        let output = output.expect("curl is installed");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        (String::from_utf8_lossy(&output.stdout).to_lowercase(), std::fs::read(file).unwrap())
    }

    fn field<'a>(head: &'a str, name: &str) -> &'a str {
        head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).unwrap_or_default().trim()
    }

    /// The line that says that a client has the text of this file.
    fn has(file: &Path) -> String {
        let pipe = format!("openssl dgst -sha256 -binary {} | base64 -w0", file.display());
        let output = Command::new("sh").args(["-c", &pipe]).output().expect("openssl is installed");
        format!("Available-Dictionary: :{}:", String::from_utf8_lossy(&output.stdout))
    }

    /// What the program makes of an answer and a dictionary.
    fn read(site: &BundleSite, delta: &[u8], dictionary: &Path) -> Vec<u8> {
        let file = site.folder.join("delta");
        std::fs::write(&file, delta).unwrap();
        let output = Command::new("zstd").args(["-dcq", "-D"]).arg(dictionary).arg(&file).output();
        let output = output.expect("zstd is installed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    #[test]
    fn a_changed_bundle_goes_out_as_what_changed() {
        for settings in ["gzip off;", "gzip on; gzip_proxied any; gzip_types application/javascript;"] {
            let site = BundleSite::start(if settings.len() > 9 { "gzip" } else { "plain" }, "", settings);
            let first = site.folder.join("root/bundle-1.js");
            let (head, _) = get(&site, &["-H", BROWSER], "/bundle.js?v=1");
            assert_eq!(field(&head, "use-as-dictionary"), "match=\"/bundle.js\"");
            wait_for("the text is known", || site.larder.metric("larder_dictionaries") == 1);
            let gzip = get(&site, &["-H", "Accept-Encoding: gzip"], "/bundle.js?v=1").1.len();
            let has = has(&first);
            for protocol in ["--http1.1", "--http2", "--http1.1"] {
                let (head, delta) = get(&site, &[protocol, "-H", BROWSER, "-H", &has], "/bundle.js?v=2");
                assert_eq!(field(&head, "content-encoding"), "dcz", "{head}");
                assert_eq!(field(&head, "vary"), "accept-encoding, available-dictionary");
                assert!(read(&site, &delta, &first) == bundle(2).as_bytes(), "{protocol}");
                assert!(delta.len() * 20 <= gzip, "{} of {gzip} bytes", delta.len());
            }
            // Who has no such dictionary, and who asks in the clear, is answered as ever.
            let unknown = has.replacen(&has[30..34], "AAAA", 1);
            for words in [&["-H", BROWSER, "-H", &unknown][..], &["--http1.0", "-H", BROWSER, "-H", &has]] {
                let (head, _) = get(&site, words, "/bundle.js?v=2");
                assert!(["zstd", "gzip", "br"].contains(&field(&head, "content-encoding")), "{head}");
            }
            assert_eq!(site.larder.metric("larder_deltas_made_total"), 1);
            assert_eq!(site.larder.metric("larder_deltas_sent_total"), 3);
        }
    }
}
