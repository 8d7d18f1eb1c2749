//! Ways round a guard of nginx's that an import must not open, beside the real nginx.

#[cfg(test)]
mod tests {
    use crate::imported_beside::Wanted;
    use crate::nginx_beside;

    /// An index is a file of its own: nginx asks its location, too, who may see it.
    #[test]
    fn an_index_that_nobody_may_see_is_not_shown_for_its_folder() {
        let beside = nginx_beside::start(
            "index",
            "server { listen A1; root HERE/site; location / { } location ~ \\.html$ { allow 10.0.0.0/8; deny all; }\n\
             location = /open/index.htm { deny all; } location /open/ { index index.htm index.txt; } location /txt/ { index index.txt; } }",
            &["site/index.html", "site/a/index.html", "site/open/index.htm", "site/txt/index.txt", "site/a/x.txt"],
        );
        for path in ["/", "/a/", "/index.html", "/a/index.html", "/open/", "/open/index.htm"] {
            beside.check_refused("A1", path, &[]);
        }
        beside.check_as_it_is("A1", "/txt/", &[], Wanted::Same);
        beside.check_as_it_is("A1", "/a/x.txt", &[], Wanted::Same);
        assert!(beside.said.contains("closed in part: where an index would answer"), "{}", beside.said);
    }

    /// nginx asks whoever has the index's own path, and that may stand later, or answer otherwise.
    #[test]
    fn an_index_of_another_location_is_not_shown_for_its_folder() {
        let check = |name: &str, locations: &str, path: &str, is_closed: bool| {
            let files = ["site/index.html", "site/d/index.html", "site/e/index.html", "other/x.txt"];
            let server = format!("server {{ listen A1; root HERE/site; {locations} }}");
            let beside = nginx_beside::start(name, &server, &files);
            let asked = crate::imported_beside::Asked { at: "A1", path: path.to_owned(), options: Vec::new() };
            let [theirs, ours] = beside.ask(&asked);
            let is_as_there = ours.status == theirs.status && ours.body == theirs.body;
            let is_refused = ours.status == 403 || ours.status == 404;
            assert!(if is_closed { is_refused } else { is_as_there }, "{path} {theirs:?} {ours:?}\n{}", beside.toml);
            assert!(!is_closed || theirs.body != "site/d/index.html", "it is no hole: {theirs:?}");
        };
        check("later", "location = / { } location / { deny all; }", "/", true);
        check("longer", "location = /d/ { } location ^~ /d { deny all; } location / { }", "/d/", true);
        check("beside", "location = /d/ { } location ^~ /d { deny all; } location / { }", "/e/", false);
        check("asked", "location / { } location ~ \\.html$ { proxy_pass http://O-app; }", "/d/", true);
        check("rooted", "location / { } location ~ \\.html$ { root HERE/other; }", "/d/", true);
        check("led", "location / { } location ~ \\.html$ { return 301 https://login.test/; }", "/d/", true);
    }

    /// For the file that it has found nginx asks the server's own rules once more, and not those that are for what was asked.
    #[test]
    fn what_a_server_rules_of_an_index_holds_for_its_folder() {
        let check = |name: &str, rule: &str, is_closed: bool| {
            let files = ["site/index.html", "site/d/index.html", "site/all.html"];
            let server = format!(
                "server {{ listen A1; root HERE/site; {rule} location / {{ }} location /d/ {{ try_files $uri /all.html; }} }}"
            );
            let beside = nginx_beside::start(name, &server, &files);
            for path in ["/", "/d/", "/d/none"] {
                if !is_closed {
                    beside.check_as_it_is("A1", path, &[], Wanted::Same);
                    continue;
                }
                let asked = crate::imported_beside::Asked { at: "A1", path: path.to_owned(), options: Vec::new() };
                let [theirs, ours] = beside.ask(&asked);
                let are_nothing = [&theirs, &ours].iter().all(|answer| matches!(answer.status, 403 | 404));
                assert!(are_nothing, "{name} {path} {theirs:?} {ours:?}\n{}", beside.toml);
            }
        };
        check("server-if", "if ($uri ~ \\.html$) { return 403; }", true);
        check("server-document", "if ($document_uri ~* \\.HTML$) { return 404; }", true);
        check("server-asked", "if ($request_uri ~ \\.html$) { return 403; }", false);
        check("server-other", "if ($uri ~ ^/private) { return 403; }", false);
    }

