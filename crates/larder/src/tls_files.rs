//! The files of a listener's TLS: read when a plan is made, and again when one of them changes.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use proxy::limits::CERTIFICATES_BYTES_MAX;
use proxy::wall_now_ms;
use tls::{
    AlpnChallenges, Authorities, Certificate, EarlySessions, Protocol, ServerSettings, ServerTls, TicketKeys, Version,
};

use crate::bounded_file;
use crate::kernel_random;
use crate::limits::{OCSP_BYTES_MAX, TICKET_SECRET_BYTES_MAX};

/// Who is more than this may read a key.
const OWNER_AND_GROUP: u32 = 0o770;

/// A certificate with its chain, and its key: two files, or one that has both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// What the authority says of it (OCSP), to be shown beside it.
    pub ocsp: Option<PathBuf>,
}

/// What was said of a listener's TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// The first is for clients that name no server, or one that nobody knows.
    pub certificates: Vec<CertificateFiles>,
    /// Files that come from an authority, each with a certificate and its key. They may not be there yet.
    pub ordered: Vec<PathBuf>,
    pub version_min: Version,
    pub suites: Option<Vec<String>>,
    /// Who signs certificates of clients, and must a client have one?
    pub clients: Option<(PathBuf, bool)>,
    /// HTTP/1.1 alone is spoken inside.
    pub without_http2: bool,
    /// What the keys of tickets are made of, for several processes to share. Without, a secret of this process.
    pub ticket_secret: Option<PathBuf>,
    /// Clients that come again may ask before the handshake is over.
    pub early_data: bool,
    /// What the files were like before they were read.
    pub seen: Vec<FileMark>,
}

/// What is wrong with one of the files, or with what was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFault {
    pub file: Option<PathBuf>,
    pub why: String,
}

impl fmt::Display for TlsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{}: {}", file.display(), self.why),
            None => f.write_str(&self.why),
        }
    }
}

/// Of a file, what changes when it is written or replaced.
pub type FileMark = Option<(u64, u64, i64, i64)>;

impl TlsFiles {
    /// Reads everything. An ordered certificate that is not there yet, or is broken, is left out: whoever orders it sees to that.
    pub fn load(&self) -> Result<ServerTls, TlsFault> {
        let mut certificates = self.certificates.iter().map(certificate).collect::<Result<Vec<_>, _>>()?;
        for (certificate, files) in certificates.iter_mut().zip(&self.certificates) {
            // One that cannot be shown is a warning, and no reason to show no certificate.
            if let Some(Ok(stapled)) = stapled(certificate, files) {
                *certificate = stapled;
            }
        }
        certificates.extend(self.ordered.iter().filter_map(|file| ordered_certificate(file).ok()));
        let authorities = match &self.clients {
            None => None,
            Some((file, is_required)) => {
                let pem = read(file, CERTIFICATES_BYTES_MAX)?;
                let known = Authorities::read(&pem).map_err(|why| of_file(file, why))?;
                Some((known, *is_required))
            }
        };
        let tickets = match &self.ticket_secret {
            None => tickets_of_process(),
            Some(file) => {
                let secret = read(file, TICKET_SECRET_BYTES_MAX)?;
                let least = TicketKeys::SECRET_BYTES_MIN;
                let keys = TicketKeys::of_secret(&secret);
                Arc::new(keys.ok_or_else(|| of_file(file, &format!("a secret has at least {least} bytes")))?)
            }
        };
        let settings = ServerSettings {
            certificates: &certificates,
            version_min: self.version_min,
            suites: self.suites.as_deref(),
            protocols: if self.without_http2 { &[Protocol::Http1] } else { &[Protocol::Http2, Protocol::Http1] },
            clients: authorities.as_ref().map(|(known, is_required)| (known, *is_required)),
            tickets,
            early: self.early_data.then(early_sessions_of_process),
            challenges: (!self.ordered.is_empty()).then(challenges_of_process),
        };
        ServerTls::new(&settings).map_err(|fault| TlsFault { file: None, why: fault.to_string() })
    }

    /// Files with keys or secrets that others on this machine may read.
    pub fn open_to_others(&self) -> Vec<String> {
        let keys = self.certificates.iter().map(|files| &files.key).chain(&self.ticket_secret);
        let is_open =
            |path: &&PathBuf| std::fs::metadata(path).is_ok_and(|file| file.mode() & 0o777 & !OWNER_AND_GROUP != 0);
        keys.filter(is_open)
            .map(|path| format!("everybody on this machine may read {0}: chmod 600 {0}", path.display()))
            .collect()
    }

