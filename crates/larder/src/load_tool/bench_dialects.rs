//! The words of ab, siege, http_load, httperf, wrk, wrk2 and h2load, and what each becomes: tables, nothing else.
//!
//! A tool's own table counts only with `--as TOOL`; without it `ANY` does, in which a letter that two tools use for two
//! things is refused by name. Words of more than a letter mean the same to all of them and are understood everywhere.
//! `docs/bench.md` shows these tables to people, and a test holds it true.

use lab::Tool;

pub struct Word {
    /// As it is typed, with its dashes.
    pub name: &'static str,
    pub becomes: Becomes,
}

#[derive(Clone, Copy)]
pub enum Becomes {
    /// Takes no value, and is these words of ours, or none: we do that anyway.
    Words(&'static [&'static str]),
    /// Takes a value, which this flag of ours takes.
    Flag(&'static str),
    /// Takes a value, which is that of this header field.
    Field(&'static str),
    /// Takes a value that changes nothing here.
    Harmless,
    Part(Part),
    /// Takes no value: the URL that is put together of parts is one of https.
    OverTls,
    /// Takes no value: not HTTP/2, which h2load speaks unless it is told so.
    Http1,
    /// What to do instead. It may take a value.
    Refused(&'static str),
}

/// Values that become something only together with others, or that have to be looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Server,
    Port,
    Uri,
    NumConns,
    NumCalls,
    /// Of each user.
    Repetitions,
    /// Requests a second of each user.
    RatePerUser,
    /// Seconds that a user waits, at most: siege.
    Delay,
    /// The same if it is a number; with a unit it is wrk's duration.
    DelayOrTime,
    /// ab's time-out if it is a number, otherwise wrk's script.
    TimeoutOrScript,
    /// httperf's distance between two starts.
    Period,
    /// Header lines with their ends.
    FieldLines,
    /// HTTP/1.1 or HTTP/2; of several the first.
    Protocol,
    /// Requests under way at once, as streams or behind one another.
    Depth,
    /// As ab names them.
    TlsVersion,
}

const fn word(name: &'static str, becomes: Becomes) -> Word {
    Word { name, becomes }
}

use Becomes::{Field, Flag, Harmless, Refused, Words};

const NOTHING: Becomes = Words(&[]);
const SUITES_OURS: Becomes = Refused("suites are offered as rustls has them; the report says which one was agreed on");
const NO_SCRIPT: Becomes = Refused("there is no Lua here; see --urls, --wsess, --replay, -H and --body");
const NUMBERS_AS_JSON: Becomes = Refused("--json gives these numbers to a program");
const SEE_ONE: Becomes = Refused("curl -v shows one answer");

/// Everywhere.
pub const COMMON: &[Word] = &[
    // http_load
    word("-parallel", Flag("--connections")),
    word("-rate", Flag("--rate")),
    word("-fetches", Flag("--requests")),
    word("-seconds", Flag("--time")),
    word("-proxy", Flag("--proxy")),
    word("-timeout", Flag("--timeout")),
    word("-jitter", Words(&["--jitter"])),
    word("-checksum", Words(&["--check", "bytes"])),
    word("-verbose", NOTHING),
    word("-sip", Flag("--sources-file")),
    word("-throttle", Refused("bytes are read as fast as they come")),
    word("-cipher", SUITES_OURS),
    // httperf
    word("--hog", NOTHING),
    word("--server", Becomes::Part(Part::Server)),
    word("--port", Becomes::Part(Part::Port)),
    word("--uri", Becomes::Part(Part::Uri)),
    word("--num-conns", Becomes::Part(Part::NumConns)),
    word("--num-calls", Becomes::Part(Part::NumCalls)),
    word("--period", Becomes::Part(Part::Period)),
    word("--max-connections", Flag("--connections")),
    word("--max-piped-calls", Flag("--pipeline")),
    word("--add-header", Becomes::Part(Part::FieldLines)),
    word("--http-version", Becomes::Part(Part::Protocol)),
    word("--client", Harmless),
    word("--send-buffer", Harmless),
    word("--recv-buffer", Harmless),
    word("--think-timeout", Harmless),
    word("--retry-on-failure", NOTHING),
    word("--wlog", Refused("--urls reads a file with a URL on each line")),
    word("--wset", Refused("--urls reads a file with a URL on each line")),
    word("--session-cookie", Refused("cookies are not kept; -H 'Cookie: …' sends one")),
    word("--session-cookies", Refused("cookies are not kept; -H 'Cookie: …' sends one")),
    word("--no-host-hdr", Refused("HTTP/1.1 has a Host field in each request")),
    word("--ssl", Becomes::OverTls),
    // siege
    word("--concurrent", Flag("--connections")),
    word("--reps", Becomes::Part(Part::Repetitions)),
    word("--benchmark", NOTHING),
    word("--internet", Words(&["--random"])),
    word("--file", Flag("--urls")),
    word("--delay", Becomes::Part(Part::Delay)),
    word("--user-agent", Field("User-Agent")),
    word("--content-type", Field("Content-Type")),
    word("--verbose", NOTHING),
    word("--quiet", NOTHING),
    word("--no-parser", NOTHING),
    word("--no-follow", NOTHING),
    word("--json-output", NOTHING),
    // wrk and wrk2
    word("--duration", Flag("--time")),
    word("--script", NO_SCRIPT),
    word("--batch_latency", NOTHING),
    word("--u_latency", Refused("without --as the report shows both latencies, from intended and from send")),
    // h2load
    word("--h1", Becomes::Http1),
    word("--clients", Flag("--connections")),
    word("--max-concurrent-streams", Becomes::Part(Part::Depth)),
    word("--input-file", Flag("--urls")),
    word("--data", Flag("--body")),
    word("--rps", Becomes::Part(Part::RatePerUser)),
    word("--no-tls-proto", Becomes::Part(Part::Protocol)),
    word("--npn-list", Becomes::Part(Part::Protocol)),
    word("--alpn-list", Becomes::Part(Part::Protocol)),
    word("--connection-inactivity-timeout", Flag("--timeout")),
    word("--connection-active-timeout", Refused("a connection lives as long as it is needed")),
    word("--warm-up-time", Refused("run it once before it counts")),
];

const AB: &[Word] = &[
    word("-q", NOTHING),
    word("-r", NOTHING),
    word("-d", NOTHING),
    word("-S", NOTHING),
    word("-I", NOTHING),
    word("-l", Words(&["--check", "status"])),
    word("-i", Words(&["--method", "HEAD"])),
    word("-s", Flag("--timeout")),
    word("-v", Harmless),
    word("-b", Harmless),
    word("-C", Field("Cookie")),
    word("-X", Flag("--proxy")),
    word("-p", Flag("--body")),
    word("-T", Field("Content-Type")),
    word("-m", Flag("--method")),
    word("-u", Refused("PUT is not asked; -p asks with POST")),
    word("-A", Refused("-H 'Authorization: Basic …' sends it")),
    word("-P", Refused("-H 'Proxy-Authorization: Basic …' sends it")),
    word("-B", Flag("--source")),
    word("-w", NUMBERS_AS_JSON),
    word("-e", NUMBERS_AS_JSON),
    word("-g", NUMBERS_AS_JSON),
    word("-f", Becomes::Part(Part::TlsVersion)),
    word("-Z", SUITES_OURS),
    word("-E", Refused("a client certificate is not shown")),
];

const SIEGE: &[Word] = &[
    word("-b", NOTHING),
    word("-v", NOTHING),
    word("-q", NOTHING),
    word("-j", NOTHING),
    word("-f", Flag("--urls")),
    word("-i", Words(&["--random"])),
    word("-d", Becomes::Part(Part::Delay)),
    word("-r", Becomes::Part(Part::Repetitions)),
    word("-A", Field("User-Agent")),
    word("-T", Field("Content-Type")),
    word("-m", Harmless),
    word("-l", NUMBERS_AS_JSON),
    word("-g", SEE_ONE),
    word("-p", SEE_ONE),
    word("-R", Refused("siege's settings are not read; larder bench --help lists the flags")),
];

const WRK: &[Word] = &[
    word("-t", Flag("--threads")),
    word("-d", Flag("--time")),
    word("-R", Flag("--rate")),
    word("-T", Flag("--timeout")),
    word("-L", Words(&["--latency"])),
    word("-B", NOTHING),
    word("-U", Refused("without --as the report shows both latencies, from intended and from send")),
    word("-s", NO_SCRIPT),
];

const H2LOAD: &[Word] = &[
    word("-t", Flag("--threads")),
    word("-D", Flag("--time")),
    word("-m", Becomes::Part(Part::Depth)),
    word("-i", Flag("--urls")),
    word("-d", Flag("--body")),
    word("-p", Becomes::Part(Part::Protocol)),
    word("-N", Flag("--timeout")),
    word("-v", NOTHING),
    word("-w", Harmless),
    word("-W", Harmless),
    word("-f", Harmless),
    word("-r", Refused("connections do not begin at a rate; --rps and --rate are about requests")),
    word("--rate", Refused("connections do not begin at a rate; --rps is about requests")),
    word("-T", Refused("a connection lives as long as it is needed")),
];

/// Letters whose meaning does not depend on whose they are, or shows in their value.
const ANY: &[Word] = &[
    word("-q", NOTHING),
    word("-b", NOTHING),
    word("-l", Words(&["--check", "status"])),
    word("-L", Words(&["--latency"])),
    word("-f", Flag("--urls")),
    word("-X", Flag("--proxy")),
    word("-R", Flag("--rate")),
    word("-D", Flag("--time")),
    word("-C", Field("Cookie")),
    word("-d", Becomes::Part(Part::DelayOrTime)),
    word("-s", Becomes::Part(Part::TimeoutOrScript)),
    word(
        "-i",
        Refused(
            "HEAD to ab, at random to siege, a file to h2load: --method HEAD, --random or --urls, or say --as TOOL",
        ),
    ),
    word("-r", Refused("ab's and siege's mean two things: say --as ab or --as siege; -n is how many requests in all")),
    word("-m", Refused("a method to ab, streams to h2load: --method or --streams, or say --as TOOL")),
    word("-p", Refused("a body to ab, a protocol to h2load: --body, or say --as TOOL")),
    word("-T", Refused("a content type to ab and siege, a time to wrk: -H or --timeout, or say --as TOOL")),
    word("-A", Refused("an account to ab, a name to siege: -H sends either")),
];

/// The table of a tool, before those words that all share.
pub const fn own_words(tool: Option<Tool>) -> &'static [Word] {
    match tool {
        Some(Tool::Ab) => AB,
        Some(Tool::Siege | Tool::SiegeText) => SIEGE,
        Some(Tool::Wrk | Tool::Wrk2) => WRK,
        Some(Tool::H2load) => H2LOAD,
        Some(Tool::HttpLoad | Tool::Httperf) | None => ANY,
    }
}
