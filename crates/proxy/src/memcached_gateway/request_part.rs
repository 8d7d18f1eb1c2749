//! The part of a request that an operator's setting names: of its path, one of its arguments, one of its fields.

use std::borrow::Cow;

use message::{FieldName, Request};

use crate::memcached_gateway::gateway_settings::RequestPart;

/// A broken escape.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl RequestPart {
    /// As it was sent. `prefix` is the route's path.
    pub(crate) fn of<'a>(&'a self, request: &Request<'a>, prefix: &str) -> Option<&'a [u8]> {
        match self {
            RequestPart::Path => {
                let rest = request.path.strip_prefix(prefix.as_bytes())?;
                Some(rest.strip_prefix(b"/").unwrap_or(rest))
            }
            RequestPart::WholePath => Some(request.path),
            RequestPart::Argument(name) => argument(request.query?, name.as_bytes()),
            RequestPart::Field(name) => {
                let known = FieldName::classify(name.as_bytes());
                request.fields.get_named(known, name.as_bytes())
            }
            RequestPart::Query => Some(request.query.unwrap_or_default()),
            RequestPart::Fixed(text) => Some(text.as_bytes()),
            RequestPart::Host | RequestPart::Joined(_) | RequestPart::Nothing => None,
        }
    }

    /// As nginx's variables have it: a path is decoded, nothing else is.
    pub(crate) fn as_variable<'a>(
        &'a self,
        request: &Request<'a>,
        prefix: &str,
    ) -> Result<Option<Cow<'a, [u8]>>, Malformed> {
        match self {
            RequestPart::Joined(parts) => {
                joined(parts, |part| part.as_variable(request, prefix)).map(|all| Some(Cow::Owned(all)))
            }
            RequestPart::Host => Ok(Some(Cow::Owned(request.authority.host.to_vec()))),
            _ if self.is_of_path() => self.decoded(request, prefix),
            _ => Ok(self.of(request, prefix).map(Cow::Borrowed)),
        }
    }

    /// The same without its escapes, where it has any.
    pub(crate) fn decoded<'a>(
        &'a self,
        request: &Request<'a>,
        prefix: &str,
    ) -> Result<Option<Cow<'a, [u8]>>, Malformed> {
        let is_escaped = matches!(self, RequestPart::Path | RequestPart::WholePath | RequestPart::Argument(_));
        match (self, self.of(request, prefix)) {
            (_, Some(text)) if is_escaped => decode(text).map(Some),
            (RequestPart::Joined(parts), _) => {
                joined(parts, |part| part.decoded(request, prefix)).map(|all| Some(Cow::Owned(all)))
            }
            (RequestPart::Host, _) => Ok(Some(Cow::Owned(request.authority.host.to_vec()))),
            (_, part) => Ok(part.map(Cow::Borrowed)),
        }
    }

    pub(crate) fn is_of_path(&self) -> bool {
        match self {
            RequestPart::Path | RequestPart::WholePath => true,
            RequestPart::Joined(parts) => parts.iter().any(RequestPart::is_of_path),
            _ => false,
        }
    }
}

fn joined<'a>(
    parts: &'a [RequestPart],
    read: impl Fn(&'a RequestPart) -> Result<Option<Cow<'a, [u8]>>, Malformed>,
) -> Result<Vec<u8>, Malformed> {
    let mut all = Vec::new();
    for part in parts {
        all.extend_from_slice(&read(part)?.unwrap_or_default());
    }
    Ok(all)
}

/// The first argument of this name.
pub(crate) fn argument<'a>(query: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    arguments(query, name).next()
}

pub(crate) fn arguments<'a>(query: &'a [u8], name: &[u8]) -> impl Iterator<Item = &'a [u8]> {
    query.split(|&b| b == b'&').filter_map(move |pair| pair.strip_prefix(name)?.strip_prefix(b"="))
}

/// `%xx` once; a plus sign is one.
pub(crate) fn decode(text: &[u8]) -> Result<Cow<'_, [u8]>, Malformed> {
    if !text.contains(&b'%') {
        return Ok(Cow::Borrowed(text));
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        let mut digit = || bytes.next().and_then(|b| char::from(b).to_digit(16)).ok_or(Malformed);
        out.push(match byte {
            b'%' => (digit()? << 4 | digit()?) as u8,
            plain => plain,
        });
    }
    Ok(Cow::Owned(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Result<&[u8], Malformed>) {
        assert_eq!(decode(text.as_bytes()).as_deref(), expect.as_deref(), "{text}");
    }

    #[test]
    fn escapes_are_taken_once() {
        check("plain+x", Ok(b"plain+x"));
        check("a%20b%00%ff", Ok(b"a b\0\xff"));
        check("%2520", Ok(b"%20"));
        for broken in ["%", "a%2", "%zz", "%-1"] {
            check(broken, Err(Malformed));
        }
    }

    #[test]
    fn arguments_are_found_by_their_whole_name() {
        let query = b"xkey=1&key=2&key=3&key&keys=4&empty=";
        assert_eq!(argument(query, b"key"), Some(&b"2"[..]));
        assert_eq!(arguments(query, b"key").collect::<Vec<_>>(), [b"2", b"3"]);
        assert_eq!(argument(query, b"empty"), Some(&b""[..]));
        assert_eq!(argument(query, b"none"), None);
    }
}
