//! One session, server's or client's: records in, text out, and the other way round. It holds no buffer but what came of a record, or of
//! a message of the handshake, that is not whole yet.

use std::io::IoSlice;
use std::sync::Arc;

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::server::{ServerConfig, ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncryptError, ReadEarlyData, UnbufferedConnectionCommon, UnbufferedStatus,
};
use rustls::{CommonState, Error, HandshakeKind, ProtocolVersion};

use crate::certificate_table::CertificateTable;
use crate::client_certificate::{CertificateFacts, ClientCertificate};
use crate::fault::Fault;
use crate::hello::Hello;
use crate::limits::{HANDSHAKE_BYTES_MAX, RECORD_OVERHEAD_BYTES, RECORD_TEXT_BYTES_MAX};
use crate::spoken::{Protocol, Version, suite_name};
use crate::suite_choice;

/// A TLS session over bytes.
pub struct Session {
    end: End,
    /// What came and is not done with. rustls remembers where in it the pieces of a message lie, and wants to see it each time.
    pending: Vec<u8>,
    /// What a client said first, of a server's session.
    hello: Option<Box<Hello>>,
    /// Text came before the handshake was over.
    has_early: bool,
    /// What serves a client that chooses the suite itself, until it has said something.
    by_client: Option<Arc<ServerConfig>>,
    /// Why it is over. rustls remembers more of what came than is there then: it is asked nothing more, or it panics.
    fault: Option<Fault>,
}

enum End {
    Server(UnbufferedServerConnection, Arc<CertificateTable>),
    Client(UnbufferedClientConnection),
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session({:?})", self.agreement())
    }
}

/// What both sides agreed upon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreement {
    pub version: Option<Version>,
    /// As the RFCs write it.
    pub suite: Option<String>,
    /// The key exchange, by its name in IANA's list.
    pub group: Option<String>,
    pub protocol: Option<Protocol>,
    /// No certificate was shown: both knew each other.
    pub is_resumed: bool,
}

impl Session {
    /// By settings that were accepted, or by `by_client` for a client that chooses the suite itself. `table`: what others are shown.
    pub(crate) fn server(
        config: Arc<ServerConfig>,
        table: Arc<CertificateTable>,
        by_client: Arc<ServerConfig>,
    ) -> Session {
        Session { by_client: Some(by_client), ..Session::of(End::Server(connection_of(config), table)) }
    }

    pub(crate) fn client(connection: UnbufferedClientConnection) -> Session {
        Session::of(End::Client(connection))
    }

    fn of(end: End) -> Session {
        Session { end, pending: Vec::new(), hello: None, has_early: false, by_client: None, fault: None }
    }

    /// Takes what came, and opens it in place. Text is given to `text` piece by piece; what has to be sent is appended to `out`, also
    /// where this fails: the other side is told why. True: it sends no more.
    pub fn open(&mut self, records: &mut [u8], text: &mut impl FnMut(&[u8]), out: &mut Vec<u8>) -> Result<bool, Fault> {
        match self.fault {
            Some(fault) => Err(fault),
            None => {
                let was_handshaking = self.is_handshaking();
                if !records.is_empty()
                    && let Some(by_client) = self.by_client.take()
                    && let End::Server(connection, _) = &mut self.end
                    && suite_choice::is_by_client(records)
                {
                    *connection = connection_of(by_client);
                }
                let ended = self.open_next(records, text, out).inspect_err(|fault| self.fault = Some(*fault));
                if was_handshaking && let Some(hello) = Hello::take() {
                    self.hello = Some(hello);
                }
                ended
            }
        }
    }

    fn open_next(
        &mut self,
        records: &mut [u8],
        text: &mut impl FnMut(&[u8]),
        out: &mut Vec<u8>,
    ) -> Result<bool, Fault> {
        if self.pending.is_empty() {
            let opened = self.end.take(records, text, out)?;
            self.pending = records[opened.consumed..].to_vec();
            return self.bounded(&opened);
        }
        let mut pending = std::mem::take(&mut self.pending);
        pending.extend_from_slice(records);
        let opened = self.end.take(&mut pending, text, out)?;
        if opened.consumed < pending.len() {
            pending.drain(..opened.consumed);
            self.pending = pending;
        }
        self.bounded(&opened)
    }

