//! Heads of stored responses and of files as header blocks of HTTP/2, made when the first client asks for one. Each finds its place by
//! its address, which nobody else has while the table knows it.

use std::sync::{Arc, Weak};

use cache::{Cache, Charge, Object};
use message::{Fields, Status};
use wire::http2::hpack;

use crate::held_body::{HeldBody, Whole};
use crate::limits::{HTTP2_BLOCK_BYTES_MAX, HTTP2_BLOCKS};
use crate::static_files::open_file::OpenFile;

/// One core's.
#[derive(Default)]
pub(crate) struct StoredBlocks {
    places: Vec<Option<StoredBlock>>,
    /// A head that is too long to be kept.
    long: Vec<u8>,
}

struct StoredBlock {
    of: BlockOwner,
    block: Box<[u8]>,
    _held: Charge,
}

/// What has a rendered head.
enum BlockOwner {
    Object(Weak<Object>),
    File(Weak<OpenFile>),
}

impl BlockOwner {
    /// `None`: a body that is borrowed is sent by a transaction.
    fn of(held: &HeldBody) -> Option<BlockOwner> {
        match held {
            HeldBody::Object(object) => Some(BlockOwner::Object(Arc::downgrade(object))),
            HeldBody::File(file) => Some(BlockOwner::File(Arc::downgrade(file))),
            HeldBody::Leased(_) => None,
        }
    }

    fn address(&self) -> *const () {
        match self {
            BlockOwner::Object(object) => object.as_ptr().cast(),
            BlockOwner::File(file) => file.as_ptr().cast(),
        }
    }

    fn is_gone(&self) -> bool {
        match self {
            BlockOwner::Object(object) => object.strong_count() == 0,
            BlockOwner::File(file) => file.strong_count() == 0,
        }
    }
}

impl StoredBlocks {
    pub(crate) fn of(&mut self, cache: &Cache, held: &impl Whole) -> &[u8] {
        if self.places.is_empty() {
            self.places.resize_with(HTTP2_BLOCKS, || None);
        }
        let place = &mut self.places[place_of(held.address())];
        let is_it = place.as_ref().is_some_and(|known| known.of.address() == held.address());
        if !is_it {
            let block = block(held);
            let owner = BlockOwner::of(&held.source()).filter(|_| block.len() <= HTTP2_BLOCK_BYTES_MAX);
            let Some(of) = owner else {
                self.long = block;
                return &self.long;
            };
            let held = cache.account().charge(block.len() + size_of::<StoredBlock>());
            *place = Some(StoredBlock { of, block: block.into_boxed_slice(), _held: held });
        }
        place.as_ref().map_or(&[], |known| &known.block)
    }

    /// Lets go of those whose owners are gone.
    pub(crate) fn sweep(&mut self) {
        for place in &mut self.places {
            if place.as_ref().is_some_and(|known| known.of.is_gone()) {
                *place = None;
            }
        }
    }
}

fn place_of(address: *const ()) -> usize {
    // They lie at multiples of some power of two.
    let address = address as usize;
    ((address >> 6) ^ (address >> 16)) % HTTP2_BLOCKS
}

/// Status and fields as they were rendered.
fn block(held: &impl Whole) -> Vec<u8> {
    let mut fields = Fields::default();
    for line in held.rendered().split(|&byte| byte == b'\n').skip(1) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Some(colon) = line.iter().position(|&byte| byte == b':') {
            fields.push_named(&line[..colon], line[colon + 1..].trim_ascii());
        }
    }
    let mut block = Vec::new();
    hpack::write_status(Status(held.status()), &mut block);
    hpack::write_fields(fields.view(), &mut block);
    block
}
