//! What another node of the fleet has invalidated by itself, carried out here as that one has.

use crate::cache_groups;
use crate::other_nodes::ToldInvalidation;
use crate::policy;
use crate::response_tags::xkey;
use crate::service::Proxy;
use crate::vcl_story::bans;
use crate::vcl_story::hashed_parts::key_of_hashed;

impl Proxy {
    /// Carries out what another node has told, as that one has. How many responses went, where that is known at once; the error is a sentence.
    pub fn carry_out_told(&self, told: &ToldInvalidation) -> Result<u64, String> {
        let (shared, now) = (&*self.shared, self.shared.now());
        let cache = &shared.cache;
        let count = match told {
            ToldInvalidation::Urls(urls) => {
                let mut count = 0;
                urls.iter().for_each(|url| {
                    policy::invalidate(shared, &url.request(), |key| count += cache.purge(key));
                });
                count
            }
            ToldInvalidation::Groups { of, names } => {
                of.iter().for_each(|url| cache_groups::invalidate(cache, &url.request(), names));
                0
            }
            ToldInvalidation::Hashed { parts, how } => cache.purge_as(key_of_hashed(cache, parts), *how, now),
            ToldInvalidation::Tag { word, how } => cache.purge_tags(&[xkey(cache, word)], *how, now),
            ToldInvalidation::Ban(text) => bans::ban(shared, text, now).map(|()| 0)?,
        };
        Ok(count as u64)
    }

    /// Is this a ban? The error is a sentence.
    pub fn understands_ban(&self, expression: &[u8]) -> Result<(), String> {
        bans::ProgramBan::parse(expression).map(drop)
    }
}
