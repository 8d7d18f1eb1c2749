//! An answer to an HTTP/2 stream that goes out at once: a header block, and as much of the body as the windows let through, framed
//! behind whatever the connection has framed before. Many of them leave in one write. What does not go at once goes on as a
//! transaction.

use std::cell::OnceCell;
use std::io::{IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::rc::Rc;

use rustix::io::preadv;
use smallvec::SmallVec;
use wire::ReceivedRequest;
use wire::http2::{FRAME_HEAD_BYTES, StreamId};

use crate::asker::Asker;
use crate::client_identity::ClientIdentity;
use crate::connection::Connection;
use crate::connection_addresses::ConnectionAddresses;
use crate::core::Core;
use crate::head_form::BlockForm;
use crate::held_body::{Pages, Whole};
use crate::http2_outbox::Http2Outbox;
use crate::http2_streams::Http2Streams;
use crate::instant_answer::{self, BegunStep, HitResponse, InstantClient, InstantHead, InstantOutcome};
use crate::limits::{SLICES_MAX, STREAM_FRAMED_BYTES_MAX};
use crate::records::session_records::SessionRecords;
use crate::request_source::RequestSource;
use crate::site::Site;

/// A stream of which the head has come.
pub(crate) struct InstantStream<'a> {
    pub(crate) connection: &'a mut Connection,
    pub(crate) streams: &'a Http2Streams,
    pub(crate) outbox: &'a mut Http2Outbox,
    pub(crate) addresses: &'a Rc<ConnectionAddresses>,
    pub(crate) id: StreamId,
    /// Nothing follows the head.
    pub(crate) is_whole: bool,
}

impl RequestSource for InstantStream<'_> {
    type Client = Self;

    fn asker(&self) -> Asker<'_> {
        self.connection.asker()
    }

    fn session(&self) -> Option<&SessionRecords> {
        self.connection.session()
    }

    fn begins_exchange(&mut self, _: &Core, _: &Site, received: &ReceivedRequest<'_>) -> bool {
        received.persistent
    }

    fn at_once(&mut self) -> Option<&mut Self> {
        self.is_whole.then_some(self)
    }

    fn addresses(&mut self, client: &ClientIdentity) -> Rc<ConnectionAddresses> {
        if client.ip == client.peer.ip() {
            return Rc::clone(self.addresses);
        }
        let client = SocketAddr::new(client.ip, 0);
        Rc::new(ConnectionAddresses { client, ..ConnectionAddresses::clone(self.addresses) })
    }
}

impl InstantClient for InstantStream<'_> {
    type Form = BlockForm;

    #[inline]
    fn send<T: Whole>(
        &mut self,
        core: &Core,
        site: &Site,
        response: &HitResponse<'_>,
        held: &T,
        head: InstantHead<'_>,
    ) -> InstantOutcome<BegunStep> {
        let mut blocks = core.http2_blocks.borrow_mut();
        let head = head.parts(|| blocks.of(&core.shared.cache, held));
        if response.waits {
            return instant_answer::goes_on(core, response, held, head, 0);
        }
        let length = if response.head_only { 0 } else { held.length() };
        let head_bytes = self.streams.frame_at_once(self.id, head, length == 0, &mut self.outbox.framed);
        let body_bytes = self.frame_body(held, length);
        let (sent, total) = (head_bytes as u64 + body_bytes, head_bytes as u64 + length);
        if sent < total {
            return instant_answer::goes_on(core, response, held, head, sent as usize);
        }
        instant_answer::end(core, site, response, held, (head_bytes as u64, total));
        InstantOutcome::Answered { persistent: true }
    }
}

impl InstantStream<'_> {
    /// Frames of a body what may be sent now. Returns how much that is.
    #[inline]
    fn frame_body(&mut self, held: &impl Whole, length: u64) -> u64 {
        if length == 0 {
            return 0;
        }
        if !self.has_room(length) {
            // What many streams have framed goes first, so that each has a write of its own.
            self.outbox.try_write(self.connection);
        }
        let room = STREAM_FRAMED_BYTES_MAX.saturating_sub(self.outbox.framed.len());
        let bytes = self.streams.goes_at_once(self.id, length, room);
        let framed = match held.pages() {
            Some(pages) => self.frame_pages(pages, bytes, length),
            None => self.frame_slices(held, bytes, length),
        };
        framed as u64
    }

    fn has_room(&self, length: u64) -> bool {
        self.outbox.framed.len() as u64 + length <= STREAM_FRAMED_BYTES_MAX as u64
    }

    /// Out of memory.
    #[inline]
    fn frame_slices(&mut self, held: &impl Whole, bytes: usize, length: u64) -> usize {
        let hold = OnceCell::new();
        let mut slices: SmallVec<[IoSlice<'_>; SLICES_MAX]> = SmallVec::new();
        held.slices(&hold, &mut slices);
        let mut rest = &mut slices[..];
        let (framed, bytes) = (&mut self.outbox.framed, bytes.min(rest.iter().map(|slice| slice.len()).sum()));
        let mut sent = 0;
        while sent < bytes {
            let payload = self.streams.sendable(self.id).min(bytes - sent);
            let ends = (sent + payload) as u64 == length;
            let Some(head) = self.streams.data_frame(self.id, payload, ends) else { break };
            framed.extend_from_slice(&head);
            take(&mut rest, payload, framed);
            sent += payload;
        }
        if hold.get().is_some() {
            held.note_sent(sent as u64);
        }
        sent
    }

    /// Out of a file, read to where it is sent from.
    fn frame_pages(&mut self, pages: Pages<'_>, bytes: usize, length: u64) -> usize {
        let payload_max = self.streams.sendable(self.id).min(bytes);
        if payload_max == 0 {
            return 0;
        }
        let at = self.outbox.framed.len();
        let (framed, frame_bytes) = (&mut self.outbox.framed, FRAME_HEAD_BYTES + payload_max);
        framed.resize(at + bytes + bytes.div_ceil(payload_max) * FRAME_HEAD_BYTES, 0);
        let frames = framed[at..].chunks_mut(frame_bytes);
        let mut payloads: SmallVec<[IoSliceMut<'_>; SLICES_MAX]> =
            frames.map(|frame| IoSliceMut::new(&mut frame[FRAME_HEAD_BYTES..])).collect();
        let read = preadv(pages.file, &mut payloads, pages.offset);
        drop(payloads);
        if read.ok() != Some(bytes) {
            // A file that has become shorter, or cannot be read: the transaction says so.
            framed.truncate(at);
            return 0;
        }
        let mut sent = 0;
        for frame in framed[at..].chunks_mut(frame_bytes) {
            let payload = frame.len() - FRAME_HEAD_BYTES;
            let ends = (sent + payload) as u64 == length;
            let head = self.streams.data_frame(self.id, payload, ends).expect("no more than may be sent");
            frame[..FRAME_HEAD_BYTES].copy_from_slice(&head);
            sent += payload;
        }
        sent
    }
}

/// Copies so many bytes off the front.
#[inline]
fn take(rest: &mut &mut [IoSlice<'_>], bytes: usize, to: &mut Vec<u8>) {
    let mut left = bytes;
    for slice in rest.iter() {
        let part = left.min(slice.len());
        to.extend_from_slice(&slice[..part]);
        left -= part;
        if left == 0 {
            break;
        }
    }
    IoSlice::advance_slices(rest, bytes);
}
