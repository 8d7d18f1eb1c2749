//! What a person typed who knows the commands of other programs, and what it is called here. It is said below what clap says of it.

use std::path::Path;
use std::process::ExitCode;

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::say::say;

/// Words that are no commands, and what to type in their place.
const COMMANDS: &[(&[&str], &str)] = &[
    (
        &["stop", "quit", "shutdown", "kill", "end"],
        "systemctl stop larder ends the service, kill -TERM $(pidof larder) one that was started by hand: what is under way is finished",
    ),
    (&["restart"], "systemctl restart larder; for a new config, larder reload keeps the cache and all connections"),
    (
        &["status", "info", "ps", "health"],
        "larder stat shows every figure of the larder that runs, larder top who asks most; systemctl status larder says whether it runs",
    ),
    (
        &["flush", "clear", "clean", "empty", "wipe", "invalidate"],
        "larder purge --all drops all that is stored; larder purge URL, --prefix or --host a part of it",
    ),
    (
        &["start", "run", "daemon", "up"],
        "larder serve --config larder.toml runs it; systemctl start larder the service",
    ),
    (
        &["test", "validate", "verify", "lint", "configtest", "-t"],
        "larder check larder.toml looks whether a config is good",
    ),
    (&["logs", "tail"], "larder log tells what is asked, as it happens"),
    (&["hup", "refresh-config", "update"], "larder reload has the larder that runs read its config again"),
];

/// Prints what is wrong with what was typed, and returns the code to end with.
pub fn told(wrong: &Error) -> ExitCode {
    // A closed pipe must not end this with a panic; the exit code still tells.
    let _ = wrong.print();
    if let Some(hint) = hint(wrong) {
        say!("hint: {hint}");
    }
    ExitCode::from(u8::try_from(wrong.exit_code()).unwrap_or(2))
}

fn hint(wrong: &Error) -> Option<String> {
    let word = |kind| match wrong.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    match wrong.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = word(ContextKind::InvalidSubcommand)?;
            let (_, hint) = COMMANDS.iter().find(|(words, _)| words.contains(&word))?;
            Some((*hint).to_owned())
        }
        ErrorKind::UnknownArgument => {
            let word = word(ContextKind::InvalidArg)?;
            let is_config = !word.starts_with('-') && Path::new(word).extension().is_some_and(|end| end == "toml");
            is_config.then(|| format!("a config is named by --config {word}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::flags::Flags;

    fn hint_of(line: &str) -> Option<String> {
        let words = ["larder"].into_iter().chain(line.split(' '));
        hint(&Flags::try_parse_from(words).expect_err(line))
    }

    #[test]
    fn words_of_other_programs_are_told_what_they_are_here() {
        for (line, expect) in [
            ("stop", "kill -TERM"),
            ("status", "larder stat"),
            ("flush", "larder purge --all"),
            ("validate", "larder check"),
            ("serve larder.toml", "a config is named by --config larder.toml"),
            ("config show /etc/larder/larder.toml", "--config /etc/larder/larder.toml"),
            ("reload larder.toml", "--config larder.toml"),
        ] {
            assert!(hint_of(line).is_some_and(|hint| hint.contains(expect)), "{line}: {:?}", hint_of(line));
        }
        for line in ["sevre", "serve --confg larder.toml", "purge"] {
            assert_eq!(hint_of(line), None, "{line}");
        }
    }

    #[test]
    fn no_command_is_a_word_of_others() {
        let commands = Flags::command();
        let ours: Vec<&str> = commands.get_subcommands().map(clap::Command::get_name).collect();
        let theirs = COMMANDS.iter().flat_map(|(words, _)| *words);
        assert_eq!(theirs.filter(|word| ours.contains(word)).collect::<Vec<_>>(), Vec::<&&str>::new());
    }
}
