//! What changes the bytes of a body on their way: a list of filters, each of which is fed by the one before it.
//!
//! It knows neither sockets nor heads. Bytes are pulled, a bounded piece at a time, so a text that becomes a thousand times what it is takes
//! no more room than any other.

use std::collections::VecDeque;
use std::fmt;

use bytes::Bytes;
use coding::{Bounds, Coding, Decoder, DictionarySource, Encoder, Flaw, GzipCutter, GzipMarks};

use crate::counters::CoreCounters;
use crate::filter_turn::{FilterTurn, instructions_per_byte, is_put_off};
use crate::limits::{FILTER_FLUSHES_MAX, FILTER_PIECE_BYTES};

/// One filter, and what it is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FilterKind {
    /// Takes a coding off.
    Decode(Coding),
    /// Puts a coding on, at this level.
    Encode(Coding, u8),
    /// Says what differs from a dictionary, by this coding and at this level.
    Delta(Coding, u8),
    /// Lets everything by, and sees whether it is in the coding that it says.
    Check(Coding),
    /// Makes of a gzip a piece for a page in gzip.
    Cut,
}

impl FilterKind {
    /// What it takes of memory for a text of so many bytes, or of any.
    pub(crate) fn memory_bytes(self, length: Option<u64>) -> usize {
        match self {
            FilterKind::Encode(coding, level) => coding::encoder_bytes(coding, level, length),
            // zstd has tables of the dictionary beside those of the text.
            FilterKind::Delta(Coding::Zstd, level) => 2 * coding::encoder_bytes(Coding::Zstd, level, length),
            FilterKind::Delta(coding, level) => coding::encoder_bytes(coding, level, length),
            FilterKind::Decode(coding) | FilterKind::Check(coding) => coding::decoder_bytes(coding),
            // It remembers no text, only codes: less than who decodes.
            FilterKind::Cut => coding::decoder_bytes(Coding::Gzip),
        }
    }

    /// Is what comes out something else than what goes in?
    pub(crate) fn changes_bytes(self) -> bool {
        !matches!(self, FilterKind::Check(_))
    }
}

/// Why a body cannot go on, and in which filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FilterFault {
    pub(crate) filter: FilterKind,
    pub(crate) flaw: Flaw,
}

impl fmt::Display for FilterFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.filter {
            FilterKind::Decode(coding) | FilterKind::Check(coding) => {
                write!(f, "a body that is said to be {} cannot be read: {}", coding.name(), self.flaw)
            }
            FilterKind::Delta(coding, _) => {
                write!(f, "a body cannot be made {} by a dictionary: {}", coding.name(), self.flaw)
            }
            FilterKind::Encode(coding, _) => write!(f, "a body cannot be made {}: {}", coding.name(), self.flaw),
            FilterKind::Cut => {
                write!(f, "a part that is said to be gzip cannot be joined with its page: {}", self.flaw)
            }
        }
    }
}

/// What a pull brings.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Filtered {
    /// Never empty.
    Piece(Bytes),
    /// More has to be pushed first.
    Hungry,
    /// The next step costs more than is left of the turn.
    TurnOver,
    End,
}

/// How much went through a filter, when it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FilterTally {
    pub(crate) filter: FilterKind,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
}

/// What is to differ from a dictionary.
pub(crate) struct Delta {
    pub(crate) coding: Coding,
    pub(crate) level: u8,
    /// Of the text, if it is known.
    pub(crate) length: Option<u64>,
    pub(crate) dictionary: DictionarySource,
    pub(crate) dictionary_bytes: usize,
}

impl Delta {
    /// What it takes of memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        let both = self.length.map(|length| length + self.dictionary_bytes as u64);
        FilterKind::Delta(self.coding, self.level).memory_bytes(both)
    }
}

/// The filters of one body, in the order in which its bytes meet them.
pub(crate) struct FilterChain {
    stages: Vec<FilterStage>,
    inbox: VecDeque<Bytes>,
    /// Nothing more will be pushed.
    is_ended: bool,
}

