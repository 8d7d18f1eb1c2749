//! Counters: what a class of them means, for readers to show, and the values of one of its kind.
//!
//! Both are segments that begin alike: whether they are ready, where the body is, and a number by which values find their
//! meaning. The body of the meaning is JSON, that of the values numbers of 64 bits in the order of the JSON's `index`.

use std::io;
use std::sync::Arc;

use crate::segment_set::{Segment, SegmentSet};

/// Whether it only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    /// Bits of one look after another, the newest the lowest.
    Bitmap,
}

/// Who wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Info,
    Diag,
    Debug,
}

/// How it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Integer,
    Bytes,
    Bitmap,
    /// Seconds.
    Duration,
}

#[derive(Clone, Copy, Debug)]
pub struct Counter {
    pub name: &'static str,
    pub kind: Kind,
    pub level: Level,
    pub format: Format,
    /// In a few words.
    pub meaning: &'static str,
}

/// Counters that belong together.
#[derive(Clone, Debug)]
pub struct CounterClass {
    pub name: &'static str,
    pub meaning: &'static str,
    /// Where it stands among the classes.
    pub order: u32,
    pub counters: Vec<Counter>,
}

/// A class that readers know.
#[derive(Clone, Debug)]
pub struct Meaning {
    counters: usize,
    id: u64,
    _segment: Arc<Segment>,
}

/// The values of one of a class: of one backend, one storage.
#[derive(Debug)]
pub struct CounterSegment {
    segment: Segment,
    counters: usize,
    /// Without it nobody reads the values.
    _meaning: Meaning,
}

/// ready: i32 and four bytes of nothing, offset of the body: u64, id: u64.
const HEAD_BYTES: usize = 24;
const READY: u64 = 1;
/// Readers let go of it.
const GONE: u64 = 2;

impl Counter {
    /// That only grows, is for everybody, and a plain number.
    pub const fn total(name: &'static str, meaning: &'static str) -> Counter {
        Counter { name, kind: Kind::Counter, level: Level::Info, format: Format::Integer, meaning }
    }

    pub const fn gauge(name: &'static str, meaning: &'static str) -> Counter {
        Counter { kind: Kind::Gauge, ..Counter::total(name, meaning) }
    }

    /// The same, shown as bits.
    pub const fn bits(self) -> Counter {
        Counter { kind: Kind::Bitmap, format: Format::Bitmap, ..self }
    }

    /// The same, shown as bytes.
    pub const fn bytes(self) -> Counter {
        Counter { format: Format::Bytes, ..self }
    }

    /// The same, shown as a span of time.
    pub const fn seconds(self) -> Counter {
        Counter { format: Format::Duration, ..self }
    }

    /// The same, shown when more than the usual is asked for.
    pub const fn diag(self) -> Counter {
        Counter { level: Level::Diag, ..self }
    }
}

impl Meaning {
    /// Lets readers know what a class means. `id` must be another for each class of a folder, and not 0.
    pub fn publish(set: &SegmentSet, class: &CounterClass, id: u64) -> io::Result<Meaning> {
        let texts = class.counters.iter().flat_map(|counter| [counter.name, counter.meaning]);
        // The readers write them into JSON and XML of their own as they are.
        if let Some(text) = texts.chain([class.name, class.meaning]).find(|text| text.contains(['"', '\\', '<', '&'])) {
            return Err(io::Error::other(format!("readers could not show '{text}'")));
        }
        let content = [&head(id)[..], class.as_json().as_bytes(), b"\0"].concat();
        let segment = set.add("StatDoc", &format!("{id:x}"), &content)?;
        Ok(Meaning { counters: class.counters.len(), id, _segment: Arc::new(segment) })
    }

    /// Values of the class, all 0, under a name as readers show it: `MAIN`, `VBE.boot.default`.
    pub fn counters(&self, set: &SegmentSet, name: &str) -> io::Result<CounterSegment> {
        let counters = self.counters;
        let content = [&head(self.id)[..], &vec![0; counters * size_of::<u64>()]].concat();
        Ok(CounterSegment { segment: set.add("Stat", name, &content)?, counters, _meaning: self.clone() })
    }
}

impl CounterSegment {
    /// Shows new values, in the order of the class.
    ///
    /// # Panics
    /// When they are not as many as the class has.
    pub fn show(&self, values: &[u64]) -> io::Result<()> {
        assert_eq!(values.len(), self.counters, "each counter has a value");
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        self.segment.write_at(HEAD_BYTES as u64, &bytes)
    }
}

impl Drop for CounterSegment {
    fn drop(&mut self) {
        let _ = self.segment.write_at(0, &GONE.to_ne_bytes());
    }
}

fn head(id: u64) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    for (place, number) in head.chunks_exact_mut(size_of::<u64>()).zip([READY, HEAD_BYTES as u64, id]) {
        place.copy_from_slice(&number.to_ne_bytes());
    }
    head
}

impl CounterClass {
    fn as_json(&self) -> String {
        let elements = self.counters.iter().enumerate().map(|(place, counter)| {
            let Counter { name, kind, level, format, meaning } = counter;
            let (kind, level) = (format!("{kind:?}").to_lowercase(), format!("{level:?}").to_lowercase());
            let (format, index) = (format!("{format:?}").to_lowercase(), place * size_of::<u64>());
            format!(
                "\"{name}\":{{\"type\":\"{kind}\",\"ctype\":\"uint64_t\",\"level\":\"{level}\",\"oneliner\":\"{meaning}\",\
                 \"format\":\"{format}\",\"index\":{index},\"name\":\"{name}\",\"docs\":\"\"}}"
            )
        });
        let elements: Vec<String> = elements.collect();
        format!(
            "{{\"version\":\"1\",\"name\":\"{}\",\"oneliner\":\"{}\",\"order\":{},\"docs\":\"\",\"elements\":{},\"elem\":{{{}}}}}",
            self.name,
            self.meaning,
            self.order,
            elements.len(),
            elements.join(",")
        )
    }
}
