//! What of a query nobody who reads traces is to see: signatures that open what they sign.

use std::borrow::Cow;

/// Whose values OpenTelemetry's conventions want left out.
const SECRET: [&[u8]; 4] = [b"AWSAccessKeyId", b"Signature", b"sig", b"X-Goog-Signature"];

/// The query with what stands in place of them.
pub(crate) fn redacted(query: &[u8]) -> Cow<'_, [u8]> {
    let is_secret =
        |pair: &[u8]| SECRET.iter().any(|name| pair.strip_prefix(*name).is_some_and(|rest| rest.starts_with(b"=")));
    if !query.split(|&byte| byte == b'&').any(is_secret) {
        return Cow::Borrowed(query);
    }
    let shown = query.split(|&byte| byte == b'&').map(|pair| match is_secret(pair) {
        true => {
            let name = pair.split(|&byte| byte == b'=').next().unwrap_or_default();
            [name, b"=REDACTED"].concat()
        }
        false => pair.to_vec(),
    });
    Cow::Owned(shown.collect::<Vec<_>>().join(&b'&'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_left_out_and_all_else_stays() {
        for (query, expect) in [
            ("a=1&b", "a=1&b"),
            ("sig=secret", "sig=REDACTED"),
            ("a=1&Signature=x=y&sig&signature=z", "a=1&Signature=REDACTED&sig&signature=z"),
            ("", ""),
        ] {
            assert_eq!(String::from_utf8_lossy(&redacted(query.as_bytes())), expect);
        }
    }
}
