//! The built-in subroutines: on which side they run, and what they may return.
//!
//! One table for all versions from 4.0 to 9.0. What a version dropped is accepted where it meant something, with a
//! warning that shows the present spelling.

/// A built-in subroutine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Method {
    Recv,
    Pipe,
    Pass,
    Hash,
    Purge,
    Miss,
    Hit,
    Deliver,
    Synth,
    BackendFetch,
    BackendRefresh,
    BackendResponse,
    BackendError,
    Init,
    Fini,
}

/// What a subroutine returns with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    Abandon,
    Beresp,
    Deliver,
    Error,
    Fail,
    Fetch,
    Hash,
    Lookup,
    Merge,
    /// Of vcl_hit up to 6.1, and as `fetch` in 4.0: a fetch that the client waits for.
    Miss,
    ObjStale,
    Ok,
    Pass,
    Pipe,
    Purge,
    Restart,
    Retry,
    Synth,
    Vcl,
}

/// How many there are.
pub const METHODS_COUNT: usize = 15;

const TABLE: [(Method, &str, &[Action]); METHODS_COUNT] = {
    use Action::*;
    [
        (Method::Recv, "vcl_recv", &[Fail, Synth, Restart, Pass, Pipe, Hash, Purge, Vcl]),
        (Method::Pipe, "vcl_pipe", &[Fail, Synth, Pipe]),
        (Method::Pass, "vcl_pass", &[Fail, Synth, Restart, Fetch]),
        (Method::Hash, "vcl_hash", &[Fail, Lookup]),
        (Method::Purge, "vcl_purge", &[Fail, Synth, Restart]),
        (Method::Miss, "vcl_miss", &[Fail, Synth, Restart, Pass, Fetch]),
        (Method::Hit, "vcl_hit", &[Fail, Synth, Restart, Pass, Deliver]),
        (Method::Deliver, "vcl_deliver", &[Fail, Synth, Restart, Deliver]),
        (Method::Synth, "vcl_synth", &[Fail, Restart, Deliver]),
        (Method::BackendFetch, "vcl_backend_fetch", &[Fail, Abandon, Fetch, Error]),
        (Method::BackendRefresh, "vcl_backend_refresh", &[Fail, Abandon, Retry, Error, Merge, ObjStale, Beresp]),
        (Method::BackendResponse, "vcl_backend_response", &[Fail, Abandon, Deliver, Retry, Pass, Error]),
        (Method::BackendError, "vcl_backend_error", &[Fail, Abandon, Deliver, Retry]),
        (Method::Init, "vcl_init", &[Ok, Fail]),
        (Method::Fini, "vcl_fini", &[Ok]),
    ]
};

const ACTIONS: [(Action, &str); 19] = [
    (Action::Abandon, "abandon"),
    (Action::Beresp, "beresp"),
    (Action::Deliver, "deliver"),
    (Action::Error, "error"),
    (Action::Fail, "fail"),
    (Action::Fetch, "fetch"),
    (Action::Hash, "hash"),
    (Action::Lookup, "lookup"),
    (Action::Merge, "merge"),
    (Action::Miss, "miss"),
    (Action::ObjStale, "obj_stale"),
    (Action::Ok, "ok"),
    (Action::Pass, "pass"),
    (Action::Pipe, "pipe"),
    (Action::Purge, "purge"),
    (Action::Restart, "restart"),
    (Action::Retry, "retry"),
    (Action::Synth, "synth"),
    (Action::Vcl, "vcl"),
];

impl Method {
    pub fn all() -> impl Iterator<Item = Method> {
        TABLE.iter().map(|(method, ..)| *method)
    }

    fn row(self) -> &'static (Method, &'static str, &'static [Action]) {
        &TABLE[self as usize]
    }

    pub fn name(self) -> &'static str {
        self.row().1
    }

    pub fn by_name(name: &str) -> Option<Method> {
        TABLE.iter().find(|(_, known, _)| known.eq_ignore_ascii_case(name)).map(|(method, ..)| *method)
    }

    /// What it may return, in the present spelling.
    pub fn actions(self) -> &'static [Action] {
        self.row().2
    }

    pub fn set(self) -> MethodSet {
        MethodSet(1 << self as u16)
    }
}

