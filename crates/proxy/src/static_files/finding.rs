//! What a path means beneath a root now, and opening it. Blocks, if the disk does: it runs in a thread for that, never
//! on a worker.
//!
//! Everything is looked at first (`path_meaning.rs`); only what is a regular file is opened to be read, and looked at once more.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{FileType, OFlags, Stat, fstat};
use rustix::io::Errno;

use crate::compress_settings::CompressSettings;
use crate::settings::{Listing, RootSettings};
use crate::static_files::file_path::FilePath;
use crate::static_files::listing_page::ListingForm;
use crate::static_files::open_file::{CODINGS, Coding, Identity, Named, OpenFile};
use crate::static_files::path_meaning::{PathMeaning, Reach, kind};
use crate::static_files::script_path::ScriptPath;
use crate::static_files::{beneath, directory_entries, made_codings, path_meaning, script_path};

/// What there is.
#[derive(Debug)]
pub(crate) enum Found {
    File(Arc<OpenFile>),
    /// A directory that was asked for without its last slash.
    Directory,
    /// What is in a directory.
    Listing(Arc<OpenFile>),
    /// Who answers in place of a file.
    Script(ScriptPath),
}

/// Why nothing is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotShown {
    Absent,
    Unreadable,
    /// A link that leads out of the root, or in a circle.
    LeadsOut,
    /// The source of a program, or a copy of one.
    Source,
    /// The same where nothing runs it, and nobody said that it is shown.
    SourceNotRun,
    /// A device, FIFO or socket.
    NoFile,
    /// A directory without an index file.
    NoIndex,
    /// A directory with more entries than are listed.
    TooMany,
    /// The route's own directory cannot be opened.
    NoRoot,
    /// The process or the machine has no descriptor left.
    Exhausted,
    /// The disk failed.
    Failed,
}

/// What may be kept of what was known, and when it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// Larger files stay on disk.
    pub(crate) memory_bytes_max: u64,
    pub(crate) wall_s: i64,
    pub(crate) mono_ms: u64,
    /// What a directory without an index file is listed in, if it is.
    pub(crate) form: Option<ListingForm>,
    pub(crate) listing: ListingBounds,
}

/// A directory with more is not listed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListingBounds {
    pub(crate) entries_max: usize,
    pub(crate) bytes_max: usize,
}

/// What a path means, where nobody is to be shown it.
#[derive(Debug)]
pub(crate) enum MeantFile {
    /// A file of this name, which may be read.
    File(Vec<u8>),
    Directory,
    Listing,
    Script(ScriptPath),
}

/// What [`find`] would find: nothing of it is read.
pub(crate) fn meant(settings: &RootSettings, path: &FilePath) -> Result<MeantFile, NotShown> {
    let root = path_meaning::open_root(settings, Reach::Disk)?;
    match path_meaning::of(settings, root.as_fd(), path, Reach::Disk)? {
        PathMeaning::File(relative, _) => open_regular(root.as_fd(), &relative).map(|_| MeantFile::File(relative)),
        PathMeaning::Directory => Ok(MeantFile::Directory),
        PathMeaning::Script(script) => Ok(MeantFile::Script(script)),
        PathMeaning::NoIndex(_) if settings.lists_nothing() => Err(unlisted(settings)),
        PathMeaning::NoIndex(_) => Ok(MeantFile::Listing),
    }
}

/// What a directory is that has no index file and is not listed.
fn unlisted(settings: &RootSettings) -> NotShown {
    if script_path::hands_directories_on(settings) { NotShown::Absent } else { NotShown::NoIndex }
}

/// Finds the file of a path. `known` is what was found before: it stays if it is still that file, unchanged.
pub(crate) fn find(
    settings: &RootSettings,
    path: &FilePath,
    known: Option<Arc<OpenFile>>,
    terms: Terms,
    compress: Option<&CompressSettings>,
) -> Result<Found, NotShown> {
    let root = path_meaning::open_root(settings, Reach::Disk)?;
    let root = root.as_fd();
    let (relative, looked_at) = match path_meaning::of(settings, root, path, Reach::Disk)? {
        PathMeaning::File(relative, looked_at) => (relative, looked_at),
        PathMeaning::Directory => return Ok(Found::Directory),
        PathMeaning::Script(script) => return Ok(Found::Script(script)),
        PathMeaning::NoIndex(directory) => {
            return match terms.form {
                Some(form) => listing(settings, root, (path, &directory), known, form, terms),
                None => Err(unlisted(settings)),
            };
        }
    };
    let encoded = if settings.precompressed { encoded(settings, root, &relative, &looked_at)? } else { Vec::new() };
    if let Some(known) = known.filter(|known| is_same(known, &looked_at, &encoded)) {
        return Ok(Found::File(known));
    }
    let open = |name: &[u8]| open_regular(root, name);
    let (file, stat) = open(&relative)?;
    let mut made =
        OpenFile::read(settings, &Named { relative: &relative, coding: None }, file, &stat, terms).map_err(why)?;
    let compress = compress.filter(|compress| made_codings::is_worth_it(&made, compress));
    for coding in CODINGS {
        if !encoded.iter().any(|(beside, _)| *beside == coding) {
            let other = compress.and_then(|compress| made_codings::make(&made, coding, compress));
            other.into_iter().for_each(|other| made.add_encoded(other));
            continue;
        }
        // One that went or changed meanwhile is left out, and seen again when it is time to look.
        let Ok((file, stat)) = open(&coding.name_of(&relative)) else { continue };
        let named = Named { relative: &relative, coding: Some(coding) };
        made.add_encoded(OpenFile::read(settings, &named, file, &stat, terms).map_err(why)?);
    }
    Ok(Found::File(Arc::new(made)))
}