    /// Why certificates are shown without the OCSP responses that they were given.
    pub fn not_stapled(&self) -> Vec<String> {
        let why = |files: &CertificateFiles| match stapled(&certificate(files).ok()?, files)? {
            Ok(_) => None,
            Err(fault) => Some(format!("{fault}; the certificate {} is shown without it", files.certificate.display())),
        };
        self.certificates.iter().filter_map(why).collect()
    }

    /// When the first of the OCSP responses that are shown now counts no longer.
    fn staples_until_s(&self) -> Option<u64> {
        let until_s = |files: &CertificateFiles| stapled(&certificate(files).ok()?, files)?.ok()?.staple_until_s();
        self.certificates.iter().filter_map(until_s).min()
    }

    /// Looks at the files before they are read: what changes from now on is noticed, also while a plan is made of them.
    #[must_use]
    pub fn seen_now(self) -> TlsFiles {
        TlsFiles { seen: self.marks(), ..self }
    }

    /// What the files are like now.
    pub fn marks(&self) -> Vec<FileMark> {
        let certificates = self.certificates.iter().flat_map(|files| [&files.certificate, &files.key]);
        let certificates = certificates.chain(self.certificates.iter().filter_map(|files| files.ocsp.as_ref()));
        let others = self.clients.iter().map(|(file, _)| file).chain(&self.ticket_secret).chain(&self.ordered);
        let mark = |path: &PathBuf| {
            let file = std::fs::metadata(path).ok()?;
            Some((file.ino(), file.size(), file.mtime(), file.mtime_nsec()))
        };
        certificates.chain(others).map(mark).collect()
    }
}

/// A certificate with its key.
pub fn certificate(files: &CertificateFiles) -> Result<Certificate, TlsFault> {
    let chain = read(&files.certificate, CERTIFICATES_BYTES_MAX)?;
    let key = read(&files.key, CERTIFICATES_BYTES_MAX)?;
    Certificate::read(&chain, &key).map_err(|fault| {
        let file = if fault.is_of_key() { &files.key } else { &files.certificate };
        of_file(file, &fault.to_string())
    })
}

/// The certificate with its OCSP response, or why it goes without. `None`: it was given none.
fn stapled(certificate: &Certificate, files: &CertificateFiles) -> Option<Result<Certificate, TlsFault>> {
    let file = files.ocsp.as_ref()?;
    let stapled = |response| {
        certificate.with_staple(response, wall_now_ms() / 1_000).map_err(|fault| of_file(file, &fault.to_string()))
    };
    Some(read(file, OCSP_BYTES_MAX).and_then(stapled))
}

/// One that an authority has signed: both are in one file.
fn ordered_certificate(file: &Path) -> Result<Certificate, TlsFault> {
    certificate(&CertificateFiles { certificate: file.to_owned(), key: file.to_owned(), ocsp: None })
}

fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, TlsFault> {
    bounded_file::read(path, bytes_max).map_err(|why| of_file(path, &why))
}

fn of_file(path: &Path, why: &str) -> TlsFault {
    TlsFault { file: Some(path.to_owned()), why: why.to_owned() }
}

/// Of all listeners that have no secret of their own, over reloads.
fn tickets_of_process() -> Arc<TicketKeys> {
    static KEYS: OnceLock<Arc<TicketKeys>> = OnceLock::new();
    let keys = || TicketKeys::of_secret(ticket_secret_of_process()).unwrap_or_else(TicketKeys::random);
    Arc::clone(KEYS.get_or_init(|| Arc::new(keys())))
}

static TICKET_SECRET: OnceLock<Vec<u8>> = OnceLock::new();

/// What those are made of: for the process that takes over from this one.
pub fn ticket_secret_of_process() -> &'static [u8] {
    TICKET_SECRET.get_or_init(|| kernel_random::bytes::<{ TicketKeys::SECRET_BYTES_MIN }>().to_vec())
}

/// They are those of the process before this one. To be said before anything of TLS is read.
pub fn take_over_ticket_secret(secret: Vec<u8>) {
    let _ = TICKET_SECRET.set(secret);
}

