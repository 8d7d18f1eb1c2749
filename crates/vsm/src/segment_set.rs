//! One index and its segments: a folder with a file `_.index` and a file for each segment.
//!
//! ```text
//! # PID STARTED                          who writes here, and since when: readers begin anew when it changes
//! + FILE 0 LENGTH CLASS NAME             a segment came
//! - FILE 0 LENGTH CLASS NAME             it went
//! ```
//!
//! Readers follow the index as it grows, and read it from the start when it is another file. Length is that of what counts;
//! the file itself is whole pages.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::limits::{INDEX_LINES_SPENT_MAX, NAME_BYTES_MAX, PAGE_BYTES, SEGMENTS_MAX};

const INDEX: &str = "_.index";
/// What another process left behind, and what we make, begin so.
const OURS: &str = "_.";

/// Handed out with every segment, which leaves the index when it is dropped.
#[derive(Clone, Debug)]
pub struct SegmentSet(Arc<Mutex<Index>>);

#[derive(Debug)]
struct Index {
    folder: PathBuf,
    /// The first line.
    who: String,
    file: File,
    /// Lines of the segments that are there, in the order in which they came.
    lines: Vec<String>,
    /// Lines in the file about segments that are not.
    spent: usize,
}

/// A stretch of memory that readers see.
#[derive(Debug)]
pub struct Segment {
    set: SegmentSet,
    path: PathBuf,
    file: File,
    bytes: u64,
    line: String,
}

impl SegmentSet {
    /// Empties the folder of what an earlier process left there, and begins its index.
    pub fn create(folder: &Path, pid: u32, started_s: u64) -> io::Result<SegmentSet> {
        DirBuilder::new().recursive(true).mode(0o750).create(folder)?;
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(OURS) {
                fs::remove_file(entry.path())?;
            }
        }
        let who = format!("# {pid} {started_s}\n");
        let file = write_index(folder, &who, &[])?;
        let index = Index { folder: folder.to_path_buf(), who, file, lines: Vec::new(), spent: 0 };
        Ok(SegmentSet(Arc::new(Mutex::new(index))))
    }

    /// A segment with this content. `class` and `name` go into a line of words: printable, without blanks.
    pub fn add(&self, class: &str, name: &str, content: &[u8]) -> io::Result<Segment> {
        self.add_sparse(class, name, content, content.len() as u64)
    }

    /// The same, of so many bytes, of which what is behind the content takes no memory before something is written there.
    pub fn add_sparse(&self, class: &str, name: &str, content: &[u8], length: u64) -> io::Result<Segment> {
        let is_word = |text: &str| text.len() <= NAME_BYTES_MAX && text.bytes().all(|byte| byte.is_ascii_graphic());
        if class.is_empty() || !is_word(class) || !is_word(name) || name.contains(['"', '\\']) {
            return Err(io::Error::other(format!("'{class}' and '{name}' are no names for a segment")));
        }
        let mut index = self.index();
        if index.lines.len() >= SEGMENTS_MAX {
            return Err(io::Error::other(format!("there are {SEGMENTS_MAX} segments (SEGMENTS_MAX)")));
        }
        let file_name = format!("{OURS}{class}.{:016x}", RandomState::new().hash_one(name));
        let path = index.folder.join(&file_name);
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o640).open(&path)?;
        let line = format!("{file_name} 0 {length} {class} {name}\n");
        let bytes = length.next_multiple_of(PAGE_BYTES).max(PAGE_BYTES);
        let listed =
            file.set_len(bytes).and_then(|()| file.write_all_at(content, 0)).and_then(|()| index.append('+', &line));
        if let Err(error) = listed {
            // Nobody has seen it.
            let _ = fs::remove_file(&path);
            return Err(error);
        }
        index.lines.push(line.clone());
        drop(index);
        Ok(Segment { set: self.clone(), path, file, bytes, line })
    }

    fn index(&self) -> std::sync::MutexGuard<'_, Index> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Index {
    fn append(&mut self, sign: char, line: &str) -> io::Result<()> {
        self.file.write_all(format!("{sign} {line}").as_bytes())
    }

    fn take_out(&mut self, line: &str) -> io::Result<()> {
        let before = self.lines.len();
        self.lines.retain(|other| other != line);
        self.spent += 2 * (before - self.lines.len());
        if self.spent < INDEX_LINES_SPENT_MAX {
            return self.append('-', line);
        }
        self.file = write_index(&self.folder, &self.who, &self.lines)?;
        self.spent = 0;
        Ok(())
    }
}

