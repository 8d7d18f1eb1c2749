//! What the `Connection` fields of one head say (RFC 9110 §7.6.1).
//!
//! Both kinds of head are read with it, to decide on persistence and upgrades. Which fields may be forwarded is
//! the business of `hop_by_hop`.

use message::{FieldName, Version, list_members};

use crate::limits::CONNECTION_OPTIONS_MAX;
use crate::{Refusal, refusals};

#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct ConnectionOptions {
    close: bool,
    keep_alive: bool,
    pub(crate) upgrade: bool,
    options_count: usize,
}

impl ConnectionOptions {
    /// One field line of a request, where an option must be a token and must not take away what frames or routes
    /// the message: whoever forwards it would read another message than we did.
    #[inline]
    pub(crate) fn take_from_request(&mut self, value: &[u8]) -> Result<(), Refusal> {
        if value.eq_ignore_ascii_case(b"keep-alive") {
            self.keep_alive = true;
            return Ok(());
        }
        self.take_list(value, |option| {
            if !is_token(option) {
                return Err(refusals::CONNECTION_INVALID);
            }
            match FieldName::classify(option) {
                FieldName::ContentLength | FieldName::TransferEncoding | FieldName::Host => {
                    Err(refusals::CONNECTION_NAMES_FRAMING)
                }
                _ => Ok(()),
            }
        })
    }

    /// One field line of a response. Our own framing replaces whatever the option names.
    #[inline]
    pub(crate) fn take_from_response(&mut self, value: &[u8]) -> Result<(), Refusal> {
        self.take_list(value, |_| Ok(())).map_err(Refusal::of_origin)
    }

    fn take_list(&mut self, value: &[u8], judge: impl Fn(&[u8]) -> Result<(), Refusal>) -> Result<(), Refusal> {
        for option in list_members(value) {
            self.options_count += 1;
            if self.options_count > CONNECTION_OPTIONS_MAX {
                return Err(refusals::CONNECTION_OPTIONS_TOO_MANY);
            }
            judge(option)?;
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
            self.upgrade |= option.eq_ignore_ascii_case(b"upgrade");
        }
        Ok(())
    }

    /// RFC 9112 §9.3. `Proxy-Connection` means nothing here.
    #[inline]
    pub(crate) fn persistent(&self, version: Version) -> bool {
        !self.close && (version == Version::Http11 || self.keep_alive)
    }
}

/// RFC 9110 §5.6.2.
pub(crate) fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|&b| is_token_byte(b))
}

pub(crate) const fn is_token_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric()
        || matches!(
            b,
            b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
        )
}
