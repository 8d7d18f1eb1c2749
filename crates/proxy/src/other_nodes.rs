//! The other nodes of a fleet, as far as they are told what was invalidated here by other ways than an operator's order: an unsafe method, a
//! client's PURGE, a program. How they are told is not known here, nor how it is carried out (`told_purges.rs`).
//!
//! What is told means the same on every node: URLs as their route leaves them, the words that a program hashes, tags and conditions, but never
//! a key, because each node makes keys under a seed of its own.

use std::pin::Pin;

use cache::Purge;
use message::{Authority, FieldsView, Method, Request, Scheme, TargetForm, Version};

/// Who tells them.
pub trait OtherNodes: Send + Sync {
    /// Are they to hear of what unsafe methods invalidate, and of the groups that responses to these name?
    fn hear_of_unsafe_methods(&self) -> bool;

    /// Tells them as soon as may be. It does not wait, and is called before anything is done here.
    fn tell(&self, what: &ToldInvalidation);

    /// Tells them, and is ready when that is acknowledged as it is configured. The error is a sentence about how far it came.
    fn order(&self, what: &ToldInvalidation) -> Acknowledged;
}

/// What becomes of an order.
pub type Acknowledged = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// What was invalidated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToldInvalidation {
    /// What lies under these URLs, with all its variants (RFC 9111 §4.4).
    Urls(Vec<ToldUrl>),
    /// Cache groups of the origins of these URLs (RFC 9875).
    Groups { of: Vec<ToldUrl>, names: Vec<String> },
    /// What lies under what a program's vcl_hash has hashed.
    Hashed { parts: Vec<u8>, how: Purge },
    /// What carries this word as an xkey.
    Tag { word: Vec<u8>, how: Purge },
    /// What meets these conditions.
    Ban(Vec<u8>),
}

/// A URL by which something is stored: what the client asked for, as its route leaves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldUrl {
    pub scheme: Scheme,
    pub host: Vec<u8>,
    /// `None`: that of the scheme.
    pub port: Option<u16>,
    pub path: Vec<u8>,
    pub query: Option<Vec<u8>>,
    /// It was asked of a proxy, whose pages lie apart.
    pub is_of_proxy: bool,
}

impl ToldUrl {
    pub(crate) fn of(request: &Request<'_>) -> ToldUrl {
        ToldUrl {
            scheme: request.scheme,
            host: request.authority.host.to_vec(),
            port: request.authority.port,
            path: request.path.to_vec(),
            query: request.query.map(<[u8]>::to_vec),
            is_of_proxy: request.form == TargetForm::Absolute,
        }
    }

    /// As one of its node's own.
    pub(crate) fn request(&self) -> Request<'_> {
        Request {
            method: Method::Get,
            method_text: b"GET",
            version: Version::Http11,
            form: if self.is_of_proxy { TargetForm::Absolute } else { TargetForm::Origin },
            scheme: self.scheme,
            authority: Authority { host: (&*self.host).into(), port: self.port },
            path: &self.path,
            query: self.query.as_deref(),
            fields: FieldsView::default(),
        }
    }
}