    /// What came and is no whole record or message.
    pub fn pending_bytes(&self) -> usize {
        self.pending.capacity()
    }

    fn bounded(&mut self, opened: &Taken) -> Result<bool, Fault> {
        self.has_early |= opened.has_early;
        let is_too_large = self.is_handshaking() && self.pending.len() > HANDSHAKE_BYTES_MAX;
        if is_too_large { Err(Fault::TooLarge) } else { Ok(opened.ended) }
    }

    /// Appends the start of a text as records, at most `bytes_max` of it; returns how much. Nothing before the handshake is over.
    pub fn seal(&mut self, slices: &[IoSlice<'_>], bytes_max: usize, out: &mut Vec<u8>) -> Result<usize, Fault> {
        let first = slices.iter().find(|slice| !slice.is_empty()).map_or(&[][..], |slice| slice);
        let all: usize = slices.iter().map(|slice| slice.len()).sum();
        if first.len() >= bytes_max || first.len() == all {
            return self.seal_one(&first[..first.len().min(bytes_max)], out);
        }
        let mut joined = Vec::with_capacity(all.min(bytes_max));
        for slice in slices {
            let room = bytes_max - joined.len();
            joined.extend_from_slice(&slice[..slice.len().min(room)]);
        }
        self.seal_one(&joined, out)
    }

    fn seal_one(&mut self, text: &[u8], out: &mut Vec<u8>) -> Result<usize, Fault> {
        if text.is_empty() {
            return Ok(0);
        }
        let is_sealed = match (self.fault, &mut self.end) {
            (Some(fault), _) => Err(fault),
            (None, End::Server(connection, _)) => seal(connection, &mut self.pending, text, out),
            (None, End::Client(connection)) => seal(connection, &mut self.pending, text, out),
        };
        match is_sealed.inspect_err(|fault| self.fault = Some(*fault))? {
            true => Ok(text.len()),
            false => Ok(0),
        }
    }

    /// Appends the word that nothing more comes from us; nothing after a fault, of which the other side was told.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        match (self.fault, &mut self.end) {
            (Some(_), _) => {}
            (None, End::Server(connection, _)) => close(connection, &mut self.pending, out),
            (None, End::Client(connection)) => close(connection, &mut self.pending, out),
        }
    }

    pub fn is_handshaking(&self) -> bool {
        self.common().is_handshaking()
    }

    /// The handshake is not over, and text has come already, which may be answered. Somebody else may have recorded it: who it is from is
    /// known when the handshake is over.
    pub fn is_early(&self) -> bool {
        self.has_early && self.is_handshaking()
    }

    /// Which server the client asked for, in lower case (RFC 6066 §3).
    pub fn server_name(&self) -> Option<&str> {
        self.hello.as_ref()?.server_name.as_deref()
    }

    /// What the certificate says that the client was shown.
    pub fn shown_facts(&self) -> Option<CertificateFacts> {
        self.hello.as_ref()?.shown.key.cert.first().map(|der| CertificateFacts::of(der))
    }

    /// Who the client is, where it showed that: in this session or in the one that this resumes.
    pub fn client_certificate(&self) -> Option<ClientCertificate> {
        self.common().peer_certificates().and_then(<[_]>::first).map(|der| ClientCertificate::of(der))
    }

    /// Must this host, in lower case, be asked for over a connection of its own? So it is where the certificate that was shown is not for
    /// it, and another one of ours is (RFC 9110 §15.5.20, RFC 9113 §9.1.2).
    pub fn misdirects(&self, host: &str) -> bool {
        let (End::Server(_, table), Some(hello)) = (&self.end, &self.hello) else { return false };
        // Who names no server has no other connection to ask on.
        let named = hello.server_name.as_deref();
        named.is_some_and(|name| name != host) && !hello.shown.covers(host) && table.covers(host)
    }

    /// What is spoken inside, if both sides said.
    pub fn protocol(&self) -> Option<Protocol> {
        self.common().alpn_protocol().and_then(Protocol::of)
    }

    pub fn agreement(&self) -> Agreement {
        let common = self.common();
        Agreement {
            version: common.protocol_version().and_then(|version| match version {
                ProtocolVersion::TLSv1_2 => Some(Version::Tls12),
                ProtocolVersion::TLSv1_3 => Some(Version::Tls13),
                _ => None,
            }),
            suite: common.negotiated_cipher_suite().map(|suite| suite_name(&suite)),
            group: common.negotiated_key_exchange_group().map(|group| format!("{:?}", group.name())),
            protocol: self.protocol(),
            is_resumed: common.handshake_kind() == Some(HandshakeKind::Resumed),
        }
    }

    fn common(&self) -> &CommonState {
        match &self.end {
            End::Server(connection, _) => connection,
            End::Client(connection) => connection,
        }
    }
}

