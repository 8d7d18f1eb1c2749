//! The position on disk, beside what is stored there: what was stored before a restart is served after it as if there had been none.
//!
//! It is written down only once the disks have what was applied. Written too rarely it makes a node apply orders twice, which costs hits; it is
//! never ahead of what the disks know.

use std::path::Path;
use std::sync::Arc;

use crate::limits::SAVED_EVERY;
use crate::node::Node;
use crate::position::KeptPosition;
use crate::shared_state::{Shared, State};

/// What is kept; `None` where there is nothing, or nothing that can be read.
pub fn read(file: &Path) -> Kept {
    let text = std::fs::read_to_string(file);
    match text.ok().as_deref().map(KeptPosition::of) {
        Some(Some(kept)) => Kept::Position(kept),
        Some(None) => Kept::Unknown("the file of the position cannot be read"),
        None => Kept::Unknown("there is no position from before this start"),
    }
}

/// What is known of the run before this one.
#[derive(Default)]
pub enum Kept {
    /// Nothing outlived it.
    #[default]
    Nothing,
    Position(KeptPosition),
    /// Something may have, and how much of the log it had heard nobody knows.
    Unknown(&'static str),
}

/// Where a node begins.
pub fn begin(kept: Kept, node: &dyn Node) -> State {
    match kept {
        Kept::Nothing => State::default(),
        Kept::Position(kept) => {
            node.condemned(kept.condemned);
            State::at(kept)
        }
        Kept::Unknown(why) => {
            let condemned = node.condemn();
            node.say(&format!("what lies on the disks is asked for at the origin before it is served again: {why}"));
            State::at_the_end(condemned)
        }
    }
}

/// Writes it down every second in which it has changed, until the process ends.
pub async fn save_often(shared: Arc<Shared>) {
    let Some(file) = shared.settings.position_file.clone() else { return };
    let mut saved = None;
    loop {
        tokio::time::sleep(SAVED_EVERY).await;
        let now = shared.kept_position();
        if !shared.state.lock().has_joined || saved.as_ref() == Some(&now) {
            continue;
        }
        let (saving, file, text) = (Arc::clone(&shared), file.clone(), now.text());
        let done = tokio::task::spawn_blocking(move || save(&saving, &file, &text)).await;
        if let Ok(Ok(())) = done {
            saved = Some(now);
        }
    }
}

/// Writes it down as it stands; for the end, when nothing is carried out any more. What is not written is heard twice.
pub fn save_last(shared: &Shared) {
    let Some(file) = shared.settings.position_file.as_deref() else { return };
    if shared.state.lock().has_joined {
        let _ = save(shared, file, &shared.kept_position().text());
    }
}

fn save(shared: &Shared, file: &Path, text: &str) -> Result<(), String> {
    // Held until it is written: whoever follows reads what was written last.
    let is_followed = shared.is_followed.lock();
    if *is_followed {
        return Ok(());
    }
    shared.node.settle()?;
    let beside = file.with_extension("new");
    std::fs::write(&beside, text).and_then(|()| std::fs::rename(&beside, file)).map_err(|why| why.to_string())
}

impl Shared {
    pub fn kept_position(&self) -> KeptPosition {
        let state = self.state.lock();
        KeptPosition { position: state.position.clone(), condemned: state.condemned }
    }
}
