//! Opening connections, keeping them between requests, and taking them over from another core.

use std::os::unix::net::UnixListener as StdUnixListener;
use std::sync::mpsc;

use tokio::net::UnixListener;

use super::*;

#[test]
fn a_returned_connection_is_used_again() {
    run(async {
        let listener = listener().await;
        let rig = Rig::new(settings_for(&[&listener]));
        let mut first = rig.connect().await;
        let mut peer = accept(&listener).await;
        check_alive(&mut first, &mut peer).await;
        assert_eq!((first.reused, first.requests, rig.counts(0)), (false, 1, (1, 0, vec![(1, 0)])));
        let port = local_port(&first);
        rig.give_back(first);
        assert_eq!((rig.counts(0), rig.origins.idle_connections()), ((1, 0, vec![(0, 1)]), 1));
        let mut again = rig.connect().await;
        assert_eq!((again.reused, again.requests, local_port(&again)), (true, 2, port));
        check_alive(&mut again, &mut peer).await;
        drop(again);
        assert_eq!((rig.counts(0), rig.origins.idle_connections()), ((0, 0, vec![(0, 0)]), 0));
        assert_eq!(rig.counters.origin_connections_opened.get(), 1);
        assert_eq!(rig.counters.origin_connections_reused.get(), 1);
    });
}

