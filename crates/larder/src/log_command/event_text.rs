//! An exchange as a line for people, and as one of the access log.

use crate::log_command::recorded_event::RecordedEvent;
use crate::log_command::shown_safely::shown_safely;
use crate::quantities::{show_micros, show_size};

/// How lines for people are written.
pub struct TextForm {
    pub colours: bool,
}

/// SGR numbers of ECMA-48.
const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const CYAN: &str = "36";
const DIM: &str = "2";

impl TextForm {
    /// `13:55:36.007 200 hit 17 µs 6 KiB GET t.test/a?b=1 192.0.2.7`, and behind it what an origin had to do with it.
    pub fn line(&self, event: &RecordedEvent) -> String {
        let time = event.text("time").filter(|time| is_time(time)).and_then(|time| time.get(11..23));
        let time = time.unwrap_or("--:--:--.---");
        let status = event.number("status").unwrap_or(0);
        let class = event.text("class").unwrap_or("-");
        let mut line = format!(
            "{} {} {} {:>8} {:>8}  {} {}  {}",
            self.painted(DIM, time),
            self.painted(colour_of_status(status), &format!("{status:03}")),
            self.painted(colour_of_class(class), &format!("{:<11}", shown_safely(class))),
            show_micros(event.number("time.whole").unwrap_or(0)),
            show_size(event.number("bytes").unwrap_or(0)),
            shown_safely(event.text("method").unwrap_or("-")),
            shown_safely(event.text("url").unwrap_or("-")),
            self.painted(DIM, &shown_safely(event.text("client").unwrap_or("-"))),
        );
        if let Some(origin) = origin(event) {
            line.push_str("  ");
            line.push_str(&self.painted(CYAN, &origin));
        }
        if let Some(why) = event.text("why") {
            line.push_str("  ");
            line.push_str(&self.painted(YELLOW, &shown_safely(why)));
        }
        if let Some(id) = event.text("id") {
            line.push_str(&format!("  id={}", shown_safely(id)));
        }
        if let Some(detail) = event.text("error.detail") {
            line.push_str("  ");
            line.push_str(&self.painted(RED, &shown_safely(detail)));
        }
        line.push('\n');
        line
    }

    fn painted(&self, colour: &str, text: &str) -> String {
        match self.colours {
            true => format!("\u{1b}[{colour}m{text}\u{1b}[0m"),
            false => text.to_owned(),
        }
    }
}

/// `<- app 10.0.0.2:80 503 1.20 ms (2 tries)`
fn origin(event: &RecordedEvent) -> Option<String> {
    let mut text = format!("<- {}", shown_safely(event.text("origin")?));
    if let Some(address) = event.text("origin.address") {
        text.push(' ');
        text.push_str(&shown_safely(address));
    }
    match (event.number("origin.status"), event.text("origin.error")) {
        (Some(status), _) => text.push_str(&format!(" {status}")),
        (None, Some(error)) => text.push_str(&format!(" {}", shown_safely(error))),
        (None, None) => {}
    }
    if let Some(micros) = event.number("time.origin") {
        text.push_str(&format!(" {}", show_micros(micros)));
    }
    match event.number("origin.tries") {
        Some(tries) if tries > 1 => text.push_str(&format!(" ({tries} tries)")),
        _ => {}
    }
    Some(text)
}

fn colour_of_status(status: u64) -> &'static str {
    match status {
        0 | 500.. => RED,
        400..500 => YELLOW,
        _ => GREEN,
    }
}

fn colour_of_class(class: &str) -> &'static str {
    match class {
        "hit" | "file" | "memcached" => GREEN,
        "error" | "refused" => RED,
        "miss" | "pass" | "pipe" => YELLOW,
        _ => CYAN,
    }
}

