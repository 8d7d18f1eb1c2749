//! What is said on stderr while the proxy runs.

/// Says something on stderr. A closed stderr is no reason to fail.
pub(crate) fn complain(what: std::fmt::Arguments<'_>) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "larder: {what}");
}