#[test]
fn unix_sockets_are_pooled_too() {
    run(async {
        let path = std::env::temp_dir().join(format!("larder-origin-{}.sock", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        let rig = Rig::new(settings(vec![origin("shop", vec![OriginUrl::Unix(path.clone())])]));
        let first = rig.connect().await;
        assert_eq!(**first.label(), *format!("unix:{}", path.display()));
        rig.give_back(first);
        assert!(rig.connect().await.reused);
        drop((listener, std::fs::remove_file(&path)));
        let error = rig.refusal().await;
        assert_eq!((error.status(), error.token()), (502, "origin-connect"));
    });
}

#[test]
fn a_fresh_connection_is_wanted_after_a_pooled_one_died() {
    run(async {
        let listener = listener().await;
        let mut settings = settings_for(&[&listener]);
        settings.origins[0].connections_max = 1;
        let rig = Rig::new(settings);
        let first = rig.connect().await;
        let port = local_port(&first);
        rig.give_back(first);
        let fresh = rig.connect_to(0, Reuse::Fresh).await.unwrap();
        assert!(!fresh.reused && local_port(&fresh) != port);
        assert_eq!(rig.counts(0), (1, 0, vec![(1, 0)]), "the idle one made room");
    });
}

#[test]
fn what_the_origin_closed_meanwhile_is_not_handed_out() {
    run(async {
        let listener = listener().await;
        let rig = Rig::new(settings_for(&[&listener]));
        let first = rig.connect().await;
        let peer = accept(&listener).await;
        rig.give_back(first);
        drop(peer);
        see_events().await;
        assert!(!rig.connect().await.reused);
        assert_eq!(rig.counts(0).0, 0);
    });
}

#[test]
fn bytes_that_came_unasked_end_a_connection() {
    run(async {
        let listener = listener().await;
        let rig = Rig::new(settings_for(&[&listener]));
        let idle = rig.connect().await;
        let mut idle_peer = accept(&listener).await;
        let busy = rig.connect().await;
        let mut busy_peer = accept(&listener).await;
        rig.give_back(idle);
        idle_peer.write_all(b"H").await.unwrap();
        busy_peer.write_all(b"H").await.unwrap();
        see_events().await;
        rig.give_back(busy);
        assert_eq!(rig.counts(0), (1, 0, vec![(0, 1)]), "not put on the shelf");
        assert!(!rig.connect().await.reused, "not taken off the shelf");
    });
}

#[test]
fn the_sweep_closes_what_is_old_closed_or_talks() {
    run(async {
        let listener = listener().await;
        let rig = Rig::new(settings_for(&[&listener]));
        let mut peers = Vec::new();
        let mut connections = Vec::new();
        for _ in 0..4 {
            connections.push(rig.connect().await);
            peers.push(accept(&listener).await);
        }
        let last = connections.pop().unwrap();
        connections.into_iter().for_each(|connection| rig.give_back(connection));
        drop(peers.remove(0));
        peers[0].write_all(b"H").await.unwrap();
        see_events().await;
        rig.sweep();
        assert_eq!(rig.counts(0), (2, 0, vec![(1, 1)]));
        rig.advance(3_999);
        rig.give_back(last);
        rig.sweep();
        assert_eq!(rig.counts(0), (2, 0, vec![(0, 2)]));
        rig.advance(1);
        rig.sweep();
        assert_eq!((rig.counts(0), rig.origins.idle_connections()), ((1, 0, vec![(0, 1)]), 1));
        rig.advance(4_000);
        assert!(!rig.connect().await.reused, "too old, though no sweep came by");
    });
}

#[test]
fn past_the_limit_the_oldest_idle_connection_of_all_origins_is_closed() {
    run(async {
        let (a, b) = (listener().await, listener().await);
        let origin_at = |name, l: &TcpListener| origin(name, vec![url(l.local_addr().unwrap())]);
        let mut settings = settings(vec![origin_at("a", &a), origin_at("b", &b)]);
        settings.limits.origin_idle_connections_max = 2;
        let rig = Rig::new(settings);
        let held = [rig.connect_to(0, Reuse::Allowed).await, rig.connect_to(1, Reuse::Allowed).await];
        let last = rig.connect_to(1, Reuse::Allowed).await.unwrap();
        for connection in held {
            rig.give_back(connection.unwrap());
            rig.advance(1);
        }
        rig.give_back(last);
        assert_eq!((rig.counts(0).0, rig.counts(1).0, rig.origins.idle_connections()), (0, 2, 2));
    });
}

#[test]
fn without_idle_connections_allowed_every_one_is_closed() {
    run(async {
        let listener = listener().await;
        let mut settings = settings_for(&[&listener]);
        settings.limits.origin_idle_connections_max = 0;
        let rig = Rig::new(settings);
        let connection = rig.connect().await;
        rig.give_back(connection);
        assert_eq!((rig.counts(0).0, rig.origins.idle_connections()), (0, 0));
    });
}

#[test]
fn requests_take_turns_over_all_addresses() {
    run(async {
        let (a, b) = (listener().await, listener().await);
        let rig = Rig::new(settings_for(&[&a, &b]));
        let mut labels = Vec::new();
        for _ in 0..6 {
            let connection = rig.connect().await;
            labels.push(Arc::clone(connection.label()));
            rig.give_back(connection);
        }
        let [a, b] = [&a, &b].map(|l| Arc::<str>::from(l.local_addr().unwrap().to_string()));
        assert_eq!(labels, [&a, &b, &a, &b, &a, &b].map(Arc::clone));
        assert_eq!(rig.counters.origin_connections_reused.get(), 4);
    });
}

#[test]
fn a_refusal_says_who_and_why() {
    run(async {
        let address = nobody().await;
        let rig = Rig::new(settings(vec![origin("shop", vec![url(address)])]));
        let error = rig.refusal().await;
        let expect = format!(
            "origin \"shop\" ({address}): connect failed: Connection refused (os error 111) (origin.shop.urls)"
        );
        assert_eq!((error.status(), error.to_string()), (502, expect));
        assert_eq!((rig.counters.origin_errors_connect.get(), rig.counts(0).0), (1, 0));
    });
}

/// A listener that accepts nobody and whose backlog is full.
pub(super) async fn deaf() -> (socket2::Socket, SocketAddr, Vec<TcpStream>) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    socket.listen(0).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    let mut queued = Vec::new();
    while let Ok(stream) = tokio::time::timeout(Duration::from_millis(50), TcpStream::connect(address)).await {
        queued.push(stream.unwrap());
    }
    (socket, address, queued)
}

#[test]
fn silence_is_a_timeout_that_names_its_limit() {
    run(async {
        let (_socket, address, _queued) = deaf().await;
        let mut settings = settings(vec![origin("shop", vec![url(address)])]);
        settings.limits.connect_timeout = Duration::from_millis(30);
        let rig = Rig::new(settings);
        let error = rig.refusal().await;
        let expect = format!("origin \"shop\" ({address}): connect timed out after 30 ms (limits.connect_timeout)");
        assert_eq!((error.status(), error.to_string()), (504, expect));
        assert_eq!(rig.counts(0).0, 0);
    });
}

#[test]
fn a_unix_socket_with_a_full_backlog_is_waited_for() {
    run(async {
        let path = std::env::temp_dir().join(format!("larder-deaf-{}.sock", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None).unwrap();
        socket.bind(&socket2::SockAddr::unix(&path).unwrap()).unwrap();
        socket.listen(0).unwrap();
        let mut queued = Vec::new();
        while let Ok(stream) = tokio::net::UnixStream::connect(&path).await {
            queued.push(stream);
        }
        let mut settings = settings(vec![origin("shop", vec![OriginUrl::Unix(path.clone())])]);
        settings.limits.connect_timeout = Duration::from_millis(30);
        let rig = Rig::new(settings);
        assert_eq!(rig.refusal().await.status(), 504);
        let mut waiting = std::pin::pin!(rig.connect());
        assert!(std::future::poll_fn(|cx| std::task::Poll::Ready(waiting.as_mut().poll(cx))).await.is_pending());
        let listener = StdUnixListener::from(std::os::fd::OwnedFd::from(socket));
        listener.accept().unwrap();
        waiting.await;
        std::fs::remove_file(&path).unwrap();
    });
}

#[test]
fn failures_in_a_row_eject_an_address_until_its_time_is_over() {
    run(async {
        let (a, b) = (listener().await, listener().await);
        let rig = Rig::new(settings_for(&[&a, &b]));
        let label_a = a.local_addr().unwrap().to_string();
        for _ in 0..6 {
            let connection = rig.connect().await;
            if **connection.label() == *label_a {
                connection.failed(&rig.handle(), OriginFailure::FirstByte);
            } else {
                connection.succeeded(|| rig.now_ms.get());
            }
        }
        let state = || rig.origins.status(rig.now_ms.get())[0].addresses[0].state;
        assert_eq!(state(), AddressState::Ejected { for_ms: 10_000 });
        assert_eq!((rig.counters.origin_ejections.get(), rig.counters.origin_errors_first_byte.get()), (1, 3));
        rig.advance(9_999);
        for _ in 0..4 {
            assert_ne!(**rig.connect().await.label(), *label_a);
        }
        rig.advance(1);
        // Nobody knows yet whether it is well.
        assert_eq!((state(), rig.origins.status(rig.now_ms.get())[0].errors()), (AddressState::Failing, 3));
        let two = [rig.connect().await, rig.connect().await];
        let back = two.iter().find(|connection| **connection.label() == *label_a).expect("it has its turn again");
        back.succeeded(|| rig.now_ms.get());
        assert_eq!(rig.origins.status(0)[0].addresses[0].failures, 0);
    });
}

#[test]
fn a_connection_is_taken_over_by_a_core_that_has_none() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let settings = settings(vec![origin("shop", vec![url(listener.local_addr().unwrap())])]);
    let origins = Origins::new(&settings, None);
    let (pooled, is_pooled) = mpsc::channel::<u16>();
    let (done, is_done) = tokio::sync::oneshot::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            run(async {
                let rig = Rig::other(&settings, &origins, 0);
                let (kept, dies) = (rig.connect().await, rig.connect().await);
                let port = local_port(&kept);
                rig.give_back(kept);
                rig.give_back(dies);
                pooled.send(port).unwrap();
                is_done.await.unwrap();
            });
        });
        run(async {
            let rig = Rig::other(&settings, &origins, 1);
            let port = is_pooled.recv().unwrap();
            let kept_peer = listener.accept().unwrap().0;
            // Closed by the origin a moment ago: the other core need not have seen it.
            drop(listener.accept().unwrap());
            kept_peer.set_nonblocking(true).unwrap();
            let mut connection = rig.connect().await;
            assert_eq!((connection.reused, local_port(&connection)), (true, port));
            check_alive(&mut connection, &mut TcpStream::from_std(kept_peer).unwrap()).await;
            done.send(()).unwrap();
            assert_eq!(rig.counters.origin_connections_taken_over.get(), 1);
            assert_eq!(rig.counts(0), (1, 0, vec![(1, 0)]));
        });
    });
}

