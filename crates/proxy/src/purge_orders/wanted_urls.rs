//! The URLs that are asked for most, of as many as come by: no more of them are held than are wanted.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

type Url = Box<[u8]>;

pub(super) struct WantedUrls {
    urls_max: usize,
    /// How often each of them was asked for.
    hits_of: HashMap<Url, u32>,
    /// The same, the least wanted first.
    ranked: BTreeSet<(u32, Reverse<Url>)>,
    left_out: u64,
}

impl WantedUrls {
    pub fn new(urls_max: usize) -> WantedUrls {
        WantedUrls { urls_max, hits_of: HashMap::new(), ranked: BTreeSet::new(), left_out: 0 }
    }

    /// A URL of something stored. Its variants are one.
    pub fn note(&mut self, hits: u32, url: &[u8]) {
        match self.hits_of.get(url).copied() {
            Some(known) if known >= hits => return,
            Some(known) => drop(self.ranked.remove(&(known, Reverse(url.into())))),
            None if self.hits_of.len() < self.urls_max => {}
            None => {
                self.left_out += 1;
                let least = self.ranked.first().map(|(least, url)| (*least, url.clone()));
                match least.filter(|(least, _)| *least < hits) {
                    Some((least, gone)) => {
                        self.hits_of.remove(&gone.0);
                        self.ranked.remove(&(least, gone));
                    }
                    None => return,
                }
            }
        }
        self.hits_of.insert(url.into(), hits);
        self.ranked.insert((hits, Reverse(url.into())));
    }

    /// Those that are asked for most first, and how many others there were: variants of what is left out count each.
    pub fn most_wanted(self) -> (Vec<String>, u64) {
        let ranked = self.ranked.into_iter().rev();
        (ranked.map(|(_, Reverse(url))| String::from_utf8_lossy(&url).into_owned()).collect(), self.left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_are_asked_for_most_are_kept() {
        let mut wanted = WantedUrls::new(3);
        for (hits, url) in [(1, "a"), (5, "b"), (0, "c"), (5, "b"), (2, "b"), (7, "c"), (3, "d"), (0, "e"), (9, "f")] {
            wanted.note(hits, url.as_bytes());
        }
        let (urls, left_out) = wanted.most_wanted();
        assert_eq!((urls, left_out), (vec!["f".to_owned(), "c".to_owned(), "b".to_owned()], 3));
        let mut none = WantedUrls::new(0);
        none.note(1, b"a");
        assert_eq!(none.most_wanted(), (vec![], 1));
    }
}
