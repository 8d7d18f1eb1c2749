//! Laws of the scanner of pages with parts, for any bytes; and what goes out of a text, beside a slow scanner that is easy to believe. The first byte
//! says how the text is read, the second in what pieces it comes.

use esi::limits::{COMPLAINTS_MAX, NESTED_MAX, PIECES_MAX, TAG_BYTES_MAX};
use esi::{Document, Include, Options, Piece, Scanner, Target, VariableName, Variables, holds};

/// Panics when a law is broken.
pub fn run(data: &[u8]) {
    let [bits, piece, text @ ..] = data else { return };
    let is_on = |bit: u8| bits & bit != 0;
    let options = Options {
        wants_xml: is_on(1),
        ignores_others: is_on(2),
        removes_bom: is_on(4),
        takes_https: is_on(8),
        has_variables: is_on(16),
    };
    let whole = scan(options, text, usize::MAX);
    assert_eq!(scan(options, text, usize::from(*piece)), whole, "it makes no difference in what pieces a text comes");
    check_document(&whole, text);
    if options == Options::default() && is_plain(text) {
        assert_eq!(sent(text, &whole.pieces), obvious(text), "{}", text.escape_ascii());
    }
}

/// A text that comes in pieces of this length.
pub fn scan(options: Options, text: &[u8], piece: usize) -> Document {
    let mut scanner = Scanner::new(options);
    text.chunks(piece.max(1)).for_each(|piece| scanner.push(piece));
    scanner.finish()
}

fn check_document(document: &Document, text: &[u8]) {
    assert!(document.complaints.len() <= COMPLAINTS_MAX);
    assert!(document.complaints.iter().all(|complaint| complaint.after <= text.len() as u64));
    let mut at = 0;
    let count = check_pieces(&document.pieces, text, &mut at, 0);
    assert!(count <= PIECES_MAX + 1, "{count}");
    if !document.has_esi {
        let kept: u64 = text_bytes(&document.pieces);
        let bom = if text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        assert!(kept + bom >= text.len() as u64, "of what has no ESI nothing is left out");
    }
}

/// Text goes out in the order in which it stands, and nothing twice; what is included has an address. Returns how many pieces there are.
fn check_pieces(pieces: &[Piece], text: &[u8], at: &mut u64, depth: usize) -> usize {
    assert!(depth <= NESTED_MAX);
    let mut count = pieces.len();
    for piece in pieces {
        match piece {
            Piece::Text(range) => {
                assert!(*at <= range.start && range.start < range.end && range.end <= text.len() as u64);
                *at = range.end;
            }
            Piece::Include(Include { src, .. }) => {
                assert!(src.len() < TAG_BYTES_MAX);
                let target = Target::of(src, b"/").expect("what has no address is not included");
                assert!(target.path.first() == Some(&b'/') && !target.path.iter().any(u8::is_ascii_control));
            }
            Piece::Try { attempt, except } => count += check_branches([attempt, except], text, at, depth),
            Piece::Choose { whens, otherwise } => {
                assert!(whens.iter().all(|when| holds(&when.test, &Nobody).is_ok()), "a test is one");
                let branches = whens.iter().map(|when| &when.pieces).chain([otherwise]);
                count += check_branches(branches, text, at, depth);
            }
            Piece::Variable(variable) => {
                let said = variable.escaped(&Nobody);
                assert!(!said.iter().any(|byte| b"<>\"'".contains(byte)), "nothing that it says ends a tag or a text");
            }
        }
    }
    count
}

/// They may stand in any order, each once or more.
fn check_branches<'p>(
    branches: impl IntoIterator<Item = &'p Vec<Piece>>,
    text: &[u8],
    at: &mut u64,
    depth: usize,
) -> usize {
    let mut count = 0;
    for pieces in branches {
        let mut end = 0;
        count += check_pieces(pieces, text, &mut end, depth + 1);
        *at = end.max(*at);
    }
    count
}

/// Whose request says nothing.
struct Nobody;

impl Variables for Nobody {
    fn value(&self, _: VariableName, _: Option<&[u8]>) -> Option<Vec<u8>> {
        None
    }
}

fn text_bytes(pieces: &[Piece]) -> u64 {
    pieces.iter().map(|piece| if let Piece::Text(range) = piece { range.end - range.start } else { 0 }).sum()
}

/// What goes out, with each include as `{src}`.
pub fn sent(text: &[u8], pieces: &[Piece]) -> Vec<u8> {
    let mut out = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Text(range) => out.extend_from_slice(&text[range.start as usize..range.end as usize]),
            Piece::Include(include) => out.extend([b"{", &include.src[..], b"}"].concat()),
            Piece::Try { .. } | Piece::Choose { .. } | Piece::Variable(_) => {
                panic!("the obvious scanner knows no alternatives")
            }
        }
    }
    out
}

/// The tags that the obvious scanner knows.
const TAGS: [&[u8]; 4] = [b"<esi:include src=\"/x\"/>", b"<esi:remove>", b"</esi:remove>", b"<esi:comment x=\"\"/>"];

/// Has it no others?
fn is_plain(text: &[u8]) -> bool {
    text.len() < PIECES_MAX
        && (0..text.len()).all(|at| {
            let rest = &text[at..];
            let begins = rest.starts_with(b"<esi:") || rest.starts_with(b"</esi:");
            !begins || TAGS.iter().any(|tag| rest.starts_with(tag))
        })
}

/// What goes out by looking at the whole text at each place, one byte after the other.
pub fn obvious(text: &[u8]) -> Vec<u8> {
    let (mut out, mut at, mut removes, mut armed, mut has_esi) = (Vec::new(), 0, false, false, false);
    let find = |from: usize, what: &[u8]| {
        text[from..]
            .windows(what.len())
            .position(|window| window == what)
            .map_or(text.len(), |at| from + at + what.len())
    };
    while at < text.len() {
        let rest = &text[at..];
        let (to, kept) = if rest.starts_with(b"<esi:") || rest.starts_with(b"</esi:") {
            has_esi = true;
            let to = find(at, b">");
            let tag = &text[at..to];
            if tag.ends_with(b">") {
                match tag {
                    b"<esi:remove>" => removes = true,
                    b"</esi:remove>" => removes = false,
                    tag if tag.starts_with(b"<esi:include src=\"/x\"/") && !removes => out.extend(b"{/x}"),
                    _ => {}
                }
            }
            (to, false)
        } else if rest.starts_with(b"<!--esi") {
            armed = true;
            (at + 7, false)
        } else if rest.starts_with(b"<!---->") {
            (at + 7, true)
        } else if rest.starts_with(b"<!--") {
            armed = false;
            (find(at + 4, b"-->"), true)
        } else if rest.starts_with(b"<![CDATA[") {
            (find(at + 9, b"]]>"), true)
        } else if armed && rest.starts_with(b"-->") {
            (armed, has_esi) = (false, true);
            (at + 3, false)
        } else if rest[0] == b'<' {
            (find(at, b">"), true)
        } else {
            (at + 1, true)
        };
        if kept && !removes {
            out.extend_from_slice(&text[at..to]);
        }
        at = to;
    }
    if has_esi { out } else { text.to_vec() }
}
