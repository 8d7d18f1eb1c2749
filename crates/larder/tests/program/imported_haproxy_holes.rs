//! Where an import of HAProxy's configuration might open what HAProxy keeps closed: comparisons that are wider than they look, words with
//! backslashes, tests of one name in two places, fields that say who asks, and rules on who may keep an answer. Beside the real one.

#[cfg(test)]
mod tests {
    use std::process::Command;

    use crate::imported_beside::{Asked, Beside, Wanted};
    use crate::told_origin;

    const DEFAULTS: &str =
        "mode http\n  timeout connect 5s\n  timeout client 30s\n  timeout server 30s\n  timeout http-request 10s\n";
    const BEHIND: &str = "\n  default_backend app\nbackend app\n  server s O-app\n";

    fn beside(name: &str, text: &str) -> Beside {
        let (mut beside, text) = Beside::new(&format!("holes-{name}"), text);
        let conf = beside.file("haproxy.cfg", &text);
        let mut command = Command::new("/usr/sbin/haproxy");
        command.args(["-db", "-f"]).arg(&conf);
        beside.start(&conf, command);
        beside
    }

    fn with_rules(name: &str, rules: &str) -> Beside {
        beside(
            name,
            &format!("defaults\n  {DEFAULTS}frontend web\n  bind A1\n  {}{BEHIND}", rules.replace('\n', "\n  ")),
        )
    }

