//! What a shard director says: why a call cannot be, what it passed over, and, where `debug` asks for it, its circle and its choices.

use std::sync::Mutex;

use vcl::*;

/// Keeps what is said outside of all transactions.
#[derive(Default)]
struct Listening(Mutex<Vec<(LogKind, String)>>);

impl World for Listening {
    fn now_s(&self) -> f64 {
        0.0
    }

    fn addresses(&self, name: &str) -> Result<Vec<std::net::IpAddr>, String> {
        Err(format!("`{name}` is not looked up here"))
    }

    fn log(&self, kind: LogKind, text: &[u8]) {
        self.0.lock().expect("nobody panics with it").push((kind, String::from_utf8_lossy(text).into_owned()));
    }
}

impl Listening {
    fn heard(&self, of: LogKind) -> Vec<String> {
        let all = self.0.lock().expect("nobody panics with it");
        all.iter().filter(|(kind, _)| *kind == of).map(|(_, text)| text.clone()).collect()
    }
}

const HEAD: &str = "vcl 4.1; import blob; import directors; backend dummy none; \
    backend s1 { .host = \"192.0.2.1\"; } backend s2 { .host = \"192.0.2.2\"; } unused s1; unused s2; ";

fn load(init: &str, rest: &str, world: &Listening) -> Result<std::sync::Arc<Loaded>, String> {
    let text =
        format!("{HEAD} sub vcl_init {{ new d = directors.shard(); new p = directors.shard_param(); {init} }} {rest}");
    let checked = vcl::check(Included { name: "t.vcl".to_owned(), bytes: text.into_bytes() }, &NoIncludes);
    let shown: Vec<String> = checked.diagnostics.iter().map(|d| draw(d, &checked.sources, false)).collect();
    let program = checked.program.unwrap_or_else(|| panic!("{}", shown.join("\n")));
    Loaded::load(program, checked.sources, world)
}

#[test]
fn what_cannot_be_is_refused_with_its_reason() {
    let check = |init: &str, expect: &str| {
        let why = load(init, "", &Listening::default()).expect_err(init);
        assert!(why.contains(expect), "{init}: {why}");
    };
    check("d.associate(blob.decode(encoded=\"\"));", "shard .associate param invalid");
    check("p.set(by=KEY);", "vmod_directors: shard p: shard_param.set() missing key argument with by=KEY");
    check("p.set(by=KEY, key=-5);", "invalid key argument -5 with by=KEY");
    check("p.set(by=BLOB);", "missing key_blob argument with by=BLOB");
    check("p.set(by=URL, key=0);", "key and key_blob arguments are invalid with by=URL");
    check("p.set(key=0);", "key and key_blob arguments are invalid with by=HASH");
    check("p.set(alt=-1);", "invalid alt argument -1");
    check("p.set(warmup=-0.5);", "invalid warmup argument -0.5");
    check("p.set(warmup=1.1);", "invalid warmup argument 1.1");
    check("d.add_backend(dummy);", "vmod_directors: shard d: None backend cannot be added");
    check("d.remove_backend();", "shard d: .remove_backend(): either backend or ident are required");
    let into = |backend: &str| format!("new r = directors.round_robin(); r.add_backend(d.backend({backend}));");
    check(&into("resolve=NOW"), ".backend(resolve=NOW) can not be used in vcl_init{}/vcl_fini{}");
    check(
        &into("resolve=LAZY, by=KEY"),
        ".backend(resolve=LAZY) with other parameters can only be used in backend/pipe context",
    );
    // A probe says that nothing is to be believed of it yet.
    let sick = "backend sick { .host = \"192.0.2.3\"; .probe = { .initial = 0; } }";
    let hash = "new h = directors.hash(); h.add_backend(sick, 1.0);
        new r = directors.round_robin(); r.add_backend(h.backend(\"text\"));";
    let why = load(hash, sick, &Listening::default()).expect_err("it is sick");
    assert!(why.contains("None backend cannot be added"), "{why}");
}

#[test]
fn what_is_passed_over_is_said() {
    let world = Listening::default();
    let init = "d.set_warmup(1.0); d.add_backend(s1, weight=0.3); d.add_backend(s1); d.reconfigure(0);
        d.clear(); d.reconfigure(); p.set(by=BLOB, key_blob=blob.decode(HEX, encoded=\"\"));";
    load(init, "", &world).expect("it goes on");
    let said = |what: &str| format!("vmod_directors: shard {what}");
    let notices = [
        said("d: .set_warmup(1.000000) ignored"),
        said("d: .add_backend(weight=0.300000) ignored"),
        said("d: backend s1 already exists - skipping"),
    ];
    assert_eq!(world.heard(LogKind::Notice), notices);
    let mistakes = [
        said("d: .reconfigure() invalid replicas argument 0"),
        said("d: .reconfigure() no backends"),
        said("p: shard_param.set() by=BLOB but no or empty key_blob - using key 0"),
    ];
    assert_eq!(world.heard(LogKind::Mistake), mistakes);
}

#[test]
fn circles_and_choices_are_told_to_who_asks() {
    let world = Listening::default();
    let init = "d.debug(3); d.add_backend(s1); d.add_backend(s2); d.reconfigure(2); d.reconfigure(2);";
    let recv = "sub vcl_recv { set req.backend_hint = d.backend(by=BLOB, key_blob=blob.decode(HEX, encoded=req.url));
        return (pass); }";
    let loaded = load(init, recv, &world).expect("it loads");
    let circle = world.heard(LogKind::Debug);
    // Two points of either, in order, once: the second call changed nothing.
    assert_eq!(circle.len(), 4, "{circle:?}");
    for (at, line) in circle.iter().enumerate() {
        assert!(line.starts_with(&format!("vmod_directors: shard: hashcircle[{at:5}] = {{point = ")), "{line}");
    }
    let arena = Arena::default();
    let url = Plain::Text(Some(b"00000001"));
    let host = MapHost::new(&arena, &world).with_variable(VariableId::REQ_URL, url);
    loaded.recv(&host);
    let choice = world.heard(LogKind::Debug)[4..].to_vec();
    assert!(
        choice.len() == 1 && choice[0].starts_with("vmod_directors: shard: lookup key 1 idx 0 host "),
        "{choice:?}"
    );
    let quiet = Listening::default();
    load(&init.replace("d.debug(3);", ""), "", &quiet).expect("it loads");
    assert!(quiet.heard(LogKind::Debug).is_empty());
}
