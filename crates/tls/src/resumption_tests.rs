//! Who comes again: whose session is resumed, and what is known of a client then.

use std::sync::Arc;

use rcgen::DnType;

use crate::client::{ClientSettings, ClientTls};
use crate::client_certificate::CertificateFacts;
use crate::parties::{Party, Signer, converse, meet, server, settings, tickets};
use crate::server::{ServerSettings, ServerTls};
use crate::ticket_keys::TicketKeys;

#[test]
fn sessions_are_resumed_by_whoever_has_the_secret() {
    let signer = Signer::new();
    let certificate = signer.signs("a.example", |_| {});
    let authorities = signer.authorities();
    let secret = Arc::new(TicketKeys::of_secret(&[9; 32]).unwrap());
    let same = Arc::new(TicketKeys::of_secret(&[9; 32]).unwrap());
    for (keys, is_resumed) in [(same, true), (tickets(), false)] {
        let client = ClientTls::new(&ClientSettings::verifying(&authorities, "a.example")).unwrap();
        let (mut first, mut before) = meet(&client, &server(&certificate, &secret));
        // The tickets of TLS 1.3 come behind the handshake.
        first.came = before.says(b"x");
        first.open(&mut Vec::new()).unwrap();
        let (_, again) = meet(&client, &server(&certificate, &keys));
        assert_eq!(again.session.agreement().is_resumed, is_resumed);
    }
}
/// Who was let in by one listener is not thereby let in by another one that asks more.
#[test]
fn a_session_is_not_resumed_where_other_clients_are_let_in() {
    let (signer, stranger) = (Signer::new(), Signer::new());
    let (certificate, authorities, others) =
        (signer.signs("a.example", |_| {}), signer.authorities(), stranger.authorities());
    let (known, unknown) = (signer.signs("client.example", |_| {}), stranger.signs("client.example", |_| {}));
    let shared = tickets();
    let all = [
        (None, &known),
        (Some((&authorities, false)), &known),
        (Some((&authorities, true)), &known),
        (Some((&others, true)), &unknown),
    ];
    let server = |clients| ServerTls::new(&ServerSettings { clients, ..settings(&certificate, &shared) }).unwrap();
    for (from, (first, shown)) in all.iter().enumerate() {
        for (to, (second, _)) in all.iter().enumerate() {
            let shown =
                ClientSettings { certificate: Some(shown), ..ClientSettings::verifying(&authorities, "a.example") };
            let client = ClientTls::new(&shown).unwrap();
            let (mut before, mut of_server) = meet(&client, &server(*first));
            before.came = of_server.says(b"x");
            before.open(&mut Vec::new()).unwrap();
            let (mut client, mut again) = (Party::of(client.begin()), Party::of(server(*second).begin()));
            let _ = converse(&mut client, &mut again, usize::MAX);
            assert_eq!(again.session.agreement().is_resumed, from == to, "{from} {to}");
        }
    }
}

#[test]
fn a_server_knows_who_its_client_is_also_when_it_comes_again() {
    let signer = Signer::new();
    let (certificate, authorities) = (signer.signs("a.example", |_| {}), signer.authorities());
    let shown = signer.signs("client.example", |params| params.distinguished_name.push(DnType::CommonName, "Ann"));
    let clients = Some((&authorities, true));
    let server = ServerTls::new(&ServerSettings { clients, ..settings(&certificate, &tickets()) }).unwrap();
    let settings = ClientSettings { certificate: Some(&shown), ..ClientSettings::verifying(&authorities, "a.example") };
    let client = ClientTls::new(&settings).unwrap();
    for comes_again in [false, true] {
        let (_, server) = meet(&client, &server);
        assert_eq!(server.session.agreement().is_resumed, comes_again);
        assert_eq!(server.session.server_name(), Some("a.example"));
        let known = server.session.client_certificate().expect("it was shown");
        assert_eq!(known.der(), shown.key.cert[0].as_ref());
        let facts = CertificateFacts {
            name: Some("Ann".to_owned()),
            signature: Some("ecdsa-with-SHA256"),
            key: Some("EC256".to_owned()),
        };
        assert_eq!(known.facts(), facts);
    }
}
