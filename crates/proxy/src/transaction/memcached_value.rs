//! What is to be stored: of the request's own words, or its body. It is held whole, or, where the route has chunks, a
//! chunk of it at a time. What all of them hold together has a limit.

use std::future::poll_fn;
use std::rc::Rc;

use message::Status;
use wire::RequestBody;
use wire::memcached::Reply;

use crate::answer_head::AnswerHead;
use crate::core::Core;
use crate::downstream::Downstream;
use crate::fetch::broken::Broken;
use crate::memcached_gateway::chunk_layout::{CHUNK_HEAD_BYTES, looks_like_manifest};
use crate::memcached_gateway::chunked_write::{ChunkedWrite, NotStored};
use crate::memcached_gateway::gateway_call::ReceivedReply;
use crate::memcached_gateway::gateway_routes::Gateway;
use crate::memcached_gateway::gateway_settings::MemcachedMode;
use crate::memcached_gateway::memcached_request::MemcachedRequest;
use crate::memcached_gateway::value_hold::ValueHold;
use crate::memcached_gateway::{Unanswered, Waiter, item_answer};
use crate::request_body::BodyRead;
use crate::transaction::Transaction;
use crate::transaction::memcached::{Stop, unanswered};
use crate::transaction::synth::Synth;

/// A value as it is sent: itself, or the manifest of its chunks, which are stored already.
pub(super) struct Value {
    pub(super) bytes: Vec<u8>,
    chunks: Option<ChunkedWrite>,
    _hold: ValueHold,
}

impl Value {
    pub(super) fn none(core: &Rc<Core>) -> Value {
        Value { bytes: Vec::new(), chunks: None, _hold: ValueHold::new(core) }
    }

    /// Chunks whose manifest is not stored are nobody's. Where that is not known they stay: a value without them would
    /// be a miss.
    pub(super) fn settle(&self, gateway: &Gateway, core: &Rc<Core>, outcome: &Result<ReceivedReply, Unanswered>) {
        let is_nobodys = match outcome {
            Ok(got) => !matches!(got.reply, Reply::Stored { .. }),
            Err(Unanswered::Failed { failure, .. }) => failure.unsent,
            Err(Unanswered::ClientLeft) => false,
        };
        if let Some(chunks) = self.chunks.as_ref().filter(|_| is_nobodys) {
            chunks.discard(gateway, core);
        }
    }
}

pub(super) async fn read(
    tx: &mut Transaction,
    downstream: &mut Downstream<'_>,
    gateway: &Gateway,
    wanted: &MemcachedRequest,
) -> Result<Value, Stop> {
    let core = Rc::clone(&tx.core);
    let mut intake = Intake {
        gateway,
        wanted,
        hold: ValueHold::new(&core),
        room: gateway.settings.chunk_bytes.map_or(0, |_| CHUNK_HEAD_BYTES),
        buffer: Vec::new(),
        taken_bytes: 0,
        chunks: None,
        core,
    };
    intake.buffer.resize(intake.room, 0);
    match intake.take_all(tx, downstream).await {
        Ok(bytes) => {
            let bytes = wanted.keys[0].wrap(&bytes).unwrap_or(bytes);
            Ok(Value { bytes, chunks: intake.chunks, _hold: intake.hold })
        }
        Err(stop) => {
            if let Some(chunks) = &intake.chunks {
                chunks.discard(gateway, &intake.core);
            }
            Err(stop)
        }
    }
}

/// A value that is being read.
struct Intake<'a> {
    gateway: &'a Gateway,
    wanted: &'a MemcachedRequest,
    core: Rc<Core>,
    hold: ValueHold,
    /// Before a chunk's bytes, for its head.
    room: usize,
    buffer: Vec<u8>,
    taken_bytes: usize,
    chunks: Option<ChunkedWrite>,
}

