//! TLS to an origin: one client for each name that its URLs have.

use std::sync::Arc;

use tls::{Authorities, ClientSettings, ClientTls};

use super::dial::DialAddress;
use crate::settings::{OriginSettings, OriginTls, OriginUrl, Verification};

/// What begins sessions with the servers of one origin. Sessions are resumed on its later connections.
#[derive(Debug, Default)]
pub struct TlsClients(Vec<(Arc<str>, ClientTls)>);

impl TlsClients {
    /// `system` says whom this system trusts. What has no authority, or no name that a certificate can be for, is refused before it comes
    /// here, and no TLS is spoken with it.
    pub fn new(settings: &OriginSettings, system: fn() -> Option<Arc<Authorities>>) -> TlsClients {
        let hosts = settings.urls.iter().filter_map(|url| match url {
            OriginUrl::Tls { host, .. } => Some(bare(host)),
            OriginUrl::Tcp { .. } | OriginUrl::Unix(_) | OriginUrl::Mocked(_) => None,
        });
        let mut clients: Vec<(Arc<str>, ClientTls)> = Vec::new();
        for host in hosts {
            if clients.iter().all(|(known, _)| **known != *host) {
                clients.extend(client(&settings.tls, host, system).map(|client| (host.into(), client)));
            }
        }
        TlsClients(clients)
    }

    /// Who begins TLS with this address, where it is spoken.
    pub fn of(&self, place: &DialAddress) -> Option<&ClientTls> {
        let DialAddress::Tls(_, server) = place else { return None };
        self.0.iter().find(|(name, _)| name == server).map(|(_, client)| client)
    }
}

fn client(tls: &OriginTls, host: &str, system: fn() -> Option<Arc<Authorities>>) -> Option<ClientTls> {
    let authorities = match &tls.verification {
        Verification::System => Some(system()?),
        Verification::By(authorities) => Some(Arc::clone(authorities)),
        Verification::Off => None,
    };
    ClientTls::new(&ClientSettings {
        authorities: authorities.as_deref(),
        name: tls.name.as_deref().unwrap_or(host),
        without_sni: tls.without_sni,
        certificate: tls.certificate.as_ref(),
        protocols: &[],
    })
}

/// Without the brackets of an IPv6 address.
fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host)
}