struct FilterStage {
    kind: FilterKind,
    codec: Codec,
    /// What came and was not worked on.
    input: Bytes,
    /// The codec has said all that it can of what it was given.
    is_drained: bool,
    /// Given since the last flush.
    unflushed: u64,
    /// Given, and perhaps not worked on, by a codec that does its work later.
    put_off: u64,
    flushes_count: u32,
    is_over: bool,
    tally: FilterTally,
}

enum Codec {
    Decoder(Decoder),
    Encoder(Encoder),
    Cutter(Box<GzipCutter>),
    /// A check that has seen more than it is to look at.
    LookedAway,
}

impl FilterChain {
    /// `text_bytes`: how long the text is that is coded, if that is known. The error is a codec that could not be set up.
    pub(crate) fn new(
        kinds: &[FilterKind],
        bounds: Bounds,
        text_bytes: Option<u64>,
    ) -> Result<FilterChain, FilterFault> {
        let stages = kinds.iter().map(|kind| FilterStage::new(*kind, bounds, text_bytes)).collect::<Result<_, _>>()?;
        Ok(FilterChain { stages, inbox: VecDeque::new(), is_ended: false })
    }

    /// The same for a body on its way, and counted. The error says why there cannot be such.
    pub(crate) fn counted(
        counters: &CoreCounters,
        kinds: &[FilterKind],
        bounds: Bounds,
        text_bytes: Option<u64>,
    ) -> Result<FilterChain, String> {
        let chain = FilterChain::new(kinds, bounds, text_bytes).map_err(|fault| fault.to_string())?;
        chain.count(counters);
        Ok(chain)
    }

    /// The same with what differs from a dictionary in the end.
    pub(crate) fn counted_delta(
        counters: &CoreCounters,
        kinds: &[FilterKind],
        delta: Delta,
        bounds: Bounds,
    ) -> Result<FilterChain, String> {
        let mut chain = FilterChain::new(kinds, bounds, None).map_err(|fault| fault.to_string())?;
        let Delta { coding, level, length, dictionary, dictionary_bytes } = delta;
        let kind = FilterKind::Delta(coding, level);
        let encoder = Encoder::delta(coding, level, length, dictionary).map(Codec::Encoder);
        let stage = FilterStage::of(kind, encoder).map_err(|fault| fault.to_string())?;
        // Its first step reads all of the dictionary.
        chain.stages.push(FilterStage { put_off: dictionary_bytes as u64, ..stage });
        chain.count(counters);
        Ok(chain)
    }

    fn count(&self, counters: &CoreCounters) {
        for stage in &self.stages {
            let counter = match stage.kind {
                FilterKind::Encode(..) | FilterKind::Delta(..) => &counters.bodies_encoded,
                FilterKind::Decode(_) => &counters.bodies_decoded,
                FilterKind::Check(_) => &counters.codings_checked,
                FilterKind::Cut => &counters.gzips_cut,
            };
            counter.add(1);
        }
    }

    /// Is what comes out as long as what goes in?
    pub(crate) fn keeps_length(&self) -> bool {
        !self.stages.iter().any(|stage| stage.kind.changes_bytes())
    }

    pub(crate) fn push(&mut self, piece: Bytes) {
        debug_assert!(!self.is_ended, "nothing follows an end");
        self.inbox.push_back(piece);
    }

    /// Nothing more will be pushed.
    pub(crate) fn end(&mut self) {
        self.is_ended = true;
    }

    /// The next piece. After `End` or an error it must not be asked again. `flushes`: nothing more comes for now, so who reads along gets
    /// what there is, unless that was so too often.
    pub(crate) fn pull(&mut self, turn: &mut FilterTurn, flushes: bool) -> Result<Filtered, FilterFault> {
        pull(&mut self.stages, &mut self.inbox, turn, (self.is_ended, flushes))
    }

