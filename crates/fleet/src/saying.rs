//! The task that says words: who this node is, what it has applied, and by that how far the log goes. Between words it puts into the log what
//! waits for that.
//!
//! One task does both, so that what a word tells of the end of the log is never older than what this node knows to be there.

use std::sync::Arc;

use tokio::time::Instant;

use crate::limits::{BACKLOG_AT_ONCE, BACKLOG_BYTES_AT_ONCE, PAUSE_MAX, PAUSE_MIN};
use crate::redis_log::{NewOrder, Speaker};
use crate::shared_state::Shared;

/// Says words until the node ends; what waits then goes before the last one, which is good-bye.
pub async fn say_words(shared: Arc<Shared>) {
    let mut ending = shared.ends.subscribe();
    let (mut pause, mut due) = (PAUSE_MIN, Instant::now());
    while !*ending.borrow() {
        match speak(&shared, &mut due).await {
            Ok(()) => pause = PAUSE_MIN,
            Err(why) => {
                shared.note_trouble(why);
                pause = (pause * 2).min(PAUSE_MAX);
                due = Instant::now() + pause.min(shared.word_pause());
            }
        }
        let is_usable = pause == PAUSE_MIN;
        if is_usable && !shared.state.lock().backlog.is_empty() {
            continue;
        }
        tokio::select! {
            () = tokio::time::sleep_until(due) => {}
            () = shared.says_now.notified() => due = Instant::now(),
            () = shared.has_backlog.notified(), if is_usable => {}
            _ = ending.changed() => {}
        }
    }
    // Who does not hear it waits for the lease; what does not get there is lost with this process.
    while !shared.state.lock().backlog.is_empty() && send_backlog(&shared).await.is_ok() {}
    let _ = say_one(&shared, true).await;
}

/// A word, if it is time for one, and some of what waits.
async fn speak(shared: &Arc<Shared>, due: &mut Instant) -> Result<(), String> {
    if Instant::now() >= *due {
        say_one(shared, false).await?;
        *due = Instant::now() + shared.word_pause();
    }
    send_backlog(shared).await
}

async fn say_one(shared: &Arc<Shared>, is_leaving: bool) -> Result<(), String> {
    let mut speaker = speaker(shared).await?;
    // The lease counts from before the question.
    let asked_ms = shared.node.now_ms();
    let word = shared.word(is_leaving);
    // Before the end is asked for: what is trimmed away meanwhile is missing in its place.
    let oldest = if shared.wants_replay() { speaker.oldest().await? } else { None };
    let end = speaker.say(&word, &shared.token()).await?;
    if !is_leaving {
        shared.heard_end(asked_ms, &word.applied, end, oldest.as_ref());
    }
    Ok(())
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

/// What was carried out here alone goes into the log: the next of it.
async fn send_backlog(shared: &Arc<Shared>) -> Result<(), String> {
    let orders = shared.state.lock().backlog.send(BACKLOG_AT_ONCE, BACKLOG_BYTES_AT_ONCE);
    let Some(first) = orders.first() else { return Ok(()) };
    let new: Vec<NewOrder<'_>> = orders
        .iter()
        .map(|order| NewOrder { kind: order.kind, text: &order.text, token: &order.token, is_waited_for: false })
        .collect();
    let appended = match speaker(shared).await {
        Ok(mut speaker) => speaker.append(&new, &first.token).await,
        Err(why) => Err(why),
    };
    // After an error they may be there: twice does no harm.
    shared.state.lock().backlog.sent(appended.is_ok());
    appended.map(drop)
}
