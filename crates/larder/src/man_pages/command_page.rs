//! The page of a command, and those of the commands within it: what clap knows of them, and what stands behind `--help`.

use clap::{Arg, Command};

use super::ManPage;
use super::config_page;
use super::roff::{Roff, bold, escaped, italic};

/// Of a command that clap has built.
pub fn pages(command: &Command) -> Vec<ManPage> {
    let mut all = Vec::new();
    gather(command, command.get_name(), None, &mut all);
    all
}

fn gather(command: &Command, name: &str, above: Option<&str>, all: &mut Vec<ManPage>) {
    all.push(ManPage { name: name.to_owned(), section: 1, text: text(command, name, above) });
    for within in shown(command) {
        gather(within, &format!("{name}-{}", within.get_name()), Some(name), all);
    }
}

/// Those that --help lists, but for `help` itself.
fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|within| !within.is_hide_set() && within.get_name() != "help")
}

fn text(command: &Command, name: &str, above: Option<&str>) -> String {
    let mut roff = Roff::page(name, 1);
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    roff.heading("name");
    roff.raw(&format!("{} \\- {}", escaped(name), escaped(about.trim_end_matches('.'))));
    roff.heading("synopsis");
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    roff.as_typed(usage.lines().map(str::trim));
    roff.heading("description");
    let long = command.get_long_about().map(ToString::to_string).unwrap_or_else(|| format!("{about}."));
    roff.text(long.trim_end_matches("..").trim());
    let (positional, flags): (Vec<&Arg>, Vec<&Arg>) =
        command.get_arguments().filter(|arg| !arg.is_hide_set()).partition(|arg| arg.is_positional());
    list(&mut roff, "arguments", &positional);
    list(&mut roff, "options", &flags);
    if shown(command).next().is_some() {
        roff.heading("commands");
        for within in shown(command) {
            let page = bold(&format!("{name}-{}", within.get_name()));
            roff.tagged(&format!("{page}(1)"), &within.get_about().map(ToString::to_string).unwrap_or_default());
        }
    }
    behind_help(&mut roff, &command.get_after_help().map(ToString::to_string).unwrap_or_default());
    see_also(&mut roff, above);
    roff.into_text()
}

fn list(roff: &mut Roff, heading: &str, args: &[&Arg]) {
    if args.is_empty() {
        return;
    }
    roff.heading(heading);
    for arg in args {
        roff.tagged(&tag(arg), &explanation(arg));
    }
}

/// `-c`, `--connections N`
fn tag(arg: &Arg) -> String {
    let short = arg.get_short().map(|short| bold(&format!("-{short}")));
    let long = arg.get_long().map(|long| bold(&format!("--{long}")));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    let takes = arg.is_positional() || arg.get_action().takes_values();
    let values = match (takes, arg.get_value_names()) {
        (false, _) => Vec::new(),
        (true, Some(values)) => values.iter().map(|value| italic(value)).collect(),
        (true, None) => vec![italic(&arg.get_id().as_str().to_uppercase())],
    };
    let named = names.join(", ");
    let parts: Vec<String> = [named].into_iter().filter(|named| !named.is_empty()).chain(values).collect();
    parts.join(" ")
}

fn explanation(arg: &Arg) -> String {
    let help = arg.get_long_help().or_else(|| arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let takes = arg.is_positional() || arg.get_action().takes_values();
    let words: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| value.get_name().to_owned())
        .collect();
    let defaults: Vec<String> =
        arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
    let one_of = (takes && !words.is_empty()).then(|| format!("One of {}.", words.join(", ")));
    let default = (takes && !defaults.is_empty()).then(|| format!("[default: {}]", defaults.join(", ")));
    [Some(help), one_of, default].into_iter().flatten().collect::<Vec<_>>().join("\n")
}

/// What stands at the end of `--help`: paragraphs, of which two have names.
fn behind_help(roff: &mut Roff, text: &str) {
    const EXAMPLES: &str = "Examples:";
    const EXIT_CODES: &str = "Exit codes: ";
    let mut has_notes = false;
    for paragraph in text.split("\n\n") {
        if let Some(examples) = paragraph.strip_prefix(EXAMPLES) {
            roff.heading("examples");
            roff.as_typed(
                examples
                    .lines()
                    .filter(|line| !line.trim().is_empty())
                    .map(|line| line.strip_prefix("  ").unwrap_or(line)),
            );
            continue;
        }
        let (before, codes) = match paragraph.split_once(EXIT_CODES) {
            Some((before, codes)) => (before, Some(codes)),
            None => (paragraph, None),
        };
        if !before.trim().is_empty() {
            if !has_notes {
                roff.heading("notes");
                has_notes = true;
            }
            notes(roff, before);
        }
        if let Some(codes) = codes {
            exit_codes(roff, codes);
            has_notes = false;
        }
    }
}

/// Lines that are moved in are typed, others are text.
fn notes(roff: &mut Roff, paragraph: &str) {
    let lines: Vec<&str> = paragraph.lines().filter(|line| !line.trim().is_empty()).collect();
    for block in lines.chunk_by(|one, next| one.starts_with("  ") == next.starts_with("  ")) {
        match block[0].starts_with("  ") {
            true => roff.as_typed(block.iter().map(|line| line.trim_start())),
            false => roff.paragraph(&block.join("\n")),
        }
    }
}

/// `0 ended; 1 the config is wrong.`
fn exit_codes(roff: &mut Roff, codes: &str) {
    roff.heading("exit status");
    let joined = codes.split_whitespace().collect::<Vec<_>>().join(" ");
    for code in joined.split("; ") {
        match code.split_once(' ') {
            Some((number, says)) if number.chars().all(|c| c.is_ascii_digit()) => {
                roff.tagged(&format!(".B {number}"), says.trim_end_matches('.'));
            }
            _ => roff.text(code),
        }
    }
}

fn see_also(roff: &mut Roff, above: Option<&str>) {
    roff.heading("see also");
    let above = above.map(|above| format!("{}(1)", bold(above)));
    let others = [format!("{}(1)", bold("larder")), format!("{}(5)", bold(config_page::NAME))];
    let mut all: Vec<String> = above.into_iter().chain(others).collect();
    all.dedup();
    roff.raw(&all.join(", "));
}