/// Of all listeners that take early data, over reloads.
fn early_sessions_of_process() -> Arc<EarlySessions> {
    static SESSIONS: OnceLock<Arc<EarlySessions>> = OnceLock::new();
    Arc::clone(SESSIONS.get_or_init(Arc::default))
}

/// What authorities are answered over TLS, by all listeners that have certificates from one.
pub fn challenges_of_process() -> Arc<AlpnChallenges> {
    static CHALLENGES: OnceLock<Arc<AlpnChallenges>> = OnceLock::new();
    Arc::clone(CHALLENGES.get_or_init(Arc::default))
}

/// Files that are looked at every now and then.
#[derive(Debug)]
pub struct WatchedTls {
    files: TlsFiles,
    marks: Vec<FileMark>,
    /// Of the ordered ones, those that were there.
    shown: Vec<PathBuf>,
    /// When an OCSP response that is shown counts no longer.
    staples_until_s: Option<u64>,
}

impl WatchedTls {
    pub fn new(files: &TlsFiles) -> WatchedTls {
        WatchedTls {
            marks: files.seen.clone(),
            files: files.clone(),
            shown: good_of(&files.ordered),
            staples_until_s: files.staples_until_s(),
        }
    }

    /// What the files say now, if one of them has changed since the last look, or an OCSP response has come to its end. `now_s` is
    /// the time of day.
    pub fn look(&mut self, now_s: u64) -> Option<Result<ServerTls, TlsFault>> {
        let marks = self.files.marks();
        if marks == self.marks && self.staples_until_s.is_none_or(|until_s| now_s < until_s) {
            return None;
        }
        self.marks = marks;
        self.staples_until_s = self.files.staples_until_s();
        // That one is gone, or broken, is no reason to show none.
        if let Some(fault) = self.shown.iter().find_map(|file| ordered_certificate(file).err()) {
            return Some(Err(fault));
        }
        self.shown = good_of(&self.files.ordered);
        Some(self.files.load())
    }
}

impl WatchedTls {
    /// Why certificates are shown without the OCSP responses that they were given.
    pub fn not_stapled(&self) -> Vec<String> {
        self.files.not_stapled()
    }
}

