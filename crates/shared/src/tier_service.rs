//! The tier as the cache has it: questions and records go to a thread of its own, which talks to the servers.
//!
//! A name has one server, by rendezvous hashing; one that fails has nothing, and nobody takes its place. Whatever goes wrong costs a hit, never a
//! request: a question that is not answered in time is one that found nothing.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use cache::{AskedTier, FetchRight, SecondTier, TierAnswer, TierFigures, TierName, TierRecord, TierServer};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::limits::{
    BURST, LIFE_MAX_S, LOOK_PAUSE_MAX, LOOK_PAUSE_MIN, NOTES_UNDER_WAY_MAX, QUESTIONS_MAX, VALUE_BYTES_MAX,
};
use crate::looked::Looked;
use crate::sealed_record::Sealer;
use crate::tier_bandwidth::Bandwidth;
use crate::tier_server::{Failed, ServerLane, Told, mixed};
use crate::tier_url::TierUrl;

/// What an operator decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TierSettings {
    pub servers: Vec<TierUrl>,
    /// Who may sign the certificates of those that are spoken to over TLS, in PEM; `None`: whom this system trusts.
    pub authorities: Option<Vec<u8>>,
    /// How long a request waits for an answer.
    pub wait_max: Duration,
    /// How long it waits for another node that fetches the same.
    pub fetch_wait_max: Duration,
    /// Of bodies that are kept.
    pub body_bytes_max: u64,
    /// Of records on their way.
    pub queue_bytes_max: usize,
    /// Sent in a second; `None`: as many as there are.
    pub bandwidth: Option<u64>,
}

/// A node's side of the tier. Its thread ends with it.
pub struct TierService {
    shared: Arc<ServiceShared>,
    orders: mpsc::UnboundedSender<TierOrder>,
}

struct ServiceShared {
    settings: TierSettings,
    sealer: Sealer,
    servers: Vec<ServerLane>,
    figures: TierCounts,
    /// Of records on their way.
    queued_bytes: AtomicUsize,
    /// On their way.
    questions: AtomicUsize,
    notes: AtomicUsize,
    bandwidth: Option<Mutex<Bandwidth>>,
    /// Of the next record with pieces.
    stamps: AtomicU64,
    told: Box<Told>,
}

enum TierOrder {
    Ask { name: TierName, wants_right: bool, tell: oneshot::Sender<TierAnswer> },
    Keep { name: TierName, record: TierRecord, expires_s: u64 },
    Forget(TierName),
    GiveBack { name: TierName, token: u64 },
}

impl TierService {
    /// `key` seals what is kept, and `run` is this process and no other one; `told` hears sentences for the operator; `wall_s` is the time in
    /// seconds since 1970.
    pub fn start(
        settings: TierSettings,
        (key, run): (&[u8; 32], u64),
        told: impl Fn(String) + Send + Sync + 'static,
        wall_s: fn() -> u64,
    ) -> Result<Arc<TierService>, String> {
        let authorities = settings.authorities.as_deref();
        let lane = |url| ServerLane::new(url, authorities, run);
        let servers = settings.servers.iter().map(lane).collect::<Result<_, _>>()?;
        let shared = Arc::new(ServiceShared {
            sealer: Sealer::new(key, settings.body_bytes_max),
            servers,
            figures: TierCounts::default(),
            queued_bytes: AtomicUsize::new(0),
            questions: AtomicUsize::new(0),
            notes: AtomicUsize::new(0),
            bandwidth: settings.bandwidth.map(|bytes| Mutex::new(Bandwidth::new(bytes, BURST, Instant::now()))),
            stamps: AtomicU64::new(run),
            told: Box::new(told),
            settings,
        });
        let (orders, taken) = mpsc::unbounded_channel();
        let service = Arc::new(TierService { shared: Arc::clone(&shared), orders });
        start_thread(shared, Arc::downgrade(&service), taken, wall_s)
            .map_err(|why| format!("cannot start the thread of [shared]: {why}"))?;
        Ok(service)
    }

    /// Rights are given back whatever else is on its way.
    fn give_back(&self, name: TierName, token: u64) {
        self.shared.notes.fetch_add(1, Relaxed);
        let _ = self.orders.send(TierOrder::GiveBack { name, token });
    }
}

fn start_thread(
    shared: Arc<ServiceShared>,
    service: std::sync::Weak<TierService>,
    mut taken: mpsc::UnboundedReceiver<TierOrder>,
    wall_s: fn() -> u64,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("larder-shared".to_owned()).spawn(move || {
        runtime.block_on(async move {
            // It ends with the last who could ask.
            while let Some(order) = taken.recv().await {
                let (shared, service) = (Arc::clone(&shared), service.clone());
                tokio::spawn(async move { shared.carry_out(order, &service, wall_s).await });
            }
        });
    })?;
    Ok(())
}