    /// Bytes that were pushed and not worked on.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.inbox.iter().chain(self.stages.iter().map(|stage| &stage.input)).map(Bytes::len).sum()
    }

    /// Where the last filter cut the gzip that went through it, now that all of it has. `None`: that cut none.
    pub(crate) fn gzip_marks(&self) -> Option<GzipMarks> {
        match &self.stages.last()?.codec {
            Codec::Cutter(cutter) => cutter.finish().ok()?,
            Codec::Decoder(_) | Codec::Encoder(_) | Codec::LookedAway => None,
        }
    }

    /// What went through each filter so far.
    pub(crate) fn tallies(&self) -> impl Iterator<Item = FilterTally> {
        self.stages.iter().map(|stage| stage.tally)
    }
}

/// From the last of these stages, which asks the one before it.
fn pull(
    stages: &mut [FilterStage],
    inbox: &mut VecDeque<Bytes>,
    turn: &mut FilterTurn,
    (is_ended, flushes): (bool, bool),
) -> Result<Filtered, FilterFault> {
    let Some((stage, before)) = stages.split_last_mut() else {
        return Ok(match std::iter::from_fn(|| inbox.pop_front()).find(|piece| !piece.is_empty()) {
            Some(piece) => Filtered::Piece(piece),
            None if is_ended => Filtered::End,
            None => Filtered::Hungry,
        });
    };
    let fault = |filter: FilterKind| move |flaw: Flaw| FilterFault { filter, flaw };
    let of_stage = fault(stage.kind);
    loop {
        while !stage.input.is_empty() || !stage.is_drained {
            if !turn.allows(stage.cost_of_work()) {
                return Ok(Filtered::TurnOver);
            }
            if let Some(piece) = stage.work(turn).map_err(of_stage)? {
                return Ok(Filtered::Piece(piece));
            }
        }
        if stage.is_over {
            return Ok(Filtered::End);
        }
        match pull(before, inbox, turn, (is_ended, flushes))? {
            Filtered::Piece(piece) => stage.take(piece),
            Filtered::Hungry if !flushes => return Ok(Filtered::Hungry),
            Filtered::TurnOver => return Ok(Filtered::TurnOver),
            Filtered::Hungry if !stage.has_to_flush() => return Ok(Filtered::Hungry),
            // Whoever is before it says the same when it is asked again.
            Filtered::Hungry | Filtered::End if !turn.allows(stage.cost_of(stage.put_off)) => {
                return Ok(Filtered::TurnOver);
            }
            Filtered::Hungry => {
                let flushed = stage.flush(turn).map_err(of_stage)?;
                return Ok(flushed.map_or(Filtered::Hungry, Filtered::Piece));
            }
            Filtered::End => {
                stage.is_over = true;
                if let Some(piece) = stage.finish(turn).map_err(of_stage)? {
                    return Ok(Filtered::Piece(piece));
                }
            }
        }
    }
}

impl FilterStage {
    fn new(kind: FilterKind, bounds: Bounds, text_bytes: Option<u64>) -> Result<FilterStage, FilterFault> {
        let codec = match kind {
            FilterKind::Decode(coding) | FilterKind::Check(coding) => Decoder::new(coding, bounds).map(Codec::Decoder),
            FilterKind::Encode(coding, level) => Encoder::for_text(coding, level, text_bytes).map(Codec::Encoder),
            // It is nothing without a dictionary.
            FilterKind::Delta(..) => Err(Flaw::Unready),
            FilterKind::Cut => Ok(Codec::Cutter(Box::default())),
        };
        FilterStage::of(kind, codec)
    }

    fn of(kind: FilterKind, codec: Result<Codec, Flaw>) -> Result<FilterStage, FilterFault> {
        Ok(FilterStage {
            kind,
            codec: codec.map_err(|flaw| FilterFault { filter: kind, flaw })?,
            input: Bytes::new(),
            is_drained: true,
            unflushed: 0,
            put_off: 0,
            flushes_count: 0,
            is_over: false,
            tally: FilterTally { filter: kind, bytes_in: 0, bytes_out: 0 },
        })
    }

