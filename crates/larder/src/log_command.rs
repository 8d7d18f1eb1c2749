//! `larder log`: what exchanges are over in a running larder, or were recorded of one: which, how shown, and how grouped.
//!
//! The running one is asked at its admin address, which lets through what the query wants; of a record it is picked out here. What is
//! read is a line of JSON for each exchange (`proxy::events`).

mod event_groups;
mod event_record;
pub mod event_source;
mod event_text;
mod log_flags;
pub mod recorded_event;
pub mod shown_safely;
pub mod typed_fields;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proxy::events::{EVENT_FIELDS, EVENT_VERSION, EventField, EventQuery, FieldKind};

pub use log_flags::{LOG_EXAMPLES, LogFlags, LogForm};

use crate::ending_signals;
use crate::log_command::event_groups::EventGroups;
use crate::log_command::event_record::EventRecord;
use crate::log_command::event_source::{EventSource, NextEvent, Until};
use crate::log_command::event_text::TextForm;
use crate::log_command::recorded_event::RecordedEvent;
use crate::quantities::counted;
use crate::say::say;

pub fn log(flags: &LogFlags) -> ExitCode {
    if flags.fields {
        return show_fields();
    }
    match run(flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Ended::PipeClosed) => ExitCode::SUCCESS,
        Err(Ended::Failed(why)) => {
            say!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Why it ends before its end.
enum Ended {
    /// Nobody reads what is written: that is how a pager ends it.
    PipeClosed,
    Failed(String),
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Ended {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Ended::PipeClosed,
            _ => Ended::Failed(format!("standard output: {error}")),
        }
    }
}

fn run(flags: &LogFlags) -> Result<(), Ended> {
    let query = EventQuery::parse(&flags.query).map_err(|error| Ended::Failed(format!("-q, {error}")))?;
    let by = flags.group_by.as_deref().map(group_field).transpose().map_err(Ended::Failed)?;
    let until = flags.span.map(Until::begin);
    let mut source = match flags.from.is_empty() {
        true => {
            // The groups are shown when somebody has seen enough, too.
            let stop = Arc::new(AtomicBool::new(false));
            if by.is_some() {
                let says = Arc::clone(&stop);
                ending_signals::on_first(move |_| says.store(true, Ordering::Relaxed))?;
            }
            if asks_for_one(&flags.query) {
                say!("{ONE_THAT_IS_OVER}");
            }
            EventSource::live(&flags.larder, &flags.query, flags.rate, (until, &stop)).map_err(Ended::Failed)?
        }
        false => EventSource::of_files(&flags.from, query),
    };
    let mut groups = by.map(EventGroups::by);
    let mut record = match &flags.record {
        Some(path) => Some(EventRecord::open(path, flags.record_size, flags.record_files).map_err(Ended::Failed)?),
        None => None,
    };
    let out = io::stdout();
    let colours = flags.colours(out.is_terminal());
    let text = TextForm { colours };
    let mut out = BufWriter::new(out);
    let mut left = flags.count.unwrap_or(u64::MAX);
    while left > 0 {
        // What is there is shown before more is waited for.
        if !source.has_more_at_once() {
            out.flush()?;
        }
        match source.next() {
            NextEvent::Event { line, event } => {
                left -= 1;
                match (&mut record, &mut groups) {
                    (Some(record), _) => record.write(&line).map_err(Ended::Failed)?,
                    (None, Some(groups)) => groups.add(&event),
                    (None, None) => show(&mut out, flags.format, &text, &line, &event)?,
                }
            }
            NextEvent::Lost(count) => {
                out.flush()?;
                say!(
                    "{} not told: more came than are told in a second (--rate), or than were taken",
                    counted(count, "exchange")
                );
                let line = format!("{}\n", serde_json::json!({ "v": EVENT_VERSION, "lost": count }));
                match (&mut record, &groups) {
                    (Some(record), _) => record.write(line.as_bytes()).map_err(Ended::Failed)?,
                    (None, None) if flags.format == LogForm::Json => out.write_all(line.as_bytes())?,
                    _ => {}
                }
            }
            NextEvent::Interrupted => say!("the connection to larder has ended: until it is back nothing is told"),
            NextEvent::Resumed => say!("larder is back"),
            NextEvent::End => break,
            NextEvent::Failed(why) => {
                out.flush()?;
                return Err(Ended::Failed(why));
            }
        }
    }
    if let Some(groups) = groups {
        groups.show(&mut out, flags.format == LogForm::Json)?;
    }
    out.flush()?;
    Ok(())
}

/// Does the query name the number of one exchange? That is over as a rule when somebody has it.
fn asks_for_one(query: &str) -> bool {
    query.split(|c: char| !(c.is_ascii_alphanumeric() || "_.".contains(c))).any(|word| word == "id")
}

const ONE_THAT_IS_OVER: &str = "what comes from now on is shown. One that is over stands in the access log as id=… ([log] path), or in a record: \
                                larder log --record FILE, from before it came, and larder log --from FILE -q QUERY";

fn show(out: &mut impl Write, form: LogForm, text: &TextForm, line: &[u8], event: &RecordedEvent) -> io::Result<()> {
    match form {
        LogForm::Json => out.write_all(line),
        LogForm::Text => out.write_all(text.line(event).as_bytes()),
        LogForm::Combined => out.write_all(event_text::combined(event).as_bytes()),
    }
}

fn group_field(name: &str) -> Result<&'static EventField, String> {
    EventField::named(name)
        .ok_or_else(|| format!("--group-by: no field is called `{name}`; `larder log --fields` lists them"))
}

fn kind_word(kind: FieldKind) -> &'static str {
    match kind {
        FieldKind::Text => "text",
        FieldKind::Number => "number",
        FieldKind::Micros => "time",
        FieldKind::Bytes => "bytes",
        FieldKind::Address => "address",
    }
}

/// All fields, what they are and what they say.
fn show_fields() -> ExitCode {
    let width = EVENT_FIELDS.iter().map(|field| field.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for field in EVENT_FIELDS {
        text.push_str(&format!("{:width$}  {:7}  {}\n", field.name, kind_word(field.kind), field.says));
    }
    // A closed pipe has read enough.
    let _ = io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_query_for_one_exchange_is_known() {
        assert!(
            ["id == \"6f0c\"", "status == 500 and id=='a'", "(id ~ \"^6\")"].map(asks_for_one).iter().all(|is| *is)
        );
        assert!(!["", "status == 500", "origin.id == 3", "identity == 1"].map(asks_for_one).iter().any(|is| *is));
    }

    const BEFORE: &str = "`larder log --fields` lists the fields:\n\n";
    const BEHIND: &str = "\n## As JSON\n";

    #[test]
    fn the_page_lists_the_fields_that_there_are() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/log.md");
        let page = std::fs::read_to_string(&path).expect("docs/log.md");
        let (head, rest) = page.split_once(BEFORE).expect("the page says where the table begins");
        let (listed, tail) = rest.split_once(BEHIND).expect("the page says where the table ends");
        let mut table = "| field | is a | and says |\n|---|---|---|\n".to_owned();
        for field in EVENT_FIELDS {
            let says = field.says.replace('|', "\\|");
            table.push_str(&format!("| `{}` | {} | {says} |\n", field.name, kind_word(field.kind)));
        }
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&path, [head, BEFORE, &table, BEHIND, tail].concat()).expect("docs/ can be written");
            return;
        }
        assert_eq!(listed, table, "UPDATE_DOCS=1 cargo test --release -p larder --bin larder writes it anew");
    }
}