impl ServiceShared {
    async fn carry_out(&self, order: TierOrder, service: &std::sync::Weak<TierService>, wall_s: fn() -> u64) {
        match order {
            TierOrder::Ask { name, wants_right, tell } => {
                // Who asked may have given up.
                if !tell.is_closed() {
                    let answer = self.answer(name, wants_right, service).await;
                    let _ = tell.send(answer);
                }
                self.questions.fetch_sub(1, Relaxed);
            }
            TierOrder::Keep { name, record, expires_s } => {
                let bytes = weight(&record);
                if self.keep(name, &record, expires_s.saturating_sub(wall_s())).await {
                    self.figures.kept.fetch_add(1, Relaxed);
                } else {
                    self.figures.not_kept.fetch_add(1, Relaxed);
                }
                self.queued_bytes.fetch_sub(bytes, Relaxed);
            }
            TierOrder::Forget(name) => {
                let done = self.server(name).delete(&text_of(name), &*self.told).await;
                self.count_failure(done.err());
                self.notes.fetch_sub(1, Relaxed);
            }
            TierOrder::GiveBack { name, token } => {
                let done = self.server(name).give_back(&text_of(name), token, &*self.told).await;
                self.count_failure(done.err());
                self.notes.fetch_sub(1, Relaxed);
            }
        }
    }

    /// The one that weighs most with this name: whoever is added or goes moves no names but its own.
    fn server(&self, name: TierName) -> &ServerLane {
        let at = (name.key >> 64) as u64 ^ name.key as u64 ^ name.variant;
        let heaviest = self.servers.iter().max_by_key(|server| mixed(at ^ server.weight_of));
        heaviest.expect("a tier has a server")
    }

    async fn answer(&self, name: TierName, wants_right: bool, service: &std::sync::Weak<TierService>) -> TierAnswer {
        let key = text_of(name);
        let give_up = Instant::now() + self.settings.fetch_wait_max;
        let (mut pause, mut has_waited) = (LOOK_PAUSE_MIN, false);
        loop {
            let patience = self.settings.wait_max;
            let looked = self.server(name).look(&key, wants_right, patience, &*self.told).await;
            match looked {
                Ok(Looked::Value(value)) => return self.found(name, &key, value).await,
                Ok(Looked::Nothing) => return TierAnswer::Nothing(None),
                Ok(Looked::Right(token)) => {
                    let service = service.clone();
                    let right = FetchRight::new(move || {
                        service.upgrade().iter().for_each(|service| service.give_back(name, token));
                    });
                    return TierAnswer::Nothing(Some(right));
                }
                Ok(Looked::Taken) if Instant::now() < give_up => {
                    if !std::mem::replace(&mut has_waited, true) {
                        self.figures.waited.fetch_add(1, Relaxed);
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LOOK_PAUSE_MAX);
                }
                Ok(Looked::Taken) => return TierAnswer::Nothing(None),
                Err(failed) => {
                    self.count_failure(Some(failed));
                    return TierAnswer::Nothing(None);
                }
            }
        }
    }

    /// What is no record, and what lacks a piece, is nothing.
    async fn found(&self, name: TierName, key: &str, first: Bytes) -> TierAnswer {
        let Some(opening) = self.sealer.opening(&first) else { return self.refuse() };
        let mut values = vec![first];
        for at in 1..opening.pieces {
            let piece = piece_of(key, opening.stamp, at);
            match self.server(name).look(&piece, false, self.settings.wait_max, &*self.told).await {
                Ok(Looked::Value(value)) => values.push(value),
                Ok(_) => return TierAnswer::Nothing(None),
                Err(failed) => {
                    self.count_failure(Some(failed));
                    return TierAnswer::Nothing(None);
                }
            }
        }
        let bytes: usize = values.iter().map(Bytes::len).sum();
        self.figures.bytes_received.fetch_add(bytes as u64, Relaxed);
        match self.sealer.unseal(name, &values) {
            Some(record) => {
                self.figures.found.fetch_add(1, Relaxed);
                TierAnswer::Found(record)
            }
            None => self.refuse(),
        }
    }

    fn refuse(&self) -> TierAnswer {
        if self.figures.refused.fetch_add(1, Relaxed) == 0 {
            let why = "nodes with other secrets, or somebody who writes there: it is asked for at the origin (said once, counted on)";
            (self.told)(format!("warning: [shared] has a record that no node of this fleet wrote as it is: {why}"));
        }
        TierAnswer::Nothing(None)
    }

