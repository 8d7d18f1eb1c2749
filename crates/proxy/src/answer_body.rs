//! What the body of an answer is taken from, before anybody has decided how much of it goes out: something stored, a file, a fetch under
//! way, an origin past the store, or bytes of our own.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use cache::{EsiPage, Follower, Object};
use message::{FieldName, Fields};
use rules::range::ContentRange;
use wire::{Content, write_field};

use crate::answer_plan::Access;
use crate::assembly::{Assembly, Includer};
use crate::body::{Body, BodySource};
use crate::disk_read::DiskRead;
use crate::fetch::fetched_body::FetchedBody;
use crate::filter_work::FilterWork;
use crate::filtered_source::FilteredSource;
use crate::held_body::HeldBody;
use crate::memcached_gateway::chunked_read::ChunkedRead;
use crate::sliced_read::SlicedRead;
use crate::static_files::open_file::OpenFile;

/// What a body is taken from.
pub(crate) enum AnswerBody {
    /// With what was borrowed of it, if it lies on a disk, and what reads it, if it lies in slices.
    Object {
        object: Arc<Object>,
        leased: Option<DiskRead>,
        slices: Option<Box<SlicedRead>>,
    },
    File(Arc<OpenFile>),
    /// Its length may be unknown.
    Follower {
        follower: Follower,
        length: Option<u64>,
    },
    Origin(Box<FetchedBody>),
    Bytes(Bytes),
    Chunks(Box<ChunkedRead>),
    /// Another, with what is included in it.
    Assembled {
        text: Box<AnswerBody>,
        page: Arc<EsiPage>,
        includer: Rc<dyn Includer>,
        /// It is joined of pieces of gzips.
        in_gzip: bool,
    },
    /// Another, through filters. Its length is that of what comes out, if that is known.
    Filtered {
        body: Box<AnswerBody>,
        work: FilterWork,
        length: Option<u64>,
    },
}

impl AnswerBody {
    /// Bytes of the complete body, if that is known.
    pub(crate) fn length(&self) -> Option<u64> {
        match self {
            AnswerBody::Object { object, .. } => Some(object.length()),
            AnswerBody::File(file) => Some(file.length()),
            AnswerBody::Follower { length, .. } | AnswerBody::Filtered { length, .. } => *length,
            AnswerBody::Bytes(body) => Some(body.len() as u64),
            AnswerBody::Chunks(read) => Some(read.value_bytes()),
            AnswerBody::Origin(body) => body.length(),
            AnswerBody::Assembled { .. } => None,
        }
    }

    pub(crate) fn content(&self) -> Content {
        self.length().map_or(Content::Unknown, Content::Length)
    }

    /// Bytes of the complete body, of which this may be a part; if that is known.
    pub(crate) fn complete_length(&self) -> Option<u64> {
        match self {
            AnswerBody::Object { object, .. } => object.partial().map_or(Some(object.length()), |part| part.complete),
            _ => self.length(),
        }
    }

    /// How its bytes can be read.
    pub(crate) fn access(&self) -> Access {
        match self {
            AnswerBody::Object { .. } | AnswerBody::File(_) => Access::Random,
            AnswerBody::Filtered { body, .. } if body.access() == Access::PassedOn => Access::PassedOn,
            AnswerBody::Follower { .. }
            | AnswerBody::Bytes(_)
            | AnswerBody::Chunks(_)
            | AnswerBody::Assembled { .. }
            | AnswerBody::Filtered { .. } => Access::InOrder,
            AnswerBody::Origin(_) => Access::PassedOn,
        }
    }

    /// An origin's answer without a body, whose end is still to be seen, so that its connection can be used again.
    pub(crate) fn is_bodiless_answer(&self) -> bool {
        matches!(self, AnswerBody::Origin(body) if body.is_none())
    }

    pub(crate) fn whole(self) -> Body {
        match self {
            AnswerBody::Object { ref object, .. } => {
                let part = object.partial();
                let range = part.map_or(0..object.length(), |part| part.from..part.to);
                self.range(range)
            }
            AnswerBody::File(ref file) => {
                let to = file.length();
                self.range(0..to)
            }
            AnswerBody::Follower { follower, length } => BodySource::Follow { follower, left: length }.into(),
            AnswerBody::Bytes(body) if body.is_empty() => Body::empty(),
            AnswerBody::Bytes(body) => BodySource::Bytes(body).into(),
            AnswerBody::Chunks(read) => BodySource::Chunks(read).into(),
            AnswerBody::Origin(body) => BodySource::Origin(body).into(),
            AnswerBody::Assembled { text, page, includer, in_gzip } => {
                BodySource::Assembled(Box::new(Assembly::new(text.whole(), page, includer, in_gzip))).into()
            }
            AnswerBody::Filtered { body, work, length } => {
                BodySource::Filtered(Box::new(FilteredSource::new(body.whole(), work, length))).into()
            }
        }
    }

