//! `larder stat`: every figure, what it is and how fast it grows.

use proxy::Moment;
use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::Stylize;
use ratatui::text::Line;
use ratatui::widgets::{Row, Table};
use serde_json::Value;

use crate::admin_client::AdminFlags;
use crate::live_command::figures_source::StatusFigures;
use crate::live_command::live_flags::StatFlags;
use crate::live_command::stat_history::{SPANS_S, StatHistory};
use crate::live_command::view::View;

/// What one wants to see first, in this order; all others follow by their names.
const FIRST: [&str; 18] = [
    "requests",
    "hits",
    "hits_stale",
    "revalidated",
    "misses",
    "coalesced",
    "passes",
    "synths",
    "errors",
    "refused",
    "bytes_out",
    "origin_requests",
    "origin_retries",
    "origin_ejections",
    "connections.active",
    "objects",
    "memory.used_bytes",
    "memory.resident_bytes",
];
/// What a page key moves by.
const PAGE_ROWS: usize = 15;

pub struct StatView {
    larder: AdminFlags,
    begun: Moment,
    is_gone: bool,
    history: StatHistory,
    shows_zero: bool,
    /// The first row that is shown.
    from: usize,
}

impl StatView {
    pub fn open(flags: &StatFlags) -> Result<StatView, String> {
        let begun = Moment::now();
        let history = StatHistory::begin(StatusFigures::read(&flags.larder, begun)?);
        Ok(StatView { larder: flags.larder.clone(), begun, is_gone: false, history, shows_zero: false, from: 0 })
    }

    /// All figures, a line each.
    pub fn all(&self) -> String {
        let numbers = &self.history.newest().numbers;
        let width = numbers.keys().map(|name| name.chars().count()).max().unwrap_or(0);
        numbers.iter().map(|(name, value)| format!("{name:width$} {}\n", shown(*value))).collect()
    }

    /// The same, an object by their names.
    pub fn all_as_json(&self) -> String {
        let numbers = &self.history.newest().numbers;
        let all: serde_json::Map<String, Value> =
            numbers.iter().map(|(name, value)| (name.clone(), as_json(*value))).collect();
        format!("{}\n", Value::Object(all))
    }

    fn names(&self) -> Vec<&str> {
        let numbers = &self.history.newest().numbers;
        let first = FIRST.iter().copied().filter(|name| numbers.contains_key(*name));
        let others = numbers.keys().map(String::as_str).filter(|name| !FIRST.contains(name));
        first.chain(others).filter(|name| self.shows_zero || numbers[*name] != 0.0).collect()
    }

    /// Of the requests of a span that could come from the store.
    fn hit_percent(&self, rate: impl Fn(&str) -> Option<f64>) -> String {
        let sum = |names: &[&str]| names.iter().filter_map(|name| rate(name)).sum::<f64>();
        let from_store = sum(&["hits", "hits_stale"]);
        let all = from_store + sum(&["revalidated", "coalesced", "misses", "passes", "errors"]);
        if all > 0.0 { format!("{:.1} %", from_store * 100.0 / all) } else { "–".to_owned() }
    }

    fn rates(&self, name: &str) -> [Option<f64>; 4] {
        let [ten, hundred, thousand] = SPANS_S.map(|seconds| self.history.rate_over(seconds, name));
        [self.history.rate_now(name), ten, hundred, thousand]
    }
}