#[test]
fn what_a_core_that_ended_left_behind_can_be_taken_over() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let settings = settings(vec![origin("shop", vec![url(listener.local_addr().unwrap())])]);
    let origins = Origins::new(&settings, None);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            run(async {
                let rig = Rig::other(&settings, &origins, 0);
                rig.give_back(rig.connect().await);
            });
        });
    });
    let mut peer = listener.accept().unwrap().0;
    run(async {
        let rig = Rig::other(&settings, &origins, 1);
        let mut connection = rig.connect().await;
        assert!(connection.reused);
        connection.stream.write_all(b"x").await.unwrap();
        std::io::Read::read_exact(&mut peer, &mut [0]).unwrap();
    });
}

#[test]
fn a_reload_keeps_what_stands_behind_equal_urls() {
    run(async {
        let (a, b) = (listener().await, listener().await);
        let mut rig = Rig::new(settings_for(&[&a]));
        let (kept, in_use) = (rig.connect().await, rig.connect().await);
        in_use.failed(&rig.handle(), OriginFailure::Protocol);
        rig.give_back(kept);
        rig.settings.origins[0].connections_max = 2;
        rig.settings.origins[0].name = "store".into();
        rig.settings.origins.insert(0, origin("new", vec![url(b.local_addr().unwrap())]));
        rig.reload();
        assert_eq!((rig.counts(0), rig.counts(1)), ((0, 0, vec![(0, 0)]), (2, 0, vec![(1, 1)])));
        let status = rig.origins.status(0).swap_remove(1);
        assert_eq!((status.connections_max, status.addresses[0].failures), (2, 1));
        rig.give_back(in_use);
        assert_eq!(rig.counts(1), (2, 0, vec![(0, 2)]));
        rig.settings.origins.pop();
        rig.reload();
        assert_eq!(rig.origins.idle_connections(), 0, "those of an origin that is gone are closed");
    });
}

#[test]
fn a_lowered_limit_closes_connections_as_they_come_back() {
    run(async {
        let listener = listener().await;
        let mut rig = Rig::new(settings_for(&[&listener]));
        let [a, b, c] = [rig.connect().await, rig.connect().await, rig.connect().await];
        rig.settings.origins[0].connections_max = 1;
        rig.reload();
        rig.give_back(a);
        rig.give_back(b);
        assert_eq!(rig.counts(0), (1, 0, vec![(1, 0)]));
        rig.give_back(c);
        assert_eq!(rig.counts(0), (1, 0, vec![(0, 1)]));
    });
}
