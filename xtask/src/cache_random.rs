//! `cargo xtask cache-random`: a random origin, random clients, purges, POSTs, a clock that is moved, reloads and kill -9,
//! and every answer held against a plain model of RFC 9111 (`cache_model.rs`): right bytes, right variant, nobody's
//! private bytes, nothing older than a purge, nothing staler than allowed, Age and Cache-Status true.
//!
//! It goes in rounds. Within one, clients ask at once; between two the clock moves, or the process ends or reloads. The
//! seed makes the same questions and answers, but not the same moments.

use std::io::{self, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Child;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use crate::cache_model::{Asked, Given, HEAD_SLACK_MS, Model, Reuse, Said};
use crate::dice::Dice;
use crate::plain_exchange::{Message, Unframed};
use crate::project::{Project, Stopwatch};
use crate::step_tally::Tally;
use crate::{process_signal, seeded_run, started_larder};

const ANSWERS_IN_TESTS: u64 = 3_000;
const ANSWERS: u64 = 100_000;
const PATHS: usize = 8;
const CLIENTS: u64 = 4;
/// Of one client in one round.
const QUESTIONS: u64 = 6;
const KINDS: u64 = 3;
const ADVANCE_MS_MAX: u64 = 6_000;
const PAUSE_MS_MAX: u64 = 6;
/// Now and then the rest of a body takes so long that others come behind its head.
const LATE_MS: u64 = 2 * HEAD_SLACK_MS;
/// Until what was begun in the background is at the origin, and what it answered is here.
const SETTLED: Duration = Duration::from_millis(15);
const PATIENCE: Duration = Duration::from_secs(10);
/// A run that found so much is over.
const WRONG_MAX: usize = 20;

/// What all threads share.
struct Stage {
    model: Mutex<Model>,
    origin_dice: Mutex<Dice>,
    watch: Stopwatch,
    advanced_ms: AtomicU64,
    tokens: AtomicU64,
    checked: AtomicU64,
    unanswered: AtomicU64,
    hits: AtomicU64,
    /// Requests that the origin has not answered yet.
    under_way: AtomicU64,
    wrong: Mutex<Vec<String>>,
    folder: PathBuf,
}

pub fn task(project: &Project, options: &[&str]) -> Result<(), String> {
    seeded_run::task("cache-random", ("--answers", ANSWERS), options, |answers, seed| play(project, answers, seed))
}

/// The short run of the tests.
pub fn run(project: &Project) -> Result<Tally, String> {
    play(project, ANSWERS_IN_TESTS, Dice::drawn())
}

fn play(project: &Project, answers: u64, seed: u64) -> Result<Tally, String> {
    let folder = project.scratch("cache-random")?;
    let _ = std::fs::remove_file(folder.join("store"));
    let mut dice = Dice::of(seed);
    let stage = Arc::new(Stage {
        model: Mutex::new(Model::new(PATHS)),
        origin_dice: Mutex::new(Dice::of(dice.next())),
        watch: Stopwatch::start(),
        advanced_ms: AtomicU64::new(0),
        tokens: AtomicU64::new(0),
        checked: AtomicU64::new(0),
        unanswered: AtomicU64::new(0),
        hits: AtomicU64::new(0),
        under_way: AtomicU64::new(0),
        wrong: Mutex::default(),
        folder: folder.clone(),
    });
    let origin = serve_origin(&stage).map_err(|error| format!("the origin: {error}"))?;
    let mut larder = start(project, &stage, origin, &mut dice)?;
    let (mut kills, mut reloads) = (0, 0);
    while stage.checked.load(SeqCst) < answers && stage.lock_wrong().len() < WRONG_MAX {
        live_a_round(&stage, &mut dice);
        match dice.below(60) {
            0 => {
                kill(larder)?;
                stage.lock().note_killed();
                larder = start(project, &stage, origin, &mut dice)?;
                kills += 1;
            }
            1 => {
                reload(&larder)?;
                reloads += 1;
            }
            2..=30 => stage.advance(dice.below(ADVANCE_MS_MAX)).map_err(|error| format!("the clock: {error}"))?,
            _ => {}
        }
    }
    kill(larder)?;
    let wrong = std::mem::take(&mut *stage.lock_wrong());
    let [checked, hits, unanswered] =
        [&stage.checked, &stage.hits, &stage.unanswered].map(|counter| counter.load(SeqCst));
    let mut remarks = vec![format!(
        "seed {seed}: {checked} answers, {hits} of them hits, {unanswered} questions without an answer, {kills} kills, \
         {reloads} reloads"
    )];
    let tests_nothing = hits * 20 < checked || unanswered * 5 > checked;
    if tests_nothing {
        remarks.push("there were too few hits, or too few answers: nothing was tested".to_string());
    }
    let failed = wrong.len() + usize::from(tests_nothing);
    remarks.extend(wrong);
    let passed = (checked as usize).saturating_sub(failed);
    Ok(Tally { passed, failed, remarks })
}

/// One life. In some the bodies on the disk are sent from there, as soon as they have left memory.
fn start(project: &Project, stage: &Stage, origin: u16, dice: &mut Dice) -> Result<Child, String> {
    let sends_file = dice.below(2) == 0;
    let config = format!(
        "[origin.random]\nurls = [\"http://127.0.0.1:{origin}\"]\n[admin]\ndebug = true\n[memory]\nsize = \"8MiB\"\n\
         [[disk]]\npath = \"store\"\nsize = \"32MiB\"\n\
         [store]\ndisk_sendfile = {sends_file}\ndisk_sendfile_min = \"512B\"\n"
    );
    std::fs::write(stage.folder.join("larder.toml"), config).map_err(|error| format!("larder.toml: {error}"))?;
    let larder = started_larder::start(project, &stage.folder, &["--config", "larder.toml"])?;
    // A new process has the clock of the machine.
    let advanced = stage.move_clock(stage.advanced_ms.load(SeqCst));
    advanced.map_err(|error| format!("the clock: {error}"))?;
    Ok(larder)
}

fn kill(mut larder: Child) -> Result<(), String> {
    larder.kill().and_then(|()| larder.wait()).map(|_| ()).map_err(|error| format!("kill: {error}"))
}

fn reload(larder: &Child) -> Result<(), String> {
    let is_told = process_signal::send("HUP", &larder.id().to_string());
    is_told.then_some(()).ok_or_else(|| "larder could not be told to reload".to_owned())
}

fn live_a_round(stage: &Arc<Stage>, dice: &mut Dice) {
    let clients: Vec<_> = (0..1 + dice.below(CLIENTS))
        .map(|_| {
            let (stage, dice) = (Arc::clone(stage), Dice::of(dice.next()));
            thread::spawn(move || ask_some(&stage, dice))
        })
        .collect();
    clients.into_iter().for_each(|client| drop(client.join()));
}

fn ask_some(stage: &Stage, mut dice: Dice) {
    for _ in 0..1 + dice.below(QUESTIONS) {
        let asked = Asked {
            token: stage.tokens.fetch_add(1, SeqCst) + 1,
            // Few paths are asked for often.
            path: dice.often_small(PATHS as u64) as usize,
            cookie: if dice.below(4) == 0 { 1 + dice.below(2) } else { 0 },
            authorization: if dice.below(10) == 0 { 1 } else { 0 },
            kind: dice.below(KINDS),
            no_cache: dice.below(15) == 0,
        };
        let done = match dice.below(40) {
            0..=1 => stage.purge("PURGE", asked),
            2 => stage.purge("POST", asked),
            3..=5 => stage.ask("HEAD", asked),
            _ => stage.ask("GET", asked),
        };
        if done.is_err() {
            stage.unanswered.fetch_add(1, SeqCst);
        }
    }
}

impl Stage {
    fn lock(&self) -> MutexGuard<'_, Model> {
        self.model.lock().expect("nobody panicked")
    }

    fn lock_wrong(&self) -> MutexGuard<'_, Vec<String>> {
        self.wrong.lock().expect("nobody panicked")
    }

    fn now_ms(&self) -> u64 {
        (self.watch.seconds() * 1_000.0) as u64 + self.advanced_ms.load(SeqCst)
    }

    /// Not while anything is fetched in the background: nobody could say how old that is.
    fn advance(&self, ms: u64) -> io::Result<()> {
        thread::sleep(SETTLED);
        while self.under_way.load(SeqCst) > 0 {
            thread::sleep(SETTLED);
        }
        self.move_clock(ms)?;
        self.advanced_ms.fetch_add(ms, SeqCst);
        Ok(())
    }

    fn move_clock(&self, ms: u64) -> io::Result<()> {
        let mut socket = UnixStream::connect(self.folder.join("a.sock"))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        write!(
            socket,
            "POST /debug/advance?ms={ms} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        )?;
        let answer = Message::read(&mut BufReader::new(socket), Unframed::UntilEnd, true)?;
        match answer {
            Some(answer) if answer.second_word().starts_with('2') => Ok(()),
            _ => Err(io::Error::other("it was not moved")),
        }
    }

    fn exchange(&self, method: &str, asked: Asked) -> io::Result<Message> {
        let mut socket = UnixStream::connect(self.folder.join("l.sock"))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        write!(socket, "{}", question(method, asked))?;
        let answer = Message::read(&mut BufReader::new(socket), Unframed::UntilEnd, method != "HEAD")?;
        answer.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// What is purged, or what an unsafe method has changed, is gone for who asks after the answer.
    fn purge(&self, method: &str, asked: Asked) -> io::Result<()> {
        let sequence = self.lock().next();
        let answer = self.exchange(method, asked)?;
        match (answer.second_word(), method) {
            ("200", "PURGE") => self.lock().note_gone(asked.path, sequence),
            ("200", _) => self.lock().note_changed(asked.path, sequence),
            _ => {}
        }
        Ok(())
    }

    fn ask(&self, method: &str, asked: Asked) -> io::Result<()> {
        let (sequence, gone) = {
            let mut model = self.lock();
            (model.next(), model.gone(asked.path))
        };
        let from_ms = self.now_ms();
        let answer = self.exchange(method, asked)?;
        let cache_status = answer.field("cache-status").unwrap_or_default();
        let number = |text: &str| text.trim().parse::<usize>().ok();
        let body_of = answer.body.split(|&byte| byte == b'\n').next().and_then(|line| std::str::from_utf8(line).ok());
        let given = Given {
            asked,
            sequence,
            from_ms,
            to_ms: self.now_ms(),
            status: answer.second_word().parse().unwrap_or(0),
            confirmed_by: answer.field("x-said").and_then(number),
            body_of: body_of
                .filter(|_| method == "GET" && answer.field("x-said").is_some())
                .map(|line| number(line).unwrap_or(usize::MAX)),
            age_s: answer.field("age").and_then(|text| text.parse().ok()),
            set_cookie: answer.field("set-cookie"),
            own_field: answer.field("x-own").and_then(number),
            cache_status,
        };
        self.checked.fetch_add(1, SeqCst);
        self.hits.fetch_add(u64::from(cache_status.contains("; hit")), SeqCst);
        let model = self.lock();
        let verdict = model.judge(&given, gone);
        let whole = given.body_of.is_none_or(|number| number == usize::MAX || answer.body == body(number));
        let verdict = verdict.and(if whole { Ok(()) } else { Err("its bytes are mixed".to_string()) });
        if let Err(why) = verdict {
            let said = |number: Option<usize>| number.and_then(|number| model.said.get(number));
            let of = format!("{:?} confirmed by {:?}", said(given.body_of), said(given.confirmed_by));
            drop(model);
            self.lock_wrong().push(format!("{why}: {method} {given:?}, {}, of {of}", answer.start));
        }
        Ok(())
    }
}

fn question(method: &str, asked: Asked) -> String {
    let mut text = format!("{method} /p/{} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n", asked.path);
    let mut field = |name: &str, value: u64| text.push_str(&format!("{name}: {value}\r\n"));
    field("X-Token", asked.token);
    field("X-Kind", asked.kind);
    if asked.cookie > 0 {
        field("Cookie", asked.cookie);
    }
    if asked.authorization > 0 {
        field("Authorization", asked.authorization);
    }
    if asked.no_cache {
        text.push_str("Cache-Control: no-cache\r\n");
    }
    if method == "POST" {
        text.push_str("Content-Length: 0\r\n");
    }
    text + "\r\n"
}

/// The bytes of a response with content.
fn body(number: usize) -> Vec<u8> {
    let mut dice = Dice::of(number as u64);
    let length = if dice.below(10) == 0 { dice.below(90_000) } else { dice.below(2_000) };
    let noise = (0..length).map(|_| b'a' + dice.below(26) as u8);
    format!("{number}\n").into_bytes().into_iter().chain(noise).collect()
}

fn serve_origin(stage: &Arc<Stage>) -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    let stage = Arc::clone(stage);
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let stage = Arc::clone(&stage);
            // Whoever hangs up has what it wanted.
            thread::spawn(move || drop(answer_all(socket, &stage)));
        }
    });
    Ok(port)
}

