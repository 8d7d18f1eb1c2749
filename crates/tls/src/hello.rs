//! What a client asked for when it came, and what it was shown.
//!
//! rustls tells it to the resolver of certificates and to nobody else, so it lies here for a moment, for the session that drives rustls on
//! this thread.

use std::cell::RefCell;

use crate::certificate::Certificate;

/// The server's name that a client's hello bore, and the certificate that it got for it.
#[derive(Clone, Debug)]
pub(crate) struct Hello {
    /// In lower case.
    pub(crate) server_name: Option<Box<str>>,
    pub(crate) shown: Certificate,
}

thread_local! {
    static LAST: RefCell<Option<Box<Hello>>> = const { RefCell::new(None) };
}

impl Hello {
    pub(crate) fn leave(self) {
        LAST.set(Some(Box::new(self)));
    }

    /// Of the session that has just been driven here.
    pub(crate) fn take() -> Option<Box<Hello>> {
        LAST.take()
    }
}