    fn take(&mut self, piece: Bytes) {
        self.tally.bytes_in += piece.len() as u64;
        self.unflushed += piece.len() as u64;
        self.input = piece;
    }

    /// Instructions for so many bytes of text.
    fn cost_of(&self, bytes: u64) -> u64 {
        bytes.saturating_mul(instructions_per_byte(self.kind))
    }

    /// What the next step costs at most.
    fn cost_of_work(&self) -> u64 {
        match self.codec {
            Codec::Decoder(_) => self.cost_of(FILTER_PIECE_BYTES as u64),
            Codec::LookedAway => 0,
            Codec::Encoder(_) | Codec::Cutter(_) => {
                self.cost_of(self.put_off + self.input.len().min(FILTER_PIECE_BYTES) as u64)
            }
        }
    }

    /// A bounded step of work. `None`: it came to nothing that can be sent yet.
    fn work(&mut self, turn: &mut FilterTurn) -> Result<Option<Bytes>, Flaw> {
        let mut out = Vec::new();
        match &mut self.codec {
            Codec::Decoder(decoder) => {
                let step = match decoder.decode(&self.input, FILTER_PIECE_BYTES, &mut out) {
                    // Nobody is given what becomes of it: it is not worth being looked at any further.
                    Err(Flaw::TooLong | Flaw::TooDense) if matches!(self.kind, FilterKind::Check(_)) => {
                        self.codec = Codec::LookedAway;
                        self.is_drained = true;
                        return Ok(Some(std::mem::take(&mut self.input)));
                    }
                    step => step?,
                };
                turn.spend(self.cost_of(out.len() as u64));
                self.is_drained = step.is_drained;
                let taken = self.input.split_to(step.taken);
                if matches!(self.kind, FilterKind::Check(_)) {
                    self.tally.bytes_out += out.len() as u64;
                    return Ok((!taken.is_empty()).then_some(taken));
                }
            }
            Codec::Encoder(encoder) => {
                let piece = self.input.split_to(self.input.len().min(turn.step_bytes()));
                encoder.encode(&piece, &mut out)?;
                self.put_off += piece.len() as u64;
                if !is_put_off(self.kind) || !out.is_empty() {
                    self.spend_put_off(turn);
                }
            }
            Codec::LookedAway => return Ok(Some(std::mem::take(&mut self.input))),
            Codec::Cutter(cutter) => {
                let piece = self.input.split_to(self.input.len().min(turn.step_bytes()));
                cutter.cut(&piece, &mut out)?;
                turn.spend(self.cost_of(piece.len() as u64));
            }
        }
        Ok(self.said(out))
    }

    /// What was put off has been done.
    fn spend_put_off(&mut self, turn: &mut FilterTurn) {
        turn.spend(self.cost_of(self.put_off));
        self.put_off = 0;
    }

    /// Is there anything for who waits, while nothing more comes for now? Not if that was so too often.
    fn has_to_flush(&self) -> bool {
        matches!(self.codec, Codec::Encoder(_)) && self.unflushed > 0 && self.flushes_count < FILTER_FLUSHES_MAX
    }

    fn flush(&mut self, turn: &mut FilterTurn) -> Result<Option<Bytes>, Flaw> {
        let Codec::Encoder(encoder) = &mut self.codec else { return Ok(None) };
        self.flushes_count += 1;
        self.unflushed = 0;
        let mut out = Vec::new();
        encoder.flush(&mut out)?;
        self.spend_put_off(turn);
        Ok(self.said(out))
    }

