//! A worker: the thread that runs one core, from its first connection to its last.
//!
//! Started by `service`, told what to do through its mailbox. It knows no request; `http1_serving` does.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::accepted::Listener;
use crate::clock::{Clock, deadline_now_ms};
use crate::core::{Core, Shared};
use crate::http1_serving;
use crate::limits::FILE_THREADS_MAX;
use crate::listener;
use crate::mailbox::Message;
use crate::slots::CloseReason;
use crate::traces::export_queue::ExportSignal;
use crate::vital::Vital;

/// How often deadlines are looked at, dead objects dropped, and the log handed over.
pub(crate) const TICK: Duration = Duration::from_millis(250);
/// What purges of tags have marked and left in its place, a tick: two milliseconds of one core. Orders of the admin address see to theirs.
const PURGED_PER_TICK_MAX: usize = 500;
/// Stored responses that are looked at for whether their time is over, a tick.
const REAPED_PER_TICK_MAX: usize = 1_000;
/// What connections have, once they were told to end.
const LAST_WORDS_MS: u64 = 1_000;

/// A core's thread, from its first connection to its last.
pub(crate) fn run(index: usize, shared: Arc<Shared>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .event_interval(256)
        .global_queue_interval(64)
        .max_blocking_threads(FILE_THREADS_MAX)
        .build_local(Default::default())
        .unwrap_or_else(|error| panic!("core {index} has no runtime: {error}"));
    runtime.block_on(async {
        let core = Rc::new(Core::new(index, shared));
        tokio::task::spawn_local(tick(Rc::clone(&core)));
        obey(&core).await;
        core.flush_log();
    });
    // Fetches that nobody waits for any longer end here.
    runtime.shutdown_background();
}

/// Does what the mailbox says until a drain is over.
async fn obey(core: &Rc<Core>) {
    let mailboxes = Arc::clone(&core.shared.mailboxes);
    loop {
        let drained = async {
            let busy = || core.listeners_open.get() + core.shared.loads[core.index].load(Ordering::Relaxed) > 0;
            let out_of_time = || deadline_now_ms() > core.hard_end_ms.get();
            while !core.draining() || (busy() && !out_of_time()) {
                tokio::time::sleep(TICK / 10).await;
            }
        };
        let messages = tokio::select! {
            messages = mailboxes[core.index].receive() => messages,
            () = drained, if core.draining() => return,
        };
        for message in messages {
            match message {
                Message::Connection(accepted) => http1_serving::spawn(core, accepted),
                Message::Flight(flight) => flight.wake_core(core.index),
                Message::CutStalled(bytes) => {
                    core.cut_stalled(bytes, Duration::ZERO);
                    core.shared.memory.note_asked();
                }
                Message::Open(listener) => open(core, *listener),
                Message::Reloaded => {
                    *core.site.borrow_mut() = core.shared.site.load_full();
                    core.listeners.send_replace(());
                }
                Message::Pulse(question) => core.shared.pulse.answer(core.index, question),
                Message::Drain(grace) => drain(core, grace),
                Message::DrainNow => end_now(core),
            }
        }
    }
}

fn open(core: &Rc<Core>, listener: Listener) {
    let core = Rc::clone(core);
    core.listeners_open.set(core.listeners_open.get() + 1);
    tokio::task::spawn_local(async move {
        let _vital = Vital::part("what accepts connections");
        listener::run(Rc::clone(&core), listener).await;
        core.listeners_open.set(core.listeners_open.get() - 1);
    });
}

/// A second time it may only be over sooner.
fn drain(core: &Rc<Core>, grace: Duration) {
    if !core.draining.replace(true) {
        core.listeners.send_replace(());
        core.slots.drain(CloseReason::Drain);
    }
    let core = Rc::clone(core);
    tokio::task::spawn_local(async move {
        tokio::time::sleep(grace).await;
        end_now(&core);
    });
}

/// Tells every connection to end, and ends without those that do not.
fn end_now(core: &Core) {
    core.hard_end_ms.set(deadline_now_ms() + LAST_WORDS_MS);
    core.slots.drain(CloseReason::Now);
}

/// What is done a few times a second rather than per request.
async fn tick(core: Rc<Core>) {
    let _vital = Vital::part("what looks after a core");
    let mut interval = tokio::time::interval(TICK);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        core.clock.set(Clock::read());
        let census = core.slots.sweep(deadline_now_ms());
        let gauges = &core.counters;
        gauges.connections_waiting.set(census.waiting);
        gauges.connections_reading.set(census.reading);
        gauges.connections_writing.set(census.writing);
        gauges.connections_active.set(core.shared.loads[core.index].load(Ordering::Relaxed) as u64);
        core.hot.borrow_mut().sweep();
        core.http2_blocks.borrow_mut().sweep();
        core.bound_stalled();
        if core.index == 0 {
            gauges.event_readers.set(core.shared.event_readers.count());
            note_exports(&core);
            core.shared.hit_history.note(core.shared.counters.iter().map(|core| &**core), deadline_now_ms());
            core.shared.cache.note_time(core.now());
            core.shared.cache.take_out_purged(PURGED_PER_TICK_MAX);
            if core.site_ref().program.is_some() {
                core.shared.cache.reap(core.now(), REAPED_PER_TICK_MAX);
            }
        }
        core.flush_log();
        sweep_origins(&core);
        core.memcached_lanes.borrow_mut().sweep(core.now().mono_ms);
    }
}

/// What became of spans and log records is known to who exports them, and shown with what cores count.
fn note_exports(core: &Core) {
    let counters = &core.counters;
    let spans = core.shared.export_queue.counts(ExportSignal::Spans);
    counters.spans_sent.set(spans.records_sent);
    counters.spans_failed.set(spans.records_failed);
    counters.span_batches_sent.set(spans.batches_sent);
    counters.span_batches_failed.set(spans.batches_failed);
    let logs = core.shared.export_queue.counts(ExportSignal::Logs);
    counters.log_records_sent.set(logs.records_sent);
    counters.log_records_failed.set(logs.records_failed);
    counters.log_batches_sent.set(logs.batches_sent);
    counters.log_batches_failed.set(logs.batches_failed);
}

/// Those of the configuration, and the backends of every loaded program.
fn sweep_origins(core: &Core) {
    let (site, now_ms) = (core.site(), core.now().mono_ms);
    site.origins.sweep(core.index, now_ms);
    site.forward.sweep(core.index, now_ms);
    site.fleet.iter().for_each(|fleet| fleet.sweep(core.index, now_ms));
    let shelf = &core.shared.shelf;
    for vcl in &**shelf.programs() {
        vcl.sweep(core.index, now_ms);
    }
    if core.index == 0 {
        let cooldown_ms = site.settings.vcl.vcl_cooldown.as_millis().try_into().unwrap_or(u64::MAX);
        shelf.cool(site.program.as_ref(), deadline_now_ms(), cooldown_ms);
    }
}