fn connection_of(config: Arc<ServerConfig>) -> UnbufferedServerConnection {
    UnbufferedServerConnection::new(config).expect("the settings were accepted before")
}

/// What became of records.
#[derive(Default)]
struct Taken {
    consumed: usize,
    ended: bool,
    /// Text came with the first flight.
    has_early: bool,
}

impl End {
    fn take(&mut self, records: &mut [u8], text: &mut impl FnMut(&[u8]), out: &mut Vec<u8>) -> Result<Taken, Fault> {
        match self {
            End::Server(connection, _) => take(connection, records, text, out),
            End::Client(connection) => take(connection, records, text, out),
        }
    }
}

/// Both ends, as rustls drives them.
trait Driven {
    type Data;
    fn process<'c, 'i>(&'c mut self, records: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data>;
    /// Gives the text that came early.
    fn read_early(early: ReadEarlyData<'_, '_, Self::Data>, text: &mut impl FnMut(&[u8])) -> Result<(), Error>;
}

impl Driven for UnbufferedServerConnection {
    type Data = ServerConnectionData;
    fn process<'c, 'i>(&'c mut self, records: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, ServerConnectionData> {
        let common: &mut UnbufferedConnectionCommon<ServerConnectionData> = self;
        common.process_tls_records(records)
    }

    fn read_early(
        mut early: ReadEarlyData<'_, '_, ServerConnectionData>,
        text: &mut impl FnMut(&[u8]),
    ) -> Result<(), Error> {
        while let Some(record) = early.next_record() {
            text(record?.payload);
        }
        Ok(())
    }
}

impl Driven for UnbufferedClientConnection {
    type Data = ClientConnectionData;
    fn process<'c, 'i>(&'c mut self, records: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, ClientConnectionData> {
        let common: &mut UnbufferedConnectionCommon<ClientConnectionData> = self;
        common.process_tls_records(records)
    }

    /// No server sends any.
    fn read_early(_: ReadEarlyData<'_, '_, ClientConnectionData>, _: &mut impl FnMut(&[u8])) -> Result<(), Error> {
        Ok(())
    }
}

fn take<Driver: Driven>(
    connection: &mut Driver,
    records: &mut [u8],
    text: &mut impl FnMut(&[u8]),
    out: &mut Vec<u8>,
) -> Result<Taken, Fault> {
    let mut taken = Taken::default();
    loop {
        let UnbufferedStatus { mut discard, state } = connection.process(&mut records[taken.consumed..]);
        let mut waits = false;
        match state {
            Err(error) => {
                let fault = Fault::of(&error);
                // Who speaks something else would not know an alert.
                if fault != Fault::NotTls {
                    put_alert(connection, &mut records[taken.consumed + discard..], out);
                }
                return Err(fault);
            }
            Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                while let Some(record) = traffic.next_record() {
                    let record = record.map_err(|error| Fault::of(&error))?;
                    discard += record.discard;
                    text(record.payload);
                }
            }
            Ok(ConnectionState::ReadEarlyData(early)) => {
                taken.has_early = true;
                Driver::read_early(early, text).map_err(|error| Fault::of(&error))?;
            }
            Ok(ConnectionState::EncodeTlsData(mut data)) => put(out, |room| match data.encode(room) {
                Err(EncodeError::InsufficientSize(why)) => Err(why.required_size),
                done => Ok(done.unwrap_or(0)),
            }),
            Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
            Ok(ConnectionState::PeerClosed) => taken.ended = true,
            Ok(ConnectionState::Closed) => (taken.ended, waits) = (true, true),
            _ => waits = true,
        }
        taken.consumed += discard;
        if waits {
            return Ok(taken);
        }
    }
}

