//! The demo's numbers as they change: on a terminal a small picture that is drawn again each second, elsewhere a line for each second in
//! which somebody asked for something; and what is said at the end. Text in, text out; who prints it is `demo.rs`.

use std::collections::VecDeque;

use lab::lab_report::grouped;

use crate::admin::observation::Observation;
use crate::quantities::{show_micros, show_size};

/// Rates are shown of so many seconds.
const HISTORY_SECONDS: usize = 40;
const BAR_CELLS: usize = 40;
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// How it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewStyle {
    /// Lines, to be read later.
    Lines,
    Picture {
        colours: bool,
    },
}

pub struct LiveView {
    style: ViewStyle,
    first: Observation,
    last: Observation,
    /// Requests of the last seconds, the newest one last.
    rates: VecDeque<u64>,
    lines_drawn: usize,
}

/// What happened between two observations.
struct Span<'a> {
    from: &'a Observation,
    to: &'a Observation,
}

/// ANSI colours of the two bars.
#[derive(Clone, Copy)]
enum Colour {
    Green,
    Yellow,
}

impl Span<'_> {
    fn grown(&self, name: &str) -> u64 {
        self.to.counter(name).saturating_sub(self.from.counter(name))
    }

    fn sum(&self, names: &[&str]) -> u64 {
        names.iter().map(|name| self.grown(name)).sum()
    }

    fn requests(&self) -> u64 {
        self.grown("requests")
    }

    fn of_store(&self) -> u64 {
        self.sum(&["hits", "hits_stale"])
    }

    fn of_origin(&self) -> u64 {
        self.sum(&["misses", "revalidated", "coalesced", "passes", "errors"])
    }

    /// Of all that could come from the store, in thousandths; `None` where nothing could.
    fn store_permille(&self) -> Option<u64> {
        (self.of_store() * 1_000).checked_div(self.of_store() + self.of_origin())
    }

    fn percentile(&self, hits: bool, percent: f64) -> String {
        let of = |seen: &Observation| match hits {
            true => seen.exchanges.latency_hit(),
            false => seen.exchanges.latency_origin(),
        };
        of(self.to).since(&of(self.from)).percentile_micros(percent).map_or("–".to_owned(), show_micros)
    }
}

impl LiveView {
    pub fn new(style: ViewStyle, first: Observation) -> LiveView {
        LiveView { style, last: first.clone(), first, rates: VecDeque::new(), lines_drawn: 0 }
    }

    /// What is to be printed a second after the last time.
    pub fn second(&mut self, now: Observation) -> String {
        let span = Span { from: &self.last, to: &now };
        let requests = span.requests();
        self.rates.push_back(requests);
        if self.rates.len() > HISTORY_SECONDS {
            self.rates.pop_front();
        }
        let text = match self.style {
            ViewStyle::Lines if requests == 0 => String::new(),
            ViewStyle::Lines => format!("{}\n", line(&span)),
            ViewStyle::Picture { colours } => {
                let lines = picture(&span, &self.rates, colours);
                let again = std::mem::replace(&mut self.lines_drawn, lines.len());
                drawn(again, &lines)
            }
        };
        self.last = now;
        text
    }

    /// What is said when the demo ends.
    pub fn goodbye(&self, now: &Observation) -> String {
        let whole = Span { from: &self.first, to: now };
        let seconds = now.uptime_ms.saturating_sub(self.first.uptime_ms) / 1_000;
        let requests = whole.requests();
        if requests == 0 {
            return "\nGoodbye. Nobody asked for anything since the measurement.\n".to_owned();
        }
        let share = whole.store_permille().map_or("–".to_owned(), |permille| format!("{} %", permille / 10));
        format!(
            "\nGoodbye. In {seconds} s larder answered {} requests, {share} of them from the store; the site was asked {} times.\n\
             Half of the hits took {} or less, of the others {}.\n\
             `larder init` writes a larder.toml for a site of yours.\n",
            grouped(requests),
            grouped(whole.grown("origin_requests")),
            whole.percentile(true, 50.0),
            whole.percentile(false, 50.0),
        )
    }
}

/// All of a second in one line.
fn line(span: &Span<'_>) -> String {
    let share = span
        .store_permille()
        .map_or("nobody asks".to_owned(), |permille| format!("{} % from the store", permille / 10));
    format!(
        "{} requests/s, {share}; median hit {}, from the origin {}; {} objects in {}; {} connections",
        span.requests(),
        span.percentile(true, 50.0),
        span.percentile(false, 50.0),
        span.to.cache.objects,
        show_size(span.to.cache.memory_bytes),
        span.to.counter("connections_active"),
    )
}

/// Lines of 80 columns at most.
fn picture(span: &Span<'_>, rates: &VecDeque<u64>, colours: bool) -> Vec<String> {
    let share = |permille: Option<u64>| permille.map_or("–".to_owned(), |permille| format!("{} %", permille / 10));
    let store = span.store_permille();
    let origin = store.map(|permille| 1_000 - permille);
    let shown = |permille: Option<u64>, colour| coloured(&bar(permille.unwrap_or(0)), colour, colours);
    let latency = |hits| format!("{:>10}{:>14}", span.percentile(hits, 50.0), span.percentile(hits, 99.0));
    vec![
        format!("  requests/s   {:>10}  {}", grouped(span.requests()), sparkline(rates)),
        format!("  from store   {:>10}  {}", share(store), shown(store, Colour::Green)),
        format!("  from origin  {:>10}  {}", share(origin), shown(origin, Colour::Yellow)),
        format!("  {:<13}{:>10}{:>14}", "latency", "median", "99 %"),
        format!("    hit        {}", latency(true)),
        format!("    miss       {}", latency(false)),
        format!(
            "  {} objects in {}, {} connections",
            grouped(span.to.cache.objects),
            show_size(span.to.cache.memory_bytes),
            grouped(span.to.counter("connections_active")),
        ),
    ]
}

