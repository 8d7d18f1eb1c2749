//! Laws of the content codings, for any bytes: what comes of a text does not depend on how it was cut up, bounds hold, and what was coded
//! comes back. The first byte chooses, the next three draw lots for the cuts.

use coding::{Bounds, Coding, CutBytes, Decoder, Encoder, Flaw, GZIP_HEAD, GzipCutter, GzipMarks, page_end};

/// What a text may become here.
const DECODED_BYTES_MAX: u64 = 256 << 10;
/// The room of one step of whoever decodes all at once.
const ROOM_BYTES: usize = 32 << 10;

/// Panics when a law is broken.
pub fn run(data: &[u8]) {
    let Some(([choice, seed @ ..], text)) = data.split_first_chunk::<4>() else { return };
    let coding = Coding::ALL[usize::from(choice % 3)];
    let mut lots = Lots(u32::from_le_bytes([seed[0], seed[1], seed[2], 1]));
    match choice / 3 % 4 {
        0 => check_round_trip(coding, choice / 12, text, &mut lots),
        1 => {
            check_cuts(coding, Bounds { is_one_text: true, ..bounds() }, text, &mut lots);
            check_cutter(text, &mut lots);
        }
        2 => check_cuts(coding, Bounds { ratio_max: 20, free_bytes: 4 << 10, ..bounds() }, text, &mut lots),
        _ => check_cuts(coding, bounds(), text, &mut lots),
    }
}

fn bounds() -> Bounds {
    Bounds { bytes_max: DECODED_BYTES_MAX, ..Bounds::NONE }
}

/// Numbers that one seed decides.
struct Lots(u32);

impl Lots {
    /// 1 to `most`; small ones are as likely as large ones.
    fn draw(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let bits = usize::BITS - most.leading_zeros();
        let some = (self.0 >> 8) as usize & ((1 << ((self.0 >> 3) % bits + 1)) - 1);
        some.clamp(1, most)
    }
}

/// What was made, and how it ended.
struct Told {
    text: Vec<u8>,
    end: Result<(), Flaw>,
}

/// Decodes pieces, whose lengths the function says, in steps of the room that it says.
fn decode(coding: Coding, bounds: Bounds, mut input: &[u8], mut cut: impl FnMut() -> (usize, usize)) -> Told {
    let mut decoder = Decoder::new(coding, bounds).expect("there is memory");
    let mut text = Vec::new();
    while !input.is_empty() {
        let (piece, room) = cut();
        let mut piece = input.split_off(..piece.min(input.len())).expect("it is no longer than what there is");
        loop {
            let before = text.len();
            let step = match decoder.decode(piece, room, &mut text) {
                Ok(step) => step,
                Err(flaw) => {
                    assert_eq!(text.len(), before, "a step that fails says nothing");
                    return Told { text, end: Err(flaw) };
                }
            };
            assert!(text.len() - before <= room && step.taken <= piece.len());
            assert!(text.len() as u64 <= bounds.bytes_max, "{} bytes", text.len());
            let is_idle = step.taken == 0 && text.len() == before;
            piece = &piece[step.taken..];
            if step.is_drained {
                assert!(piece.is_empty(), "drained, and something is left");
                break;
            }
            assert!(!is_idle, "a step that is not drained does something");
        }
        let taken = text.len() as u64 / bounds.ratio_max;
        assert!(text.len() as u64 <= bounds.free_bytes || taken <= total(&decoder), "{} bytes", text.len());
    }
    Told { text, end: decoder.finish() }
}

/// What the decoder has been given, by its own account.
fn total(decoder: &Decoder) -> u64 {
    let shown = format!("{decoder:?}");
    let digits = shown.split(['(', ' ']).nth(1).and_then(|number| number.parse().ok());
    digits.expect("it says how much it has taken")
}

fn check_cuts(coding: Coding, bounds: Bounds, input: &[u8], lots: &mut Lots) {
    let whole = decode(coding, bounds, input, || (usize::MAX, ROOM_BYTES));
    let cut = decode(coding, bounds, input, || (lots.draw(4 << 10), lots.draw(4 << 10)));
    let (shorter, longer) = if whole.text.len() < cut.text.len() { (&whole, &cut) } else { (&cut, &whole) };
    assert!(longer.text.starts_with(&shorter.text), "{coding:?}: the same bytes say something else");
    match (whole.end, cut.end) {
        (Ok(()), Ok(())) => assert!(whole.text == cut.text, "{coding:?}"),
        // Which fault is seen first depends on the steps: a bound is reached in the step that meets a damage.
        (Err(_), Err(_)) => {}
        (whole, cut) => panic!("{coding:?}: at once {whole:?}, in pieces {cut:?}"),
    }
    if bounds.is_one_text {
        return;
    }
    // Nothing is ever refused for being short.
    if whole.end.is_ok() && bounds.ratio_max == u64::MAX && coding != Coding::Brotli && !input.is_empty() {
        let twice = decode(coding, Bounds::NONE, &[input, input].concat(), || (usize::MAX, ROOM_BYTES));
        assert_eq!(twice.end, Ok(()), "{coding:?}: one text behind another is a text");
        assert!(twice.text == [&whole.text[..], &whole.text].concat());
    }
}

