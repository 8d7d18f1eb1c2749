//! An answer to an HTTP/2 stream that goes out at once: a stored head as a header block that is made once, a short tail, and the body as
//! it lies, framed behind whatever the connection has framed before. Many of them leave in one write.

use std::sync::Arc;

use cache::{Now, Object};
use message::{FieldName, Method};
use wire::has_length;
use wire::http2::{StreamId, hpack};

use crate::core::Core;
use crate::http2_streams::Http2Streams;
use crate::instant_answer::{self, BegunStep, HitResponse, InstantClient, InstantOutcome};
use crate::limits::STREAM_FRAMED_BYTES_MAX;
use crate::parsed_request::ParsedRequest;
use crate::site::Site;
use crate::stored_head;
use crate::transport_security;

/// Room for length, Age and Cache-Status.
const TAIL_BYTES: usize = 128;

/// A stream of which the whole request has come.
pub(crate) struct InstantStream<'a> {
    pub(crate) streams: &'a Http2Streams,
    pub(crate) framed: &'a mut Vec<u8>,
    pub(crate) id: StreamId,
}

impl InstantClient for InstantStream<'_> {
    #[inline]
    fn takes(&self, object: &Arc<Object>) -> bool {
        let body = object.body();
        let fits = |length| length <= self.streams.machine.borrow().sendable(self.id);
        // What lies in a file, or is sent in several frames, goes on as a transaction.
        body.on_disk().is_none()
            && body.extent().is_none()
            && self.framed.len() < STREAM_FRAMED_BYTES_MAX
            && usize::try_from(body.len()).is_ok_and(fits)
    }

    #[inline]
    fn send(
        &mut self,
        core: &Core,
        site: &Site,
        parsed: &ParsedRequest<'_>,
        object: &Arc<Object>,
        now: Now,
    ) -> InstantOutcome<BegunStep> {
        let response = HitResponse::to(parsed);
        let head_only = parsed.received.request.method == Method::Head;
        let length = if head_only { 0 } else { object.body().len() };
        let mut tail = core.tail.borrow_mut();
        tail.clear();
        write_tail(&mut tail, site, object, now, self.streams.is_secure);
        let mut blocks = core.http2_blocks.borrow_mut();
        let head = [blocks.of(&core.shared.cache, object), &tail];
        let head_bytes = self.streams.frame_at_once(self.id, head, length == 0, self.framed) as u64;
        if length > 0 {
            let (body, framed) = (object.body(), &mut *self.framed);
            if self.streams.begin_body_at_once(self.id, length as usize, framed) {
                match body.behind_head() {
                    [] => body.pieces(0, length).for_each(|piece| framed.extend_from_slice(&piece)),
                    behind => framed.extend_from_slice(behind),
                }
            }
        }
        core.counters.bytes_out.add(head_bytes + length);
        instant_answer::end(core, site, &response, object, (head_bytes, head_bytes + length));
        InstantOutcome::Answered { persistent: true }
    }
}

/// What differs from answer to answer: length, Age, Cache-Status.
fn write_tail(out: &mut Vec<u8>, site: &Site, object: &Object, now: Now, is_secure: bool) {
    if has_length(object.status()) {
        hpack::write_known_number(FieldName::ContentLength, object.length(), out);
    }
    hpack::write_known_number(FieldName::Age, object.age_s(now), out);
    let mut status = Vec::with_capacity(TAIL_BYTES);
    stored_head::write_hit_status(&mut status, site, object, now);
    hpack::write_known_field(FieldName::CacheStatus, &status, out);
    let is_said = || transport_security::is_said_by(object.fields());
    if let Some(value) = transport_security::to_say(site, is_secure, is_said) {
        hpack::write_known_field(FieldName::StrictTransportSecurity, value.as_bytes(), out);
    }
}
