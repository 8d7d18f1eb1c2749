//! Heads of stored responses as header blocks of HTTP/2, made when the first client asks for one. An object finds its place by its
//! address, which nobody else has while the table knows it.

use std::sync::{Arc, Weak};

use cache::{Cache, Charge, Object};
use message::Fields;
use wire::http2::hpack;

use crate::limits::{HTTP2_BLOCK_BYTES_MAX, HTTP2_BLOCKS};

/// One core's.
#[derive(Default)]
pub(crate) struct StoredBlocks {
    places: Vec<Option<StoredBlock>>,
    /// A head that is too long to be kept.
    long: Vec<u8>,
}

struct StoredBlock {
    object: Weak<Object>,
    block: Box<[u8]>,
    _held: Charge,
}

impl StoredBlocks {
    pub(crate) fn of(&mut self, cache: &Cache, object: &Arc<Object>) -> &[u8] {
        if self.places.is_empty() {
            self.places.resize_with(HTTP2_BLOCKS, || None);
        }
        let place = &mut self.places[place_of(object)];
        let is_it = place.as_ref().is_some_and(|known| known.object.as_ptr() == Arc::as_ptr(object));
        if !is_it {
            let block = block(object);
            if block.len() > HTTP2_BLOCK_BYTES_MAX {
                self.long = block;
                return &self.long;
            }
            let held = cache.account().charge(block.len() + size_of::<StoredBlock>());
            let object = Arc::downgrade(object);
            *place = Some(StoredBlock { object, block: block.into_boxed_slice(), _held: held });
        }
        place.as_ref().map_or(&[], |known| &known.block)
    }

    /// Lets go of those whose objects are gone.
    pub(crate) fn sweep(&mut self) {
        for place in &mut self.places {
            if place.as_ref().is_some_and(|known| known.object.strong_count() == 0) {
                *place = None;
            }
        }
    }
}

fn place_of(object: &Arc<Object>) -> usize {
    // Objects lie at multiples of some power of two.
    let address = Arc::as_ptr(object) as usize;
    ((address >> 6) ^ (address >> 16)) % HTTP2_BLOCKS
}

/// Status and fields as they were rendered.
fn block(object: &Arc<Object>) -> Vec<u8> {
    let mut fields = Fields::default();
    for line in object.rendered().split(|&byte| byte == b'\n').skip(1) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Some(colon) = line.iter().position(|&byte| byte == b':') {
            fields.push_named(&line[..colon], line[colon + 1..].trim_ascii());
        }
    }
    let mut block = Vec::new();
    hpack::write_status(object.status(), &mut block);
    hpack::write_fields(fields.view(), &mut block);
    block
}