    #[test]
    fn what_haproxy_refuses_is_refused_however_it_is_compared() {
        let rows: [(&str, &str, &[&str]); 9] = [
            ("http-request deny if { hdr_dom(host) -i intern }", "/", &["-H", "Host: www.intern.example"]),
            ("http-request deny if { hdr_end(host) -i private.test }", "/", &["-H", "Host: myprivate.test"]),
            (r#"http-request deny if { path_reg "^/admin(/|\$)" }"#, "/admin", &[]),
            (r"http-request deny if { path_beg /hid\x64en }", "/hidden", &[]),
            ("http-request deny if { path,field(1,:) /part }", "/part:x", &[]),
            ("acl pub path_beg /public -i\nhttp-request deny unless pub", "/PUBLIC", &[]),
            (
                "tcp-request inspect-delay 1s\ntcp-request content set-src hdr(x-ip)\nhttp-request deny if { src 10.0.0.0/8 }",
                "/",
                &["-H", "X-Ip: 10.1.1.1"],
            ),
            ("acl a hdr(x-v) 1\nacl b hdr(x-v) 2\nhttp-request deny if a !b", "/", &["-H", "X-V: 1"]),
            ("http-request deny if { cook(session) -m found }", "/", &["-H", "Cookie: session=1"]),
        ];
        for (at, (rules, path, options)) in rows.iter().enumerate() {
            with_rules(&format!("rule-{at}"), rules).check_refused("A1", path, options);
        }
    }

    /// What random files have found, beside the real one.
    #[test]
    fn files_are_made_whatever_their_rules_ask() {
        let cookie = with_rules("cookie", "http-request deny if { path_beg /c } { hdr(cookie) s=1 }");
        cookie.check_refused("A1", "/c", &["-H", "Cookie: s=1"]);
        cookie.check("A1", "/x", &[], Wanted::Same);
        let twice =
            with_rules("twice", "http-request replace-path /a/(.*) /n/\\1 unless { hdr_beg(X-Role) -i a } !METH_POST");
        twice.check("A1", "/x", &[], Wanted::Same);
        twice.check("A1", "/a/x", &["-X", "POST"], Wanted::Same);
        let changed =
            with_rules("changed", "http-request set-path /n%[path] if { path_beg /c }\nredirect scheme https");
        changed.check_as_it_is("A1", "/c", &["-H", "Host: any.test"], Wanted::Closed);
        let disabled = beside(
            "disabled",
            &format!(
                "defaults\n  {DEFAULTS}frontend web\n  bind A1\n  use_backend old if {{ path_beg /old }}{BEHIND}\
                 backend old\n  disabled\n  http-request redirect location /new\n  server s O-old\n"
            ),
        );
        disabled.check_refused("A1", "/old/x", &[]);
        disabled.check("A1", "/x", &[], Wanted::Same);
    }

    #[test]
    fn tests_of_defaults_are_not_those_of_who_takes_them() {
        let text = format!(
            "defaults base\n  {DEFAULTS}defaults d from base\n  acl ok path_beg /pub\n  http-request deny if !ok\n\
             frontend web from d\n  bind A1\n  acl ok path_beg /other\n  http-request set-header X-T-Ok 1 if ok{}",
            BEHIND.replace("backend app\n  server", "backend app from base\n  server")
        );
        let beside = beside("defaults", &text);
        beside.check_refused("A1", "/other", &[]);
        beside.check("A1", "/pub", &[], Wanted::Same);
    }

    /// What cannot be said in a client's place is not said by the client either.
    #[test]
    fn no_client_says_what_a_rule_says() {
        let beside = with_rules(
            "fields",
            "option forwardfor header X-T-Address\noption originalto header X-T-To\nunique-id-format %[uuid()]\n\
             unique-id-header X-T-Id\nhttp-request add-header X-T-Subject %[ssl_c_s_dn]\nhttp-request del-header X-T-User\n\
             http-request set-header X-T-Copy %[req.hdr(X-T-User)]\nhttp-request set-header X-T-Role guest\n\
             http-request set-header X-T-Role2 %[req.hdr(X-T-Role)]",
        );
        let names = ["Address", "To", "Id", "Subject", "User", "Copy", "Role", "Role2"];
        let said: Vec<String> = names.iter().map(|name| format!("X-T-{name}: admin")).collect();
        let options = said.iter().flat_map(|line| ["-H", line.as_str()]).collect();
        let [_, ours] = beside.ask(&Asked { at: "A1", path: "/".to_owned(), options });
        assert!(ours.status == 200 && !ours.body.contains("admin"), "{ours:?}\n{}", beside.toml);
        assert!(ours.body.contains("x-t-address=127.0.0.1") && ours.body.contains("x-t-role=guest"), "{ours:?}");
    }

    #[test]
    fn what_is_taken_out_of_some_answers_is_taken_out_of_all() {
        let beside = with_rules(
            "answers",
            "http-response del-header X-R-Origin if !{ src 10.0.0.0/8 }\nhttp-response del-header X-Pow -m beg",
        );
        let [theirs, ours] = beside.ask(&Asked { at: "A1", path: "/".to_owned(), options: Vec::new() });
        assert!(theirs.status == 200 && theirs.fields.is_empty() && ours == theirs, "{theirs:?} {ours:?}");
        assert!(beside.toml.contains("X-Pow*"), "{}", beside.toml);
    }

    /// A page is one client's where the file says so, whatever the origin says; and where nobody says how long it lives.
    #[test]
    fn nothing_is_stored_that_haproxy_says_is_private_or_does_not_store() {
        for (name, rules, is_stored) in [
            ("said", "http-response set-header Cache-Control \"private, no-store\"", false),
            ("maybe", "http-response set-header Cache-Control \"max-age=5\" if { path_beg /a }", false),
            ("vary", "http-response set-header Vary X-Session", false),
            ("public", "http-response set-header Cache-Control max-age=5", true),
        ] {
            let beside = with_rules(name, rules);
            let toml = &beside.toml;
            assert_eq!(!toml.contains("cache = false"), is_stored, "{toml}");
            assert!(toml.contains("heuristic_percent = 0"), "{toml}");
        }
    }

    /// HAProxy stores nothing: what one server has told a GET is no answer to a HEAD that is led to another, and the other way round.
    #[test]
    fn a_head_meets_no_page_of_another_server() {
        let origin = |name: &'static str| {
            told_origin::origin(move |told| {
                told.answer(&format!("Cache-Control: max-age=60\r\nX-R-Origin: {name}"), name)
            })
        };
        let (reader, other) = (origin("reader"), origin("other"));
        for (at, rule) in ["if { method GET }", "unless { method HEAD }", "unless METH_HEAD"].iter().enumerate() {
            let text = format!(
                "defaults\n  {DEFAULTS}frontend web\n  bind A1\n  use_backend reader {rule}\n  default_backend other\n\
                 backend reader\n  server s {reader}\nbackend other\n  server s {other}\n"
            );
            let beside = beside(&format!("head-{at}"), &text);
            for options in [&[][..], &["-I"], &[], &["-I"]] {
                beside.check_as_it_is("A1", "/page", options, Wanted::Same);
            }
        }
    }