    /// The first piece last: who finds it finds them all.
    async fn keep(&self, name: TierName, record: &TierRecord, life_s: u64) -> bool {
        if life_s == 0 {
            return false;
        }
        let life_s = life_s.min(LIFE_MAX_S);
        let stamp = self.stamps.fetch_add(1, Relaxed);
        let Some(values) = self.sealer.seal(name, record, stamp) else { return false };
        let bytes: usize = values.iter().map(Bytes::len).sum();
        if self.bandwidth.as_ref().is_some_and(|bandwidth| !bandwidth.lock().takes(bytes as u64, Instant::now())) {
            return false;
        }
        let key = text_of(name);
        for (at, value) in values.iter().enumerate().rev() {
            let place = if at == 0 { key.clone() } else { piece_of(&key, stamp, at) };
            match self.server(name).put(&place, value, life_s, &*self.told).await {
                Ok(true) => {}
                Ok(false) => return false,
                Err(failed) => {
                    self.count_failure(Some(failed));
                    return false;
                }
            }
            self.figures.bytes_sent.fetch_add(value.len() as u64, Relaxed);
        }
        true
    }

    fn count_failure(&self, failed: Option<Failed>) {
        let count = match failed {
            None => return,
            Some(Failed::Alone) => &self.figures.skipped,
            Some(Failed::TimedOut) => &self.figures.timeouts,
            Some(Failed::Broken(_)) => &self.figures.errors,
        };
        count.fetch_add(1, Relaxed);
    }
}

impl SecondTier for TierService {
    fn ask(&self, name: TierName, wants_right: bool) -> AskedTier<'_> {
        Box::pin(async move {
            self.shared.figures.asked.fetch_add(1, Relaxed);
            if self.shared.questions.fetch_add(1, Relaxed) >= QUESTIONS_MAX {
                self.shared.questions.fetch_sub(1, Relaxed);
                self.shared.figures.skipped.fetch_add(1, Relaxed);
                return TierAnswer::Nothing(None);
            }
            let (tell, told) = oneshot::channel();
            if self.orders.send(TierOrder::Ask { name, wants_right, tell }).is_err() {
                return TierAnswer::Nothing(None);
            }
            told.await.unwrap_or(TierAnswer::Nothing(None))
        })
    }

    fn keep(&self, name: TierName, record: TierRecord, expires_s: u64) {
        let bytes = weight(&record);
        let queued = self.shared.queued_bytes.fetch_add(bytes, Relaxed);
        if queued.saturating_add(bytes) > self.shared.settings.queue_bytes_max {
            self.shared.queued_bytes.fetch_sub(bytes, Relaxed);
            self.shared.figures.not_kept.fetch_add(1, Relaxed);
            return;
        }
        let _ = self.orders.send(TierOrder::Keep { name, record, expires_s });
    }

    fn forget(&self, name: TierName) {
        if self.shared.notes.load(Relaxed) < NOTES_UNDER_WAY_MAX {
            self.shared.notes.fetch_add(1, Relaxed);
            let _ = self.orders.send(TierOrder::Forget(name));
        }
    }

    fn body_bytes_max(&self) -> u64 {
        self.shared.settings.body_bytes_max
    }

    fn figures(&self) -> TierFigures {
        self.shared.figures.read()
    }

    fn servers(&self) -> Vec<TierServer> {
        self.shared.servers.iter().map(ServerLane::shown).collect()
    }
}

#[derive(Default)]
struct TierCounts {
    asked: AtomicU64,
    found: AtomicU64,
    waited: AtomicU64,
    timeouts: AtomicU64,
    errors: AtomicU64,
    skipped: AtomicU64,
    refused: AtomicU64,
    kept: AtomicU64,
    not_kept: AtomicU64,
    bytes_received: AtomicU64,
    bytes_sent: AtomicU64,
}

impl TierCounts {
    fn read(&self) -> TierFigures {
        TierFigures {
            asked: self.asked.load(Relaxed),
            found: self.found.load(Relaxed),
            waited: self.waited.load(Relaxed),
            timeouts: self.timeouts.load(Relaxed),
            errors: self.errors.load(Relaxed),
            skipped: self.skipped.load(Relaxed),
            refused: self.refused.load(Relaxed),
            kept: self.kept.load(Relaxed),
            not_kept: self.not_kept.load(Relaxed),
            bytes_received: self.bytes_received.load(Relaxed),
            bytes_sent: self.bytes_sent.load(Relaxed),
        }
    }
}

fn weight(record: &TierRecord) -> usize {
    record.head.len() + record.body.len() as usize
}

fn text_of(name: TierName) -> String {
    format!("larder:{:032x}{:016x}", name.key, name.variant)
}

fn piece_of(key: &str, stamp: u64, at: usize) -> String {
    format!("{key}:{stamp:016x}:{at}")
}

// Names and pieces are keys that memcached takes.
const _: () = assert!("larder:".len() + 32 + 16 + 1 + 16 + 1 + 10 < 250 && VALUE_BYTES_MAX < 1 << 20);
