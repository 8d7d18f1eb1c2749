//! One file as it was found: its bytes, or the descriptor they are sent from, and the head that it is sent with.

use std::hash::BuildHasher;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use foldhash::quality::FixedState;
use message::{FieldName, FieldsView, ResponseHead, Status};
use rules::{Facts, content_coding};
use rustix::fs::{Advice, Stat, fadvise, fstat};
use rustix::io::{Errno, pread};
use smallvec::SmallVec;
use wire::write_status_line;

use crate::settings::RootSettings;
use crate::static_files::file_types::content_type;
use crate::static_files::finding::Terms;
use crate::static_files::listing_page::ListingForm;

/// A file that goes on changing while it is read is taken as it is after so many tries.
const READS_MAX: usize = 3;
/// Of a large file, what the kernel is asked to have ready.
const READ_AHEAD_BYTES: u64 = 1 << 20;

/// By which a file is known again: any change of it makes another one of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
    bytes: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Identity {
    pub(crate) fn of(stat: &Stat) -> Identity {
        Identity {
            device: stat.st_dev,
            inode: stat.st_ino,
            bytes: stat.st_size,
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }
}

/// How a file beside another holds the same in fewer bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Coding {
    /// As HTTP calls it.
    name: &'static str,
    /// What its name has behind the other's.
    ending: &'static str,
}

/// The smallest first, as a rule.
pub(crate) const CODINGS: [Coding; 3] = [
    Coding { name: "br", ending: ".br" },
    Coding { name: "zstd", ending: ".zst" },
    Coding { name: "gzip", ending: ".gz" },
];

impl Coding {
    pub(crate) fn name(self) -> &'static str {
        self.name
    }

    pub(crate) fn name_of(self, relative: &[u8]) -> Vec<u8> {
        [relative, self.ending.as_bytes()].concat()
    }
}

/// By what name a file is asked for, and how its bytes stand for that.
pub(crate) struct Named<'a> {
    pub(crate) relative: &'a [u8],
    pub(crate) coding: Option<Coding>,
}

#[derive(Debug)]
pub(crate) enum FileBody {
    Memory(Bytes),
    Disk { file: OwnedFd, length: u64 },
}

#[derive(Debug)]
pub(crate) struct OpenFile {
    identity: Identity,
    head: ResponseHead,
    rendered: Bytes,
    facts: Facts,
    body: FileBody,
    coding: Option<Coding>,
    /// No file has these bytes: they were made of another's.
    is_made: bool,
    /// The same in other codings, in the order of `CODINGS`.
    encoded: Vec<Arc<OpenFile>>,
    /// When it was last known to be what the path means.
    checked_ms: AtomicU64,
    /// Asked for since the table looked last.
    used: AtomicBool,
}

impl OpenFile {
    /// Reads a regular file that has just been opened.
    pub(crate) fn read(
        settings: &RootSettings,
        named: &Named<'_>,
        file: OwnedFd,
        stat: &Stat,
        terms: Terms,
    ) -> Result<OpenFile, Errno> {
        let (stat, body) = body(file, *stat, terms.memory_bytes_max)?;
        let length = match &body {
            FileBody::Memory(bytes) => bytes.len() as u64,
            FileBody::Disk { length, .. } => *length,
        };
        let modified_s = stat.st_mtime.min(terms.wall_s);
        let head = head(settings, named, stat.st_mtime, modified_s, length);
        let rendered = render(&head);
        Ok(OpenFile {
            identity: Identity::of(&stat),
            head,
            rendered,
            facts: Facts { last_modified: Some(modified_s), date: terms.wall_s, ..Facts::default() },
            body,
            coding: named.coding,
            is_made: false,
            encoded: Vec::new(),
            checked_ms: AtomicU64::new(terms.mono_ms),
            used: AtomicBool::new(false),
        })
    }

    /// A page that says what is in a directory. Its tag is made of its bytes, since no time tells that the length of a
    /// file in there has changed.
    pub(crate) fn listing(form: ListingForm, varies: bool, page: Vec<u8>, directory: &Stat, terms: Terms) -> OpenFile {
        let mut head = ResponseHead::new(Status(200));
        let digest = FixedState::default().hash_one(&page);
        head.fields.push(FieldName::ContentType, form.content_type());
        head.fields.push(FieldName::Etag, format!("\"{digest:x}-{:x}\"", page.len()));
        head.fields.push(FieldName::CacheControl, "no-cache");
        head.fields.push(FieldName::AcceptRanges, "bytes");
        head.fields.push_named(b"X-Content-Type-Options", b"nosniff");
        head.fields.push_named(b"Content-Security-Policy", b"default-src 'none'; style-src 'unsafe-inline'");
        if varies {
            head.fields.push(FieldName::Vary, "Accept");
        }
        OpenFile {
            identity: Identity::of(directory),
            rendered: render(&head),
            head,
            facts: Facts { date: terms.wall_s, ..Facts::default() },
            body: FileBody::Memory(Bytes::from(page)),
            coding: None,
            is_made: false,
            encoded: Vec::new(),
            checked_ms: AtomicU64::new(terms.mono_ms),
            used: AtomicBool::new(false),
        }
    }

