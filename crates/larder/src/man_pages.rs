//! `larder man`: the manual pages, made of what `--help` is made of, and larder.toml(5), of the definitions of its keys. Nothing is
//! written twice, so a page is never behind its program.

mod command_page;
mod config_page;
mod roff;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command};

use crate::say::say;

#[derive(Clone, Debug, Args)]
pub struct ManFlags {
    /// A command, such as `serve` or `lab run`, or larder.toml [default: larder itself]
    #[arg(value_name = "PAGE", conflicts_with = "to")]
    page: Vec<String>,

    /// Write all pages into this folder, which is made if it is not there
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
}

pub const MAN_EXAMPLES: &str = "\
Examples:
  larder man serve | man -l -                      read a page
  larder man lab run > larder-lab-run.1
  larder man larder.toml | man -l -                every key of larder.toml
  larder man --to /usr/local/share/man             all pages, for everybody: man larder-serve

With --to they are in DIR/man1 and DIR/man5.

Exit codes: 0 printed or written; 1 no such page, or it cannot be written; 2 wrong flags.";

/// A page of the manual.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManPage {
    /// `larder-serve`
    pub name: String,
    pub section: u8,
    /// In roff, with the macros of man(7).
    pub text: String,
}

/// `command`: what can be typed.
pub fn man(flags: &ManFlags, command: Command) -> ExitCode {
    let pages = pages(command);
    let done = match &flags.to {
        Some(folder) => write_all(&pages, folder),
        None => print(&pages, &flags.page),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            say!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

/// All of them.
pub fn pages(mut command: Command) -> Vec<ManPage> {
    command.build();
    let mut pages = command_page::pages(&command);
    pages.push(config_page::page());
    pages
}

fn print(pages: &[ManPage], words: &[String]) -> Result<(), String> {
    let name = match words {
        [one] if one == config_page::NAME => one.clone(),
        words => {
            let words: Vec<&str> = words.iter().map(|word| word.strip_prefix("larder-").unwrap_or(word)).collect();
            let words = words.iter().filter(|word| **word != "larder").copied();
            std::iter::once("larder").chain(words).collect::<Vec<_>>().join("-")
        }
    };
    let Some(page) = pages.iter().find(|page| page.name == name) else {
        let names: Vec<&str> = pages.iter().map(|page| page.name.as_str()).collect();
        return Err(format!("there is no page {name}; there are {}", names.join(", ")));
    };
    // A closed pipe has read enough.
    let _ = io::stdout().write_all(page.text.as_bytes());
    Ok(())
}

fn write_all(pages: &[ManPage], folder: &Path) -> Result<(), String> {
    for page in pages {
        let folder = folder.join(format!("man{}", page.section));
        let file = folder.join(format!("{}.{}", page.name, page.section));
        let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&file, &page.text));
        written.map_err(|error| format!("{}: {error}", file.display()))?;
    }
    say!("{} pages are in {}", pages.len(), folder.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::flags::Flags;

    fn of(name: &str) -> String {
        let page = pages(Flags::command()).into_iter().find(|page| page.name == name);
        page.unwrap_or_else(|| panic!("no page {name}")).text
    }

    #[test]
    fn every_command_that_is_shown_has_a_page() {
        let pages = pages(Flags::command());
        let names: Vec<&str> = pages.iter().map(|page| page.name.as_str()).collect();
        for name in ["larder", "larder-serve", "larder-lab-run", "larder-config-show", "larder-vcl-load", "larder.toml"]
        {
            assert!(names.contains(&name), "{name} is not among {names:?}");
        }
        assert!(!names.iter().any(|name| name.ends_with("-help")), "{names:?}");
        let mut once = names.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), names.len());
    }

    #[test]
    fn a_page_has_what_help_has() {
        let page = of("larder-serve");
        for part in [
            ".TH LARDER\\-SERVE 1",
            "larder\\-serve \\- Run the accelerator",
            "\\fB\\-\\-origin\\fR \\fIURL\\fR",
            ".SH EXAMPLES\n.EX\nlarder serve \\-\\-origin http://127.0.0.1:3000\n",
            ".SH EXIT STATUS\n.TP\n.B 0\nended on a signal",
            "\\fBlarder\\fR(1)",
            "\\fBlarder.toml\\fR(5)",
        ] {
            assert!(page.contains(part), "{part} is not in\n{page}");
        }
        let top = of("larder");
        assert!(top.contains("\\fBlarder\\-serve\\fR(1)\nRun the accelerator"), "{top}");
    }

    #[test]
    fn keys_stand_with_their_types_and_defaults() {
        let page = of("larder.toml");
        for part in [
            ".SH [[LISTEN]]",
            ".TP\n\\fBworkers\\fR = \\fIwhole number, 1 to 1024; or \"auto\"\\fR\n",
            "Without it: \"auto\".",
        ] {
            assert!(page.contains(part), "{part} is not in\n{page}");
        }
    }

    /// A line that begins with a dot or a quote would be an order to the formatter.
    #[test]
    fn no_text_is_taken_for_an_order() {
        const ORDERS: [&str; 13] =
            [".TH", ".SH", ".SS", ".TP", ".PP", ".B", ".EX", ".EE", ".RS", ".RE", ".nh", ".ad", ".\\\""];
        for page in pages(Flags::command()) {
            let is_text = |line: &&str| !line.starts_with('.') && !line.starts_with('\'');
            let is_order = |line: &str| ORDERS.contains(&line.split(' ').next().unwrap_or_default());
            let wrong = page.text.lines().find(|line| !is_text(line) && !is_order(line));
            assert_eq!(wrong, None, "{}", page.name);
            assert!(page.text.is_ascii(), "{}", page.name);
        }
    }
}
