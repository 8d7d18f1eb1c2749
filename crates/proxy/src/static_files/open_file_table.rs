//! The files that are open, by root and path, for all cores: bounded in number and in bytes, and what was not asked for
//! since the hand came by last goes first.
//!
//! A path is kept under its one canonical spelling, so that looking another one up finds nothing here and goes the long
//! way. Nothing in here opens or looks at files.

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::quality::RandomState;
use hashbrown::HashTable;
use parking_lot::RwLock;

use crate::limits::Limits;
use crate::static_files::open_file::OpenFile;

/// Parts with a lock of their own; one where there are too few files for more.
const SHARDS: usize = 16;
const FILES_PER_SHARD_MIN: usize = 16;

pub(crate) struct OpenFileTable {
    shards: Vec<RwLock<FileShard>>,
    hasher: RandomState,
    /// Of one shard.
    files_max: usize,
    bytes_max: usize,
    check_every_ms: u64,
}

/// What is known of a path.
#[derive(Debug)]
pub(crate) enum KnownFile {
    Current(Arc<OpenFile>),
    /// The asker is to see whether it is still so.
    Due(Arc<OpenFile>),
    Nothing,
}

#[derive(Default)]
struct FileShard {
    /// Places in `entries`.
    places: HashTable<usize>,
    entries: Vec<TableEntry>,
    hand: usize,
    files: usize,
    bytes: usize,
}

struct TableEntry {
    hash: u64,
    root: usize,
    path: Box<[u8]>,
    file: Arc<OpenFile>,
}

impl OpenFileTable {
    pub(crate) fn new(limits: &Limits) -> OpenFileTable {
        let shards = if limits.open_files_max < SHARDS * FILES_PER_SHARD_MIN { 1 } else { SHARDS };
        OpenFileTable {
            shards: (0..shards).map(|_| RwLock::default()).collect(),
            hasher: RandomState::default(),
            files_max: limits.open_files_max / shards,
            bytes_max: limits.open_files_bytes_max / shards,
            check_every_ms: limits.open_file_check_interval.as_millis() as u64,
        }
    }

    /// A file with more bytes cannot be kept in memory.
    pub(crate) fn file_bytes_max(&self) -> u64 {
        self.bytes_max as u64
    }

    /// Has it a place for so many files together, of so many bytes?
    pub(crate) fn keeps(&self, files: usize, bytes: u64) -> bool {
        files <= self.files_max && bytes <= self.bytes_max as u64
    }

    #[inline]
    pub(crate) fn get(&self, root: usize, path: &[u8], now_ms: u64) -> KnownFile {
        let hash = self.hasher.hash_one((root, path));
        let shard = self.shard(hash).read();
        let Some(&place) = shard.places.find(hash, |&at| shard.entries[at].is(root, path)) else {
            return KnownFile::Nothing;
        };
        let file = &shard.entries[place].file;
        file.note_use();
        match file.is_due(now_ms, self.check_every_ms) {
            true => KnownFile::Due(Arc::clone(file)),
            false => KnownFile::Current(Arc::clone(file)),
        }
    }

    /// Keeps a file in the place of what the path meant before.
    pub(crate) fn keep(&self, root: usize, path: &[u8], file: &Arc<OpenFile>) {
        let hash = self.hasher.hash_one((root, path));
        let mut shard = self.shard(hash).write();
        if let Some(place) = shard.find(hash, root, path) {
            if Arc::ptr_eq(&shard.entries[place].file, file) {
                return;
            }
            shard.remove(place);
        }
        if file.count() > self.files_max || file.memory_bytes() > self.bytes_max {
            return;
        }
        while shard.files + file.count() > self.files_max || shard.bytes + file.memory_bytes() > self.bytes_max {
            shard.evict();
        }
        shard.add(TableEntry { hash, root, path: path.into(), file: Arc::clone(file) });
    }

    /// The path means nothing any more.
    pub(crate) fn drop_path(&self, root: usize, path: &[u8]) {
        let hash = self.hasher.hash_one((root, path));
        let mut shard = self.shard(hash).write();
        if let Some(place) = shard.find(hash, root, path) {
            shard.remove(place);
        }
    }

    /// By high bits: the tables inside use the low ones, and the highest seven.
    #[inline]
    fn shard(&self, hash: u64) -> &RwLock<FileShard> {
        &self.shards[(hash >> 40) as usize % self.shards.len()]
    }
}

impl TableEntry {
    #[inline]
    fn is(&self, root: usize, path: &[u8]) -> bool {
        self.root == root && *self.path == *path
    }
}

impl FileShard {
    fn find(&self, hash: u64, root: usize, path: &[u8]) -> Option<usize> {
        self.places.find(hash, |&at| self.entries[at].is(root, path)).copied()
    }

    fn add(&mut self, entry: TableEntry) {
        self.files += entry.file.count();
        self.bytes += entry.file.memory_bytes();
        let hash = entry.hash;
        self.entries.push(entry);
        let entries = &self.entries;
        self.places.insert_unique(hash, entries.len() - 1, |&at| entries[at].hash);
    }

    fn remove(&mut self, place: usize) {
        self.forget_place(self.entries[place].hash, place);
        let last = self.entries.len() - 1;
        let removed = self.entries.swap_remove(place);
        self.files -= removed.file.count();
        self.bytes -= removed.file.memory_bytes();
        if place < last {
            // What stood last stands here now.
            let hash = self.entries[place].hash;
            self.forget_place(hash, last);
            let entries = &self.entries;
            self.places.insert_unique(hash, place, |&at| entries[at].hash);
        }
    }

