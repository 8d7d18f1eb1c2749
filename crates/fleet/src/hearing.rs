//! The task that listens: orders are carried out in the log's order, words are noted.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use crate::limits::{PAUSE_MAX, PAUSE_MIN};
use crate::order::{LOST_KIND, ORDER_KIND};
use crate::position::Position;
use crate::redis_log::{Batch, Entry, Listener};
use crate::shared_state::Shared;

/// Listens until the process ends.
pub async fn listen(shared: Arc<Shared>) {
    let mut changes = shared.changed.subscribe();
    // Where to read from is known by then.
    let _ = changes.wait_for(|_| shared.state.lock().has_joined).await;
    let mut pause = PAUSE_MIN;
    loop {
        let why = match shared.settings.log.listener().await {
            Ok(listener) => {
                pause = PAUSE_MIN;
                hear_all(&shared, listener).await
            }
            Err(why) => why,
        };
        shared.note_trouble(why);
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Until something goes wrong.
async fn hear_all(shared: &Arc<Shared>, mut listener: Listener) -> String {
    loop {
        let (orders_from, words_from, generation) = {
            let state = shared.state.lock();
            (state.position.id, state.roll.read_to(), state.generation)
        };
        let batch = match listener.read(orders_from, words_from).await {
            Ok(batch) => batch,
            Err(why) => return why,
        };
        let hearing = Arc::clone(shared);
        // Carrying out may take as long as it takes, and words are said meanwhile.
        if tokio::task::spawn_blocking(move || hearing.hear(batch, generation)).await.is_err() {
            return "carrying out an order has panicked".to_owned();
        }
    }
}

impl Shared {
    fn hear(&self, batch: Batch, generation: u64) {
        let now_ms = self.node.now_ms();
        {
            let mut state = self.state.lock();
            if state.generation != generation {
                return;
            }
            batch.words.into_iter().for_each(|(id, word)| state.roll.note(id, word, now_ms));
        }
        let is_waited_for = batch.entries.iter().any(|entry| entry.is_waited_for);
        for entry in batch.entries {
            if !self.hear_order(entry, generation) {
                break;
            }
        }
        if is_waited_for {
            self.says_now.notify_one();
        }
        self.note_change();
    }

    /// Whatever goes wrong with one order, those behind it are carried out.
    pub fn apply(&self, order: &str, was_done: bool) -> Result<String, String> {
        let applied = std::panic::catch_unwind(AssertUnwindSafe(|| self.node.apply(order, was_done)));
        applied.unwrap_or_else(|_| Err("carrying it out has panicked".to_owned()))
    }

    /// `false`: the position was set anew meanwhile.
    fn hear_order(&self, entry: Entry, generation: u64) -> bool {
        let (is_followed, was_done);
        {
            let mut state = self.state.lock();
            if state.generation != generation {
                return false;
            }
            // Who waits for one of this node's has left it to the log.
            was_done = self.is_own(&entry.token) && !state.own.contains_key(&entry.token);
            is_followed = state.position.is_followed_by(&entry.at);
            if !is_followed {
                self.condemn(&mut state, "orders are missing in the log between what was heard and what came next");
            }
        }
        self.node.hear(entry.at.id.packed());
        let done = match entry.kind.as_str() {
            ORDER_KIND => self.apply(&entry.text, was_done),
            LOST_KIND => Err("more was purged at a node than could wait there for the log".to_owned()),
            kind => Err(format!("an order of the kind `{kind}` is not known to this version")),
        };
        let mut state = self.state.lock();
        if state.generation != generation {
            return false;
        }
        if let Err(why) = &done {
            self.condemn(&mut state, &format!("an order could not be carried out: {why}"));
        }
        state.counts.applied += 1;
        let is_foreign = entry.at.epoch.is_empty();
        state.position = match is_foreign {
            true => Position { id: entry.at.id, ..state.position.clone() },
            false => entry.at,
        };
        self.node.reach(state.position.reached(is_followed && done.is_ok()));
        self.keep_pledges(&mut state);
        self.note_in_log(&mut state, &entry.token);
        if let Some(told) = state.own.remove(&entry.token) {
            // Who ordered it may have given up.
            let _ = told.send(done);
        }
        true
    }
}