    /// A range of the complete body.
    pub(crate) fn range(self, range: Range<u64>) -> Body {
        match self {
            AnswerBody::Object { slices: Some(mut slices), .. } => {
                slices.set_parts(VecDeque::from([(Vec::new(), range)]));
                BodySource::Slices(slices).into()
            }
            AnswerBody::Object { object, leased, slices: None } => {
                let offset = object.partial().map_or(0, |part| part.from);
                held(HeldBody::stored(&object, leased.as_ref()), range.start - offset..range.end - offset)
            }
            AnswerBody::File(file) => held(HeldBody::File(file), range),
            AnswerBody::Follower { mut follower, .. } => {
                follower.seek(range.start);
                BodySource::Follow { follower, left: Some(range.end - range.start) }.into()
            }
            AnswerBody::Bytes(body) => BodySource::Bytes(body.slice(range.start as usize..range.end as usize)).into(),
            AnswerBody::Filtered { body, work, length } => {
                let mut source = FilteredSource::new(body.whole(), work, length);
                source.seek(range.start, range.end - range.start);
                BodySource::Filtered(Box::new(source)).into()
            }
            AnswerBody::Origin(_) | AnswerBody::Chunks(_) | AnswerBody::Assembled { .. } => {
                unreachable!("no part is planned of what is passed on")
            }
        }
    }

    /// 206 with several parts (RFC 9110 §15.3.7.2), each of this media type: what the body is, how long, and the ranges between
    /// their part heads.
    pub(crate) fn parts(self, ranges: &[Range<u64>], kind: Option<&[u8]>) -> (Multipart, Body) {
        let complete = self.length().unwrap_or(0);
        let multipart = Multipart::new(&self.secret());
        let (parts, length) = multipart.parts(ranges, kind, complete);
        let multipart = Multipart { length, ..multipart };
        let body = match self {
            AnswerBody::Object { slices: Some(mut slices), .. } => {
                slices.set_parts(parts);
                BodySource::Slices(slices)
            }
            AnswerBody::Object { object, leased, slices: None } => {
                BodySource::Parts { held: HeldBody::stored(&object, leased.as_ref()), parts }
            }
            AnswerBody::File(file) => BodySource::Parts { held: HeldBody::File(file), parts },
            _ => unreachable!("several parts are planned of what can be read anywhere"),
        };
        (multipart, body.into())
    }

    /// Nothing of it is wanted: a fetch that is to be kept goes on all the same.
    pub(crate) fn leave(self) -> Body {
        match self {
            AnswerBody::Follower { follower, .. } => follower.leave_content(),
            AnswerBody::Filtered { body, .. } | AnswerBody::Assembled { text: body, .. } => drop(body.leave()),
            _ => {}
        }
        Body::empty()
    }

    /// A body might hold any text: a boundary is made of what its author cannot have known.
    fn secret(&self) -> String {
        match self {
            AnswerBody::Object { object, .. } => format!("{:?}", object.key()),
            _ => format!("{:016x}", RandomState::new().hash_one(self.length())),
        }
    }
}

fn held(held: HeldBody, range: Range<u64>) -> Body {
    BodySource::Held { held, from: range.start, to: range.end }.into()
}

/// A body of several parts.
pub(crate) struct Multipart {
    boundary: String,
    /// Bytes, with all part heads.
    pub(crate) length: u64,
}

impl Multipart {
    fn new(secret: &str) -> Multipart {
        let mut boundary = format!("larder-{secret}").replace(|c: char| !c.is_ascii_alphanumeric(), "");
        boundary.truncate(BOUNDARY_BYTES_MAX);
        Multipart { boundary, length: 0 }
    }

    /// The head and range of each part, the end, and how many bytes all of it has.
    fn parts(&self, ranges: &[Range<u64>], kind: Option<&[u8]>, complete: u64) -> (Parts, u64) {
        let mut parts = Parts::new();
        let mut length = 0;
        for range in ranges {
            let mut head = format!("\r\n--{}\r\n", self.boundary).into_bytes();
            if let Some(kind) = kind {
                write_field(&mut head, b"Content-Type", kind);
            }
            let mut value = Vec::new();
            ContentRange { range: range.clone(), complete_length: Some(complete) }.write_to(&mut value);
            write_field(&mut head, b"Content-Range", &value);
            head.extend_from_slice(b"\r\n");
            length += head.len() as u64 + (range.end - range.start);
            parts.push_back((head, range.clone()));
        }
        let end = format!("\r\n--{}--\r\n", self.boundary).into_bytes();
        length += end.len() as u64;
        parts.push_back((end, 0..0));
        (parts, length)
    }

    pub(crate) fn push_type(&self, fields: &mut Fields) {
        fields.push(FieldName::ContentType, format!("multipart/byteranges; boundary={}", self.boundary));
    }
}

/// Part heads, and the ranges behind them.
type Parts = VecDeque<(Vec<u8>, Range<u64>)>;

/// RFC 2046 §5.1.1 allows 70.
const BOUNDARY_BYTES_MAX: usize = 60;