    pub(crate) fn is_same_listing(&self, other: &OpenFile) -> bool {
        matches!((&self.body, &other.body), (FileBody::Memory(own), FileBody::Memory(new)) if own == new)
            && self.identity.inode == other.identity.inode
            && self.rendered == other.rendered
    }

    /// Takes in the same in another coding: from now on, answers say that there are several.
    pub(crate) fn add_encoded(&mut self, mut other: OpenFile) {
        other.say_varies();
        if self.encoded.is_empty() {
            self.say_varies();
        }
        self.encoded.push(Arc::new(other));
    }

    /// What is made of one that says it already says it, too.
    fn say_varies(&mut self) {
        if !self.head.fields.view().has_token(FieldName::Vary, "Accept-Encoding") {
            self.head.fields.push(FieldName::Vary, "Accept-Encoding");
            self.rendered = render(&self.head);
        }
    }

    /// Those that lie beside it as files.
    pub(crate) fn neighbours(&self) -> impl ExactSizeIterator<Item = &Arc<OpenFile>> {
        let neighbours: SmallVec<[_; CODINGS.len()]> = self.encoded.iter().filter(|file| !file.is_made).collect();
        neighbours.into_iter()
    }

    /// The same in a coding in which its bytes were put. They may be others when they are made again, so that its tag is a weak one, and
    /// its time tells no part from another (RFC 9110 §8.8).
    pub(crate) fn in_coding(&self, coding: Coding, bytes: Bytes) -> OpenFile {
        let mut head = self.head.clone();
        content_coding::weaken_tag(&mut head.fields);
        head.fields.push(FieldName::ContentEncoding, coding.name);
        let modified_s = self.facts.last_modified.unwrap_or(self.facts.date);
        OpenFile {
            identity: self.identity.clone(),
            rendered: render(&head),
            head,
            facts: Facts { date: modified_s, ..self.facts },
            body: FileBody::Memory(bytes),
            coding: Some(coding),
            is_made: true,
            encoded: Vec::new(),
            checked_ms: AtomicU64::new(0),
            used: AtomicBool::new(false),
        }
    }

    /// All of its bytes.
    pub(crate) fn read_body(&self) -> Result<Bytes, Errno> {
        match &self.body {
            FileBody::Memory(bytes) => Ok(bytes.clone()),
            FileBody::Disk { file, length } => {
                let bytes = read_all(file, usize::try_from(*length).unwrap_or(usize::MAX))?;
                // It has become shorter meanwhile.
                if bytes.len() as u64 == *length { Ok(bytes) } else { Err(Errno::IO) }
            }
        }
    }

    /// What of it goes to who sent these fields.
    #[inline]
    pub(crate) fn chosen<'a>(self: &'a Arc<Self>, fields: FieldsView<'_>) -> &'a Arc<OpenFile> {
        if self.encoded.is_empty() { self } else { self.chosen_coding(fields) }
    }