    /// Who is asked for one folder of a site is asked for nothing beside it.
    #[test]
    fn an_origin_is_asked_for_nothing_beside_its_location() {
        let beside = nginx_beside::start(
            "out",
            "server { listen A1; root HERE/site; location /api { proxy_pass http://O-api; }\n\
             location ~ ^/v[0-9]/ { proxy_pass http://O-versions; } location /any { deny all; } location / { } }",
            &["site/a.txt", "site/index.html"],
        );
        for path in ["/api/x", "/api", "/v1/x", "/api//x", "/api/y/../x", "/a.txt", "/"] {
            beside.check_as_it_is("A1", path, &[], Wanted::Same);
        }
        let out = ["/api/../a.txt", "/api/..", "/api//..", "/api/%2e%2e/a.txt", "/api/x/../../a.txt", "/apix/../a.txt"];
        for path in out.iter().chain(&["/v1/../a.txt", "/v1/..", "/v1/x/../../a.txt", "/v1/..%2fa.txt"]) {
            let asked = crate::imported_beside::Asked { at: "A1", path: (*path).to_owned(), options: Vec::new() };
            let [theirs, ours] = beside.ask(&asked);
            assert!(theirs.status == 200 && !theirs.body.starts_with("origin"), "{path} {theirs:?}");
            assert!(!ours.body.starts_with("origin"), "{path} {ours:?}\n{}", beside.toml);
        }
    }

    /// Some origins read `post` as a POST.
    #[test]
    fn a_method_that_is_refused_is_refused_in_small_letters() {
        let beside = nginx_beside::start(
            "methods",
            "server { listen A1; location / { if ($request_method = POST) { return 403; } proxy_pass http://O-app; } }",
            &[],
        );
        beside.check("A1", "/x", &[], Wanted::Same);
        for method in ["POST", "post", "Post"] {
            beside.check_as_it_is("A1", "/x", &["-X", method], Wanted::Same);
        }
    }

    /// What lets one method in lets in no other spelling of it, and what is said by the beginnings of methods is said of all that begin so.
    #[test]
    fn methods_that_are_let_in_are_those_that_are_named() {
        let beside = nginx_beside::start(
            "let-in",
            "server { listen A1; location / { limit_except GET { deny all; } proxy_pass http://O-app; }\n\
             location /r { if ($request_method ~ \"^P\") { return 403; } proxy_pass http://O-app; } }",
            &[],
        );
        beside.check("A1", "/x", &[], Wanted::Same);
        for method in ["get", "Get", "POST", "DELETE"] {
            let asked = crate::imported_beside::Asked { at: "A1", path: "/x".to_owned(), options: vec!["-X", method] };
            let [theirs, ours] = beside.ask(&asked);
            assert!(theirs.status >= 400 && ours.status == 403, "{method} {theirs:?} {ours:?}\n{}", beside.toml);
        }
        for method in ["POST", "PUT", "PATCH", "PROPFIND"] {
            beside.check_refused("A1", "/r", &["-X", method]);
        }
    }

