//! A real browser at larder's TLS: Chromium, headless, loads pages of a real site, a manual in HTML behind nginx, over HTTP/2. It believes
//! an authority of the test's own, and no other word is said to it about certificates.

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use crate::bench_command::Nginx;
    use crate::peer_process::free_address;
    use crate::secure_site::TestAuthority;
    use crate::test_browser::Browser;
    use crate::tls_site::{NAME, TlsSite};

    /// The manual of Varnish, as Debian packs it: pages with styles, scripts and pictures.
    const MANUAL: &str = "/usr/share/doc/varnish/html";

    /// Pages of it, and what stands in each.
    const PAGES: [(&str, &str); 3] = [
        ("/index.html", "Varnish Documentation"),
        ("/tutorial/index.html", "The Varnish Tutorial"),
        ("/users-guide/vcl-grace.html", "Grace mode and keep"),
    ];

    #[test]
    fn chromium_loads_a_site_over_http2_and_the_second_time_no_origin_is_asked() {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("browser-tls-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("root")).expect("the target folder can be written");
        let origin = free_address();
        let settings = format!(
            "include /etc/nginx/mime.types; location / {{ root {MANUAL}; add_header Cache-Control max-age=600; }}"
        );
        let _nginx = Nginx::start_with(&folder, origin, "", &settings);
        let authority = TestAuthority::new();
        let certificate = authority.certificate(NAME, 2040);
        let file = folder.join("authority.pem").display().to_string();
        std::fs::write(&file, &authority.pem).expect("the target folder can be written");
        let mut site = TlsSite::start("", "");
        std::fs::write(site.directory.join("site.pem"), &certificate.chain).expect("the target folder can be written");
        std::fs::write(site.directory.join("site.key"), &certificate.key).expect("the target folder can be written");
        let echo = site.origin.to_string();
        site.change(|config| config.replace(&echo, &origin.to_string()));

        // A picture for tabs is asked for each time: there is none, and nothing says for how long.
        let log = || std::fs::read_to_string(folder.join("access.log")).unwrap_or_default();
        let asked = || log().lines().filter(|line| line.ends_with(" 200")).count();
        let mut asked_before = 0;
        for visit in ["first", "second"] {
            let browser = Browser::new(&folder, visit, &file, site.tls);
            for (path, title) in PAGES {
                let (page, events) = browser.load(path);
                assert!(page.contains(title), "{page}");
                assert!(events.contains("\"next_proto\":\"h2\""), "the browser did not agree upon HTTP/2 for {path}");
            }
            let asked = asked();
            match visit {
                "first" => assert!(asked > PAGES.len(), "styles and scripts are asked for, too: {asked}"),
                _ => assert_eq!(asked, asked_before, "all of it was stored"),
            }
            asked_before = asked;
        }
        assert!(site.metric("larder_http2_connections_total") >= 6);
        let _ = std::fs::remove_dir_all(&folder);
    }
}
