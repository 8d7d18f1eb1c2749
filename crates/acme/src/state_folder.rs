//! The folder of state: accounts, certificates with their keys, and what is under way, for all processes and nodes that share it.
//!
//! ```text
//! FOLDER/                                   0700
//!   acme-v02.api.letsencrypt.org-directory/ one for each authority, 0700
//!     account.json                          who we are there, with its key
//!     example.org-1f0c2a99.pem              a certificate, those that lead to its authority, and its key
//!     example.org-1f0c2a99.json             when it is renewed, and how often that failed
//!     example.org-1f0c2a99.lock             locked by who orders it
//!     challenges/TOKEN                      what the authority is to be answered at this moment
//! ```
//!
//! A file is 0600 from its first moment, and is replaced whole. Locks are the kernel's (flock): they end with the process that
//! holds them, however it ends.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::acme_directory::Directory;
use crate::challenge::Challenge;
use crate::limits::{CHALLENGES_MAX, STATE_FILE_BYTES_MAX};
use crate::names::NameSet;

/// What is kept of one authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateFolder {
    path: PathBuf,
}

/// Where what is known of one certificate lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StateFiles {
    pub(crate) certificate: PathBuf,
    pub(crate) note: PathBuf,
    pub(crate) lock: PathBuf,
}

/// Nobody else orders as long as this is held.
#[derive(Debug)]
pub(crate) struct Lock(#[allow(dead_code, reason = "it is held, and never used")] File);

impl StateFolder {
    /// Nothing is made before something is stored.
    pub fn new(root: &Path, directory: &Directory) -> StateFolder {
        StateFolder { path: root.join(directory.folder_name()) }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the certificate for these names is, or will be, with its key.
    pub fn certificate_path(&self, names: &NameSet) -> PathBuf {
        self.files_of(names).certificate
    }

    pub(crate) fn files_of(&self, names: &NameSet) -> StateFiles {
        let stem = names.file_stem();
        let file = |ending: &str| self.path.join(format!("{stem}.{ending}"));
        StateFiles { certificate: file("pem"), note: file("json"), lock: file("lock") }
    }

    pub(crate) fn account_path(&self) -> PathBuf {
        self.path.join("account.json")
    }

    /// Makes what is missing of the folder.
    pub(crate) fn make(&self) -> Result<(), String> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.path);
        made.map_err(|error| {
            format!("the folder {} cannot be made ([acme] folder, --acme-folder): {error}", self.path.display())
        })
    }

    pub(crate) fn challenges(&self) -> ChallengeFolder {
        ChallengeFolder(self.path.join("challenges"))
    }
}

/// The text of a file. `None`: there is none.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, String> {
    let failed = |error: io::Error| format!("{} cannot be read: {error}", path.display());
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut text = Vec::new();
    file.take(STATE_FILE_BYTES_MAX + 1).read_to_end(&mut text).map_err(failed)?;
    if text.len() as u64 > STATE_FILE_BYTES_MAX {
        return Err(format!("{} is longer than {STATE_FILE_BYTES_MAX} bytes: none of ours", path.display()));
    }
    Ok(Some(text))
}

/// Puts a file in the place of the one of this name, whole or not at all, also where the machine loses its power.
pub(crate) fn write(path: &Path, text: &[u8]) -> Result<(), String> {
    put(path, text, true)
}

/// The same of what is found out anew where it is lost: nobody waits for the disk.
pub(crate) fn write_soon(path: &Path, text: &[u8]) -> Result<(), String> {
    put(path, text, false)
}

fn put(path: &Path, text: &[u8], is_durable: bool) -> Result<(), String> {
    let beside = path.with_extension(format!("new-{}", std::process::id()));
    let put = || {
        // What a crash left behind is nobody's.
        let _ = std::fs::remove_file(&beside);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        file.write_all(text)?;
        if is_durable {
            file.sync_all()?;
        }
        std::fs::rename(&beside, path)?;
        path.parent().filter(|_| is_durable).map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    };
    put().map_err(|error: io::Error| {
        let _ = std::fs::remove_file(&beside);
        format!("{} cannot be written: {error}", path.display())
    })
}

/// Moves a file aside that nobody can read, and says where.
pub(crate) fn set_aside(path: &Path, now_s: u64) -> Result<PathBuf, String> {
    let aside = path.with_extension(format!("broken-{now_s}"));
    let moved = std::fs::rename(path, &aside);
    moved.map_err(|error| format!("{} cannot be moved aside: {error}", path.display()))?;
    Ok(aside)
}