impl Action {
    pub fn name(self) -> &'static str {
        ACTIONS.iter().find(|(action, _)| *action == self).map_or("", |(_, name)| name)
    }

    /// Case counts: `return (HASH)` is an error.
    pub fn by_name(name: &str) -> Option<Action> {
        ACTIONS.iter().find(|(_, known)| *known == name).map(|(action, _)| *action)
    }

    pub fn names() -> impl Iterator<Item = &'static str> {
        ACTIONS.iter().map(|(_, name)| *name)
    }
}

/// An action of an older version: what it means now, and what to write.
pub fn renamed(method: Method, action: Action) -> Option<(Action, &'static str)> {
    match (method, action) {
        (Method::Hit, Action::Miss | Action::Fetch) => Some((
            Action::Miss,
            "write `return (restart)` with `set req.hash_always_miss = true;` before it, or `return (deliver)`",
        )),
        _ => None,
    }
}

/// A set of built-in subroutines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MethodSet(u16);

impl MethodSet {
    pub const NONE: MethodSet = MethodSet(0);
    pub const CLIENT: MethodSet = MethodSet(0x1ff);
    pub const BACKEND: MethodSet = MethodSet(0x1e00);
    pub const HOUSEKEEPING: MethodSet = MethodSet(0x6000);
    pub const ALL: MethodSet = MethodSet(0x7fff);

    /// By words: `client`, `backend`, `housekeeping`, `all`, `b-resp`, or the names of subroutines without `vcl_`.
    pub fn by_words(words: &str) -> MethodSet {
        let one = |word: &str| match word {
            "client" => MethodSet::CLIENT,
            "backend" => MethodSet::BACKEND,
            "housekeeping" => MethodSet::HOUSEKEEPING,
            "all" => MethodSet::ALL,
            "b-resp" => MethodSet(MethodSet::BACKEND.0 & !Method::BackendFetch.set().0),
            _ => Method::by_name(&format!("vcl_{word}")).map_or(MethodSet::NONE, Method::set),
        };
        let words = words.split([',', ' ']).filter(|word| !word.is_empty());
        words.map(one).fold(MethodSet::NONE, MethodSet::union)
    }

    pub fn has(self, method: Method) -> bool {
        self.0 & method.set().0 != 0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn union(self, other: MethodSet) -> MethodSet {
        MethodSet(self.0 | other.0)
    }

    pub fn intersection(self, other: MethodSet) -> MethodSet {
        MethodSet(self.0 & other.0)
    }

    pub fn methods(self) -> impl Iterator<Item = Method> {
        Method::all().filter(move |method| self.has(*method))
    }

    /// For people: whole sides by name, else the subroutines.
    pub fn show(self) -> String {
        let mut parts = Vec::new();
        let mut rest = self.0;
        for (set, name) in [
            (MethodSet::CLIENT, "the client subroutines"),
            (MethodSet::BACKEND, "the backend subroutines"),
            (MethodSet::HOUSEKEEPING, "vcl_init and vcl_fini"),
        ] {
            if rest & set.0 == set.0 {
                rest &= !set.0;
                parts.push(name.to_owned());
            }
        }
        parts.extend(MethodSet(rest).methods().map(|method| method.name().to_owned()));
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_in_the_order_of_the_enums() {
        for (index, method) in Method::all().enumerate() {
            assert_eq!(method as usize, index);
            assert_eq!(Method::by_name(method.name()), Some(method));
            for action in method.actions() {
                assert_eq!(Action::by_name(action.name()), Some(*action));
            }
        }
    }

    #[test]
    fn sets_are_made_of_words() {
        let check = |words: &str, expect: &str| assert_eq!(MethodSet::by_words(words).show(), expect, "{words}");
        check("all", "the client subroutines, the backend subroutines, vcl_init and vcl_fini");
        check("pipe, backend", "the backend subroutines, vcl_pipe");
        check("b-resp", "vcl_backend_refresh, vcl_backend_response, vcl_backend_error");
        check("hit deliver", "vcl_hit, vcl_deliver");
        check("", "");
    }
}