/// One request at the origin, counted while it lives.
struct UnderWay<'a>(&'a AtomicU64);

impl UnderWay<'_> {
    fn begun(count: &AtomicU64) -> UnderWay<'_> {
        count.fetch_add(1, SeqCst);
        UnderWay(count)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// What the origin has decided about one request.
struct Plan {
    number: usize,
    said: Said,
    is_confirmed: bool,
    pause_ms: [u64; 2],
}

fn answer_all(mut socket: TcpStream, stage: &Stage) -> io::Result<()> {
    let mut from = BufReader::new(socket.try_clone()?);
    while let Some(request) = Message::read(&mut from, Unframed::Empty, true)? {
        let _under_way = UnderWay::begun(&stage.under_way);
        let method = request.start.split(' ').next().unwrap_or_default().to_string();
        let Some(plan) = decide(stage, &request, &method)? else { return Ok(()) };
        thread::sleep(Duration::from_millis(plan.pause_ms[0]));
        let content = body(plan.number);
        let mut head = head_of(&plan);
        if !plan.is_confirmed {
            head.push_str(&format!("Content-Length: {}\r\n", content.len()));
        }
        stage.lock().said[plan.number].head_at_ms = stage.now_ms();
        socket.write_all(format!("{head}\r\n").as_bytes())?;
        if plan.is_confirmed || method == "HEAD" {
            continue;
        }
        let (first, rest) = content.split_at(content.len() / 2);
        socket.write_all(first)?;
        thread::sleep(Duration::from_millis(plan.pause_ms[1]));
        socket.write_all(rest)?;
    }
    Ok(())
}

