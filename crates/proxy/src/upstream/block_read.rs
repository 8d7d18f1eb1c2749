//! A body that is kept and flows: read from its origin straight into the blocks in which it will lie, so that nothing of it is
//! copied between the socket and the store.
//!
//! A block that nothing comes into would be memory without a use. So only what flows is read like this, one block
//! at a time, and the block is on the account.

use std::task::{Context, Poll};

use bytes::{BufMut, BytesMut};
use cache::Charge;
use wire::{BodyDecoder, Decoded};

use crate::core::Core;
use crate::limits::FLOW_BYTES_MIN;
use crate::upstream::http1_exchange::Http1Exchange;
use crate::upstream::{BodyFault, OriginPiece, Silence};

/// What is left of a block; what has been read into it is with the reader already.
#[derive(Debug)]
pub(super) struct BlockRoom {
    bytes: BytesMut,
    _held: Charge,
}

impl Http1Exchange {
    /// The next piece of a body that is kept, of which `block_bytes_left` more come before the next block begins.
    pub(super) fn poll_kept(
        &mut self,
        core: &Core,
        cx: &mut Context<'_>,
        block_bytes_left: usize,
        silence: &mut Silence,
    ) -> Poll<Result<OriginPiece, BodyFault>> {
        let room = match self.decoder {
            BodyDecoder::Length { remaining } => block_bytes_left.min(usize::try_from(remaining).unwrap_or(usize::MAX)),
            BodyDecoder::UntilClose => block_bytes_left,
            BodyDecoder::Chunked(_) | BodyDecoder::Ended { .. } => 0,
        };
        let flows = self.block.is_some() || self.brought >= FLOW_BYTES_MIN;
        let early = &mut self.unread.bytes;
        // What came with the head and is all there is needs no block.
        if room == 0 || !flows || self.decoder.remaining() == Some(early.len() as u64) {
            return self.poll_data(core, cx, silence);
        }
        let mut block = self.block.take().filter(|block| block.bytes.capacity() == room).unwrap_or_else(|| BlockRoom {
            bytes: BytesMut::with_capacity(room),
            _held: core.shared.cache.account().charge(room),
        });
        let early_bytes = early.len().min(room);
        block.bytes.extend_from_slice(&early[..early_bytes]);
        early.drain(..early_bytes);
        if early.is_empty() {
            // Room for as much as came with the head would be kept to the body's end, and is on no account.
            *early = Vec::new();
        }
        self.poll_block(core, cx, block, room, silence)
    }

    /// Reads until the block is full, or nothing more is there.
    fn poll_block(
        &mut self,
        core: &Core,
        cx: &mut Context<'_>,
        mut block: BlockRoom,
        room: usize,
        silence: &mut Silence,
    ) -> Poll<Result<OriginPiece, BodyFault>> {
        while block.bytes.len() < room {
            let left = room - block.bytes.len();
            match self.poll_read(core, cx, &mut (&mut block.bytes).limit(left), silence) {
                Poll::Ready(Ok(0)) if block.bytes.is_empty() => return Poll::Ready(self.closed()),
                // An end is there the next time, too.
                Poll::Ready(Ok(0)) => break,
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(fault)) => return Poll::Ready(Err(fault)),
                Poll::Pending if block.bytes.is_empty() => {
                    self.block = Some(block);
                    return Poll::Pending;
                }
                Poll::Pending => break,
            }
        }
        let piece = block.bytes.split().freeze();
        self.brought = piece.len();
        let decoded = self.decoder.decode(&piece);
        debug_assert!(decoded.is_ok_and(|decoded| decoded == Decoded::Data { from: 0, to: piece.len() }));
        if !self.decoder.is_end() && piece.len() < room {
            self.block = Some(block);
        }
        Poll::Ready(Ok(OriginPiece::InBlock(piece)))
    }
}
