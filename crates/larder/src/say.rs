//! What larder says to its operator, on stderr.
//!
//! `eprintln!` panics when stderr is a pipe that nobody reads any more; a server must outlive its terminal.

macro_rules! say {
    ($($word:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "larder: {}", format_args!($($word)*));
    }};
}

pub(crate) use say;
