//! The history on a disk, so that a restart keeps it: a file of a fixed size, in which each row and each annotation has a place of its own.
//!
//! A place is a row and its checksum, so what a crash tore is one row, which is left out. A history that another version wrote, or that was
//! cut, is begun anew, and that is said; a file that is none is somebody's, and left as it is. Nothing here waits for the disk: what the kernel
//! has taken survives the process, which is what a history is for.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::annotation::{Annotation, AnnotationKind};
use super::history_columns::{COLUMNS, HistoryRow, names};
use super::history_ring::{HistoryRing, HistoryStep};
use crate::limits::{ANNOTATION_BYTES_MAX, ANNOTATIONS_MAX};

const BEGINS: &[u8; 15] = b"larder history ";
const HEAD_BYTES: usize = 64;
const ROW_BYTES: usize = (COLUMNS + 1) * 8;
/// Two times, kind, count, length, and the text; then the checksum.
const ANNOTATION_PLACE_BYTES: usize = 5 * 8 + ANNOTATION_BYTES_MAX + 8;
const SECONDS_FROM: usize = HEAD_BYTES;
const MINUTES_FROM: usize = SECONDS_FROM + HistoryStep::Second.kept() * ROW_BYTES;
const ANNOTATIONS_FROM: usize = MINUTES_FROM + HistoryStep::Minute.kept() * ROW_BYTES;
pub const FILE_BYTES: usize = ANNOTATIONS_FROM + ANNOTATIONS_MAX * ANNOTATION_PLACE_BYTES;

/// What is told of a file that was opened.
#[derive(Debug, PartialEq, Eq)]
pub enum HistoryFileFinding {
    /// There was none.
    New,
    Read,
    /// So many places were damaged, and are left out.
    Damaged(usize),
    /// It is begun anew, because of this.
    BegunAnew(&'static str),
}

pub struct HistoryFile {
    file: File,
    path: PathBuf,
}

impl HistoryFile {
    /// Fills the ring with what is there and is not older than it keeps, nor later than now.
    pub fn open(path: &Path, now_s: u64, ring: &mut HistoryRing) -> Result<(HistoryFile, HistoryFileFinding), String> {
        let said = |error: io::Error| error.to_string();
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(path).map_err(said)?;
        if !file.metadata().map_err(said)?.is_file() {
            return Err("it is no regular file".to_owned());
        }
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => "another process has it".to_owned(),
            TryLockError::Error(error) => format!("it cannot be locked: {error}"),
        })?;
        let finding = match file.metadata().map_err(said)?.len() {
            0 => HistoryFileFinding::New,
            _ if !is_history(&file).map_err(said)? => {
                return Err("it is no history of larder's, and stays as it is: name another file".to_owned());
            }
            bytes if bytes != FILE_BYTES as u64 => HistoryFileFinding::BegunAnew("it has another size"),
            _ => {
                let mut bytes = vec![0; FILE_BYTES];
                file.read_exact_at(&mut bytes, 0).map_err(said)?;
                read(&bytes, now_s, ring)
            }
        };
        if matches!(finding, HistoryFileFinding::New | HistoryFileFinding::BegunAnew(_)) {
            // With its head first: one that a crash leaves here is known for what it is.
            file.set_len(0).and_then(|()| file.write_all_at(&head(), 0)).map_err(said)?;
            file.set_len(FILE_BYTES as u64).map_err(said)?;
        }
        Ok((HistoryFile { file, path: path.to_owned() }, finding))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Each into its place.
    pub fn write_rows(&self, step: HistoryStep, rows: &[HistoryRow]) -> io::Result<()> {
        rows.iter().try_for_each(|row| self.file.write_all_at(&row_bytes(row), row_place(step, row.at_s()) as u64))
    }

    /// All of them: they are few, and change seldom.
    pub fn write_annotations<'a>(&self, annotations: impl Iterator<Item = &'a Annotation>) -> io::Result<()> {
        let mut bytes = vec![0; ANNOTATIONS_MAX * ANNOTATION_PLACE_BYTES];
        bytes
            .chunks_exact_mut(ANNOTATION_PLACE_BYTES)
            .zip(annotations)
            .for_each(|(place, annotation)| place.copy_from_slice(&annotation_bytes(annotation)));
        self.file.write_all_at(&bytes, ANNOTATIONS_FROM as u64)
    }
}

