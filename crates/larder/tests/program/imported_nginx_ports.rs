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