    /// What configurations that nobody wrote had open (`cargo xtask import-random`), the shortest of each kind.
    #[test]
    fn what_random_configurations_had_open_is_refused() {
        let files = [
            "site/index.html",
            "site/api/private/a.txt",
            "site/data/a.txt",
            "site/b/index.html",
            "site/a.txt",
            "site/x.php",
        ];
        let run = "fastcgi_pass unix:HERE/none.sock; fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;";
        let check = |name: &str, locations: &str, path: &str, options: &[&str]| {
            let server = format!("server {{ listen A1; root HERE/site; {locations} }}");
            let beside = nginx_beside::start(name, &server, &files);
            let asked = crate::imported_beside::Asked { at: "A1", path: path.to_owned(), options: options.to_vec() };
            let [theirs, ours] = beside.ask(&asked);
            let is_run = [502, 504].contains(&ours.status);
            assert!(
                theirs.status >= 400 && ours.status >= 400 && !is_run,
                "{path} {theirs:?} {ours:?}\n{}",
                beside.toml
            );
        };
        check(
            "within",
            "location ^~ /api { location /api/private/ { deny all; } } location / { deny all; }",
            "/api/private/a.txt",
            &[],
        );
        check("no-scripts", &format!("location /data {{ {run} }}"), "/data/a.txt", &[]);
        check(
            "no-file",
            "if (!-f $request_filename) { rewrite ^ /index.php last; } location /up/ { proxy_pass http://O-app; }",
            "/up/x",
            &[],
        );
        check("no-index", "if (!-f $request_filename) { rewrite ^ /index.php last; } location / { }", "/b/", &[]);
        check("broken-off", "location / { if (!-e $request_filename) { break; } return 200 open; }", "/none", &[]);
        let asked = "location / { if ($request_method !~ ^(GET|HEAD)$) { return 404; } if ($request_uri ~ x) { return 200 open; } }";
        check("asked", asked, "/x", &["-X", "POST"]);
        let limited = "location / { limit_except GET { deny all; } if ($request_method = POST) { rewrite ^ /x break; } proxy_pass http://O-app; }";
        check("limited", limited, "/", &["-X", "POST"]);
        check("inner", "location /data { internal; location ~ [.]txt$ { } }", "/data/a.txt", &[]);
        let kept = format!(
            "location = /b/ {{ try_files $uri $uri/ /x.php; }} location ~ html$ {{ deny all; }} location ~ php$ {{ {run} }}"
        );
        check("kept-index", &kept, "/b/", &[]);
        let hidden = format!("index x.php; location ~ php$ {{ internal; {run} }} location / {{ }}");
        check("hidden-index", &hidden, "/", &["-X", "DELETE"]);
        // A rule of methods alone stands before what the location asks, whichever way its path is written.
        let moved = "location / { if ($request_method = POST) { return 404; } proxy_pass http://O-app/x/; }";
        check("moved", moved, "/", &["-X", "POST"]);
        // A host's own redirect is asked for a page of an error, too.
        let page = "if ($host = a.test) { return 301 /a.html; } location ^~ /api { error_page 404 /404.html; }";
        check("page-of-host", page, "/api/none", &["-H", "Host: b.a.test"]);
        check("index-there", &format!("location / {{ }} location ~ index {{ {run} }}"), "/b/", &[]);
    }

    /// One origin, but another path at it: the outer location must not be asked what is the inner one's by another spelling.
    #[test]
    fn a_location_within_another_keeps_its_path_at_the_same_origin() {
        let within = "location /admin { proxy_pass http://O-app/config; location /admin/in/ { proxy_pass http://O-app; } \
             location /admin/kept/ { if ($http_x_key != k) { return 301 /; } proxy_pass http://O-app/x; } }";
        let beside = nginx_beside::start("same-origin", &format!("server {{ listen A1; {within} }}"), &[]);
        for path in ["/admin/x", "/admin/in/x"] {
            beside.check("A1", path, &[], Wanted::Same);
        }
        for path in ["/admin%2Fin", "/admin%2Fkept", "/admin%2Fin/x", "/admin/%69n%2Fx", "/admin/x/../in/x"] {
            let asked = crate::imported_beside::Asked { at: "A1", path: path.to_owned(), options: Vec::new() };
            let [_, ours] = beside.ask(&asked);
            assert_eq!(ours.status, 403, "{path} {ours:?}\n{}", beside.toml);
        }
    }

    /// Of two names for a server nginx takes none where another has one of them, and rules of a host are those of its own server.
    #[test]
    fn rules_of_a_host_are_its_own_servers() {
        let beside = nginx_beside::start(
            "ruled-host",
            "server { listen A1; server_name a.test; location / { deny all; } }\n\
             server { listen A1; server_name b.test; if ($host = a.test) { return 200 open; } root HERE/site; }",
            &["site/index.html"],
        );
        beside.check_refused("A1", "/", &["-H", "Host: a.test"]);
        beside.check_as_it_is("A1", "/", &["-H", "Host: b.test"], Wanted::Same);
    }
}
