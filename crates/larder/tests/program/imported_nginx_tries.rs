//! What `larder import` makes of locations of nginx's that look for a file before they ask somebody else, and of names that no request has.

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    /// What was said, and the text that came of it.
    fn imported(name: &str, servers: &str) -> (String, String) {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("nginx-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let conf = folder.join("nginx.conf");
        std::fs::write(&conf, format!("events {{}}\nhttp {{\n{servers}\n}}\n")).unwrap();
        let done = Command::new(env!("CARGO_BIN_EXE_larder")).arg("import").arg(&conf).output().unwrap();
        let _ = std::fs::remove_dir_all(&folder);
        let [out, said] = [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        (said, out)
    }

    /// nginx says 404 of what is no file, and asks the origin of files alone.
    #[test]
    fn an_origin_is_asked_for_no_more_than_nginx_asks_it_for() {
        for handler in ["proxy_pass http://127.0.0.1:1", "memcached_pass 127.0.0.1:1"] {
            let server =
                format!("server {{ listen 8080; root /srv; location / {{ try_files $uri =404; {handler}; }} }}");
            let (said, toml) = imported("tries", &server);
            assert!(toml.contains("closed = true") && !toml.contains("[origin."), "{handler}\n{toml}");
            assert!(said.contains("try_files $uri =404: closed"), "{said}");
        }
    }

    /// One script runs for what is a file, and nobody for what is none.
    #[test]
    fn a_script_runs_for_no_more_than_nginx_runs_it_for() {
        let with = |head: &str| {
            let runs = "fastcgi_param SCRIPT_FILENAME /srv/index.php; fastcgi_pass 127.0.0.1:1;";
            imported(
                "script",
                &format!("server {{ listen 8080; root /srv; location {head} {{ try_files $uri =404; {runs} }} }}"),
            )
        };
        let (said, toml) = with("/");
        assert!(!toml.contains("origin = ") && said.contains("try_files $uri =404: closed"), "{toml}\n{said}");
        let (said, toml) = with("= /index.php");
        assert!(toml.contains("origin = ") && !said.contains("closed"), "{toml}\n{said}");
    }

    /// nginx shows a script that no location runs as the file that it is: an upload must not run beside a front controller.
    #[test]
    fn no_script_runs_that_no_location_of_nginxs_runs() {
        let runs = "fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; fastcgi_pass 127.0.0.1:1;";
        let one = "fastcgi_param SCRIPT_FILENAME $document_root/index.php; fastcgi_pass 127.0.0.1:1;";
        let tries = "location / { try_files $uri /index.php$is_args$args; }";
        for (locations, closed) in [
            (format!("{tries} location = /index.php {{ {runs} }}"), &["/uploads/evil.php", "/hdr.php", "/a.PHP"][..]),
            (format!("{tries} location ~ ^/index\\.php(/|$) {{ {runs} }}"), &["/uploads/evil.php", "/x/index.php"]),
            (format!("location / {{ try_files $uri @php; }} location @php {{ {one} }}"), &["/uploads/evil.php"]),
            (format!("{tries} location ~ ^/(index|hdr)\\.php$ {{ {runs} }}"), &["/uploads/evil.php", "/x/hdr.php"]),
            (format!("index index.php; location / {{ }} location = /index.php {{ {runs} }}"), &["/uploads/evil.php"]),
            (format!("{tries} location ~ ^/(?!up)[^.]*\\.php$ {{ {runs} }}"), &["/uploads/evil.php"]),
            (format!("{tries} location ~ \\.php$ {{ {runs} }}"), &[]),
        ] {
            let (said, toml) = imported("runs", &format!("server {{ listen 8080; root /srv; {locations} }}"));
            let of_all = toml.split("[[route]]").find(|section| section.contains("path = \"/\"\n"));
            let of_all = of_all.unwrap_or_else(|| panic!("{toml}\n{said}"));
            assert!(of_all.contains("origin = "), "{locations}\n{toml}");
            let line = of_all.lines().find(|line| line.starts_with("closed_paths = ")).unwrap_or("closed_paths = []");
            let patterns: Vec<String> = line.split('\'').skip(1).step_by(2).map(str::to_owned).collect();
            let paths = proxy::settings::ClosedPaths::new(patterns.iter().map(String::as_str)).expect("patterns");
            for path in closed {
                assert!(paths.close(path.as_bytes()), "{path}: {locations}\n{toml}");
            }
            assert!(!paths.close(b"/index.php") && !paths.close(b"/a.txt"), "{locations}\n{toml}");
            let is_run = [" \\.php$", "(?!up)"].iter().any(|those| locations.contains(those));
            assert_eq!(paths.close(b"/any/script.php"), !is_run, "{locations}\n{toml}");
        }
    }

    /// `/api%2Fv0` is beneath /api/v0 to nginx, and beneath / to routes of paths: what answers there for what is no file must not here.
    #[test]
    fn no_spelling_of_a_path_leads_to_the_fallback_of_another_location() {
        let runs = "fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; fastcgi_pass 127.0.0.1:1;";
        for (fallback, is_closed) in [("/api.php", true), ("=404", true), ("/index.php", false)] {
            let server = format!(
                "server {{ listen 8080; root /srv; location / {{ try_files $uri /index.php; }} \
                 location /api/v0 {{ try_files $uri {fallback}; }} location ~ \\.php$ {{ {runs} }} }}"
            );
            let (said, toml) = imported("fallbacks", &server);
            let of_all = toml.split("[[route]]").find(|section| section.contains("path = \"/\"\n"));
            let of_all = of_all.unwrap_or_else(|| panic!("{toml}\n{said}"));
            assert_eq!(of_all.contains("'^/api/v0'"), is_closed, "{fallback}\n{toml}");
        }
    }

    /// nginx's own folder of files is not on every machine, and a larder does not start with a root that is not there.
    #[test]
    fn a_folder_of_nginxs_own_that_is_not_there_has_no_files() {
        let runs = "fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; fastcgi_pass 127.0.0.1:1;";
        for (inside, lines) in [("try_files $uri /index.php;", 1), (runs, 1), ("", 0)] {
            let (said, toml) = imported("no-files", &format!("server {{ listen 8080; location / {{ {inside} }} }}"));
            assert!(
                toml.contains("respond = { status = 404 }") && !toml.contains("root = "),
                "{inside}\n{toml}\n{said}"
            );
            assert_eq!(said.matches("nginx's own folder of files is not there").count(), lines, "{inside}\n{said}");
        }
        let (said, toml) = imported("no-root", "server { listen 8080; location /a { root /srv; } }");
        let route = |path: &str| toml.split("[[route]]").find(|section| section.contains(path)).unwrap_or_default();
        assert!(route("path = \"/\"\n").contains("respond = { status = 404 }"), "{toml}\n{said}");
        assert!(route("'^/a'").contains("root = \"/srv\"") && toml.matches("root = ").count() == 1, "{toml}\n{said}");
    }

    /// nginx looks for the location of the last name of `try_files` again, and asks its rules.
    #[test]
    fn what_a_rule_leads_away_is_no_fallback() {
        let refused = "location = /a.html { if ($http_x_key != k) { return 403; } }";
        for (location, beside, is_shown) in [
            ("rewrite ^/(.*)\\.html$ /$1.txt permanent;", "", false),
            ("rewrite ^/(.*)\\.htm$ /$1.txt permanent;", "", true),
            ("", refused, false),
            ("", "", true),
        ] {
            let server = format!(
                "server {{ listen 8080; root /srv; location / {{ {location} try_files $uri /a.html; }} {beside} }}"
            );
            let (said, toml) = imported("ruled", &server);
            assert_eq!(toml.contains("fallback = \"/a.html\""), is_shown, "{location} {beside}\n{toml}\n{said}");
        }
    }

    #[test]
    fn where_somebody_is_asked_for_a_folder_its_name_leads_there() {
        let locations = "location / { proxy_pass http://127.0.0.1:1; }\nlocation /api/ { proxy_pass http://127.0.0.1:2; }\n\
            location = /own { return 200 x; }\nlocation /own/ { proxy_pass http://127.0.0.1:3; }\n\
            location /in/ { internal; proxy_pass http://127.0.0.1:4; }\nlocation /files/ { root /srv; }";
        let (said, toml) = imported("slash", &format!("server {{ listen 8080; {locations} }}"));
        let leads = "path_pattern = '^/api$'\nredirect = { to = \"/api/$is_args$args\", status = 301 }";
        assert!(toml.contains(leads) && toml.matches("redirect = ").count() == 1, "{toml}\n{said}");
    }

    /// What nginx answers itself, or what no URL of larder's can be, leads nowhere.
    #[test]
    fn a_name_that_answers_or_cannot_be_written_leads_nowhere() {
        for (locations, shown) in [
            ("location /api/ { proxy_pass http://127.0.0.1:2; } location /api { return 200 x; }", "'^/api'"),
            (
                "location /api/ { proxy_pass http://127.0.0.1:2; } location ^~ /api { return 200 x; }",
                "'^(?!/api/)/api'",
            ),
            ("location \"/a b/\" { proxy_pass http://127.0.0.1:2; }", "closed = true"),
        ] {
            let (said, toml) = imported("nowhere", &format!("server {{ listen 8080; {locations} }}"));
            assert!(toml.contains(shown) && !toml.contains("redirect = "), "{locations}\n{toml}\n{said}");
        }
    }

    /// An origin that nginx never tells of a WebSocket is told of none, and that is said once of a server.
    #[test]
    fn websockets_come_to_whom_nginx_hands_them_to() {
        let shut = "header = { Upgrade = \"!(?i)h2c\" }\nclosed = true";
        let upgrade = "proxy_set_header Upgrade $http_upgrade;";
        let pass = "proxy_pass http://127.0.0.1:1;";
        for (inside, count) in [
            (format!("location / {{ {pass} }} location /a/ {{ {pass} }}"), 2),
            (format!("location / {{ {pass} }} location /a/ {{ {pass} {upgrade} }}"), 1),
            (format!("{upgrade} location / {{ {pass} }}"), 0),
            // Lines of an own level are all that there are.
            (format!("{upgrade} location / {{ {pass} proxy_set_header X-A b; }}"), 1),
            (format!("location / {{ {pass} proxy_set_header Upgrade \"\"; }}"), 1),
            (format!("location / {{ try_files $uri @app; }} location @app {{ {pass} }}"), 1),
            (format!("location / {{ try_files $uri @app; }} location @app {{ {pass} {upgrade} }}"), 0),
            ("location / { fastcgi_param SCRIPT_FILENAME /srv/a.php; fastcgi_pass 127.0.0.1:1; }".to_owned(), 0),
            ("location / { return 200 x; }".to_owned(), 0),
        ] {
            let (said, toml) = imported("sockets", &format!("server {{ listen 8080; root /srv; {inside} }}"));
            assert_eq!(toml.matches(shut).count(), count, "{inside}\n{toml}\n{said}");
            assert_eq!(
                said.matches("a WebSocket, or another upgrade, is refused").count(),
                count.min(1),
                "{inside}\n{said}"
            );
        }
    }

    /// nginx asks for this one protocol whatever a client asks for.
    #[test]
    fn a_protocol_that_is_written_there_is_the_only_one() {
        let (said, toml) = imported(
            "one-socket",
            "server { listen 8080; location / { proxy_pass http://127.0.0.1:1; proxy_set_header Upgrade websocket; } }",
        );
        let shut = "header = { Upgrade = [\"!(?i)h2c\", \"!(?i)websocket\"] }\nclosed = true";
        assert_eq!(toml.matches(shut).count(), 1, "{toml}\n{said}");
    }

    /// Which of the two nginx asks hangs on the address that a client came to.
    #[test]
    fn a_name_at_two_addresses_of_a_port_is_closed_where_one_of_them_is() {
        let other = "server { listen 8080; server_name b.test; location / { proxy_pass http://127.0.0.1:2; } }";
        let open = "server { listen 8080; server_name a.test; location / { proxy_pass http://127.0.0.1:1; } }";
        let at = |address: &str| format!("server {{ listen {address}; server_name a.test; return 403; }}");
        for (servers, closes) in [
            (format!("{other} {open} {}", at("127.0.0.1:8080")), true),
            (format!("{other} {} {open}", at("127.0.0.1:8080")), true),
            (format!("{open} {} {other}", at("127.0.0.1:8080")), true),
            (format!("{open} {other} {}", at("127.0.0.1:8081")), false),
        ] {
            let (said, toml) = imported("two-addresses", &servers);
            let section = "path = \"/\"\nhost = [\"a.test\"]\nclosed = true";
            assert_eq!(toml.contains(section), closes, "{servers}\n{toml}\n{said}");
            assert_eq!(said.contains("which of them is asked hangs on the address"), closes, "{said}");
        }
    }

    /// IPv6 alone is listened at by nobody: what nginx says there by the name of another server may be no.
    #[test]
    fn a_name_of_ipv6_alone_is_closed_unless_both_say_the_same() {
        let other = "server { listen 8080; server_name b.test; location / { proxy_pass http://127.0.0.1:2; } }";
        let shows = |listen: &str, says: &str| {
            format!("server {{ listen {listen}; server_name a.test; location / {{ root /srv/{says}; }} }}")
        };
        for (four, six, closes) in [
            (shows("8080", "a"), shows("[::]:8080", "a"), false),
            (shows("0.0.0.0:8080", "a"), shows("[::]:8080 ipv6only=on", "a"), false),
            (shows("8080", "a"), shows("[::]:8080", "b"), true),
            (shows("8080", "a"), shows("[::]:8080 default_server", "a"), true),
            (shows("8080", "a"), "server { listen [::]:8080; server_name a.test; return 403; }".to_owned(), true),
        ] {
            let (said, toml) = imported("ipv6", &format!("{other} {four} {six}"));
            let section = "path = \"/\"\nhost = [\"a.test\"]\nclosed = true";
            assert_eq!(toml.contains(section), closes, "{four} {six}\n{toml}\n{said}");
            assert_eq!(said.contains("which of them is asked hangs on the address"), closes, "{six}\n{said}");
            assert_eq!(said.contains("one with the server that says the same for IPv4"), !closes, "{six}\n{said}");
            assert_eq!(toml.contains("root = \"/srv/a\""), !closes, "{toml}");
        }
    }

    /// A server's own rule may answer all of a location, or keep an error's page from being asked for: what is left is a config all the same.
    #[test]
    fn what_a_rule_of_the_server_answers_is_no_route_nor_page() {
        let php = "location ~ \\.php$ { fastcgi_pass 127.0.0.1:9000; fastcgi_param SCRIPT_FILENAME /srv$fastcgi_script_name; }";
        for (inside, refused) in [
            (format!("if ($uri ~ \\.php$) {{ return 403; }} location / {{ }} {php}"), ""),
            ("if ($request_method = POST) { return 403; } if ($request_method = POST) { return 405; } location / { }".into(), ""),
            ("error_page 404 /n.html; if ($uri ~ \\.html$) { return 403; } location / { }".into(), "error_page 404 /n.html"),
            ("error_page 404 /n.html; location / { if ($uri ~ n) { return 403; } }".into(), "error_page 404 /n.html"),
            ("error_page 404 /n.html; if ($uri ~ \\.txt$) { return 403; } location / { }".to_owned(), ""),
            (
                "error_page 404 /n.html; if ($request_method !~ ^(GET|HEAD)$) { return 405; } location / { }".into(),
                "error_page 404 /n.html",
            ),
        ] {
            let (said, toml) = imported("ruled", &format!("server {{ listen 8080; root /srv; {inside} }}"));
            assert!(toml.contains("root = \"/srv\""), "{inside}\n{toml}\n{said}");
            let pages = inside.contains("error_page") && refused.is_empty();
            assert_eq!(toml.contains("error_pages = "), pages, "{inside}\n{toml}");
            assert!(refused.is_empty() || said.contains(&format!("not carried over: {refused}")), "{inside}\n{said}");
        }
    }

    /// Who is asked would hear more than nginx tells it, and files would be shown that nginx does not open.
    #[test]
    fn what_changes_a_question_or_a_file_closes() {
        let pass = "proxy_pass http://127.0.0.1:1;";
        for (inside, is_closed) in [
            (format!("location / {{ {pass} proxy_method GET; }}"), true),
            (format!("proxy_pass_request_headers off; location / {{ {pass} }}"), true),
            (format!("location / {{ try_files $uri @app; }} location @app {{ {pass} proxy_method GET; }}"), false),
            (format!("location / {{ {pass} proxy_pass_request_headers on; }}"), false),
            ("disable_symlinks on; location / { }".to_owned(), true),
            ("location / { disable_symlinks if_not_owner; }".to_owned(), true),
            ("disable_symlinks off; location / { }".to_owned(), false),
            (format!("disable_symlinks on; location / {{ {pass} }}"), false),
        ] {
            let (said, toml) = imported("changed", &format!("server {{ listen 8080; root /srv; {inside} }}"));
            let is_shut = toml.contains("path = \"/\"\nclosed = true") && !toml.contains("origin = ");
            assert_eq!(is_shut, is_closed, "{inside}\n{toml}\n{said}");
            assert!(!inside.contains("@app") || !toml.contains("origin = "), "{inside}\n{toml}");
        }
    }

    #[test]
    fn a_login_page_counts_behind_another_page() {
        let lines = "error_page 404 = /n.html; error_page 401 = @login; auth_request /auth;";
        let locations = "location = /auth { internal; proxy_pass http://127.0.0.1:1; }\n\
            location @login { return 302 https://a.test/in; }\nlocation / { proxy_pass http://127.0.0.1:2; }";
        let (said, toml) = imported("login", &format!("server {{ listen 8080; root /srv; {lines}\n{locations} }}"));
        assert!(toml.contains("login = \"https://a.test/in\""), "{toml}\n{said}");
    }

    /// nginx takes the first, whatever another one says.
    #[test]
    fn of_two_pages_for_a_status_the_first_counts() {
        let lines =
            "error_page 404 /a.html; error_page 404 500 /b.html; error_page 401 /c.html; error_page 401 = @login;";
        let (said, toml) = imported("pages", &format!("server {{ listen 8080; root /srv; {lines} location / {{ }} }}"));
        let pages = "error_pages = { 404 = \"/a.html\", 500 = \"/b.html\", 401 = \"/c.html\" }";
        assert!(toml.contains(pages) && said.contains("error_page 401 = @login: of two pages"), "{toml}\n{said}");
    }

    /// Its path begins where nginx's do, and each line is said once.
    #[test]
    fn one_log_is_written_and_the_rest_is_said() {
        let (said, toml) = imported(
            "log",
            "map $status $loggable { ~^[23] 0; default 1; }\naccess_log logs/a.log;\n\
             server { listen 8080; root /srv; access_log logs/a.log combined if=$loggable; access_log /var/log/b.log; }",
        );
        let path = toml.lines().find(|line| line.ends_with("/logs/a.log\"")).unwrap_or_default();
        assert!(path.starts_with("path = \"/"), "{toml}");
        assert_eq!(said.matches("b.log: not written").count(), 1, "{said}");
        assert_eq!(said.matches("if=$loggable: every request is written").count(), 1, "{said}");
        assert!(!said.contains("holds for all routes now"), "{said}");
    }

    /// A key that nobody here can tell counts for nothing, and that is said; so is what a listener leads away with the rest.
    #[test]
    fn what_is_left_of_limits_and_of_plain_listeners_is_said() {
        let (said, toml) = imported(
            "keys",
            "map $http_x_plan $key { free $binary_remote_addr; default \"\"; }\nlimit_req_zone $key zone=z:1m rate=1r/s;\n\
             server { listen 8080; root /srv; limit_req zone=z; }",
        );
        assert!(!toml.contains("rate_limit") && said.contains("not carried over: limit_req zone=z"), "{toml}\n{said}");
        let (said, _) = imported(
            "certbot",
            "server { listen 443 ssl; server_name a.test; ssl_certificate a; ssl_certificate_key a; root /srv; }\n\
             server { listen 80; server_name a.test b.test; if ($host = a.test) { return 301 https://$host$request_uri; } return 404; }",
        );
        assert!(said.contains("not carried over: return 404"), "{said}");
    }

    #[test]
    fn a_name_with_a_dot_behind_it_is_none_of_a_request() {
        let (said, toml) = imported(
            "dot",
            "server { listen 8080; root /srv/all; }\nserver { listen 8080; server_name a.test.; root /srv/none; }",
        );
        assert!(!toml.contains("/srv/none") && said.contains("nor end in a star or a dot"), "{toml}\n{said}");
    }
}
