//! What stands for a URL where nodes share URLs out: a digest under a key that all of them have, and nobody else. The keys of the cache are
//! digests under a key that each process draws.

use std::fmt;
use std::hash::Hasher;

use message::Request;
use siphasher::sip::SipHasher13;

use crate::url_variations;

/// The key of the digest.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DigestKey([u8; 16]);

impl DigestKey {
    pub(crate) fn new(key: [u8; 16]) -> DigestKey {
        DigestKey(key)
    }

    /// Of what the key of a stored response is of: scheme, host, port, path and query.
    pub(crate) fn digest(&self, request: &Request<'_>) -> u64 {
        let mut hasher = SipHasher13::new_with_key(&self.0);
        let shape = url_variations::shape(request, u8::from(request.query.is_some()));
        for part in url_variations::parts_of_url(request, &shape) {
            hasher.write(&(part.len() as u64).to_le_bytes());
            hasher.write(part);
        }
        hasher.finish()
    }
}

impl fmt::Debug for DigestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DigestKey")
    }
}
