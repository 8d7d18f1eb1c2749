//! Patterns that are so simple that no engine is needed: a few texts at the start, at the end, or the whole text.
//!
//! Most patterns of real programs are that: `^/admin`, `\.jpg$`, `^(GET|HEAD)$`.

use regex_syntax::hir::{Class, Hir, HirKind, Look};

/// As many texts are compared one by one.
const TEXTS_MAX: usize = 16;

/// A simple pattern.
#[derive(Debug)]
pub enum Shape {
    Exact(Texts),
    Prefix(Texts),
    Suffix(Texts),
    /// Any of these bytes, anywhere.
    AnyByte(ByteClass),
    /// These bytes and no others, at least so many.
    Only {
        by: ByteClass,
        bytes_min: usize,
    },
    /// A text and then one or more of these bytes, anywhere: `:[0-9]+`.
    Led {
        text: Box<[u8]>,
        by: ByteClass,
    },
}

type ByteClass = Box<[bool; 256]>;

/// One of these, in these letters or in any.
#[derive(Debug)]
pub struct Texts {
    /// In small letters when case does not count.
    texts: Box<[Box<[u8]>]>,
    any_case: bool,
}

impl Shape {
    pub fn of(pattern: &Hir) -> Option<Shape> {
        let parts = match pattern.kind() {
            HirKind::Concat(parts) => parts.as_slice(),
            _ => std::slice::from_ref(pattern),
        };
        let is = |part: Option<&Hir>, look| part.is_some_and(|part| *part.kind() == HirKind::Look(look));
        let (start, end) = (is(parts.first(), Look::Start), is(parts.last(), Look::End));
        let inner = parts.get(usize::from(start)..parts.len() - usize::from(end))?;
        match (start, end) {
            (true, true) => Texts::of(inner).map(Shape::Exact).or_else(|| only(inner)),
            (true, false) => Texts::of(inner).map(Shape::Prefix),
            (false, true) => Texts::of(inner).map(Shape::Suffix),
            (false, false) => match inner {
                [only] => class_of(only).map(Shape::AnyByte),
                [text, repeated] => led(text, repeated),
                _ => None,
            },
        }
    }

    #[inline]
    pub fn is_match(&self, text: &[u8]) -> bool {
        match self {
            Shape::Exact(texts) => texts.any(|known| texts.same(text, known)),
            Shape::Prefix(texts) => {
                texts.any(|known| text.get(..known.len()).is_some_and(|start| texts.same(start, known)))
            }
            Shape::Suffix(texts) => {
                texts.any(|known| text.len() >= known.len() && texts.same(&text[text.len() - known.len()..], known))
            }
            Shape::AnyByte(bytes) => text.iter().any(|byte| bytes[usize::from(*byte)]),
            Shape::Only { by, bytes_min } => text.len() >= *bytes_min && text.iter().all(|byte| by[usize::from(*byte)]),
            Shape::Led { text: lead, by } => find_led(lead, by, text, 0).is_some(),
        }
    }

    /// Where the first match from there on is; the outer `None` is for shapes that do not tell.
    #[inline]
    pub fn find(&self, text: &[u8], from: usize) -> Option<Option<(usize, usize)>> {
        match self {
            Shape::Led { text: lead, by } => Some(find_led(lead, by, text, from)),
            _ => None,
        }
    }
}

impl Texts {
    fn of(parts: &[Hir]) -> Option<Texts> {
        let branches: Vec<&[Hir]> = match parts {
            [only] => match stripped(only).kind() {
                HirKind::Alternation(branches) => branches.iter().map(std::slice::from_ref).collect(),
                HirKind::Concat(parts) => vec![parts.as_slice()],
                _ => vec![parts],
            },
            _ => vec![parts],
        };
        if branches.len() > TEXTS_MAX {
            return None;
        }
        let (mut texts, mut is_exact, mut is_any_case) = (Vec::new(), false, false);
        for branch in branches {
            let mut text = Vec::new();
            for part in branch {
                literal(part, &mut text, &mut is_exact, &mut is_any_case)?;
            }
            texts.push(text.into_boxed_slice());
        }
        // Letters in both manners: left to an engine.
        (!(is_exact && is_any_case)).then(|| Texts { texts: texts.into(), any_case: is_any_case })
    }

    #[inline]
    fn any(&self, test: impl Fn(&[u8]) -> bool) -> bool {
        self.texts.iter().any(|known| test(known))
    }

