//! An imported nginx.conf whose servers are reached by TLS and in the clear: what nginx shows by TLS alone is not shown in the clear.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::imported_nginx::tests::{ask, check_server, folder, import, imported};
use crate::peer_process::{Running, free_address, wait_until_it_listens};

/// `a.pem` and `a.key`, for a.test.
fn make_certificate(folder: &Path) {
    let mut openssl = Command::new("openssl");
    let words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=a.test -keyout a.key -out a.pem";
    let made = openssl.current_dir(folder).args(words.split(' ')).output();
    assert!(made.expect("openssl is installed").status.success());
}

/// What nginx shows by TLS alone is not shown in the clear: neither where larder has its certificate, nor where it has not.
#[test]
fn what_is_led_from_the_clear_to_tls_is_not_shown_in_the_clear() {
    let folder = folder("clear");
    let check = |inside: &str, code, wanted: &[&str], unwanted: &[&str]| {
        check_server(&folder, inside, (code, wanted, unwanted))
    };
    let both = "listen 80; listen 443 ssl; ssl_certificate a.pem; ssl_certificate_key a.key;";
    let led = "if ($scheme = http) { return 301 https://$host$request_uri; }";
    let to_tls = "redirect = { to = \"https://$host$request_uri\", status = 301 }";
    // Nobody could be asked for it by TLS.
    check(&format!("{both} {led}"), 1, &[to_tls], &["root = ", "mode = "]);
    check(&format!("{both} location /a/ {{ {led} }}"), 1, &[to_tls, "root = "], &["mode = "]);
    let ours = free_address();
    let mut larder = Command::new(env!("CARGO_BIN_EXE_larder"));
    check(&format!("{both} {led}"), 1, &[to_tls], &[]);
    larder.args([
        "serve",
        "--no-supervisor",
        "--admin",
        "off",
        "--workers",
        "1",
        "--listen",
        &ours.to_string(),
        "--config",
    ]);
    let larder = larder.arg(folder.join("out.toml")).stdin(Stdio::null()).stderr(Stdio::null()).spawn();
    let _larder = Running(larder.unwrap());
    wait_until_it_listens(ours);
    let answer = ask(ours, "GET /a?b HTTP/1.1\r\nHost: a.test");
    assert_eq!((answer.status, &*answer.fields["location"]), (301, "https://a.test/a?b"));
    // With a certificate the listener leads, and the site is shown by TLS.
    make_certificate(&folder);
    let mode = "address = \"*:80\"\nmode = \"redirect\"";
    check(&format!("{both} {led}"), 0, &[mode, "root = "], &["redirect = "]);
    let (_, said, text) = imported(&folder, &format!("{both} location /a/ {{ {led} }}"));
    assert!(text.contains(mode) && said.contains("in the clear all of the server is led"), "{said}\n{text}");
    check(&format!("{both} if ($scheme = https) {{ return 403; }}"), 0, &["path = \"/\"\nclosed = true"], &["root = "]);
    let _ = std::fs::remove_dir_all(&folder);
}

/// As certbot leaves a site: nothing of it is lost.
#[test]
fn a_site_of_certbot_is_carried_over() {
    let folder = folder("certbot");
    make_certificate(&folder);
    let led = |name: &str| format!("if ($host = {name}) {{ return 301 https://$host$request_uri; }}");
    let conf = folder.join("nginx.conf");
    let secure = "server { server_name a.test www.a.test; root site; listen 443 ssl; ssl_certificate a.pem; ssl_certificate_key a.key; }";
    let clear = format!(
        "server {{ {} {} listen 80; server_name a.test www.a.test; return 404; }}",
        led("www.a.test"),
        led("a.test")
    );
    std::fs::write(&conf, format!("http {{ {secure} {clear} }}")).unwrap();
    let (code, said) = import(&conf, &folder.join("out.toml"));
    let text = std::fs::read_to_string(folder.join("out.toml")).unwrap();
    assert_eq!(code, Some(0), "{said}");
    assert!(text.contains("address = \"*:80\"\nmode = \"redirect\"") && text.contains("root = "), "{text}");
    assert!(said.contains("note: return 404: a listener leads all"), "{said}");
    let _ = std::fs::remove_dir_all(&folder);
}

/// Routes know no listeners: beside a server that answers in the clear, what nginx shows by TLS alone would be shown so too.
#[test]
fn what_is_reached_by_tls_alone_is_not_shown_in_the_clear() {
    let folder = folder("sealed");
    let conf = folder.join("nginx.conf");
    let secure =
        "server { listen 443 ssl; server_name a.test; ssl_certificate a.pem; ssl_certificate_key a.key; root site; }";
    let text_of = |servers: &[&str]| {
        std::fs::write(&conf, format!("http {{ {} }}", servers.join(" "))).unwrap();
        let (_, said) = import(&conf, &folder.join("out.toml"));
        (said, std::fs::read_to_string(folder.join("out.toml")).unwrap())
    };
    let clear = [
        "server { listen 80 default_server; server_name _; return 444; }",
        "server { listen 80; server_name a.test; location / { return 403; } }",
        "server { listen 80 default_server; server_name b.test; root second; }",
        "server { server_name b.test; root second; }",
    ];
    let closed = "closed: it answers in the clear, where other servers are reached by TLS alone";
    for servers in clear.iter().flat_map(|clear| [[secure, *clear], [*clear, secure]]) {
        // Nobody could be asked for it by TLS.
        let (said, text) = text_of(&servers);
        assert!(said.contains(closed) && !text.contains("\naddress = "), "{servers:?}\n{said}\n{text}");
    }
    make_certificate(&folder);
    for servers in clear.iter().flat_map(|clear| [[secure, *clear], [*clear, secure]]) {
        let (said, text) = text_of(&servers);
        let listens = ["address = \"*:80\"\nmode = \"redirect\"", "address = \"*:443\"\ntls = "];
        assert!(listens.iter().all(|listen| text.contains(listen)), "{servers:?}\n{text}");
        assert!(said.contains(closed) && text.matches("root = ").count() == 1, "{servers:?}\n{said}\n{text}");
    }
    // Who answers both ways answers by TLS alone beside it.
    let both = secure.replace("443 ssl;", "443 ssl; listen 80;").replace("a.test", "c.test");
    let (said, text) = text_of(&[secure, &both]);
    assert!(
        said.contains("in the clear it is led to https://") && text.contains("mode = \"redirect\""),
        "{said}\n{text}"
    );
    assert_eq!(text.matches("root = ").count(), 2, "{text}");
    // Whoever is asked by no name of these gets what nginx shows by TLS, and not what is left out in the clear.
    let at = |listens: &str, name: &str| {
        format!(
            "server {{ {listens} server_name {name}; ssl_certificate a.pem; ssl_certificate_key a.key; root {name}; }}"
        )
    };
    let (first, second) =
        (at("listen 80; listen 10.0.0.1:80;", "a.test"), at("listen 80; listen 10.0.0.2:80;", "b.test"));
    let third = at("listen 443 ssl; listen 10.0.0.2:443 ssl;", "c.test");
    let fourth = at("listen 443 ssl; listen 10.0.0.1:443 ssl;", "d.test");
    let (said, text) = text_of(&[&first, &second, &third, &fourth]);
    let roots: Vec<&str> = text.lines().filter(|line| line.starts_with("root = ")).collect();
    assert!(matches!(roots[..], [root] if root.ends_with("/c.test\"")), "{said}\n{text}");
    let _ = std::fs::remove_dir_all(&folder);
}
