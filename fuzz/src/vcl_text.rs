//! Laws of reading VCL, for any bytes: reading ends without a panic, says something of whatever it refuses, points
//! into the text, and takes time in proportion to its length. And of formatting it: only blanks change, a second time
//! changes nothing, and the program stays the same. And of taking it for old VCL: it becomes VCL 4, or says what did not.

use vcl::formatting::{Indent, format};
use vcl::old_vcl::{is_present_vcl, translate};
use vcl::typed_program::Program;
use vcl::{Included, NoIncludes, Severity};

/// Panics when a law is broken.
pub fn run(data: &[u8]) {
    let first = Included { name: "fuzz.vcl".to_owned(), bytes: data.to_vec() };
    let checked = vcl::check(first, &NoIncludes);
    let mut errors = 0;
    for diagnostic in &checked.diagnostics {
        let file = checked.sources.file(diagnostic.span.file);
        assert!(diagnostic.span.start <= diagnostic.span.end, "{diagnostic:?}");
        assert!(diagnostic.span.end as usize <= file.bytes.len(), "{diagnostic:?}");
        assert!(!diagnostic.what.is_empty());
        let drawn = vcl::draw(diagnostic, &checked.sources, false);
        assert!(drawn.contains(diagnostic.code.name()) && !drawn.contains('\x1b'), "{drawn}");
        errors += usize::from(diagnostic.severity() == Severity::Error);
    }
    assert!(checked.diagnostics.len() <= vcl::limits::DIAGNOSTICS_MAX);
    assert_eq!(checked.is_good(), errors == 0);
    assert!(!checked.is_good() || !data.starts_with(b"sub"), "a program begins with its version");
    formatting(data, checked.program.as_ref());
    importing(data);
}

/// What is wholly carried over is VCL 4, and whatever is not says so at its place.
fn importing(data: &[u8]) {
    let translated = translate(Included { name: "fuzz.vcl".to_owned(), bytes: data.to_vec() }, None);
    let (is_whole, Some(text)) = (translated.is_whole(), translated.text) else { return };
    assert!(is_present_vcl(&text), "{}", text.escape_ascii());
    let has_comment = text.windows(MARK.len()).any(|window| window == MARK);
    assert!(is_whole || has_comment, "{}", text.escape_ascii());
}

const MARK: &[u8] = b"larder import: not carried over";

fn formatting(data: &[u8], program: Option<&Program>) {
    let file = |bytes: &[u8]| Included { name: "fuzz.vcl".to_owned(), bytes: bytes.to_vec() };
    let formatted = format(file(data), Indent::Spaces(4));
    assert_eq!(formatted.text.is_some(), formatted.diagnostics.is_empty());
    assert!(formatted.text.is_some() || program.is_none(), "a good program is formatted: {:?}", formatted.diagnostics);
    let Some(text) = formatted.text else { return };
    let again = format(file(&text), Indent::Spaces(4));
    assert_eq!(again.text.as_deref(), Some(&text[..]), "{}", text.escape_ascii());
    if let Some(program) = program {
        let after = vcl::check(file(&text), &NoIncludes).program;
        assert_eq!(after.as_ref().map(without_places), Some(without_places(program)), "{}", text.escape_ascii());
    }
}

/// All that the program says; where it says so is another matter.
fn without_places(program: &Program) -> String {
    let shown = format!("{program:?}");
    let mut kept = String::with_capacity(shown.len());
    let mut rest = shown.as_str();
    while let Some((before, after)) = rest.split_once("Span {") {
        kept.push_str(before);
        rest = after.split_once('}').map_or("", |(_, rest)| rest);
    }
    kept.push_str(rest);
    kept
}
