//! The request target: its four forms (RFC 9112 §3.2) resolved into scheme, authority, path and query.
//!
//! Called once per request by `request_head`. The bytes of path and query are never changed: they are what is
//! keyed and forwarded.

use message::{Authority, Method, Scheme, TargetForm};

use crate::{Refusal, refusals};

/// A resolved target.
pub(crate) struct Target<'a> {
    pub form: TargetForm,
    /// With the port as it was given. `None` in origin-form and asterisk-form: Host says it.
    pub authority: Option<Authority<'a>>,
    pub path: &'a [u8],
    pub query: Option<&'a [u8]>,
}

/// `scheme` is that of the connection, or what a trusted proxy said of it.
#[inline]
pub(crate) fn resolve_target(target: &[u8], method: Method, scheme: Scheme) -> Result<Target<'_>, Refusal> {
    if target.first() == Some(&b'/') && method != Method::Connect {
        let (path, query) = split_query(target)?;
        return Ok(Target { form: TargetForm::Origin, authority: None, path, query });
    }
    resolve_other_form(target, method, scheme)
}

fn resolve_other_form(target: &[u8], method: Method, scheme: Scheme) -> Result<Target<'_>, Refusal> {
    check_bytes(target)?;
    match method {
        Method::Connect => resolve_authority_form(target),
        Method::Options if target == b"*" => {
            Ok(Target { form: TargetForm::Asterisk, authority: None, path: target, query: None })
        }
        _ => resolve_absolute_form(target, method, scheme),
    }
}

/// RFC 9112 §3.2.3: host and port, both needed. The port is kept even where it is some scheme's default.
fn resolve_authority_form(target: &[u8]) -> Result<Target<'_>, Refusal> {
    if target.first() == Some(&b'/') {
        return Err(refusals::TARGET_FORM);
    }
    let authority = parse_authority(target)?;
    if authority.port.is_none() {
        return Err(refusals::TARGET_AUTHORITY_INVALID);
    }
    Ok(Target { form: TargetForm::Authority, authority: Some(authority), path: b"", query: None })
}

/// RFC 9112 §3.2.2: the target's authority replaces Host.
fn resolve_absolute_form(target: &[u8], method: Method, scheme: Scheme) -> Result<Target<'_>, Refusal> {
    let scheme_end = target.windows(3).position(|w| w == b"://").ok_or(refusals::TARGET_FORM)?;
    let (scheme_text, rest) = (&target[..scheme_end], &target[scheme_end + 3..]);
    let is = |known: Scheme| scheme_text.eq_ignore_ascii_case(known.text().as_bytes());
    if !is(scheme) {
        let known = is(Scheme::Http) || is(Scheme::Https);
        return Err(if known { refusals::TARGET_SCHEME_MISMATCH } else { refusals::TARGET_SCHEME_UNSUPPORTED });
    }
    let authority_end = rest.iter().position(|b| matches!(b, b'/' | b'?')).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(authority_end);
    let authority = Some(parse_authority(authority)?);
    let (path, query) = split_query(rest)?;
    match path {
        // RFC 9112 §3.2.4: the last proxy turns this into the asterisk-form.
        b"" if method == Method::Options && query.is_none() => {
            Ok(Target { form: TargetForm::Absolute, authority, path: b"*", query })
        }
        b"" => Ok(Target { form: TargetForm::Absolute, authority, path: b"/", query }),
        _ => Ok(Target { form: TargetForm::Absolute, authority, path, query }),
    }
}

fn parse_authority(text: &[u8]) -> Result<Authority<'_>, Refusal> {
    if text.contains(&b'@') {
        return Err(refusals::TARGET_USERINFO);
    }
    Authority::parse_as_given(text).ok_or(refusals::TARGET_AUTHORITY_INVALID)
}

/// Splits at the first `?`, looking at each byte once.
#[inline(always)]
fn split_query(target: &[u8]) -> Result<(&[u8], Option<&[u8]>), Refusal> {
    let path_bytes = target.iter().take_while(|b| TARGET_BYTES[usize::from(**b)] == PLAIN).count();
    let (path, rest) = target.split_at(path_bytes);
    match rest {
        [] => Ok((path, None)),
        [b'?', query @ ..] if query.iter().all(|b| TARGET_BYTES[usize::from(*b)] != FOREIGN) => Ok((path, Some(query))),
        _ => Err(why_foreign(target)),
    }
}

fn check_bytes(target: &[u8]) -> Result<(), Refusal> {
    let foreign = target.iter().any(|b| TARGET_BYTES[usize::from(*b)] == FOREIGN);
    if foreign { Err(why_foreign(target)) } else { Ok(()) }
}

#[cold]
fn why_foreign(target: &[u8]) -> Refusal {
    if target.contains(&b'#') { refusals::TARGET_FRAGMENT } else { refusals::TARGET_INVALID }
}

const PLAIN: u8 = 0;
const QUERY_ONLY: u8 = 1;
const FOREIGN: u8 = 2;

/// httparse lets any visible or high byte through. Foreign are: what is not ASCII, the fragment, and the quotes and angle
/// brackets that no URI holds. The rest of what RFC 3986 leaves out (`{}|^` and the backquote) is sent raw by browsers
/// in queries and delimits nothing for anyone, so it passes as it is. A backslash, too, they send raw in queries; in a
/// path some readers take it for a slash.
static TARGET_BYTES: [u8; 256] = {
    let mut kinds = [FOREIGN; 256];
    let mut b = 0;
    while b < 256 {
        match b as u8 {
            b'#' | b'"' | b'<' | b'>' => {}
            b'?' | b'\\' => kinds[b] = QUERY_ONLY,
            b'!'..=b'~' => kinds[b] = PLAIN,
            _ => {}
        }
        b += 1;
    }
    kinds
};