/// A whole number as it is, another with one digit behind the point.
fn shown(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

/// Whole numbers have no point in them, up to where all of them can be told apart.
fn as_json(value: f64) -> Value {
    let is_count = value.fract() == 0.0 && (0.0..9_007_199_254_740_992.0).contains(&value);
    if is_count { Value::from(value as u64) } else { Value::from(value) }
}

fn shown_rate(rate: Option<f64>) -> String {
    rate.map_or_else(|| "–".to_owned(), |rate| if rate < 10.0 { shown(rate) } else { format!("{rate:.0}") })
}

impl View for StatView {
    fn look(&mut self) -> Result<(), String> {
        match StatusFigures::read(&self.larder, self.begun) {
            Ok(figures) => {
                self.history.add(figures);
                self.is_gone = false;
            }
            Err(_) => self.is_gone = true,
        }
        Ok(())
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        let [title, ratios, table, foot] =
            Layout::vertical([Constraint::Length(1), Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)])
                .areas(frame.area());
        let up = self.history.newest().of("uptime_seconds") as u64;
        let up =
            format!(" larder stat   up {} d {:02}:{:02}:{:02} ", up / 86_400, up / 3_600 % 24, up / 60 % 60, up % 60);
        let gone = if self.is_gone { "  larder does not answer: waiting for it " } else { "" };
        frame.render_widget(Line::from(format!("{up}{gone}")).reversed(), title);
        let now = self.hit_percent(|name| self.history.rate_now(name));
        let over = SPANS_S.map(|seconds| self.hit_percent(|name| self.history.rate_over(seconds, name)));
        let line = format!(" from the store: now {now}   10 s {}   100 s {}   1,000 s {}", over[0], over[1], over[2]);
        frame.render_widget(Line::from(line).bold(), ratios);
        let rows = self.names().into_iter().skip(self.from).map(|name| {
            let value = shown(self.history.newest().of(name));
            let [now, ten, hundred, thousand] = self.rates(name).map(shown_rate);
            Row::new([format!(" {name}"), value, now, ten, hundred, thousand])
        });
        let widths =
            [Constraint::Min(24)].into_iter().chain([Constraint::Length(14)]).chain([Constraint::Length(9); 4]);
        let header = Row::new([" ", "value", "now/s", "10 s", "100 s", "1,000 s"]).dim();
        frame.render_widget(Table::new(rows, widths).header(header), table);
        frame.render_widget(Line::from(" q ends   ↑ ↓ PgUp PgDn move   v shows or hides zeros").dim(), foot);
    }

    fn key(&mut self, key: KeyCode) {
        let last = self.names().len().saturating_sub(1);
        self.from = match key {
            KeyCode::Up | KeyCode::Char('k') => self.from.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.from + 1,
            KeyCode::PageUp | KeyCode::Char('b') => self.from.saturating_sub(PAGE_ROWS),
            KeyCode::PageDown | KeyCode::Char(' ') => self.from + PAGE_ROWS,
            KeyCode::Home | KeyCode::Char('g') => 0,
            KeyCode::End | KeyCode::Char('G') => last,
            KeyCode::Char('v') => {
                self.shows_zero = !self.shows_zero;
                0
            }
            _ => self.from,
        }
        .min(last);
    }

    fn lines(&self) -> String {
        if self.is_gone {
            return "larder does not answer\n".to_owned();
        }
        let rate = |name: &str| shown_rate(self.history.rate_now(name));
        let newest = self.history.newest();
        format!(
            "requests/s {}  from the store {}  misses/s {}  passes/s {}  errors/s {}  origin requests/s {}  bytes/s {}  \
             connections {}  objects {}\n",
            rate("requests"),
            self.hit_percent(|name| self.history.rate_now(name)),
            rate("misses"),
            rate("passes"),
            rate("errors"),
            rate("origin_requests"),
            rate("bytes_out"),
            shown(newest.of("connections.active")),
            shown(newest.of("objects")),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn view() -> StatView {
        let figures = |second: u64| StatusFigures {
            at: Duration::from_secs(second),
            numbers: [("requests", 100.0), ("hits", 75.0), ("misses", 25.0), ("panics", 0.0), ("uptime_seconds", 1.0)]
                .map(|(name, each)| (name.to_owned(), each * second as f64))
                .into(),
        };
        let mut history = StatHistory::begin(figures(0));
        history.add(figures(1));
        history.add(figures(2));
        StatView {
            larder: AdminFlags::default(),
            begun: Moment::now(),
            is_gone: false,
            history,
            shows_zero: false,
            from: 0,
        }
    }

    fn screen(view: &StatView, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a made-up terminal");
        terminal.draw(|frame| view.draw(frame)).expect("it takes everything");
        terminal.backend().to_string()
    }

    #[test]
    fn figures_and_their_rates_fit_a_small_terminal() {
        let mut view = view();
        let text = screen(&view, 80, 24);
        for part in ["now 75.0 %", "requests", "200", "100", "v shows or hides zeros"] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
        assert!(!text.contains("panics"), "{text}");
        view.key(KeyCode::Char('v'));
        assert!(screen(&view, 80, 24).contains("panics"));
        for (width, height) in [(1, 1), (20, 5), (300, 100)] {
            screen(&view, width, height);
        }
    }

    #[test]
    fn figures_are_an_object_of_json() {
        let all: Value = serde_json::from_str(&view().all_as_json()).expect("it is JSON");
        assert_eq!((&all["requests"], &all["panics"]), (&Value::from(200), &Value::from(0)));
        assert_eq!((as_json(0.5), as_json(1e300)), (Value::from(0.5), Value::from(1e300)));
    }

    #[test]
    fn rows_move_and_stay_within_what_there_is() {
        let mut view = view();
        view.key(KeyCode::PageDown);
        assert_eq!(view.from, view.names().len() - 1);
        view.key(KeyCode::Home);
        view.key(KeyCode::Down);
        assert!(!screen(&view, 80, 24).contains(" requests "));
    }

    #[test]
    fn without_a_terminal_there_is_a_line_for_each_interval() {
        let view = view();
        assert!(view.lines().starts_with("requests/s 100  from the store 75.0 %  misses/s 25"), "{}", view.lines());
        assert!(view.all().contains("hits           150\n"), "{}", view.all());
    }
}
