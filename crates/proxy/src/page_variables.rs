//! What the request for a page says, as the variables of ESI name it.

use esi::VariableName;
use message::{FieldName, FieldsView, Request, list_members};

/// The value of a variable, of the part with this key where there is one.
pub(crate) fn value(request: &Request<'_>, name: VariableName, key: Option<&[u8]>) -> Option<Vec<u8>> {
    let said = |name: FieldName| request.fields.get(name);
    let whole = match name {
        VariableName::AcceptLanguage => said(FieldName::AcceptLanguage),
        VariableName::Cookie => return cookie(request.fields, key),
        VariableName::Host => {
            let mut host = Vec::new();
            request.authority.write_to(&mut host);
            return Some(host);
        }
        VariableName::Referer => said(FieldName::Referer),
        VariableName::UserAgent => said(FieldName::UserAgent),
        VariableName::QueryString => request.query,
    }?;
    match (key, name) {
        (None, _) => Some(whole.to_vec()),
        (Some(key), VariableName::QueryString) => valued(whole.split(|byte| *byte == b'&'), key).map(decoded),
        (Some(key), VariableName::AcceptLanguage) => accepted_language(whole, key),
        // What browser it is, and the like, is nobody's guess here.
        (Some(_), _) => None,
    }
}

/// A language that the client takes.
fn accepted_language(said: &[u8], language: &[u8]) -> Option<Vec<u8>> {
    let mut taken = list_members(said).map(|member| member.split(|byte| *byte == b';').next().unwrap_or_default());
    taken.find(|taken| taken.trim_ascii().eq_ignore_ascii_case(language)).map(<[u8]>::to_vec)
}

fn cookie(fields: FieldsView<'_>, key: Option<&[u8]>) -> Option<Vec<u8>> {
    let lines: Vec<&[u8]> = fields.get_all(FieldName::Cookie).collect();
    match key {
        None if lines.is_empty() => None,
        None => Some(lines.join(&b"; "[..])),
        Some(key) => {
            let pairs = lines.into_iter().flat_map(|line| line.split(|byte| *byte == b';').map(<[u8]>::trim_ascii));
            valued(pairs, key).map(<[u8]>::to_vec)
        }
    }
}

/// Of pairs `name=value`, that of the first with this name.
fn valued<'a>(mut pairs: impl Iterator<Item = &'a [u8]>, name: &[u8]) -> Option<&'a [u8]> {
    pairs.find_map(|pair| pair.strip_prefix(name)?.strip_prefix(b"="))
}

/// `%41` and `+` as what they stand for.
fn decoded(mut text: &[u8]) -> Vec<u8> {
    let hex = |digit: u8| char::from(digit).to_digit(16).map(|digit| digit as u8);
    let mut out = Vec::with_capacity(text.len());
    while let [first, rest @ ..] = text {
        text = rest;
        let coded = match (first, rest) {
            (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)).map(|(high, low)| high << 4 | low),
            _ => None,
        };
        match (coded, first) {
            (Some(byte), _) => {
                out.push(byte);
                text = &rest[2..];
            }
            (None, b'+') => out.push(b' '),
            (None, first) => out.push(*first),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use message::{Authority, Fields, Method, Scheme, TargetForm, Version};

    use super::*;

    fn check(name: VariableName, key: Option<&str>, expect: Option<&str>) {
        let mut fields = Fields::default();
        fields.push(FieldName::Cookie, "a=1; id=x=y");
        fields.push(FieldName::Cookie, "b=2");
        fields.push(FieldName::AcceptLanguage, "de;q=0.5, en-GB");
        fields.push(FieldName::UserAgent, "curl/8");
        let request = Request {
            method: Method::Get,
            method_text: b"GET",
            version: Version::Http11,
            form: TargetForm::Origin,
            scheme: Scheme::Http,
            authority: Authority::parse(b"a.test:81", Scheme::Http).unwrap(),
            path: b"/p",
            query: Some(b"q=%3Cb%3e+c&r=%4&ab=1"),
            fields: fields.view(),
        };
        let found = value(&request, name, key.map(str::as_bytes));
        assert_eq!(found, expect.map(|text| text.as_bytes().to_vec()), "{name:?} {key:?}");
    }

    #[test]
    fn a_variable_is_what_the_request_says() {
        check(VariableName::Cookie, Some("id"), Some("x=y"));
        check(VariableName::Cookie, Some("b"), Some("2"));
        check(VariableName::Cookie, Some("i"), None);
        check(VariableName::Cookie, None, Some("a=1; id=x=y; b=2"));
        check(VariableName::Host, None, Some("a.test:81"));
        check(VariableName::QueryString, Some("q"), Some("<b> c"));
        check(VariableName::QueryString, Some("r"), Some("%4"));
        check(VariableName::QueryString, Some("a"), None);
        check(VariableName::QueryString, None, Some("q=%3Cb%3e+c&r=%4&ab=1"));
        check(VariableName::AcceptLanguage, Some("DE"), Some("de"));
        check(VariableName::AcceptLanguage, Some("en"), None);
        check(VariableName::UserAgent, None, Some("curl/8"));
        check(VariableName::UserAgent, Some("browser"), None);
        check(VariableName::Referer, None, None);
    }
}