/// Does it begin as a history of any version does?
fn is_history(file: &File) -> io::Result<bool> {
    let mut begins = [0; BEGINS.len()];
    match file.read_exact_at(&mut begins, 0) {
        Ok(()) => Ok(begins == *BEGINS),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// What it is, and which columns it has.
fn head() -> [u8; HEAD_BYTES] {
    let columns = names().collect::<Vec<_>>().join(" ");
    let mut head = [0; HEAD_BYTES];
    let words = format!("larder history 1 {:016x}\n", checksum(columns.as_bytes()));
    head[..words.len()].copy_from_slice(words.as_bytes());
    head
}

fn row_place(step: HistoryStep, at_s: u64) -> usize {
    let from = match step {
        HistoryStep::Second => SECONDS_FROM,
        HistoryStep::Minute => MINUTES_FROM,
    };
    from + (at_s / step.seconds()) as usize % step.kept() * ROW_BYTES
}

fn row_bytes(row: &HistoryRow) -> [u8; ROW_BYTES] {
    let mut bytes = [0; ROW_BYTES];
    bytes.chunks_exact_mut(8).zip(row.values).for_each(|(place, value)| place.copy_from_slice(&value.to_le_bytes()));
    seal(&mut bytes);
    bytes
}

fn annotation_bytes(annotation: &Annotation) -> [u8; ANNOTATION_PLACE_BYTES] {
    let mut bytes = [0; ANNOTATION_PLACE_BYTES];
    let numbers =
        [annotation.at_s, annotation.until_s, annotation.kind as u64, annotation.count, annotation.text.len() as u64];
    bytes.chunks_exact_mut(8).zip(numbers).for_each(|(place, value)| place.copy_from_slice(&value.to_le_bytes()));
    bytes[40..][..annotation.text.len()].copy_from_slice(annotation.text.as_bytes());
    seal(&mut bytes);
    bytes
}

/// The last eight bytes are the checksum of those before.
fn seal(bytes: &mut [u8]) {
    let (content, sum) = bytes.split_at_mut(bytes.len() - 8);
    sum.copy_from_slice(&checksum(content).to_le_bytes());
}

/// FNV-1a, of 64 bits. It finds damage; against who may write the file nothing helps.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn number(bytes: &[u8], at: usize) -> u64 {
    bytes[at * 8..].first_chunk().map_or(0, |eight| u64::from_le_bytes(*eight))
}

/// `None`: nothing was ever written here. `Some(None)`: what is here is damaged.
fn content(place: &[u8]) -> Option<Option<&[u8]>> {
    let (content, sum) = place.split_at(place.len() - 8);
    if place.iter().all(|byte| *byte == 0) {
        return None;
    }
    Some((checksum(content) == number(sum, 0)).then_some(content))
}

fn row_of(content: &[u8]) -> HistoryRow {
    HistoryRow { values: std::array::from_fn(|at| number(content, at)) }
}

fn annotation_of(content: &[u8]) -> Option<Annotation> {
    let [at_s, until_s, kind, count, length] = std::array::from_fn(|at| number(content, at));
    let text = content.get(40..)?.get(..usize::try_from(length).ok()?)?;
    let text = std::str::from_utf8(text).ok()?.to_owned();
    Some(Annotation { at_s, until_s, kind: AnnotationKind::of_number(kind)?, text, count })
}

fn read(bytes: &[u8], now_s: u64, ring: &mut HistoryRing) -> HistoryFileFinding {
    if bytes[..HEAD_BYTES] != head() {
        return HistoryFileFinding::BegunAnew("another version of larder wrote it");
    }
    let mut damaged = 0;
    let mut whole = |place: &[u8]| {
        let found = content(place)?;
        damaged += usize::from(found.is_none());
        found.map(<[u8]>::to_vec)
    };
    for (step, from, to) in
        [(HistoryStep::Second, SECONDS_FROM, MINUTES_FROM), (HistoryStep::Minute, MINUTES_FROM, ANNOTATIONS_FROM)]
    {
        let rows = bytes[from..to].chunks_exact(ROW_BYTES).filter_map(&mut whole);
        let mut rows: Vec<HistoryRow> = rows.map(|content| row_of(&content)).collect();
        let oldest_s = now_s.saturating_sub(step.kept() as u64 * step.seconds());
        rows.retain(|row| (oldest_s..=now_s).contains(&row.at_s()));
        rows.sort_unstable_by_key(HistoryRow::at_s);
        rows.into_iter().for_each(|row| ring.add(step, row));
    }
    let annotations = bytes[ANNOTATIONS_FROM..].chunks_exact(ANNOTATION_PLACE_BYTES).filter_map(&mut whole);
    let annotations: Vec<Annotation> = annotations.filter_map(|content| annotation_of(&content)).collect();
    annotations
        .into_iter()
        .filter(|annotation| annotation.at_s <= now_s)
        .for_each(|annotation| ring.annotate(annotation));
    match damaged {
        0 => HistoryFileFinding::Read,
        damaged => HistoryFileFinding::Damaged(damaged),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let folder = std::env::temp_dir().join(format!("larder-history-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            Folder(folder)
        }

        fn file(&self) -> PathBuf {
            self.0.join("history")
        }

        fn open(&self, now_s: u64) -> (HistoryFile, HistoryFileFinding, HistoryRing) {
            let mut ring = HistoryRing::default();
            let (file, finding) = HistoryFile::open(&self.file(), now_s, &mut ring).unwrap();
            (file, finding, ring)
        }

        /// Ten rows of each kind and two annotations.
        fn filled(name: &str) -> Folder {
            let folder = Folder::new(name);
            let (file, finding, mut ring) = folder.open(1_000_000);
            assert_eq!(finding, HistoryFileFinding::New);
            let rows = |step: HistoryStep| -> Vec<HistoryRow> {
                (0..10).map(|at| HistoryRow::sample(999_960 - at * step.seconds())).collect()
            };
            file.write_rows(HistoryStep::Second, &rows(HistoryStep::Second)).unwrap();
            file.write_rows(HistoryStep::Minute, &rows(HistoryStep::Minute)).unwrap();
            ring.annotate(Annotation::new(999_900, AnnotationKind::Restart, "0.1.0"));
            ring.annotate(Annotation::new(999_950, AnnotationKind::Out, &"ü".repeat(60)));
            file.write_annotations(ring.annotations().iter()).unwrap();
            folder
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_was_written_comes_back_in_order() {
        let folder = Folder::filled("back");
        let (_, finding, ring) = folder.open(1_000_000);
        assert_eq!(finding, HistoryFileFinding::Read);
        let rows: Vec<HistoryRow> = ring.rows(HistoryStep::Second).iter().copied().collect();
        assert_eq!(rows, (999_951..=999_960).map(HistoryRow::sample).collect::<Vec<_>>());
        assert_eq!(ring.rows(HistoryStep::Minute).len(), 10);
        let annotations: Vec<(u64, &str)> =
            ring.annotations().iter().map(|annotation| (annotation.at_s, annotation.text.as_str())).collect();
        assert_eq!(annotations, [(999_900, "0.1.0"), (999_950, "ü".repeat(60).as_str())]);
        assert_eq!(std::fs::metadata(folder.file()).unwrap().len(), FILE_BYTES as u64);
    }

    #[test]
    fn what_is_too_old_or_later_than_now_stays_away() {
        let folder = Folder::filled("old");
        // Two hours later there are minutes only, two days later nothing.
        let (_, _, ring) = folder.open(1_007_200);
        assert_eq!((ring.rows(HistoryStep::Second).len(), ring.rows(HistoryStep::Minute).len()), (0, 10));
        drop(ring);
        let (_, _, ring) = folder.open(1_000_000 + 2 * 86_400);
        assert_eq!(ring.rows(HistoryStep::Minute).len(), 0);
        drop(ring);
        // The clock was set back.
        let (_, _, ring) = folder.open(999_955);
        assert_eq!(ring.rows(HistoryStep::Second).back().map(HistoryRow::at_s), Some(999_955));
    }

    #[test]
    fn a_damaged_place_is_left_out_and_the_rest_is_kept() {
        let folder = Folder::filled("damaged");
        let mut bytes = std::fs::read(folder.file()).unwrap();
        bytes[row_place(HistoryStep::Second, 999_955) + 40] ^= 4;
        bytes[ANNOTATIONS_FROM + 40] ^= 1;
        std::fs::write(folder.file(), &bytes).unwrap();
        let (_, finding, ring) = folder.open(1_000_000);
        assert_eq!(finding, HistoryFileFinding::Damaged(2));
        let seconds: Vec<u64> = ring.rows(HistoryStep::Second).iter().map(HistoryRow::at_s).collect();
        assert_eq!(seconds, (999_951..=999_960).filter(|at| *at != 999_955).collect::<Vec<_>>());
        assert_eq!(ring.annotations().len(), 1);
    }

    #[test]
    fn a_history_that_is_cut_or_anothers_is_begun_anew() {
        let long = [&head()[..], &vec![0; FILE_BYTES]].concat();
        let other = [&b"larder history 9 0123456789abcdef\n"[..], &vec![1; FILE_BYTES]].concat();
        for (name, bytes) in
            [("short", &head()[..20]), ("long", &long), ("version", &other[..FILE_BYTES]), ("head", &head()[..])]
        {
            let folder = Folder::new(name);
            std::fs::write(folder.file(), bytes).unwrap();
            let (file, finding, ring) = folder.open(1_000_000);
            assert!(matches!(finding, HistoryFileFinding::BegunAnew(_)), "{name}: {finding:?}");
            assert_eq!(ring.rows(HistoryStep::Second).len(), 0);
            drop(file);
            assert_eq!(folder.open(1_000_000).1, HistoryFileFinding::Read, "{name}");
        }
    }

    /// A config, say, that somebody has named in the wrong place.
    #[test]
    fn a_file_that_is_no_history_stays_as_it_is() {
        for (name, bytes) in
            [("config", b"[[listen]]\n".to_vec()), ("same-size", vec![b'x'; FILE_BYTES]), ("zeros", vec![0; 100])]
        {
            let folder = Folder::new(name);
            std::fs::write(folder.file(), &bytes).unwrap();
            let why = HistoryFile::open(&folder.file(), 1, &mut HistoryRing::default()).err();
            assert!(why.is_some_and(|why| why.contains("no history of larder's")), "{name}");
            assert_eq!(std::fs::read(folder.file()).unwrap(), bytes, "{name}");
        }
    }

    #[test]
    fn random_bytes_in_places_are_never_history() {
        let folder = Folder::filled("random");
        let mut bytes = std::fs::read(folder.file()).unwrap();
        let mut dice = fastrand::Rng::with_seed(7);
        bytes[HEAD_BYTES..].iter_mut().for_each(|byte| *byte = dice.u8(..));
        std::fs::write(folder.file(), &bytes).unwrap();
        let (_, finding, ring) = folder.open(1_000_000);
        assert_eq!(finding, HistoryFileFinding::Damaged(3_600 + 1_440 + ANNOTATIONS_MAX));
        assert_eq!((ring.rows(HistoryStep::Second).len(), ring.annotations().len()), (0, 0));
    }

    #[test]
    fn a_file_belongs_to_one_process_and_to_its_owner() {
        use std::os::unix::fs::PermissionsExt;
        let folder = Folder::new("locked");
        let (_file, ..) = folder.open(1);
        let mode = std::fs::metadata(folder.file()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let why = HistoryFile::open(&folder.file(), 1, &mut HistoryRing::default()).err();
        assert_eq!(why.as_deref(), Some("another process has it"));
        let why = HistoryFile::open(Path::new("/dev/null"), 1, &mut HistoryRing::default()).err();
        assert_eq!(why.as_deref(), Some("it is no regular file"));
    }
}
