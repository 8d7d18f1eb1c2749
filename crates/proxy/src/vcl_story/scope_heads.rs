//! The two kinds of messages while a program looks at them: a request and a response, borrowed, with what was changed.

use std::cell::Cell;

use message::{Authority, FieldsView, Method, Request, RequestHead, ResponseHead, Status, TargetForm, Version};
use vcl::{Arena, Fault};

use crate::vcl_story::head_edits::EditedHead;

/// `req` or `bereq`.
#[derive(Debug)]
pub(crate) struct RequestHalf<'a> {
    pub(crate) method: Cell<&'a [u8]>,
    /// Path and query.
    pub(crate) url: Cell<&'a [u8]>,
    pub(crate) fields: EditedHead<'a>,
    version: Version,
    is_changed: Cell<bool>,
}

impl<'a> RequestHalf<'a> {
    /// The fault: no room for the URL.
    pub(crate) fn of(request: &Request<'a>, arena: &'a Arena) -> Result<RequestHalf<'a>, Fault> {
        Ok(RequestHalf::with_url(request, url_of(request, arena)?))
    }

    #[inline(always)]
    pub(crate) fn with_url(request: &Request<'a>, url: &'a [u8]) -> RequestHalf<'a> {
        RequestHalf {
            method: Cell::new(request.method_text),
            url: Cell::new(url),
            fields: EditedHead::new(request.fields),
            version: request.version,
            is_changed: Cell::new(false),
        }
    }

    /// No message.
    pub(crate) fn none() -> RequestHalf<'a> {
        RequestHalf {
            method: Cell::new(b""),
            url: Cell::new(b""),
            fields: EditedHead::new(FieldsView::default()),
            version: Version::Http11,
            is_changed: Cell::new(false),
        }
    }

    /// As it was before any program saw it.
    pub(crate) fn rollback(&self, to: &Request<'a>, arena: &'a Arena) -> Result<(), Fault> {
        self.method.set(to.method_text);
        self.url.set(url_of(to, arena)?);
        self.fields.reset(to.fields);
        self.is_changed.set(true);
        Ok(())
    }

    pub(crate) fn set_method(&self, method: &'a [u8]) {
        self.method.set(method);
        self.is_changed.set(true);
    }

    pub(crate) fn set_url(&self, url: &'a [u8]) {
        self.url.set(url);
        self.is_changed.set(true);
    }

    pub(crate) fn proto(&self) -> &'static [u8] {
        proto(self.version)
    }

    pub(crate) fn is_changed(&self) -> bool {
        self.is_changed.get() || self.fields.is_edited()
    }

    /// A copy, as it stands now. What is not in the program's hands is that of `like`.
    pub(crate) fn to_head(&self, like: &Request<'_>) -> RequestHead {
        let fields = self.fields.to_fields();
        let view = fields.view();
        let host = view.get(message::FieldName::Host);
        let authority = host.and_then(|host| Authority::parse(host, like.scheme)).unwrap_or(Authority::EMPTY);
        let url = self.url.get();
        let (path, query) = match url.iter().position(|&byte| byte == b'?') {
            Some(at) => (&url[..at], Some(&url[at + 1..])),
            None => (url, None),
        };
        let form = if path == b"*" { TargetForm::Asterisk } else { TargetForm::Origin };
        let method_text = self.method.get();
        let method = Method::classify(method_text);
        let (version, scheme) = (like.version, like.scheme);
        Request { method, method_text, version, form, scheme, authority, path, query, fields: view }.to_head()
    }
}

/// Path and query in one; of a CONNECT, host and port.
pub(crate) fn url_of<'a>(request: &Request<'a>, arena: &'a Arena) -> Result<&'a [u8], Fault> {
    if request.form == TargetForm::Authority {
        let mut url = Vec::new();
        request.authority.write_to(&mut url);
        return arena.copy(&url);
    }
    match request.query {
        None => Ok(request.path),
        Some(query) => arena.join(&[request.path, b"?", query]),
    }
}

fn proto(version: Version) -> &'static [u8] {
    match version {
        Version::Http10 => b"HTTP/1.0",
        Version::Http11 => b"HTTP/1.1",
        Version::Http2 => b"HTTP/2.0",
    }
}

