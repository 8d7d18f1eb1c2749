//! `larder completions`: what has a shell complete commands, flags and their values, and how it is answered.
//!
//! The script of a shell is short: it asks larder, with the line up to the cursor, at each press of the key. So nothing that can be typed is
//! listed in a script: it comes from the flags' own definitions (clap_complete walks over them), and what a value may be from beside its flag.

mod shell_line;
mod shell_scripts;
mod told_words;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::{Args, Command, ValueEnum};

use shell_line::ShellLine;
use told_words::ToldWord;

#[derive(Clone, Debug, Args)]
pub struct CompletionsFlags {
    /// For which shell
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,

    /// How its script asks: what is typed up to the cursor
    #[arg(long, value_name = "TEXT", hide = true, allow_hyphen_values = true)]
    line: Option<String>,

    /// What of that the shell replaces by what it is told; bash alone
    #[arg(long, value_name = "TEXT", hide = true, allow_hyphen_values = true, requires = "line")]
    replaced: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

pub const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  source <(larder completions bash)                                                in this shell
  larder completions bash > /usr/share/bash-completion/completions/larder          for everybody
  larder completions zsh > /usr/local/share/zsh/site-functions/_larder
  larder completions fish > ~/.config/fish/completions/larder.fish

It completes commands, flags, files, and what a flag may be given; of a query (`larder log -q`, `larder top -q`) fields, operators, and the words that a field
holds: larder log -q 'class == <TAB>. The script asks the larder that is being typed, so it stays right when larder is replaced.

Exit codes: 0 printed; 2 wrong flags.";

/// `command`: what can be typed.
pub fn completions(flags: &CompletionsFlags, command: Command) -> ExitCode {
    let text = match &flags.line {
        None => shell_scripts::script(flags.shell).to_owned(),
        Some(line) => answer(flags.shell, line, flags.replaced.as_deref().unwrap_or_default(), command),
    };
    // A closed pipe has read enough.
    let _ = io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

/// A line for each word that fits.
fn answer(shell: Shell, typed: &str, replaced: &str, command: Command) -> String {
    let line = ShellLine::read(typed);
    let told = told(&line, command);
    match shell {
        Shell::Bash => told_words::for_bash(&told, &line, replaced),
        Shell::Zsh | Shell::Fish => told_words::with_sentences(&told),
    }
}

fn told(line: &ShellLine, mut command: Command) -> Vec<ToldWord> {
    let words: Vec<OsString> = line.words.iter().map(OsString::from).collect();
    let Some(last) = words.len().checked_sub(1) else { return Vec::new() };
    // It fails where nothing fits.
    let found = clap_complete::engine::complete(&mut command, words, last, Some(Path::new("."))).unwrap_or_default();
    let told: Vec<ToldWord> = found.iter().filter_map(ToldWord::of).collect();
    // Flags are many, and begin with what says that one is meant.
    match told.iter().any(|word| !word.is_flag()) {
        true => told.into_iter().filter(|word| !word.is_flag()).collect(),
        false => told,
    }
}
