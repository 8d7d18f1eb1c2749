//! vmod cookie: its functions over the transaction's `CookieJar`.

use super::{Arguments, NOTHING, functions};
use crate::evaluation::evaluator::Run;
use crate::evaluation::text_forms;
use crate::host::Host;
use crate::plain_values::{Fault, Plain};

functions! {
    CookieFunction {
        Clean "clean",
        Delete "delete",
        Filter "filter",
        FilterExcept "filter_except",
        FilterRe "filter_re",
        Keep "keep",
        KeepRe "keep_re",
        FormatDate "format_date",
        FormatRfc1123 "format_rfc1123",
        Get "get",
        GetRe "get_re",
        GetString "get_string",
        IsSet "isset",
        Parse "parse",
        Set "set",
    }
}

pub fn call<'a, H: Host<'a>>(
    run: &Run<'a, '_, H>,
    function: CookieFunction,
    given: &Arguments<'_, 'a>,
) -> Result<Plain<'a>, Fault> {
    use CookieFunction as F;
    let copied = |value: Option<&[u8]>| value.map(|value| run.arena.copy(value)).transpose().map(Plain::Text);
    run.host.task().with_cookies(|jar| {
        match function {
            F::Clean => jar.clean(),
            F::Parse => jar.parse(given.bytes(0))?,
            F::Set => jar.set(given.bytes(0), given.bytes(1))?,
            F::Delete => jar.delete(given.bytes(0)),
            F::Filter => jar.retain_listed(given.bytes(0), false),
            F::Keep | F::FilterExcept => jar.retain_listed(given.bytes(0), true),
            F::FilterRe => jar.retain_matching(given.pattern(0)?, false)?,
            F::KeepRe => jar.retain_matching(given.pattern(0)?, true)?,
            F::IsSet => return Ok(Plain::Bool(jar.get(given.bytes(0)).is_some())),
            F::Get => return copied(jar.get(given.bytes(0))),
            F::GetRe => return copied(jar.get_matching(given.pattern(0)?)?),
            F::GetString => return jar.written(run.arena).map(|header| Plain::Text(Some(header))),
            F::FormatDate | F::FormatRfc1123 => {
                let time = Plain::Time(given.real(0) + given.real(1));
                return text_forms::of_plain(time, run.arena, |_| Ok(b"")).map(Plain::Text);
            }
        }
        Ok(NOTHING)
    })
}
