//! Bans as an operator or a program writes them: conditions on a stored response, and on the request that asks for it.
//!
//! `FIELD OPERATOR VALUE [&& …]`, words parted by blanks; all conditions must be true. As in Varnish what is absent differs
//! from every text, and neither matches a pattern nor does not.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cache::{BanSubject, BanTest, Now, Purge};
use message::FieldsView;
use vcl::Pattern;

use crate::core::Shared;

/// Conditions of one ban.
const CONDITIONS_MAX: usize = 32;
const BAN_BYTES_MAX: usize = 8 << 10;

#[derive(Debug)]
pub(crate) struct ProgramBan {
    text: Box<str>,
    conditions: Vec<Condition>,
    /// What becomes of what it hits.
    how: Purge,
    /// Durations are what they were then.
    issued: Now,
    /// Responses of which a pattern could not say whether it means them: it gave up at its limit.
    unjudged: AtomicU64,
}

#[derive(Debug)]
struct Condition {
    field: Field,
    test: Test,
}

#[derive(Debug, PartialEq)]
enum Field {
    ReqUrl,
    ReqHeader(Box<[u8]>),
    /// Of the URL that the response was fetched for.
    ObjUrl(UrlPart),
    ObjHeader(Box<[u8]>),
    ObjStatus,
    ObjTtl,
    ObjAge,
    ObjGrace,
    ObjKeep,
    ObjLastHit,
}

/// What of a URL is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
enum UrlPart {
    /// Path and query, as req.url.
    Target,
    /// With the port, if it is none that goes without saying.
    Host,
    /// Both.
    Full,
}

#[derive(Debug)]
enum Test {
    Equal { text: Box<[u8]>, negated: bool },
    Match { pattern: Box<Pattern>, negated: bool },
    Seconds { operator: Comparison, than_s: f64 },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Comparison {
    Equal,
    NotEqual,
    More,
    MoreOrEqual,
    Less,
    LessOrEqual,
}

/// Adds a ban. The error is for people.
pub(crate) fn ban(shared: &Shared, expression: &[u8], now: Now) -> Result<(), String> {
    let ban = ProgramBan::parse(expression)?;
    shared.cache.ban(Arc::new(ban.issued_at(now)), now);
    Ok(())
}

impl ProgramBan {
    pub(crate) fn issued_at(self, issued: Now) -> ProgramBan {
        ProgramBan { issued, ..self }
    }

    /// The same, where it takes nothing out but shortens lives.
    pub(crate) fn purging(self, how: Purge) -> ProgramBan {
        ProgramBan { how, ..self }
    }

    /// Of how many responses a pattern could not say whether it means them.
    pub(crate) fn unjudged(&self) -> u64 {
        self.unjudged.load(Ordering::Relaxed)
    }

    pub(crate) fn issued(&self) -> Now {
        self.issued
    }