/// Over the lines that stand there, if any do.
fn drawn(lines_before: usize, lines: &[String]) -> String {
    let up = if lines_before > 0 { format!("\x1b[{lines_before}A") } else { String::new() };
    let lines: String = lines.iter().map(|line| format!("\r\x1b[K{line}\n")).collect();
    up + &lines
}

fn coloured(text: &str, colour: Colour, colours: bool) -> String {
    let code = match colour {
        Colour::Green => 32,
        Colour::Yellow => 33,
    };
    if colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

/// Something is seen of what is not nothing.
fn bar(permille: u64) -> String {
    let eighths = (permille as usize * BAR_CELLS * 8).div_ceil(1_000);
    let mut text: String = std::iter::repeat_n('█', eighths / 8).collect();
    if !eighths.is_multiple_of(8) {
        text.push(EIGHTHS[eighths % 8]);
    }
    text
}

fn sparkline(rates: &VecDeque<u64>) -> String {
    let most = rates.iter().copied().max().unwrap_or(0).max(1);
    let level = |rate: &u64| LEVELS[(*rate as usize * (LEVELS.len() - 1)).div_ceil(most as usize)];
    rates.iter().map(level).collect()
}

#[cfg(test)]
mod tests {
    use proxy::access_log::CacheVerdict;
    use proxy::counters::COUNTERS;

    use super::*;
    use crate::admin::observation::tests::sample;

    /// So many hits and misses later.
    fn later(mut seen: Observation, hits: u64, misses: u64) -> Observation {
        for (value, counter) in seen.counters.iter_mut().zip(COUNTERS) {
            *value += match counter.name {
                "requests" => hits + misses,
                "hits" => hits,
                "misses" | "origin_requests" => misses,
                _ => 0,
            };
        }
        seen.exchanges.whole[CacheVerdict::Hit as usize].buckets[10] += hits;
        seen.exchanges.whole[CacheVerdict::Miss as usize].buckets[30] += misses;
        seen.uptime_ms += 1_000;
        seen
    }

    #[test]
    fn a_line_tells_of_the_last_second() {
        let mut view = LiveView::new(ViewStyle::Lines, sample());
        assert_eq!(view.second(sample()), "");
        let line = view.second(later(sample(), 150, 50));
        let expect = "200 requests/s, 75 % from the store; median hit 47 µs, from the origin 49.1 ms; 5 objects";
        assert!(line.starts_with(expect) && line.ends_with(" connections\n"), "{line}");
        assert!(!line.contains('\x1b'));
    }

    /// What a terminal shows after this text.
    fn screen(text: &str) -> Vec<String> {
        let (mut lines, mut at): (Vec<String>, usize) = (Vec::new(), 0);
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            if let Some((up, after)) = rest.strip_prefix("\x1b[").and_then(|code| code.split_once('A'))
                && let Ok(up) = up.parse::<usize>()
            {
                (at, rest) = (at - up, after);
            } else if let Some(after) = rest.strip_prefix("\r\x1b[K") {
                if at == lines.len() {
                    lines.push(String::new());
                }
                lines[at].clear();
                rest = after;
            } else {
                if c == '\n' {
                    at += 1
                } else {
                    lines[at].push(c)
                }
                rest = &rest[c.len_utf8()..];
            }
        }
        lines
    }

    #[test]
    fn a_picture_is_drawn_over_the_former_one_and_fits() {
        let mut view = LiveView::new(ViewStyle::Picture { colours: false }, sample());
        let mut seen = sample();
        let mut text = String::new();
        for _ in 0..HISTORY_SECONDS + 5 {
            seen = later(seen, 1_234_567, 1);
            text += &view.second(seen.clone());
        }
        seen = later(seen, 30, 10);
        text += &view.second(seen);
        let shown = screen(&text);
        assert_eq!(shown.len(), 7, "{shown:#?}");
        assert!(shown.iter().all(|line| line.chars().count() <= 79), "{shown:#?}");
        assert_eq!(shown[0], format!("  requests/s           40  {}▂", "█".repeat(HISTORY_SECONDS - 1)));
        assert_eq!(shown[1], format!("  from store         75 %  {}", "█".repeat(30)));
        assert_eq!(shown[2], format!("  from origin        25 %  {}", "█".repeat(10)));
        assert_eq!(shown[4], "    hit             47 µs         47 µs");
    }

    #[test]
    fn without_colours_there_are_none() {
        let rates = VecDeque::from([1]);
        let (from, to) = (sample(), later(sample(), 9, 1));
        let text = |colours| picture(&Span { from: &from, to: &to }, &rates, colours).join("\n");
        assert!(text(true).contains("\x1b[32m█") && text(true).contains("\x1b[0m"));
        assert!(!text(false).contains('\x1b'));
    }

    #[test]
    fn a_little_is_seen_as_a_little() {
        assert_eq!((bar(0).as_str(), bar(1).as_str(), bar(1_000).chars().count()), ("", "▏", BAR_CELLS));
        assert_eq!(sparkline(&VecDeque::from([0, 1, 50, 100])), "▁▂▅█");
        assert_eq!(sparkline(&VecDeque::from([0, 0])), "▁▁");
    }

    #[test]
    fn goodbye_sums_up() {
        let view = LiveView::new(ViewStyle::Lines, sample());
        assert!(view.goodbye(&sample()).contains("Nobody asked"));
        let said = view.goodbye(&later(sample(), 1_500, 500));
        assert!(
            said.contains(
                "In 1 s larder answered 2,000 requests, 75 % of them from the store; the site was asked 500 times."
            ),
            "{said}"
        );
    }
}
