//! Where an import of HAProxy's configuration might open what HAProxy keeps closed: comparisons that are wider than they look, words with
//! backslashes, tests of one name in two places, fields that say who asks, and rules on who may keep an answer. Beside the real one.

#[cfg(test)]
mod tests {
    use std::process::Command;

    use crate::imported_beside::{Asked, Beside, Wanted};

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
}
