//! A server's end: what it shows and what it accepts.

use std::fmt;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, SupportedProtocolVersion};

use crate::alpn_challenges::{AlpnChallenges, WithChallenges};
use crate::authorities::Authorities;
use crate::certificate::Certificate;
use crate::certificate_compression;
use crate::certificate_table::CertificateTable;
use crate::early_sessions::{EarlySessions, SessionsUnder};
use crate::limits::EARLY_DATA_BYTES_MAX;
use crate::session::Session;
use crate::spoken::{Protocol, Version, suite_name};
use crate::suite_choice;
use crate::ticket_keys::TicketKeys;

/// What a listener was told.
#[derive(Debug)]
pub struct ServerSettings<'a> {
    /// The first is for clients that name no server, or one that nobody knows.
    pub certificates: &'a [Certificate],
    pub version_min: Version,
    /// Names of suites as RFC 8446 and 5246 have them; none given: what is safe today.
    pub suites: Option<&'a [String]>,
    /// In the order of preference.
    pub protocols: &'a [Protocol],
    /// Who signs the certificates of clients, and whether a client must have one.
    pub clients: Option<(&'a Authorities, bool)>,
    pub tickets: Arc<TicketKeys>,
    /// Where sessions are kept whose clients may send early data. They have no tickets then.
    pub early: Option<Arc<EarlySessions>>,
    /// What authorities are answered that ask whether we are who we say. Then there may be no certificate yet.
    pub challenges: Option<Arc<AlpnChallenges>>,
}

/// Why there can be no such server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingsFault {
    NoCertificate,
    /// A suite that nobody knows, or that is not safe, by the name that was given.
    UnknownSuite(String),
    /// Versions and suites leave nothing to be spoken.
    NothingLeft,
    Authorities,
}

impl fmt::Display for SettingsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingsFault::NoCertificate => f.write_str("there is no certificate"),
            SettingsFault::UnknownSuite(name) => {
                let known: Vec<String> = suite_names().collect();
                write!(f, "`{name}` is no cipher suite that larder speaks; there are {}", known.join(", "))
            }
            SettingsFault::NothingLeft => f.write_str("no suite is left for the versions that are spoken"),
            SettingsFault::Authorities => f.write_str("no client can be known by these authorities"),
        }
    }
}

/// Begins sessions with clients. Cheap to clone; all cores share it.
#[derive(Clone)]
pub struct ServerTls {
    config: Arc<ServerConfig>,
    table: Arc<CertificateTable>,
    asks_clients: bool,
    certificates: Arc<[Certificate]>,
    /// Settings of the moments in which an authority may ask.
    challenged: Option<(Arc<AlpnChallenges>, Arc<ServerConfig>)>,
    /// For clients that choose the suite themselves.
    by_client: Arc<ServerConfig>,
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerTls")
    }
}

impl ServerTls {
    pub fn new(settings: &ServerSettings<'_>) -> Result<ServerTls, SettingsFault> {
        if settings.certificates.is_empty() && settings.challenges.is_none() {
            return Err(SettingsFault::NoCertificate);
        }
        let provider = Arc::new(provider(settings.suites)?);
        let both: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];
        let versions = match settings.version_min {
            Version::Tls12 => &both[..],
            Version::Tls13 => &both[..1],
        };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .map_err(|_| SettingsFault::NothingLeft)?;
        let builder = match settings.clients {
            None => builder.with_no_client_auth(),
            Some((authorities, is_required)) => {
                let roots = Arc::new(authorities.roots());
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
                let verifier = if is_required { verifier } else { verifier.allow_unauthenticated() };
                builder.with_client_cert_verifier(verifier.build().map_err(|_| SettingsFault::Authorities)?)
            }
        };
        let table = Arc::new(CertificateTable::new(settings.certificates));
        let mut config = builder.with_cert_resolver(Arc::clone(&table) as Arc<_>);
        config.alpn_protocols = settings.protocols.iter().map(|protocol| protocol.name().as_bytes().to_vec()).collect();
        let terms = terms_of(settings.clients);
        match &settings.early {
            None => {
                config.session_storage = Arc::new(NoServerSessionStorage {});
                config.ticketer = Arc::new(settings.tickets.under(&terms));
            }
            // Only sessions that are kept can be told to have been resumed once: rustls has no ticket beside them.
            Some(sessions) => {
                config.session_storage = Arc::new(SessionsUnder { sessions: Arc::clone(sessions), terms });
                config.max_early_data_size = EARLY_DATA_BYTES_MAX;
                // What is asked early is answered early.
                config.send_half_rtt_data = true;
            }
        }
        config.cert_compressors = certificate_compression::compressors();
        config.cert_compression_cache = certificate_compression::cache(settings.certificates.len());
        // A ticket is for one connection, and each connection brings the next one, resumed or not: whoever keeps several has as many.
        config.send_tls13_tickets = 1;
        let by_client = Arc::new(config.clone());
        config.ignore_client_order = true;
        let challenged = settings.challenges.as_ref().map(|challenges| {
            let mut config = config.clone();
            config.alpn_protocols.push(Protocol::AcmeChallenge.name().as_bytes().to_vec());
            config.cert_resolver =
                Arc::new(WithChallenges { table: Arc::clone(&table), challenges: Arc::clone(challenges) });
            (Arc::clone(challenges), Arc::new(config))
        });
        Ok(ServerTls {
            config: Arc::new(config),
            table,
            certificates: settings.certificates.into(),
            asks_clients: settings.clients.is_some(),
            challenged,
            by_client,
        })
    }

    /// May clients show certificates?
    pub fn asks_clients(&self) -> bool {
        self.asks_clients
    }

    /// A session with a client that has just come.
    pub fn begin(&self) -> Session {
        let config = match &self.challenged {
            Some((challenges, config)) if challenges.is_any() => config,
            _ => &self.config,
        };
        let by_client = Arc::clone(&self.by_client);
        Session::server(Arc::clone(config), Arc::clone(&self.table), by_client)
    }

    /// What is shown, in the order in which it was given.
    pub fn certificates(&self) -> &[Certificate] {
        &self.certificates
    }

    /// Is one of the certificates for this name, in lower case?
    pub fn covers(&self, name: &str) -> bool {
        self.table.covers(name)
    }
}

/// What a client is let in by, in few bytes: sessions are resumed where it is the same.
fn terms_of(clients: Option<(&Authorities, bool)>) -> Vec<u8> {
    clients.map_or(Vec::new(), |(authorities, is_required)| {
        [&[u8::from(is_required)][..], authorities.digest().as_ref()].concat()
    })
}

/// Suites by name, in the order of preference, or the usual ones.
pub(crate) fn provider(suites: Option<&[String]>) -> Result<CryptoProvider, SettingsFault> {
    let mut provider = suite_choice::usual();
    if let Some(names) = suites {
        let suite = |name: &String| {
            let is_it = |known: &&rustls::SupportedCipherSuite| suite_name(known).eq_ignore_ascii_case(name);
            let known = aws_lc_rs::ALL_CIPHER_SUITES.iter().find(is_it);
            known.copied().ok_or_else(|| SettingsFault::UnknownSuite(name.clone()))
        };
        provider.cipher_suites = names.iter().map(suite).collect::<Result<_, _>>()?;
    }
    Ok(provider)
}

fn suite_names() -> impl Iterator<Item = String> {
    aws_lc_rs::ALL_CIPHER_SUITES.iter().map(suite_name)
}
