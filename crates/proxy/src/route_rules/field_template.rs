//! Values with `$variables` in them, by the names that nginx has for them: `https://$host$request_uri`.

use std::borrow::Cow;
use std::io::Write as _;

use message::{FieldName, FieldsView, Request};
use vcl::Groups;

use crate::client_identity::ClientIdentity;
use crate::error_note::RequestId;
use crate::route_rules::cookie_rules;

/// Text and variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldTemplate(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(Box<[u8]>),
    Variable(Variable),
}

/// What stands behind a `$`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Variable {
    Host,
    Scheme,
    /// Path and query.
    RequestUri,
    /// The path alone.
    Uri,
    Args,
    /// `?` where there is a query.
    IsArgs,
    /// `&` and the query, where there is one: behind a query of one's own.
    AndArgs,
    RemoteAddress,
    Method,
    /// Another one each time that it is asked for.
    RequestId,
    /// The name by which a client has been let in.
    RemoteUser,
    Field(Box<str>),
    Cookie(Box<str>),
    Argument(Box<str>),
    /// What a group of the route's `path_pattern` matched.
    Group(usize),
}

/// What a template is put together of, as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplatePiece<'a> {
    Text(&'a [u8]),
    /// The name behind the `$`, in lower case where fields have no other.
    Variable(Cow<'static, str>),
}

/// What the variables stand for.
#[derive(Clone, Copy)]
pub(crate) struct TemplateSource<'a> {
    pub(crate) request: &'a Request<'a>,
    pub(crate) client: std::net::IpAddr,
    pub(crate) user: Option<&'a [u8]>,
    /// Where the groups of a pattern lie in the path.
    pub(crate) groups: Option<&'a Groups>,
}

impl<'a> TemplateSource<'a> {
    /// A request, and who sent it.
    #[inline]
    pub(crate) fn of(request: &'a Request<'a>, client: &ClientIdentity) -> TemplateSource<'a> {
        TemplateSource { request, client: client.ip, user: None, groups: None }
    }
}

impl FieldTemplate {
    /// The error says which variable there is not.
    pub fn parse(written: &str) -> Result<FieldTemplate, String> {
        let (mut pieces, mut rest) = (Vec::new(), written);
        while let Some(at) = rest.find('$') {
            push_text(&mut pieces, &rest[..at]);
            rest = &rest[at + 1..];
            if let Some(behind) = rest.strip_prefix('$') {
                push_text(&mut pieces, "$");
                rest = behind;
                continue;
            }
            let (name, behind) = name_at(rest).ok_or_else(|| format!("`${{` is not closed in `{written}`"))?;
            pieces.push(Piece::Variable(Variable::parse(name)?));
            rest = behind;
        }
        push_text(&mut pieces, rest);
        Ok(FieldTemplate(pieces))
    }

    /// The text itself, whatever is in it.
    pub fn of_text(text: &str) -> FieldTemplate {
        FieldTemplate(if text.is_empty() { Vec::new() } else { vec![Piece::Text(text.as_bytes().into())] })
    }

    /// Is it the same for all, and not empty?
    pub(crate) fn is_text(&self) -> bool {
        matches!(&*self.0, [Piece::Text(_)])
    }

