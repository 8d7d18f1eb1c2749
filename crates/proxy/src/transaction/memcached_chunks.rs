//! What a command comes to whose item is a manifest: its chunks are read, or touched, where its value was meant. What is
//! not whole is a miss.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;

use wire::memcached::{Command, Reply};

use crate::core::Core;
use crate::limits::MEMCACHED_CHUNKS_TOUCHED_AT_ONCE;
use crate::memcached_gateway::Waiter;
use crate::memcached_gateway::chunk_layout::{ChunkNames, MANIFEST_BYTES, Manifest, chunk_exptime};
use crate::memcached_gateway::chunked_read::{ChunkedRead, NoChunk};
use crate::memcached_gateway::gateway_call::ReceivedReply;
use crate::memcached_gateway::gateway_routes::Gateway;
use crate::memcached_gateway::gateway_settings::MemcachedCommand;
use crate::memcached_gateway::item_answer::{missed, value_too_large};
use crate::memcached_gateway::memcached_request::MemcachedRequest;
use crate::site::Site;
use crate::transaction::memcached::{Stop, unanswered};
use crate::transaction::synth::Synth;

/// One command, and where it goes.
pub(super) struct Asking<'a> {
    pub(super) site: &'a Arc<Site>,
    pub(super) route: usize,
    pub(super) core: &'a Rc<Core>,
    pub(super) wanted: &'a MemcachedRequest,
    pub(super) now_s: i64,
}

impl<'a> Asking<'a> {
    /// What memcached calls its item; empty where there is none.
    pub(super) fn key(&self) -> &'a [u8] {
        self.wanted.keys.first().map_or(&b""[..], |key| &key.name)
    }

    fn gateway(&self) -> &'a Gateway {
        &self.site.memcached.routes[self.route]
    }

    /// What the reply is if its item is a manifest, or may be one.
    pub(super) async fn look_for_chunks(
        &self,
        waiter: &mut Waiter<'_>,
        mut got: ReceivedReply,
    ) -> Result<(ReceivedReply, Option<Manifest>), Stop> {
        let Reply::Item(item) = &got.reply else { return Ok((got, None)) };
        // As long as a manifest: only its value says whether it is one.
        if item.value.is_empty() && item.value_bytes == MANIFEST_BYTES as u64 {
            let (gateway, key) = (self.gateway(), self.key());
            let asked = gateway.ask(self.core, waiter, key, &Command::MetaGet { key, exptime: None }).await;
            got = asked.map_err(|why| unanswered(gateway, why))?;
        }
        let manifest = self.manifest(&got);
        let is_touch = self.wanted.command == MemcachedCommand::Touch;
        if let Some(manifest) = &manifest {
            let max = self.gateway().settings.value_bytes_max;
            if manifest.value_bytes > max as u64 && !is_touch {
                return Err(value_too_large(max).into());
            }
            if is_touch || self.wanted.command == MemcachedCommand::Gat {
                self.touch(waiter, manifest).await?;
            }
        }
        if is_touch && matches!(got.reply, Reply::Item(_)) {
            got.reply = Reply::Stored { cas: None };
        }
        Ok((got, manifest))
    }

    fn manifest(&self, got: &ReceivedReply) -> Option<Manifest> {
        let Reply::Item(item) = &got.reply else { return None };
        let stored = &got.bytes[item.value.clone()];
        Manifest::read(&stored[self.wanted.keys.first()?.unwrap(stored)?..])
    }

    /// Gives all chunks the manifest's new life.
    async fn touch(&self, waiter: &mut Waiter<'_>, manifest: &Manifest) -> Result<(), Stop> {
        let gateway = self.gateway();
        let exptime = chunk_exptime(self.wanted.exptime.unwrap_or(0), self.now_s);
        let names = ChunkNames::new(manifest.generation, self.key());
        let names: Vec<Vec<u8>> = (0..manifest.count).map(|number| names.of(number)).collect();
        for some in names.chunks(MEMCACHED_CHUNKS_TOUCHED_AT_ONCE) {
            let keys: Vec<&[u8]> = some.iter().map(|name| &name[..]).collect();
            let touched = gateway.ask_each(self.core, waiter, &keys, |key| Command::MetaTouch { key, exptime }).await;
            let touched = touched.map_err(|why| unanswered(gateway, why))?;
            if !touched.iter().all(|got| matches!(got.reply, Reply::Stored { .. })) {
                self.core.counters.memcached_chunks_missing.add(1);
                return Err(missed().into());
            }
        }
        Ok(())
    }

    /// The value, of which the first chunk is there.
    pub(super) async fn begin_reading(&self, waiter: &mut Waiter<'_>, manifest: Manifest) -> Result<ChunkedRead, Stop> {
        let read = ChunkedRead::new(self.core, self.site, self.route, self.key(), manifest);
        let mut read = read.ok_or_else(|| Stop::Synth(Synth::memcached_values_too_many(false)))?;
        let first = poll_fn(|cx| match read.poll_first(cx) {
            std::task::Poll::Pending if waiter.has_left(cx) => std::task::Poll::Ready(None),
            polled => polled.map(Some),
        });
        match first.await {
            Some(Ok(())) => Ok(read),
            Some(Err(NoChunk::Missing)) => Err(missed().into()),
            Some(Err(NoChunk::Unanswered(why))) => Err(unanswered(self.gateway(), why)),
            None => Err(Stop::ClientLeft),
        }
    }
}
