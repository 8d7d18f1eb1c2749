//! Listening sockets by name, kept beyond the process that bound them.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;

use crate::limits::{NAMES_MAX, SOCKETS_PER_NAME_MAX, SOCKETS_PER_WORD_MAX};

/// See the module.
#[derive(Debug, Default)]
pub struct KeptSockets(BTreeMap<String, Vec<OwnedFd>>);

impl KeptSockets {
    /// More of a name are kept beside those that are there. Returns whether there was room.
    pub fn keep(&mut self, name: &str, sockets: Vec<OwnedFd>) -> bool {
        if !self.0.contains_key(name) && self.0.len() >= NAMES_MAX {
            return false;
        }
        let kept = self.0.entry(name.to_owned()).or_default();
        if kept.len() + sockets.len() > SOCKETS_PER_NAME_MAX {
            return false;
        }
        kept.extend(sockets);
        true
    }

    /// All of a name, which are kept no longer.
    pub fn take(&mut self, name: &str) -> Vec<OwnedFd> {
        self.0.remove(name).unwrap_or_default()
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// A copy of each, in portions that a word takes.
    pub fn copies(&self) -> io::Result<Vec<(String, Vec<OwnedFd>)>> {
        let mut copies = Vec::new();
        for (name, sockets) in &self.0 {
            for portion in sockets.chunks(SOCKETS_PER_WORD_MAX) {
                let portion = portion.iter().map(OwnedFd::try_clone).collect::<io::Result<Vec<_>>>()?;
                copies.push((name.clone(), portion));
            }
        }
        Ok(copies)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn sockets(count: usize) -> Vec<OwnedFd> {
        (0..count).map(|_| UnixStream::pair().expect("a pair").0.into()).collect()
    }

    #[test]
    fn what_is_kept_is_copied_in_portions_and_taken_once() {
        let mut kept = KeptSockets::default();
        assert!(
            kept.keep("a", sockets(SOCKETS_PER_WORD_MAX)) && kept.keep("b", sockets(1)) && kept.keep("a", sockets(2))
        );
        let copies = kept.copies().expect("copies");
        let portions: Vec<_> = copies.iter().map(|(name, sockets)| (name.as_str(), sockets.len())).collect();
        assert_eq!(portions, [("a", SOCKETS_PER_WORD_MAX), ("a", 2), ("b", 1)]);
        assert_eq!(kept.take("a").len(), SOCKETS_PER_WORD_MAX + 2);
        assert!(kept.take("a").is_empty());
        assert_eq!(kept.names().collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn more_than_the_limit_is_not_kept() {
        let mut kept = KeptSockets::default();
        for at in 0..NAMES_MAX {
            assert!(kept.keep(&at.to_string(), Vec::new()));
        }
        assert!(!kept.keep("one more", Vec::new()));
        assert!(kept.keep("0", sockets(3)));
        for _ in 0..SOCKETS_PER_NAME_MAX / 8 - 1 {
            assert!(kept.keep("1", sockets(8)));
        }
        assert!(kept.keep("1", sockets(8)) && !kept.keep("1", sockets(1)));
    }
}
