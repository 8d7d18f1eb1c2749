//! What origins are told on a fresh connection, and what that does to its reuse; and origins that are nowhere.

use super::*;
use crate::settings::ProxyVersion;

/// What arrives at the listener first, when the origin is greeted so and the request comes from this client.
async fn check(greeting: Greeting, parties: Option<(&str, &str)>, expect: &str) {
    let listener = listener().await;
    let mut settings = settings_for(&[&listener]);
    let personal = greeting.proxy_header.is_some();
    settings.origins[0].greeting = greeting;
    let rig = Rig::new(settings);
    let parties = parties.map(|(a, b)| Parties { source: a.parse().unwrap(), destination: b.parse().unwrap() });
    let call = Call { parties, ..Call::plain(Reuse::Allowed, Duration::from_secs(60)) };
    let connection = rig.origins.get(0).call(&rig.handle(), call).await.unwrap();
    let mut peer = accept(&listener).await;
    let mut heard = vec![0; expect.len()];
    peer.read_exact(&mut heard).await.unwrap();
    assert_eq!(heard.escape_ascii().to_string(), expect.as_bytes().escape_ascii().to_string());
    rig.give_back(connection);
    assert_eq!(rig.counts(0).2, [(0, usize::from(!personal))], "kept for others");
}

#[test]
fn a_greeting_comes_before_the_first_request() {
    run(async {
        let of = |preamble: &str, proxy_header| Greeting { preamble: preamble.into(), proxy_header };
        check(of("", None), None, "").await;
        check(of("hello", None), None, "hello").await;
        let parties = Some(("192.0.2.7:1024", "192.0.2.1:80"));
        check(of("", Some(ProxyVersion::One)), parties, "PROXY TCP4 192.0.2.7 192.0.2.1 1024 80\r\n").await;
        check(of("hello", Some(ProxyVersion::One)), parties, "helloPROXY TCP4 192.0.2.7 192.0.2.1 1024 80\r\n").await;
        check(of("", Some(ProxyVersion::Two)), None, "\r\n\r\n\0\r\nQUIT\n\x20\0\0\0").await;
    });
}

#[test]
fn an_origin_may_have_timeouts_of_its_own() {
    run(async {
        let listener = listener().await;
        let mut settings = settings_for(&[&listener]);
        settings.origins[0].timeouts.connect = Some(Duration::from_secs(7));
        let rig = Rig::new(settings);
        let origin = rig.origins.get(0);
        let limits = &rig.settings.limits;
        assert_eq!(origin.connect_timeout(limits), Duration::from_secs(7));
        assert_eq!((origin.timeouts().first_byte, origin.timeouts().between_bytes), (None, None));
    });
}

#[test]
fn an_origin_that_is_nowhere_refuses_at_once() {
    run(async {
        let rig = Rig::new(settings(vec![origin("none", Vec::new())]));
        let refusal = rig.refusal().await;
        assert_eq!((refusal.status(), refusal.token()), (503, "origin-none"));
        assert_eq!(rig.counts(0), (0, 0, vec![]));
    });
}

#[test]
fn backends_go_on_with_the_connections_of_the_same_backend_in_another_program() {
    run(async {
        let listener = listener().await;
        let mut settings = settings_for(&[&listener]);
        let mut rig = Rig::new(settings.clone());
        let base = Arc::clone(&rig.origins);
        let backends = std::mem::take(&mut settings.origins);
        let first = base.of_backends(&backends, &[]);
        rig.origins = Arc::clone(&first);
        let connection = rig.connect().await;
        rig.give_back(connection);
        rig.origins = base.of_backends(&backends, &[Arc::clone(&first)]);
        assert!(rig.connect().await.reused, "the same backend");

        let mut other = backends.clone();
        other[0].connections_max = 3;
        rig.origins = base.of_backends(&other, &[Arc::clone(&first)]);
        assert!(!rig.connect().await.reused, "another limit: it must not be the first one's");
        other[0] = backends[0].clone();
        other[0].greeting.preamble = b"x".to_vec();
        rig.origins = base.of_backends(&other, &[first]);
        assert!(!rig.connect().await.reused, "another greeting");
    });
}
