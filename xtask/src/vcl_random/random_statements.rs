//! Random statements of a subroutine: what it sets, whom it asks, and how it ends.

use super::random_expressions::{Expressions, REGEXES, Scope, pick};
use super::syntax_tree::Statement;
use crate::dice::Dice;

const DEPTH: u64 = 2;

/// Fields that programs write.
const WRITTEN: [&str; 6] = ["X-A", "X-B", "X-C", "X-T", "Cookie", "X-Two"];

impl Scope {
    fn written_head(self, dice: &mut Dice) -> &'static str {
        match self {
            Scope::Deliver | Scope::Synth => pick(dice, &["resp", "resp", "req"]),
            Scope::BackendFetch => "bereq",
            Scope::BackendResponse | Scope::BackendError => pick(dice, &["beresp", "beresp", "bereq"]),
            _ => "req",
        }
    }

    /// How it may end, what is usual more often. `call` and `vcl(…)` aside.
    fn returns(self) -> &'static [&'static str] {
        match self {
            Scope::Recv => &[
                "hash",
                "hash",
                "hash",
                "pass",
                "pass",
                "synth(404)",
                "synth(750, \"Moved\")",
                "purge",
                "restart",
                "fail",
            ],
            Scope::Hash => &["lookup", "lookup", "lookup", "fail"],
            Scope::Hit => &["deliver", "deliver", "pass", "restart", "synth(410)", "fail"],
            Scope::Miss => &["fetch", "fetch", "pass", "restart", "synth(411)", "fail"],
            Scope::Pass => &["fetch", "fetch", "restart", "synth(412)", "fail"],
            Scope::Purge => &["synth(200, \"Gone\")", "restart", "synth(204)", "fail"],
            Scope::Deliver => &["deliver", "deliver", "restart", "synth(420)", "fail"],
            Scope::Synth => &["deliver", "deliver", "restart", "fail"],
            Scope::BackendFetch => &["fetch", "fetch", "abandon", "fail", "error(503, \"Own\")"],
            Scope::BackendResponse => &["deliver", "deliver", "retry", "abandon", "pass(10s)", "fail", "error(501)"],
            Scope::BackendError => &["deliver", "deliver", "retry", "abandon", "fail"],
        }
    }

    fn loop_guard(self) -> &'static str {
        if self.is_backend() { "bereq.retries < 2" } else { "req.restarts < 2" }
    }
}

pub struct Statements<'a> {
    pub dice: &'a mut Dice,
    pub scope: Scope,
}