    pub(crate) fn parse(expression: &[u8]) -> Result<ProgramBan, String> {
        if expression.len() > BAN_BYTES_MAX {
            return Err(format!("a ban may have {BAN_BYTES_MAX} bytes"));
        }
        let text = std::str::from_utf8(expression).map_err(|_| "a ban must be text".to_owned())?;
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let conditions = conditions(&words)?;
        if conditions.len() > CONDITIONS_MAX {
            return Err(format!("a ban may have {CONDITIONS_MAX} conditions"));
        }
        Ok(ProgramBan {
            text: words.join(" ").into(),
            conditions,
            how: Purge::Hard,
            issued: Now::default(),
            unjudged: AtomicU64::new(0),
        })
    }
}

/// Field, operator and value, and `&&` between conditions. What is wrong is said in Varnish's words, which programs show to who asked
/// for the ban.
fn conditions(mut words: &[&str]) -> Result<Vec<Condition>, String> {
    let mut conditions = Vec::new();
    loop {
        let (read, rest) = match words {
            [] => return Err("No ban conditions found.".to_owned()),
            [_] => return Err("Expected comparison operator.".to_owned()),
            [_, _] => return Err("Expected second operand.".to_owned()),
            [field, operator, value, rest @ ..] => (condition(field, operator, value)?, rest),
        };
        conditions.push(read);
        words = match rest {
            [] => return Ok(conditions),
            ["&&", rest @ ..] => rest,
            [found, ..] => return Err(format!("Expected && between conditions, found \"{found}\"")),
        };
    }
}

fn condition(field: &str, operator: &str, value: &str) -> Result<Condition, String> {
    let field = field_of(field).ok_or_else(|| format!("Unknown or unsupported field \"{field}\""))?;
    let known = if field.is_duration() { "==, !=, >, >=, < or <=" } else { "==, !=, ~ or !~" };
    let no_operator = || format!("expected conditional ({known}) got \"{operator}\"");
    let test = if field.is_duration() {
        Test::Seconds { operator: comparison(operator).ok_or_else(no_operator)?, than_s: seconds(value)? }
    } else {
        let negated = operator.starts_with('!');
        match operator {
            "==" | "!=" => Test::Equal { text: value.as_bytes().into(), negated },
            "~" | "!~" => {
                let pattern = Pattern::checked(value.as_bytes())?;
                Test::Match { pattern: Box::new(pattern), negated }
            }
            _ => return Err(no_operator()),
        }
    };
    Ok(Condition { field, test })
}

fn field_of(word: &str) -> Option<Field> {
    let lower = word.to_ascii_lowercase();
    Some(match lower.as_str() {
        "req.url" => Field::ReqUrl,
        "obj.url" => Field::ObjUrl(UrlPart::Target),
        "obj.host" => Field::ObjUrl(UrlPart::Host),
        "obj.full_url" => Field::ObjUrl(UrlPart::Full),
        "obj.status" => Field::ObjStatus,
        "obj.ttl" => Field::ObjTtl,
        "obj.age" => Field::ObjAge,
        "obj.grace" => Field::ObjGrace,
        "obj.keep" => Field::ObjKeep,
        "obj.last_hit" => Field::ObjLastHit,
        name => match (name.strip_prefix("req.http."), name.strip_prefix("obj.http.")) {
            (Some(name), _) if !name.is_empty() => Field::ReqHeader(name.as_bytes().into()),
            (_, Some(name)) if !name.is_empty() => Field::ObjHeader(name.as_bytes().into()),
            _ => return None,
        },
    })
}

fn comparison(word: &str) -> Option<Comparison> {
    Some(match word {
        "==" => Comparison::Equal,
        "!=" => Comparison::NotEqual,
        ">" => Comparison::More,
        ">=" => Comparison::MoreOrEqual,
        "<" => Comparison::Less,
        "<=" => Comparison::LessOrEqual,
        _ => return None,
    })
}

/// A duration as VCL writes it.
fn seconds(word: &str) -> Result<f64, String> {
    let digits = word.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let (number, unit) = word.split_at(digits);
    let unit_s = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        "w" => 604_800.0,
        "y" => 31_536_000.0,
        _ => return Err(no_duration(word)),
    };
    number.parse::<f64>().map(|number| number * unit_s).map_err(|_| no_duration(word))
}

fn no_duration(word: &str) -> String {
    format!("expected duration <n.nn>[ms|s|m|h|d|w|y] got \"{word}\"")
}

impl Field {
    fn is_duration(&self) -> bool {
        matches!(self, Field::ObjTtl | Field::ObjAge | Field::ObjGrace | Field::ObjKeep | Field::ObjLastHit)
    }

    fn is_of_request(&self) -> bool {
        matches!(self, Field::ReqUrl | Field::ReqHeader(_))
    }
}

impl Condition {
    fn holds(&self, object: &BanSubject<'_>, issued: Now, unjudged: &AtomicU64) -> bool {
        let request = object.request;
        let first = |fields: FieldsView<'_>, name: &[u8]| fields.get_all_named(name).next().map(<[u8]>::to_vec);
        let text = match &self.field {
            Field::ReqUrl => request.map(|request| {
                let mut url = Vec::new();
                request.write_target(&mut url);
                url
            }),
            Field::ReqHeader(name) => request.and_then(|request| first(request.fields, name)),
            Field::ObjHeader(name) => first(object.head.fields, name),
            // Of what nobody knows where it comes from it cannot be said that it is not meant.
            Field::ObjUrl(part) => match object.url() {
                Some(url) => Some(part.of(&url).into_owned()),
                None => return true,
            },
            Field::ObjStatus => Some(object.head.status.0.to_string().into_bytes()),
            _ => None,
        };
        match &self.test {
            Test::Equal { text: expected, negated } => text.is_some_and(|text| *text == **expected) != *negated,
            // A pattern past its limits matches nothing, in either sense.
            Test::Match { pattern, negated } => match text {
                None => false,
                Some(text) => match pattern.is_match(&text) {
                    Ok(matches) => matches != *negated,
                    Err(_) => {
                        unjudged.fetch_add(1, Ordering::Relaxed);
                        false
                    }
                },
            },
            Test::Seconds { operator, than_s } => operator.holds(self.seconds_of(object, issued), *than_s),
        }
    }

    fn seconds_of(&self, object: &BanSubject<'_>, issued: Now) -> f64 {
        let lifetimes = object.lifetimes(issued);
        let ms = match self.field {
            Field::ObjTtl => lifetimes.ttl_ms as f64,
            Field::ObjAge => lifetimes.age_ms as f64,
            Field::ObjGrace => lifetimes.grace_ms as f64,
            Field::ObjKeep => lifetimes.keep_ms as f64,
            _ => object.last_hit_ms.map_or(lifetimes.age_ms, |at_ms| issued.mono_ms.saturating_sub(at_ms)) as f64,
        };
        ms / 1_000.0
    }
}