    #[test]
    fn whole_sites_are_told_by_how_their_host_begins() {
        let beside = with_rules(
            "hosts",
            "acl www hdr_beg(host) -i www.\nacl cdn hdr_reg(host) -i ^(img|cdn)\\.\nacl intern hdr_dom(host) -i intern\n\
             acl bot hdr_sub(user-agent) -i bot\nacl beta hdr(x-beta) -i yes\n\
             http-request deny if intern or bot\nhttp-request set-header X-T-Www 1 if www\n\
             http-request set-header X-T-Beta 1 if beta !www\nhttp-request deny if cdn { path_beg /admin }\n\
             http-request deny if { hdr(host) root.test. }\nhttp-request set-header X-T-Port 1 if { hdr(host) -i port.test:81 }",
        );
        assert!(beside.left().iter().all(|line| line.contains("X-T-Beta")), "{}", beside.said);
        for name in [
            "www.a.test",
            "WWW.a.test",
            "wWw.a.test",
            "xwww.a.test",
            "img.a.test",
            "Cdn.a.test",
            "cdnx.a.test",
            "intern.a.test",
            "a.INTERN",
            "a.intern.test:80",
            "interns.test",
            "root.test",
            "root.test.",
            "port.test:81",
            "PORT.test:81",
            "port.test:82",
        ] {
            for path in ["/", "/admin/x"] {
                for field in ["X-None: 1", "User-Agent: some BoT", "X-Beta: YES", "X-Beta: yEs", "X-Beta: no"] {
                    beside.check_as_it_is("A1", path, &["-H", &format!("Host: {name}"), "-H", field], Wanted::Same);
                }
            }
        }
        // Who is only shut out by a field makes no response another one.
        let stored = with_rules("shut", "http-request deny if { hdr_sub(user-agent) -i bot }");
        assert!(!stored.toml.contains("vary_by"), "{}", stored.toml);
    }

    #[test]
    fn pages_of_haproxys_own_and_statuses_of_redirects_are_the_same() {
        let beside = with_rules(
            "own",
            "monitor-uri /alive?deep\nhttp-request redirect scheme https code 301 if { path_beg /one }\n\
             http-request redirect scheme https if { path_beg /two }\nhttp-request redirect scheme https code 308 if { path_beg /three }",
        );
        for path in ["/one/x?y", "/two", "/three", "/x"] {
            let [theirs, ours] =
                beside.ask(&Asked { at: "A1", path: path.to_owned(), options: vec!["-H", "Host: any.test"] });
            assert_eq!((theirs.status, theirs.location), (ours.status, ours.location), "{path}");
        }
        beside.check_as_it_is("A1", "/alive?deep", &[], Wanted::Closed);
        beside.check_as_it_is("A1", "/alive?", &[], Wanted::Closed);
        assert!(beside.left().iter().any(|line| line.contains("monitor-uri")), "{}", beside.said);
    }

    /// A limit beside who it is for: nobody is let in more often than HAProxy lets, and the path is not closed.
    #[test]
    fn limits_hold_beside_who_is_let_in() {
        let beside = beside(
            "limits",
            &format!(
                "userlist people\n  user ann insecure-password open\ndefaults\n  {DEFAULTS}frontend web\n  bind A1\n  \
                 stick-table type ip size 100k expire 1m store http_req_rate(60s)\n  acl office src 127.0.0.2\n  \
                 acl often sc_http_req_rate(0) gt 3\n  http-request track-sc0 src\n  \
                 http-request deny deny_status 429 if {{ path_beg /a }} often !office\n  \
                 http-request auth if {{ path_beg /b }} !{{ http_auth(people) }}\n  \
                 http-request deny deny_status 429 if {{ path_beg /b }} often\n  \
                 http-request allow if {{ path_beg /c }} office\n  \
                 http-request deny deny_status 429 if {{ path_beg /c }} often{BEHIND}"
            ),
        );
        let statuses = |path: &str, options: &[&str]| -> Vec<[u16; 2]> {
            let asked = Asked { at: "A1", path: path.to_owned(), options: options.to_vec() };
            (0..5).map(|_| beside.ask(&asked).map(|outcome| outcome.status)).collect()
        };
        let (good, often) = ([200; 2], [429; 2]);
        let five = [good, good, good, often, often];
        assert_eq!(statuses("/a", &["--interface", "127.0.0.1"]), five, "{}", beside.toml);
        assert_eq!(statuses("/b", &["--interface", "127.0.0.3", "-u", "ann:open"]), five, "{}", beside.toml);
        assert_eq!(statuses("/c", &["--interface", "127.0.0.4"]), five, "{}", beside.toml);
        for path in ["/a", "/c"] {
            // Networks make no difference to a limit of larder's: the import has said so.
            let office = statuses(path, &["--interface", "127.0.0.2"]);
            assert_eq!(office, [good, good, good, [200, 429], [200, 429]], "{path}");
        }
        assert_eq!(statuses("/b", &["--interface", "127.0.0.5"])[..2], [[401; 2]; 2]);
        assert_eq!(beside.left().len(), 2, "{}", beside.said);
    }
}