    fn forget_place(&mut self, hash: u64, place: usize) {
        if let Ok(found) = self.places.find_entry(hash, |&at| at == place) {
            found.remove();
        }
    }

    /// Removes the first from the hand on that was not used since. Ends after two rounds at most.
    fn evict(&mut self) {
        loop {
            self.hand = if self.hand < self.entries.len() { self.hand } else { 0 };
            if !self.entries[self.hand].file.take_use() {
                return self.remove(self.hand);
            }
            self.hand += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::settings::RootSettings;
    use crate::static_files::beneath;
    use crate::static_files::finding::Terms;
    use crate::static_files::finding::tests::TestFolder;
    use crate::static_files::open_file::Named;

    fn file(folder: &TestFolder, text: &str) -> Arc<OpenFile> {
        folder.write("file", text);
        let file = beneath::open(folder.open().as_fd(), b"file", rustix::fs::OFlags::RDONLY).unwrap();
        let stat = rustix::fs::fstat(&file).unwrap();
        let terms = Terms { memory_bytes_max: 100, ..Terms::PLAIN };
        Arc::new(
            OpenFile::read(
                &RootSettings::of(folder.path("")),
                &Named { relative: b"file", coding: None },
                file,
                &stat,
                terms,
            )
            .unwrap(),
        )
    }

    fn table(files_max: usize, bytes_max: usize) -> OpenFileTable {
        let limits = Limits { open_files_max: files_max, open_files_bytes_max: bytes_max, ..Limits::default() };
        OpenFileTable::new(&limits)
    }

    /// Which of the paths `a` to `z` are kept.
    fn kept(table: &OpenFileTable) -> String {
        let is_kept = |path: &char| !matches!(table.get(0, path.to_string().as_bytes(), 0), KnownFile::Nothing);
        ('a'..='z').filter(is_kept).collect()
    }

    #[test]
    fn what_was_not_asked_for_goes_first() {
        let folder = TestFolder::new("table");
        let table = table(3, 1_000);
        for path in [b"a", b"b", b"c"] {
            table.keep(0, path, &file(&folder, "x"));
        }
        table.get(0, b"a", 0);
        table.get(0, b"c", 0);
        table.keep(0, b"d", &file(&folder, "x"));
        assert_eq!(kept(&table), "acd");
        // All were asked for by that: the hand goes round once and takes one of them.
        table.keep(0, b"e", &file(&folder, "x"));
        assert_eq!((kept(&table).len(), kept(&table).contains('e')), (3, true));
    }

    #[test]
    fn bytes_are_bounded_and_accounted_for() {
        let folder = TestFolder::new("table-bytes");
        let table = table(10, 10);
        table.keep(0, b"a", &file(&folder, "1234"));
        table.keep(0, b"b", &file(&folder, "1234"));
        table.keep(0, b"b", &file(&folder, "123"));
        table.keep(0, b"c", &file(&folder, "123"));
        assert_eq!((kept(&table), table.shards[0].read().bytes), ("abc".to_owned(), 10));
        table.keep(0, b"d", &file(&folder, "12345678901"));
        assert_eq!(kept(&table), "abc");
        table.drop_path(0, b"a");
        table.keep(0, b"e", &file(&folder, "1234"));
        assert_eq!((kept(&table), table.shards[0].read().bytes), ("bce".to_owned(), 10));
        table.keep(0, b"f", &file(&folder, "1234567890"));
        assert_eq!((kept(&table), table.shards[0].read().bytes), ("f".to_owned(), 10));
    }

    #[test]
    fn every_coding_of_a_file_counts_as_a_file() {
        let folder = TestFolder::new("table-codings");
        let with_coding = || {
            let mut both = Arc::into_inner(file(&folder, "12")).unwrap();
            both.add_encoded(Arc::into_inner(file(&folder, "1")).unwrap());
            Arc::new(both)
        };
        let table = table(3, 1_000);
        table.keep(0, b"a", &with_coding());
        table.keep(0, b"b", &file(&folder, "1"));
        assert_eq!((kept(&table), table.shards[0].read().files), ("ab".to_owned(), 3));
        table.keep(0, b"c", &with_coding());
        let files = table.shards[0].read().files;
        assert!(files <= 3 && kept(&table).contains('c'), "{files} {}", kept(&table));
        table.drop_path(0, b"c");
        table.drop_path(0, b"b");
        assert_eq!((kept(&table), table.shards[0].read().files), (String::new(), 0));
    }

    #[test]
    fn a_root_has_paths_of_its_own() {
        let folder = TestFolder::new("table-roots");
        let table = table(10, 10);
        table.keep(1, b"a", &file(&folder, "1"));
        assert!(matches!(table.get(0, b"a", 0), KnownFile::Nothing));
        assert!(matches!(table.get(1, b"a", 999), KnownFile::Current(_)));
        assert!(matches!(table.get(1, b"a", 1_000), KnownFile::Due(_)));
        assert!(matches!(table.get(1, b"a", 1_000), KnownFile::Current(_)));
    }

    #[test]
    fn without_room_nothing_is_kept() {
        let folder = TestFolder::new("table-none");
        let table = table(0, 0);
        table.keep(0, b"a", &file(&folder, ""));
        assert_eq!(kept(&table), "");
    }
}
