//! A defect as it is kept and told: where it was, what it said, and the backtrace, in a line. It is made where a panic is met, and read by
//! operators, by who mends it, and by whoever may see `/status`: what a client may have sent is cut off as far as it can be told from a
//! sentence. Who keeps it, and for how long, is no business of this file.

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

/// Stands before the build and the addresses of a report, which are all that follows it.
pub const BACKTRACE: &str = "; backtrace: ";

/// File, line and column.
pub fn location_of(panic: &PanicHookInfo<'_>) -> String {
    panic.location().map_or_else(|| "an unknown location".to_owned(), ToString::to_string)
}

/// Which thread, where, and why, as the operator reads it while it happens.
pub fn sentence_of(panic: &PanicHookInfo<'_>) -> String {
    let words = match panic.payload().downcast_ref::<&'static str>() {
        // It was written by a programmer, all of it.
        Some(words) => shortened(words, words.len()),
        None => without_values(panic.payload_as_str().unwrap_or("it says nothing")),
    };
    let thread = std::thread::current();
    format!("thread '{}' panicked at {}: {words}", thread.name().unwrap_or("unnamed"), location_of(panic))
}

/// The sentence as it is kept: with the time, the build and the backtrace of who asks.
pub fn report_of(sentence: &str) -> String {
    let (date, version, process) = (show_date(wall_now_ms() / 1_000), env!("CARGO_PKG_VERSION"), std::process::id());
    let identity = BuildIdentity::of_this_program();
    let way = Backtrace::new_unresolved();
    let offsets = way.frames().iter().filter_map(|frame| identity.offset_of(frame.ip() as usize));
    let frames: String = offsets.take(REPORT_FRAMES_MAX).map(|offset| format!(" {offset:#x}")).collect();
    format!("{date} larder {version} process {process}: {sentence}{BACKTRACE}build {}{frames}", identity.id)
}

/// A sentence up to the first word that no programmer need have written: one with a sign in it that sentences do not have, such as in a URL,
/// a field or a name of a host. Numbers stay.
fn without_values(words: &str) -> String {
    let mut end = OF_LIBRARY.iter().find(|known| words.starts_with(**known)).map_or(0, |known| known.len());
    for word in words[end..].split_inclusive(' ') {
        if !is_of_sentence(word.trim_end_matches(' ')) {
            break;
        }
        end += word.len();
    }
    shortened(words, end)
}

fn is_of_sentence(word: &str) -> bool {
    let word = word.trim_end_matches([',', ';', '.']);
    word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

fn shortened(words: &str, end: usize) -> String {
    let end = words.floor_char_boundary(end.min(REPORT_WORDS_MAX));
    if end == words.len() { words.to_owned() } else { format!("{} …", words[..end].trim_end()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reads_as_a_value_is_not_told() {
        let whole = "range end index 10 out of range for slice of length 5";
        for (said, told) in [
            (whole, whole),
            (
                "end byte index 2 is not a char boundary; it is inside 'é' (bytes 1..3) of `hé secret`",
                "end byte index 2 is not a char boundary; it is inside …",
            ),
            (
                "called `Result::unwrap()` on an `Err` value: Parse { text: \"secret\" }",
                "called `Result::unwrap()` on an `Err` value …",
            ),
            ("assertion `left == right` failed\n  left: \"secret\"\n right: 1", "assertion `left == right` failed …"),
            ("the name is known: secret", "the name is …"),
            ("no route for shop.example/x?session=secret", "no route for …"),
            ("no route for shop.example", "no route for …"),
            ("user@secret is unknown", "…"),
            ("what came was \"secret\"", "what came was …"),
            ("sécret", "…"),
        ] {
            assert_eq!(without_values(said).trim_start(), told, "{said}");
        }
        let long = "a ".repeat(REPORT_WORDS_MAX);
        assert_eq!(without_values(&long).chars().count(), REPORT_WORDS_MAX - 1 + " …".chars().count());
    }
}
