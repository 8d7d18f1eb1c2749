//! Content codings of a real site: a manual in HTML behind nginx, which compresses by itself or does not. curl decodes, by libraries that
//! larder does not use (zlib, Google's brotli, zstd of the system), over HTTP/1.1, HTTPS and HTTP/2.

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use crate::bench_command::Nginx;
    use crate::peer_process::{free_address, wait_for};
    use crate::tls_site::{NAME, TlsSite};

    const MANUAL: &str = "/usr/share/doc/varnish/html";

    /// A page, a script, a picture, and a style.
    const FILES: [&str; 4] =
        ["/users-guide/vcl-grace.html", "/_static/doctools.js", "/_static/file.png", "/_static/basic.css"];

    struct Site {
        larder: TlsSite,
        folder: PathBuf,
        _nginx: Nginx,
    }

    impl Site {
        fn before_nginx(name: &str, settings: &str) -> Site {
            let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("coded-{name}-{}", std::process::id()));
            std::fs::create_dir_all(folder.join("root")).expect("the target folder can be written");
            let origin = free_address();
            let settings = format!(
                "include /etc/nginx/mime.types; {settings}\nlocation / {{ root {MANUAL}; add_header Cache-Control max-age=600; }}"
            );
            let nginx = Nginx::start_with(&folder, origin, "", &settings);
            let mut larder = TlsSite::start("", "[[listen]]\naddress = \"127.0.0.1:0\"");
            let echo = larder.origin.to_string();
            larder.change(|config| config.replace(&echo, &origin.to_string()));
            Site { larder, folder, _nginx: nginx }
        }

        /// The coding that was said, the bytes as they came, and what curl makes of them.
        fn get(&self, path: &str, accept: &str, over: &str) -> (String, Vec<u8>, Vec<u8>) {
            let (scheme, port) = match over {
                "--http1.1-clear" => ("http", self.larder.second().port()),
                _ => ("https", self.larder.tls.port()),
            };
            let url = format!("{scheme}://{NAME}:{port}{path}");
            let at = format!("{NAME}:{port}:127.0.0.1");
            let (raw, plain) = (self.folder.join("raw"), self.folder.join("plain"));
            let protocol = over.strip_suffix("-clear").unwrap_or(over);
            let run = |words: &[&str], file: &Path| {
                let mut command = Command::new("curl");
                command.args(["-sS", "--max-time", "20", "-D", "-", protocol, "--resolve", &at, "--cacert"]);
                command.arg(self.larder.directory.join("site.pem")).arg("-o").arg(file).args(words).arg(&url);
                let output = command.output().expect("curl is installed");
                assert!(output.status.success(), "{url}: {}", String::from_utf8_lossy(&output.stderr));
                String::from_utf8_lossy(&output.stdout).to_lowercase()
            };
            let field = format!("Accept-Encoding: {accept}");
            let head = run(&["-H", &field], &raw);
            run(&["-H", &field, "--compressed"], &plain);
            assert!(head.contains(" 200"), "{head}");
            let coding = head.lines().find_map(|line| line.strip_prefix("content-encoding: ")).unwrap_or_default();
            (coding.trim().to_owned(), std::fs::read(raw).unwrap(), std::fs::read(plain).unwrap())
        }

        /// Every file in every coding over every protocol, twice.
        fn check(&self, coding_of_page: impl Fn(&str) -> &'static [&'static str]) {
            for path in FILES {
                let text = std::fs::read(format!("{MANUAL}{path}")).unwrap();
                for accept in ["identity", "gzip", "br", "zstd", "gzip, deflate, br, zstd"] {
                    for over in ["--http1.1-clear", "--http1.1", "--http2", "--http1.1-clear"] {
                        let (coding, raw, plain) = self.get(path, accept, over);
                        assert!(plain == text, "{path} for {accept} {over}: {coding}");
                        if path == FILES[0] {
                            let expect = coding_of_page(accept);
                            assert!(expect.contains(&&*coding), "{path} for {accept} {over}: {coding}");
                            assert!(coding.is_empty() || raw.len() * 2 < text.len(), "{} of {}", raw.len(), text.len());
                        }
                        if path == FILES[2] {
                            assert_eq!(coding, "", "a picture is compressed already");
                        }
                    }
                }
            }
        }

        /// Asks until what is made in idle time is there.
        fn wait_for_brotli(&self) {
            wait_for("brotli", || self.get(FILES[0], "gzip, deflate, br, zstd", "--http2").0 == "br");
        }
    }

    impl Drop for Site {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }

    fn usual(accept: &str) -> &'static [&'static str] {
        match accept {
            "identity" => &[""],
            "gzip" => &["gzip"],
            "br" => &["br"],
            "zstd" => &["zstd"],
            // Quickly, and then well.
            _ => &["zstd", "br"],
        }
    }

    #[test]
    fn a_site_goes_out_in_every_coding_and_curl_reads_each() {
        let site = Site::before_nginx("plain", "gzip off;");
        site.check(usual);
        site.wait_for_brotli();
        site.check(usual);
        assert!(site.larder.metric("larder_encodings_made_total") >= 6);
    }

    #[test]
    fn what_nginx_compresses_itself_is_stored_so_and_made_into_the_others() {
        let site = Site::before_nginx(
            "gzip",
            "gzip on; gzip_proxied any; gzip_types text/css application/javascript; gzip_vary on;",
        );
        site.check(|accept| match accept {
            // It is there.
            "gzip, deflate, br, zstd" => &["gzip", "br"],
            _ => usual(accept),
        });
        site.wait_for_brotli();
        let asked = std::fs::read_to_string(site.folder.join("access.log")).unwrap();
        // What is asked for over http:// and over https:// are two things.
        assert_eq!(asked.lines().filter(|line| line.ends_with("GET 200")).count(), 2 * FILES.len(), "{asked}");
    }
}
