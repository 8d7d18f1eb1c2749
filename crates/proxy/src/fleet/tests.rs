//! Who owns what, over nodes that are never connected to.

use std::sync::atomic::Ordering;

use message::{Authority, FieldsView, Method, Request, Scheme, TargetForm, Version};

use super::fleet_secret::FleetSecret;
use super::machine_address::OwnAddress;
use super::node_draws::NodeDraws;
use super::*;
use crate::limits::FLEET_LOAD_ALWAYS;
use crate::origin::tests::{origin, settings};
use crate::origin::{AddressChange, AddressOrder};
use crate::settings::{BalanceKind, HashKey, OriginUrl, UrlShare};

const KEYS: u64 = 20_000;

/// Nodes at 192.0.2.N with these weights; this one is `own`.
fn fleet(nodes: &[(u8, u32)], own: u8, secret: &[u8]) -> Fleet {
    let url = |(node, _): &(u8, u32)| OriginUrl::Tcp { host: format!("192.0.2.{node}"), port: 80 };
    let secret = FleetSecret::new(secret);
    let mut of_nodes = origin("fleet", nodes.iter().map(url).collect());
    of_nodes.balance.kind = BalanceKind::Hash(HashKey::Stored(secret.digest_key()));
    of_nodes.balance.shares = nodes.iter().map(|(_, weight)| UrlShare { weight: *weight, is_backup: false }).collect();
    of_nodes.balance.breaks_circuit = true;
    let own = OwnAddress::At(([192, 0, 2, own], 80).into());
    let settings_of_fleet = FleetSettings { nodes: of_nodes, secret, own, load_max_permille: 1_250 };
    Fleet::new(&Arc::new(settings_of_fleet), &Origins::new(&settings(Vec::new()), None), None)
}

fn three(own: u8) -> Fleet {
    fleet(&[(1, 1), (2, 1), (3, 1)], own, b"one secret for all")
}

fn owner_label(fleet: &Fleet, key: u64) -> Option<String> {
    fleet.owner(key, 0, &[], &CoreCounters::default()).map(|owner| owner.address.label.to_string())
}

fn key(fleet: &Fleet, scheme: Scheme, host: &str, target: &str) -> u64 {
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    fleet.key_of(&Request {
        method: Method::Get,
        method_text: b"GET",
        version: Version::Http11,
        form: TargetForm::Origin,
        scheme,
        authority: Authority::parse(host.as_bytes(), scheme).unwrap(),
        path: path.as_bytes(),
        query: query.map(str::as_bytes),
        fields: FieldsView::default(),
    })
}

#[test]
fn all_nodes_agree_upon_one_owner_which_asks_the_origin() {
    let nodes = [three(1), three(2), three(3), three(9)];
    let mut owned = [0; 3];
    for n in 0..KEYS {
        let key = key(&nodes[0], Scheme::Http, "a.test", &format!("/{n}"));
        let owners: Vec<_> = nodes.iter().map(|node| owner_label(node, key)).collect();
        // Who is in nobody's list owns nothing.
        let owner = owners[3].clone().unwrap();
        for (at, known) in owners[..3].iter().enumerate() {
            match known {
                None => assert_eq!(owner, format!("192.0.2.{}:80", at + 1)),
                Some(other) => assert_eq!(*other, owner),
            }
        }
        owned[owners[..3].iter().position(Option::is_none).unwrap()] += 1;
    }
    assert!(owned.iter().all(|count| (6_300..7_050).contains(count)), "{owned:?}");
}

#[test]
fn who_computes_a_fleet_draws_as_its_nodes_do() {
    let fleet = fleet(&[(1, 1), (2, 3), (3, 1)], 9, b"one secret for all");
    let labels = ["192.0.2.1:80", "192.0.2.2:80", "192.0.2.3:80"];
    let draws = NodeDraws::new(labels.into_iter().zip([1, 3, 1]));
    for n in 0..KEYS {
        let key = NodeDraws::key_of(&n.to_le_bytes());
        assert_eq!(draws.owner(key).map(|at| labels[at]), owner_label(&fleet, key).as_deref());
    }
    assert_eq!(NodeDraws::new([("192.0.2.1:80", 0)]).owner(1), None);
}

#[test]
fn a_node_that_joins_moves_its_share_and_nothing_else_moves() {
    let (before, after) = (three(9), fleet(&[(1, 1), (2, 1), (3, 1), (4, 1)], 9, b"one secret for all"));
    let mut moved = 0;
    for n in 0..KEYS {
        let key = key(&before, Scheme::Http, "a.test", &format!("/{n}"));
        let (old, new) = (owner_label(&before, key), owner_label(&after, key));
        if old != new {
            assert_eq!(new.as_deref(), Some("192.0.2.4:80"));
            moved += 1;
        }
    }
    assert!((4_700..5_300).contains(&moved), "{moved} of {KEYS} moved to the fourth");
}