/// `resp` or `beresp`; and, read only, `obj`.
#[derive(Debug)]
pub(crate) struct ResponseHalf<'a> {
    pub(crate) status: Cell<u16>,
    /// What the program set; the usual words if nothing.
    pub(crate) reason: Cell<Option<&'a [u8]>>,
    pub(crate) fields: EditedHead<'a>,
    version: Version,
}

/// A response as a program left it.
#[derive(Debug)]
pub(crate) struct MadeHead {
    pub(crate) head: ResponseHead,
    /// Above 999 for those who do not send it.
    pub(crate) status: u16,
}

impl<'a> ResponseHalf<'a> {
    pub(crate) fn new(status: u16, version: Version, fields: FieldsView<'a>) -> ResponseHalf<'a> {
        let (status, reason) = (Cell::new(status), Cell::new(None));
        ResponseHalf { status, reason, fields: EditedHead::new(fields), version }
    }

    /// Another response from here on.
    pub(crate) fn begin(&self, status: u16, reason: Option<&'a [u8]>, fields: FieldsView<'a>) {
        self.status.set(status);
        self.reason.set(reason);
        self.fields.reset(fields);
    }

    pub(crate) fn none() -> ResponseHalf<'a> {
        ResponseHalf::new(0, Version::Http11, FieldsView::default())
    }

    pub(crate) fn proto(&self) -> &'static [u8] {
        proto(self.version)
    }

    pub(crate) fn reason_text(&self) -> &'a [u8] {
        self.reason.get().unwrap_or_else(|| usual_reason(self.status.get()))
    }

    pub(crate) fn to_made(&self) -> MadeHead {
        let (status, version) = (Status(sent_status(self.status.get())), self.version);
        MadeHead {
            head: ResponseHead {
                status,
                version,
                reason: self.reason.get().map(Into::into),
                fields: self.fields.to_fields(),
            },
            status: self.status.get(),
        }
    }
}

/// What everybody calls a status.
pub(crate) fn usual_reason(status: u16) -> &'static [u8] {
    match Status(sent_status(status)).reason() {
        "" => b"Unknown HTTP Status",
        reason => reason.as_bytes(),
    }
}

/// A program may use numbers above 999 to tell its own cases apart; the last three digits go out.
pub(crate) fn sent_status(status: u16) -> u16 {
    if status > 999 { status % 1_000 } else { status }
}

#[cfg(test)]
mod tests {
    use super::*;
    use message::{Fields, Scheme};

    fn request<'a>(fields: &'a Fields, query: Option<&'a [u8]>) -> Request<'a> {
        Request {
            method: Method::Get,
            method_text: b"GET",
            version: Version::Http11,
            form: TargetForm::Origin,
            scheme: Scheme::Http,
            authority: Authority::EMPTY,
            path: b"/a",
            query,
            fields: fields.view(),
        }
    }

    #[test]
    fn a_request_is_copied_as_the_program_left_it() {
        let (fields, arena) = (Fields::default(), Arena::default());
        let base = request(&fields, Some(b"x=1"));
        let half = RequestHalf::of(&base, &arena).unwrap();
        assert_eq!(half.url.get(), b"/a?x=1");
        assert!(!half.is_changed());
        half.set_url(b"/b?");
        half.fields.set(crate::vcl_story::field_bits::Name::of(b"Host"), b"T.test:80");
        let head = half.to_head(&base);
        let copy = head.request();
        assert_eq!((copy.path, copy.query), (&b"/b"[..], Some(&b""[..])));
        assert_eq!((&*copy.authority.host, copy.authority.port), (&b"t.test"[..], None));
        half.rollback(&base, &arena).unwrap();
        assert_eq!((half.url.get(), half.to_head(&base).fields().count()), (&b"/a?x=1"[..], 0));
    }

    #[test]
    fn a_status_above_999_goes_out_as_its_last_digits() {
        let half = ResponseHalf::none();
        half.status.set(1404);
        assert_eq!(half.to_made().head.status, Status(404));
        assert_eq!(half.reason_text(), b"Not Found");
        half.reason.set(Some(b"Gone fishing"));
        assert_eq!(half.to_made().head.reason.as_deref(), Some(&b"Gone fishing"[..]));
    }
}