impl Intake<'_> {
    async fn take_all(&mut self, tx: &mut Transaction, downstream: &mut Downstream<'_>) -> Result<Vec<u8>, Stop> {
        match &self.wanted.value {
            Some(value) => self.take(downstream, value, false).await?,
            None => self.take_body(tx, downstream).await?,
        }
        if self.chunks.is_none() && (self.room == 0 || !looks_like_manifest(&self.buffer[self.room..])) {
            return Ok(self.buffer.split_off(self.room));
        }
        let last = std::mem::take(&mut self.buffer);
        self.store(downstream, last).await?;
        Ok(self.chunks.as_ref().map(|chunks| chunks.manifest().write()).unwrap_or_default())
    }

    async fn take_body(&mut self, tx: &mut Transaction, downstream: &mut Downstream<'_>) -> Result<(), Stop> {
        let max = self.gateway.settings.value_bytes_max;
        match tx.body {
            RequestBody::None if self.gateway.settings.mode == MemcachedMode::NginxMemc => {
                let text = "There is no value to be stored.";
                return Err(Synth::memcached_refused(500, "value-missing", text).into());
            }
            RequestBody::Length(length) if length > max as u64 => {
                return Err(Synth::memcached_value_too_large(max).into());
            }
            _ => {}
        }
        let go_on = AnswerHead::new(Status(100));
        if tx.expects_continue && !downstream.send_interim(tx.head.version, go_on).await {
            return Err(Stop::ClientLeft);
        }
        tx.expects_continue = false;
        loop {
            match poll_fn(|cx| downstream.poll_body(cx)).await {
                Ok(BodyRead::Data(bytes)) => self.take(downstream, &bytes, true).await?,
                Ok(BodyRead::End(_)) => return Ok(()),
                Err(Broken::ClientFault(refusal)) => {
                    downstream.stop_reading();
                    tx.persistent = false;
                    return Err(Synth::refused(&refusal).into());
                }
                Err(Broken::ClientLeft | Broken::Origin(_)) => return Err(Stop::ClientLeft),
            }
        }
    }

    async fn take(&mut self, downstream: &mut Downstream<'_>, bytes: &[u8], is_body: bool) -> Result<(), Stop> {
        let max = self.gateway.settings.value_bytes_max;
        self.taken_bytes += bytes.len();
        if self.taken_bytes > max {
            return Err(Synth::memcached_value_too_large(max).into());
        }
        if !self.hold.grow(bytes.len()) {
            return Err(Synth::memcached_values_too_many(is_body).into());
        }
        self.buffer.extend_from_slice(bytes);
        let Some(chunk_bytes) = self.gateway.settings.chunk_bytes else { return Ok(()) };
        while self.buffer.len() - self.room > chunk_bytes as usize {
            let rest = self.buffer.split_off(self.room + chunk_bytes as usize);
            let chunk = std::mem::take(&mut self.buffer);
            self.buffer.resize(self.room, 0);
            self.buffer.extend_from_slice(&rest);
            self.store(downstream, chunk).await?;
            self.hold.shrink(chunk_bytes as usize);
        }
        Ok(())
    }

    async fn store(&mut self, downstream: &mut Downstream<'_>, mut chunk: Vec<u8>) -> Result<(), Stop> {
        let now_s = (self.core.now().wall_ms / 1_000) as i64;
        let chunk_bytes = self.gateway.settings.chunk_bytes.unwrap_or(u32::MAX);
        let chunks = self.chunks.get_or_insert_with(|| ChunkedWrite::new(self.wanted, chunk_bytes, now_s));
        let mut waiter = Waiter::Client(downstream.reborrow());
        match chunks.store(self.gateway, &self.core, &mut waiter, &mut chunk).await {
            Ok(()) => Ok(()),
            Err(NotStored::Unanswered(why)) => Err(unanswered(self.gateway, why)),
            Err(NotStored::Refused(got)) => Err(self.refused(&got).into()),
        }
    }

    fn refused(&self, got: &ReceivedReply) -> Synth {
        match (&got.reply, self.gateway.settings.mode) {
            (Reply::Error { of, text }, MemcachedMode::Clean) => {
                item_answer::error(self.wanted, *of, &got.bytes[text.clone()])
            }
            _ => Synth::memcached_error(502, "memcached-error", "memcached answered with an error."),
        }
    }
}
