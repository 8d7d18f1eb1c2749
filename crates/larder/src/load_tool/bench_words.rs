//! What users of ab, siege, http_load, httperf, wrk and h2load type, made into our own flags before clap reads them.
//!
//! Only words behind `larder bench` are touched, and of those only what a table of `bench_dialects` holds; our own flags
//! pass as they are. It knows how flags are written (`-kc 500`, `-t60S`, `--rate=7`), not what they do.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::Path;

use clap::{Args, Command};
use lab::Tool;

use crate::load_tool::bench_dialects::{Becomes, COMMON, Part, Word, own_words};
use crate::load_tool::bench_flags::BenchFlags;

/// The command line as ours; or a sentence about a word that cannot be.
pub fn translate(typed: Vec<OsString>) -> Result<Vec<OsString>, String> {
    if typed.get(1).is_none_or(|command| command != "bench") {
        return Ok(typed);
    }
    let mut words = VecDeque::with_capacity(typed.len());
    for word in &typed[2..] {
        match word.to_str() {
            Some(word) => words.push_back(word.to_owned()),
            // Nobody's flag; clap says what is wrong with it.
            None => return Ok(typed),
        }
    }
    let ours = Translation::new(words).run()?;
    Ok(typed[..2].iter().cloned().chain(ours.into_iter().map(OsString::from)).collect())
}

struct Translation {
    tool: Option<Tool>,
    bench: Command,
    /// Not read yet.
    words: VecDeque<String>,
    ours: Vec<String>,
    parts: Vec<(Part, String)>,
    over_tls: bool,
    /// What was said about it.
    http2: Option<bool>,
}

impl Translation {
    fn new(words: VecDeque<String>) -> Translation {
        let behind = words.iter().position(|word| word == "--as").and_then(|at| words.get(at + 1)).map(String::as_str);
        let named = behind.or_else(|| words.iter().find_map(|word| word.strip_prefix("--as=")));
        let bench = BenchFlags::augment_args(Command::new("bench"));
        Translation {
            tool: named.and_then(Tool::named),
            bench,
            words,
            ours: Vec::new(),
            parts: Vec::new(),
            over_tls: false,
            http2: None,
        }
    }

    fn run(mut self) -> Result<Vec<String>, String> {
        while let Some(word) = self.words.pop_front() {
            if word == "--" {
                self.ours.push(word);
                self.ours.extend(std::mem::take(&mut self.words));
            } else if word.starts_with("--") || self.find(&word).is_some_and(|_| word.len() > 2) {
                self.long(&word)?;
            } else if word.len() > 1 && word.starts_with('-') {
                self.letters(&word[1..])?;
            } else if !word.contains("://") && !self.has("--urls") && Path::new(&word).is_file() {
                self.flag("--urls", word);
            } else {
                self.ours.push(word);
            }
        }
        self.put_together()?;
        self.keep_or_not();
        Ok(self.ours)
    }

    fn find(&self, name: &str) -> Option<Becomes> {
        let is = |word: &&Word| word.name == name;
        own_words(self.tool).iter().find(is).or_else(|| COMMON.iter().find(is)).map(|word| word.becomes)
    }

