//! What an origin hears of the certificate that a client has shown: the field `Client-Cert` (RFC 9440). It is put into the request when
//! that arrives, so that programs, keys and rules see it as any other field.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use message::{Field, FieldName, FieldsView, reads_as};
use tls::ClientCertificate;

use crate::asker::Asker;
use crate::client_identity::is_in;
use crate::site::Site;

/// The client's certificate, as a byte sequence of RFC 8941.
pub(crate) const CLIENT_CERT: &str = "Client-Cert";
const CLIENT_CERT_CHAIN: &str = "Client-Cert-Chain";

/// What is to be said of who asks in place of what the request claims. `None`: the request goes on as it is.
pub(crate) enum Claims {
    /// RFC 9440 §2.4: nobody but us says whose certificate was shown, where any listener of ours asks for one.
    Dropped,
    Replaced(Vec<u8>),
}

impl Claims {
    #[inline]
    pub(crate) fn of(site: &Site, asker: &Asker<'_>, fields: FieldsView<'_>) -> Option<Claims> {
        if site.asks_for_client_certificates { Claims::judged(site, asker, fields) } else { None }
    }

    #[cold]
    fn judged(site: &Site, asker: &Asker<'_>, fields: FieldsView<'_>) -> Option<Claims> {
        let claims = fields.iter().any(|field| is_claim(&field));
        if claims && is_in(&site.settings.trusted_proxies, asker.peer.ip()) {
            return None;
        }
        match asker.session().and_then(|session| session.client_certificate()) {
            Some(shown) => Some(Claims::Replaced(as_field(&shown))),
            None => claims.then_some(Claims::Dropped),
        }
    }
}

/// Does the field say who has shown which certificate, to whoever reads its name, in whatever spelling?
pub(crate) fn is_claim(field: &Field<'_>) -> bool {
    field.name == FieldName::Other
        && [CLIENT_CERT, CLIENT_CERT_CHAIN].iter().any(|name| reads_as(field.name_text, name))
}

fn as_field(certificate: &ClientCertificate) -> Vec<u8> {
    format!(":{}:", STANDARD.encode(certificate.der())).into_bytes()
}