impl Statements<'_> {
    fn expressions(&mut self) -> Expressions<'_> {
        Expressions { dice: self.dice, scope: self.scope }
    }

    fn pick<'b>(&mut self, all: &[&'b str]) -> &'b str {
        pick(self.dice, all)
    }

    /// A whole body, which now and then ends by itself.
    pub fn body(&mut self, statements_max: u64) -> Vec<Statement> {
        let count = 1 + self.dice.below(statements_max);
        let mut body: Vec<Statement> = (0..count).map(|_| self.statement(2)).collect();
        if self.dice.below(4) == 0 {
            let usual = self.scope.returns()[0];
            body.push(Statement::Plain(format!("return ({usual});")));
        }
        body
    }

    fn statement(&mut self, depth: u64) -> Statement {
        match self.dice.below(10) {
            0..=2 if depth > 0 => self.condition(depth),
            3 => self.ending(),
            4 if matches!(self.scope, Scope::Hit | Scope::Miss) => self.purge(),
            4..=5 => Statement::Plain(self.own()),
            _ => Statement::Plain(self.field()),
        }
    }

    fn condition(&mut self, depth: u64) -> Statement {
        let condition = self.expressions().truth(DEPTH);
        let then = (0..1 + self.dice.below(2)).map(|_| self.statement(depth - 1)).collect();
        let otherwise = match self.dice.below(4) {
            0 => vec![self.statement(depth - 1)],
            1 => vec![self.condition_without_end()],
            _ => Vec::new(),
        };
        Statement::If { condition, then, otherwise }
    }

    fn condition_without_end(&mut self) -> Statement {
        let condition = self.expressions().truth(1);
        Statement::If { condition, then: vec![Statement::Plain(self.field())], otherwise: Vec::new() }
    }

    /// A return that few requests meet: else nothing would be stored, or found.
    fn ending(&mut self) -> Statement {
        let end = self.pick(self.scope.returns());
        let own = self.expressions().truth(1);
        let condition = match end {
            "restart" | "retry" if self.dice.below(8) > 0 => format!("{} && ({own})", self.scope.loop_guard()),
            _ => own,
        };
        let end = Statement::Plain(format!("return ({end});"));
        Statement::If { condition, then: vec![end], otherwise: Vec::new() }
    }

    fn field(&mut self) -> String {
        let head = self.scope.written_head(self.dice);
        let name = self.pick(&WRITTEN);
        match self.dice.below(8) {
            0 => format!("unset {head}.http.{name};"),
            1 => format!("set {head}.http.X-T = {head}.http.X-T + \"{}\";", self.pick(&["r", "s", "t"])),
            2 if !self.scope.is_backend() || head == "bereq" => {
                format!("std.collect({head}.http.{}, \"{}\");", self.pick(&WRITTEN), self.pick(&[", ", "; ", "+"]))
            }
            _ => format!("set {head}.http.{name} = {};", self.expressions().texts(DEPTH)),
        }
    }

    /// What this subroutine is for.
    fn own(&mut self) -> String {
        match self.scope {
            Scope::Recv => self.own_of_recv(),
            Scope::Hash => format!("hash_data({});", self.expressions().text(1)),
            Scope::Hit | Scope::Miss => match self.dice.below(5) {
                0 => self.ban(),
                _ => self.field(),
            },
            Scope::Pass | Scope::Purge => self.field(),
            Scope::Deliver => self.own_of_deliver(),
            Scope::Synth => match self.dice.below(5) {
                0 => format!("set resp.status = {};", self.pick(&["200", "404", "503", "1404"])),
                1 => format!("set resp.reason = {};", self.expressions().text(1)),
                2 => format!("set resp.body = {};", self.expressions().texts(1)),
                _ => format!("synthetic({});", self.expressions().texts(DEPTH)),
            },
            Scope::BackendFetch => self.own_of_fetch(),
            Scope::BackendResponse => self.own_of_response(),
            Scope::BackendError => match self.dice.below(6) {
                0 => format!("set beresp.status = {};", self.pick(&["200", "404", "502"])),
                1 => self.lifetime(),
                2 => format!("set beresp.reason = {};", self.expressions().text(1)),
                _ => format!("synthetic({});", self.expressions().texts(DEPTH)),
            },
        }
    }

    fn own_of_recv(&mut self) -> String {
        match self.dice.below(16) {
            0 => format!(
                "set req.url = regsub(req.url, \"{}\", \"{}\");",
                self.pick(&["\\?.*$", "(a|b)$", "&et=[^&]*"]),
                self.pick(&["", "b", "\\1x"])
            ),
            1 => "set req.url = std.querysort(req.url);".to_string(),
            2 => format!("set req.url = \"{}\" + req.url;", self.pick(&["/a", "/x"])),
            3 => format!("set req.method = \"{}\";", self.pick(&["GET", "GET", "HEAD", "POST"])),
            4 => format!(
                "set req.backend_hint = {};",
                self.pick(&["other", "dead", "unborn", "default", "ring.backend()", "first.backend()"])
            ),
            5 => format!("set req.grace = {};", self.pick(&["0s", "1s", "1h"])),
            6 => format!("set req.hash_always_miss = {};", self.pick(&["true", "false"])),
            7 => format!("set req.hash_ignore_vary = {};", self.pick(&["true", "false"])),
            8 => format!("std.cache_req_body({});", self.pick(&["1KB", "10KB"])),
            9 | 10 => "unset req.http.Cookie;".to_string(),
            11 => self.cookies(),
            12 => self.ban(),
            13 => "std.rollback(req);".to_string(),
            14 => format!("unset req.http.{};", self.pick(&["Range", "If-None-Match", "X-A", "Authorization"])),
            _ => format!("set client.identity = {};", self.expressions().text(1)),
        }
    }

    fn own_of_deliver(&mut self) -> String {
        match self.dice.below(7) {
            0 => format!("set resp.status = {};", self.pick(&["200", "404", "503", "299"])),
            1 => format!("set resp.reason = {};", self.expressions().text(1)),
            2 => format!(
                "unset resp.http.{};",
                self.pick(&["ETag", "Age", "X-Varnish", "Last-Modified", "Content-Type", "Vary", "Date"])
            ),
            3 => format!("set resp.http.{} = \"q\";", self.pick(&["ETag", "Vary", "Cache-Control"])),
            4 if self.dice.below(3) == 0 => "set resp.http.Connection = \"close\";".to_string(),
            4 => format!("set resp.http.X-Hits = {};", self.expressions().number(1)),
            _ => "set resp.http.X-Hits = obj.hits;".to_string(),
        }
    }

    fn own_of_fetch(&mut self) -> String {
        match self.dice.below(9) {
            0 => format!(
                "set bereq.url = regsub(bereq.url, \"{}\", \"{}\");",
                self.pick(&["ma=[0-9]+", "\\?.*$", "f=[a-z]+"]),
                self.pick(&["", "ma=100"])
            ),
            1 => format!("set bereq.method = \"{}\";", self.pick(&["GET", "GET", "HEAD", "POST"])),
            2 | 3 => format!(
                "set bereq.backend = {};",
                self.pick(&["other", "dead", "unborn", "ring.backend()", "first.backend()"])
            ),
            4 => format!(
                "unset bereq.http.{};",
                self.pick(&["If-None-Match", "X-A", "Range", "Cookie", "Accept-Encoding"])
            ),
            5 => format!(
                "set bereq.{} = 5s;",
                self.pick(&["first_byte_timeout", "between_bytes_timeout", "connect_timeout"])
            ),
            6 => "std.rollback(bereq);".to_string(),
            7 => "unset bereq.body;".to_string(),
            _ => format!("set bereq.http.{} = {};", self.pick(&["X-A", "Host", "Cookie"]), self.expressions().texts(1)),
        }
    }

    fn own_of_response(&mut self) -> String {
        match self.dice.below(11) {
            0..=3 => self.lifetime(),
            4 => "set beresp.uncacheable = true; set beresp.ttl = 100s;".to_string(),
            5 => "set beresp.do_stream = false;".to_string(),
            6 => format!(
                "unset beresp.http.{};",
                self.pick(&["Set-Cookie", "Vary", "ETag", "Cache-Control", "Last-Modified", "Age"])
            ),
            7 => format!("set beresp.http.Vary = \"{}\";", self.pick(&["X-A", "X-B", "X-A, X-B", "Cookie"])),
            8 => format!("set beresp.status = {};", self.pick(&["200", "404", "503", "203"])),
            9 => format!("set beresp.reason = {};", self.expressions().text(1)),
            _ => format!(
                "set beresp.http.{} = {};",
                self.pick(&["ETag", "Cache-Control", "X-A"]),
                self.expressions().texts(1)
            ),
        }
    }

    fn lifetime(&mut self) -> String {
        // What is uncacheable and has no ttl is argued in docs/vcl.md; an origin's max-age=0 is no such thing.
        let what = self.pick(&["ttl", "ttl", "grace", "keep"]);
        let least = if what == "ttl" { "0.3s" } else { "0s" };
        format!("set beresp.{what} = {};", self.pick(&[least, "0.3s", "10s", "100s", "1h"]))
    }

    /// As programs purge: for who asks for that, who gets nothing else.
    fn purge(&mut self) -> Statement {
        let purge = self.pick(&["purge.hard();", "purge.soft();", "purge.soft(0s, 10s);", "purge.soft(0.3s, 0s);"]);
        let then = [purge, "return (synth(200, \"Purged\"));"].map(|text| Statement::Plain(text.to_string())).to_vec();
        Statement::If { condition: "req.method == \"PURGE\"".to_string(), then, otherwise: Vec::new() }
    }

    fn ban(&mut self) -> String {
        let field = self.pick(&["req.http.X-A", "req.url", "obj.http.X-N", "obj.status", "obj.http.X-A"]);
        let value = match field {
            "obj.status" => self.pick(&["200", "404"]).to_string(),
            _ => self.pick(&["1", "2", "/a", "a"]).to_string(),
        };
        let operator = match field {
            "obj.status" => self.pick(&["==", "!="]),
            _ => self.pick(&["==", "!=", "~", "!~"]),
        };
        let test = format!("{field} {operator} {value}");
        match self.dice.below(3) {
            0 => format!("ban(\"{test}\");"),
            1 => format!("std.log(\"\" + std.ban(\"{test}\"));"),
            _ => format!("ban(\"{test} && obj.status != {}\");", self.pick(&["404", "200"])),
        }
    }

    fn cookies(&mut self) -> String {
        let what = match self.dice.below(6) {
            0 => "cookie.delete(\"x\");".to_string(),
            1 => "cookie.keep(\"y,z\");".to_string(),
            2 => "cookie.filter(\"x\");".to_string(),
            3 => format!("cookie.set(\"n\", {});", self.expressions().text(1)),
            4 => format!("cookie.filter_re(\"{}\");", pick(self.dice, &REGEXES)),
            _ => "cookie.clean();".to_string(),
        };
        format!("cookie.parse(req.http.Cookie); {what} set req.http.Cookie = cookie.get_string();")
    }
}
