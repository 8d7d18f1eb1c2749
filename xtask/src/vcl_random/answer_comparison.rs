//! In what two programs were not alike after one request: what was answered, and what reached the origin.
//!
//! Little is overlooked here, and only what a clock or a counter makes: dates that are two seconds apart, ages that are one
//! second apart, the numbers (not how many there are) in X-Varnish, and whether a body, whose bytes are compared, was sent
//! by length or in chunks, which in Varnish depends on how much of it had come. All else that may differ is argued.

use std::fmt;

use super::replayed_case::Request;
use crate::plain_exchange::Message;
use crate::scenario_origin::Asked;

/// What one request brought about.
pub struct Seen {
    pub answer: Result<Message, String>,
    pub asked: Vec<Asked>,
}

/// Where something differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Compiled,
    /// There is one answer only.
    Answered,
    Status,
    Reason,
    Field(String),
    Body,
    /// How many requests reached the origin.
    OriginCount,
    /// Method and URL of one.
    OriginLine,
    OriginField(String),
    OriginBody,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Compiled => write!(f, "compiled"),
            Place::Answered => write!(f, "answered"),
            Place::Status => write!(f, "status"),
            Place::Reason => write!(f, "reason"),
            Place::Field(name) => write!(f, "field {name}"),
            Place::Body => write!(f, "body"),
            Place::OriginCount => write!(f, "origin count"),
            Place::OriginLine => write!(f, "origin line"),
            Place::OriginField(name) => write!(f, "origin field {name}"),
            Place::OriginBody => write!(f, "origin body"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Which request, from 0 on.
    pub step: usize,
    pub place: Place,
    pub larder: String,
    pub varnish: String,
    /// What Varnish's origin was asked because of the request, as `GET /a, X-A: 1`; one after the other.
    pub asked: String,
    /// Of larder's answer, if there is one.
    pub status: String,
}

impl Difference {
    /// Whether it may have the same cause.
    pub fn is_like(&self, other: &Difference) -> bool {
        self.place == other.place
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN_MAX: usize = 300;
        let short = |text: &str| text.chars().take(SHOWN_MAX).collect::<String>();
        let Difference { step, place, larder, varnish, status, .. } = self;
        write!(f, "request {} ({status}): {place}: larder {:?}, Varnish {:?}", step + 1, short(larder), short(varnish))
    }
}

pub fn compare(step: usize, request: &Request, larder: &Seen, varnish: &Seen) -> Vec<Difference> {
    let mut found = Vec::new();
    let asked = varnish.asked.iter().map(short).collect::<Vec<_>>().join("; ");
    let status = larder.answer.as_ref().map_or("", Message::second_word);
    let mut add = |place: Place, larder: &str, varnish: &str| {
        if larder != varnish {
            let [larder, varnish, asked, status] = [larder, varnish, &asked, status].map(str::to_string);
            found.push(Difference { step, place, larder, varnish, asked, status });
        }
    };
    match (&larder.answer, &varnish.answer) {
        (Ok(one), Ok(other)) => compare_answers(request, one, other, &mut add),
        (Err(_), Err(_)) => {}
        (one, other) => {
            let said = |answer: &Result<Message, String>| match answer {
                Ok(answer) => answer.start.clone(),
                Err(why) => format!("nothing: {why}"),
            };
            add(Place::Answered, &said(one), &said(other));
        }
    }
    compare_origins(&larder.asked, &varnish.asked, &mut add);
    found
}

fn short(asked: &Asked) -> String {
    let fields = asked.fields.iter().map(|(name, value)| format!("{name}: {value}"));
    [asked.line.clone()].into_iter().chain(fields).collect::<Vec<_>>().join(", ")
}

fn compare_answers(request: &Request, larder: &Message, varnish: &Message, add: &mut impl FnMut(Place, &str, &str)) {
    add(Place::Status, larder.second_word(), varnish.second_word());
    let reason = |answer: &Message| answer.start.splitn(3, ' ').nth(2).unwrap_or_default().to_string();
    add(Place::Reason, &reason(larder), &reason(varnish));
    let text = |answer: &Message| String::from_utf8_lossy(&answer.body).into_owned();
    add(Place::Body, &text(larder), &text(varnish));
    let aside = |name: &str| request.method() != "HEAD" && matches!(name, "content-length" | "transfer-encoding");
    compare_fields(&larder.fields, &varnish.fields, |name, one, other| {
        if !aside(name) {
            add(Place::Field(name.to_string()), one, other);
        }
    });
}

fn compare_origins(larder: &[Asked], varnish: &[Asked], add: &mut impl FnMut(Place, &str, &str)) {
    let lines = |asked: &[Asked]| asked.iter().map(|asked| asked.line.clone()).collect::<Vec<_>>().join("; ");
    if larder.len() != varnish.len() {
        return add(Place::OriginCount, &lines(larder), &lines(varnish));
    }
    for (one, other) in larder.iter().zip(varnish) {
        add(Place::OriginLine, &one.line, &other.line);
        add(Place::OriginBody, &String::from_utf8_lossy(&one.body), &String::from_utf8_lossy(&other.body));
        compare_fields(&one.fields, &other.fields, |name, one, other| {
            add(Place::OriginField(name.to_string()), one, other);
        });
    }
}

