//! W3C Trace Context: the fields `traceparent` and `tracestate`, as they come and as they go out.
//!
//! What is not well formed is not there: a trace is started in its place, and nothing of it is guessed.

use message::FieldsView;

use crate::traces::trace_ids::{SpanId, TraceId};

pub(crate) const TRACEPARENT: &[u8] = b"traceparent";
pub(crate) const TRACESTATE: &[u8] = b"tracestate";

/// How long a traceparent of version 00 is.
const TRACEPARENT_BYTES: usize = 55;
const SAMPLED: u8 = 1;
/// More members of a tracestate need not be handed on (§3.3.1.1): with more, none is.
const STATE_MEMBERS_MAX: usize = 32;
const STATE_VALUE_BYTES_MAX: usize = 256;

/// What a traceparent says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceParent {
    pub(crate) trace: TraceId,
    /// The span of whoever has sent it.
    pub(crate) span: SpanId,
    /// Whoever has sent it tells of this trace.
    pub(crate) is_sampled: bool,
}

impl TraceParent {
    /// That of a request, if it has one, and one alone.
    pub(crate) fn of(fields: FieldsView<'_>) -> Option<TraceParent> {
        let mut lines = fields.get_all_named(TRACEPARENT);
        let only = lines.next().filter(|_| lines.next().is_none())?;
        TraceParent::parse(only)
    }

    /// `VERSION-TRACE-SPAN-FLAGS` (§3.2). A later version may say more behind that.
    fn parse(value: &[u8]) -> Option<TraceParent> {
        let (said, rest) = value.split_at_checked(TRACEPARENT_BYTES)?;
        let dashes = [2, 35, 52].iter().all(|&at| said[at] == b'-');
        let version = byte(&said[..2]).filter(|version| *version != 0xff)?;
        let is_whole = rest.is_empty() || version > 0 && rest[0] == b'-';
        let flags = byte(&said[53..])?;
        let (trace, span) = (TraceId::parse(&said[3..35])?, SpanId::parse(&said[36..52])?);
        (dashes && is_whole).then_some(TraceParent { trace, span, is_sampled: flags & SAMPLED != 0 })
    }

    /// In version 00, whatever came: the other flags of a later one mean nothing there.
    pub(crate) fn to_bytes(self) -> [u8; TRACEPARENT_BYTES] {
        let mut out = *b"00-00000000000000000000000000000000-0000000000000000-00";
        out[3..35].copy_from_slice(&self.trace.digits());
        out[36..52].copy_from_slice(&self.span.digits());
        out[54] = if self.is_sampled { b'1' } else { b'0' };
        out
    }
}

/// Two lowercase hex digits.
fn byte(digits: &[u8]) -> Option<u8> {
    let are_lowercase = digits.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let text = std::str::from_utf8(digits).ok().filter(|_| are_lowercase)?;
    u8::from_str_radix(text, 16).ok()
}

/// The tracestate of a request, its lines joined (§3.3); `None` if it has none, or something of it is malformed.
pub(crate) fn state_of(fields: FieldsView<'_>) -> Option<Box<[u8]>> {
    let mut joined: Vec<u8> = Vec::new();
    let mut count = 0;
    // A quotation mark quotes nothing here.
    let members = fields.get_all_named(TRACESTATE).flat_map(|line| line.split(|&byte| byte == b','));
    for member in members.map(<[u8]>::trim_ascii).filter(|member| !member.is_empty()) {
        count += 1;
        if count > STATE_MEMBERS_MAX || !is_member(member) {
            return None;
        }
        if !joined.is_empty() {
            joined.push(b',');
        }
        joined.extend_from_slice(member);
    }
    (!joined.is_empty()).then(|| joined.into())
}

/// `KEY=VALUE`
fn is_member(member: &[u8]) -> bool {
    let Some(at) = member.iter().position(|&byte| byte == b'=') else { return false };
    let (key, value) = (&member[..at], &member[at + 1..]);
    let is_value = |byte: &u8| matches!(byte, 0x20..=0x2b | 0x2d..=0x3c | 0x3e..=0x7e);
    is_key(key) && !value.is_empty() && value.len() <= STATE_VALUE_BYTES_MAX && value.iter().all(is_value)
}

