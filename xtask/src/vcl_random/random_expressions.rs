//! Random expressions of a wanted type, of what may be read where they stand. Nothing in them depends on the moment, on
//! numbers of transactions or on chance: two programs that are alike say the same.

use crate::dice::Dice;

/// Where a statement stands, as far as that decides what it may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Recv,
    Hash,
    Hit,
    Miss,
    Pass,
    Purge,
    Deliver,
    Synth,
    BackendFetch,
    BackendResponse,
    BackendError,
}

impl Scope {
    pub fn is_backend(self) -> bool {
        matches!(self, Scope::BackendFetch | Scope::BackendResponse | Scope::BackendError)
    }

    /// Heads whose fields may be read here.
    pub fn heads(self) -> &'static [&'static str] {
        match self {
            Scope::Hit => &["req", "req", "obj"],
            Scope::Deliver | Scope::Synth => &["req", "resp"],
            Scope::BackendFetch => &["bereq"],
            Scope::BackendResponse | Scope::BackendError => &["bereq", "beresp"],
            _ => &["req"],
        }
    }
}

/// Fields that requests, answers and programs of these runs have.
const FIELDS: [&str; 12] = [
    "X-A",
    "X-B",
    "X-C",
    "X-T",
    "Cookie",
    "Host",
    "X-N",
    "Content-Type",
    "Cache-Control",
    "Vary",
    "X-Two",
    "User-Agent",
];
const TEXTS: [&str; 14] = ["", "1", "a", "b", "abc", "Abc", "/a", "x=1; y=2", "12", "-3", "1.5", "10s", "a b", "a,b;c"];
pub const REGEXES: [&str; 14] = [
    "a",
    "^/a",
    "b$",
    "[0-9]+",
    "^$",
    ".",
    "(?i)ABC",
    "(a)(b)?",
    "x=([^;]*)",
    "\\?.*$",
    "^(.)(.*)$",
    "\\bb",
    "a|b|c",
    "^https?://",
];
const PUT: [&str; 8] = ["", "x", "\\1", "[\\0]", "\\2\\1", "a\\\\b", "&", "<\\1>"];
const NUMBERS: [&str; 8] = ["0", "1", "2", "3", "10", "404", "-1", "100000"];
const DURATIONS: [&str; 9] = ["0s", "1s", "10s", "100ms", "1.5s", "2m", "1h", "0.5d", "1w"];
const DATES: [&str; 4] =
    ["Thu, 01 Jan 2015 00:00:00 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "1420070400"];

pub fn pick<'a>(dice: &mut Dice, all: &[&'a str]) -> &'a str {
    all[dice.below(all.len() as u64) as usize]
}

pub struct Expressions<'a> {
    pub dice: &'a mut Dice,
    pub scope: Scope,
}

