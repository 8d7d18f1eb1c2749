//! What `larder import` makes of a HAProxy's configuration, beside the real HAProxy with that configuration: the same requests come to
//! the same servers, what is refused is refused, and what is not carried over is closed and said.

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use crate::imported_beside::Wanted::{Closed, Same};
    use crate::imported_beside::{Asked, Beside};

    const DEFAULTS: &str = "defaults\n  mode http\n  timeout connect 5s\n  timeout client 30s\n  timeout server 30s\n  \
                            timeout http-request 10s\n";

    /// HAProxy and larder with this configuration behind the usual `defaults`.
    fn beside(name: &str, text: &str, files: &[(&str, &str)]) -> Beside {
        let (mut beside, text) = Beside::new(name, &format!("{DEFAULTS}{text}"));
        files.iter().for_each(|(name, text)| drop(beside.file(name, text)));
        let conf = beside.file("haproxy.cfg", &text);
        let mut command = Command::new("haproxy");
        if Path::new("/usr/sbin/haproxy").exists() {
            command = Command::new("/usr/sbin/haproxy");
        }
        command.args(["-db", "-f"]).arg(&conf);
        beside.start(&conf, command);
        beside
    }

    fn host(name: &str) -> String {
        format!("Host: {name}")
    }

    #[test]
    fn requests_come_to_the_same_servers() {
        let beside = beside(
            "routing",
            r#"
frontend web
  bind A1
  acl api path_beg /api /v2/api
  acl images path_end -i .png .jpg
  acl old path_reg ^/old/[0-9]+$
  acl docs path_dir docs
  acl exact path /exact /exact2
  acl shop hdr(host) -i shop.test www.shop.test
  acl sub hdr_end(host) -i .cloud.test
  acl beta hdr(X-Beta) yes
  use_backend upload if METH_POST api
  use_backend api if api !images or exact
  use_backend images if images
  use_backend old if old || docs
  use_backend shop if shop !{ path_beg /blog }
  use_backend cloud if sub { method GET HEAD }
  use_backend beta if beta
  use_backend no-post unless METH_GET
  default_backend app
backend api
  server s O-api
backend upload
  server s O-upload
backend images
  server s O-images
backend old
  server s O-old
backend shop
  server s O-shop
backend cloud
  server s O-cloud
backend beta
  server s O-beta
backend no-post
  server s O-nopost
backend app
  server s O-app
"#,
            &[],
        );
        // Parts of a field that is divided at commas.
        assert!(beside.left().iter().all(|line| line.contains("use_backend beta")), "{}", beside.said);
        for path in [
            "/",
            "/api",
            "/api/x?a=b",
            "/apix",
            "/v2/api/x",
            "/api/x.png",
            "/x.PNG",
            "/old/12",
            "/old/12x",
            "/a/docs/b",
            "/adocs",
            "/exact",
            "/exact/",
            "/exact2",
            "/blog/x",
            "/x",
        ] {
            for name in ["any.test", "SHOP.test", "www.shop.test", "a.cloud.test", "cloud.test", "notcloud.test"] {
                beside.check_as_it_is("A1", path, &["-H", &host(name)], Same);
            }
            beside.check("A1", path, &["-H", &host("shop.test")], Same);
            beside.check("A1", path, &["-d", "a=b"], Same);
            for options in [&["-X", "PUT"][..], &["-I"], &["-X", "DELETE"]] {
                beside.check_as_it_is("A1", path, options, Same);
            }
        }
        beside.check("A1", "/", &["-H", "X-Beta: yes"], Same);
        beside.check("A1", "/", &["-H", "X-Beta: no"], Same);
        beside.check("A1", "/", &["-H", "X-Beta: a, yes"], Closed);
    }

    #[test]
    fn who_is_kept_out_is_kept_out() {
        let beside = beside(
            "guards",
            r#"
frontend web
  bind A1
  acl office src 127.0.0.2 10.0.0.0/8
  acl admin path_beg /admin
  tcp-request content accept
  tcp-request connection reject if { src 127.0.0.4 }
  http-request deny if { src 127.0.0.3 }
  http-request deny deny_status 404 if { path_sub .git } or { path_end .bak ~ }
  http-request deny if admin !office
  http-request tarpit if { path_beg /slow } { hdr_sub(user-agent) BadBot }
  http-request deny if { method TRACE } or { method DELETE } { path_beg /keep }
  http-request allow if { path_beg /open }
  http-request deny if { path_beg /open /private } !{ src 127.0.0.2 }
  http-request reject if { hdr_cnt(x-none) gt 5 } FALSE
  http-request deny unless { path_beg / }
  use_backend intern if { path_beg /intern } office
  default_backend app
backend app
  http-request deny if { path_beg /app-closed }
  server s O-app
backend intern
  server s O-intern
"#,
            &[],
        );
        for path in [
            "/",
            "/admin",
            "/admin/x",
            "/a/.git/config",
            "/x.bak",
            "/x~",
            "/open/x",
            "/private/x",
            "/app-closed",
            "/slow",
        ] {
            for from in ["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"] {
                beside.check("A1", path, &["--interface", from], Same);
            }
        }
        beside.check("A1", "/keep/x", &["-X", "DELETE"], Same);
        beside.check("A1", "/x", &["-X", "DELETE"], Same);
        beside.check("A1", "/slow", &["-A", "a BadBot 1"], Same);
        // Another server answers others there: routes refuse them.
        beside.check("A1", "/intern/x", &["--interface", "127.0.0.2"], Same);
        beside.check("A1", "/intern/x", &["--interface", "127.0.0.1"], Closed);
    }

    #[test]
    fn users_show_their_passwords() {
        // Of "secret". One made anew could have the name of an address in it, for which that is put.
        let hash = "$2y$04$5NSSZIpLDFpBBYhR/Sbade1CozX8FF/a1rpjazVCxqeWISC5WrWKC";
        let beside = beside(
            "users",
            &format!(
                r#"
userlist people
  group staff users ann
  group guests
  user ann insecure-password open
  user ben password {hash} groups guests
userlist legacy
  user old password $5$abc$OpB5OWAcdFfx2IWrFJUE8qkbZTv3hN7bC6Kj6hXWcv3
frontend web
  bind A1
  acl known http_auth(people)
  http-request auth realm ours if {{ path_beg /members }} !known
  http-request auth realm staff if {{ path_beg /staff }} !{{ http_auth_group(people) staff }}
  http-request auth if {{ path_beg /legacy }} !{{ http_auth(legacy) }}
  default_backend app
backend app
  server s O-app
"#
            ),
            &[],
        );
        for path in ["/", "/members/x", "/staff/x"] {
            for login in [None, Some("ann:open"), Some("ann:wrong"), Some("ben:secret"), Some("nobody:open")] {
                let options = login.map(|login| vec!["-u", login]).unwrap_or_default();
                beside.check("A1", path, &options, Same);
            }
        }
        assert!(beside.left().iter().any(|line| line.contains("http-request auth")), "{}", beside.said);
        beside.check("A1", "/legacy/x", &[], Same);
        assert!(!beside.toml.contains("secret") && !beside.said.contains("open"), "{}", beside.said);
    }

    #[test]
    fn clients_are_led_away_and_answered_alike() {
        let beside = beside(
            "answers",
            r#"
frontend web
  bind A1
  monitor-uri /alive
  http-request redirect location /new%[path] code 301 if { path_beg /moved }
  http-request redirect prefix https://other.test code 308 if { hdr(host) other.test }
  http-request redirect prefix /shop drop-query if { path_beg /cart }
  http-request redirect scheme https code 301 if { hdr(X-Proto) http }
  http-request redirect location https://%[hdr(host)]/q?%[query] if { path /query }
  http-request return status 200 content-type text/plain string "User-agent: *" if { path /robots.txt }
  http-request return status 410 content-type text/plain lf-string "gone: %[path]" if { path_beg /gone }
  redirect location /final if { path /last }
  default_backend app
backend app
  redirect prefix http://www.example.test if { path_beg /www }
  server s O-app
"#,
            &[],
        );
        assert!(beside.left().iter().all(|line| line.contains(":14: ")), "{}", beside.said);
        for path in [
            "/",
            "/moved/a?b=c",
            "/cart?x=1",
            "/query?a=b",
            "/query",
            "/robots.txt",
            "/gone/x",
            "/last",
            "/www/x?y",
            "/alive",
        ] {
            beside.check("A1", path, &[], Same);
            beside.check("A1", path, &["-H", "Host: other.test"], Same);
            beside.check("A1", path, &["-H", "Host: third.test", "-H", "X-Proto: http"], Same);
        }
    }

    #[test]
    fn fields_are_edited_alike() {
        let beside = beside(
            "fields",
            r#"
frontend web
  bind A1
  option forwardfor
  http-request set-header X-T-Host %[req.hdr(host)]
  http-request set-header X-T-From %[src]
  http-request add-header X-T-Added "a b"
  http-request del-header X-T-Internal
  http-request del-header X-T-Pre- -m beg
  http-request set-header X-T-Cert %[ssl_c_s_dn]
  http-request set-header X-T-Api 1 if { path_beg /api }
  http-request set-header X-Forwarded-Proto https if { ssl_fc }
  http-request set-header X-T-Dollar $5%%
  http-request del-header Keep-Alive
  http-request set-header Host fixed.test if { path_beg /fixed }
  http-response set-header X-R-Frame DENY
  http-response del-header X-R-Origin
  http-response set-header X-R-Later late if { status 500 }
  http-response set-header X-R-Tls yes if { ssl_fc }
  default_backend app
backend app
  http-request set-header X-T-Backend "%[method] %[path]"
  http-response add-header X-R-Backend here
  server s O-app
"#,
            &[],
        );
        for path in ["/", "/api/x", "/fixed/x"] {
            let spoofed = ["X-T-Internal: 1", "X-T-Cert: me", "X-T-Api: 9", "X-T-Pre-A: b"];
            for spoofed in [&[][..], &spoofed] {
                let options = ["Host: any.test"].iter().chain(spoofed).flat_map(|field| ["-H", field]).collect();
                let [theirs, ours] = beside.ask(&Asked { at: "A1", path: path.to_owned(), options });
                // What larder cannot say nobody says; HAProxy says it empty.
                assert_eq!(theirs.body.replace(" x-t-cert=", ""), ours.body, "{}", beside.said);
                assert_eq!((theirs.status, theirs.fields), (ours.status, ours.fields), "{}", beside.toml);
            }
        }
    }

    #[test]
    fn origins_are_asked_for_the_same_paths() {
        let beside = beside(
            "paths",
            r#"
frontend web
  bind A1
  use_backend api if { path_beg /api/ }
  use_backend prefixed if { path_beg /pre }
  use_backend fixed if { path_beg /fixed }
  use_backend query if { path_beg /query }
  default_backend app
backend api
  http-request replace-path /api/(v[0-9])?/?(.*) /\2
  server s O-api
backend prefixed
  http-request set-path /base%[path]
  server s O-prefixed
backend fixed
  http-request set-path /index.html if { path_end .html }
  server s O-fixed
backend query
  http-request set-query a=b
  server s O-query
backend app
  http-request replace-path ^/user/([a-z]+)$ /people/\1/page
  server s O-app
"#,
            &[],
        );
        for path in
            ["/", "/api/v1/x?y=z", "/api/x", "/pre/a?b", "/fixed/a.html", "/fixed/a", "/user/ann?x", "/user/ANN"]
        {
            beside.check("A1", path, &[], Same);
        }
        beside.check("A1", "/query/x", &[], Closed);
    }

    #[test]
    fn tls_is_spoken_and_led_to() {
        let text = r#"
frontend web
  bind A1
  bind A2 ssl crt HERE/site.pem alpn h2,http/1.1
  acl challenge path_beg /.well-known/acme-challenge/
  http-request redirect scheme https code 301 if !{ ssl_fc } !challenge
  http-request deny if !{ ssl_fc }
  http-response set-header X-R-Safe "max-age=5" if { ssl_fc }
  use_backend api if { path_beg /api } { ssl_fc }
  default_backend app
backend api
  server s O-api
backend app
  server s O-app
"#;
        let (certificate, key) = self_signed();
        let beside = beside("tls", text, &[("site.pem", &format!("{certificate}{key}"))]);
        assert!(matches!(&beside.left()[..], [one] if one.contains("led to https://")), "{}", beside.said);
        for path in ["/", "/api/x?y", "/x"] {
            beside.check("A2", path, &["--insecure", "-H", "Host: any.test"], Same);
            let [theirs, ours] =
                beside.ask(&Asked { at: "A1", path: path.to_owned(), options: vec!["-H", "Host: any.test"] });
            assert_eq!((theirs.status, ours.status), (301, 301));
            // larder names its own port where that is not 443.
            assert!(theirs.location == format!("https://any.test{path}") && ours.location.ends_with(path), "{ours:?}");
        }
    }

    fn self_signed() -> (String, String) {
        let made = rcgen::generate_simple_self_signed(vec!["any.test".to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    #[test]
    fn proxies_that_are_none_of_the_site_are_not_listened_for() {
        let beside = beside(
            "proxies",
            r#"
listen stats
  bind A3
  stats enable
  stats uri /stats
listen site
  bind A1
  stats uri /hastats
  balance leastconn
  http-request deny if { path_beg /closed }
  server a O-one weight 10 check
  server b O-one backup
  server c 127.0.0.1:1 disabled
frontend second
  bind A2
  default_backend other
backend other
  server s O-other
listen database
  mode tcp
  bind A4
  server s 127.0.0.1:1
"#,
            &[],
        );
        for path in ["/", "/x", "/closed/x"] {
            beside.check("A1", path, &[], Same);
        }
        beside.check("A1", "/hastats", &[], Closed);
        let said = beside.left().join("\n");
        for head in ["listen stats: ", "frontend second: ", "listen database: "] {
            assert!(said.contains(head), "{said}");
        }
        let [theirs, ours] = beside.ask(&Asked { at: "A2", path: "/".to_owned(), options: Vec::new() });
        assert_eq!((theirs.status, ours.status), (200, 0));
    }

    #[test]
    fn who_asks_too_often_is_refused() {
        let beside = beside(
            "rates",
            r#"
frontend web
  bind A1
  stick-table type ip size 100k expire 1m store http_req_rate(60s)
  http-request track-sc0 src
  http-request deny deny_status 429 if { path_beg /login } { sc_http_req_rate(0) gt 3 }
  default_backend app
backend app
  server s O-app
"#,
            &[],
        );
        assert!(beside.left().is_empty(), "{}", beside.said);
        let asked = |path: &str| Asked { at: "A1", path: path.to_owned(), options: Vec::new() };
        let statuses: Vec<_> = (0..5).map(|_| beside.ask(&asked("/login")).map(|outcome| outcome.status)).collect();
        assert_eq!(statuses, [[200, 200], [200, 200], [200, 200], [429, 429], [429, 429]]);
        assert_eq!(beside.ask(&asked("/")).map(|outcome| outcome.status), [200, 200]);
    }

    /// What may be let in or kept out by what larder does not know is shown to nobody.
    #[test]
    fn what_is_not_carried_over_is_closed() {
        let beside = beside(
            "closed",
            r#"
frontend web
  bind A1
  acl odd url_len gt 2000
  acl nobody var(txn.x) -m found
  http-request set-var(txn.y) path
  http-request deny if { path_beg /odd } odd
  http-request deny if { path_beg /many } { sc_conn_rate(0) gt 1000 }
  http-request use-service prometheus-exporter if { path /metrics }
  http-request set-method GET if { path_beg /method }
  use_backend %[path,map(HERE/paths.map,app)] if { path_beg /mapped }
  use_backend other if { path_beg /other } !odd
  use_backend answers if { path_beg /answers }
  use_backend proxied if { path_beg /proxied }
  use_backend servers if { path_beg /servers }
  default_backend app
backend app
  server s O-app
backend other
  server s O-other
backend answers
  http-response deny if { res.hdr(x-secret) -m found }
  server s O-answers
backend proxied
  server s O-proxied
  server t O-proxied ssl verify none
backend servers
  use-server s if { path_beg /servers/s }
  server s O-servers
"#,
            &[("paths.map", "/mapped app\n")],
        );
        beside.check("A1", "/x", &[], Same);
        for path in ["/odd/x", "/many/x", "/metrics", "/method", "/mapped", "/other/x", "/answers/x", "/servers/s"] {
            beside.check("A1", path, &[], Closed);
        }
        let said = beside.left().join("\n");
        for line in ["use-service", "set-method", "use_backend %[path", "http-response deny", "use-server"] {
            assert!(said.contains(line), "{line}: {said}");
        }
        assert_eq!(beside.ask(&Asked { at: "A1", path: "/proxied/x".to_owned(), options: Vec::new() })[1].status, 403);
    }

    #[test]
    fn sections_take_what_defaults_say_and_caches_keep() {
        let beside = beside(
            "sections",
            r#"
global
  expose-experimental-directives
cache pages
  total-max-size 4
  max-age 30
defaults sites from
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  default_backend app
frontend web
  bind A1
  tcp-request inspect-delay 1s
  tcp-request content reject if { src 127.0.0.3 }
  http-request normalize-uri path-merge-slashes
  http-request cache-use pages if { path_beg /cached }
  http-response cache-store pages
  http-request deny if { path_beg /closed }
backend app
  balance source
  cookie SRV insert indirect nocache
  option httpchk GET /up
  http-check expect status 200
  default-server check inter 2s
  server s O-app cookie one
"#
            .replace("defaults sites from", "defaults sites")
            .as_str(),
            &[],
        );
        for path in ["/cached/x", "/x"] {
            beside.check("A1", path, &["--interface", "127.0.0.1"], Same);
            beside.check("A1", path, &["--interface", "127.0.0.3"], Same);
        }
        beside.check("A1", "/closed", &[], Same);
        for line in ["sticky_cookie = \"SRV\"", "hash = \"client\"", "probe = { path = \"/up\", interval = \"2s\""] {
            assert!(beside.toml.contains(line), "{line}: {}", beside.toml);
        }
        assert!(beside.toml.contains("cache = false"), "{}", beside.toml);
    }

    /// Secrets of the file are in no list, and what is no configuration is said.
    #[test]
    fn no_secret_is_said_and_mistakes_are() {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("haproxy-said-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let conf = folder.join("haproxy.cfg");
        let import = |text: &str| {
            std::fs::write(&conf, text).unwrap();
            let done = Command::new(env!("CARGO_BIN_EXE_larder")).arg("import").arg(&conf).output().unwrap();
            let [out, said] = [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            (done.status.code(), out, said)
        };
        let (code, out, said) = import(&format!(
            "{DEFAULTS}listen a\n bind :1\n stats auth me:sesame\n http-request replace-header Authorization (.*) sesame\n \
             http-request deny if {{ hdr_reg(x-key) [^s]sesame }}\n server s 127.0.0.1:1 sesame\n"
        ));
        assert!(code == Some(1) && !said.contains("sesame") && !out.contains("sesame"), "{said}{out}");
        for (text, expect) in [
            ("frontend a\n bind \":80\n", "haproxy.cfg:2: a quote is not closed"),
            ("frontend a\n.if defined(X)\n", "haproxy.cfg:2: lines that hold under a condition"),
        ] {
            let (code, out, said) = import(text);
            assert!(code == Some(1) && out.is_empty() && said.contains(expect), "{said}{out}");
        }
        let _ = std::fs::remove_dir_all(&folder);
    }
}
