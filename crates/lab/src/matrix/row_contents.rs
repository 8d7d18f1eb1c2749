//! What the answers of a row are: texts in a content coding, pages that are put together, or a URL of its own for each request; and
//! what of that a row may not say.

use std::time::Duration;

use crate::answer_coding::ContentCoding;
use crate::constructed_body::Parts;
use crate::limits::{FRESH_URLS_PER_SECOND, PARTS_OF_A_PAGE_MAX, ROW_PAGE_BYTES_MAX, ROW_URLS_MAX};
use crate::matrix::lab_file::{PartsSection, RowSection};
use crate::results::RowKind;

/// One row for each, which are known; without any a row that asks for none.
pub(crate) fn codings(section: &RowSection) -> Vec<Option<ContentCoding>> {
    let all = section.encoding.as_ref().map(|encoding| encoding.all());
    all.map_or(vec![None], |all| all.iter().map(|word| ContentCoding::named(word)).collect())
}

pub(crate) fn parts(section: PartsSection) -> Parts {
    let PartsSection { count, bytes, missing } = section;
    Parts { count, part_bytes: bytes, missing }
}

/// In words; how long the whole page is; how many URLs there are.
pub(crate) fn of_parts(parts: Parts) -> (String, Option<u64>, usize) {
    let Parts { count, part_bytes, missing } = parts;
    let how = if missing { ", each fetched anew in 50 ms" } else { "" };
    (format!("a page of {count} parts of {part_bytes} B{how}"), Some(parts.put_together().len() as u64), 1)
}

/// Paths that nobody has asked for in this run, a line each: as many as a fast server could answer in this time. `draw` is another
/// number for each slice.
pub(crate) fn fresh_list(path: &str, draw: u64, time: Duration) -> (String, usize) {
    let count = ((time.as_secs_f64() * FRESH_URLS_PER_SECOND) as usize).clamp(1, ROW_URLS_MAX);
    let sign = if path.contains('?') { '&' } else { '?' };
    ((0..count).map(|n| format!("{path}{sign}miss={draw}-{n}\n")).collect(), count)
}

/// What of it cannot be as a row says it.
pub(crate) fn refusal(section: &RowSection) -> Option<String> {
    let (codes, misses) = (section.encoding.is_some(), section.kind == RowKind::Miss);
    let page = section.size.is_some();
    let words = section.encoding.as_ref().map_or(Vec::new(), |encoding| encoding.all());
    if let Some(wrong) = words.iter().find(|word| ContentCoding::named(word).is_none()) {
        let known = ContentCoding::ALL.map(ContentCoding::name).join(", ");
        return Some(format!("`{wrong}` is no content coding that is known: {known}"));
    }
    let names_codings = |field: &String| field.to_ascii_lowercase().starts_with("accept-encoding");
    let why = match section.parts {
        _ if codes && !page => "encoding needs size = BYTES: other pages are not texts",
        _ if codes && (section.browser || section.headers.iter().any(names_codings)) => {
            "encoding says what Accept-Encoding has: no browser, and no such header"
        }
        _ if codes && section.kind == RowKind::Idle => "an idle row asks for no encoding",
        _ if misses && !page => "a row of misses takes size",
        _ if misses && (section.sessions.is_some() || section.forward) => {
            "a row of misses has no sessions, and no forward proxies"
        }
        Some(_) if section.kind != RowKind::Hit || section.forward || section.sessions.is_some() => {
            "a page with parts is asked of a cache: no kind, forward or sessions"
        }
        Some(parts) if !(1..=PARTS_OF_A_PAGE_MAX).contains(&parts.count) => {
            return Some(format!("parts.count must be 1 to {PARTS_OF_A_PAGE_MAX}"));
        }
        Some(parts) if parts.bytes > ROW_PAGE_BYTES_MAX / parts.count => "parts of so many bytes make too long a page",
        _ => return None,
    };
    Some(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::lab_file::tests::source;
    use crate::matrix::planned_rows::{PlannedRow, planned_rows};

    fn rows(row: &str) -> Result<Vec<PlannedRow>, String> {
        let text = format!("title = \"t\"\nreference = \"a\"\n[[row]]\nname = \"r\"\nconnections = 1\n{row}\n");
        let source = source(&text);
        planned_rows(&source.read()?.row, &[], &source)
    }

    #[test]
    fn a_row_in_codings_is_one_for_each_and_asks_for_texts() {
        let made = rows("size = 500\nencoding = [\"gzip\", \"br\"]").unwrap();
        assert_eq!(made.len(), 2);
        assert_eq!((made[1].encoding, made[1].paths()), (Some(ContentCoding::Brotli), vec!["/t500.html".to_owned()]));
        assert_eq!(made[1].used.name, "r: 500 B, 1 connections, kept, br");
        assert!(made[0].used.load.ends_with(", with `Accept-Encoding: gzip`"), "{}", made[0].used.load);
    }

    #[test]
    fn every_request_of_a_row_of_misses_has_a_url_of_its_own() {
        let made = rows("size = 500\nkind = \"miss\"").unwrap();
        assert!(!made[0].hot && made[0].paths() == ["/f500.html"]);
        let (one, count) = fresh_list("/f500.html", 1, Duration::from_millis(1));
        let (other, _) = fresh_list("/f500.html", 2, Duration::from_millis(1));
        assert_eq!(one.lines().chain(other.lines()).collect::<std::collections::HashSet<_>>().len(), 2 * count);
    }

    #[test]
    fn a_page_with_parts_is_as_long_as_what_is_put_together() {
        let row = &rows("parts = { count = 3, bytes = 100, missing = true }").unwrap()[0];
        assert_eq!((row.used.size_bytes, row.hot, row.paths()), (Some(495), false, vec!["/w3x100.html".to_owned()]));
        assert!(rows("parts = { count = 3, bytes = 100 }").unwrap()[0].hot);
    }

    #[test]
    fn what_answers_cannot_be_is_refused() {
        for (row, part) in [
            ("encoding = \"gzip\"\nurls = { count = 3, mean_bytes = 100 }", "encoding needs size"),
            ("encoding = \"deflate\"\nsize = 1", "is no content coding that is known: gzip, br, zstd"),
            ("encoding = \"gzip\"\nsize = 1\nbrowser = true", "no browser"),
            ("encoding = \"gzip\"\nsize = 1\nheaders = [\"Accept-encoding: br\"]", "no such header"),
            ("encoding = \"gzip\"\nsize = 1\nkind = \"idle\"", "asks for no encoding"),
            ("kind = \"miss\"\nurls = { count = 3, mean_bytes = 100 }", "takes size"),
            ("kind = \"pass\"\nparts = { count = 3, bytes = 100 }", "asked of a cache"),
            ("parts = { count = 0, bytes = 100 }", "parts.count must be 1"),
            ("size = 1\nparts = { count = 1, bytes = 100 }", "exclude each other"),
        ] {
            let error = rows(row).map(|rows| rows.len()).unwrap_err();
            assert!(error.contains(part), "{row}: {error}");
        }
    }
}
