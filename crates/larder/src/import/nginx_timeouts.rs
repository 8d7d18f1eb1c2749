//! How long nginx waits for what it asks (`proxy_read_timeout`, `fastcgi_connect_timeout`) as `timeouts` of a `[[route]]`.

use std::collections::BTreeMap;

use crate::import::import_findings::Findings;
use crate::import::nginx_conf::Directive;
use crate::import::nginx_times::seconds;

/// Whom a location asks, and so by which prefix its lines begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AskedBy {
    Proxy,
    FastCgi,
}

/// What a level says; levels inside it inherit each line by itself.
#[derive(Clone, Debug, Default)]
pub struct TimeoutLevel {
    connect: BTreeMap<AskedBy, u64>,
    /// Between two reads, the first among them.
    read: BTreeMap<AskedBy, u64>,
}

impl TimeoutLevel {
    pub fn within(mut self, outer: &TimeoutLevel) -> TimeoutLevel {
        for (own, others) in [(&mut self.connect, &outer.connect), (&mut self.read, &outer.read)] {
            for (by, seconds) in others {
                own.entry(*by).or_insert(*seconds);
            }
        }
        self
    }

    /// Takes a directive in. False: it is another one.
    pub fn take(&mut self, directive: &Directive, findings: &mut Findings) -> bool {
        let (by, own) = match directive.name.as_str() {
            "proxy_connect_timeout" => (AskedBy::Proxy, &mut self.connect),
            "proxy_read_timeout" => (AskedBy::Proxy, &mut self.read),
            "fastcgi_connect_timeout" => (AskedBy::FastCgi, &mut self.connect),
            "fastcgi_read_timeout" => (AskedBy::FastCgi, &mut self.read),
            _ => return false,
        };
        match seconds(directive.argument(0)).filter(|seconds| *seconds > 0) {
            Some(seconds) => drop(own.insert(by, seconds)),
            None => findings.leave(directive, "a time must be a plain number with a unit"),
        }
        true
    }

    /// The line of a route.
    pub fn line(&self, by: AskedBy) -> Option<String> {
        let connect = self.connect.get(&by).map(|seconds| format!("connect = \"{seconds}s\""));
        let read =
            self.read.get(&by).map(|seconds| format!("first_byte = \"{seconds}s\", between_bytes = \"{seconds}s\""));
        let all: Vec<String> = connect.into_iter().chain(read).collect();
        (!all.is_empty()).then(|| format!("timeouts = {{ {} }}", all.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    #[test]
    fn each_line_is_inherited_by_itself() {
        let level = |lines: &[&str]| {
            let (mut level, mut findings) = (TimeoutLevel::default(), Findings::default());
            lines.iter().for_each(|line| assert!(level.take(&directive(line), &mut findings), "{line}"));
            (level, findings.left_count())
        };
        let (outer, _) = level(&["proxy_read_timeout 300s", "proxy_connect_timeout 5", "fastcgi_read_timeout 2m"]);
        let (inner, left) = level(&["proxy_read_timeout 1h", "proxy_connect_timeout 60ms"]);
        assert_eq!(left, 1, "larder's times of routes are whole seconds there");
        let inner = inner.within(&outer);
        let line = "timeouts = { connect = \"5s\", first_byte = \"3600s\", between_bytes = \"3600s\" }";
        assert_eq!(inner.line(AskedBy::Proxy).as_deref(), Some(line));
        let line = "timeouts = { first_byte = \"120s\", between_bytes = \"120s\" }";
        assert_eq!(inner.line(AskedBy::FastCgi).as_deref(), Some(line));
        assert_eq!(TimeoutLevel::default().line(AskedBy::Proxy), None);
    }
}
