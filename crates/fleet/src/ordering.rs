//! An order of this node: carried out here, put into the log, waited for.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::limits::{BACKLOG_BYTES_MAX, BACKLOG_MAX, CONFIRMED_WITHIN_MAX, OWN_ORDER_WAIT};
use crate::order::{Acknowledge, ORDER_KIND, Ordered};
use crate::redis_log::{Appended, NewOrder};
use crate::roll::{LoggedOrder, Waiting};
use crate::saying::speaker;
use crate::shared_state::Shared;

/// An order, and who is to be told.
pub struct OrderGiven {
    pub text: String,
    pub acknowledge: Acknowledge,
    pub tell: oneshot::Sender<Ordered>,
}

pub async fn take_orders(shared: Arc<Shared>, mut given: mpsc::Receiver<OrderGiven>) {
    while let Some(OrderGiven { text, acknowledge, tell }) = given.recv().await {
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let ordered = shared.carry_out(text, acknowledge).await;
            shared.note_outcome(acknowledge, &ordered);
            // Who ordered it may have left; it is done all the same.
            let _ = tell.send(ordered);
        });
    }
}

impl Shared {
    async fn carry_out(self: &Arc<Self>, text: String, acknowledge: Acknowledge) -> Ordered {
        let token = self.token();
        if acknowledge == Acknowledge::Local {
            return self.here_first(text, token, None).await;
        }
        let (tell, told) = oneshot::channel();
        self.state.lock().own.insert(token.clone(), tell);
        let appended = self.append(&text, &token, acknowledge).await;
        let appended = match appended {
            Ok(appended) => appended,
            Err(why) => {
                self.state.lock().own.remove(&token);
                return self.here_first(text, token, Some(why)).await;
            }
        };
        let logged_ms = self.node.now_ms();
        let told = match tokio::time::timeout(OWN_ORDER_WAIT, told).await {
            Ok(Ok(told)) => told,
            // It is read once the log can be reached again; until then it is in force here all the same.
            _ => {
                self.state.lock().own.remove(&token);
                self.apply_here(text).await
            }
        };
        let number = Some(appended.at.number);
        let logged = Ordered { told, acknowledged: Acknowledge::Logged, number, lapsed: Vec::new(), why_less: None };
        match acknowledge {
            Acknowledge::Applied => self.confirmed(logged, appended, logged_ms).await,
            _ => logged,
        }
    }

    async fn append(self: &Arc<Self>, text: &str, token: &str, acknowledge: Acknowledge) -> Result<Appended, String> {
        let mut speaker = speaker(self).await?;
        let is_waited_for = acknowledge == Acknowledge::Applied;
        let order = NewOrder { kind: ORDER_KIND, text, token, is_waited_for };
        let appended = speaker.append(&[order], token).await;
        if let Err(why) = &appended {
            self.note_trouble(why.clone());
        }
        appended
    }

    /// Carried out here at once; the others hear of it when the log can be reached. `why` it is not in the log, where it should be.
    async fn here_first(self: &Arc<Self>, text: String, token: String, why: Option<String>) -> Ordered {
        // Before it is carried out: nothing that is older comes from an owner from then on.
        let is_kept = self.queue(text.clone(), token);
        let told = self.apply_here(text).await;
        let why_less = match (why, is_kept) {
            (Some(why), true) => Some(format!(
                "it is in force on this node alone, and goes to the others when [fleet] log can be used again: {why}"
            )),
            (why, false) => Some(format!(
                "it is in force on this node alone: {BACKLOG_MAX} orders, or {} MiB of them, wait for [fleet] log already. When it can be used \
                 again the others have all that they hold confirmed by the origin{}",
                BACKLOG_BYTES_MAX >> 20,
                why.map(|why| format!(" ({why})")).unwrap_or_default()
            )),
            (None, true) => None,
        };
        Ordered { told, acknowledged: Acknowledge::Local, number: None, lapsed: Vec::new(), why_less }
    }

    async fn apply_here(self: &Arc<Self>, text: String) -> Result<String, String> {
        let shared = Arc::clone(self);
        let applied = tokio::task::spawn_blocking(move || shared.apply(&text, false)).await;
        applied.unwrap_or_else(|_| Err("carrying out the order has panicked".to_owned()))
    }

    /// Waits until no node can serve what is older any more.
    async fn confirmed(&self, logged: Ordered, appended: Appended, logged_ms: u64) -> Ordered {
        let order = LoggedOrder { at: appended.at, words_to: appended.words_to, logged_ms };
        let last_ms = logged_ms.saturating_add(CONFIRMED_WITHIN_MAX.as_millis() as u64);
        let (own, mut changes) = (self.word(false), self.changed.subscribe());
        loop {
            changes.mark_unchanged();
            let now_ms = self.node.now_ms();
            let waiting = self.state.lock().roll.waiting(&order, &own, now_ms);
            let (nodes, until_ms) = match waiting {
                Waiting::Over { lapsed } => return Ordered { acknowledged: Acknowledge::Applied, lapsed, ..logged },
                Waiting::For { nodes, until_ms } => (nodes, until_ms),
            };
            if now_ms > last_ms {
                return Ordered { why_less: Some(unconfirmed(&nodes)), ..logged };
            }
            let left_ms = until_ms.min(last_ms).saturating_sub(now_ms).max(1);
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(left_ms)) => {}
                _ = changes.changed() => {}
            }
        }
    }

    fn note_outcome(&self, acknowledge: Acknowledge, ordered: &Ordered) {
        let counts = &mut self.state.lock().counts;
        match ordered.acknowledged >= acknowledge {
            true => counts.acknowledged[acknowledge as usize] += 1,
            false => counts.fell_short += 1,
        }
    }
}

fn unconfirmed(nodes: &[String]) -> String {
    let within = CONFIRMED_WITHIN_MAX.as_secs();
    match nodes {
        [] => format!("the words of other nodes could not be read for {within} s"),
        nodes => {
            format!("within {within} s it was not confirmed by {}, and their leases last longer", nodes.join(", "))
        }
    }
}
