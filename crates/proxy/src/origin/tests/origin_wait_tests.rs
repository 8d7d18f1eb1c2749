//! Waiting for a connection when all are in use: first come, first served, over all cores, whoever leaves.

use std::cell::RefCell;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use super::super::lease::Waiting;
use super::*;

/// Is the future still waiting? It is polled once.
async fn is_waiting<F: Future>(future: &mut Pin<&mut F>) -> bool {
    std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await
}

fn one_at_a_time(listener: &TcpListener) -> Settings {
    let mut settings = settings_for(&[listener]);
    settings.origins[0].connections_max = 1;
    settings
}

#[test]
fn a_returned_connection_goes_to_whoever_waits_longest() {
    run(async {
        let listener = listener().await;
        let rig = Rig::new(one_at_a_time(&listener));
        let held = rig.connect().await;
        let port = local_port(&held);
        let (mut first, mut second) = (pin!(rig.connect()), pin!(rig.connect()));
        assert!(is_waiting(&mut first).await && is_waiting(&mut second).await);
        assert_eq!(rig.counts(0), (1, 2, vec![(1, 0)]));
        rig.give_back(held);
        assert_eq!(rig.counts(0).2, [(1, 0)], "handed over, not put on a shelf");
        assert!(is_waiting(&mut second).await);
        let mut late = pin!(rig.connect());
        assert!(is_waiting(&mut late).await, "who comes later does not pass");
        let got = first.await;
        assert_eq!((got.reused, local_port(&got)), (true, port));
        drop(got);
        let got = second.await;
        assert!(!got.reused, "a closed one leaves room for a new one");
        rig.give_back(got);
        assert!(late.await.reused);
        assert_eq!(rig.counts(0), (0, 0, vec![(0, 0)]));
    });
}

#[test]
fn a_full_queue_and_a_long_wait_are_refused() {
    run(async {
        let listener = listener().await;
        let mut settings = one_at_a_time(&listener);
        settings.origins[0].queue_max = 1;
        settings.origins[0].queue_timeout = Duration::from_millis(20);
        let rig = Rig::new(settings);
        let held = rig.connect().await;
        let mut waits = pin!(rig.refusal());
        assert!(is_waiting(&mut waits).await);
        let full = rig.refusal().await;
        assert_eq!((full.status(), full.token()), (503, "origin-queue-full"));
        let late = waits.await;
        assert_eq!((late.status(), late.token()), (503, "origin-queue-timeout"));
        assert!(late.to_string().ends_with("within 20 ms (origin.shop.queue_timeout)"), "{late}");
        assert_eq!((rig.counters.origin_errors_busy.get(), rig.counts(0)), (2, (1, 0, vec![(1, 0)])));
        rig.give_back(held);
        assert!(rig.connect().await.reused);
    });
}

#[test]
fn who_leaves_the_queue_gives_the_place_on() {
    run(async {
        let listener = listener().await;
        let rig = Rig::new(one_at_a_time(&listener));
        let held = rig.connect().await;
        let mut leaves_served = Box::pin(rig.connect());
        let mut leaves_waiting = Box::pin(rig.connect());
        let mut stays = pin!(rig.connect());
        assert!(is_waiting(&mut leaves_served.as_mut()).await && is_waiting(&mut leaves_waiting.as_mut()).await);
        assert!(is_waiting(&mut stays).await);
        rig.give_back(held);
        drop(leaves_waiting);
        assert_eq!(rig.counts(0).1, 1);
        assert!(is_waiting(&mut stays).await);
        drop(leaves_served);
        assert!(stays.await.reused, "the connection itself is passed on");
    });
}

#[test]
fn who_leaves_while_dialling_gives_the_slot_on() {
    run(async {
        let listener = listener().await;
        let rig = Rig::new(one_at_a_time(&listener));
        let mut dials = Box::pin(rig.connect());
        assert!(is_waiting(&mut dials.as_mut()).await);
        let mut waits = pin!(rig.connect());
        assert!(is_waiting(&mut waits).await);
        drop(dials);
        waits.await;
    });
}

