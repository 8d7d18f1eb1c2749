//! What a certificate authority is answered when it asks over HTTP whether we are who we say (RFC 8555 §8.3), while an order is under
//! way. It is answered before closed paths, redirects and any policy; every other path, this folder's others included, goes its
//! usual way.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use message::{Method, Request};
use parking_lot::Mutex;

const FOLDER: &[u8] = b"/.well-known/acme-challenge/";

/// Tokens of orders that are under way. All cores share it.
#[derive(Debug, Default)]
pub struct HttpChallenges {
    by_token: Mutex<HashMap<Vec<u8>, Arc<str>>>,
    /// Most of the time there is none, and then a request asks no more than this.
    is_any: AtomicBool,
}

impl HttpChallenges {
    /// From here on whoever asks for the token gets this text.
    pub fn offer(&self, token: &str, text: &str) {
        self.change(|by_token| by_token.insert(token.as_bytes().to_vec(), text.into()));
    }

    pub fn withdraw(&self, token: &str) {
        self.change(|by_token| by_token.remove(token.as_bytes()));
    }

    fn change(&self, change: impl FnOnce(&mut HashMap<Vec<u8>, Arc<str>>) -> Option<Arc<str>>) {
        let mut by_token = self.by_token.lock();
        change(&mut by_token);
        self.is_any.store(!by_token.is_empty(), Ordering::Release);
    }

    /// What this request is answered, if it asks for one of the tokens.
    #[inline]
    pub(crate) fn answer(&self, request: &Request<'_>) -> Option<Arc<str>> {
        if self.is_any.load(Ordering::Acquire) { self.find(request) } else { None }
    }

    #[cold]
    fn find(&self, request: &Request<'_>) -> Option<Arc<str>> {
        let token = request.path.strip_prefix(FOLDER)?;
        let reads = matches!(request.method, Method::Get | Method::Head);
        self.by_token.lock().get(token).filter(|_| reads).cloned()
    }
}
