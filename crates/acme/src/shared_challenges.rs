//! Challenges of the nodes that share the folder: the authority may come to any of them.

use std::sync::Arc;

use crate::challenge::{Challenge, ChallengeSink};
use crate::state_folder::{ChallengeFolder, StateFolder};

/// Offers here what others have to answer, as long as they do.
pub struct SharedChallenges {
    folder: ChallengeFolder,
    sink: Arc<dyn ChallengeSink + Send + Sync>,
    offered: Vec<Challenge>,
}

impl SharedChallenges {
    pub fn new(folder: &StateFolder, sink: Arc<dyn ChallengeSink + Send + Sync>) -> SharedChallenges {
        SharedChallenges { folder: folder.challenges(), sink, offered: Vec::new() }
    }

    /// Looks at the folder.
    pub fn look(&mut self, now_s: u64) {
        let there = self.folder.list(now_s);
        for gone in self.offered.iter().filter(|offered| !there.contains(offered)) {
            self.sink.withdraw(gone);
        }
        for new in there.iter().filter(|challenge| !self.offered.contains(challenge)) {
            // Who ordered says so where it cannot be answered.
            let _ = self.sink.offer(new);
        }
        self.offered = there;
    }
}

impl Drop for SharedChallenges {
    fn drop(&mut self) {
        self.offered.iter().for_each(|offered| self.sink.withdraw(offered));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::challenge::ChallengeKind;
    use crate::state_folder::tests::Room;

    #[derive(Default)]
    struct Heard(Mutex<Vec<String>>);

    impl ChallengeSink for Heard {
        fn offer(&self, challenge: &Challenge) -> Result<(), String> {
            self.0.lock().unwrap().push(format!("+{}", challenge.token));
            Ok(())
        }

        fn withdraw(&self, challenge: &Challenge) {
            self.0.lock().unwrap().push(format!("-{}", challenge.token));
        }
    }

    #[test]
    fn what_another_node_is_asked_is_answered_here_too() {
        let room = Room::new("shared");
        let heard = Arc::new(Heard::default());
        let mut shared = SharedChallenges::new(&room.folder(), Arc::clone(&heard) as Arc<_>);
        let challenge = |token: &str, until_s| Challenge {
            kind: ChallengeKind::Http,
            name: "a.example".to_owned(),
            token: token.to_owned(),
            answer: "answer".to_owned(),
            until_s,
        };
        let theirs = room.folder().challenges();
        let mut look = |now_s: u64| {
            shared.look(now_s);
            std::mem::take(&mut *heard.0.lock().unwrap()).join(" ")
        };
        assert_eq!(look(0), "");
        let (one, two) = (challenge("one", 100), challenge("two", 50));
        theirs.put(&one).unwrap();
        assert_eq!((look(1), look(2)), ("+one".to_owned(), String::new()));
        theirs.put(&two).unwrap();
        theirs.remove(&one);
        assert_eq!(look(3), "-one +two");
        assert_eq!(look(50), "-two", "its node has crashed");
    }
}
