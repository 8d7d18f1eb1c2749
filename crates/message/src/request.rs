//! A request: borrowed from the bytes it arrived in, or owned by a transaction.

use std::borrow::Cow;

use crate::{Authority, FieldSpan, FieldsView, Method, Scheme, Version};

/// RFC 9112 §3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetForm {
    Origin,
    /// Resolved into scheme, authority, path and query. What is asked of a proxy keeps it to its end; a server takes it as
    /// origin-form. `path` is `*` where an OPTIONS is about the server as a whole.
    Absolute,
    /// `*`: OPTIONS only; `path` is `*`.
    Asterisk,
    /// `host:port`: CONNECT only; `path` is empty and the authority is the target.
    Authority,
}

/// A request whose bytes somebody else owns. `path` and `query` are the exact bytes that are keyed and forwarded.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    pub method: Method,
    pub method_text: &'a [u8],
    pub version: Version,
    pub form: TargetForm,
    pub scheme: Scheme,
    pub authority: Authority<'a>,
    /// Starts with `/` in origin-form.
    pub path: &'a [u8],
    /// What follows the first `?`; `Some(b"")` for a bare `?`.
    pub query: Option<&'a [u8]>,
    pub fields: FieldsView<'a>,
}

impl TargetForm {
    /// What an absolute-form with this path is to the server that it names (RFC 9112 §3.2.2, §3.2.4).
    #[inline]
    pub fn at_origin(self, path: &[u8]) -> TargetForm {
        match self {
            TargetForm::Absolute if path == b"*" => TargetForm::Asterisk,
            TargetForm::Absolute => TargetForm::Origin,
            form => form,
        }
    }
}

impl Request<'_> {
    /// Path and query as they are forwarded.
    pub fn write_target(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.path);
        if let Some(query) = self.query {
            out.push(b'?');
            out.extend_from_slice(query);
        }
    }

    /// The URL that is asked for: scheme, authority, path and query.
    pub fn write_url(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.scheme.text().as_bytes());
        out.extend_from_slice(b"://");
        self.authority.write_to(out);
        self.write_target(out);
    }

    /// Copies what is borrowed.
    pub fn to_head(&self) -> RequestHead {
        let of_fields = |field: crate::Field<'_>| field.name_text.len() + field.value.len();
        let bytes = self.method_text.len()
            + self.path.len()
            + self.query.map_or(0, <[u8]>::len)
            + self.fields.iter().map(of_fields).sum::<usize>();
        let mut block = Vec::with_capacity(bytes);
        let mut keep = |bytes: &[u8]| {
            let from = block.len();
            block.extend_from_slice(bytes);
            (from as u32, block.len() as u32)
        };
        let method_text = keep(self.method_text);
        let path = keep(self.path);
        let query = self.query.map(&mut keep);
        let mut spans = Vec::with_capacity(self.fields.count());
        for field in self.fields.iter() {
            let name = keep(field.name_text);
            let value = keep(field.value);
            spans.push(FieldSpan {
                name: field.name,
                name_len: field.name_text.len() as u16,
                name_at: name.0,
                value_at: value.0,
                value_len: value.1 - value.0,
            });
        }
        RequestHead {
            method: self.method,
            version: self.version,
            form: self.form,
            scheme: self.scheme,
            host: self.authority.host.as_ref().into(),
            port: self.authority.port,
            method_text,
            path,
            query,
            block: block.into_boxed_slice(),
            spans: spans.into_boxed_slice(),
        }
    }
}

/// A request that a transaction owns. Read it through [`RequestHead::request`].
#[derive(Clone, Debug)]
pub struct RequestHead {
    pub method: Method,
    pub version: Version,
    pub form: TargetForm,
    pub scheme: Scheme,
    host: Box<[u8]>,
    port: Option<u16>,
    method_text: (u32, u32),
    path: (u32, u32),
    query: Option<(u32, u32)>,
    block: Box<[u8]>,
    spans: Box<[FieldSpan]>,
}

impl RequestHead {
    pub fn fields(&self) -> FieldsView<'_> {
        FieldsView::new(&self.block, &self.spans)
    }

    pub fn request(&self) -> Request<'_> {
        let at = |range: (u32, u32)| &self.block[range.0 as usize..range.1 as usize];
        Request {
            method: self.method,
            method_text: at(self.method_text),
            version: self.version,
            form: self.form,
            scheme: self.scheme,
            authority: Authority { host: Cow::Borrowed(&self.host), port: self.port },
            path: at(self.path),
            query: self.query.map(at),
            fields: self.fields(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FieldName, Fields};

    #[test]
    fn an_owned_copy_says_the_same() {
        let mut fields = Fields::default();
        fields.push(FieldName::Host, "T.test");
        fields.push_named(b"X-A", b"1");
        let request = Request {
            method: Method::Get,
            method_text: b"GET",
            version: Version::Http11,
            form: TargetForm::Origin,
            scheme: Scheme::Http,
            authority: Authority::parse(b"T.test:81", Scheme::Http).unwrap(),
            path: b"/a",
            query: Some(b""),
            fields: fields.view(),
        };
        let head = request.to_head();
        let copy = head.request();
        assert_eq!(copy.authority, request.authority);
        assert_eq!((copy.path, copy.query), (request.path, request.query));
        let mut target = Vec::new();
        copy.write_target(&mut target);
        assert_eq!(target, b"/a?");
        assert_eq!(copy.fields.get(FieldName::Host), Some(&b"T.test"[..]));
        assert_eq!(copy.fields.get_all_named(b"x-a").next(), Some(&b"1"[..]));
    }
}
