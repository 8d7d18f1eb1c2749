//! The two ends of a session, in memory, for tests: who signs, who shows, who speaks with whom.

use std::io::IoSlice;
use std::sync::Arc;

use rcgen::{CertificateParams, DnType, IsCa, Issuer, KeyPair};

use crate::authorities::Authorities;
use crate::certificate::Certificate;
use crate::client::ClientTls;
use crate::fault::Fault;
use crate::server::{ServerSettings, ServerTls};
use crate::session::Session;
use crate::spoken::{Protocol, Version};
use crate::ticket_keys::TicketKeys;

/// An authority, and what it signs.
pub(crate) struct Signer {
    pub(crate) issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
}

impl Signer {
    pub(crate) fn new() -> Signer {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "authority of a test");
        let pem = params.self_signed(&key).unwrap().pem();
        Signer { issuer: Issuer::new(params, key), pem }
    }

    pub(crate) fn authorities(&self) -> Authorities {
        Authorities::read(self.pem.as_bytes()).unwrap()
    }

    pub(crate) fn signs(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Certificate {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        change(&mut params);
        let pem = params.signed_by(&key, &self.issuer).unwrap().pem();
        Certificate::read(pem.as_bytes(), key.serialize_pem().as_bytes()).unwrap()
    }
}

pub(crate) fn settings<'a>(certificate: &'a Certificate, tickets: &Arc<TicketKeys>) -> ServerSettings<'a> {
    ServerSettings {
        certificates: std::slice::from_ref(certificate),
        version_min: Version::Tls12,
        suites: None,
        protocols: &[Protocol::Http2, Protocol::Http1],
        clients: None,
        tickets: Arc::clone(tickets),
        early: None,
        challenges: None,
    }
}

pub(crate) fn server(certificate: &Certificate, tickets: &Arc<TicketKeys>) -> ServerTls {
    ServerTls::new(&settings(certificate, tickets)).unwrap()
}

pub(crate) fn tickets() -> Arc<TicketKeys> {
    Arc::new(TicketKeys::random())
}

/// One end: its session, what has come for it, and the text that it was told.
pub(crate) struct Party {
    pub(crate) session: Session,
    pub(crate) came: Vec<u8>,
    pub(crate) text: Vec<u8>,
    pub(crate) ended: bool,
}

impl Party {
    pub(crate) fn of(session: Session) -> Party {
        Party { session, came: Vec::new(), text: Vec::new(), ended: false }
    }

    pub(crate) fn open(&mut self, out: &mut Vec<u8>) -> Result<(), Fault> {
        let (text, mut came) = (&mut self.text, std::mem::take(&mut self.came));
        self.ended |= self.session.open(&mut came, &mut |piece: &[u8]| text.extend_from_slice(piece), out)?;
        Ok(())
    }

    pub(crate) fn says(&mut self, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        assert_eq!(self.session.seal(&[IoSlice::new(text)], usize::MAX, &mut out), Ok(text.len()));
        out
    }
}

/// Both talk until neither has anything more to say, in pieces of so many bytes.
pub(crate) fn converse(client: &mut Party, server: &mut Party, piece: usize) -> (Result<(), Fault>, Result<(), Fault>) {
    let (mut of_client, mut of_server) = (Ok(()), Ok(()));
    loop {
        let (mut up, mut down) = (Vec::new(), Vec::new());
        if of_client.is_ok() {
            of_client = client.open(&mut up);
        }
        for part in up.chunks(piece) {
            server.came.extend_from_slice(part);
            if of_server.is_ok() {
                of_server = server.open(&mut down);
            }
        }
        client.came.extend_from_slice(&down);
        if up.is_empty() && down.is_empty() {
            return (of_client, of_server);
        }
    }
}

pub(crate) fn meet(client: &ClientTls, server: &ServerTls) -> (Party, Party) {
    let (mut client, mut server) = (Party::of(client.begin()), Party::of(server.begin()));
    assert_eq!(converse(&mut client, &mut server, usize::MAX), (Ok(()), Ok(())));
    (client, server)
}
