//! The task that says words: who this node is, what it has applied, and by that how far the log goes.

use std::sync::Arc;

use crate::limits::{BACKLOG_AT_ONCE, PAUSE_MAX, PAUSE_MIN};
use crate::order::ORDER_KIND;
use crate::redis_log::{NewOrder, Speaker};
use crate::shared_state::Shared;

/// Says words until the node ends; the last one is good-bye.
pub async fn say_words(shared: Arc<Shared>) {
    let mut ending = shared.ends.subscribe();
    let mut pause = PAUSE_MIN;
    while !*ending.borrow() {
        let wait = match say_one(&shared, false).await {
            Ok(()) => {
                pause = PAUSE_MIN;
                shared.word_pause()
            }
            Err(why) => {
                shared.note_trouble(why);
                pause = (pause * 2).min(PAUSE_MAX);
                pause.min(shared.word_pause())
            }
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = shared.says_now.notified() => {}
            _ = ending.changed() => {}
        }
    }
    // Who does not hear it waits for the lease.
    let _ = say_one(&shared, true).await;
}

async fn say_one(shared: &Arc<Shared>, is_leaving: bool) -> Result<(), String> {
    let mut speaker = speaker(shared).await?;
    // The lease counts from before the question.
    let asked_ms = shared.node.now_ms();
    let word = shared.word(is_leaving);
    // Before the end is asked for: what is trimmed away meanwhile is missing in its place.
    let oldest = if shared.wants_replay() { speaker.oldest().await? } else { None };
    let end = speaker.say(&word, &shared.token()).await?;
    if is_leaving {
        return Ok(());
    }
    shared.heard_end(asked_ms, &word.applied, end, oldest.as_ref());
    send_backlog(shared, &mut speaker).await
}

/// The connection that is there, or a new one.
pub async fn speaker(shared: &Arc<Shared>) -> Result<Speaker, String> {
    let there = shared.state.lock().speaker.clone();
    match there {
        Some(speaker) => Ok(speaker),
        None => {
            let speaker = shared.settings.log.speaker().await?;
            shared.state.lock().speaker = Some(speaker.clone());
            Ok(speaker)
        }
    }
}

/// What was carried out here alone goes into the log; the rest of it with the next word.
async fn send_backlog(shared: &Arc<Shared>, speaker: &mut Speaker) -> Result<(), String> {
    for _ in 0..BACKLOG_AT_ONCE {
        let Some(order) = shared.state.lock().backlog.pop_front() else { return Ok(()) };
        let new = NewOrder {
            kind: ORDER_KIND,
            text: &order.text,
            token: &order.token,
            is_waited_for: false,
            epoch_if_none: &order.token,
        };
        if let Err(why) = speaker.append(&new).await {
            // It may be there: twice does no harm.
            shared.state.lock().backlog.push_front(order);
            return Err(why);
        }
    }
    shared.says_now.notify_one();
    Ok(())
}