#[test]
fn a_heavier_node_owns_more() {
    let fleet = fleet(&[(1, 1), (2, 3)], 9, b"one secret for all");
    let of_second = (0..KEYS).filter(|n| owner_label(&fleet, n * 7_919).as_deref() == Some("192.0.2.2:80")).count();
    assert!((14_600..15_400).contains(&of_second), "{of_second}");
}

#[test]
fn who_owns_what_depends_on_the_secret_and_on_all_of_the_url() {
    let (one, other) = (three(9), fleet(&[(1, 1), (2, 1), (3, 1)], 9, b"another secret"));
    let of = |fleet: &Fleet, target: &str| key(fleet, Scheme::Http, "a.test", target);
    assert_eq!(of(&one, "/a"), of(&three(1), "/a"), "in every process");
    assert_ne!(of(&one, "/a"), of(&other, "/a"));
    let others = [of(&one, "/b"), of(&one, "/a?"), of(&one, "/a?b"), key(&one, Scheme::Http, "b.test", "/a")];
    let https = key(&one, Scheme::Https, "a.test", "/a");
    assert!(others.iter().chain([&https]).all(|key| *key != of(&one, "/a")));
    // Where one part ends and the next begins counts.
    assert_ne!(key(&one, Scheme::Http, "a.test", "/a?b=c"), key(&one, Scheme::Http, "a.test", "/ab?=c"));
}

#[test]
fn a_node_that_is_out_is_passed_over_and_its_keys_go_to_all_others() {
    let (fleet, counters) = (three(3), CoreCounters::default());
    let key = (0..).find(|key| owner_label(&fleet, *key).as_deref() == Some("192.0.2.1:80")).unwrap();
    let down = AddressChange { order: Some(AddressOrder::Down), weight: None };
    fleet.origins.order("fleet", Some("192.0.2.1:80"), down, 0).unwrap();
    assert!(fleet.owner(key, 0, &[], &counters).is_none_or(|owner| &*owner.address.label == "192.0.2.2:80"));
    assert_eq!(counters.fleet_owners_down.get(), 1);
    fleet.origins.order("fleet", Some("192.0.2.2:80"), down, 0).unwrap();
    assert!((0..100).all(|key| owner_label(&fleet, key).is_none()), "who is left asks the origin");
    let nobody = three(9);
    nobody.origins.order("fleet", None, down, 0).unwrap();
    assert!((0..100).all(|key| owner_label(&nobody, key).is_none()), "nobody who is out is asked");
}

#[test]
fn who_works_on_more_than_its_share_is_passed_over_once_that_is_much() {
    let (fleet, counters) = (three(9), CoreCounters::default());
    let owner = |key| fleet.owner(key, 0, &[], &counters).unwrap();
    let first = owner(1).address;
    let set = |load: u64| first.in_use.store(load as u32, Ordering::Relaxed);
    set(FLEET_LOAD_ALWAYS - 1);
    assert!(Arc::ptr_eq(&owner(1).address, &first), "a few are never too many");
    set(FLEET_LOAD_ALWAYS);
    let next = owner(1);
    assert!(!Arc::ptr_eq(&next.address, &first) && next.avoid.iter().any(|it| Arc::ptr_eq(it, &first)));
    assert_eq!(counters.fleet_owners_loaded.get(), 1);
    // Its share: 1.25 times a third of all that are under way.
    let own: Vec<OwnFetch> = (0..2 * FLEET_LOAD_ALWAYS).map(|_| fleet.begin_own()).collect();
    assert!(Arc::ptr_eq(&owner(1).address, &first));
    drop(own);
    assert!(!Arc::ptr_eq(&owner(1).address, &first));
}

#[test]
fn in_the_place_of_who_failed_the_next_is_asked_and_never_this_node() {
    let fleet = three(3);
    let key = (0..).find(|key| owner_label(&fleet, *key).as_deref() == Some("192.0.2.1:80")).unwrap();
    let counters = CoreCounters::default();
    let first = fleet.owner(key, 0, &[], &counters).unwrap();
    assert!(first.avoid.iter().any(|it| &*it.label == "192.0.2.3:80"));
    let next = fleet.owner(key, 0, &[first.address], &counters);
    assert!(next.is_none_or(|owner| &*owner.address.label == "192.0.2.2:80"));
}
