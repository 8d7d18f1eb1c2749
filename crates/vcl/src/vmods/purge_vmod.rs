//! vmods purge and xkey: what is stored goes, or grows old at once, under this request's hash or under tags.

use super::{Arguments, functions};
use crate::evaluation::evaluator::Run;
use crate::host::{Host, Purge, Purged};
use crate::plain_values::{Fault, Plain};

functions! {
    PurgeFunction {
        Hard "hard",
        Soft "soft",
    }
}

functions! {
    XkeyFunction {
        Purge "purge",
        SoftPurge "softpurge",
    }
}

pub fn call<'a, H: Host<'a>>(
    run: &Run<'a, '_, H>,
    function: PurgeFunction,
    given: &Arguments<'_, 'a>,
) -> Result<Plain<'a>, Fault> {
    let how = match function {
        PurgeFunction::Hard => Purge::Hard,
        PurgeFunction::Soft => {
            // A negative time leaves what is there.
            let unless_negative = |index: usize| Some(given.real(index)).filter(|seconds| *seconds >= 0.0);
            Purge::Soft { ttl_s: given.real(0), grace_s: unless_negative(1), keep_s: unless_negative(2) }
        }
    };
    run.host.purge(Purged::This, how).map(counted)
}

/// All tags of a list with commas or blanks between.
pub fn call_xkey<'a, H: Host<'a>>(
    run: &Run<'a, '_, H>,
    function: XkeyFunction,
    given: &Arguments<'_, 'a>,
) -> Result<Plain<'a>, Fault> {
    let how = match function {
        XkeyFunction::Purge => Purge::Hard,
        XkeyFunction::SoftPurge => Purge::Soft { ttl_s: 0.0, grace_s: None, keep_s: None },
    };
    let tags = given.bytes(0).split(|byte| matches!(byte, b',' | b' ' | b'\t'));
    let mut total = 0u64;
    for tag in tags.filter(|tag| !tag.is_empty()) {
        run.spend()?;
        total = total.saturating_add(run.host.purge(Purged::Tag(tag), how)?);
    }
    Ok(counted(total))
}

fn counted(count: u64) -> Plain<'static> {
    Plain::Int(i64::try_from(count).unwrap_or(i64::MAX))
}
