//! Laws of reading VCL, for any bytes: reading ends without a panic, says something of whatever it refuses, points
//! into the text, and takes time in proportion to its length.

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
}
