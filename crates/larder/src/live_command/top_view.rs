//! `larder top`: the values of a field that occur most, or cost most, since it was started.

use std::sync::Arc;

use parking_lot::Mutex;
use proxy::Moment;
use proxy::events::{EventField, EventQuery};
use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::Stylize;
use ratatui::text::Line;
use ratatui::widgets::{Row, Table};
use serde_json::{Value, json};

use crate::live_command::figures_source::since;
use crate::live_command::live_flags::{TopFlags, TopOrder};
use crate::live_command::space_saving::KeptValue;
use crate::live_command::top_tally::{TopSums, TopTally};
use crate::live_command::view::View;
use crate::log_command::event_source::{EventSource, NextEvent};
use crate::log_command::shown_safely::shown_safely;
use crate::quantities::{counted, show_micros, show_size};

/// What `f` goes through.
const FIELDS: [&str; 10] = ["url", "path", "host", "client", "agent", "origin", "status", "class", "why", "route"];
/// Rows that are printed where there is no screen, and that a screen may have.
const LINES_MAX: usize = 10;
const ROWS_MAX: usize = 500;

pub struct TopView {
    seen: Arc<Mutex<Seen>>,
    order: TopOrder,
    /// Lines are for programs.
    as_json: bool,
}

/// What the thread that reads along has seen.
struct Seen {
    tally: TopTally,
    begun: Moment,
    is_interrupted: bool,
    failed: Option<String>,
}

impl Seen {
    fn nothing(by: &'static EventField) -> Seen {
        Seen { tally: TopTally::by(by), begun: Moment::now(), is_interrupted: false, failed: None }
    }

    fn take(&mut self, told: NextEvent) {
        match told {
            NextEvent::Event { event, .. } => self.tally.add(&event),
            NextEvent::Lost(count) => self.tally.untold += count,
            NextEvent::Interrupted => self.is_interrupted = true,
            NextEvent::Resumed => self.is_interrupted = false,
            NextEvent::End => {}
            NextEvent::Failed(why) => self.failed = Some(why),
        }
    }
}

impl TopView {
    pub fn open(flags: &TopFlags) -> Result<TopView, String> {
        EventQuery::parse(&flags.query).map_err(|error| format!("-q, {error}"))?;
        let by = EventField::named(&flags.by)
            .ok_or_else(|| format!("--by: no field is called `{}`; `larder log --fields` lists them", flags.by))?;
        let mut source = EventSource::live(&flags.larder, &flags.query, flags.rate, (None, &Arc::default()))?;
        let seen = Arc::new(Mutex::new(Seen::nothing(by)));
        let reads = Arc::clone(&seen);
        let thread = std::thread::Builder::new().name("larder-top".to_owned());
        thread
            .spawn(move || {
                // It ends with the program, or with what the larder refuses.
                while reads.lock().failed.is_none() {
                    let told = source.next();
                    reads.lock().take(told);
                }
            })
            .map_err(|error| format!("no thread can be started: {error}"))?;
        Ok(TopView { seen, order: flags.order, as_json: flags.json })
    }
}

impl Seen {
    fn title(&self, order: TopOrder) -> String {
        let seconds = since(self.begun).as_secs();
        let share = match self.tally.untold {
            0 => String::new(),
            _ => format!(", {:.1} % of all were looked at (--rate)", self.tally.share() * 100.0),
        };
        let gone = if self.is_interrupted { ", larder is gone: waiting for it" } else { "" };
        format!(
            "{} by {}, most {} first: {} in {seconds} s{share}{gone}",
            "larder top",
            self.tally.by.name,
            order_word(order),
            counted(self.tally.told, "exchange"),
        )
    }

    fn rows(&self, order: TopOrder, rows_max: usize) -> Vec<[String; 8]> {
        let seconds = since(self.begun).as_secs_f64().max(0.001);
        let share = self.tally.share().max(f64::MIN_POSITIVE);
        let row = |(value, kept): (String, KeptValue<TopSums>)| {
            let KeptValue { count, error, sums } = kept;
            // The sums are of what was counted since the value has its place.
            let counted = (count - error).max(1);
            let percent = |part: u64| format!("{:.0}%", part as f64 * 100.0 / counted as f64);
            [
                count.to_string(),
                format!("{:.1}", count as f64 / seconds / share),
                if error == 0 { String::new() } else { error.to_string() },
                percent(sums.from_store),
                percent(sums.failed),
                show_size((sums.bytes as f64 / share) as u64),
                show_micros(sums.micros / counted),
                shown_safely(&value),
            ]
        };
        self.tally.rows(order, rows_max).into_iter().map(row).collect()
    }
}

impl Seen {
    /// The same, for programs: times in microseconds.
    fn json(&self, order: TopOrder, rows_max: usize) -> Value {
        let seconds = since(self.begun).as_secs_f64().max(0.001);
        let share = self.tally.share().max(f64::MIN_POSITIVE);
        let row = |(value, kept): (String, KeptValue<TopSums>)| {
            let KeptValue { count, error, sums } = kept;
            json!({
                "value": value, "count": count, "error": error, "per_second": count as f64 / seconds / share,
                "from_store": sums.from_store, "failed": sums.failed, "bytes": sums.bytes,
                "mean_us": sums.micros / (count - error).max(1),
            })
        };
        let rows: Vec<Value> = self.tally.rows(order, rows_max).into_iter().map(row).collect();
        json!({
            "by": self.tally.by.name, "order": order_word(order), "seconds": seconds, "exchanges": self.tally.told,
            "share": share, "rows": rows,
        })
    }
}

