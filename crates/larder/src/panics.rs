//! What a panic says: where it was and why, in one line.
//!
//! A backtrace with names maps the debug info of the whole program, a hundred MB of it, and holds its thread up for a
//! second; a program that serves goes on without. `RUST_BACKTRACE=full` asks for it all the same.

use std::backtrace::Backtrace;

use crate::say::say;

/// From here on.
pub fn are_said_in_a_line() {
    let is_wanted = std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value == "full");
    std::panic::set_hook(Box::new(move |panic| {
        let thread = std::thread::current();
        let (name, at) = (thread.name().unwrap_or("unnamed"), panic.location());
        let at = at.map_or_else(String::new, |at| format!(" at {at}"));
        say!("thread '{name}' panicked{at}: {}", panic.payload_as_str().unwrap_or("it says nothing"));
        if is_wanted {
            say!("{}", Backtrace::force_capture());
        }
    }));
}
