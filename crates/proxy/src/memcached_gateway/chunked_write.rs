//! A value that becomes chunks as it comes from a client: each is stored before the next is taken, and the manifest,
//! which makes them a value, comes last and is its caller's. What was begun and does not become one is deleted.

use std::rc::Rc;

use crc32fast::Hasher;
use wire::memcached::{Command, Reply, StoreVerb};

use crate::core::Core;
use crate::memcached_gateway::chunk_layout::{CHUNK_HEAD_BYTES, ChunkNames, Generation, Manifest, chunk_exptime};
use crate::memcached_gateway::gateway_call::ReceivedReply;
use crate::memcached_gateway::gateway_settings::MemcachedMode;
use crate::memcached_gateway::memcached_request::MemcachedRequest;
use crate::memcached_gateway::{Gateway, Unanswered, Waiter};

pub(crate) struct ChunkedWrite {
    names: ChunkNames,
    exptime: i64,
    count: u32,
    value_bytes: u64,
    chunk_bytes: u32,
    checksum: Hasher,
}

/// A chunk that is not stored.
pub(crate) enum NotStored {
    Unanswered(Unanswered),
    Refused(ReceivedReply),
}

impl ChunkedWrite {
    pub(crate) fn new(wanted: &MemcachedRequest, chunk_bytes: u32, now_s: i64) -> ChunkedWrite {
        ChunkedWrite {
            names: ChunkNames::new(Generation::draw(), &wanted.keys[0].name),
            exptime: chunk_exptime(wanted.exptime.unwrap_or(0), now_s),
            count: 0,
            value_bytes: 0,
            chunk_bytes,
            checksum: Hasher::new(),
        }
    }

    /// Stores the next one: its bytes, with room before them for a chunk's head.
    pub(crate) async fn store(
        &mut self,
        gateway: &Gateway,
        core: &Rc<Core>,
        waiter: &mut Waiter<'_>,
        chunk: &mut [u8],
    ) -> Result<(), NotStored> {
        self.checksum.combine(&self.names.seal(self.count, chunk));
        let key = &self.names.of(self.count)[..];
        self.count += 1;
        self.value_bytes += (chunk.len() - CHUNK_HEAD_BYTES) as u64;
        let (verb, flags, exptime) = (StoreVerb::Set, 0, self.exptime);
        let command = match gateway.settings.mode {
            MemcachedMode::Clean => Command::MetaStore { verb, key, flags, exptime, cas: None, value: chunk },
            MemcachedMode::NginxMemc => Command::Store { verb, key, flags, exptime, value: chunk },
        };
        match gateway.ask(core, waiter, key, &command).await {
            Ok(ReceivedReply { reply: Reply::Stored { .. }, .. }) => Ok(()),
            Ok(got) => Err(NotStored::Refused(got)),
            Err(why) => Err(NotStored::Unanswered(why)),
        }
    }

    /// What makes a value of them.
    pub(crate) fn manifest(&self) -> Manifest {
        Manifest {
            generation: self.names.generation,
            value_bytes: self.value_bytes,
            count: self.count,
            chunk_bytes: self.chunk_bytes,
            checksum: self.checksum.clone().finalize(),
        }
    }

    /// They become none. Nobody waits for that; one that is left is memcached's to forget.
    pub(crate) fn discard(&self, gateway: &Gateway, core: &Rc<Core>) {
        for number in 0..self.count {
            let key = &self.names.of(number)[..];
            match gateway.settings.mode {
                MemcachedMode::Clean => {
                    gateway.tell(core, key, &Command::MetaDelete { key, cas: None, stale_s: None });
                }
                MemcachedMode::NginxMemc => gateway.tell(core, key, &Command::Delete { key, exptime: None }),
            }
        }
    }
}
