//! Loading, using, labelling and discarding programs, through the verbs of a running proxy that nobody asks anything.

use std::time::Duration;

use vcl::{Included, NoIncludes, NoWorld};

use super::*;
use crate::origin::tests::settings;
use crate::service::{Proxy, Start};
use crate::vcl_service::VclStatus;

fn program(name: &str, text: &str) -> VclProgram {
    let text = format!("vcl 4.1; {text}").into_bytes();
    let checked = vcl::check(Included { name: format!("{name}.vcl"), bytes: text }, &NoIncludes);
    let program = checked.program.unwrap_or_else(|| panic!("{:?}", checked.diagnostics));
    VclProgram { name: name.to_owned(), program, sources: checked.sources }
}

const ONE: &str = "backend one { .host = \"127.0.0.1\"; }";

/// A proxy with this program, while `test` runs.
fn with_proxy(boot: Option<&str>, test: impl FnOnce(&Proxy)) {
    let mut settings = settings(Vec::new());
    settings.memory_bytes_max = 4 << 20;
    let vcl = boot.map(|text| program("boot", text));
    let start = Start {
        settings,
        workers: 1,
        log: None,
        records: None,
        world: Arc::new(NoWorld),
        program: vcl,
        beneath: cache::Beneath::default(),
        fleet: None,
        memory: None,
    };
    let proxy = Proxy::start(start).unwrap_or_else(|e| panic!("{e}"));
    test(&proxy);
    proxy.drain_now();
    proxy.join();
}

fn load(proxy: &Proxy, name: &str, text: &str) {
    proxy.load_vcl(program(name, text)).unwrap_or_else(|e| panic!("{e}"));
}

/// `name` of each, with `*` for the active one and its labels.
fn shelf(proxy: &Proxy) -> String {
    let show = |vcl: VclStatus| {
        let labels: String = vcl.labels.iter().map(|label| format!("={label}")).collect();
        format!("{}{}{labels}", vcl.name, if vcl.is_active { "*" } else { "" })
    };
    proxy.vcls_status().into_iter().map(show).collect::<Vec<_>>().join(" ")
}

