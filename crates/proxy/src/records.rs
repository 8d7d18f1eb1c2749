//! What is recorded of sessions, requests and fetches while they run, as Varnish's log has it: who wants that log gives
//! the proxy a [`RecordSink`]. Without one nothing here is made, and a hit asks for it once.
//!
//! A transaction collects its records (`task_records.rs`) and hands them over as one piece when it ends. What a record says
//! follows the formats of vsl(7); where they go, and which numbers their kinds have there, is the sink's business.

pub(crate) mod expiry_records;
pub(crate) mod fetch_records;
pub(crate) mod frame_records;
pub(crate) mod record_kind;
pub(crate) mod record_word;
pub(crate) mod request_records;
pub(crate) mod session_records;
pub(crate) mod task_records;

pub use record_kind::RecordKind;
use vcl::LogKind;

/// Whose transaction it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordSide {
    /// Sessions and requests.
    Client,
    /// Fetches.
    Backend,
    /// Nobody's, without a number: objects that leave.
    None,
}

/// Where records go. It must not block.
pub trait RecordSink: Send + Sync {
    /// Takes records of the transaction with this number, in order; [`each_record`] reads them.
    fn put(&self, xid: u64, side: RecordSide, records: &[u8]);

    /// What is made for nobody's transaction need not be made if nobody reads it.
    fn wants(&self, _kind: RecordKind) -> bool {
        true
    }

    /// What the store is called in records: kind and name.
    fn storage(&self) -> &str {
        "malloc s0"
    }
}

/// What a program says while it is loaded or discarded, where there is no transaction.
pub fn record_of_program(sink: &dyn RecordSink, kind: LogKind, text: &[u8]) {
    if let Some(kind) = RecordKind::of_program(kind).filter(|kind| sink.wants(*kind)) {
        let mut record = Vec::new();
        append(&mut record, kind, &[text]);
        sink.put(0, RecordSide::None, &record);
    }
}

/// Bytes before the text of a record: its kind, and the text's length in two bytes.
const FRAME_BYTES: usize = 3;

/// Appends a record. What is longer than a length can say is cut.
pub(crate) fn append(to: &mut Vec<u8>, kind: RecordKind, parts: &[&[u8]]) {
    let frame_at = open(to, kind);
    parts.iter().for_each(|part| to.extend_from_slice(part));
    close(to, frame_at);
}

/// Begins a record, whose text follows; [`close`] wants to know where.
pub(crate) fn open(to: &mut Vec<u8>, kind: RecordKind) -> usize {
    let frame_at = to.len();
    to.extend_from_slice(&[kind as u8, 0, 0]);
    frame_at
}

/// Says how long the record that begins at `frame_at` has become. A control byte in a text is escaped as in the access log: a line
/// of the log is one line, whatever a program was given to write.
pub(crate) fn close(to: &mut Vec<u8>, frame_at: usize) {
    let text_at = frame_at + FRAME_BYTES;
    if has_control(&to[text_at..])
        && !RecordKind::ALL.get(usize::from(to[frame_at])).is_some_and(|kind| kind.is_binary())
    {
        let text = to.split_off(text_at);
        for &byte in &text {
            match is_control(byte) {
                true => to.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
                false => to.push(byte),
            }
        }
    }
    let length = (to.len() - text_at).min(crate::limits::RECORD_BYTES_MAX);
    to.truncate(text_at + length);
    to[frame_at + 1..text_at].copy_from_slice(&(length as u16).to_le_bytes());
}

/// Eight bytes at a time: every field that comes in or goes out is looked through.
fn has_control(text: &[u8]) -> bool {
    let (eights, rest) = text.as_chunks::<8>();
    eights
        .iter()
        .any(|eight| may_have_control(u64::from_le_bytes(*eight)) && eight.iter().any(|byte| is_control(*byte)))
        || rest.iter().any(|byte| is_control(*byte))
}

/// Is any of the eight bytes below a blank, or DEL? A tab, and a byte behind such a one, may be taken for one.
fn may_have_control(eight: u64) -> bool {
    const ONES: u64 = u64::MAX / 0xff;
    const HIGHS: u64 = ONES * 0x80;
    let below_blank = eight.wrapping_sub(ONES * 0x20) & !eight;
    let others_than_del = eight ^ (ONES * 0x7f);
    let del = others_than_del.wrapping_sub(ONES) & !others_than_del;
    (below_blank | del) & HIGHS != 0
}

fn is_control(byte: u8) -> bool {
    (byte < b' ') & (byte != b'\t') | (byte == 0x7f)
}

/// The records of a piece: kind and text.
pub fn each_record(mut records: &[u8], mut take: impl FnMut(RecordKind, &[u8])) {
    while let [kind, low, high, rest @ ..] = records {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        let (text, behind) = rest.split_at(length);
        if let Some(kind) = RecordKind::ALL.get(usize::from(*kind)) {
            take(*kind, text);
        }
        records = behind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_one_line() {
        let mut bytes = Vec::new();
        append(&mut bytes, RecordKind::VclLog, &[b"a\r\n- ReqURL /forged\x1b\tb", &[0xc3, 0xa9, 0x7f]]);
        each_record(&bytes, |_, text| {
            assert_eq!(text, b"a\\x0d\\x0a- ReqURL /forged\\x1b\tb\xc3\xa9\\x7f");
        });
    }

    #[test]
    fn a_control_byte_is_found_wherever_it_stands() {
        for byte in 0..=u8::MAX {
            for (length, at) in (1..20).flat_map(|length| (0..length).map(move |at| (length, at))) {
                let mut text = vec![b'a'; length];
                text[at] = byte;
                assert_eq!(has_control(&text), is_control(byte), "{byte:#x} at {at} of {length}");
            }
        }
    }

    #[test]
    fn frames_stay_as_they_are() {
        let mut bytes = Vec::new();
        append(&mut bytes, RecordKind::H2TxHdr, &[b"\0\0\x08\x06"]);
        each_record(&bytes, |_, frame| assert_eq!(frame, b"\0\0\x08\x06"));
    }

    #[test]
    fn records_are_read_as_they_were_written_and_long_ones_are_cut() {
        let mut bytes = Vec::new();
        append(&mut bytes, RecordKind::ReqUrl, &[b"/a", b"?b"]);
        append(&mut bytes, RecordKind::End, &[]);
        append(&mut bytes, RecordKind::VclLog, &[&[b'x'; 70_000]]);
        let mut seen = Vec::new();
        each_record(&bytes, |kind, text| seen.push((kind, text.to_vec())));
        assert_eq!(seen[0], (RecordKind::ReqUrl, b"/a?b".to_vec()));
        assert_eq!(seen[1], (RecordKind::End, Vec::new()));
        assert_eq!((seen[2].0, seen[2].1.len()), (RecordKind::VclLog, crate::limits::RECORD_BYTES_MAX));
        assert_eq!(seen.len(), 3);
    }
}