#[test]
fn a_connection_that_died_on_its_way_leaves_its_slot_to_the_waiter() {
    run(async {
        let listener = listener().await;
        let rig = Rig::new(one_at_a_time(&listener));
        let held = rig.connect().await;
        let peer = accept(&listener).await;
        let mut waits = pin!(rig.connect());
        assert!(is_waiting(&mut waits).await);
        rig.give_back(held);
        drop(peer);
        see_events().await;
        let got = waits.await;
        assert_eq!((got.reused, rig.counts(0)), (false, (1, 0, vec![(1, 0)])));
    });
}

#[test]
fn with_all_slots_taken_another_address_idle_connection_serves() {
    run(async {
        let (a, b) = (listener().await, listener().await);
        let mut settings = settings_for(&[&a, &b]);
        settings.origins[0].connections_max = 1;
        settings.origins[0].queue_max = 0;
        let rig = Rig::new(settings);
        let first = rig.connect().await;
        let label = Arc::clone(first.label());
        rig.give_back(first);
        let second = rig.connect().await;
        assert_eq!((second.reused, second.label()), (true, &label));
    });
}

#[test]
fn an_idle_connection_to_an_ejected_address_makes_room_instead_of_serving() {
    run(async {
        let (a, b) = (listener().await, listener().await);
        let mut settings = settings_for(&[&a, &b]);
        settings.origins[0].connections_max = 1;
        let rig = Rig::new(settings);
        let first = rig.connect().await;
        let label = Arc::clone(first.label());
        (0..3).for_each(|_| first.failed(&rig.handle(), OriginFailure::Truncated));
        rig.give_back(first);
        let second = rig.connect().await;
        assert!(!second.reused && *second.label() != label);
        assert_eq!(rig.counts(0), (1, 0, vec![(0, 0), (1, 0)]));
    });
}

#[test]
fn a_broken_circuit_is_no_reason_to_wait() {
    run(async {
        let listener = listener().await;
        let mut settings = one_at_a_time(&listener);
        settings.origins[0].balance.breaks_circuit = true;
        let rig = Rig::new(settings);
        let held = rig.connect().await;
        (0..3).for_each(|_| held.failed(&rig.handle(), OriginFailure::FirstByte));
        let mut refused = pin!(rig.refusal());
        assert!(!is_waiting(&mut refused).await, "it queues for somebody whom it may not ask");
        assert_eq!(rig.counts(0).1, 0);
    });
}

#[test]
fn a_broken_circuit_lets_one_request_find_out() {
    run(async {
        let listener = listener().await;
        let mut settings = settings_for(&[&listener]);
        settings.origins[0].balance.breaks_circuit = true;
        let rig = Rig::new(settings);
        let before = rig.connect().await;
        (0..3).for_each(|_| before.failed(&rig.handle(), OriginFailure::FirstByte));
        assert_eq!(rig.refusal().await.token(), "origin-all-out");
        rig.advance(10_000);
        let trial = rig.connect().await;
        assert_eq!(rig.refusal().await.token(), "origin-all-out", "half open is for one");
        drop(trial);
        let trial = rig.connect().await;
        trial.succeeded(|| rig.now_ms.get());
        rig.connect().await;
    });
}

#[test]
fn who_is_still_connecting_is_a_load() {
    run(async {
        let (deaf, good) = (super::origin_idle_tests::deaf().await, listener().await);
        let urls = vec![url(deaf.1), url(good.local_addr().unwrap())];
        let mut settings = settings(vec![origin("shop", urls)]);
        settings.origins[0].balance.kind = BalanceKind::LeastConn;
        let rig = Rig::new(settings);
        let mut hangs = pin!(rig.connect());
        assert!(is_waiting(&mut hangs).await);
        for _ in 0..4 {
            let connection = rig.connect().await;
            assert_eq!(**connection.label(), *good.local_addr().unwrap().to_string());
            rig.give_back(connection);
        }
    });
}

#[test]
fn a_raised_limit_lets_waiters_in() {
    run(async {
        let listener = listener().await;
        let mut rig = Rig::new(one_at_a_time(&listener));
        let _held = rig.connect().await;
        let old = Arc::clone(rig.origins.get(0));
        let (counters, limits) = (CoreCounters::default(), rig.settings.limits.clone());
        let shared = SharedConnections::default();
        let core = CoreHandle { core: 0, counters: &counters, now_ms: 0, shared: &shared };
        let mut waits = pin!(old.connect(&core, Reuse::Allowed, &limits));
        assert!(is_waiting(&mut waits).await);
        rig.settings.origins[0].connections_max = 2;
        rig.reload();
        assert!(!waits.await.unwrap().reused);
    });
}

