//! `larder bench memcached://…`: its own flags, and what they come to. What is stored follows by rule from a key's number,
//! so that a run knows what every other one has stored.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use lab::{Catalogue, ErrorKind, Length, Load, MemcachedItems, Order, StatusWanted, Workload};

use crate::load_tool::bench_flags::{BenchFlags, CheckFlag};

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "For memcached:// targets")]
pub struct MemcachedFlags {
    /// How many keys, taken at random [default: 10000]
    #[arg(long, value_name = "N")]
    pub keys: Option<usize>,

    /// Bytes of a key [default: 96]
    #[arg(long, value_name = "N")]
    pub key_bytes: Option<usize>,

    /// Bytes of a value [default: 400]
    #[arg(long, value_name = "N")]
    pub value_bytes: Option<usize>,

    /// The share of requests that are a set; the others are a get [default: 0.1]
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    pub set_share: Option<f64>,

    /// Set every key once before the run
    #[arg(long)]
    pub preload: bool,

    /// Count a get that finds nothing as failed, and not as a miss
    #[arg(long)]
    pub expect_hits: bool,
}

impl MemcachedFlags {
    fn items(&self) -> MemcachedItems {
        MemcachedItems {
            keys: self.keys.unwrap_or(10_000),
            key_bytes: self.key_bytes.unwrap_or(96),
            value_bytes: self.value_bytes.unwrap_or(400),
        }
    }

    /// The first of them that was given.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--keys", self.keys.is_some()),
            ("--key-bytes", self.key_bytes.is_some()),
            ("--value-bytes", self.value_bytes.is_some()),
            ("--set-share", self.set_share.is_some()),
            ("--preload", self.preload),
            ("--expect-hits", self.expect_hits),
        ];
        given.iter().find(|(_, is_given)| *is_given).map(|(name, _)| *name)
    }

    pub fn order(&self) -> Order {
        MemcachedItems::order(self.set_share.unwrap_or(0.1))
    }
}

/// What is asked for; nothing that only HTTP has may have been asked.
pub fn catalogue(flags: &BenchFlags) -> Result<Catalogue, String> {
    let of_http = [
        ("--urls", flags.urls.is_some()),
        ("--replay", flags.replay.is_some()),
        ("--wsesslog", flags.wsesslog.is_some()),
        ("--proxy", flags.proxy.is_some()),
        ("--method", flags.method.is_some()),
        ("--body", flags.body.is_some()),
        ("--header", !flags.fields.is_empty()),
        ("--status", flags.status.is_some()),
        ("--as", flags.tool.is_some()),
    ];
    if let Some((name, _)) = of_http.iter().find(|(_, is_given)| *is_given) {
        return Err(format!("{name} is for http:// targets"));
    }
    flags.memcached.items().catalogue().map_err(|error| error.to_string())
}

pub fn status_wanted(flags: &BenchFlags) -> StatusWanted {
    match (flags.check, flags.memcached.expect_hits) {
        (CheckFlag::None, _) => StatusWanted::Any,
        (_, true) => StatusWanted::NonError,
        (_, false) => StatusWanted::NonErrorOrMiss,
    }
}

/// Sets every key, as fast as the memcached takes them.
pub fn preload(flags: &BenchFlags, workload: &Workload) -> Result<(), String> {
    let items = flags.memcached.items();
    let catalogue = items.preload().map_err(|error| error.to_string())?;
    let length = Length::Requests(items.keys as u64);
    let workload = Workload { load: Load::Closed, length, order: Order::InTurn, ..workload.clone() };
    let workload = Workload { ramp: Default::default(), think: Default::default(), ..workload };
    let stop = Arc::new(AtomicBool::new(false));
    let outcome = lab::run(workload, catalogue, &stop, &mut |_, _| {}).map_err(|error| error.to_string())?;
    if outcome.tally.good == items.keys as u64 {
        return Ok(());
    }
    let first =
        ErrorKind::ALL.iter().map(|kind| (kind, outcome.tally.error(*kind))).find(|(_, record)| record.count > 0);
    let why = first.map_or(String::new(), |(kind, record)| format!("; {}: {}", kind.name(), record.sample));
    Err(format!("--preload: only {} of {} keys were stored{why}", outcome.tally.good, items.keys))
}

fn parse_share(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| "must be 0 to 1".to_owned())
}