    /// What it is put together of.
    pub fn pieces(&self) -> impl Iterator<Item = TemplatePiece<'_>> {
        self.0.iter().map(|piece| match piece {
            Piece::Text(text) => TemplatePiece::Text(text),
            Piece::Variable(variable) => TemplatePiece::Variable(variable.written()),
        })
    }

    /// Is something in it that only a `path_pattern` gives?
    pub fn has_groups(&self) -> bool {
        self.0.iter().any(|piece| matches!(piece, Piece::Variable(Variable::Group(_))))
    }

    /// Is something in it that only a login gives?
    pub fn has_user(&self) -> bool {
        self.0.contains(&Piece::Variable(Variable::RemoteUser))
    }

    /// Does the URL that is asked for say it all? Whoever asks for that URL gets the same.
    pub(crate) fn is_of_url(&self) -> bool {
        self.0.iter().all(|piece| match piece {
            Piece::Text(_) => true,
            Piece::Variable(variable) => variable.is_of_url(),
        })
    }

    /// Appends the value.
    #[inline]
    pub(crate) fn write(&self, source: &TemplateSource<'_>, out: &mut Vec<u8>) {
        self.0.iter().for_each(|piece| piece.write(source, out));
    }

    /// Appends a URL to lead somebody to. What the request says must not become another host: neither by a path that begins with `//`, nor
    /// behind the host of a template as in `https://example.org$1`.
    pub(crate) fn write_location(&self, source: &TemplateSource<'_>, out: &mut Vec<u8>) {
        let from = out.len();
        let mut ends = Vec::with_capacity(self.0.len());
        for piece in &self.0 {
            piece.write(source, out);
            ends.push(out.len());
        }
        self.keep_host(from, &ends, out);
    }

    /// The same of a page that is told in its query what was asked for: it reads that whole, with all parameters of its own.
    pub(crate) fn write_login(&self, source: &TemplateSource<'_>, out: &mut Vec<u8>) {
        let (from, mut is_in_query, mut value) = (out.len(), false, Vec::new());
        let mut ends = Vec::with_capacity(self.0.len());
        for piece in &self.0 {
            match piece {
                Piece::Variable(variable) if is_in_query => {
                    value.clear();
                    variable.write(source, &mut value);
                    write_encoded(&value, out);
                }
                piece => piece.write(source, out),
            }
            is_in_query |= matches!(piece, Piece::Text(text) if text.contains(&b'?'));
            ends.push(out.len());
        }
        self.keep_host(from, &ends, out);
    }

    /// `ends`: where each piece ends.
    fn keep_host(&self, from: usize, ends: &[usize], out: &mut Vec<u8>) {
        let begins_with_scheme = matches!(self.0.first(), Some(Piece::Variable(Variable::Scheme)));
        let beginning = usize::from(begins_with_scheme);
        let text = match self.0.get(beginning) {
            Some(Piece::Text(text)) => &text[..],
            _ => b"",
        };
        match authority_of(text) {
            Some(authority) => {
                if let Some(at) = self.end_of_authority(beginning, authority, ends)
                    && out.get(at).is_some_and(|byte| !b"/?#".contains(byte))
                {
                    out.insert(at, b'/');
                }
            }
            // Whole URLs are the operator's to write.
            None if !text.starts_with(b"/") && !begins_with_scheme && !out[from..].starts_with(b"/") => {
                out.insert(from, b'/');
            }
            // Browsers take a backslash for a slash, and leave a tab out.
            None => {
                let slashes = out[from..].iter().take_while(|byte| matches!(byte, b'/' | b'\\' | b'\t')).count();
                if slashes > 1 {
                    out.drain(from..from + slashes - 1);
                    out[from] = b'/';
                }
            }
        }
    }

    /// Where the host ends that the template names: before the first piece that the request says, if nothing has ended it before. What the
    /// template says by `$host` is a host, and what is behind `//` first is the operator's to choose.
    fn end_of_authority(&self, beginning: usize, authority: &[u8], ends: &[usize]) -> Option<usize> {
        let ends_it = |text: &[u8]| text.iter().any(|byte| b"/?#".contains(byte));
        if ends_it(authority) {
            return None;
        }
        let mut is_named = !authority.is_empty();
        for (at, piece) in self.0.iter().enumerate().skip(beginning + 1) {
            match piece {
                Piece::Text(text) if ends_it(text) => return None,
                Piece::Text(_) | Piece::Variable(Variable::Host) => is_named = true,
                Piece::Variable(_) if is_named => return Some(ends[at - 1]),
                Piece::Variable(_) => return None,
            }
        }
        None
    }
}

impl Piece {
    #[inline]
    fn write(&self, source: &TemplateSource<'_>, out: &mut Vec<u8>) {
        match self {
            Piece::Text(text) => out.extend_from_slice(text),
            Piece::Variable(variable) => variable.write(source, out),
        }
    }
}