    /// A word of several letters, with its value behind it or behind `=`.
    fn long(&mut self, word: &str) -> Result<(), String> {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word, None),
        };
        if let Some(becomes) = self.find(name) {
            return self.become_ours(name, becomes, value);
        }
        let takes_value = self.our_flag(|flag| flag.get_long() == name.strip_prefix("--"));
        self.ours.push(word.to_owned());
        if takes_value == Some(true) && value.is_none() {
            self.ours.extend(self.words.pop_front());
        }
        Ok(())
    }

    /// `-kc500`: letters, the last of which may have its value at it.
    fn letters(&mut self, letters: &str) -> Result<(), String> {
        for (at, letter) in letters.char_indices() {
            let name = format!("-{letter}");
            let rest = &letters[at + letter.len_utf8()..];
            let value = (!rest.is_empty()).then(|| rest.trim_start_matches('=').to_owned());
            match self.find(&name) {
                Some(becomes @ (Becomes::Words(_) | Becomes::OverTls | Becomes::Http1 | Becomes::Refused(_))) => {
                    self.become_ours(&name, becomes, None)?
                }
                Some(becomes) => return self.become_ours(&name, becomes, value),
                None => match self.our_flag(|flag| flag.get_short() == Some(letter)) {
                    Some(false) => self.ours.push(name),
                    Some(true) => {
                        let value = self.value_of(&name, value)?;
                        self.ours.extend([name, value]);
                        return Ok(());
                    }
                    // Nobody's: clap complains of it as it was typed.
                    None => {
                        self.ours.push(format!("-{}", &letters[at..]));
                        return Ok(());
                    }
                },
            }
        }
        Ok(())
    }

    /// Is there such a flag of ours, and does it take a value?
    fn our_flag(&self, is: impl Fn(&clap::Arg) -> bool) -> Option<bool> {
        self.bench.get_arguments().find(|flag| is(flag)).map(|flag| flag.get_action().takes_values())
    }

    fn value_of(&mut self, name: &str, value: Option<String>) -> Result<String, String> {
        value.or_else(|| self.words.pop_front()).ok_or_else(|| format!("{name} needs a value"))
    }

    fn become_ours(&mut self, name: &str, becomes: Becomes, value: Option<String>) -> Result<(), String> {
        match becomes {
            Becomes::Words(words) => self.ours.extend(words.iter().map(|word| (*word).to_owned())),
            Becomes::Flag(flag) => {
                let value = self.value_of(name, value)?;
                self.flag(flag, value);
            }
            Becomes::Field(field) => {
                let value = self.value_of(name, value)?;
                self.flag("--header", format!("{field}: {value}"));
            }
            Becomes::OverTls => self.over_tls = true,
            Becomes::Http1 => self.http2 = Some(false),
            Becomes::Harmless => drop(self.value_of(name, value)?),
            Becomes::Part(part) => {
                let value = self.value_of(name, value)?;
                self.part(name, part, value)?;
            }
            Becomes::Refused(instead) => {
                let whose = self.tool.map_or_else(String::new, |tool| format!(" of {}", tool.name()));
                return Err(format!("{name}{whose} is not understood: {instead}"));
            }
        }
        Ok(())
    }

    fn flag(&mut self, flag: &str, value: String) {
        self.ours.extend([flag.to_owned(), value]);
    }

    fn has(&self, flag: &str) -> bool {
        self.ours.iter().any(|word| word == flag)
    }

    fn part(&mut self, name: &str, part: Part, value: String) -> Result<(), String> {
        let is_number = value.parse::<f64>().is_ok();
        match part {
            Part::Delay if value.parse() == Ok(0.0) => {}
            Part::Delay => self.flag("--think", value),
            Part::DelayOrTime if is_number => return self.part(name, Part::Delay, value),
            Part::DelayOrTime => self.flag("--time", value),
            Part::TimeoutOrScript if is_number => self.flag("--timeout", value),
            Part::TimeoutOrScript => {
                return self.become_ours("--script", self.find("--script").expect("in the table"), None);
            }
            Part::Period => return self.period(&value),
            Part::FieldLines => {
                let lines = value.replace("\\n", "\n");
                for line in lines.lines().filter(|line| !line.is_empty()) {
                    self.flag("--header", line.to_owned());
                }
            }
            Part::Protocol => match value.split(',').next().unwrap_or_default() {
                "1.1" | "http/1.1" => self.http2 = Some(false),
                "2" | "h2" | "h2c" => self.http2 = Some(true),
                _ => return Err(format!("{name} {value} is not spoken: only HTTP/1.1 and HTTP/2")),
            },
            Part::TlsVersion => match &*value.to_ascii_uppercase() {
                "ALL" => {}
                "TLS1.2" => self.flag("--tls-max", "1.2".to_owned()),
                "TLS1.3" => self.flag("--tls-max", "1.3".to_owned()),
                _ => return Err(format!("{name} {value} is not spoken: only TLS1.2 and TLS1.3")),
            },
            _ => self.parts.push((part, value)),
        }
        Ok(())
    }

    /// httperf: `[d|e]SECONDS` between two starts, equal or at random.
    fn period(&mut self, value: &str) -> Result<(), String> {
        let seconds = value.strip_prefix(['d', 'e']).unwrap_or(value).parse::<f64>().ok().filter(|s| *s > 0.0);
        let seconds =
            seconds.ok_or_else(|| format!("--period {value}: d or e, and seconds; see --jitter and --step too"))?;
        self.flag("--rate", format!("{}", 1.0 / seconds));
        if value.starts_with('e') {
            self.ours.push("--poisson".to_owned());
        }
        Ok(())
    }

    fn take(&mut self, wanted: Part) -> Option<String> {
        let at = self.parts.iter().position(|(part, _)| *part == wanted)?;
        Some(self.parts.swap_remove(at).1)
    }

    /// A number that was given in parts, or to each user.
    fn number(&mut self, wanted: Part, name: &str) -> Result<Option<f64>, String> {
        let Some(value) = self.take(wanted) else { return Ok(None) };
        match value.parse::<f64>() {
            Ok(number) if number > 0.0 && number.is_finite() => Ok(Some(number)),
            _ => Err(format!("{name} {value}: a number above 0 is needed")),
        }
    }

    fn put_together(&mut self) -> Result<(), String> {
        let (server, port, uri) = (self.take(Part::Server), self.take(Part::Port), self.take(Part::Uri));
        if server.is_some() || port.is_some() || uri.is_some() {
            let host = server.unwrap_or_else(|| "localhost".to_owned());
            let port = port.map_or_else(String::new, |port| format!(":{port}"));
            let scheme = if self.over_tls { "https" } else { "http" };
            self.ours.push(format!("{scheme}://{host}{port}{}", uri.unwrap_or_else(|| "/".to_owned())));
        }
        let connections = self.number(Part::NumConns, "--num-conns")?;
        let calls = self.number(Part::NumCalls, "--num-calls")?;
        if (connections.is_some() || calls.is_some()) && !self.has("--wsess") && !self.has("--wsesslog") {
            // A connection of httperf is a session of calls without a thought; without a rate one follows another.
            self.flag("--wsess", format!("{},{},0", connections.unwrap_or(1.0), calls.unwrap_or(1.0)));
            if !self.has("--rate") && !self.has("-c") && !self.has("--connections") {
                self.flag("--connections", "1".to_owned());
            }
        }
        let http2 = self.has("--h2") || self.http2.unwrap_or(self.tool == Some(Tool::H2load));
        if let Some(depth) = self.take(Part::Depth) {
            self.flag(if http2 { "--streams" } else { "--pipeline" }, depth);
        }
        if http2 && !self.has("--h2") {
            self.ours.push("--h2".to_owned());
        }
        let users = self.users();
        if let Some(repetitions) = self.number(Part::Repetitions, "the number of repetitions")? {
            self.flag("--requests", format!("{}", repetitions * users));
        }
        if let Some(rate) = self.number(Part::RatePerUser, "--rps")? {
            self.flag("--rate", format!("{}", rate * users));
        }
        Ok(())
    }

    fn users(&self) -> f64 {
        let at = self.ours.iter().rposition(|word| word == "-c" || word == "--connections");
        let value = at.and_then(|at| self.ours.get(at + 1)).and_then(|value| value.parse().ok());
        value.unwrap_or(USERS_DEFAULT)
    }

    /// ab without -k, siege and http_load open a connection for each request.
    fn keep_or_not(&mut self) {
        let short = matches!(self.tool, Some(Tool::Ab | Tool::Siege | Tool::SiegeText | Tool::HttpLoad));
        let said = ["-k", "--short", "--pipeline", "--wsess", "--wsesslog"];
        if short && !said.iter().any(|flag| self.has(flag)) {
            self.ours.push("--short".to_owned());
        }
    }
}

/// What clap takes when no number of connections was given.
const USERS_DEFAULT: f64 = 10.0;

#[cfg(test)]
#[path = "bench_words_tests.rs"]
mod tests;
