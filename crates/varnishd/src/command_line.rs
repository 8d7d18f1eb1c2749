//! What people type behind `varnishd`: letters with values, read as getopt reads them, and what they come to.
//!
//! What is wrong in itself is said here; whether a file is there, an address is free or a user exists is the program's.

use std::collections::VecDeque;

use crate::limits::ARGUMENTS_MAX;
use crate::listen_argument::{ListenArgument, host_and_port};
use crate::storage_argument::StorageArgument;

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Task {
    #[default]
    Serve,
    /// `-C`
    Check,
    /// `-V`
    Version,
    /// `-?`
    Usage,
    /// `-x WORD`
    Document(String),
}

/// A command line that was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommandLine {
    pub task: Task,
    pub listen: Vec<ListenArgument>,
    /// `-b`: an address, a path, or `none`.
    pub backend: Option<String>,
    /// `-f`; an empty one stands for none.
    pub vcl_files: Vec<String>,
    pub storages: Vec<StorageArgument>,
    /// `-T` as host and port, or `None` for `none`.
    pub management: Vec<Option<(Option<String>, u16)>>,
    /// `-M`
    pub callers: Vec<(Option<String>, u16)>,
    /// `-S`: a path, or `none`.
    pub secret: Option<String>,
    pub workdir: Option<String>,
    pub identity: Option<String>,
    pub cli_file: Option<String>,
    /// `-j`, as it was typed.
    pub jail: Option<String>,
    /// `-p`, `-t` and `-l`, in their order.
    pub parameters: Vec<(String, String)>,
    pub read_only: Vec<String>,
    pub pid_file: Option<String>,
    pub is_foreground: bool,
    pub is_debug: bool,
    /// `--admin` and `--log`, which are larder's own.
    pub admin: Option<String>,
    pub log: Option<String>,
    /// `--cert` and `--key`, larder's own too: what listeners with HTTPS show. Without a key it is in the same file.
    pub certificates: Vec<String>,
    pub keys: Vec<String>,
    /// `--ready`, which a daemon is given by its parent.
    pub tells_when_ready: bool,
    /// `--jailed`, which who was root gives to who it becomes.
    pub is_jailed: bool,
    /// What was taken without effect, by name.
    pub notes: Vec<String>,
}

/// A command line that makes no sense. `shows_usage`: the options are to be shown too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misused {
    pub sentence: String,
    pub shows_usage: bool,
}

/// As getopt has it, for `-x optstring`.
pub const OPTION_LETTERS: &str = "?a:b:Cdf:Fh:i:I:j:l:M:n:P:p:r:S:s:T:t:VW:x:";

