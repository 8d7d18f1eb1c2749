//! What is said and known because of TLS: redirects to it, Strict-Transport-Security, who a client is, and which name it asked for. curl
//! and openssl judge.

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use crate::tls_site::{NAME, TlsSite, write_certificate};

    const IN_THE_CLEAR: &str = "[[listen]]\naddress = \"127.0.0.1:0\"";

    /// Head and body of the answer, as curl prints them. All names are here, and any certificate is believed.
    fn curl(url: &str, words: &[&str]) -> String {
        let mut command = Command::new("curl");
        command.args(["-sSik", "--max-time", "20", "--connect-to", &here(url), url]).args(words);
        let output = command.output().expect("curl is installed");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }

    /// Any host and port, at the port that the URL names.
    fn here(url: &str) -> String {
        let authority = url.split('/').nth(2).expect("a URL has an authority");
        let (_, port) = authority.rsplit_once(':').expect("the port is said");
        format!("::127.0.0.1:{port}")
    }

    fn sealed(site: &TlsSite, path: &str) -> String {
        format!("https://{NAME}:{}{path}", site.tls.port())
    }

    /// At the second listener.
    fn clear(site: &TlsSite, path: &str) -> String {
        format!("http://{NAME}:{}{path}", site.second().port())
    }

    /// A field of the answer's head, or of what the origin was asked.
    fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
        let is_it = |line: &&str| line.split_once(':').is_some_and(|(before, _)| before.eq_ignore_ascii_case(name));
        text.lines().find(is_it).and_then(|line| line.split_once(':')).map(|(_, value)| value.trim())
    }

    const REDIRECT: &str = "[[listen]]\naddress = \"127.0.0.1:0\"\nmode = \"redirect\"\nhttps_port = 443";

    #[test]
    fn who_asks_in_the_clear_is_sent_to_https() {
        let site = TlsSite::start("", REDIRECT);
        let moved = curl(&clear(&site, "/a/b?c=d"), &[]);
        assert!(moved.starts_with("HTTP/1.1 301 "), "{moved}");
        assert_eq!(field(&moved, "location"), Some("https://site.test/a/b?c=d"));
        // What is posted must not become a GET.
        let posted = curl(&clear(&site, "/form"), &["-d", "a=b"]);
        assert!(posted.starts_with("HTTP/1.1 308 "), "{posted}");
        assert_eq!(field(&posted, "location"), Some("https://site.test/form"));
        let nameless = curl(&clear(&site, "/"), &["--http1.0", "-H", "Host:"]);
        assert!(nameless.starts_with("HTTP/1.1 400 "), "{nameless}");
        assert_eq!(site.metric("larder_origin_requests_total"), 0, "no origin is asked for any of it");
    }

    #[test]
    fn no_program_answers_for_a_listener_that_redirects() {
        let program = "vcl 4.1; backend default none; sub vcl_recv { return (synth(200)); }";
        let vcl = write_file("redirect.vcl", program);
        let site = TlsSite::start("", &format!("{REDIRECT}\n[policy]\nvcl = \"{vcl}\""));
        let moved = curl(&clear(&site, "/"), &[]);
        assert_eq!(field(&moved, "location"), Some("https://site.test/"), "{moved}");
        assert!(curl(&sealed(&site, "/"), &["--http1.1"]).starts_with("HTTP/1.1 200 "));
    }

    fn write_file(name: &str, text: &str) -> String {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()));
        std::fs::write(&path, text).expect("the target folder can be written");
        path.display().to_string()
    }

    #[test]
    fn strict_transport_security_is_said_over_tls_whatever_answers_and_once() {
        const SAID: &str = "max-age=300; includeSubDomains";
        let of = |answer: &str| answer.to_ascii_lowercase().matches("strict-transport-security:").count();
        let programs = [None, Some(""), Some("sub vcl_deliver { set resp.http.a = \"b\"; }")];
        for (number, program) in programs.into_iter().enumerate() {
            let site = with_hsts(number, SAID, program);
            for protocol in ["--http1.1", "--http2"] {
                // A miss, hits, larger ones, a part, and an answer of ours.
                for path in ["/bytes/6000", "/bytes/6000", "/bytes/6000", "/bytes/40000", "/bytes/40000", "/cut"] {
                    let answer = curl(&sealed(&site, path), &[protocol, "-o", "/dev/null", "-D", "-"]);
                    assert_eq!((field(&answer, "strict-transport-security"), of(&answer)), (Some(SAID), 1), "{answer}");
                }
                let part = curl(&sealed(&site, "/bytes/6000"), &[protocol, "-r", "0-9"]);
                assert_eq!((field(&part, "strict-transport-security"), of(&part)), (Some(SAID), 1), "{part}");
                let own = curl(&sealed(&site, "/sts"), &[protocol]);
                assert_eq!((field(&own, "strict-transport-security"), of(&own)), (Some("max-age=1"), 1), "{own}");
            }
            let open = curl(&clear(&site, "/bytes/6000"), &["-o", "/dev/null", "-D", "-"]);
            assert!(open.contains(" 200 ") && of(&open) == 0, "{open}");
        }
    }

    /// A site that says Strict-Transport-Security, before its origin, with a program between them where there is one.
    fn with_hsts(number: usize, value: &str, program: Option<&str>) -> TlsSite {
        let mut site = TlsSite::start("", IN_THE_CLEAR);
        let policy = program.map_or(String::new(), |program| {
            let (host, port) = (site.origin.ip(), site.origin.port());
            let text = format!("vcl 4.1; backend default {{ .host = \"{host}\"; .port = \"{port}\"; }} {program}");
            format!("[policy]\nvcl = \"{}\"\n", write_file(&format!("hsts-{number}.vcl"), &text))
        });
        site.change(|config| format!("hsts = \"{value}\"\n{config}{policy}"));
        site
    }

    #[test]
    fn an_origin_hears_whose_certificate_was_shown_and_no_strangers_word() {
        let folder = std::env::temp_dir();
        let name = format!("larder-known-{}", std::process::id());
        write_certificate(&folder, &name, "ann.test");
        let file = |end: &str| folder.join(format!("{name}.{end}")).display().to_string();
        let tls = format!("client_ca = \"{}\"\nclient_cert = \"optional\"", file("pem"));
        let site = TlsSite::start(&tls, IN_THE_CLEAR);
        let known = ["--cert", &file("pem"), "--key", &file("key")];
        let pem = std::fs::read_to_string(file("pem")).unwrap();
        let base64: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
        for protocol in ["--http1.1", "--http2"] {
            let path = format!("/fields/{protocol}");
            let asked = curl(&sealed(&site, &path), &[&known[..], &[protocol, "-H", "Client-Cert: :AAAA:"]].concat());
            assert_eq!(field(&asked, "client-cert"), Some(format!(":{base64}:").as_str()), "{asked}");
            assert_eq!(asked.matches("AAAA:").count(), 0, "{asked}");
            // What was made for her is nobody else's.
            let other = curl(&sealed(&site, &path), &[protocol]);
            assert!(other.contains("fwd=") && field(&other, "client-cert").is_none(), "{other}");
        }
        let claims = ["-H", "Client-Cert: :AAAA:", "-H", "Client-Cert-Chain: :BBBB:"];
        for url in [sealed(&site, "/fields/claimed"), clear(&site, "/fields/claimed")] {
            let asked = curl(&url, &claims);
            assert!(asked.contains(" 200 ") && !asked.contains("AAAA") && !asked.contains("BBBB"), "{asked}");
        }
        // A proxy that is believed shows its own certificate, and says whose it was shown.
        let mut site = site;
        site.change(|config| format!("trusted_proxies = [\"127.0.0.1\"]\n{config}"));
        let asked = curl(&sealed(&site, "/fields/proxied"), &[&known[..], &["-H", "Client-Cert: :AAAA:"]].concat());
        assert_eq!(field(&asked, "client-cert"), Some(":AAAA:"), "{asked}");
        ["pem", "key"].iter().for_each(|end| std::fs::remove_file(file(end)).unwrap());
    }

    #[test]
    fn a_program_knows_the_clients_tls() {
        let folder = std::env::temp_dir();
        let name = format!("larder-vcl-known-{}", std::process::id());
        write_certificate(&folder, &name, "ann.test");
        let file = |end: &str| folder.join(format!("{name}.{end}")).display().to_string();
        let program = "vcl 4.1; import proxy; backend default none; \
            sub vcl_recv { return (synth(200)); } \
            sub vcl_synth { \
                set resp.http.said = proxy.is_ssl() + \" \" + proxy.ssl_version() + \" \" + proxy.alpn() + \" \" + proxy.authority() \
                    + \" \" + proxy.ssl_cipher() + \" \" + proxy.cert_sign() + \" \" + proxy.cert_key(); \
                set resp.http.client = proxy.client_has_cert_sess() + \" \" + proxy.client_has_cert_conn() + \" \" + proxy.client_cert_cn(); \
                return (deliver); }";
        let tls = format!("client_ca = \"{}\"\nclient_cert = \"optional\"", file("pem"));
        let policy = format!("{IN_THE_CLEAR}\n[policy]\nvcl = \"{}\"", write_file("facts.vcl", program));
        let site = TlsSite::start(&tls, &policy);
        for (protocol, alpn) in [("--http1.1", "http/1.1"), ("--http2", "h2")] {
            let said = curl(&sealed(&site, "/"), &[protocol, "--tls13-ciphers", "TLS_AES_128_GCM_SHA256"]);
            let expect = format!("true TLSv1.3 {alpn} site.test TLS_AES_128_GCM_SHA256 ecdsa-with-SHA256 EC256");
            assert_eq!(field(&said, "said"), Some(expect.as_str()), "{said}");
            assert_eq!(field(&said, "client"), Some("false false"), "{said}");
            let known = curl(&sealed(&site, "/"), &[protocol, "--cert", &file("pem"), "--key", &file("key")]);
            assert_eq!(field(&known, "client"), Some("true true rcgen self signed cert"), "{known}");
        }
        let open = curl(&clear(&site, "/"), &[]);
        assert_eq!((field(&open, "said"), field(&open, "client")), (Some("false"), Some("false false")), "{open}");
        ["pem", "key"].iter().for_each(|end| std::fs::remove_file(file(end)).unwrap());
    }

    #[test]
    fn a_host_with_another_certificate_is_asked_for_on_another_connection() {
        let mut site = TlsSite::start("", "");
        write_certificate(&site.directory, "other", "other.test");
        let folder = site.directory.display().to_string();
        let both = |config: String| {
            let list = |end: &str| format!("\"{folder}/site.{end}\", \"{folder}/other.{end}\"");
            let one = |end: &str| format!("\"{folder}/site.{end}\"");
            config.replacen(&one("pem"), &format!("[{}]", list("pem")), 1).replacen(
                &one("key"),
                &format!("[{}]", list("key")),
                1,
            )
        };
        site.change(both);
        for protocol in ["--http1.1", "--http2"] {
            let ask = |host: &str| curl(&sealed(&site, "/bytes/1"), &[protocol, "-H", &format!("Host: {host}")]);
            let misdirected = ask("other.test");
            assert!(misdirected.contains(" 421"), "{misdirected}");
            assert!(ask("site.test").contains(" 200"));
            assert!(ask("nobody.test").contains(" 200"), "none of ours is for that one");
            assert!(curl(&sealed(&site, "/bytes/1").replace(NAME, "other.test"), &[protocol]).contains(" 200"));
        }
    }
}
