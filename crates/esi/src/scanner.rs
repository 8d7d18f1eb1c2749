//! The scanner: a text in, piece by piece, and what it is made of out. Nothing is looked at twice but the start of a tag or of an end
//! that is not whole yet.

use std::ops::Range;

use crate::document::{Complaint, Document, Include, Piece};
use crate::esi_variables::Variable;
use crate::limits::{COMPLAINTS_MAX, NESTED_MAX, PIECES_MAX, TAG_BYTES_MAX, VARIABLE_BYTES_MAX};
use crate::open_branches::OpenBranches;
use crate::tag::{self, Attributes, TagName, is_blank};
use crate::target::{HTTPS, Target, unescaped};

/// How a text is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// A text whose first byte but blanks is no `<` is no XML, and goes out as it is.
    pub wants_xml: bool,
    /// Tags of others are not looked at: one of ESI may begin in the middle of them.
    pub ignores_others: bool,
    /// Bytes that say in which order the bytes of the text come are left out.
    pub removes_bom: bool,
    /// What is at an `https://` is asked for as what is at an `http://`; otherwise it is not included.
    pub takes_https: bool,
    /// `<esi:vars>`, `<esi:choose>` and variables in addresses are what ESI 1.0 has them for; otherwise they are left out.
    pub has_variables: bool,
}

/// Reads one text.
#[derive(Debug)]
pub struct Scanner {
    options: Options,
    mode: Mode,
    /// What came and cannot be told yet.
    carry: Vec<u8>,
    /// How much of the text is behind us.
    at: u64,
    /// Where what goes out ended last, or what does not.
    turned_at: u64,
    was_kept: bool,
    /// Within `<esi:remove>`.
    removes: bool,
    /// Within `<!--esi`: a `-->` is its end.
    ends_comment: bool,
    document: Document,
    pieces_count: usize,
    /// Within `<esi:vars>`: what begins with `$(` may be a variable.
    has_vars: bool,
    open: Vec<OpenBranches>,
}

/// What the next bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Begin,
    /// Blanks before the first `<`.
    Blank,
    /// No XML: all of it is text.
    Plain,
    Text,
    /// A tag of others, up to its `>`.
    Other,
    /// A comment or CDATA, up to this.
    Until(&'static [u8]),
    /// A tag of ESI that is wrong, up to its `>`.
    Wrong,
}

const BOM: &[u8] = b"\xef\xbb\xbf";
const COMMENT_END: &[u8] = b"-->";

const BEGINS_WITH_BOM: &str = "No ESI processing, first char not '<' but BOM. (See feature esi_remove_bom)";
const BEGINS_OTHERWISE: &str = "No ESI processing, first char not '<'. (See feature esi_disable_xml_check)";

/// What may follow a `<`, in the order in which it is tried.
const BEGINNINGS: [(&[u8], Beginning); 6] = [
    (b"!--esi", Beginning::EsiComment),
    (b"!---->", Beginning::EmptyComment),
    (b"!--", Beginning::Comment),
    (b"/esi:", Beginning::EsiEnd),
    (b"esi:", Beginning::Esi),
    (b"![CDATA[", Beginning::Cdata),
];

#[derive(Clone, Copy)]
enum Beginning {
    EsiComment,
    EmptyComment,
    Comment,
    EsiEnd,
    Esi,
    Cdata,
}

impl Scanner {
    pub fn new(options: Options) -> Scanner {
        Scanner {
            options,
            mode: Mode::Begin,
            carry: Vec::new(),
            at: 0,
            turned_at: 0,
            was_kept: false,
            removes: false,
            ends_comment: false,
            document: Document::default(),
            pieces_count: 0,
            has_vars: false,
            open: Vec::new(),
        }
    }