/// The kind of a record that is an alert.
const ALERT: u8 = 21;

/// After a fault: what was to be said before it, and the alert by which the other side is told. Then the connection is not asked again: it
/// would go on reading behind what was wrong. An alert that is sealed cannot be told from others.
fn put_alert(connection: &mut impl Driven, rest: &mut [u8], out: &mut Vec<u8>) {
    while let Ok(ConnectionState::EncodeTlsData(mut data)) = connection.process(rest).state {
        let at = out.len();
        put(out, |room| match data.encode(room) {
            Err(EncodeError::InsufficientSize(why)) => Err(why.required_size),
            done => Ok(done.unwrap_or(0)),
        });
        if out.get(at) == Some(&ALERT) {
            return;
        }
    }
}

/// False: no text may be sent yet.
fn seal(connection: &mut impl Driven, pending: &mut [u8], text: &[u8], out: &mut Vec<u8>) -> Result<bool, Fault> {
    loop {
        match connection.process(pending).state {
            Err(error) => return Err(Fault::of(&error)),
            Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                let at = out.len();
                out.resize(at + sealed_bytes_max(text.len()), 0);
                let sealed = traffic.encrypt(text, &mut out[at..]);
                out.truncate(at + *sealed.as_ref().unwrap_or(&0));
                return sealed.map(|_| true).map_err(|_| Fault::Protocol);
            }
            Ok(ConnectionState::EncodeTlsData(mut data)) => put(out, |room| match data.encode(room) {
                Err(EncodeError::InsufficientSize(why)) => Err(why.required_size),
                done => Ok(done.unwrap_or(0)),
            }),
            Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
            Ok(ConnectionState::PeerClosed) => {}
            Ok(_) => return Ok(false),
        }
    }
}

fn close(connection: &mut impl Driven, pending: &mut [u8], out: &mut Vec<u8>) {
    loop {
        match connection.process(pending).state {
            Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                return put(out, |room| match traffic.queue_close_notify(room) {
                    Err(EncryptError::InsufficientSize(why)) => Err(why.required_size),
                    done => Ok(done.unwrap_or(0)),
                });
            }
            Ok(ConnectionState::EncodeTlsData(mut data)) => put(out, |room| match data.encode(room) {
                Err(EncodeError::InsufficientSize(why)) => Err(why.required_size),
                done => Ok(done.unwrap_or(0)),
            }),
            Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
            Ok(ConnectionState::PeerClosed) => {}
            _ => return,
        }
    }
}

/// How long the records of a text are at most.
const fn sealed_bytes_max(text_bytes: usize) -> usize {
    text_bytes + text_bytes.div_ceil(RECORD_TEXT_BYTES_MAX) * RECORD_OVERHEAD_BYTES
}

/// Appends what is written into a room of the size that it asks for.
fn put(out: &mut Vec<u8>, mut write: impl FnMut(&mut [u8]) -> Result<usize, usize>) {
    let at = out.len();
    if let Err(needed) = write(&mut []) {
        out.resize(at + needed, 0);
        let written = write(&mut out[at..]).unwrap_or(0);
        out.truncate(at + written);
    }
}