#[test]
fn who_queues_looks_once_more_for_what_came_back_meanwhile() {
    run(async {
        let listener = listener().await;
        let rig = Rig::new(one_at_a_time(&listener));
        let held = rig.connect().await;
        // It comes back between a request's look at the shelves and its joining the queue.
        rig.give_back(held);
        let mut late = Waiting::join(&rig.origins.get(0).servers, 1).unwrap();
        let mut served = pin!(late.served());
        assert!(!is_waiting(&mut served).await);
    });
}

/// Two cores, many tasks, few slots; tasks leave in the middle, connections come back, are dropped, or die. Everyone
/// who stays is served, never are more in use than allowed, and at the end nothing is missing.
#[test]
fn nobody_is_forgotten_under_a_storm_on_two_cores() {
    const CONNECTIONS_MAX: usize = 3;
    let std_listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    std_listener.set_nonblocking(true).unwrap();
    let mut settings = settings(vec![origin("shop", vec![url(std_listener.local_addr().unwrap())])]);
    settings.origins[0].connections_max = CONNECTIONS_MAX;
    settings.origins[0].queue_max = usize::MAX;
    let origins = Origins::new(&settings, None);
    let (in_use, served) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for core in 0..2 {
            let (settings, origins, in_use, served) = (&settings, &origins, &in_use, &served);
            let listener = std_listener.try_clone().unwrap();
            scope.spawn(move || {
                run(async move {
                    let listener = TcpListener::from_std(listener).unwrap();
                    let rig = Rig::other(settings, origins, core);
                    let peers = RefCell::new(Vec::new());
                    let accepts = async {
                        loop {
                            let peer = accept(&listener).await;
                            let mut peers = peers.borrow_mut();
                            peers.push(peer);
                            // Some die early.
                            if peers.len() > 6 {
                                peers.remove(3);
                            }
                        }
                    };
                    let tasks = (0..40).map(|task| storm_task(&rig, in_use, served, task * 2 + core));
                    tokio::select! {
                        () = accepts => unreachable!("it goes on for ever"),
                        () = join_all(tasks) => {}
                    }
                });
            });
        }
    });
    assert_eq!(served.load(Ordering::Relaxed), 80 * ROUNDS);
    let status = origins.status(0).swap_remove(0);
    assert_eq!((status.queued, status.addresses[0].in_use, in_use.load(Ordering::Relaxed)), (0, 0, 0));
    assert_eq!((status.connections, status.connections), (status.addresses[0].idle, origins.idle_connections()));
}

const ROUNDS: usize = 60;

async fn storm_task(rig: &Rig, in_use: &AtomicUsize, served: &AtomicUsize, seed: usize) {
    let mut random = seed as u64 + 1;
    let mut chance = |of: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % of
    };
    for _ in 0..ROUNDS {
        // Some leave the queue, served or not.
        if chance(3) == 0 {
            let mut leaves = Box::pin(rig.connect());
            for _ in 0..chance(4) {
                if !is_waiting(&mut leaves.as_mut()).await {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        let reuse = if chance(8) == 0 { Reuse::Fresh } else { Reuse::Allowed };
        let connection = rig.connect_to(0, reuse).await.unwrap_or_else(|e| panic!("{e}"));
        assert!(in_use.fetch_add(1, Ordering::SeqCst) < 3, "more in use than allowed");
        for _ in 0..chance(3) {
            tokio::task::yield_now().await;
        }
        in_use.fetch_sub(1, Ordering::SeqCst);
        served.fetch_add(1, Ordering::Relaxed);
        match chance(10) {
            0 => drop(connection),
            _ => rig.give_back(connection),
        }
        rig.sweep();
    }
}

async fn join_all(futures: impl Iterator<Item = impl Future<Output = ()>>) {
    let mut running: Vec<_> = futures.map(Box::pin).collect();
    std::future::poll_fn(|cx| {
        running.retain_mut(|future| future.as_mut().poll(cx).is_pending());
        if running.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await
}
