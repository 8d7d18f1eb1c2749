//! The addresses of a crash report by their names, as far as this program is of the same build and has names in it. For `larder support`,
//! which has the second that it takes; a process that serves has not. It reads what `crash_report` writes.

use std::ffi::c_void;

use crate::build_identity::{BuildIdentity, UNKNOWN};
use crate::crash_report::BACKTRACE;

/// A report, with a line below it for each address that has a name.
pub fn named(report: &str) -> String {
    let Some((sentence, way)) = report.rsplit_once(BACKTRACE) else { return format!("{report}\n") };
    let mut words = way.split(' ').skip(1);
    let (build, identity) = (words.next().unwrap_or_default(), BuildIdentity::of_this_program());
    if build != identity.id || build == UNKNOWN {
        return format!(
            "{report}\n  (another build than this program's, {}: that one can name the addresses)\n",
            identity.id
        );
    }
    let names: String = words.filter_map(|word| named_address(word, identity)).collect();
    format!("{sentence}\n  build {build}\n{names}")
}

/// What is called there, inlined functions too. `None`: no address.
fn named_address(word: &str, identity: &BuildIdentity) -> Option<String> {
    let offset = usize::from_str_radix(word.strip_prefix("0x")?, 16).ok()?;
    let mut lines = String::new();
    // It is where the call returns to: the call is before it.
    let address = identity.mapping.start.checked_add(offset)?.checked_sub(1)?;
    backtrace::resolve(address as *mut c_void, |symbol| {
        let Some(name) = symbol.name() else { return };
        let place = symbol.filename().zip(symbol.lineno());
        let place = place.map_or_else(String::new, |(file, line)| format!(" at {}:{line}", file.display()));
        lines.push_str(&format!("  {word} {name:#}{place}\n"));
    });
    Some(if lines.is_empty() { format!("  {word} (this program has no names: it is stripped)\n") } else { lines })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash_report::report_of;

    #[test]
    fn addresses_of_this_build_have_names() {
        let text = named(&report_of("it panicked"));
        assert!(text.contains(": it panicked\n  build "), "{text}");
        assert!(text.contains("addresses_of_this_build_have_names"), "{text}");
    }

    #[test]
    fn what_is_of_another_build_or_has_no_addresses_stays_as_it_is() {
        let other = format!("it panicked{BACKTRACE}build 00ff 0x10");
        assert!(named(&other).starts_with(&other) && named(&other).contains("another build"));
        assert_eq!(
            named("the serving process 7 was ended by signal 9"),
            "the serving process 7 was ended by signal 9\n"
        );
    }
}
