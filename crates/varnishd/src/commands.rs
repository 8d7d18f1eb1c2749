//! What is done with a command: found in the table, its words counted, and answered. Who may ask is the session's to say.

use std::borrow::Cow;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::answers::{Answer, status};
use crate::command_table::{COMMANDS, Command, When};
use crate::parameter_book::ParameterBook;
use crate::served::Served;

/// The front of one larder.
pub struct Front {
    pub(crate) served: Arc<dyn Served>,
    pub(crate) parameters: Mutex<ParameterBook>,
    /// Changes come one after another, whoever asks.
    changes: Mutex<()>,
}

/// A command as it was typed.
pub(crate) struct Asked<'a> {
    /// All words, with the name and `-j`.
    pub(crate) all: &'a [Vec<u8>],
    /// Those behind the name, without `-j`.
    pub(crate) words: &'a [Vec<u8>],
    pub(crate) wants_json: bool,
}

impl Asked<'_> {
    /// A word as text; what is no UTF-8 names nothing.
    pub(crate) fn word(&self, at: usize) -> Cow<'_, str> {
        self.words.get(at).map_or(Cow::Borrowed(""), |word| String::from_utf8_lossy(word))
    }
}

const UNKNOWN: &str = "Unknown request.\nType 'help' for more info.\n";
const NOT_RUNNING: &str = "Unknown request in manager process (child not running).\nType 'help' for more info.";

impl Front {
    pub fn new(served: Arc<dyn Served>, parameters: ParameterBook) -> Front {
        Front { served, parameters: Mutex::new(parameters), changes: Mutex::new(()) }
    }

    /// Answers a command of somebody who may ask anything. It may take its time.
    pub fn answer(&self, words: &[Vec<u8>]) -> Answer {
        // Behind a dash a command may fail.
        if let Some(command) = words.first().and_then(|name| name.strip_prefix(b"-")) {
            if command.is_empty() {
                return Answer::new(status::SYNTAX, "There is no command behind the dash.");
            }
            let words: Vec<Vec<u8>> = [command.to_vec()].into_iter().chain(words[1..].iter().cloned()).collect();
            let answer = self.answer_to(&words);
            return if answer.is_good() { answer } else { Answer { status: status::OK, ..answer } };
        }
        self.answer_to(words)
    }

    fn answer_to(&self, words: &[Vec<u8>]) -> Answer {
        let _one_at_a_time = self.changes.lock();
        let Some((name, behind)) = words.split_first() else { return Answer::new(status::UNKNOWN, UNKNOWN) };
        let Some(command) = COMMANDS.iter().find(|command| command.name.as_bytes() == name) else {
            let hint = if name.iter().any(u8::is_ascii_uppercase) { "all commands are in lower-case.\n" } else { "" };
            return Answer::new(status::UNKNOWN, format!("{UNKNOWN}{hint}"));
        };
        if !self.is_answered(command) {
            return Front::not_running();
        }
        let wants_json = command.has_json && behind.first().is_some_and(|word| word == b"-j");
        let asked = Asked { all: words, words: &behind[usize::from(wants_json)..], wants_json };
        counted(command, &asked).unwrap_or_else(|| (command.act)(self, &asked))
    }

    /// Whether it is a command of now: some are only while requests are served.
    pub(crate) fn is_answered(&self, command: &Command) -> bool {
        command.when != When::Running || self.served.is_running()
    }

    pub(crate) fn not_running() -> Answer {
        Answer::new(status::UNKNOWN, NOT_RUNNING)
    }

    /// What one is greeted with.
    pub(crate) fn banner(&self) -> String {
        let rule = "-----------------------------";
        format!(
            "{rule}\nVarnish Cache CLI 1.0\n{rule}\n{}\nlarder {}\n\nType 'help' for command list.\n\
             Type 'quit' to close CLI session.\n",
            self.served.platform(),
            env!("CARGO_PKG_VERSION")
        )
    }
}

fn counted(command: &Command, asked: &Asked<'_>) -> Option<Answer> {
    let (least, most) = command.words;
    if asked.words.len() < least {
        return Some(Answer::new(status::TOO_FEW, "Too few parameters\n"));
    }
    (asked.words.len() > most).then(|| Answer::new(status::TOO_MANY, "Too many parameters\n"))
}
