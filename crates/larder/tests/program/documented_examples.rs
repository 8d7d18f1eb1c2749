//! The examples of pages of docs/: what stands there as the output of a command is what the command prints.
//!
//! A block with a language and a name, such as `vcl NAME`, is a file; in a block `console` each `$ command` is run in the folder of these
//! files, and the lines behind it are its output and errors, with a last line for an exit code that is not 0.
//! `UPDATE_DOCS=1` writes the outputs anew.

use std::path::{Path, PathBuf};
use std::process::Command;

/// One fenced block, or what stands between two.
enum Part {
    Plain(String),
    File { language: String, name: String, text: String },
    Console(String),
}

#[test]
fn the_examples_of_the_vcl_tools_print_what_the_page_says() {
    check("vcl-tools.md", 3);
}

#[test]
fn the_examples_of_the_simulation_print_what_the_page_says() {
    check("simulate.md", 2);
}

fn check(page_name: &str, commands_min: usize) {
    let page = &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page_name);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("documented-examples").join(page_name);
    let _ = std::fs::remove_dir_all(&folder); // it may not be there
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    let text = std::fs::read_to_string(page).expect("the page is part of the repository");
    let mut now = String::new();
    let mut commands_count = 0;
    for part in parts(&text) {
        match part {
            Part::Plain(text) => now.push_str(&text),
            Part::File { language, name, text } => {
                std::fs::write(folder.join(&name), &text).expect("a file can be written");
                now.push_str(&format!("```{language} {name}\n{text}```\n"));
            }
            Part::Console(text) => {
                now.push_str("```console\n");
                for command in text.lines().filter_map(|line| line.strip_prefix("$ ")) {
                    now.push_str(&format!("$ {command}\n{}", run(command, &folder)));
                    commands_count += 1;
                }
                now.push_str("```\n");
            }
        }
    }
    assert!(commands_count >= commands_min, "{page_name} has only {commands_count} examples");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(page, &now).expect("docs/ can be written");
    }
    let text = std::fs::read_to_string(page).expect("the page is part of the repository");
    assert!(text == now, "{}\nUPDATE_DOCS=1 writes the page anew", first_difference(&text, &now));
}

fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut lines = text.split_inclusive('\n');
    while let Some(line) = lines.next() {
        let Some(language) = line.trim_end().strip_prefix("```") else {
            parts.push(Part::Plain(line.to_owned()));
            continue;
        };
        let inside: String = lines.by_ref().take_while(|line| line.trim_end() != "```").collect();
        match language.split_once(' ') {
            Some((language, name)) => {
                parts.push(Part::File { language: language.to_owned(), name: name.to_owned(), text: inside });
            }
            None if language == "console" => parts.push(Part::Console(inside)),
            None => parts.push(Part::Plain(format!("{line}{inside}```\n"))),
        }
    }
    parts
}

fn run(command: &str, folder: &Path) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_larder"));
    let own = program.parent().expect("a program is in a folder").display();
    let path = format!("{own}:{}", std::env::var("PATH").unwrap_or_default());
    let script = format!("{{ {command}\n}} 2>&1");
    let output = Command::new("sh").args(["-c", &script]).current_dir(folder).env("PATH", path).output();
    let output = output.expect("sh is there");
    let mut shown = String::from_utf8(output.stdout).expect("the output is text");
    if !output.status.success() {
        shown.push_str(&format!("[exit code {}]\n", output.status.code().unwrap_or(-1)));
    }
    shown
}

fn first_difference(page: &str, now: &str) -> String {
    let differs = |(_, (a, b)): &(usize, (&str, &str))| a != b;
    match page.lines().zip(now.lines()).enumerate().find(differs) {
        Some((at, (a, b))) => format!("line {}: the page says\n{a}\nbut it is\n{b}", at + 1),
        None => "one of them ends sooner".to_owned(),
    }
}
