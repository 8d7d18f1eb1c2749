//! A body that is kept and flows: read from its origin straight into the blocks in which it will lie, so that nothing of it is
//! copied between the socket and the store.
//!
//! A block that nothing comes into would be memory without a use. So only what flows is read like this, one block
//! at a time, and the block is on the account.

use std::task::{Context, Poll};

use bytes::{BufMut, BytesMut};
use cache::{Charge, Failure};
use wire::{BodyDecoder, Decoded};

use crate::fetch::origin_body::{OriginBody, OriginPiece};
use crate::limits::FLOW_BYTES_MIN;

/// What is left of a block; what has been read into it is with the reader already.
pub(super) struct BlockRoom {
    bytes: BytesMut,
    _held: Charge,
}

impl OriginBody {
    /// The next piece of a body that is kept, of which `block_bytes_left` more come before the next block begins. After `End`
    /// or an error it must not be asked again.
    pub(crate) fn poll_next_kept(
        &mut self,
        cx: &mut Context<'_>,
        block_bytes_left: usize,
    ) -> Poll<Result<OriginPiece, Failure>> {
        let room = match self.decoder {
            BodyDecoder::Length { remaining } => block_bytes_left.min(usize::try_from(remaining).unwrap_or(usize::MAX)),
            BodyDecoder::UntilClose => block_bytes_left,
            BodyDecoder::Chunked(_) | BodyDecoder::Ended { .. } => 0,
        };
        let flows = self.block.is_some() || self.brought >= FLOW_BYTES_MIN;
        // What came with the head and is all there is needs no block.
        if room == 0 || !flows || self.decoder.remaining() == Some(self.early.len() as u64) {
            return self.poll_next(cx);
        }
        let mut block = self.block.take().filter(|block| block.bytes.capacity() == room).unwrap_or_else(|| BlockRoom {
            bytes: BytesMut::with_capacity(room),
            _held: self.core.shared.cache.account().charge(room),
        });
        let early = self.early.len().min(room);
        block.bytes.extend_from_slice(&self.early[..early]);
        self.early.drain(..early);
        self.poll_block(cx, block, room)
    }

    /// Reads until the block is full, or nothing more is there.
    fn poll_block(
        &mut self,
        cx: &mut Context<'_>,
        mut block: BlockRoom,
        room: usize,
    ) -> Poll<Result<OriginPiece, Failure>> {
        while block.bytes.len() < room {
            let left = room - block.bytes.len();
            match self.poll_read(cx, &mut (&mut block.bytes).limit(left)) {
                Poll::Ready(Ok(0)) if block.bytes.is_empty() => return Poll::Ready(self.closed()),
                // An end is there the next time, too.
                Poll::Ready(Ok(0)) => break,
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(failure)) => return Poll::Ready(Err(failure)),
                Poll::Pending if block.bytes.is_empty() => {
                    self.block = Some(block);
                    return Poll::Pending;
                }
                Poll::Pending => break,
            }
        }
        let piece = block.bytes.split().freeze();
        self.brought = piece.len();
        self.count(piece.len());
        let decoded = self.decoder.decode(&piece);
        debug_assert!(decoded.is_ok_and(|decoded| decoded == Decoded::Data { from: 0, to: piece.len() }));
        if self.decoder.is_end() {
            self.release();
        } else if piece.len() < room {
            self.block = Some(block);
        }
        Poll::Ready(Ok(OriginPiece::InBlock(piece)))
    }
}