fn good_of(ordered: &[PathBuf]) -> Vec<PathBuf> {
    ordered.iter().filter(|file| ordered_certificate(file).is_ok()).cloned().collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// No OCSP response is shown here that could come to its end.
    const NOW_S: u64 = 0;

    /// A directory of this test alone.
    struct Room(PathBuf);

    impl Room {
        fn new(name: &str) -> Room {
            let path = std::env::temp_dir().join(format!("larder-tls-{}-{name}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Room(path)
        }

        fn write(&self, name: &str, text: &str) -> PathBuf {
            let path = self.0.join(name);
            std::fs::write(&path, text).unwrap();
            path
        }

        fn certificate(&self, name: &str) -> TlsFiles {
            let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
            let certificate = self.write("a.pem", &made.cert.pem());
            let key = self.write("a.key", &made.signing_key.serialize_pem());
            TlsFiles { certificates: vec![CertificateFiles { certificate, key, ocsp: None }], ..TlsFiles::default() }
                .seen_now()
        }
    }

    impl Drop for Room {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn check(files: &TlsFiles, expect: &str) {
        let fault = files.load().map(|_| ()).unwrap_err().to_string();
        assert!(fault.contains(expect), "{fault}");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_file() {
        let room = Room::new("wrong");
        let good = room.certificate("a.example");
        assert!(good.load().is_ok());
        let with = |change: &dyn Fn(&mut TlsFiles)| {
            let mut files = good.clone();
            change(&mut files);
            files
        };
        check(&with(&|files| files.certificates[0].key = "/nowhere/a.key".into()), "/nowhere/a.key: No such file");
        check(&with(&|files| files.certificates[0].key = files.certificates[0].certificate.clone()), "no private key");
        check(
            &with(&|files| files.certificates[0].certificate = "/dev/null".into()),
            "/dev/null: there is no certificate",
        );
        check(&with(&|files| files.certificates.clear()), "there is no certificate");
        check(
            &with(&|files| files.suites = Some(vec!["RC4".to_owned()])),
            "`RC4` is no cipher suite that larder speaks",
        );
        check(&with(&|files| files.clients = Some(("/dev/null".into(), true))), "/dev/null: there is no certificate");
        check(&with(&|files| files.ticket_secret = Some("/dev/null".into())), "a secret has at least 32 bytes");
        let other = rcgen::KeyPair::generate().unwrap().serialize_pem();
        let other = room.write("other.key", &other);
        check(
            &with(&|files| files.certificates[0].key.clone_from(&other)),
            "other.key: its key is not the certificate's",
        );
    }

    #[test]
    fn a_file_that_changes_is_read_again() {
        let room = Room::new("changes");
        let files = room.certificate("a.example");
        let mut watched = WatchedTls::new(&files);
        assert!(watched.look(NOW_S).is_none());
        room.certificate("b.example");
        let renewed = watched.look(NOW_S).expect("it has changed").expect("it is good");
        assert!(renewed.covers("b.example") && watched.look(NOW_S).is_none());
        room.write("a.key", "half");
        assert!(watched.look(NOW_S).expect("it has changed").is_err() && watched.look(NOW_S).is_none());
    }

    /// A reload takes its time; meanwhile somebody renews.
    #[test]
    fn a_file_that_changes_between_reading_and_watching_is_read_again() {
        let room = Room::new("between");
        let files = room.certificate("a.example");
        assert!(files.load().unwrap().covers("a.example"));
        room.certificate("b.example");
        let mut watched = WatchedTls::new(&files);
        assert!(watched.look(NOW_S).expect("it has changed").unwrap().covers("b.example"));
        assert!(watched.look(NOW_S).is_none());
    }

    #[test]
    fn an_ordered_certificate_is_shown_when_it_comes_and_stays_when_its_file_goes() {
        let room = Room::new("ordered");
        let both = |name: &str| {
            let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
            format!("{}{}", made.cert.pem(), made.signing_key.serialize_pem())
        };
        let file = room.0.join("ordered.pem");
        let files = TlsFiles { ordered: vec![file.clone()], ..TlsFiles::default() }.seen_now();
        assert!(files.load().expect("it may come later").certificates().is_empty());
        let mut watched = WatchedTls::new(&files);
        room.write("ordered.pem", "half");
        assert!(watched.look(NOW_S).expect("it has changed").unwrap().certificates().is_empty());
        for name in ["a.example", "b.example"] {
            // By a rename, as it is stored.
            let beside = room.write("beside", &both(name));
            std::fs::rename(beside, &file).unwrap();
            assert!(watched.look(NOW_S).expect("it has changed").unwrap().covers(name));
        }
        std::fs::remove_file(&file).unwrap();
        assert!(watched.look(NOW_S).expect("it has changed").is_err() && watched.look(NOW_S).is_none());
        room.write("ordered.pem", "half");
        assert!(watched.look(NOW_S).expect("it has changed").is_err() && watched.look(NOW_S).is_none());
    }

    #[test]
    fn secrets_stay_out_of_what_is_printed() {
        let made = rcgen::generate_simple_self_signed(vec!["a.example".to_owned()]).unwrap();
        let (der, pem) = (made.signing_key.serialize_der(), made.signing_key.serialize_pem());
        let read = Certificate::read(made.cert.pem().as_bytes(), pem.as_bytes()).unwrap();
        let tickets = TicketKeys::of_secret(&[7; 48]).unwrap();
        let printed = format!("{read:?} {tickets:?} {:?}", EarlySessions::default());
        // Eight bytes of it are enough to be a leak: as numbers, or in hexadecimal, as certificates are printed.
        let is_in = |secret: &[u8]| {
            secret.windows(8).any(|part| {
                let numbers = format!("{part:?}");
                let hexadecimal: String = part.iter().map(|byte| format!("{byte:02x}")).collect();
                printed.contains(numbers.trim_matches(['[', ']'])) || printed.contains(&hexadecimal)
            })
        };
        assert!(is_in(made.cert.der()), "the certificate itself is printed, so bytes can be seen: {printed}");
        // What comes before the secret number is the same in all keys, and the public key behind it is in the certificate.
        let secret = &der[der.len() / 4..der.len() / 2];
        assert!(!is_in(secret) && !is_in(&[7; 8]) && !printed.contains("PRIVATE KEY"), "{printed}");
    }

    #[test]
    fn a_key_that_everybody_may_read_is_said() {
        let room = Room::new("open");
        let files = room.certificate("a.example");
        let key = &files.certificates[0].key;
        for (mode, is_said) in [(0o600, false), (0o640, false), (0o644, true)] {
            std::fs::set_permissions(key, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(files.open_to_others().len(), usize::from(is_said), "{mode:o}");
        }
    }
}