    /// The next bytes of the text.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.carry.is_empty() {
            let left = self.scan(bytes);
            self.carry.extend_from_slice(left);
        } else {
            let mut joined = std::mem::take(&mut self.carry);
            joined.extend_from_slice(bytes);
            self.carry = self.scan(&joined).to_vec();
        }
    }

    /// What of it cannot be told yet.
    fn scan<'b>(&mut self, mut bytes: &'b [u8]) -> &'b [u8] {
        while let Some(taken) = self.step(bytes) {
            bytes = &bytes[taken..];
        }
        bytes
    }

    /// The text is over.
    pub fn finish(mut self) -> Document {
        let left = std::mem::take(&mut self.carry);
        let is_tag = left.starts_with(b"<esi:") || left.starts_with(b"</esi:");
        let is_within = is_tag
            || left.starts_with(b"<")
            || !matches!(self.mode, Mode::Begin | Mode::Blank | Mode::Plain | Mode::Text);
        if is_within {
            self.complain(true, "VEP ended inside a tag");
        }
        self.mark(left.len(), !is_tag && self.mode != Mode::Wrong);
        while let Some(open) = self.open.pop() {
            self.complain(true, open.without_end());
            self.put(open.into_piece());
        }
        if !self.document.has_esi {
            // Such as `<!--esi` that has no end: all of it is text, as in Varnish.
            self.document.pieces = Vec::from_iter((self.at > 0).then_some(Piece::Text(0..self.at)));
        }
        self.document
    }

    /// Takes the start of these bytes. `None`: more have to come first.
    fn step(&mut self, bytes: &[u8]) -> Option<usize> {
        if bytes.is_empty() {
            return None;
        }
        match self.mode {
            Mode::Begin => self.begin(bytes),
            Mode::Blank => Some(self.blank(bytes)),
            Mode::Plain => Some(self.mark(bytes.len(), true)),
            Mode::Text => self.text(bytes),
            Mode::Other => {
                let end = bytes.iter().position(|byte| *byte == b'>');
                self.go_on(end.map(|end| end + 1), bytes.len(), true)
            }
            Mode::Wrong => {
                let end = bytes.iter().position(|byte| *byte == b'>');
                self.go_on(end.map(|end| end + 1), bytes.len(), false)
            }
            Mode::Until(end) => {
                let found = bytes.windows(end.len()).position(|window| window == end);
                let sure = bytes.len() - begun(bytes, end);
                if found.is_none() && sure == 0 {
                    return None;
                }
                self.go_on(found.map(|at| at + end.len()), sure, true)
            }
        }
    }

    /// Up to the end of something, if it was found, and text from there on.
    fn go_on(&mut self, end: Option<usize>, length: usize, is_kept: bool) -> Option<usize> {
        if end.is_some() {
            self.mode = Mode::Text;
        }
        Some(self.mark(end.unwrap_or(length), is_kept))
    }

    fn begin(&mut self, bytes: &[u8]) -> Option<usize> {
        let may_be_bom = self.options.removes_bom && BOM.starts_with(&bytes[..bytes.len().min(BOM.len())]);
        if may_be_bom && bytes.len() < BOM.len() {
            return None;
        }
        self.mode = if self.options.wants_xml { Mode::Blank } else { Mode::Text };
        Some(if may_be_bom { self.mark(BOM.len(), false) } else { self.mark(0, true) })
    }

    fn blank(&mut self, bytes: &[u8]) -> usize {
        let blanks = bytes.iter().take_while(|byte| is_blank(**byte)).count();
        self.mark(blanks, true);
        match bytes.get(blanks) {
            None => {}
            Some(b'<') => self.mode = Mode::Text,
            Some(first) => {
                self.mode = Mode::Plain;
                self.complain(false, if *first == BOM[0] { BEGINS_WITH_BOM } else { BEGINS_OTHERWISE });
            }
        }
        blanks
    }

    fn text(&mut self, bytes: &[u8]) -> Option<usize> {
        let is_special = |byte: &u8| match byte {
            b'<' => true,
            b'-' => self.ends_comment,
            b'$' => self.has_vars,
            _ => false,
        };
        match bytes.iter().position(is_special) {
            None => Some(self.mark(bytes.len(), true)),
            Some(0) if bytes[0] == b'-' => self.maybe_comment_end(bytes),
            Some(0) if bytes[0] == b'$' => self.maybe_variable(bytes),
            Some(0) => self.angle(bytes),
            Some(at) => Some(self.mark(at, true)),
        }
    }

    /// A hyphen within `<!--esi`.
    fn maybe_comment_end(&mut self, bytes: &[u8]) -> Option<usize> {
        if bytes.starts_with(COMMENT_END) {
            self.ends_comment = false;
            self.document.has_esi = true;
            return Some(self.mark(COMMENT_END.len(), false));
        }
        if COMMENT_END.starts_with(bytes) { None } else { Some(self.mark(1, true)) }
    }

    /// A dollar sign within `<esi:vars>`.
    fn maybe_variable(&mut self, bytes: &[u8]) -> Option<usize> {
        let searched = &bytes[..bytes.len().min(VARIABLE_BYTES_MAX)];
        let may_begin = b"$(".starts_with(&searched[..searched.len().min(2)]);
        let is_whole = searched.contains(&b')') || bytes.len() >= VARIABLE_BYTES_MAX;
        if may_begin && !is_whole {
            return None;
        }
        match Variable::read(searched) {
            Some((variable, length)) => {
                let taken = self.mark(length, false);
                if !self.removes {
                    self.put(Piece::Variable(variable));
                }
                Some(taken)
            }
            None => Some(self.mark(1, true)),
        }
    }

    /// A `<`, and what follows.
    fn angle(&mut self, bytes: &[u8]) -> Option<usize> {
        for (text, beginning) in BEGINNINGS {
            if bytes[1..].starts_with(text) {
                return self.begins(beginning, text.len() + 1, bytes);
            }
            if text.starts_with(&bytes[1..]) {
                return None;
            }
        }
        if !self.options.ignores_others {
            self.mode = Mode::Other;
        }
        Some(self.mark(1, true))
    }

    fn begins(&mut self, beginning: Beginning, length: usize, bytes: &[u8]) -> Option<usize> {
        match beginning {
            Beginning::EmptyComment => Some(self.mark(length, true)),
            Beginning::Comment => {
                self.ends_comment = false;
                self.mode = Mode::Until(COMMENT_END);
                Some(self.mark(length, true))
            }
            Beginning::Cdata => {
                self.mode = Mode::Until(b"]]>");
                Some(self.mark(length, true))
            }
            Beginning::EsiComment => {
                if self.removes {
                    self.complain(true, "ESI 1.0 Nested <!--esi element in <esi:remove>");
                }
                self.ends_comment = true;
                Some(self.mark(length, false))
            }
            Beginning::Esi | Beginning::EsiEnd => {
                self.document.has_esi = true;
                let searched = &bytes[..bytes.len().min(TAG_BYTES_MAX)];
                match searched.iter().position(|byte| *byte == b'>') {
                    Some(end) => {
                        let taken = self.mark(end + 1, false);
                        self.tag(&bytes[length..end], matches!(beginning, Beginning::EsiEnd));
                        Some(taken)
                    }
                    None if bytes.len() < TAG_BYTES_MAX => None,
                    None => {
                        self.complain(true, "ESI 1.0 element is too long");
                        self.mode = Mode::Wrong;
                        Some(self.mark(TAG_BYTES_MAX, false))
                    }
                }
            }
        }
    }

    /// A tag that is whole.
    fn tag(&mut self, text: &[u8], is_end: bool) {
        let done = match tag::name(text) {
            None => Err("ESI 1.0 <esi:bogus> element"),
            Some((TagName::Include, _)) if self.removes => Err("ESI 1.0 <esi:include> element nested in <esi:remove>"),
            Some((TagName::Comment, _)) if self.removes => Err("ESI 1.0 <esi:comment> element nested in <esi:remove>"),
            Some((TagName::Include, _)) if is_end => Err("ESI 1.0 </esi:include> illegal end-tag"),
            Some((TagName::Comment, _)) if is_end => Err("ESI 1.0 </esi:comment> illegal end-tag"),
            Some((name, rest)) => Attributes::read(rest).and_then(|attributes| match name {
                TagName::Include => self.include(&attributes),
                TagName::Remove => self.remove(is_end, attributes.is_empty_element),
                TagName::Comment if attributes.is_empty_element => Ok(()),
                TagName::Comment => Err("ESI 1.0 <esi:comment> needs final '/'"),
                TagName::Try | TagName::Attempt | TagName::Except => self.branch_tag(name, is_end, &[]),
                _ if !self.options.has_variables => Err("ESI 1.0 element that is switched off"),
                TagName::Vars => {
                    self.has_vars = !is_end;
                    Ok(())
                }
                TagName::When if !is_end => match attributes.last(b"test") {
                    None => Err("ESI 1.0 <esi:when> lacks test attr"),
                    // A tag ends with the first `>`, so a test has it as an entity.
                    Some(test) => self.branch_tag(name, is_end, &unescaped(test)),
                },
                TagName::Choose | TagName::When | TagName::Otherwise => self.branch_tag(name, is_end, &[]),
            }),
        };
        if let Err(why) = done {
            self.complain(true, why);
        }
    }

    fn include(&mut self, attributes: &Attributes<'_>) -> Result<(), &'static str> {
        let src = attributes.only(b"src").map_err(|()| "ESI 1.0 <esi:include> has multiple src= attributes")?;
        let alt = attributes.last(b"alt").map(<[u8]>::to_vec);
        let has_variables =
            self.options.has_variables && src.into_iter().chain(alt.as_deref()).any(|text| text.contains(&b'$'));
        if src.is_some_and(|src| src.iter().any(|byte| is_blank(*byte))) {
            return Err("ESI 1.0 <esi:include> has whitespace in src= attribute");
        }
        if !attributes.is_empty_element {
            self.complain(false, "ESI 1.0 <esi:include> lacks final '/'");
        }
        let src = src.ok_or("ESI 1.0 <esi:include> lacks src attr")?.to_vec();
        let is_https = src.starts_with(HTTPS);
        if is_https && !self.options.takes_https {
            self.complain(false, "ESI 1.0 <esi:include> with https:// ignored");
            return Ok(());
        }
        if is_https {
            self.complain(false, "ESI 1.0 <esi:include> https:// treated as http://");
        }
        Target::of(&src, b"/").map_err(|_| "ESI 1.0 <esi:include> invalid src= URL")?;
        let goes_on = attributes.last(b"onerror") == Some(b"continue");
        self.put(Piece::Include(Include { src, alt, has_variables, goes_on }));
        Ok(())
    }

    fn remove(&mut self, is_end: bool, is_empty: bool) -> Result<(), &'static str> {
        match (is_empty, self.removes, is_end) {
            (true, ..) => Err("ESI 1.0 <esi:remove/> not legal"),
            (_, true, false) => Err("ESI 1.0 <esi:remove> already open"),
            (_, false, true) => Err("ESI 1.0 <esi:remove> not open"),
            _ => {
                self.removes = !is_end;
                Ok(())
            }
        }
    }

    /// A tag of what has branches: alternatives, and choices. `test`: of `<esi:when>`.
    fn branch_tag(&mut self, name: TagName, is_end: bool, test: &[u8]) -> Result<(), &'static str> {
        if let (false, Some(begun)) = (is_end, OpenBranches::begun_by(name)) {
            if self.open.len() >= NESTED_MAX {
                return Err("ESI 1.0 <esi:try> or <esi:choose> nested too deep");
            }
            self.open.push(begun);
            return Ok(());
        }
        let Some(open) = self.open.last_mut().filter(|open| open.has(name)) else {
            return Err(OpenBranches::not_open(name));
        };
        if OpenBranches::begun_by(name).is_none() {
            return open.turn(name, is_end, test);
        }
        if let Some(ended) = self.open.pop() {
            self.put(ended.into_piece());
        }
        Ok(())
    }

    /// So many bytes go out, or do not. Returns how many.
    fn mark(&mut self, length: usize, is_kept: bool) -> usize {
        let range = self.at..self.at + length as u64;
        let is_kept = is_kept && !self.removes;
        if !range.is_empty() && is_kept != self.was_kept {
            (self.turned_at, self.was_kept) = (range.start, is_kept);
        }
        self.at = range.end;
        if is_kept && !range.is_empty() {
            self.put_text(range);
        }
        length
    }

    fn put_text(&mut self, range: Range<u64>) {
        let Some(pieces) = self.pieces() else { return };
        if let Some(Piece::Text(last)) = pieces.last_mut()
            && last.end == range.start
        {
            last.end = range.end;
            return;
        }
        self.put(Piece::Text(range));
    }

    fn put(&mut self, piece: Piece) {
        if self.pieces_count >= PIECES_MAX {
            if self.mode != Mode::Plain {
                self.mode = Mode::Plain;
                self.complain(true, "ESI 1.0 too many elements");
            }
            // What is left is text, from here on.
            if !matches!(piece, Piece::Text(_)) {
                return;
            }
        }
        if let Some(pieces) = self.pieces() {
            pieces.push(piece);
            self.pieces_count += 1;
        }
    }

    /// Where pieces go at this place. `None`: nowhere.
    fn pieces(&mut self) -> Option<&mut Vec<Piece>> {
        match self.open.last_mut() {
            None => Some(&mut self.document.pieces),
            Some(open) => open.pieces(),
        }
    }

    fn complain(&mut self, is_error: bool, text: &'static str) {
        if self.document.complaints.len() < COMPLAINTS_MAX {
            self.document.complaints.push(Complaint { after: self.turned_at, is_error, text });
        }
    }
}

/// How many of the last bytes may be the start of this end.
fn begun(bytes: &[u8], end: &[u8]) -> usize {
    (1..end.len()).rev().find(|length| bytes.ends_with(&end[..*length])).unwrap_or(0)
}