const HEADS: [&str; 8] = ["COUNT", "/S", "ERR", "STORE", "5XX", "BYTES", "MEAN", "VALUE"];

fn order_word(order: TopOrder) -> &'static str {
    match order {
        TopOrder::Requests => "requests",
        TopOrder::Misses => "misses",
        TopOrder::Bytes => "bytes",
        TopOrder::Time => "time",
        TopOrder::Failed => "failures",
    }
}

impl View for TopView {
    fn look(&mut self) -> Result<(), String> {
        self.seen.lock().failed.take().map_or(Ok(()), Err)
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        let [title, table, foot] =
            Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)]).areas(frame.area());
        let seen = self.seen.lock();
        frame.render_widget(Line::from(format!(" {} ", seen.title(self.order))).reversed(), title);
        let rows = seen.rows(self.order, usize::from(table.height).min(ROWS_MAX)).into_iter().map(Row::new);
        let widths = [7, 7, 5, 5, 4, 9, 8].map(Constraint::Length).into_iter().chain([Constraint::Min(10)]);
        frame.render_widget(Table::new(rows, widths).header(Row::new(HEADS).dim()), table);
        frame.render_widget(Line::from(" q ends   o another order   f another field   r from nothing").dim(), foot);
    }

    fn key(&mut self, key: KeyCode) {
        let mut seen = self.seen.lock();
        match key {
            KeyCode::Char('o') => {
                let at = TopOrder::ALL.iter().position(|order| *order == self.order).unwrap_or(0);
                self.order = TopOrder::ALL[(at + 1) % TopOrder::ALL.len()];
            }
            KeyCode::Char('f') => {
                let at = FIELDS.iter().position(|name| *name == seen.tally.by.name).map_or(0, |at| at + 1);
                if let Some(by) = EventField::named(FIELDS[at % FIELDS.len()]) {
                    *seen = Seen { is_interrupted: seen.is_interrupted, ..Seen::nothing(by) };
                }
            }
            KeyCode::Char('r') => {
                *seen = Seen { is_interrupted: seen.is_interrupted, ..Seen::nothing(seen.tally.by) };
            }
            _ => {}
        }
    }

    fn lines(&self) -> String {
        let seen = self.seen.lock();
        if self.as_json {
            return format!("{}\n", seen.json(self.order, LINES_MAX));
        }
        let line = |cells: [String; 8]| {
            let [count, rate, error, store, failed, bytes, mean, value] = cells;
            format!("{count:>8} {rate:>8} {error:>6} {store:>6} {failed:>5} {bytes:>10} {mean:>9}  {value}\n")
        };
        let rows = seen.rows(self.order, LINES_MAX);
        let lines: String = std::iter::once(HEADS.map(str::to_owned)).chain(rows).map(line).collect();
        format!("{}\n{lines}\n", seen.title(self.order))
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::log_command::recorded_event::RecordedEvent;

    fn view() -> TopView {
        let mut seen = Seen::nothing(EventField::named("url").expect("a field"));
        for (url, status) in [("a.test/\\u001b[2J", 200), ("a.test/b", 502), ("a.test/b", 200)] {
            let line =
                format!("{{\"class\":\"hit\",\"url\":\"{url}\",\"status\":{status},\"bytes\":10,\"time.whole\":40}}");
            let event = RecordedEvent::parse(line.as_bytes()).expect("an object");
            seen.take(NextEvent::Event { line: Vec::new(), event });
        }
        TopView { seen: Arc::new(Mutex::new(seen)), order: TopOrder::Requests, as_json: false }
    }

    fn screen(view: &TopView, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a made-up terminal");
        terminal.draw(|frame| view.draw(frame)).expect("it takes everything");
        terminal.backend().to_string()
    }

    #[test]
    fn the_most_comes_first_and_no_url_moves_the_cursor() {
        let view = view();
        let text = screen(&view, 80, 24);
        assert!(text.find("a.test/b").expect("there") < text.find("a.test/\\u{1b}[2J").expect("there"), "{text}");
        assert!(text.contains("50%") && text.contains("3 exchanges"), "{text}");
        assert!(!view.lines().contains('\u{1b}'));
        for (width, height) in [(1, 1), (20, 5), (300, 100)] {
            screen(&view, width, height);
        }
    }

    #[test]
    fn programs_get_an_object_a_line() {
        let view = TopView { as_json: true, ..view() };
        let told: Value = serde_json::from_str(view.lines().trim_end()).expect("it is JSON");
        assert_eq!((told["by"].as_str(), told["exchanges"].as_u64()), (Some("url"), Some(3)));
        let first = &told["rows"][0];
        assert_eq!((first["value"].as_str(), first["count"].as_u64()), (Some("a.test/b"), Some(2)));
        assert_eq!((first["failed"].as_u64(), first["bytes"].as_u64()), (Some(1), Some(20)));
    }

    #[test]
    fn keys_change_order_and_field() {
        let mut view = view();
        view.key(KeyCode::Char('o'));
        assert_eq!(view.order, TopOrder::Misses);
        view.key(KeyCode::Char('f'));
        let seen = view.seen.lock();
        assert_eq!((seen.tally.by.name, seen.tally.told), ("path", 0));
    }

    #[test]
    fn a_share_is_said_and_a_larder_that_is_gone() {
        let view = view();
        view.seen.lock().take(NextEvent::Lost(9));
        view.seen.lock().take(NextEvent::Interrupted);
        let title = view.seen.lock().title(TopOrder::Requests);
        assert!(title.contains("25.0 % of all") && title.contains("larder is gone"), "{title}");
    }
}