/// What is cut out of a gzip for a page, and where.
type Cut = Result<(Vec<u8>, Option<GzipMarks>), Flaw>;

fn cut_out(mut input: &[u8], mut piece: impl FnMut() -> usize) -> Cut {
    let (mut cutter, mut out) = (GzipCutter::default(), Vec::new());
    while !input.is_empty() {
        cutter.cut(input.split_off(..piece().min(input.len())).expect("it is no longer"), &mut out)?;
    }
    cutter.finish().map(|marks| (out, marks))
}

/// A gzip that a decoder reads is cut for a page, twice here, and the page says what it says, twice.
fn check_cutter(input: &[u8], lots: &mut Lots) {
    let cut = cut_out(input, || usize::MAX);
    match (&cut, cut_out(input, || lots.draw(4 << 10))) {
        (Ok(whole), Ok(pieces)) => assert!(*whole == pieces, "it makes no difference in what pieces it comes"),
        (Err(_), Err(_)) => {}
        (whole, pieces) => panic!("at once {whole:?}, in pieces {pieces:?}"),
    }
    let one_text = Bounds { is_one_text: true, ..bounds() };
    let told = decode(Coding::Gzip, one_text, input, || (usize::MAX, ROOM_BYTES));
    if told.end.is_err() || input.is_empty() {
        return;
    }
    let Ok((piece, Some(marks))) = cut else { panic!("a decoder reads it: {cut:?}") };
    let again = marks.cut(0, input).into_iter().flat_map(|cut| match cut {
        CutBytes::Kept(range) => input[range].to_vec(),
        CutBytes::Changed(bytes) => bytes,
    });
    assert!(again.eq(piece.iter().copied()), "by its marks it is cut the same way");
    let page = [&GZIP_HEAD[..], &piece, &piece, &page_end(marks.sum.followed_by(marks.sum))].concat();
    let page = decode(Coding::Gzip, Bounds { is_one_text: true, ..Bounds::NONE }, &page, || (usize::MAX, ROOM_BYTES));
    assert_eq!(page.end, Ok(()), "{marks:?}");
    assert!(page.text == told.text.repeat(2));
}

fn check_round_trip(coding: Coding, level: u8, text: &[u8], lots: &mut Lots) {
    // The dearest levels are for people who have time.
    let level = if coding == Coding::Gzip { level % 10 } else { level % 7 };
    let mut encoder = Encoder::new(coding, level).expect("there is memory");
    let (mut coded, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let piece = rest.split_off(..lots.draw(8 << 10).min(rest.len())).expect("it is no longer than what there is");
        encoder.encode(piece, &mut coded).expect("a text can be coded");
        if lots.draw(8) == 8 {
            encoder.flush(&mut coded).expect("a text can be flushed");
            let so_far = decode(coding, Bounds::NONE, &coded, || (usize::MAX, ROOM_BYTES));
            assert!(so_far.text == text[..text.len() - rest.len()], "{coding:?} {level}: who reads along has it all");
            assert_eq!(so_far.end, Err(Flaw::Truncated));
        }
    }
    encoder.finish(&mut coded).expect("a text can be ended");
    let bounds = Bounds { is_one_text: true, ..Bounds::NONE };
    let back = decode(coding, bounds, &coded, || (lots.draw(4 << 10), lots.draw(4 << 10)));
    assert_eq!(back.end, Ok(()), "{coding:?} {level}");
    assert!(back.text == text, "{coding:?} {level}: something else came back");
    let short = decode(coding, bounds, &coded[..lots.draw(coded.len()) - 1], || (lots.draw(4 << 10), ROOM_BYTES));
    assert!(text.starts_with(&short.text));
    assert!(short.text.is_empty() || short.end == Err(Flaw::Truncated), "{coding:?} {level}: {:?}", short.end);
    let more = decode(coding, bounds, &[&coded[..], b"\0"].concat(), || (lots.draw(4 << 10), ROOM_BYTES));
    assert_eq!(more.end, Err(Flaw::JunkBehind), "{coding:?} {level}");
}