fn check(done: Result<(), VclError>, expect: Result<(), &str>) {
    match (done, expect) {
        (Ok(()), Ok(())) => {}
        (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
        (done, expect) => panic!("{done:?} instead of {expect:?}"),
    }
}

#[test]
fn a_program_is_loaded_used_and_discarded() {
    with_proxy(None, |proxy| {
        assert_eq!(shelf(proxy), "");
        load(proxy, "a", ONE);
        load(proxy, "b", ONE);
        assert_eq!(shelf(proxy), "a b", "loaded is not used");
        check(proxy.use_vcl("a"), Ok(()));
        assert_eq!(shelf(proxy), "a* b");
        check(proxy.discard_vcl("a"), Err("VCL `a` is active: use another one first"));
        check(proxy.use_vcl("b"), Ok(()));
        check(proxy.discard_vcl("a"), Ok(()));
        assert_eq!(shelf(proxy), "b*");
        check(proxy.use_vcl("a"), Err("no VCL `a` is loaded: there are `b`"));
        check(proxy.load_vcl(program("b", ONE)), Err("a VCL `b` is loaded already"));
        for name in ["", "1a", "a b", "ä", &"a".repeat(128)] {
            check(proxy.load_vcl(program(name, ONE)), Err("is no name for a VCL"));
        }
        check(proxy.load_vcl(program("c", "backend c { .host = \"c\"; .via = d; .ssl = 1; } backend d { .host = \"d\"; } sub vcl_recv { set req.backend_hint = d; }")), Err("backend `c`: `.via` leaves TLS"));
        assert_eq!(shelf(proxy), "b*");
    });
}

#[test]
fn what_is_given_at_the_start_decides_from_the_start() {
    with_proxy(Some(ONE), |proxy| assert_eq!(shelf(proxy), "boot*"));
}

#[test]
fn a_label_stands_for_a_program_and_keeps_it() {
    with_proxy(Some(ONE), |proxy| {
        let refers = "sub vcl_recv { return (vcl(shop)); } backend x none;";
        check(proxy.load_vcl(program("top", refers)), Err("there is no such label"));
        load(proxy, "a", ONE);
        check(proxy.label_vcl("shop", "nobody"), Err("no VCL `nobody` is loaded"));
        check(proxy.label_vcl("boot", "a"), Err("is the name of a program"));
        check(proxy.label_vcl("shop", "a"), Ok(()));
        check(proxy.load_vcl(program("shop", ONE)), Err("`shop` is a label"));
        load(proxy, "top", refers);
        assert_eq!(shelf(proxy), "boot* a=shop top");
        check(proxy.discard_vcl("a"), Err("the label `shop` stands for VCL `a`"));
        check(proxy.discard_vcl("shop"), Err("VCL `top` hands requests to the label `shop`"));
        check(proxy.label_vcl("loop", "top"), Err("must not lead to another"));
        let top = Arc::clone(&proxy.shared.shelf.programs()[2]);
        assert_eq!(&*top.labelled("shop").unwrap().name, "a");
        load(proxy, "b", ONE);
        check(proxy.label_vcl("shop", "b"), Ok(()));
        assert_eq!(&*top.labelled("shop").unwrap().name, "b", "also for those who are loaded already");
        drop(top);
        check(proxy.discard_vcl("a"), Ok(()));
        check(proxy.discard_vcl("top"), Ok(()));
        check(proxy.use_vcl("shop"), Ok(()));
        assert_eq!(shelf(proxy), "boot b*=shop");
        check(proxy.discard_vcl("shop"), Ok(()));
        assert_eq!(shelf(proxy), "boot b*");
    });
}

#[test]
fn a_discarded_program_lives_until_the_last_transaction_leaves() {
    with_proxy(Some(ONE), |proxy| {
        let transaction = proxy.shared.site.load_full();
        let program = Arc::downgrade(transaction.program.as_ref().unwrap());
        let under_way = |name: &str| proxy.vcls_status().into_iter().find(|vcl| vcl.name == name).unwrap().under_way;
        let settles_at = |name: &str, count: usize| {
            // Cores take the new site from their mailboxes.
            while under_way(name) != count {
                std::thread::yield_now();
            }
        };
        settles_at("boot", 1);
        let another = Arc::clone(&transaction);
        settles_at("boot", 2);
        load(proxy, "next", ONE);
        check(proxy.use_vcl("next"), Ok(()));
        settles_at("boot", 2);
        settles_at("next", 0);
        check(proxy.discard_vcl("boot"), Ok(()));
        drop(another);
        assert!(program.upgrade().is_some());
        drop(transaction);
        while program.upgrade().is_some() {
            std::thread::yield_now();
        }
    });
}

#[test]
fn a_hundred_reloads_leave_nothing_behind() {
    with_proxy(Some(ONE), |proxy| {
        let mut gone = Vec::new();
        for n in 0..100 {
            let site = proxy.shared.site.load_full();
            gone.push(Arc::downgrade(site.program.as_ref().unwrap()));
            let before = site.program.as_ref().unwrap().name.to_string();
            let name = format!("reload-{n}");
            let settings = site.settings.clone();
            let mut vcl = program(&name, ONE);
            vcl.name = name;
            proxy.reload(settings, Some(vcl)).unwrap();
            check(proxy.discard_vcl(&before), Ok(()));
        }
        assert_eq!(shelf(proxy), "reload-99*");
        while gone.iter().any(|program| program.upgrade().is_some()) {
            std::thread::yield_now();
        }
    });
}

#[test]
fn a_reload_with_a_program_that_cannot_be_loaded_changes_nothing() {
    with_proxy(Some(ONE), |proxy| {
        let mut settings = proxy.shared.site.load().settings.clone();
        settings.server_name = "other".to_owned();
        let error = proxy.reload(settings, Some(program("new", "backend c { .host = \"c\"; .via = d; .ssl = 1; } backend d { .host = \"d\"; } sub vcl_recv { set req.backend_hint = d; }"))).unwrap_err();
        assert!(error.to_string().contains("leaves TLS"), "{error}");
        assert_eq!((shelf(proxy).as_str(), proxy.shared.site.load().settings.server_name.as_str()), ("boot*", ""));
    });
}

#[test]
fn an_operator_says_who_is_healthy() {
    with_proxy(
        Some("backend a { .host = \"a\"; } backend b none; sub vcl_recv { set req.backend_hint = b; }"),
        |proxy| {
            let health = |program: usize| -> Vec<bool> {
                proxy.vcls_status()[program].backends.iter().map(|backend| backend.healthy).collect()
            };
            assert_eq!(health(0), [true, false], "who is not probed is healthy, who is nowhere is not");
            check(proxy.order_backend_health("a", HealthOrder::Sick), Ok(()));
            assert_eq!(health(0), [false, false]);
            load(proxy, "v1.2", ONE);
            check(
                proxy.order_backend_health("one", HealthOrder::Sick),
                Err("there is no backend `one`: write NAME or VCL"),
            );
            check(proxy.order_backend_health("v1.2.one", HealthOrder::Sick), Ok(()));
            assert_eq!(health(1), [false]);
            check(proxy.order_backend_health("boot.a", HealthOrder::Auto), Ok(()));
            assert_eq!(health(0), [true, false]);
            check(proxy.order_backend_health("v1.2.two", HealthOrder::Auto), Err("there is no backend"));
            check(proxy.order_backend_health("v2.one", HealthOrder::Auto), Err("no VCL `v2` is loaded"));
        },
    );
}

#[test]
fn who_is_of_no_use_for_a_while_goes_cold() {
    with_proxy(Some(ONE), |proxy| {
        load(proxy, "idle", ONE);
        load(proxy, "labelled", ONE);
        check(proxy.label_vcl("l", "labelled"), Ok(()));
        let warm = || proxy.vcls_status().iter().map(|vcl| vcl.is_warm).collect::<Vec<_>>();
        assert_eq!(warm(), [true, true, true]);
        let site = proxy.shared.site.load_full();
        let later_ms = deadline_now_ms() + 600_000;
        proxy.shared.shelf.cool(site.program.as_ref(), later_ms, Duration::from_secs(599).as_millis() as u64);
        assert_eq!(warm(), [true, false, true]);
        check(proxy.use_vcl("idle"), Ok(()));
        assert_eq!(warm(), [true, true, true], "warm before it decides");
    });
}