impl Drop for Index {
    /// With the last segment.
    fn drop(&mut self) {
        let _ = fs::remove_file(self.folder.join(INDEX));
    }
}

/// A new index in the place of the one before, at once.
fn write_index(folder: &Path, who: &str, lines: &[String]) -> io::Result<File> {
    let new = folder.join("_.index.new");
    let mut file = OpenOptions::new().append(true).create_new(true).mode(0o640).open(&new)?;
    let text: String = lines.iter().map(|line| format!("+ {line}")).collect();
    file.write_all(format!("{who}{text}").as_bytes())?;
    fs::rename(&new, folder.join(INDEX))?;
    Ok(file)
}

impl Segment {
    /// Changes what readers see from that byte on.
    ///
    /// # Panics
    /// Past its pages: readers have mapped no more.
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let end = offset + bytes.len() as u64;
        assert!(end <= self.bytes, "a segment does not grow");
        self.file.write_all_at(bytes, offset)
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // A reader that has it mapped keeps it; who comes later does not find it.
        let _ = self.set.index().take_out(&self.line);
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("larder-vsm-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    /// Its lines, without what is drawn at random.
    fn index_of(folder: &Path) -> Vec<String> {
        let text = fs::read_to_string(folder.join(INDEX)).unwrap();
        let one = |line: &str| {
            let file = line.split(' ').nth(1).filter(|file| file.starts_with(OURS));
            file.map_or(line.to_string(), |file| line.replace(file, &file[..file.len() - 16]))
        };
        text.lines().map(one).collect()
    }

    #[test]
    fn segments_come_and_go_in_the_index_and_in_the_folder() {
        let folder = folder("come-and-go");
        let set = SegmentSet::create(&folder, 7, 1).unwrap();
        let one = set.add("Stat", "VBE.boot.one", &[1; 100]).unwrap();
        let two = set.add("Arg", "-T", b"here").unwrap();
        one.write_at(4_090, b"to end").unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 3);
        assert_eq!(fs::metadata(&one.path).unwrap().len(), PAGE_BYTES);
        drop(one);
        let stat = "_.Stat. 0 100 Stat VBE.boot.one";
        let expect = ["# 7 1", &format!("+ {stat}"), "+ _.Arg. 0 4 Arg -T", &format!("- {stat}")];
        assert_eq!(index_of(&folder), expect);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
        // The next process begins anew, whatever one that was killed has left.
        std::mem::forget((two, set));
        let set = SegmentSet::create(&folder, 8, 2).unwrap();
        assert_eq!((fs::read_dir(&folder).unwrap().count(), index_of(&folder)), (1, vec!["# 8 2".to_string()]));
        drop(set);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn an_index_does_not_grow_for_ever() {
        let folder = folder("grow");
        let set = SegmentSet::create(&folder, 7, 1).unwrap();
        let stays = set.add("Stat", "stays", b"1").unwrap();
        for _ in 0..INDEX_LINES_SPENT_MAX {
            drop(set.add("Stat", "goes", b"1").unwrap());
        }
        let lines = index_of(&folder).len();
        assert!((2..=2 + INDEX_LINES_SPENT_MAX).contains(&lines), "{lines}");
        assert!(fs::read_to_string(folder.join(INDEX)).unwrap().contains("Stat stays\n"));
        drop(stays);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_would_break_a_line_is_no_name() {
        let folder = folder("names");
        let set = SegmentSet::create(&folder, 7, 1).unwrap();
        for (class, name) in
            [("", "a"), ("Stat", "a b"), ("Stat", "a\nb"), ("St at", "a"), ("Stat", "a\"b"), ("Stat", "ä")]
        {
            assert!(set.add(class, name, b"").is_err(), "{class:?} {name:?}");
        }
        assert!(set.add("Stat", &"a".repeat(NAME_BYTES_MAX + 1), b"").is_err());
        assert_eq!(index_of(&folder).len(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }
}
