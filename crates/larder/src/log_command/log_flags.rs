//! The flags of `larder log`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::admin_client::AdminFlags;
use crate::limits::{ADMIN_EVENTS_PER_SECOND, ADMIN_EVENTS_PER_SECOND_MAX};
use crate::log_command::typed_fields;
use crate::quantities::{parse_duration, parse_size};

#[derive(Clone, Debug, Args)]
pub struct LogFlags {
    /// Only exchanges that meet this: FIELD OPERATOR VALUE, joined by and, or, not and ( )
    #[arg(short, long, value_name = "QUERY", default_value = "", hide_default_value = true, add = typed_fields::query())]
    pub query: String,

    /// How each is shown
    #[arg(long, value_name = "FORM", value_enum, default_value_t = LogForm::Text)]
    pub format: LogForm,

    /// Show for each value of this field how many there were, how large and how slow, when all are read
    #[arg(long, value_name = "FIELD", conflicts_with = "record", add = typed_fields::field())]
    pub group_by: Option<String>,

    /// End after so many exchanges
    #[arg(short = 'n', long, value_name = "N")]
    pub count: Option<u64>,

    /// End after so long, such as 10s
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    pub span: Option<Duration>,

    /// At most so many a second; what comes beyond is counted
    #[arg(long, value_name = "N", default_value_t = ADMIN_EVENTS_PER_SECOND,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(ADMIN_EVENTS_PER_SECOND_MAX)))]
    pub rate: u32,

    /// Read what was recorded in this file, or - for standard input, and not a running larder; repeatable
    #[arg(long, value_name = "FILE", conflicts_with_all = ["record", "span", "rate"])]
    pub from: Vec<PathBuf>,

    /// Write to this file, as JSON, and show nothing
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,

    /// A record that grows beyond this goes on in a new file; the old one is FILE.1
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_size, requires = "record")]
    pub record_size: u64,

    /// So many old files of a record are kept
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(0..=1_000), requires = "record")]
    pub record_files: u32,

    /// List the fields that a query may name, and end
    #[arg(long)]
    pub fields: bool,

    /// Colours: on a terminal, or as said
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Colours::Auto)]
    pub color: Colours,

    #[command(flatten)]
    pub larder: AdminFlags,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogForm {
    /// A line for people
    Text,
    /// All fields, an object a line
    Json,
    /// As the access log
    Combined,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Colours {
    Auto,
    Always,
    Never,
}

impl LogFlags {
    /// Is a line coloured?
    pub fn colours(&self, is_terminal: bool) -> bool {
        match self.color {
            Colours::Always => true,
            Colours::Never => false,
            // https://no-color.org
            Colours::Auto => is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        }
    }
}

pub const LOG_EXAMPLES: &str = "\
Examples:
  larder log --config larder.toml                               what is asked now, a line each
  larder log -q 'status >= 500 and origin == app'               what that origin failed
  larder log -q 'class == miss and time.first_byte > 1s'        slow misses
  larder log -q 'client == 10.0.0.0/8 and not agent ~ curl' --format json
  larder log --for 30s --group-by url -q 'class == pass'        which URLs are never stored
  larder log --record /var/log/larder.events                    keep them; 5 files of 64 MiB at most
  larder log --from /var/log/larder.events --group-by client    look into a record

A query compares fields (--fields lists them) by == != < <= > >= and, with a regex, ~ and !~; a field alone asks whether it is
there. Times are written 250us, 20ms or 1.5s, bytes 512 or 20K, networks 10.0.0.0/8. What needs blanks stands within quotes.

The running larder is asked at its admin address, with the token of [admin] or through its UNIX socket; it is waited for while it
restarts. Only while somebody reads along does it gather what origins were asked and how long each phase took.

Exit codes: 0 ended; 1 a mistake in the query, no larder, or a file that is no record; 2 wrong flags.";
