//! Imported servers of nginx's that listen at several ports, beside the real nginx: routes of larder know no listeners.

#[cfg(test)]
mod tests {
    use crate::imported_beside::{Asked, Wanted};
    use crate::nginx_beside;

    fn server(listens: &str, name: &str, origin: &str) -> String {
        format!("server {{ {listens} server_name {name}; location / {{ proxy_pass http://O-{origin}; }} }}\n")
    }

    /// What listens at a port of its own takes no name from what listens at the first one.
    #[test]
    fn a_name_at_two_ports_is_answered_at_the_first() {
        let servers = [
            server("listen A1;", "a.test", "one"),
            server("listen A2;", "a.test", "two"),
            server("listen A2;", "b.test", "three"),
            server("listen A1;", "c.test", "four"),
            server("listen A2 default_server;", "c.test", "five"),
        ];
        let beside = nginx_beside::start("ports", &servers.concat(), &[]);
        for name in ["a.test", "b.test", "c.test", "d.test"] {
            beside.check("A1", "/x", &["-H", &format!("Host: {name}")], Wanted::Same);
        }
        let [theirs, ours] = beside.ask(&Asked { at: "A2", path: "/".to_owned(), options: Vec::new() });
        assert!(theirs.status == 200 && ours.status == 0, "{theirs:?} {ours:?}");
        assert_eq!(beside.left().len(), 3, "{}", beside.said);
    }

    /// nginx takes the first server of a name, also where that one is for all other names, too.
    #[test]
    fn of_two_servers_of_a_name_the_first_is_asked() {
        let guarded = "server { listen A1; server_name a.test; location / { proxy_pass http://O-one; } location /in/ { deny all; } }";
        let open = server("listen A1;", "a.test", "two");
        let of_all = guarded.replace("listen A1;", "listen A1 default_server;");
        for (name, servers) in [
            ("first", [guarded.to_owned(), open.clone(), server("listen A1;", "b.test", "three")]),
            ("second", [server("listen A1;", "b.test", "three"), guarded.to_owned(), open.clone()]),
            ("for-all", [server("listen A1;", "b.test", "three"), of_all, open]),
        ] {
            let beside = nginx_beside::start(&format!("doubled-{name}"), &servers.concat(), &[]);
            for host in ["a.test", "b.test"] {
                beside.check("A1", "/x", &["-H", &format!("Host: {host}")], Wanted::Same);
            }
            beside.check_refused("A1", "/in/x", &["-H", "Host: a.test"]);
        }
    }

    /// One that listens at both would be asked at the first by nginx, for its own names alone.
    #[test]
    fn a_server_at_both_ports_closes_its_own_names_alone() {
        let servers = [
            server("listen A1;", "a.test", "one"),
            server("listen A1; listen A2;", "b.test", "two"),
            server("listen A2;", "a.test", "three"),
        ];
        let beside = nginx_beside::start("both-ports", &servers.concat(), &[]);
        for (name, wanted) in [("a.test", Wanted::Same), ("b.test", Wanted::Closed), ("d.test", Wanted::Same)] {
            beside.check("A1", "/x", &["-H", &format!("Host: {name}")], wanted);
        }
    }
}