fn is_same(known: &OpenFile, stat: &Stat, encoded: &[(Coding, Stat)]) -> bool {
    known.identity() == &Identity::of(stat)
        && known.neighbours().len() == encoded.len()
        && known.neighbours().zip(encoded).all(|(known, (_, stat))| known.identity() == &Identity::of(stat))
}

/// The compressed files beside a file, the dearest first, but those that are older than it is, and those that nobody who asks for them is shown:
/// a link may lead to a source, or to what is kept back.
fn encoded(
    settings: &RootSettings,
    root: BorrowedFd<'_>,
    relative: &[u8],
    source: &Stat,
) -> Result<Vec<(Coding, Stat)>, NotShown> {
    let mut found = Vec::new();
    for coding in CODINGS {
        match path_meaning::of_neighbour(settings, root, coding.name_of(relative)) {
            Ok(stat) if modified(&stat) >= modified(source) => {
                found.push((coding, stat));
            }
            Err(NotShown::Exhausted) => return Err(NotShown::Exhausted),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(found)
}

fn modified(stat: &Stat) -> (i64, i64) {
    (stat.st_mtime, stat.st_mtime_nsec)
}

/// The listing of a directory: the one that is known, if it would be the same again.
fn listing(
    settings: &RootSettings,
    root: BorrowedFd<'_>,
    (path, directory): (&FilePath, &Stat),
    known: Option<Arc<OpenFile>>,
    form: ListingForm,
    terms: Terms,
) -> Result<Found, NotShown> {
    let entries = directory_entries::read(root, settings, &path.relative, terms.listing.entries_max)?;
    let page = form.page(&path.relative, &entries);
    if page.len() > terms.listing.bytes_max {
        return Err(NotShown::TooMany);
    }
    let varies = settings.listing == Listing::Negotiated;
    let made = OpenFile::listing(form, varies, page, directory, terms);
    Ok(Found::Listing(match known.filter(|known| known.is_same_listing(&made)) {
        Some(known) => known,
        None => Arc::new(made),
    }))
}

fn open_regular(root: BorrowedFd<'_>, relative: &[u8]) -> Result<(OwnedFd, Stat), NotShown> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = beneath::open(root, relative, flags).map_err(why)?;
    let stat = fstat(&file).map_err(why)?;
    match kind(&stat) {
        FileType::RegularFile => Ok((file, stat)),
        _ => Err(NotShown::NoFile),
    }
}

pub(crate) fn why(errno: Errno) -> NotShown {
    match errno {
        Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG | Errno::INVAL => NotShown::Absent,
        Errno::ACCESS | Errno::PERM => NotShown::Unreadable,
        Errno::XDEV | Errno::LOOP => NotShown::LeadsOut,
        Errno::NXIO | Errno::NODEV => NotShown::NoFile,
        Errno::MFILE | Errno::NFILE | Errno::NOMEM => NotShown::Exhausted,
        _ => NotShown::Failed,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    use rustix::fs::Mode;

    use super::*;
    use crate::settings::{KeptBack, RootScripts};

    impl Terms {
        /// Nothing in memory, no time gone by, no listings.
        pub(crate) const PLAIN: Terms = Terms {
            memory_bytes_max: 0,
            wall_s: 0,
            mono_ms: 0,
            form: None,
            listing: ListingBounds { entries_max: 0, bytes_max: 0 },
        };
    }

    /// A directory that is gone when the test is over.
    pub(crate) struct TestFolder(PathBuf);

    impl TestFolder {
        pub(crate) fn new(name: &str) -> TestFolder {
            let path = std::env::temp_dir().join(format!("larder-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            std::fs::create_dir_all(&path).unwrap();
            TestFolder(path)
        }

        pub(crate) fn path(&self, relative: &str) -> PathBuf {
            self.0.join(relative)
        }

        pub(crate) fn write(&self, relative: &str, text: &str) {
            let path = self.path(relative);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        pub(crate) fn open(&self) -> OwnedFd {
            rustix::fs::open(&self.0, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap()
        }

        fn find(&self, path: &str, known: Option<Arc<OpenFile>>) -> Result<Found, NotShown> {
            let settings = RootSettings::of(self.0.clone());
            let path = FilePath::read(path.as_bytes(), false).unwrap();
            let terms = Terms { memory_bytes_max: 8, wall_s: 1_000_000_000, ..Terms::PLAIN };
            find(&settings, &path, known, terms, None)
        }

        fn file(&self, path: &str) -> Arc<OpenFile> {
            match self.find(path, None) {
                Ok(Found::File(file)) => file,
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_text_with_no_compressed_files_beside_it_is_compressed_when_it_is_read() {
        let folder = TestFolder::new("compressed-here");
        let text = "<p>again and again</p>\n".repeat(100);
        ["a.html", "a.html.gz", "b.html", "c.png", "short.html"].iter().for_each(|name| folder.write(name, &text));
        folder.write("short.html", "<p>short</p>");
        let compress = CompressSettings::default();
        let settings = RootSettings { precompressed: true, ..RootSettings::of(folder.path("")) };
        let find = |path: &str, known| {
            let path = FilePath::read(path.as_bytes(), false).unwrap();
            match find(&settings, &path, known, Terms { wall_s: 1_000_000_000, ..Terms::PLAIN }, Some(&compress)) {
                Ok(Found::File(file)) => file,
                other => panic!("{other:?}"),
            }
        };
        let chosen = |file: &Arc<OpenFile>, accepts: &str| {
            let mut fields = message::Fields::default();
            fields.push(message::FieldName::AcceptEncoding, accepts);
            Arc::clone(file.chosen(fields.view()))
        };
        let field = |file: &OpenFile, name| {
            String::from_utf8_lossy(file.head().fields.view().get(name).unwrap_or_default()).into_owned()
        };
        let file = find("/b.html", None);
        for (accepts, coding) in [("gzip, br, zstd", "br"), ("gzip, zstd", "zstd"), ("gzip", "gzip"), ("identity", "")]
        {
            let chosen = chosen(&file, accepts);
            assert_eq!(field(&chosen, message::FieldName::ContentEncoding), coding, "{accepts}");
            let vary = chosen.head().fields.view().get_all(message::FieldName::Vary).collect::<Vec<_>>();
            assert_eq!(vary, [b"Accept-Encoding"], "{accepts}");
            let is_weak = field(&chosen, message::FieldName::Etag).starts_with("W/");
            assert!(is_weak != coding.is_empty() && (chosen.length() < 200 || coding.is_empty()), "{accepts}");
        }
        assert_eq!((file.count(), Arc::ptr_eq(&find("/b.html", Some(Arc::clone(&file))), &file)), (4, true));
        // The gzip beside it is sent as it lies there, and the others are made.
        let beside = chosen(&find("/a.html", None), "gzip");
        assert_eq!((beside.length(), beside.read_body().unwrap()), (2_300, bytes::Bytes::from(text)));
        assert_eq!((find("/c.png", None).count(), find("/short.html", None).count()), (1, 1));
    }

    #[test]
    fn a_compressed_file_that_leads_to_what_nobody_is_shown_is_none() {
        let folder = TestFolder::new("leads-to-source");
        ["a.txt", "a.css", "a.js", "secret.php", "larder.toml"].iter().for_each(|name| folder.write(name, name));
        folder.write("a.js.gz", "packed");
        symlink("secret.php", folder.path("a.txt.gz")).unwrap();
        std::fs::hard_link(folder.path("larder.toml"), folder.path("a.css.br")).unwrap();
        let found = |with_scripts: bool, path: &str| {
            let scripts = with_scripts.then(|| RootScripts { origin: 0, endings: vec![".php".to_owned()] });
            let kept_back = KeptBack::beneath(&folder.path(""), &[folder.path("larder.toml")]);
            let plain = RootSettings::of(folder.path(""));
            let settings = RootSettings { precompressed: true, scripts, kept_back, ..plain };
            let path = FilePath::read(path.as_bytes(), false).unwrap();
            match find(&settings, &path, None, Terms::PLAIN, None) {
                Ok(Found::File(file)) => file.count(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!((found(true, "/a.txt"), found(false, "/a.txt")), (1, 1), "whether anybody runs it or not");
        assert_eq!((found(true, "/a.css"), found(true, "/a.js")), (1, 2));
    }

    impl Drop for TestFolder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn check(folder: &TestFolder, path: &str, expect: Result<u64, NotShown>) {
        let got = match folder.find(path, None) {
            Ok(Found::File(file)) => Ok(file.length()),
            Ok(other) => panic!("{path} is {other:?}"),
            Err(why) => Err(why),
        };
        assert_eq!(got, expect, "{path}");
    }

    #[test]
    fn only_regular_files_are_shown() {
        let folder = TestFolder::new("finding");
        folder.write("a.txt", "four");
        folder.write("large.txt", "more than eight");
        folder.write("with/index.html", "ind");
        folder.write("without/x", "x");
        folder.write("odd/index.html/x", "x");
        symlink("a.txt", folder.path("link")).unwrap();
        symlink("/etc/passwd", folder.path("out")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, folder.path("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(folder.path("socket")).unwrap();
        check(&folder, "/a.txt", Ok(4));
        check(&folder, "/large.txt", Ok(15));
        check(&folder, "/link", Ok(4));
        check(&folder, "/with/", Ok(3));
        check(&folder, "/a.txt/", Err(NotShown::Absent));
        check(&folder, "/none", Err(NotShown::Absent));
        check(&folder, "/a.txt/none", Err(NotShown::Absent));
        check(&folder, "/without/", Err(NotShown::NoIndex));
        check(&folder, "/odd/", Err(NotShown::NoIndex));
        check(&folder, "/out", Err(NotShown::LeadsOut));
        check(&folder, "/fifo", Err(NotShown::NoFile));
        check(&folder, "/socket", Err(NotShown::NoFile));
        check(&folder, &format!("/{}", "a".repeat(5_000)), Err(NotShown::Absent));
        assert!(matches!(folder.find("/with", None), Ok(Found::Directory)));
        assert!(matches!(folder.find("/without", None), Ok(Found::Directory)));
        std::fs::set_permissions(folder.path("a.txt"), std::fs::Permissions::from_mode(0o000)).unwrap();
        let is_root = rustix::process::geteuid().is_root();
        check(&folder, "/a.txt", if is_root { Ok(4) } else { Err(NotShown::Unreadable) });
    }

    #[test]
    fn a_directory_is_listed_where_it_has_no_index() {
        let folder = TestFolder::new("listed");
        folder.write("with/index.html", "index");
        folder.write("without/a", "12");
        let mut settings = RootSettings::of(folder.path(""));
        settings.listing = Listing::Html;
        let bounds = ListingBounds { entries_max: 2, bytes_max: 10_000 };
        let list = |path: &str, known, listing| {
            let path = FilePath::read(path.as_bytes(), false).unwrap();
            let terms = Terms { memory_bytes_max: 8, form: Some(ListingForm::Html), listing, ..Terms::PLAIN };
            find(&settings, &path, known, terms, None)
        };
        assert!(matches!(list("/with/", None, bounds), Ok(Found::File(_))));
        assert!(matches!(list("/without", None, bounds), Ok(Found::Directory)));
        let Ok(Found::Listing(first)) = list("/without/", None, bounds) else { panic!() };
        let Ok(Found::Listing(again)) = list("/without/", Some(Arc::clone(&first)), bounds) else { panic!() };
        assert!(Arc::ptr_eq(&first, &again));
        // Nothing in the directory itself has changed, but what it says has.
        folder.write("without/a", "123");
        let Ok(Found::Listing(other)) = list("/without/", Some(first), bounds) else { panic!() };
        assert!(!Arc::ptr_eq(&again, &other) && again.rendered() != other.rendered());
        let small = ListingBounds { bytes_max: 100, ..bounds };
        assert!(matches!(list("/without/", None, small), Err(NotShown::TooMany)));
        folder.write("without/b", "");
        folder.write("without/c", "");
        assert!(matches!(list("/without/", None, bounds), Err(NotShown::TooMany)));
    }

    #[test]
    fn a_file_is_known_again_until_it_is_another() {
        let folder = TestFolder::new("known");
        folder.write("a", "one");
        let first = folder.file("/a");
        let Ok(Found::File(again)) = folder.find("/a", Some(Arc::clone(&first))) else { panic!() };
        assert!(Arc::ptr_eq(&first, &again));
        folder.write("b", "two");
        std::fs::rename(folder.path("b"), folder.path("a")).unwrap();
        let Ok(Found::File(other)) = folder.find("/a", Some(Arc::clone(&first))) else { panic!() };
        assert!(!Arc::ptr_eq(&first, &other));
        std::fs::remove_file(folder.path("a")).unwrap();
        assert!(matches!(folder.find("/a", Some(other)), Err(NotShown::Absent)));
    }
}
