//! The flags of `larder stat`, `larder top` and `larder hist`.

use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::admin_client::AdminFlags;
use crate::log_command::typed_fields;
use crate::quantities::parse_duration;

#[derive(Clone, Debug, Args)]
pub struct StatFlags {
    /// Print all figures once, a line each, and end
    #[arg(short = '1', long)]
    pub once: bool,

    /// The same as one object of JSON
    #[arg(long)]
    pub json: bool,

    /// How often they are read again
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub every: Duration,

    #[command(flatten)]
    pub larder: AdminFlags,
}

#[derive(Clone, Debug, Args)]
pub struct TopFlags {
    /// By which field; `larder log --fields` lists them
    #[arg(long, value_name = "FIELD", default_value = "url", add = typed_fields::field())]
    pub by: String,

    /// What comes first
    #[arg(long, value_name = "ORDER", value_enum, default_value_t = TopOrder::Requests)]
    pub order: TopOrder,

    /// Only exchanges that meet this, as in `larder log`
    #[arg(short, long, value_name = "QUERY", default_value = "", hide_default_value = true, add = typed_fields::query())]
    pub query: String,

    /// At most so many exchanges a second are looked at: of more, an even share
    #[arg(long, value_name = "N", default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rate: u32,

    /// How often it is shown
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub every: Duration,

    /// Print an object of JSON each time, a line each
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub larder: AdminFlags,
}

#[derive(Clone, Debug, Args)]
pub struct HistFlags {
    /// Which time
    #[arg(long, value_name = "TIME", value_enum, default_value_t = HistTime::Whole)]
    pub time: HistTime,

    /// Of the last so long
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = window)]
    pub window: Duration,

    /// Print an object of JSON each time, a line each
    #[arg(long)]
    pub json: bool,

    /// How often it is read again
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub every: Duration,

    #[command(flatten)]
    pub larder: AdminFlags,
}

/// By what the rows of `larder top` are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TopOrder {
    Requests,
    /// Not from the store: an origin was asked
    Misses,
    Bytes,
    /// All time together
    Time,
    /// Answered with 5xx
    Failed,
}

impl TopOrder {
    pub const ALL: [TopOrder; 5] =
        [TopOrder::Requests, TopOrder::Misses, TopOrder::Bytes, TopOrder::Time, TopOrder::Failed];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HistTime {
    /// Until the last byte of the answer
    Whole,
    /// Until its first
    FirstByte,
}

const EVERY_MIN: Duration = Duration::from_millis(250);
const WINDOW_MAX: Duration = Duration::from_secs(3_600);

fn interval(text: &str) -> Result<Duration, String> {
    let span = parse_duration(text)?;
    match span >= EVERY_MIN {
        true => Ok(span),
        false => Err("at least 250ms".to_owned()),
    }
}

/// What was read within it is kept.
fn window(text: &str) -> Result<Duration, String> {
    let span = parse_duration(text)?;
    match (Duration::from_secs(1)..=WINDOW_MAX).contains(&span) {
        true => Ok(span),
        false => Err("from 1s to 1h".to_owned()),
    }
}

pub const STAT_EXAMPLES: &str = "\
Examples:
  larder stat                              a screen, on a terminal
  larder stat --once | grep origins        all figures, once
  larder stat --json | jq .hits            the same as JSON
  larder stat --every 10s >> stat.log      a line each ten seconds

Keys: arrows and PgUp, PgDn move; v shows or hides what is zero; q ends.

Exit codes: 0 ended; 1 no larder answers at the admin address; 2 wrong flags.";

pub const TOP_COMMAND_EXAMPLES: &str = "\
Examples:
  larder top --config larder.toml                               the URLs that are asked for most
  larder top --by client --order bytes                          who fetches most
  larder top --by url -q 'class == pass'                        what is never stored
  larder top --by origin.address --order time                   where the time goes
  larder top --by why -q why                                    why things are not stored, or fail

It reads along as `larder log` does, and needs the same rights. It keeps 1,000 values: what is asked for seldom gives way, and the count of who came in
its place is too high by at most what ERR says (Space-Saving; Metwally et al. 2005).

Keys: o orders by the next column; f takes the next field of url, path, host, client, agent, origin, status, class, why, route; r begins anew; q ends.

Exit codes: 0 ended; 1 a mistake in the query, or no larder; 2 wrong flags.";

pub const HIST_EXAMPLES: &str = "\
Examples:
  larder hist                              the last ten seconds, on a terminal
  larder hist --time first-byte --window 60s

Hits are |, answers that an origin was asked for #; each column is twice as long as the one before. Elsewhere than on a terminal it prints percentiles, a line
for each interval.

Keys: t takes the other time; q ends.

Exit codes: 0 ended; 1 no larder answers at the admin address; 2 wrong flags.";