/// Apache's combined format with the three columns of ours that always stand behind it (docs/access-log.md).
pub fn combined(event: &RecordedEvent) -> String {
    let quoted = |name: &str| event.text(name).map_or_else(|| "-".to_owned(), escaped);
    let request = match event.text("method") {
        None => "-".to_owned(),
        Some(method) => {
            let query = event.text("query").map(|query| format!("?{}", escaped(query))).unwrap_or_default();
            let version = match event.text("protocol") {
                Some("2") => "2.0",
                Some(version) => version,
                None => "1.1",
            };
            format!("{} {}{query} HTTP/{version}", escaped(method), quoted("path"))
        }
    };
    format!(
        "{} - {} [{}] \"{request}\" {} {} \"{}\" \"{}\" {} {} {}\n",
        quoted("client"),
        event.text("user").map_or_else(|| "-".to_owned(), |user| escaped(user).replace(' ', "\\x20")),
        date(event.text("time").unwrap_or_default()),
        event.number("status").unwrap_or(0),
        event.number("bytes").unwrap_or(0),
        quoted("referer"),
        quoted("agent"),
        quoted("class"),
        event.number("time.whole").unwrap_or(0),
        quoted("why"),
    )
}

/// What leaves neither its quotes nor its line.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', byte.into()]),
            b' '..=b'~' => out.push(byte.into()),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out
}

/// `10/Oct/2000:13:55:36 +0000` of `2000-10-10T13:55:36.007Z`.
fn date(time: &str) -> String {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let parts = || {
        let month: usize = time.get(5..7)?.parse().ok()?;
        let name = MONTHS.get(month.checked_sub(1)?)?;
        Some(format!("{}/{name}/{}:{} +0000", time.get(8..10)?, time.get(..4)?, time.get(11..19)?))
    };
    parts().filter(|_| is_time(time)).unwrap_or_else(|| "-".to_owned())
}

/// A record may come from elsewhere.
fn is_time(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit() || b"-:.TZ".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::super::recorded_event::tests::{FAILED, HIT};
    use super::*;

    fn event(line: &str) -> RecordedEvent {
        RecordedEvent::parse(line.as_bytes()).unwrap()
    }

    #[test]
    fn a_line_for_people_says_who_asked_what_and_whose_fault_it_is() {
        let plain = TextForm { colours: false };
        assert_eq!(
            plain.line(&event(HIT)),
            "13:55:36.007 200 hit            17 µs    6 KiB  GET t.test/a?b=1  192.0.2.7\n"
        );
        assert_eq!(
            plain.line(&event(FAILED)),
            "13:55:37.100 502 error        2.50 ms 40 bytes  GET t.test/b  2001:db8::1  <- app origin-connect  \
             origin-connect  origin \"app\": refused\n"
        );
        let coloured = TextForm { colours: true }.line(&event(FAILED));
        assert!(coloured.contains("\u{1b}[31m502\u{1b}[0m"), "{coloured:?}");
    }

    #[test]
    fn the_access_logs_line_is_the_access_logs() {
        assert_eq!(
            combined(&event(HIT)),
            "192.0.2.7 - - [10/Oct/2000:13:55:36 +0000] \"GET /a?b=1 HTTP/1.1\" 200 6221 \"-\" \"curl/8.14\" hit 17 -\n"
        );
    }

    #[test]
    fn a_stranger_neither_colours_nor_leaves_a_line() {
        let hostile = "{\"class\":\"hit\\u001b\",\"client\":\"\\u001b]0;x\\u0007\",\"time\":\"2026-11-27T\\u001b[2J9012345678\",\"url\":\"\\u001b[31m\\n\\u202e\",\"path\":\"\\\"\\n\",\"method\":\"GET\"}";
        let line = TextForm { colours: false }.line(&event(hostile));
        assert!(!line.trim_end_matches('\n').chars().any(|c| c.is_control() || c == '\u{202e}'), "{line:?}");
        assert!(combined(&event(hostile)).contains("GET \\\"\\x0a HTTP/1.1"));
    }
}