/// `None`: it fails.
fn decide(stage: &Stage, request: &Message, method: &str) -> io::Result<Option<Plan>> {
    let number = |name: &str| request.field(name).and_then(|text| text.parse().ok());
    let path: usize = request.second_word().trim_start_matches("/p/").parse().map_err(io::Error::other)?;
    let asked = Asked {
        token: number("x-token").unwrap_or(0),
        path,
        cookie: number("cookie").unwrap_or(0),
        authorization: number("authorization").unwrap_or(0),
        kind: number("x-kind").unwrap_or(0),
        no_cache: false,
    };
    let mut dice = stage.origin_dice.lock().expect("nobody panicked");
    let mut model = stage.lock();
    model.note_reached(asked.token);
    if method == "GET" && dice.below(25) == 0 {
        model.note_failed(path, stage.now_ms());
        return Ok(None);
    }
    // A representation changes now and then, and is the same for whoever asks: the tag says nothing of who that is.
    let at_ms = stage.now_ms();
    let version = model.version(path, method == "POST" || dice.below(12) == 0);
    let said = Said {
        asked,
        sequence: model.next(),
        at_ms,
        head_at_ms: u64::MAX - HEAD_SLACK_MS,
        age_s: if dice.below(8) == 0 { dice.below(5) } else { 0 },
        reuse: Reuse::drawn(&mut dice),
        varies: dice.below(3) == 0,
        sets_cookie: dice.below(8) == 0,
        version,
    };
    let tag = format!("\"{version}\"");
    let is_confirmed = method == "GET" && request.field("if-none-match") == Some(tag.as_str());
    let pause = |dice: &mut Dice| if dice.below(3) == 0 { dice.below(PAUSE_MS_MAX) } else { 0 };
    let late = if dice.below(40) == 0 { LATE_MS } else { 0 };
    let pause_ms = [pause(&mut dice), pause(&mut dice) + late];
    model.said.push(said);
    Ok(Some(Plan { number: model.said.len() - 1, said, is_confirmed, pause_ms }))
}

fn head_of(plan: &Plan) -> String {
    let Plan { number, said, is_confirmed, .. } = plan;
    let status = if *is_confirmed { "304 Not Modified" } else { "200 OK" };
    let mut head =
        format!("HTTP/1.1 {status}\r\nX-Said: {number}\r\nX-Own: {number}\r\nETag: \"{}\"\r\n", said.version);
    // A 304 that says nothing of Cache-Control would retain what was said before.
    head.push_str(&format!(
        "Cache-Control: {}\r\n",
        if said.reuse.text.is_empty() { "x-none" } else { said.reuse.text }
    ));
    if said.age_s > 0 {
        head.push_str(&format!("Age: {}\r\n", said.age_s));
    }
    if said.varies {
        head.push_str("Vary: X-Kind\r\n");
    }
    if said.sets_cookie {
        head.push_str(&format!("Set-Cookie: mine={number}\r\n"));
    }
    head
}