/// `SYSTEM`, or `TENANT@SYSTEM`.
fn is_key(key: &[u8]) -> bool {
    let is_rest =
        |rest: &[u8]| rest.iter().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/'));
    let is_name = |name: &[u8], bytes_max: usize, may_begin_with_digit: bool| match name {
        [first, rest @ ..] => {
            (first.is_ascii_lowercase() || may_begin_with_digit && first.is_ascii_digit())
                && name.len() <= bytes_max
                && is_rest(rest)
        }
        [] => false,
    };
    match key.iter().position(|&byte| byte == b'@') {
        None => is_name(key, 256, false),
        Some(at) => is_name(&key[..at], 241, true) && is_name(&key[at + 1..], 14, false),
    }
}

#[cfg(test)]
mod tests {
    use message::Fields;

    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn fields(lines: &[(&str, &str)]) -> Fields {
        let mut fields = Fields::default();
        lines.iter().for_each(|(name, value)| fields.push_named(name.as_bytes(), value.as_bytes()));
        fields
    }

    #[track_caller]
    fn check(value: &str, expect: Option<&str>) {
        let parent = TraceParent::of(fields(&[("Traceparent", value)]).view());
        let shown = parent.map(|parent| String::from_utf8(parent.to_bytes().to_vec()).unwrap());
        assert_eq!(shown.as_deref(), expect, "{value}");
    }

    #[test]
    fn what_is_well_formed_goes_on_in_version_00() {
        check(GOOD, Some(GOOD));
        let unsampled = GOOD.replace("-01", "-00");
        check(&unsampled, Some(&unsampled));
        check(&GOOD.replace("-01", "-ff"), Some(GOOD));
        check(&GOOD.replace("-01", "-02"), Some(&unsampled));
        check(&GOOD.replace("00-", "cc-"), Some(GOOD));
        check(&(GOOD.replace("00-", "01-") + "-what-the-future-brings"), Some(GOOD));
    }

    #[test]
    fn what_is_not_is_not_there() {
        let long = format!("{GOOD}-extra");
        let joined = format!("{},{}", GOOD.replace("00-", "01-"), GOOD);
        for wrong in [
            "",
            "00",
            &GOOD[1..],
            &GOOD[..54],
            &long,
            &joined,
            &GOOD.replace("00-", "ff-"),
            &GOOD.replace("00-", "0G-"),
            &GOOD.replace("00-", "+0-"),
            &GOOD.replace("-01", "-0X"),
            &GOOD.replace("-01", "-0A"),
            &GOOD.replace("0af", "0AF"),
            &GOOD.replace('-', "_"),
            &GOOD.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &GOOD.replace("b7ad6b7169203331", &"0".repeat(16)),
            &(GOOD.replace("00-", "01-") + "."),
        ] {
            check(wrong, None);
        }
        let twice = fields(&[("traceparent", GOOD), ("traceparent", GOOD)]);
        assert_eq!(TraceParent::of(twice.view()), None, "nobody knows which one counts");
        assert_eq!(TraceParent::of(fields(&[]).view()), None);
    }

    #[track_caller]
    fn check_state(lines: &[&str], expect: Option<&str>) {
        let lines: Vec<_> = lines.iter().map(|line| ("TraceState", *line)).collect();
        let state = state_of(fields(&lines).view());
        assert_eq!(state.as_deref().map(|state| std::str::from_utf8(state).unwrap()), expect, "{lines:?}");
    }

    #[test]
    fn a_state_goes_on_in_its_order_or_not_at_all() {
        check_state(&["rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"], Some("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"));
        check_state(&["a=1 , b=2", "", ",", "0t_-*/@sys=!~"], Some("a=1,b=2,0t_-*/@sys=!~"));
        check_state(&["a=\",b=\""], Some("a=\",b=\""));
        for wrong in
            ["a", "=1", "a=", "A=1", "a=1=2", "a b=1", "1a=1", "@sys=1", "t@=1", "t@s@u=1", "a=\t1", "a=\u{e9}"]
        {
            check_state(&["good=1", wrong], None);
        }
        let (most, more) = ("a=1,".repeat(32), "a=1,".repeat(33));
        check_state(&[&most], Some(&most[..most.len() - 1]));
        check_state(&[&more], None);
        let (key, value) = ("k".repeat(256), "v".repeat(256));
        check_state(&[&format!("{key}={value}")], Some(&format!("{key}={value}")));
        check_state(&[&format!("{key}k=1")], None);
        check_state(&[&format!("k={value}v")], None);
        check_state(&[&format!("t@{}=1", "s".repeat(15))], None);
        check_state(&[], None);
    }
}