/// What of a text that begins a URL is its host and what follows, if it names one.
fn authority_of(text: &[u8]) -> Option<&[u8]> {
    let at = text.windows(2).position(|two| two == b"//")?;
    (at == 0 || text[..at].ends_with(b":")).then(|| &text[at + 2..])
}

fn push_text(pieces: &mut Vec<Piece>, text: &str) {
    match pieces.last_mut() {
        _ if text.is_empty() => {}
        Some(Piece::Text(before)) => *before = [before, text.as_bytes()].concat().into(),
        _ => pieces.push(Piece::Text(text.as_bytes().into())),
    }
}

/// The variables with names of their own.
pub const VARIABLES: [&str; 12] = [
    "host",
    "scheme",
    "request_uri",
    "uri",
    "args",
    "query_string",
    "is_args",
    "and_args",
    "remote_addr",
    "request_method",
    "request_id",
    "remote_user",
];

/// The name behind a `$`, and what follows. `None`: a brace is not closed.
fn name_at(text: &str) -> Option<(&str, &str)> {
    if let Some(braced) = text.strip_prefix('{') {
        return braced.split_once('}');
    }
    if text.starts_with(|first: char| first.is_ascii_digit()) {
        return Some(text.split_at(1));
    }
    let len = text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
    Some(text.split_at(len))
}

impl Variable {
    fn parse(name: &str) -> Result<Variable, String> {
        let named = |prefix: &str| name.strip_prefix(prefix).filter(|rest| !rest.is_empty());
        Ok(match name {
            "host" => Variable::Host,
            "scheme" => Variable::Scheme,
            "request_uri" => Variable::RequestUri,
            "uri" => Variable::Uri,
            "args" | "query_string" => Variable::Args,
            "is_args" => Variable::IsArgs,
            "and_args" => Variable::AndArgs,
            "remote_addr" => Variable::RemoteAddress,
            "request_method" => Variable::Method,
            "request_id" => Variable::RequestId,
            "remote_user" => Variable::RemoteUser,
            _ => match (named("http_"), named("cookie_"), named("arg_"), name.parse()) {
                (Some(field), ..) => Variable::Field(field.replace('_', "-").into()),
                (_, Some(cookie), ..) => Variable::Cookie(cookie.into()),
                (_, _, Some(argument), _) => Variable::Argument(argument.into()),
                (.., Ok(group @ 0..=9)) => Variable::Group(group),
                _ => return Err(format!("there is no variable `${name}`")),
            },
        })
    }

