//! TLS to an origin: one client for each name that its URLs have.

use std::sync::Arc;

use tls::{Authorities, ClientSettings, ClientTls, Protocol};

use super::dial::DialAddress;
use super::service_name;
use crate::settings::{OriginSettings, OriginTls, OriginUrl, Verification};

/// What begins sessions with the servers of one origin. Sessions are resumed on its later connections.
#[derive(Debug, Default)]
pub struct TlsClients(Vec<TlsClient>);

/// With the servers of one name.
#[derive(Debug)]
struct TlsClient {
    name: Arc<str>,
    http1: ClientTls,
    /// Where HTTP/2 is offered, too.
    any: Option<ClientTls>,
}

impl TlsClients {
    /// `system` says whom this system trusts. What has no authority, or no name that a certificate can be for, is refused before it comes
    /// here, and no TLS is spoken with it.
    pub fn new(settings: &OriginSettings, system: fn() -> Option<Arc<Authorities>>) -> TlsClients {
        let hosts = settings.urls.iter().filter_map(|url| match url {
            OriginUrl::Tls { host, .. } => Some(service_name::domain_of(host).unwrap_or(bare(host))),
            OriginUrl::Tcp { .. } | OriginUrl::Http2 { .. } | OriginUrl::Unix(_) | OriginUrl::Mocked(_) => None,
        });
        let mut clients: Vec<TlsClient> = Vec::new();
        for host in hosts {
            if clients.iter().all(|known| *known.name != *host) {
                clients.extend(TlsClient::new(settings, host, system));
            }
        }
        TlsClients(clients)
    }

    /// Who begins TLS with this address, where it is spoken; `http2`: that may be spoken inside.
    pub fn of(&self, place: &DialAddress, http2: bool) -> Option<&ClientTls> {
        let DialAddress::Tls(_, server) = place else { return None };
        let client = self.0.iter().find(|client| client.name == *server)?;
        Some(client.any.as_ref().filter(|_| http2).unwrap_or(&client.http1))
    }
}

impl TlsClient {
    fn new(settings: &OriginSettings, host: &str, system: fn() -> Option<Arc<Authorities>>) -> Option<TlsClient> {
        let client = |protocols: &[Protocol]| client(&settings.tls, host, system, protocols);
        // Who is offered nothing else need not be told.
        let http1 = client(if settings.http2 { &[Protocol::Http1] } else { &[] })?;
        let any = match settings.http2 {
            true => Some(client(&[Protocol::Http2, Protocol::Http1])?),
            false => None,
        };
        Some(TlsClient { name: host.into(), http1, any })
    }
}

fn client(
    tls: &OriginTls,
    host: &str,
    system: fn() -> Option<Arc<Authorities>>,
    protocols: &[Protocol],
) -> Option<ClientTls> {
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
        protocols,
    })
}

/// Without the brackets of an IPv6 address.
fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host)
}