impl UrlPart {
    /// Of `scheme://host/path?query`.
    fn of(self, url: &[u8]) -> Cow<'_, [u8]> {
        let after_scheme = url.windows(3).position(|three| three == b"://").map_or(0, |at| at + 3);
        let rest = &url[after_scheme..];
        let slash = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
        match self {
            UrlPart::Target => Cow::Borrowed(&rest[slash..]),
            UrlPart::Host => Cow::Borrowed(without_usual_port(&rest[..slash])),
            UrlPart::Full => match without_usual_port(&rest[..slash]) {
                host if host.len() == slash => Cow::Borrowed(rest),
                host => Cow::Owned([host, &rest[slash..]].concat()),
            },
        }
    }
}

/// Ports that go without saying, whatever the scheme: a host is purged by either.
pub(crate) const USUAL_PORTS: [u16; 2] = [80, 443];

/// A host, which is in the form that requests have in the end.
fn without_usual_port(host: &[u8]) -> &[u8] {
    let is_usual = |port: &[u8]| USUAL_PORTS.iter().any(|usual| usual.to_string().as_bytes() == port);
    match host.iter().rposition(|byte| *byte == b':') {
        Some(colon) if is_usual(&host[colon + 1..]) => &host[..colon],
        _ => host,
    }
}

impl Comparison {
    fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Comparison::Equal => left == right,
            Comparison::NotEqual => left != right,
            Comparison::More => left > right,
            Comparison::MoreOrEqual => left >= right,
            Comparison::Less => left < right,
            Comparison::LessOrEqual => left <= right,
        }
    }
}

impl BanTest for ProgramBan {
    fn text(&self) -> &str {
        &self.text
    }

    fn needs_request(&self) -> bool {
        self.conditions.iter().any(|condition| condition.field.is_of_request())
    }

    fn purges(&self) -> Purge {
        self.how
    }

    fn is_timeless(&self) -> bool {
        !self.conditions.iter().any(|condition| condition.field.is_duration())
    }

    fn bans(&self, subject: &BanSubject<'_>) -> bool {
        self.conditions.iter().all(|condition| condition.holds(subject, self.issued, &self.unjudged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_refused(text: &str, part: &str) {
        let error = ProgramBan::parse(text.as_bytes()).map(|_| ()).unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }

    #[test]
    fn what_is_no_ban_is_refused_with_a_reason() {
        check_refused("", "No ban conditions found.");
        check_refused("req.url ~ /a &&", "No ban conditions found.");
        check_refused("req.url", "Expected comparison operator.");
        check_refused("req.url ~", "Expected second operand.");
        check_refused("req.url ~ /a b", "Expected && between conditions, found \"b\"");
        check_refused("req.uri ~ /a", "Unknown or unsupported field \"req.uri\"");
        check_refused("req.url > 3", "expected conditional (==, !=, ~ or !~) got \">\"");
        check_refused("obj.age ~ 3s", "expected conditional (==, !=, >, >=, < or <=) got \"~\"");
        check_refused("obj.age > 3", "expected duration <n.nn>[ms|s|m|h|d|w|y] got \"3\"");
        check_refused("req.url ~ (", "");
    }

    #[test]
    fn a_url_has_parts() {
        let parts =
            |url: &'static str| [UrlPart::Host, UrlPart::Target, UrlPart::Full].map(|part| part.of(url.as_bytes()));
        assert_eq!(parts("https://a.test:8443/x?y://z/"), [&b"a.test:8443"[..], b"/x?y://z/", b"a.test:8443/x?y://z/"]);
        for url in ["http://a.test:443/x", "https://a.test:80/x", "http://a.test/x"] {
            assert_eq!(parts(url), [&b"a.test"[..], b"/x", b"a.test/x"], "{url}");
        }
        assert_eq!(parts("http://[::80]:8/x")[..2], [&b"[::80]:8"[..], b"/x"]);
        assert_eq!(parts("http://[::80]/x")[0], &b"[::80]"[..]);
        assert_eq!(parts("http://a.test"), [&b"a.test"[..], b"", b"a.test"]);
    }

    #[test]
    fn a_ban_that_looks_at_the_request_says_so() {
        let needs = |text: &str| ProgramBan::parse(text.as_bytes()).unwrap().needs_request();
        assert!(needs("req.url ~ ^/a && obj.status == 200") && needs("req.http.Host == a"));
        assert!(!needs("obj.url ~ ^/a && obj.host == b && obj.full_url ~ c"));
        assert!(!needs("obj.http.x-tags ~ (,|^)7(,|$) && obj.age > 1.5h"));
    }
}
