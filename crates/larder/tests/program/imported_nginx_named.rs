//! What `larder import` makes of nginx's locations with names and of rules with groups, beside the real nginx: whose words hold, which scripts
//! run, and what an origin is asked for.

#[cfg(test)]
mod tests {
    use crate::imported_beside::{Asked, Beside, Wanted};
    use crate::nginx_beside;

    fn ask(beside: &Beside, path: &str, options: &[&'static str]) -> [crate::imported_beside::Outcome; 2] {
        beside.ask(&Asked { at: "A1", path: path.to_owned(), options: options.to_vec() })
    }

    /// nginx leaves all that the location said which led there, but for who may come in.
    #[test]
    fn a_location_with_a_name_answers_with_its_own_words() {
        let beside = nginx_beside::start(
            "named",
            "server { listen A1; root HERE/site;\n\
             location / { try_files $uri @node; add_header X-R-Outer 1 always; }\n\
             location @node { proxy_pass http://O-node; proxy_set_header Host $host; proxy_set_header X-T-User \"\";\n\
             proxy_set_header X-T-Key abc; add_header X-R-Frame DENY always; }\n\
             location ~ \\.png$ { expires 30d; add_header Cache-Control \"public, immutable\"; try_files $uri @app; }\n\
             location @app { proxy_pass http://O-app; proxy_set_header Host $host; } }",
            &[],
        );
        beside.check_as_it_is("A1", "/x", &["-H", "X-T-User: admin"], Wanted::Same);
        let [_, ours] = ask(&beside, "/x", &["-H", "X-T-User: admin"]);
        assert!(ours.body.contains("x-t-key=abc") && !ours.body.contains("admin"), "{ours:?}\n{}", beside.toml);
        assert!(ours.fields.contains(&"x-r-frame: DENY".to_owned()), "{ours:?}");
        beside.check_as_it_is("A1", "/me/avatar.png", &[], Wanted::Same);
        assert!(!beside.toml.contains("immutable"), "what the origin says stays: {}", beside.toml);
    }

    #[test]
    fn methods_that_a_location_with_a_name_refuses_are_refused() {
        let beside = nginx_beside::start(
            "named-methods",
            "server { listen A1; root HERE/site; location / { try_files $uri @b; }\n\
             location @b { limit_except GET { deny all; } proxy_pass http://O-b; proxy_set_header Host $host; }\n\
             location /two/ { limit_except GET POST { deny all; } try_files $uri @b; } }",
            &["site/a.txt"],
        );
        beside.check_as_it_is("A1", "/x", &[], Wanted::Same);
        for path in ["/x", "/two/x"] {
            let [theirs, ours] = ask(&beside, path, &["-X", "POST", "-d", "a"]);
            let is_let_in = ours.body.starts_with("origin") || ours.status < 400;
            assert!(theirs.status == 403 && !is_let_in, "{path} {theirs:?} {ours:?}\n{}", beside.toml);
        }
        let runs = "fastcgi_param SCRIPT_FILENAME $document_root/index.php; fastcgi_pass 127.0.0.1:1;";
        let beside = nginx_beside::start(
            "named-script-methods",
            &format!(
                "server {{ listen A1; root HERE/site; location / {{ try_files $uri @php; }}\n\
                 location @php {{ limit_except GET {{ deny all; }} {runs} }} }}"
            ),
            &["site/a.txt"],
        );
        let [theirs, ours] = ask(&beside, "/x", &["-X", "POST", "-d", "a"]);
        assert_eq!((theirs.status, ours.status), (403, 405), "{}", beside.toml);
        assert!(beside.said.contains("404 where there is no file"), "{}", beside.said);
    }

    /// `$1` is what the rule's own regex has found, whatever groups the location's has.
    #[test]
    fn groups_are_those_of_the_rule() {
        let beside = nginx_beside::start(
            "groups",
            "server { listen A1; absolute_redirect off;\n\
             location ~ ^/u/(\\d+)/ { rewrite ^/u/(\\d+)/(.*)$ /user/$2/of/$1 break; proxy_pass http://O-u; proxy_set_header Host $host; }\n\
             location ~ ^/(de|en)/ { rewrite ^/(\\w+)/(.*)$ /$2?lang=$1 break; proxy_pass http://O-l; proxy_set_header Host $host; }\n\
             location ~ ^/wy/(\\d+) { rewrite ^/wy/(\\d+)/(\\w+)$ /r/$2/$1 permanent; proxy_pass http://O-w; } }",
            &[],
        );
        for path in ["/u/5/abc", "/u/5/abc?z=1", "/de/a/b", "/de/a/b?c=d", "/wy/5/abc", "/wy/5/abc?q"] {
            beside.check_as_it_is("A1", path, &[], Wanted::Same);
        }
    }

    #[test]
    fn a_query_of_a_rule_stands_before_the_one_that_came() {
        let beside = nginx_beside::start(
            "queries",
            "server { listen A1; absolute_redirect off; location / { proxy_set_header Host $host; proxy_pass http://O-o; \
             rewrite ^/v2/([a-z]+)/(\\d+)$ /item?id=$2&k=$1 break; rewrite ^/alone/(.*)$ /none/$1? break;\n\
             rewrite ^/only/(.*)$ /some?a=$1? break; rewrite ^/kept/(.*)$ /k/$1 break; }\n\
             location /year/ { rewrite ^/year/(\\d+)$ /year?y=$1 permanent; proxy_pass http://O-y; } }",
            &[],
        );
        for path in ["/v2/shoe/12", "/alone/x", "/only/x", "/kept/x", "/year/2024"] {
            for query in ["", "?z=1"] {
                beside.check_as_it_is("A1", &format!("{path}{query}"), &[], Wanted::Same);
            }
        }
    }

    /// nginx hears no Cache-Control of a client's, and what it would have answered behind a script's name, or by a rule, is said to be closed.
    #[test]
    fn what_is_closed_or_unheard_is_said() {
        let imported = |locations: &str| {
            let server =
                format!("proxy_cache_path HERE/c keys_zone=z:1m; server {{ listen A1; root HERE/site; {locations} }}");
            let beside = nginx_beside::start("unheard", &server, &["site/a.txt", "site/index.php"]);
            (beside.said.clone(), beside.toml.clone())
        };
        let (_, toml) = imported("location / { proxy_pass http://O-a; proxy_cache z; }");
        assert!(toml.contains("honour_client_cache_control = false"), "{toml}");
        let (_, toml) = imported("location / { proxy_pass http://O-a; }");
        assert!(!toml.contains("honour_client_cache_control"), "{toml}");
        let runs = "fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; fastcgi_pass 127.0.0.1:1;";
        let (said, _) = imported(&format!("location ~ \\.php(/|$) {{ {runs} }}"));
        assert!(said.contains("closed behind the names of scripts (/index.php/x)"), "{said}");
        let (said, _) = imported("location / { rewrite ^/old/ /gone.php last; }");
        assert!(said.contains("closed in part: what a rule of it leads to"), "{said}");
        // An origin would hear the path that came.
        let (said, _) = imported("location / { rewrite ^/old/ /gone.php last; proxy_pass http://O-a; }");
        assert!(said.contains("closed in part: what a rule of it leads to"), "{said}");
    }
}
