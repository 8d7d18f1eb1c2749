//! Who may use the proxy by name and password. What was verified a moment ago is known without a look at the file;
//! everything else is verified in a thread of its own, one after the other, because a bcrypt takes as long as a thousand
//! requests.
//!
//! The same thread looks every second whether the file has changed; whatever is known is forgotten then.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::clock::Moment;
use crate::forward::known_credentials::KnownCredentials;
use crate::forward::password_file::PasswordFile;
use crate::limits::VERIFICATIONS_WAITING_MAX;
use crate::stderr_line::complain;
use crate::vital::vital_thread;

/// How often the file is looked at.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The users of one file.
pub(crate) struct Passwords {
    path: PathBuf,
    known: Arc<KnownCredentials>,
    questions: SyncSender<CredentialCheck>,
}

/// Credentials to be verified.
struct CredentialCheck {
    credentials: Box<[u8]>,
    reply: oneshot::Sender<bool>,
}

/// What is known of credentials without verifying them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    Right,
    Wrong,
    Nothing,
}

/// Nobody can verify anything now.
pub(crate) struct Busy;

impl Passwords {
    /// Reads the file; why it cannot be used is a sentence. The thread ends with the value.
    pub(crate) fn open(path: &Path) -> Result<Arc<Passwords>, String> {
        let file = PasswordFile::read(path)?;
        let known = Arc::new(KnownCredentials::default());
        let (questions, asked) = sync_channel(VERIFICATIONS_WAITING_MAX);
        let verifier = Verifier { stamp: stamp_of(path), path: path.to_owned(), file, known: Arc::clone(&known) };
        vital_thread("larder-passwords", "what verifies passwords", move || verifier.run(&asked))
            .map_err(|why| format!("no thread to verify passwords: {why}"))?;
        Ok(Arc::new(Passwords { path: path.to_owned(), known, questions }))
    }

    pub(crate) fn is_of(&self, path: &Path) -> bool {
        self.path == path
    }

    /// `credentials` is the value of Proxy-Authorization.
    pub(crate) fn known(&self, credentials: &[u8]) -> Known {
        match user_and_password(credentials) {
            None => Known::Wrong,
            Some(_) => self.known.look_up(credentials, Moment::now()),
        }
    }

    /// Has them verified. Without an answer they are wrong.
    pub(crate) fn verify(&self, credentials: &[u8]) -> Result<oneshot::Receiver<bool>, Busy> {
        let (reply, answer) = oneshot::channel();
        match self.questions.try_send(CredentialCheck { credentials: credentials.into(), reply }) {
            Ok(()) => Ok(answer),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => Err(Busy),
        }
    }
}

/// The thread.
struct Verifier {
    path: PathBuf,
    file: PasswordFile,
    stamp: Option<Stamp>,
    known: Arc<KnownCredentials>,
}

/// By which a file that was changed is told from before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
    modified: (i64, i64),
}

fn stamp_of(path: &Path) -> Option<Stamp> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(path).ok()?;
    Some(Stamp {
        device: found.dev(),
        inode: found.ino(),
        bytes: found.len(),
        changed: (found.ctime(), found.ctime_nsec()),
        modified: (found.mtime(), found.mtime_nsec()),
    })
}

impl Verifier {
    fn run(mut self, asked: &Receiver<CredentialCheck>) {
        let mut looked = Moment::now();
        loop {
            let question = asked.recv_timeout(LOOK_INTERVAL);
            if looked.micros_until(Moment::now()) >= LOOK_INTERVAL.as_micros() as u64 {
                self.look();
                looked = Moment::now();
            }
            match question {
                // Who asked gets no answer, and takes that for a wrong password: whatever a client sends costs the others nothing.
                Ok(question) => drop(catch_unwind(AssertUnwindSafe(|| self.answer(question)))),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn answer(&self, CredentialCheck { credentials, reply }: CredentialCheck) {
        if reply.is_closed() {
            return;
        }
        // Many connections of one client ask at once; the first one's answer is everybody's.
        let is_right = match self.known.look_up(&credentials, Moment::now()) {
            Known::Nothing => {
                let is_right = user_and_password(&credentials)
                    .is_some_and(|(user, password)| self.file.verify(&user, password.as_bytes()));
                self.known.note(&credentials, is_right, Moment::now());
                is_right
            }
            known => known == Known::Right,
        };
        // Who asked may have left.
        let _ = reply.send(is_right);
    }

    /// A file that cannot be read changes nothing: a half-written one must not lock everybody out.
    fn look(&mut self) {
        let stamp = stamp_of(&self.path);
        if stamp == self.stamp {
            return;
        }
        self.stamp = stamp;
        match PasswordFile::read(&self.path) {
            Ok(file) => {
                self.file = file;
                self.known.forget();
            }
            Err(why) => complain(format_args!("warning: {}: {why}; the users stay as they were", self.path.display())),
        }
    }
}

/// RFC 7617 §2. The password may have colons, the user may not.
pub(crate) fn user_and_password(credentials: &[u8]) -> Option<(String, String)> {
    use base64::Engine;
    let text = std::str::from_utf8(credentials).ok()?;
    let (scheme, encoded) = text.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") || encoded.len() > crate::limits::CREDENTIALS_BYTES_MAX {
        return None;
    }
    let decoded = base64::engine::general_purpose::STANDARD.decode(encoded.trim_matches(' ')).ok()?;
    let decoded = String::from_utf8(decoded).ok()?;
    let (user, password) = decoded.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

/// Whom credentials are about, right or wrong.
pub(crate) fn user_of(credentials: &[u8]) -> Option<Vec<u8>> {
    user_and_password(credentials).map(|(user, _)| user.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(credentials: &str, expect: Option<(&str, &str)>) {
        let found = user_and_password(credentials.as_bytes());
        assert_eq!(found.as_ref().map(|(user, password)| (&**user, &**password)), expect, "{credentials}");
    }

    #[test]
    fn credentials_are_basic_and_base64() {
        check("Basic YW5uOnNlY3JldA==", Some(("ann", "secret")));
        check("basic  YW5uOnNlY3JldA==", Some(("ann", "secret")));
        check("Basic YW5uOmE6Yg==", Some(("ann", "a:b")));
        check("Basic Og==", Some(("", "")));
        for wrong in
            ["", "Basic", "Basic ", "Bearer YW5uOnNlY3JldA==", "Basic YW5u", "Basic !!!!", "Basic YW5uOnNlY3JldA"]
        {
            check(wrong, None);
        }
        check(&format!("Basic {}", "QUFB".repeat(10_000)), None);
    }
}
