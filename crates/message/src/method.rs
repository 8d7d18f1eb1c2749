//! Request methods, and what RFC 9110 §9.2 promises of each.

/// A method; case-sensitive (RFC 9110 §9.1). `Other` is told by its text in [`crate::Request::method_text`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    Get,
    Head,
    Post,
    Put,
    Delete,
    Connect,
    Options,
    Trace,
    Patch,
    /// Not in a registry: the cache operators' verb, as Varnish and Squid understand it.
    Purge,
    Other,
}

impl Method {
    /// Which method the token is.
    #[inline]
    pub fn classify(token: &[u8]) -> Method {
        match token {
            b"GET" => Method::Get,
            b"HEAD" => Method::Head,
            b"POST" => Method::Post,
            b"PUT" => Method::Put,
            b"DELETE" => Method::Delete,
            b"CONNECT" => Method::Connect,
            b"OPTIONS" => Method::Options,
            b"TRACE" => Method::Trace,
            b"PATCH" => Method::Patch,
            b"PURGE" => Method::Purge,
            _ => Method::Other,
        }
    }

    /// RFC 9110 §9.2.1. An unknown method is not known to be safe.
    pub const fn is_safe(self) -> bool {
        matches!(self, Method::Get | Method::Head | Method::Options | Method::Trace)
    }

    /// RFC 9110 §9.2.2.
    pub const fn is_idempotent(self) -> bool {
        self.is_safe() || matches!(self, Method::Put | Method::Delete)
    }
}
