//! docs/config.md, and what `larder config reference` prints: every key with its type, what holds without it, an example, and the version that had it first.

use super::definition::{KeyDefinition, SectionDefinition, ValueKind};
use super::keys::SECTIONS;
use crate::quantities::show_size;

const HEAD: &str = "\
# Every key of larder.toml

This page is made of the definitions in `crates/larder/src/config/keys/`, as are the sample [larder.toml](larder.toml), in which every
key stands with its default, and the schema for editors ([below](#in-an-editor)). `larder config show` prints what holds, and from where.

| a value is | written |
|---|---|
| a size | `\"64MiB\"`, `\"64M\"` (1024s), `\"64MB\"` (1000s), or a number of bytes |
| a time | `\"250ms\"`, `\"10s\"`, `\"5m\"`, `\"2h\"`, `\"1d\"`, `\"1w\"`; the unit is part of it |
| a network | `\"10.0.0.0/8\"`, `\"::1\"` |
| a list | `[\"a\", \"b\"]`; a list of one may be written without brackets |
| a path | of a file, a folder or a UNIX socket (`unix:PATH`); a relative one begins at the folder of the config file, wherever larder was started, and one behind a flag begins where it was started |

## From the first file to the running program

| command | what it does | exit codes |
|---|---|---|
| `larder init` | asks three questions, or takes flags, and writes a short larder.toml of the answers; never over a file without `--force` | 0 written; 1 not; 2 wrong flags, or nobody to ask |
| `larder check FILE` | every mistake at its line, one message each, with what was probably meant; then whether this machine and user could serve by it: addresses that are taken or need a right, folders and files that are not there or may not be written, certificates that have expired, names that do not resolve, origins on this machine where nobody listens, disks and addresses that another process has (those of the larder that runs by the same file are warned of: a reload takes it over), more memory than there is | 0 good, perhaps with warnings; 1 wrong; 2 wrong flags; 3 good, but `larder serve` would not start here |
| `larder check --file-only FILE` | the same without the machine, for one that builds | 0, 1 or 2 |
| `larder config show [--changed] [--secrets] [flags of serve]` | what holds and where it comes from, as a larder.toml that says the same; `\"(secret)\"` stands for tokens, passwords and the like, which `--secrets` prints | 0 shown; 1 the config is wrong; 2 wrong flags |
| `larder config show --as-vcl [flags of serve]` | the routes as a program in VCL, and which of their words have none ([routes.md](routes.md#in-which-order)) | the same |
| `larder config schema`, `sample`, `reference` | the schema, the sample and this page of the version that you have | 0 |
| `larder serve --config FILE` | runs it; `kill -HUP`, or `larder reload`, has it read again, and what is wrong is refused as a whole | 0 ended on a signal; 1 not started, or a worker died; 2 wrong flags |

## In an editor

`larder config schema > larder.schema.json` prints a JSON schema: editors complete keys, show what they mean, and mark what is wrong.

* **VS Code** with the extension *Even Better TOML*, and every editor with **Taplo** (Helix, Neovim, Zed …): write
  `#:schema ./larder.schema.json` as the first line of larder.toml, or beside it a `.taplo.toml`:

      [[rule]]
      include = [\"**/larder.toml\"]
      schema = { path = \"./larder.schema.json\" }

* On a command line: `taplo lint --schema file://$PWD/larder.schema.json larder.toml`. `larder check` says more: it knows how keys
  depend on each other, and looks at the machine.
";

/// The whole page.
pub fn text() -> String {
    let mut out = HEAD.to_owned();
    for section in SECTIONS {
        out.push_str(&format!("\n## {}\n\n<!-- config/keys/{} -->\n", title(section), section.file));
        for group in section.groups {
            let intro = group.intro.trim_start_matches("--- ").replace('\n', "\n\n").replace('<', "\\<");
            if !intro.is_empty() {
                out.push_str(&format!("\n{}\n", with_links(&intro)));
            }
            out.push_str("\n| key | type | without it | example | since | what it does |\n|---|---|---|---|---|---|\n");
            group.keys.iter().for_each(|key| out.push_str(&row(key)));
        }
    }
    out
}

fn title(section: &SectionDefinition) -> String {
    match section.path {
        "" => "Above all sections".to_owned(),
        _ => format!("`{}`", section.header()),
    }
}

fn row(key: &KeyDefinition) -> String {
    let without = match (key.is_required, key.default, key.without) {
        (true, _, None) => "it is required".to_owned(),
        (true, _, Some(words)) => format!("it is required, unless {words}"),
        (_, Some(literal), Some(words)) => format!("{}; {words}", code(&literal())),
        (_, Some(literal), None) => code(&literal()),
        (_, None, words) => words.unwrap_or("nothing").to_owned(),
    };
    let example = match key.shown() {
        value if value.is_empty() => String::new(),
        value => code(&format!("{} = {value}", key.name)),
    };
    let unit = key.unit.map_or_else(String::new, |unit| format!(", {unit}"));
    let cells = [
        code(key.name),
        format!("{}{unit}", kind(&key.kind)),
        without,
        example,
        key.since.to_owned(),
        with_links(key.says),
    ];
    format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

/// A type, in words.
pub fn kind(kind: &ValueKind) -> String {
    match kind {
        ValueKind::Switch => "true or false".to_owned(),
        ValueKind::Count(min, max) => format!("whole number{}", bounds(*min, *max, |n| n.to_string())),
        ValueKind::Size(min, max) => format!("size in bytes{}", bounds(*min, *max, show_size)),
        ValueKind::Time(false) => "time".to_owned(),
        ValueKind::Time(true) => "time, more than 0".to_owned(),
        ValueKind::Words(words) => {
            words().iter().map(|word| code(&format!("\"{word}\""))).collect::<Vec<_>>().join(", ")
        }
        ValueKind::Text(form) | ValueKind::Parameter(form) => (*form).to_owned(),
        ValueKind::List(inner) => format!("list: {}", self::kind(inner)),
        ValueKind::Either(kinds) => kinds.iter().map(self::kind).collect::<Vec<_>>().join("; or "),
        ValueKind::Map(name, inner) => format!("table: {name} = {}", self::kind(inner)),
        ValueKind::Table => "table".to_owned(),
    }
}

fn bounds(min: u64, max: u64, show: impl Fn(u64) -> String) -> String {
    match (min, max) {
        (0, u64::MAX) => String::new(),
        (_, u64::MAX) => format!(", {} or more", show(min)),
        _ => format!(", {} to {}", show(min), show(max)),
    }
}

/// `docs/tls.md` becomes a link, and what looks like a tag is none.
fn with_links(says: &str) -> String {
    let word = |word: &str| match word.trim_end_matches(['.', ':']).strip_prefix("docs/") {
        Some(page) if page.contains(".md") => {
            let name = page.split(".md").next().unwrap_or(page);
            format!("[{name}.md]({page})")
        }
        _ => word.replace('<', "\\<"),
    };
    says.split(' ').map(word).collect::<Vec<_>>().join(" ")
}