    /// The name by which it is parsed.
    fn written(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Variable::Host => "host",
            Variable::Scheme => "scheme",
            Variable::RequestUri => "request_uri",
            Variable::Uri => "uri",
            Variable::Args => "args",
            Variable::IsArgs => "is_args",
            Variable::AndArgs => "and_args",
            Variable::RemoteAddress => "remote_addr",
            Variable::Method => "request_method",
            Variable::RequestId => "request_id",
            Variable::RemoteUser => "remote_user",
            Variable::Field(name) => return format!("http_{}", name.to_ascii_lowercase().replace('-', "_")).into(),
            Variable::Cookie(name) => return format!("cookie_{name}").into(),
            Variable::Argument(name) => return format!("arg_{name}").into(),
            Variable::Group(at) => return at.to_string().into(),
        })
    }

    fn is_of_url(&self) -> bool {
        match self {
            Variable::Host
            | Variable::Scheme
            | Variable::RequestUri
            | Variable::Uri
            | Variable::Args
            | Variable::IsArgs
            | Variable::AndArgs
            | Variable::Argument(_)
            | Variable::Group(_) => true,
            Variable::RemoteAddress
            | Variable::Method
            | Variable::RequestId
            | Variable::RemoteUser
            | Variable::Field(_)
            | Variable::Cookie(_) => false,
        }
    }

    fn write(&self, source: &TemplateSource<'_>, out: &mut Vec<u8>) {
        let request = source.request;
        let query = request.query.unwrap_or_default();
        match self {
            Variable::Host => out.extend_from_slice(&request.authority.host),
            Variable::Scheme => out.extend_from_slice(request.scheme.text().as_bytes()),
            Variable::RequestUri => request.write_target(out),
            Variable::Uri => out.extend_from_slice(request.path),
            Variable::Args => out.extend_from_slice(query),
            Variable::IsArgs | Variable::AndArgs if query.is_empty() => {}
            Variable::IsArgs => out.push(b'?'),
            Variable::AndArgs => {
                out.push(b'&');
                out.extend_from_slice(query);
            }
            Variable::RemoteAddress => _ = write!(out, "{}", source.client.to_canonical()),
            Variable::Method => out.extend_from_slice(request.method_text),
            Variable::RequestId => _ = write!(out, "{}", RequestId::next()),
            Variable::RemoteUser => out.extend_from_slice(source.user.unwrap_or_default()),
            Variable::Field(name) => out.extend_from_slice(field(request.fields, name).unwrap_or_default()),
            Variable::Cookie(name) => {
                out.extend_from_slice(cookie_rules::value_of(request.fields, name.as_bytes()).unwrap_or_default());
            }
            Variable::Argument(name) => out.extend_from_slice(argument(query, name.as_bytes()).unwrap_or_default()),
            Variable::Group(at) => {
                let group = source.groups.and_then(|groups| groups[*at]);
                let text = group.and_then(|(from, to)| request.path.get(from..to));
                out.extend_from_slice(text.unwrap_or_default());
            }
        }
    }
}

fn field<'a>(fields: FieldsView<'a>, name: &str) -> Option<&'a [u8]> {
    fields.get_named(FieldName::classify(name.as_bytes()), name.as_bytes())
}

fn argument<'a>(query: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let is_it = |pair: &&[u8]| pair.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest[0] == b'=');
    let pair = query.split(|&byte| byte == b'&').find(is_it)?;
    Some(pair.get(name.len() + 1..).unwrap_or_default())
}