    #[inline]
    fn same(&self, text: &[u8], known: &[u8]) -> bool {
        if self.any_case { text.eq_ignore_ascii_case(known) } else { text == known }
    }
}

fn stripped(part: &Hir) -> &Hir {
    match part.kind() {
        HirKind::Capture(capture) => stripped(&capture.sub),
        _ => part,
    }
}

/// Adds what the part stands for, if that is one text.
fn literal(part: &Hir, text: &mut Vec<u8>, is_exact: &mut bool, is_any_case: &mut bool) -> Option<()> {
    match stripped(part).kind() {
        HirKind::Literal(bytes) => {
            *is_exact |= bytes.0.iter().any(u8::is_ascii_alphabetic);
            text.extend_from_slice(&bytes.0);
            Some(())
        }
        HirKind::Concat(parts) => parts.iter().try_for_each(|part| literal(part, text, is_exact, is_any_case)),
        // A letter in both cases.
        HirKind::Class(Class::Bytes(class)) => match class.ranges() {
            [upper, lower]
                if upper.start() == upper.end()
                    && lower.start() == lower.end()
                    && upper.start().is_ascii_uppercase()
                    && upper.start().to_ascii_lowercase() == lower.start() =>
            {
                *is_any_case = true;
                text.push(lower.start());
                Some(())
            }
            _ => None,
        },
        _ => None,
    }
}

fn class_of(part: &Hir) -> Option<ByteClass> {
    let HirKind::Class(Class::Bytes(class)) = stripped(part).kind() else { return None };
    let mut bytes = Box::new([false; 256]);
    for range in class.iter() {
        (range.start()..=range.end()).for_each(|byte| bytes[usize::from(byte)] = true);
    }
    Some(bytes)
}

/// One class, repeated without an upper limit.
fn only(parts: &[Hir]) -> Option<Shape> {
    let [part] = parts else { return None };
    let HirKind::Repetition(repeated) = stripped(part).kind() else { return None };
    let by = class_of(&repeated.sub).filter(|_| repeated.max.is_none())?;
    Some(Shape::Only { by, bytes_min: repeated.min as usize })
}

/// Without groups, which whoever finds it might ask for.
fn led(text: &Hir, repeated: &Hir) -> Option<Shape> {
    let (HirKind::Literal(text), HirKind::Repetition(repeated)) = (text.kind(), repeated.kind()) else { return None };
    let takes_all = repeated.min == 1 && repeated.max.is_none() && repeated.greedy;
    let is_class = matches!(repeated.sub.kind(), HirKind::Class(_));
    let by = if takes_all && is_class { class_of(&repeated.sub) } else { None };
    by.map(|by| Shape::Led { text: text.0.clone(), by })
}

fn find_led(lead: &[u8], by: &ByteClass, text: &[u8], from: usize) -> Option<(usize, usize)> {
    let (&first, rest) = lead.split_first()?;
    let mut at = from;
    loop {
        at += text.get(at..)?.iter().position(|byte| *byte == first)?;
        if text[at + 1..].starts_with(rest) {
            let begin = at + lead.len();
            let count = text[begin..].iter().take_while(|byte| by[usize::from(**byte)]).count();
            if count > 0 {
                return Some((at, begin + count));
            }
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::pattern::{Groups, Pattern};

    /// A pattern of that shape finds what the same in brackets finds, which has none.
    #[test]
    fn a_text_and_a_run_of_bytes_is_found_where_the_engine_finds_it() {
        let texts = ["", ":", "a:80", "a:80:90", "::1", "a:b:7c", "xyx", "xyxy12", "xyxyyx", ":0:"];
        for (written, text, from) in [":[0-9]+", "xy[xy]+", "xy[0-9]+"].iter().flat_map(|written| {
            texts.iter().flat_map(move |text| (0..=text.len()).map(move |from| (written, text, from)))
        }) {
            let (shaped, other) = (Pattern::new(written.as_bytes()), Pattern::new(format!("({written})").as_bytes()));
            assert!(shaped.has_shape() && !other.has_shape());
            let find = |pattern: &Pattern| {
                let mut groups = Groups::default();
                let found = pattern.find(text.as_bytes(), from, false, false, &mut groups).expect("it is short");
                found.then_some(groups[0])
            };
            assert_eq!(find(&shaped), find(&other), "{written} in {text} from {from}");
            let matches = |pattern: &Pattern| pattern.is_match(text.as_bytes()).expect("it is short");
            assert_eq!(matches(&shaped), matches(&other), "{written} in {text}");
        }
    }
}