/// Calls for each name whose lines are not the same on both sides.
fn compare_fields(
    larder: &[(String, String)],
    varnish: &[(String, String)],
    mut differs: impl FnMut(&str, &str, &str),
) {
    let mut names: Vec<String> = larder.iter().chain(varnish).map(|(name, _)| name.to_ascii_lowercase()).collect();
    names.sort();
    names.dedup();
    for name in names {
        let lines = |fields: &[(String, String)]| {
            let fields = fields.iter().filter(|(known, _)| known.eq_ignore_ascii_case(&name));
            fields.map(|(_, value)| value.clone()).collect::<Vec<_>>()
        };
        let (one, other) = (lines(larder), lines(varnish));
        if one.len() != other.len() || !one.iter().zip(&other).all(|(one, other)| is_same(&name, one, other)) {
            differs(&name, &one.join(" | "), &other.join(" | "));
        }
    }
}

fn is_same(name: &str, larder: &str, varnish: &str) -> bool {
    const DATES_APART_MAX: u64 = 2;
    const AGES_APART_MAX: u64 = 1;
    let numbers = |text: &str| text.split(' ').map(|word| word.parse::<u64>().ok()).collect::<Option<Vec<_>>>();
    match name {
        _ if larder == varnish => true,
        "x-varnish" => matches!((numbers(larder), numbers(varnish)), (Some(a), Some(b)) if a.len() == b.len()),
        "age" => {
            matches!((larder.parse::<u64>(), varnish.parse::<u64>()), (Ok(a), Ok(b)) if a.abs_diff(b) <= AGES_APART_MAX)
        }
        _ => matches!((seconds(larder), seconds(varnish)), (Some(a), Some(b)) if a.abs_diff(b) <= DATES_APART_MAX),
    }
}

/// Since the year 0, of `Thu, 01 Jan 2015 00:00:00 GMT`; months count as 31 days.
fn seconds(date: &str) -> Option<u64> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let words: Vec<&str> = date.split(' ').collect();
    let [_, day, month, year, time, "GMT"] = words[..] else { return None };
    let month = MONTHS.iter().position(|known| *known == month)? as u64;
    let days = (year.parse::<u64>().ok()? * 12 + month) * 31 + day.parse::<u64>().ok()?;
    let time: Option<Vec<u64>> = time.split(':').map(|part| part.parse().ok()).collect();
    let &[hours, minutes, seconds] = time.as_deref()? else { return None };
    Some(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plain_exchange::Unframed;

    fn request(line: &str) -> Request {
        super::super::replayed_case::Case::read(&format!("vcl = ''\n[[request]]\nline = '{line}'"))
            .expect("a case")
            .requests
            .remove(0)
    }

    fn seen(answer: &str, asked: &[&str]) -> Seen {
        let answer = Message::read(&mut answer.as_bytes(), Unframed::UntilEnd, true).expect("readable").expect("there");
        let asked = asked.iter().map(|line| Asked { line: line.to_string(), fields: Vec::new(), body: Vec::new() });
        Seen { answer: Ok(answer), asked: asked.collect() }
    }

    fn check(larder: &str, asked: &[&str], expect: &[&str]) {
        let varnish =
            seen("HTTP/1.1 200 OK\r\nA: 1\r\nAge: 5\r\nX-Varnish: 3 4\r\nContent-Length: 1\r\n\r\nb", &["GET /"]);
        let found = compare(0, &request("GET /"), &seen(larder, asked), &varnish);
        assert_eq!(found.iter().map(|found| found.place.to_string()).collect::<Vec<_>>(), expect, "{larder}");
    }

    #[test]
    fn whatever_differs_is_found() {
        const SAME: &str = "HTTP/1.1 200 OK\r\nA: 1\r\nAge: 4\r\nX-Varnish: 7 9\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nb\r\n0\r\n\r\n";
        check(SAME, &["GET /"], &[]);
        check(&SAME.replace("200 OK", "201 Ok"), &["GET /"], &["status", "reason"]);
        check(&SAME.replace("A: 1\r\n", ""), &["GET /"], &["field a"]);
        check(&SAME.replace("Age: 4", "Age: 3"), &["GET /"], &["field age"]);
        check(&SAME.replace("7 9", "7"), &["GET /"], &["field x-varnish"]);
        check(SAME, &["GET /", "GET /"], &["origin count"]);
        check(SAME, &["HEAD /"], &["origin line"]);
    }

    #[test]
    fn dates_may_be_a_little_apart() {
        assert!(is_same("date", "Thu, 01 Jan 2015 00:00:59 GMT", "Thu, 01 Jan 2015 00:01:01 GMT"));
        assert!(!is_same("date", "Thu, 01 Jan 2015 00:00:59 GMT", "Thu, 01 Jan 2015 00:01:02 GMT"));
        assert!(!is_same("x-a", "1", "2"));
    }
}
