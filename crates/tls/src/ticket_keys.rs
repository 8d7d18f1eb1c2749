//! The keys of session tickets (RFC 8446 §4.6.1, RFC 5077). They follow from a secret and the hour, so whoever has the secret reads
//! the tickets of all who have it: cores, processes before and after a restart, other nodes. Nothing is remembered for a client.
//!
//! A ticket is `hour (8) ∥ nonce (12) ∥ AES-256-GCM(key of the hour, session) ∥ tag (16)`, the hour bound to it. The key of an hour is
//! HKDF-SHA256 of the secret (RFC 5869). The hour before, this one and the next are accepted: clocks of nodes may differ.
//!
//! A resumed session is not asked for a certificate again, so the keys also follow from which clients are let in: who came by one
//! listener's terms is a stranger to another one that asks more.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, Prk, Salt};
use aws_lc_rs::rand;
use rustls::server::ProducesTickets;
use rustls::time_provider::{DefaultTimeProvider, TimeProvider};

use crate::limits::{TICKET_BYTES_MAX, TICKET_EPOCH_S};

const SALT: &[u8] = b"larder session tickets 1";
const EPOCH_BYTES: usize = 8;
const NONCE_BYTES: usize = 12;

/// What makes and reads tickets, for all who share a secret.
pub struct TicketKeys {
    secret: Prk,
    /// Whose sessions they are, beside the hour.
    terms: Box<[u8]>,
    time: Arc<dyn TimeProvider>,
    /// Keys that were asked for of late, with their hours: making one costs more than a ticket does.
    recent: RwLock<Vec<(u64, Arc<LessSafeKey>)>>,
}

impl fmt::Debug for TicketKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketKeys")
    }
}

impl TicketKeys {
    /// A secret has at least so many bytes.
    pub const SECRET_BYTES_MIN: usize = 32;

    /// Of a secret that others may have too. `None`: it is too short to be one.
    pub fn of_secret(secret: &[u8]) -> Option<TicketKeys> {
        (secret.len() >= Self::SECRET_BYTES_MIN).then(|| TicketKeys::new(secret, Arc::new(DefaultTimeProvider)))
    }

    /// Of a secret that ends with this process.
    pub fn random() -> TicketKeys {
        let mut secret = [0; Self::SECRET_BYTES_MIN];
        rand::fill(&mut secret).expect("the system has random numbers");
        TicketKeys::new(&secret, Arc::new(DefaultTimeProvider))
    }

    fn new(secret: &[u8], time: Arc<dyn TimeProvider>) -> TicketKeys {
        let secret = Salt::new(HKDF_SHA256, SALT).extract(secret);
        TicketKeys { secret, terms: Box::default(), time, recent: RwLock::default() }
    }

    /// Of the same secret, for sessions under these terms alone.
    pub(crate) fn under(&self, terms: &[u8]) -> TicketKeys {
        let (secret, time) = (self.secret.clone(), Arc::clone(&self.time));
        TicketKeys { secret, terms: terms.into(), time, recent: RwLock::default() }
    }

    fn epoch(&self) -> Option<u64> {
        Some(self.time.current_time()?.as_secs() / TICKET_EPOCH_S)
    }

    /// Of an hour that is accepted.
    fn key_of(&self, epoch: u64) -> Option<Arc<LessSafeKey>> {
        let known =
            |keys: &[(u64, Arc<LessSafeKey>)]| keys.iter().find(|(of, _)| *of == epoch).map(|(_, key)| Arc::clone(key));
        if let Some(key) = known(&self.recent.read().unwrap_or_else(PoisonError::into_inner)) {
            return Some(key);
        }
        let info = [&epoch.to_be_bytes()[..], &self.terms];
        let okm = self.secret.expand(&info, &AES_256_GCM).ok()?;
        let key = Arc::new(LessSafeKey::new(UnboundKey::from(okm)));
        let mut recent = self.recent.write().unwrap_or_else(PoisonError::into_inner);
        // An hour is asked for as long as it is near another that is.
        recent.retain(|(of, _)| of.abs_diff(epoch) <= 2 && *of != epoch);
        recent.push((epoch, Arc::clone(&key)));
        Some(key)
    }
}

impl ProducesTickets for TicketKeys {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        TICKET_EPOCH_S as u32
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let epoch = self.epoch()?;
        let mut nonce = [0; NONCE_BYTES];
        rand::fill(&mut nonce).ok()?;
        let mut sealed = plain.to_vec();
        let bound = Aad::from(epoch.to_be_bytes());
        self.key_of(epoch)?.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), bound, &mut sealed).ok()?;
        let ticket = [&epoch.to_be_bytes()[..], &nonce, &sealed].concat();
        (ticket.len() <= TICKET_BYTES_MAX).then_some(ticket)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        if ticket.len() > TICKET_BYTES_MAX {
            return None;
        }
        let (epoch, rest) = ticket.split_first_chunk::<EPOCH_BYTES>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_BYTES>()?;
        let of_ticket = u64::from_be_bytes(*epoch);
        if of_ticket.abs_diff(self.epoch()?) > 1 {
            return None;
        }
        let mut sealed = sealed.to_vec();
        let key = self.key_of(of_ticket)?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let length = key.open_in_place(nonce, Aad::from(*epoch), &mut sealed).ok()?.len();
        sealed.truncate(length);
        Some(sealed)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustls::pki_types::UnixTime;

    use super::*;

    #[derive(Debug)]
    struct At(u64);

    impl TimeProvider for At {
        fn current_time(&self) -> Option<UnixTime> {
            Some(UnixTime::since_unix_epoch(Duration::from_secs(self.0)))
        }
    }

    fn keys(secret: u8, hour: u64) -> TicketKeys {
        TicketKeys::new(&[secret; 32], Arc::new(At(hour * TICKET_EPOCH_S + 1)))
    }

    #[test]
    fn whoever_has_the_secret_reads_a_ticket_of_about_this_hour() {
        let ticket = keys(1, 100).encrypt(b"a session").unwrap();
        for (hour, is_read) in [(98, false), (99, true), (100, true), (101, true), (102, false)] {
            let read = keys(1, hour).decrypt(&ticket);
            assert_eq!(read.as_deref(), is_read.then_some(&b"a session"[..]), "{hour}");
        }
        assert_eq!(keys(2, 100).decrypt(&ticket), None, "another secret");
    }

    #[test]
    fn what_was_changed_is_no_ticket() {
        let keys = keys(1, 100);
        let ticket = keys.encrypt(b"a session").unwrap();
        for at in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 1;
            assert_eq!(keys.decrypt(&changed), None, "byte {at}");
        }
        for length in 0..ticket.len() {
            assert_eq!(keys.decrypt(&ticket[..length]), None, "cut at {length}");
        }
        assert_eq!(keys.decrypt(&vec![0; TICKET_BYTES_MAX + 1]), None);
    }

    #[test]
    fn no_two_tickets_are_alike() {
        let keys = keys(1, 100);
        assert_ne!(keys.encrypt(b"a session"), keys.encrypt(b"a session"));
    }

    #[test]
    fn a_short_secret_is_none() {
        assert!(TicketKeys::of_secret(&[7; 31]).is_none() && TicketKeys::of_secret(&[7; 32]).is_some());
    }
}