impl CommandLine {
    /// Of the words behind the program's name.
    pub fn parse(typed: Vec<String>) -> Result<CommandLine, Misused> {
        let mut line = CommandLine::default();
        let mut words = VecDeque::from(typed);
        while let Some(word) = words.pop_front() {
            if let Some(long) = word.strip_prefix("--").filter(|long| !long.is_empty()) {
                line.long(long, &mut words)?;
            } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty() && word != "--") {
                line.letters(letters, &mut words)?;
            } else {
                let extra = if word == "--" { words.pop_front() } else { Some(word) };
                match extra {
                    Some(extra) => return Err(misused(format!("Too many arguments ({extra}...)"))),
                    None => break,
                }
            }
        }
        line.check()?;
        Ok(line)
    }

    fn long(&mut self, long: &str, words: &mut VecDeque<String>) -> Result<(), Misused> {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (long, None),
        };
        let mut value =
            || value.clone().or_else(|| words.pop_front()).ok_or_else(|| misused(format!("--{name} needs a value")));
        match name {
            "admin" => self.admin = Some(value()?),
            "log" => self.log = Some(value()?),
            "cert" => self.certificates.push(value()?),
            "key" => self.keys.push(value()?),
            "ready" => self.tells_when_ready = true,
            "jailed" => self.is_jailed = true,
            "help" => self.task = Task::Usage,
            "version" => self.task = Task::Version,
            _ => return Err(Misused { sentence: format!("invalid option --{name}"), shows_usage: true }),
        }
        Ok(())
    }

    fn letters(&mut self, letters: &str, words: &mut VecDeque<String>) -> Result<(), Misused> {
        let mut rest = letters;
        while let Some(letter) = rest.chars().next() {
            rest = &rest[letter.len_utf8()..];
            let Some(at) = OPTION_LETTERS.find(letter).filter(|_| letter != ':') else {
                return Err(Misused { sentence: format!("invalid option -- '{letter}'"), shows_usage: true });
            };
            if OPTION_LETTERS.as_bytes().get(at + 1) != Some(&b':') {
                self.switch(letter);
                continue;
            }
            let value = if rest.is_empty() { words.pop_front() } else { Some(rest.to_owned()) };
            let value = value.ok_or_else(|| Misused {
                sentence: format!("option requires an argument -- '{letter}'"),
                shows_usage: true,
            })?;
            return self.value(letter, value).map_err(misused);
        }
        Ok(())
    }

    fn switch(&mut self, letter: char) {
        match letter {
            'C' => self.task = Task::Check,
            'd' => self.is_debug = true,
            'F' => self.is_foreground = true,
            'V' => self.task = Task::Version,
            _ => self.task = Task::Usage,
        }
    }

    fn value(&mut self, letter: char, value: String) -> Result<(), String> {
        match letter {
            'a' => self.listen.push(ListenArgument::parse(&value, self.listen.len())?),
            'b' if self.backend.is_some() => return Err("Only one -b can be specified".to_owned()),
            'b' => self.backend = Some(value),
            'f' => self.vcl_files.push(value),
            's' => self.storages.push(StorageArgument::parse(&value, self.storages.len())?),
            'T' if value == "none" => self.management.push(None),
            'T' => self.management.push(Some(
                host_and_port(&value, None)
                    .or_else(|_| host_and_port(&value, Some(0)))
                    .map_err(|why| format!("Could not resolve -T argument to address\n\t{value}: {why}"))?,
            )),
            'M' => self.callers.push(host_and_port(&value, None).map_err(|why| format!("-M {value}: {why}"))?),
            'S' => self.secret = Some(value),
            'n' => self.workdir = Some(value),
            'i' => self.identity = Some(value),
            'I' => self.cli_file = Some(value),
            'j' => self.jail = Some(value),
            'P' => self.pid_file = Some(value),
            'p' => {
                let (name, value) = value.split_once('=').ok_or_else(|| format!("-p {value}: write NAME=VALUE"))?;
                self.parameters.push((name.to_owned(), value.to_owned()));
            }
            't' => self.parameters.push(("default_ttl".to_owned(), value)),
            'l' => {
                self.parameters.push(("vsl_space".to_owned(), value.split(',').next().unwrap_or_default().to_owned()))
            }
            'r' => self.read_only.extend(value.split(',').map(str::to_owned)),
            'h' => self.notes.push(format!("-h {value}: larder has one hash table, of its own")),
            'W' => self.notes.push(format!("-W {value}: larder waits with epoll")),
            _ => self.task = Task::Document(value),
        }
        let most =
            [self.listen.len(), self.vcl_files.len(), self.storages.len(), self.management.len(), self.callers.len()];
        if most.into_iter().any(|count| count > ARGUMENTS_MAX) {
            return Err(format!("more than {ARGUMENTS_MAX} times -{letter}"));
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Misused> {
        let has_vcl = self.backend.is_some() || !self.vcl_files.is_empty();
        let why = match self.task {
            Task::Version | Task::Usage | Task::Document(_) => return Ok(()),
            _ if self.is_debug && self.is_foreground => "Only one of -d or -F can be specified",
            _ if self.backend.is_some() && !self.vcl_files.is_empty() => "Only one of -b or -f can be specified",
            Task::Check if self.is_debug || self.is_foreground => "-C cannot be used with -F or -d",
            Task::Check if !has_vcl => "-C needs either -b <backend> or -f <vcl_file>",
            Task::Serve if !has_vcl && !self.is_debug && self.callers.is_empty() => {
                "Neither -b nor -f given. (use -f '' to override)"
            }
            _ if !self.keys.is_empty() && self.keys.len() != self.certificates.len() => {
                "each --cert has a --key, in the same order, or none has one"
            }
            _ if self.certificates.is_empty() && self.listen.iter().any(|listen| listen.is_tls) => {
                "-a with HTTPS needs a certificate: --cert FILE, and --key FILE unless its key is in the same file"
            }
            _ => return self.check_names(),
        };
        Err(misused(why.to_owned()))
    }

    fn check_names(&self) -> Result<(), Misused> {
        for (at, one) in self.listen.iter().enumerate() {
            if self.listen[..at].iter().any(|other| other.name == one.name) {
                return Err(misused(format!("Listen socket name {} is already used", one.name)));
            }
        }
        for (at, one) in self.storages.iter().enumerate() {
            if self.storages[..at].iter().any(|other| other.name == one.name) {
                return Err(misused(format!("(-s {}) already defined", one.name)));
            }
        }
        Ok(())
    }
}

fn misused(sentence: String) -> Misused {
    Misused { sentence, shows_usage: false }
}

#[cfg(test)]
#[path = "command_line_tests.rs"]
mod tests;
