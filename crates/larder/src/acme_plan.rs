//! Which certificates larder orders by itself, and from whom: what `[acme]`, `acme` of `[listen.tls]` and the flags come to.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use acme::limits::PAUSE_FIRST;
use acme::{AuthoritySettings, ChallengeKind, Directory, NameSet, StateFolder};
use tls::Authorities;

use crate::authority_files;

/// Where certificates and accounts are kept when nobody says.
pub const FOLDER_DEFAULT: &str = "/var/lib/larder/acme";

/// What is said where the terms were not agreed to.
pub const TERMS: &str =
    "an authority signs for who agrees to its terms (of Let's Encrypt: https://letsencrypt.org/repository/)";

/// Those of the one that is asked if no other is named.
pub const TERMS_OF_LETSENCRYPT: &str = "https://letsencrypt.org/repository/";

/// An authority, and where what comes of it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmeSettings {
    pub authority: AuthoritySettings,
    pub folder: PathBuf,
    /// After the first failure nothing is tried for so long.
    pub pause_first: Duration,
}

/// What was said of it.
#[derive(Clone, Debug, Default)]
pub struct AcmeWords {
    pub directory: Directory,
    pub email: Option<String>,
    /// A file with who has signed the authority's own certificate, where this system does not know.
    pub authorities: Option<PathBuf>,
    pub profile: Option<String>,
    /// Both, where nothing is said.
    pub challenge: Option<ChallengeKind>,
    pub folder: Option<PathBuf>,
    pub pause_first: Option<Duration>,
}

impl AcmeWords {
    /// What is wrong with a file is a sentence.
    pub fn settings(self) -> Result<AcmeSettings, String> {
        let authorities: Arc<Authorities> = match &self.authorities {
            Some(file) => authority_files::in_file(file)?,
            None => authority_files::of_system()?,
        };
        // The listeners with certificates are there, so their port is asked first.
        let both = vec![ChallengeKind::Alpn, ChallengeKind::Http];
        let authority = AuthoritySettings {
            directory: self.directory,
            email: self.email,
            authorities,
            profile: self.profile,
            challenges: self.challenge.map_or(both, |kind| vec![kind]),
        };
        Ok(AcmeSettings {
            authority,
            folder: self.folder.unwrap_or_else(|| FOLDER_DEFAULT.into()),
            pause_first: self.pause_first.unwrap_or(PAUSE_FIRST),
        })
    }
}

impl AcmeSettings {
    pub fn state_folder(&self) -> StateFolder {
        StateFolder::new(&self.folder, &self.authority.directory)
    }

    /// Where the certificate for these names is, or will be.
    pub fn certificate_path(&self, names: &NameSet) -> PathBuf {
        self.state_folder().certificate_path(names)
    }
}

/// What is ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcmePlan {
    pub settings: AcmeSettings,
    /// A certificate for each.
    pub sets: Vec<NameSet>,
}

impl AcmePlan {
    /// `listens_plain`: somebody answers HTTP without TLS. What the operator should know, if anything.
    pub fn fit(&mut self, listens_plain: bool) -> Option<String> {
        if listens_plain {
            return None;
        }
        let challenges = &mut self.settings.authority.challenges;
        if challenges.len() > 1 {
            challenges.retain(|kind| *kind == ChallengeKind::Alpn);
        }
        challenges.contains(&ChallengeKind::Http).then(|| {
            "acme: http-01 needs a listener without TLS that the authority reaches at port 80, and there is none ([[listen]], --listen)"
                .to_owned()
        })
    }
}

/// An address that an authority may write to.
pub fn is_email(written: &str) -> bool {
    let plain = |c: char| c.is_ascii_graphic() && !",<>?#%".contains(c);
    let parts = written.split_once('@').filter(|(_, host)| host.contains('.') && !host.contains('@'));
    written.chars().all(plain) && parts.is_some_and(|(user, host)| !user.is_empty() && !host.starts_with('.'))
}