/// Takes the lock, or says who has it.
pub(crate) fn lock(path: &Path, now_s: u64) -> Result<Result<Lock, String>, String> {
    let failed = |error: io::Error| format!("{} cannot be locked: {error}", path.display());
    let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    let mut file = open.map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {
            // For people, and for who finds it locked.
            let owner = format!("process {} of {}, since {now_s} s\n", std::process::id(), host_name());
            let noted = file.set_len(0).and_then(|()| file.write_all(owner.as_bytes()));
            noted.map_err(failed)?;
            Ok(Ok(Lock(file)))
        }
        Err(TryLockError::WouldBlock) => {
            let mut owner = String::new();
            let _ = (&file).take(200).read_to_string(&mut owner);
            Ok(Err(owner.trim().chars().filter(|c| !c.is_control()).collect()))
        }
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Challenges under way, for whichever node the authority comes to.
#[derive(Clone, Debug)]
pub(crate) struct ChallengeFolder(PathBuf);

impl ChallengeFolder {
    pub(crate) fn put(&self, challenge: &Challenge) -> Result<(), String> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.0);
        made.map_err(|error| format!("the folder {} cannot be made: {error}", self.0.display()))?;
        let text = serde_json::to_vec(challenge).map_err(|error| error.to_string())?;
        write_soon(&self.0.join(file_name(challenge)), &text)
    }

    pub(crate) fn remove(&self, challenge: &Challenge) {
        // Where it stays, its time ends it.
        let _ = std::fs::remove_file(self.0.join(file_name(challenge)));
    }

    /// Those that are to be answered at this moment; what is no challenge is passed over.
    pub(crate) fn list(&self, now_s: u64) -> Vec<Challenge> {
        let Ok(entries) = std::fs::read_dir(&self.0) else { return Vec::new() };
        let paths = entries.flatten().take(CHALLENGES_MAX).map(|entry| entry.path());
        let read = |path: PathBuf| serde_json::from_slice::<Challenge>(&read(&path).ok()??).ok();
        paths.filter_map(read).filter(|challenge| now_s < challenge.until_s).collect()
    }
}

/// A token is base64url, of an authority that could say anything.
fn file_name(challenge: &Challenge) -> String {
    challenge.token.chars().filter(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).take(128).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::challenge::ChallengeKind;

    /// A folder of one test alone.
    pub(crate) struct Room(pub(crate) PathBuf);

    impl Room {
        pub(crate) fn new(name: &str) -> Room {
            let path = std::env::temp_dir().join(format!("larder-acme-{}-{name}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            Room(path)
        }

        pub(crate) fn folder(&self) -> StateFolder {
            StateFolder::new(&self.0, &Directory::default())
        }
    }

    impl Drop for Room {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_is_stored_is_the_owners_alone_and_whole() {
        let room = Room::new("modes");
        let folder = room.folder();
        folder.make().unwrap();
        let path = folder.account_path();
        assert_eq!(read(&path), Ok(None));
        write(&path, b"first").unwrap();
        write(&path, b"second").unwrap();
        assert_eq!(read(&path), Ok(Some(b"second".to_vec())));
        assert_eq!((mode(&room.0), mode(folder.path()), mode(&path)), (0o700, 0o700, 0o600));
        let names: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(names, ["account.json"], "nothing is left beside it");
        std::fs::write(&path, vec![b'x'; STATE_FILE_BYTES_MAX as usize + 1]).unwrap();
        assert!(read(&path).unwrap_err().contains("none of ours"));
    }

    #[test]
    fn one_has_the_lock_and_the_others_learn_who() {
        let room = Room::new("lock");
        let folder = room.folder();
        folder.make().unwrap();
        let path = folder.files_of(&NameSet::new(["a.example"]).unwrap()).lock;
        let held = lock(&path, 77).unwrap().unwrap();
        let owner = lock(&path, 78).unwrap().map(|_| ()).unwrap_err();
        assert_eq!(owner, format!("process {} of {}, since 77 s", std::process::id(), host_name()));
        assert_eq!(mode(&path), 0o600);
        drop(held);
        assert!(lock(&path, 79).unwrap().is_ok(), "it ends with its holder");
    }

    #[test]
    fn other_nodes_hear_of_challenges_as_long_as_they_matter() {
        let room = Room::new("challenges");
        let shared = room.folder().challenges();
        assert!(shared.list(0).is_empty());
        let challenge = |token: &str, until_s| Challenge {
            kind: ChallengeKind::Http,
            name: "a.example".to_owned(),
            token: token.to_owned(),
            answer: "answer".to_owned(),
            until_s,
        };
        let (one, two) = (challenge("one", 100), challenge("../../two", 200));
        shared.put(&one).unwrap();
        shared.put(&two).unwrap();
        std::fs::write(shared.0.join("no-challenge"), "half a f").unwrap();
        assert_eq!(shared.list(50).len(), 2);
        assert_eq!(shared.list(100), std::slice::from_ref(&two), "who left one behind has crashed");
        assert!(shared.0.join("two").exists(), "a token leads nowhere else");
        shared.remove(&two);
        assert!(shared.list(100).is_empty());
    }
}