impl Expressions<'_> {
    fn pick<'b>(&mut self, all: &[&'b str]) -> &'b str {
        pick(self.dice, all)
    }

    fn quoted(&mut self, all: &[&str]) -> String {
        format!("\"{}\"", self.pick(all))
    }

    pub fn header(&mut self) -> String {
        let head = self.pick(self.scope.heads());
        format!("{head}.http.{}", self.pick(&FIELDS))
    }

    /// A STRING of one piece.
    pub fn text(&mut self, depth: u64) -> String {
        let kinds = if depth == 0 { 6 } else { 16 };
        match self.dice.below(kinds) {
            0 | 1 => self.quoted(&TEXTS),
            2 | 3 => self.header(),
            4 => self.own_text(),
            5 => format!("{{\"{}\"}}", self.pick(&["a \"b\"", "long", "\\n", "%41"])),
            6 | 7 => {
                let function = self.pick(&["regsub", "regsuball"]);
                let (subject, regex, put) = (self.text(depth - 1), self.quoted(&REGEXES), self.quoted(&PUT));
                format!("{function}({subject}, {regex}, {put})")
            }
            8 => format!("std.{}({})", self.pick(&["toupper", "tolower"]), self.text(depth - 1)),
            9 => format!("std.querysort({})", self.text(depth - 1)),
            10 => format!("std.strstr({}, {})", self.text(depth - 1), self.quoted(&["a", "b", "=", "?"])),
            11 => format!("\"{}\" + {}", self.pick(&["i", "n="]), self.number(depth - 1)),
            12 => format!("\"{}\" + {}", self.pick(&["d", ""]), self.duration(depth - 1)),
            13 => format!("\"{}\" + {}", self.pick(&["r", ""]), self.real(depth - 1)),
            14 => format!("\"{}\" + ({})", self.pick(&["b", ""]), self.truth(depth - 1)),
            _ => format!("\"{}\" + {}", self.pick(&["t", ""]), self.time(depth - 1)),
        }
    }

    /// A STRING, which may be several pieces.
    pub fn texts(&mut self, depth: u64) -> String {
        let first = self.text(depth);
        match self.dice.below(3) {
            0 => format!("{first} + {}", self.text(depth.saturating_sub(1))),
            _ => first,
        }
    }

    /// What only this place can say.
    fn own_text(&mut self) -> String {
        let all: &[&str] = match self.scope {
            Scope::BackendFetch => &["bereq.url", "bereq.method", "\"be\" + bereq.backend", "bereq.proto"],
            Scope::BackendResponse => {
                &["bereq.url", "beresp.reason", "\"be\" + beresp.backend", "beresp.proto", "beresp.backend.name"]
            }
            Scope::BackendError => &["bereq.url", "bereq.method", "beresp.reason", "\"be\" + beresp.backend"],
            Scope::Hit => &["req.url", "req.method", "obj.reason", "obj.proto"],
            Scope::Deliver | Scope::Synth => {
                &["req.url", "req.method", "resp.reason", "resp.proto", "\"ip\" + client.ip"]
            }
            _ => &[
                "req.url",
                "req.method",
                "\"ip\" + client.ip",
                "\"be\" + req.backend_hint",
                "client.identity",
                "req.proto",
            ],
        };
        self.pick(all).to_string()
    }

    pub fn number(&mut self, depth: u64) -> String {
        let kinds = if depth == 0 { 4 } else { 9 };
        match self.dice.below(kinds) {
            0 | 1 => self.pick(&NUMBERS).to_string(),
            2 | 3 => self.own_number(),
            4 => format!("{} + {}", self.number(depth - 1), self.own_number()),
            5 => format!("({} - {})", self.own_number(), self.pick(&["1", "2"])),
            6 => format!("std.integer({}, {})", self.text(depth - 1), self.pick(&["7", "-7"])),
            7 => format!("std.integer(real={})", self.real(depth - 1)),
            _ => format!("std.integer(duration={})", self.duration(depth - 1)),
        }
    }

    fn own_number(&mut self) -> String {
        let all: &[&str] = match self.scope {
            Scope::BackendFetch => &["bereq.retries"],
            Scope::BackendResponse | Scope::BackendError => &["bereq.retries", "beresp.status"],
            Scope::Hit => &["req.restarts", "obj.hits", "obj.status"],
            Scope::Deliver => &["req.restarts", "obj.hits", "resp.status"],
            Scope::Synth => &["req.restarts", "resp.status"],
            _ => &["req.restarts", "req.esi_level"],
        };
        self.pick(all).to_string()
    }

    pub fn real(&mut self, depth: u64) -> String {
        let kinds = if depth == 0 { 1 } else { 5 };
        match self.dice.below(kinds) {
            0 => self.pick(&["0.0", "1.5", "3.142", "1000000.0", "0.001"]).to_string(),
            1 => format!("std.real({}, {})", self.text(depth - 1), self.pick(&["2.5", "-0.5"])),
            2 => format!("std.real(integer={})", self.number(depth - 1)),
            3 => format!("({} {} {})", self.real(0), self.pick(&["+", "-"]), self.real(depth - 1)),
            _ => format!("std.round({})", self.real(depth - 1)),
        }
    }

    pub fn duration(&mut self, depth: u64) -> String {
        let kinds = if depth == 0 { 2 } else { 6 };
        match self.dice.below(kinds) {
            0 | 1 => self.pick(&DURATIONS).to_string(),
            2 => format!("std.duration({}, {})", self.text(depth - 1), self.pick(&DURATIONS)),
            3 => format!("{} + {}", self.pick(&DURATIONS), self.duration(depth - 1)),
            4 => format!("{} * {}", self.pick(&DURATIONS), self.pick(&["2", "0.5", "3.0"])),
            _ => format!("std.duration(real={})", self.real(depth - 1)),
        }
    }

    fn time(&mut self, depth: u64) -> String {
        let date = self.pick(&DATES);
        let time = match self.dice.below(2) {
            0 => format!("std.time(\"{date}\", std.time(integer=1420070400))"),
            _ => format!("std.time(integer={})", self.pick(&["1420070400", "0", "86399"])),
        };
        match self.dice.below(3) {
            0 => format!("({time} + {})", self.duration(depth.min(1))),
            _ => time,
        }
    }

    /// A BOOL.
    pub fn truth(&mut self, depth: u64) -> String {
        match self.dice.below(if depth == 0 { 4 } else { 12 }) {
            0 => self.header(),
            1 => format!(
                "{} {} {}",
                self.own_number(),
                self.pick(&["==", "!=", "<", ">", ">=", "<="]),
                self.pick(&NUMBERS)
            ),
            2 => format!("{} ~ {}", self.own_text_of_strings(), self.quoted(&REGEXES)),
            3 => self.own_truth(),
            4 => format!("{} {} {}", self.text(depth - 1), self.pick(&["==", "!="]), self.quoted(&TEXTS)),
            5 => format!("{} {} {}", self.text(depth - 1), self.pick(&["~", "!~"]), self.quoted(&REGEXES)),
            6 => format!("!{}", self.header()),
            7 => format!("({}) && ({})", self.truth(depth - 1), self.truth(depth - 1)),
            8 => format!("({}) || ({})", self.truth(depth - 1), self.truth(depth - 1)),
            9 => format!("{} {} {}", self.duration(depth - 1), self.pick(&["<", ">=", "=="]), self.pick(&DURATIONS)),
            10 => format!("{} {} {}", self.real(depth - 1), self.pick(&["<", ">="]), self.pick(&["1.5", "0.0"])),
            _ => format!("std.fnmatch({}, {})", self.quoted(&["/a*", "*b", "?", "/[ab]", "*"]), self.text(depth - 1)),
        }
    }

    fn own_text_of_strings(&mut self) -> String {
        let all: &[&str] =
            if self.scope.is_backend() { &["bereq.url", "bereq.method"] } else { &["req.url", "req.method"] };
        self.pick(all).to_string()
    }

    fn own_truth(&mut self) -> String {
        let all: &[&str] = match self.scope {
            Scope::BackendFetch => &["bereq.uncacheable", "bereq.is_bgfetch", "bereq.is_hitmiss", "bereq.is_hitpass"],
            Scope::BackendResponse => &["beresp.uncacheable", "beresp.was_304", "beresp.ttl > 5s", "beresp.grace < 1s"],
            Scope::BackendError => &["bereq.is_bgfetch", "bereq.uncacheable", "beresp.ttl > 0s"],
            Scope::Hit => &["obj.ttl > 0s", "obj.grace > 5s", "obj.keep > 1s", "obj.ttl + obj.grace > 0s"],
            Scope::Deliver => {
                &["obj.uncacheable", "req.is_hitmiss", "req.is_hitpass", "obj.ttl > 5s", "client.ip ~ near"]
            }
            Scope::Synth | Scope::Pass => &["req.is_hitmiss", "req.is_hitpass", "client.ip ~ near"],
            Scope::Miss => &["req.is_hitmiss", "client.ip ~ near"],
            _ => &["client.ip ~ near", "client.ip !~ near", "std.healthy(req.backend_hint)", "req.hash_always_miss"],
        };
        self.pick(all).to_string()
    }
}
