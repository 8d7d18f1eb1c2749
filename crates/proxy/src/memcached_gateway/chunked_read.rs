//! A value in chunks on its way to a client: chunk after chunk is asked for, one ahead of the one that is being sent,
//! and each is looked at before a byte of it goes out. The first is there before the answer's head is: what is not
//! whole shows as a miss as long as that can be. Later it cuts the answer off, which is then shorter than it said.

use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use crc32fast::Hasher;
use wire::memcached::{Command, Reply};

use crate::core::Core;
use crate::limits::MEMCACHED_CHUNKS_AHEAD_MAX;
use crate::memcached_gateway::chunk_layout::{CHUNK_HEAD_BYTES, ChunkNames, Manifest};
use crate::memcached_gateway::gateway_settings::MemcachedMode;
use crate::memcached_gateway::value_hold::ValueHold;
use crate::memcached_gateway::{Unanswered, Waiter};
use crate::site::Site;

/// Why there is no next chunk.
#[derive(Clone, Debug)]
pub(crate) enum NoChunk {
    /// It is gone, or another's.
    Missing,
    Unanswered(Unanswered),
}

impl NoChunk {
    /// A stable word for the log.
    pub(crate) fn token(&self) -> &'static str {
        match self {
            NoChunk::Unanswered(Unanswered::Failed { failure, .. }) => failure.kind.token(),
            NoChunk::Missing | NoChunk::Unanswered(Unanswered::ClientLeft) => "memcached-chunk-missing",
        }
    }
}

type ChunkFuture = Pin<Box<dyn Future<Output = Result<Bytes, NoChunk>>>>;

pub(crate) struct ChunkedRead {
    site: Arc<Site>,
    route: usize,
    core: Rc<Core>,
    manifest: Manifest,
    names: Rc<ChunkNames>,
    asked: VecDeque<ChunkFuture>,
    /// How many have been asked for, and how many were found.
    asked_count: u32,
    found_count: u32,
    checksum: Hasher,
    /// What came before there was an answer's head.
    first: Option<Bytes>,
    has_begun: bool,
    _hold: ValueHold,
}

impl std::fmt::Debug for ChunkedRead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ChunkedRead({:?}, {} found)", self.manifest, self.found_count)
    }
}

impl ChunkedRead {
    /// `key` is what memcached calls the manifest. `None`: values on their way take all the room that they may.
    pub(crate) fn new(
        core: &Rc<Core>,
        site: &Arc<Site>,
        route: usize,
        key: &[u8],
        manifest: Manifest,
    ) -> Option<ChunkedRead> {
        let mut hold = ValueHold::new(core);
        let at_once = (manifest.count as usize).min(1 + MEMCACHED_CHUNKS_AHEAD_MAX);
        let read = hold.grow(at_once.saturating_mul(manifest.length_of(0) + CHUNK_HEAD_BYTES));
        read.then(|| ChunkedRead {
            site: Arc::clone(site),
            route,
            core: Rc::clone(core),
            manifest,
            names: Rc::new(ChunkNames::new(manifest.generation, key)),
            asked: VecDeque::new(),
            asked_count: 0,
            found_count: 0,
            checksum: Hasher::new(),
            first: None,
            has_begun: false,
            _hold: hold,
        })
    }

    pub(crate) fn value_bytes(&self) -> u64 {
        self.manifest.value_bytes
    }

    /// Ready when the first chunk is there.
    pub(crate) fn poll_first(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), NoChunk>> {
        let polled = self.poll_chunk(cx);
        self.noting(polled).map_ok(|chunk| self.first = chunk)
    }

    /// Counts what was missing.
    fn noting<T>(&self, polled: Poll<Result<T, NoChunk>>) -> Poll<Result<T, NoChunk>> {
        if let Poll::Ready(Err(NoChunk::Missing)) = polled {
            self.core.counters.memcached_chunks_missing.add(1);
        }
        polled
    }

    /// Has anything been taken out of it?
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// The next bytes; `None` after the last.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, NoChunk>> {
        self.has_begun = true;
        if let Some(first) = self.first.take() {
            // The one after it is asked for while this one is sent.
            self.prefetch(cx);
            return Poll::Ready(Ok(Some(first)));
        }
        let polled = self.poll_chunk(cx);
        self.noting(polled)
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, NoChunk>> {
        if self.found_count == self.manifest.count {
            return Poll::Ready(Ok(None));
        }
        if self.asked.is_empty() {
            self.ask();
        }
        let chunk = std::task::ready!(self.asked[0].as_mut().poll(cx))?;
        self.asked.pop_front();
        let number = self.found_count;
        let Some(checksum) = self.names.check(number, self.manifest.length_of(number), &chunk) else {
            return Poll::Ready(Err(NoChunk::Missing));
        };
        self.checksum.combine(&checksum);
        self.found_count += 1;
        let is_last = self.found_count == self.manifest.count;
        if is_last && self.checksum.clone().finalize() != self.manifest.checksum {
            return Poll::Ready(Err(NoChunk::Missing));
        }
        if self.has_begun {
            self.prefetch(cx);
        }
        Poll::Ready(Ok(Some(chunk.slice(CHUNK_HEAD_BYTES..))))
    }

    fn prefetch(&mut self, cx: &mut Context<'_>) {
        while self.asked.len() < MEMCACHED_CHUNKS_AHEAD_MAX && self.asked_count < self.manifest.count {
            self.ask();
            let last = self.asked.len() - 1;
            // Begun by being polled. One that is ready at once keeps its end until its turn.
            if let Poll::Ready(ended) = self.asked[last].as_mut().poll(cx) {
                self.asked[last] = Box::pin(std::future::ready(ended));
            }
        }
    }

    fn ask(&mut self) {
        let (site, route, core, names) =
            (Arc::clone(&self.site), self.route, Rc::clone(&self.core), Rc::clone(&self.names));
        let number = self.asked_count;
        self.asked_count += 1;
        self.asked.push_back(Box::pin(async move {
            let gateway = &site.memcached.routes[route];
            let key = &names.of(number)[..];
            let command = match gateway.settings.mode {
                MemcachedMode::Clean => Command::MetaGet { key, exptime: None },
                MemcachedMode::NginxMemc => Command::Get { key },
            };
            match gateway.ask(&core, &mut Waiter::Nobody, key, &command).await {
                Ok(got) => match got.reply {
                    Reply::Item(item) => Ok(got.bytes.slice(item.value)),
                    _ => Err(NoChunk::Missing),
                },
                Err(why) => Err(NoChunk::Unanswered(why)),
            }
        }));
    }
}