    fn finish(&mut self, turn: &mut FilterTurn) -> Result<Option<Bytes>, Flaw> {
        let mut out = Vec::new();
        match &mut self.codec {
            Codec::Decoder(decoder) => decoder.finish()?,
            Codec::Encoder(encoder) => encoder.finish(&mut out)?,
            Codec::Cutter(cutter) => drop(cutter.finish()?),
            Codec::LookedAway => {}
        }
        self.spend_put_off(turn);
        Ok(self.said(out))
    }

    fn said(&mut self, out: Vec<u8>) -> Option<Bytes> {
        self.tally.bytes_out += out.len() as u64;
        (!out.is_empty()).then(|| Bytes::from(out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GZIP: FilterKind = FilterKind::Encode(Coding::Gzip, 6);
    const GUNZIP: FilterKind = FilterKind::Decode(Coding::Gzip);

    fn chain(kinds: &[FilterKind]) -> FilterChain {
        FilterChain::new(kinds, Bounds::default(), None).unwrap()
    }

    /// Whatever it costs.
    fn pull(chain: &mut FilterChain, flushes: bool) -> Result<Filtered, FilterFault> {
        chain.pull(&mut FilterTurn::of_thread(), flushes)
    }

    /// All that comes of these pieces.
    fn through(kinds: &[FilterKind], pieces: &[&[u8]]) -> Result<Vec<u8>, FilterFault> {
        let (mut chain, mut out) = (chain(kinds), Vec::new());
        pieces.iter().for_each(|piece| chain.push(Bytes::copy_from_slice(piece)));
        chain.end();
        loop {
            match pull(&mut chain, false)? {
                Filtered::Piece(piece) => {
                    assert!(!piece.is_empty() && piece.len() <= FILTER_PIECE_BYTES, "{}", piece.len());
                    out.extend_from_slice(&piece);
                }
                Filtered::Hungry | Filtered::TurnOver => panic!("it has all that there is, and time"),
                Filtered::End => return Ok(out),
            }
        }
    }

    #[test]
    fn without_filters_everything_goes_by() {
        assert_eq!(through(&[], &[b"a", b"", b"bc"]), Ok(b"abc".to_vec()));
        assert!(chain(&[]).keeps_length());
    }

    #[test]
    fn each_filter_feeds_the_next() {
        let text = b"again and again and again, ".repeat(5_000);
        let zipped = through(&[GZIP], &[&text[..70_000], &text[70_000..]]).unwrap();
        assert!(zipped.len() < text.len() / 50);
        assert_eq!(through(&[GUNZIP], &[&zipped]).as_ref(), Ok(&text));
        let to_brotli = through(&[GUNZIP, FilterKind::Encode(Coding::Brotli, 5)], &[&zipped]).unwrap();
        assert_eq!(through(&[FilterKind::Decode(Coding::Brotli)], &[&to_brotli]).as_ref(), Ok(&text));
        assert_eq!(through(&[FilterKind::Check(Coding::Gzip)], &[&zipped[..9], &zipped[9..]]), Ok(zipped));
    }

    #[test]
    fn a_gzip_is_cut_for_a_page_as_it_comes() {
        let text = b"again and again and again, ".repeat(5_000);
        let zipped = through(&[GZIP], &[&text]).unwrap();
        let piece = through(&[FilterKind::Cut], &[&zipped[..9], &zipped[9..100], &zipped[100..]]).unwrap();
        let sum = coding::TextSum::of(&text);
        let page = [&coding::GZIP_HEAD[..], &piece, &piece, &coding::page_end(sum.followed_by(sum))].concat();
        assert!(through(&[GUNZIP], &[&page]) == Ok(text.repeat(2)));
        let mut cutting = chain(&[FilterKind::Cut]);
        cutting.push(zipped.into());
        cutting.end();
        while pull(&mut cutting, false).unwrap() != Filtered::End {}
        assert_eq!(cutting.gzip_marks().map(|marks| marks.sum), Some(sum));
        assert_eq!(chain(&[GUNZIP]).gzip_marks(), None);
        let fault = FilterFault { filter: FilterKind::Cut, flaw: Flaw::Corrupt };
        assert_eq!(through(&[FilterKind::Cut], &[b"<html>"]), Err(fault));
    }

    #[test]
    fn an_empty_body_becomes_an_empty_text_in_its_coding() {
        let zipped = through(&[GZIP], &[]).unwrap();
        assert_eq!(zipped[..2], [0x1f, 0x8b]);
        assert_eq!(through(&[GUNZIP], &[&zipped]), Ok(Vec::new()));
        assert_eq!(through(&[GUNZIP], &[]), Ok(Vec::new()));
    }

    #[test]
    fn what_is_said_to_be_coded_and_is_not_is_a_fault_of_that_filter() {
        for filter in [GUNZIP, FilterKind::Check(Coding::Gzip)] {
            let fault = |flaw| Err(FilterFault { filter, flaw });
            assert_eq!(through(&[filter], &[b"<html>"]), fault(Flaw::Corrupt));
            let zipped = through(&[GZIP], &[b"hello"]).unwrap();
            assert_eq!(through(&[filter], &[&zipped[..12]]), fault(Flaw::Truncated));
            assert_eq!(through(&[filter], &[&zipped, b"junk"]), fault(Flaw::JunkBehind));
        }
        let mut bomb = Vec::new();
        let mut encoder = Encoder::new(Coding::Gzip, 9).unwrap();
        (0..600).for_each(|_| encoder.encode(&[0; 32 << 10], &mut bomb).unwrap());
        encoder.finish(&mut bomb).unwrap();
        let (check, more) = (FilterKind::Check(Coding::Gzip), b"that is not looked at");
        let passed = through(&[check], &[&bomb, more]);
        assert_eq!(passed, Ok([&bomb[..], more].concat()), "nobody is given what becomes of it");
        let fault = FilterFault { filter: GUNZIP, flaw: Flaw::TooDense };
        assert_eq!(through(&[GUNZIP], &[&bomb]), Err(fault));
        let said = FilterFault { filter: GUNZIP, flaw: Flaw::Truncated }.to_string();
        assert_eq!(said, "a body that is said to be gzip cannot be read: it ends too early");
    }

    #[test]
    fn who_reads_along_is_given_what_there_is_while_nothing_more_comes() {
        let (mut zip, mut unzip) = (chain(&[GZIP]), chain(&[GUNZIP]));
        for part in [&b"first "[..], b"second "] {
            zip.push(Bytes::from_static(part));
            let mut said = Vec::new();
            while let Filtered::Piece(piece) = pull(&mut zip, true).unwrap() {
                unzip.push(piece);
            }
            while let Filtered::Piece(piece) = pull(&mut unzip, false).unwrap() {
                said.extend_from_slice(&piece);
            }
            assert_eq!(said, part);
        }
        assert_eq!(pull(&mut zip, false), Ok(Filtered::Hungry));
    }

    #[test]
    fn a_body_in_drops_is_not_flushed_for_ever() {
        let (mut zip, mut pieces) = (chain(&[GZIP]), 0);
        for _ in 0..10 * FILTER_FLUSHES_MAX {
            zip.push(Bytes::from_static(b"drop "));
            while let Filtered::Piece(_) = pull(&mut zip, true).unwrap() {
                pieces += 1;
            }
        }
        assert!((FILTER_FLUSHES_MAX..=FILTER_FLUSHES_MAX + 2).contains(&pieces), "{pieces}");
    }

    #[test]
    fn it_is_known_how_much_went_through() {
        let mut zip = chain(&[GZIP]);
        zip.push(Bytes::from_static(b"hello"));
        zip.end();
        let mut made = 0;
        while let Filtered::Piece(piece) = pull(&mut zip, false).unwrap() {
            made += piece.len() as u64;
        }
        let tally = FilterTally { filter: GZIP, bytes_in: 5, bytes_out: made };
        assert_eq!(zip.tallies().collect::<Vec<_>>(), [tally]);
    }
}
