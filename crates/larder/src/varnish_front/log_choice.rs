//! What of the records readers are to see: the parameters `vsl_mask` and `vsl_reclen`.
//!
//! Workers are told, and write nothing else but what is counted (`log_tally.rs`): that they write whole, whatever is to be seen of it.

use std::sync::LazyLock;

use proxy::{HeardKinds, RecordKind, RecordView};
use vsm::{LogMask, LogPiece, LogTag, append_record};

use super::log_tally;

/// `vsl_reclen` unless somebody says otherwise.
const RECORD_BYTES_USUAL: usize = 255;

#[derive(Clone, Copy, Debug)]
pub struct LogChoice {
    pub mask: LogMask,
    /// Of a text with its NUL. What is longer is cut.
    pub record_bytes_max: usize,
}

impl Default for LogChoice {
    fn default() -> LogChoice {
        LogChoice { mask: LogMask::default(), record_bytes_max: RECORD_BYTES_USUAL }
    }
}

/// The log's tags for the proxy's kinds, in their order.
static TAGS: LazyLock<Vec<LogTag>> = LazyLock::new(|| {
    let tag = |kind: &RecordKind| LogTag::named(kind.name()).unwrap_or_else(|| panic!("the log has no {kind:?}"));
    RecordKind::ALL.iter().map(tag).collect()
});

impl LogChoice {
    /// Workers write by this from here on.
    pub fn tell(&self, heard: &HeardKinds) {
        for (kind, tag) in RecordKind::ALL.iter().zip(TAGS.iter()) {
            match (log_tally::is_counted(*kind), self.mask.allows(*tag)) {
                (true, _) => heard.hear(*kind, tag.number(), usize::MAX),
                (false, true) => heard.hear(*kind, tag.number(), self.text_bytes_max()),
                (false, false) => heard.ignore(*kind),
            }
        }
    }

    /// Is this to be seen, and whole?
    pub fn shows(&self, record: &RecordView<'_>) -> bool {
        record.bytes.len() <= self.record_bytes_max
            && LogTag::numbered(record.number).is_some_and(|tag| self.mask.allows(tag))
    }

    /// With its NUL it has so many bytes at most.
    pub fn cut<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        &text[..text.len().min(self.text_bytes_max())]
    }

    fn text_bytes_max(&self) -> usize {
        self.record_bytes_max.saturating_sub(1)
    }

    /// What is to be seen of these records.
    pub fn pick(&self, of: &LogPiece, into: &mut LogPiece) {
        let mut picked = Vec::new();
        for unit in of.units() {
            picked.clear();
            let mut rest = unit.records;
            while let Some((record, behind)) = RecordView::split_first(rest) {
                rest = behind;
                if let Some(tag) = LogTag::numbered(record.number).filter(|tag| self.mask.allows(*tag)) {
                    let text = if tag.is_binary() { record.bytes } else { record.text() };
                    append_record(&mut picked, tag, record.transaction, self.cut(text));
                }
            }
            into.records(&picked);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(piece: &mut LogPiece, records: &[(&str, &str)]) {
        let mut bytes = Vec::new();
        for (name, text) in records {
            append_record(&mut bytes, LogTag::named(name).unwrap(), 1 << 30 | 7, text.as_bytes());
        }
        piece.records(&bytes);
    }

    #[test]
    fn what_is_counted_is_written_though_nobody_is_to_see_it() {
        let (mut choice, heard) = (LogChoice::default(), HeardKinds::default());
        choice.mask = choice.mask.changed("-ReqAcct,-ReqURL,+Hash").unwrap();
        choice.tell(&heard);
        let hears = |kind| heard.hears(kind);
        assert!(hears(RecordKind::ReqAcct) && hears(RecordKind::Hash) && hears(RecordKind::ReqHeader));
        assert!(!hears(RecordKind::ReqUrl) && !hears(RecordKind::ExpKill));
    }

    #[test]
    fn what_is_not_to_be_seen_is_left_out_and_what_is_long_is_cut() {
        let choice = LogChoice { mask: LogMask::default().changed("-ReqAcct").unwrap(), record_bytes_max: 8 };
        let (mut piece, mut picked, mut expect) = (LogPiece::default(), LogPiece::default(), LogPiece::default());
        recorded(&mut piece, &[("Begin", "req 1 rxreq"), ("ReqAcct", "1 2 3 4 5 6"), ("End", "")]);
        recorded(&mut piece, &[("ReqAcct", "1 2 3 4 5 6")]);
        let first = RecordView::split_first(piece.units().next().unwrap().records).unwrap().0;
        assert!(!choice.shows(&first) && LogChoice::default().shows(&first));
        choice.pick(&piece, &mut picked);
        recorded(&mut expect, &[("Begin", "req 1 r"), ("End", "")]);
        assert_eq!(picked.bytes(), expect.bytes());
    }
}