/// As a value in a query: what could end it or mean something there is written in percent.
fn write_encoded(value: &[u8], out: &mut Vec<u8>) {
    for &byte in value {
        match byte.is_ascii_alphanumeric() || b"-._~/:".contains(&byte) {
            true => out.push(byte),
            false => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use message::{Authority, Fields, Method, Scheme, TargetForm, Version};

    use super::*;
    use crate::settings::RoutePattern;

    fn made(template: &str, pattern: Option<&str>, path: &str, is_location: bool) -> String {
        let mut fields = Fields::default();
        fields.push_named(b"X-Lang", b"de");
        fields.push(FieldName::Cookie, "a=1; sid=xyz");
        let request = Request {
            method: Method::Get,
            method_text: b"GET",
            version: Version::Http11,
            form: TargetForm::Origin,
            scheme: Scheme::Https,
            authority: Authority::parse(b"a.test", Scheme::Https).unwrap(),
            path: path.as_bytes(),
            query: Some(b"p=2&idx=8&id=7"),
            fields: fields.view(),
        };
        let groups = pattern.map(|pattern| RoutePattern::new(pattern).unwrap().groups(path.as_bytes()).unwrap());
        let client = "192.0.2.7".parse().unwrap();
        let source = TemplateSource { request: &request, client, user: Some(b"ann"), groups: groups.as_ref() };
        let mut out = Vec::new();
        let template = FieldTemplate::parse(template).unwrap();
        match is_location {
            true => template.write_location(&source, &mut out),
            false => template.write(&source, &mut out),
        }
        String::from_utf8(out).unwrap()
    }

    fn written(template: &str, pattern: Option<&str>, path: &str) -> String {
        made(template, pattern, path, true)
    }

    #[test]
    fn every_variable_of_the_list_is_one() {
        for name in VARIABLES {
            assert!(FieldTemplate::parse(&format!("a${name}")).is_ok(), "{name}");
        }
    }

    #[test]
    fn what_the_url_says_is_told_from_what_its_client_does() {
        let is_of_url = |text: &str| FieldTemplate::parse(text).unwrap().is_of_url();
        assert!(
            ["https://a.test", "$scheme://$host$request_uri", "/x$is_args$args", "$uri/$arg_a"]
                .map(is_of_url)
                .iter()
                .all(|is| *is)
        );
        let of_clients = [
            "$remote_addr",
            "/a/$http_accept_language",
            "/$cookie_a",
            "/$remote_user",
            "/$request_id",
            "$request_method",
        ];
        assert!(!of_clients.map(is_of_url).iter().any(|is| *is));
    }

    #[test]
    fn variables_stand_for_what_the_request_says() {
        for (template, expect) in [
            ("https://$host$request_uri", "https://a.test/a/b?p=2&idx=8&id=7"),
            ("$scheme://x$uri$is_args$args", "https://x/a/b?p=2&idx=8&id=7"),
            ("/x?y=1$and_args", "/x?y=1&p=2&idx=8&id=7"),
            ("${remote_addr}x $request_method", "192.0.2.7x GET"),
            ("$http_x_lang-$cookie_sid-$arg_id-$remote_user", "de-xyz-7-ann"),
            ("cost: 5$$", "cost: 5$"),
            ("$cookie_none$arg_none$http_none", ""),
        ] {
            assert_eq!(made(template, None, "/a/b", false), expect, "{template}");
        }
        assert_eq!(written("/new/$1/$2.html", Some("^/(.)/(.*)$"), "/a/b"), "/new/a/b.html");
    }

    #[test]
    fn no_path_becomes_another_host() {
        assert_eq!(written("$uri/", None, "//evil.test"), "/evil.test/");
        assert_eq!(written("$uri", None, "/\\evil.test"), "/evil.test");
        assert_eq!(written("/$1", Some("^/old/(.*)$"), "/old//evil.test"), "/evil.test");
        assert_eq!(written("https://a.test$1", Some("^/old(.*)$"), "/old@evil.test"), "https://a.test/@evil.test");
        assert_eq!(written("https://a.test$1", Some("^/old(.*)$"), "/old.evil.test"), "https://a.test/.evil.test");
        assert_eq!(written("https://$host$1", Some("^/old(.*)$"), "/old@evil.test"), "https://a.test/@evil.test");
        assert_eq!(
            written("https://$host:8443$1", Some("^/old(.*)$"), "/old@evil.test"),
            "https://a.test:8443/@evil.test"
        );
        assert_eq!(written("$scheme://b.test$1", Some("^/old(.*)$"), "/old.evil.test"), "https://b.test/.evil.test");
        assert_eq!(written("$scheme://$host$1", Some("^/old(.*)$"), "/old/new"), "https://a.test/new");
        assert_eq!(written("$uri", None, "/\t/evil.test"), "/evil.test");
        assert_eq!(written("https://a.test$1", Some("^/old(.*)$"), "/old"), "https://a.test");
        assert_eq!(written("$1", Some("^/go/(.*)$"), "/go/https://evil.test/"), "/https://evil.test/");
        assert_eq!(written("https://www.$host$uri", None, "/x"), "https://www.a.test/x");
        assert_eq!(written("$scheme://$host$uri", None, "/x"), "https://a.test/x");
        assert_eq!(written("//cdn.test$uri", None, "/x"), "//cdn.test/x");
    }

    #[test]
    fn what_is_no_variable_is_said() {
        for (template, expect) in [
            ("$uri_request", "there is no variable `$uri_request`"),
            ("$hots", "there is no variable `$hots`"),
            ("a${host", "`${` is not closed in `a${host`"),
            ("$", "there is no variable `$`"),
            ("$http_", "there is no variable `$http_`"),
        ] {
            assert_eq!(FieldTemplate::parse(template).unwrap_err(), expect);
        }
    }
}
