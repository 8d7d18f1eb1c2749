//! A defect as it is kept and told: where it was, what it said, and the way there, in a line that names no client and nothing that one has
//! sent.

use std::panic::PanicHookInfo;

use backtrace::Backtrace;
use proxy::wall_now_ms;

use crate::build_identity::BuildIdentity;
use crate::expiry_watch::show_date;
use crate::limits::{REPORT_FRAMES_MAX, REPORT_WORDS_MAX};

/// What the standard library says of itself before it shows a value, or has shown all.
const OF_LIBRARY: [&str; 4] = [
    "called `Result::unwrap()` on an `Err` value",
    "called `Result::unwrap_err()` on an `Ok` value",
    "assertion `left == right` failed",
    "assertion `left != right` failed",
];

/// Stands before the addresses of a report, which are all that follows it.
pub const BACKTRACE: &str = "; way there: ";

/// What one panic says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrashReport {
    /// File, line and column.
    pub place: String,
    pub thread: String,
    pub words: String,
    /// As offsets into the program, from the innermost on.
    frames: Vec<usize>,
}

impl CrashReport {
    pub fn of(panic: &PanicHookInfo<'_>) -> CrashReport {
        let words = match panic.payload().downcast_ref::<&'static str>() {
            // It was written here.
            Some(words) => (*words).to_owned(),
            None => without_values(panic.payload_as_str().unwrap_or("it says nothing")),
        };
        let identity = BuildIdentity::of_this_program();
        let way = Backtrace::new_unresolved();
        let frames = way.frames().iter().filter_map(|frame| identity.offset_of(frame.ip() as usize));
        CrashReport {
            place: panic.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string),
            thread: std::thread::current().name().unwrap_or("unnamed").to_owned(),
            words,
            frames: frames.take(REPORT_FRAMES_MAX).collect(),
        }
    }

    /// As the operator reads it while it happens.
    pub fn sentence(&self) -> String {
        format!("thread '{}' panicked at {}: {}", self.thread, self.place, self.words)
    }

    /// As it is kept: with the time, the build and the way there.
    pub fn line(&self) -> String {
        let (date, version) = (show_date(wall_now_ms() / 1_000), env!("CARGO_PKG_VERSION"));
        let (process, build) = (std::process::id(), &BuildIdentity::of_this_program().id);
        let way: String = self.frames.iter().map(|offset| format!(" {offset:#x}")).collect();
        let sentence = self.sentence();
        format!("{date} larder {version} process {process}: {sentence}{BACKTRACE}build {build}{way}")
    }
}

/// A sentence as far as it was written by programmers: values that are shown in it may be a client's. Numbers stay, unless a value may be
/// before them.
fn without_values(words: &str) -> String {
    let known = OF_LIBRARY.iter().find(|known| words.starts_with(**known)).map_or(0, |known| known.len());
    let ends =
        |at: usize, c: char| at >= known && (matches!(c, '`' | '\'' | '"' | ':' | '(' | '[' | '{') || !is_plain(c));
    let end = words.char_indices().find(|(at, c)| ends(*at, *c)).map_or(words.len(), |(at, _)| at);
    let end = words.floor_char_boundary(end.min(REPORT_WORDS_MAX));
    if end == words.len() { words.to_owned() } else { format!("{} …", words[..end].trim_end()) }
}

/// Of what sentences here are made of.
fn is_plain(c: char) -> bool {
    c == ' ' || c.is_ascii_graphic()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_that_a_client_may_have_sent_is_told() {
        for (said, told) in [
            (
                "range end index 10 out of range for slice of length 5",
                "range end index 10 out of range for slice of length 5",
            ),
            (
                "end byte index 2 is not a char boundary; it is inside 'é' (bytes 1..3) of `hé secret`",
                "end byte index 2 is not a char boundary; it is inside …",
            ),
            (
                "called `Result::unwrap()` on an `Err` value: Parse { text: \"secret\" }",
                "called `Result::unwrap()` on an `Err` value …",
            ),
            ("assertion `left == right` failed\n  left: \"secret\"\n right: 1", "assertion `left == right` failed …"),
            ("the name is known: secret", "the name is known …"),
            ("what came was \"secret\"", "what came was …"),
            ("sécret", "s …"),
        ] {
            assert_eq!(without_values(said), told, "{said}");
        }
        let long = "a ".repeat(REPORT_WORDS_MAX);
        assert_eq!(without_values(&long).chars().count(), REPORT_WORDS_MAX - 1 + " …".chars().count());
    }
}