    fn chosen_coding<'a>(self: &'a Arc<Self>, fields: FieldsView<'_>) -> &'a Arc<OpenFile> {
        let names: SmallVec<[&[u8]; CODINGS.len()]> =
            self.encoded.iter().map(|file| file.coding.map_or(&b""[..], |coding| coding.name.as_bytes())).collect();
        content_coding::preferred(fields, &names).map_or(self, |at| &self.encoded[at])
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Without the length, and without what differs from answer to answer.
    pub(crate) fn head(&self) -> &ResponseHead {
        &self.head
    }

    /// The head of a whole answer but for Date and what ends it.
    #[inline]
    pub(crate) fn rendered(&self) -> &Bytes {
        &self.rendered
    }

    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    #[inline]
    pub(crate) fn body(&self) -> &FileBody {
        &self.body
    }

    #[inline]
    pub(crate) fn length(&self) -> u64 {
        match &self.body {
            FileBody::Memory(bytes) => bytes.len() as u64,
            FileBody::Disk { length, .. } => *length,
        }
    }

    /// Memory that the table answers for.
    pub(crate) fn memory_bytes(&self) -> usize {
        let own = match &self.body {
            FileBody::Memory(bytes) => bytes.len(),
            FileBody::Disk { .. } => 0,
        };
        own + self.encoded.iter().map(|file| file.memory_bytes()).sum::<usize>()
    }

    /// Files that it stands for: itself, and the same in other codings.
    pub(crate) fn count(&self) -> usize {
        1 + self.encoded.len()
    }

    /// Is it time to look again? One asker is told so, and what he does not do for as long again, the next one does.
    #[inline]
    pub(crate) fn is_due(&self, now_ms: u64, every_ms: u64) -> bool {
        let last = self.checked_ms.load(Ordering::Relaxed);
        if now_ms.saturating_sub(last) < every_ms {
            return false;
        }
        self.checked_ms.compare_exchange(last, now_ms, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    #[inline]
    pub(crate) fn note_use(&self) {
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn take_use(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }
}

/// The bytes, if they are few and stand still; and the file's facts as they were with these bytes.
fn body(file: OwnedFd, stat: Stat, memory_bytes_max: u64) -> Result<(Stat, FileBody), Errno> {
    let mut stat = stat;
    let length = |stat: &Stat| u64::try_from(stat.st_size).unwrap_or(0);
    for tries_left in (0..READS_MAX).rev() {
        if length(&stat) > memory_bytes_max {
            break;
        }
        let bytes = read_all(&file, length(&stat) as usize)?;
        let after = fstat(&file)?;
        if Identity::of(&after) == Identity::of(&stat) && bytes.len() as u64 == length(&stat) || tries_left == 0 {
            return Ok((stat, FileBody::Memory(bytes)));
        }
        stat = after;
    }
    let length = length(&stat);
    // Advice: where it cannot be given, nothing is lost.
    let _ = fadvise(&file, 0, std::num::NonZeroU64::new(length.min(READ_AHEAD_BYTES)), Advice::WillNeed);
    Ok((stat, FileBody::Disk { file, length }))
}

fn read_all(file: &OwnedFd, length: usize) -> Result<Bytes, Errno> {
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while filled < length {
        match pread(file, &mut bytes[filled..], filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    bytes.truncate(filled);
    Ok(Bytes::from(bytes))
}

/// The head of a whole answer but for what differs from answer to answer.
fn render(head: &ResponseHead) -> Bytes {
    let mut rendered = Vec::with_capacity(256);
    write_status_line(&mut rendered, head.status, None);
    head.fields.view().write_lines(&mut rendered, |_| true);
    Bytes::from(rendered.into_boxed_slice())
}

fn head(settings: &RootSettings, named: &Named<'_>, mtime_s: i64, modified_s: i64, length: u64) -> ResponseHead {
    let mut head = ResponseHead::new(Status(200));
    let fields = &mut head.fields;
    fields.push(FieldName::ContentType, content_type(named.relative, settings));
    fields.push(FieldName::LastModified, rules::date::write_date(modified_s));
    // Strong, and of the same form as nginx's, so that machines of both kinds agree on one file.
    let ending = named.coding.map_or("", |coding| coding.name);
    let dash = if ending.is_empty() { "" } else { "-" };
    fields.push(FieldName::Etag, format!("\"{mtime_s:x}-{length:x}{dash}{ending}\""));
    if let Some(coding) = named.coding {
        fields.push(FieldName::ContentEncoding, coding.name);
    }
    if let Some(control) = &settings.cache_control {
        fields.push(FieldName::CacheControl, control);
    }
    fields.push(FieldName::AcceptRanges, "bytes");
    head
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::static_files::beneath;
    use crate::static_files::finding::tests::TestFolder;

    fn read(folder: &TestFolder, name: &str, memory_bytes_max: u64) -> OpenFile {
        let file = beneath::open(folder.open().as_fd(), name.as_bytes(), rustix::fs::OFlags::RDONLY).unwrap();
        let stat = fstat(&file).unwrap();
        let mut settings = RootSettings::of(folder.path(""));
        settings.charset = Some("utf-8".to_owned());
        settings.cache_control = Some("max-age=60".to_owned());
        let terms = Terms { memory_bytes_max, wall_s: 1_700_000_000, mono_ms: 5_000, ..Terms::PLAIN };
        OpenFile::read(&settings, &Named { relative: name.as_bytes(), coding: None }, file, &stat, terms).unwrap()
    }

    #[test]
    fn the_head_says_what_the_file_is() {
        let folder = TestFolder::new("open-file");
        folder.write("a.html", "seventeen bytes !");
        let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs(0x6400_0000);
        std::fs::File::options().write(true).open(folder.path("a.html")).unwrap().set_modified(at).unwrap();
        let file = read(&folder, "a.html", 64);
        let expect = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\
                      Last-Modified: Thu, 02 Mar 2023 01:46:40 GMT\r\nETag: \"64000000-11\"\r\n\
                      Cache-Control: max-age=60\r\nAccept-Ranges: bytes\r\n";
        assert_eq!(String::from_utf8_lossy(file.rendered()), expect);
        assert_eq!((file.length(), file.memory_bytes()), (17, 17));
    }

    #[test]
    fn a_large_file_stays_on_disk() {
        let folder = TestFolder::new("large-file");
        folder.write("a", "seventeen bytes !");
        let file = read(&folder, "a", 16);
        assert!(matches!(file.body(), FileBody::Disk { length: 17, .. }));
        assert_eq!((file.length(), file.memory_bytes()), (17, 0));
    }

    #[test]
    fn one_asker_looks_again_when_it_is_time() {
        let folder = TestFolder::new("due-file");
        folder.write("a", "");
        let file = read(&folder, "a", 16);
        assert!(!file.is_due(5_999, 1_000));
        assert!(file.is_due(6_000, 1_000) && !file.is_due(6_000, 1_000));
        assert!(!file.is_due(6_999, 1_000) && file.is_due(7_000, 1_000));
    }
}
