//! `larder hist`: how long answers took, those from the store beside those that an origin was asked for, on a logarithmic axis.

use std::collections::VecDeque;
use std::time::Duration;

use proxy::Moment;
use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Stylize;
use ratatui::text::Line;
use serde_json::{Value, json};

use crate::admin_client::AdminFlags;
use crate::live_command::figures_source::{metrics, since};
use crate::live_command::live_flags::{HistFlags, HistTime};
use crate::live_command::view::View;
use crate::quantities::show_micros;

/// Columns: answers of less than 2, 4, 8, … microseconds, and those beyond.
const COLUMNS: usize = 24;
/// What comes from the store; of the others those count that an origin was asked for.
const FROM_STORE: [&str; 3] = ["hit", "stale", "file"];
const FROM_ORIGINS: [&str; 5] = ["miss", "coalesced", "revalidated", "pass", "error"];
/// Signs of a column, and a blank.
const COLUMN_CELLS: usize = 3;

/// Answers by column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Columns {
    hits: [u64; COLUMNS],
    others: [u64; COLUMNS],
}

pub struct HistView {
    larder: AdminFlags,
    time: HistTime,
    window: Duration,
    /// Counts since larder's start, the newest last, of both times.
    kept: VecDeque<(Duration, [Columns; 2])>,
    begun: Moment,
    is_gone: bool,
    /// Lines are for programs.
    as_json: bool,
}

impl HistView {
    pub fn open(flags: &HistFlags) -> Result<HistView, String> {
        let first = (Duration::ZERO, read(&metrics(&flags.larder)?));
        Ok(HistView {
            larder: flags.larder.clone(),
            time: flags.time,
            window: flags.window,
            kept: VecDeque::from([first]),
            begun: Moment::now(),
            is_gone: false,
            as_json: flags.json,
        })
    }

    /// For programs: how many, and the microseconds below which so many in a hundred were.
    fn json(&self) -> Value {
        let columns = self.columns();
        let of = |counts: &[u64; COLUMNS]| {
            let [p50, p90, p99] = [50.0, 90.0, 99.0].map(|percent| percentile(counts, percent));
            json!({ "count": counts.iter().sum::<u64>(), "p50_us": p50, "p90_us": p90, "p99_us": p99, "by_power_of_two_us": counts })
        };
        json!({ "answers": !self.is_gone, "from_store": of(&columns.hits), "by_origins": of(&columns.others) })
    }

    /// What was answered within the window.
    fn columns(&self) -> Columns {
        let of = |counts: &[Columns; 2]| counts[self.time as usize];
        let (first, last) = match (self.kept.front(), self.kept.back()) {
            (Some((_, first)), Some((_, last))) => (of(first), of(last)),
            _ => return Columns::default(),
        };
        let grown = |from: [u64; COLUMNS], to: [u64; COLUMNS]| {
            // A larder that was restarted begins again at nothing.
            std::array::from_fn(|at| to[at].checked_sub(from[at]).unwrap_or(to[at]))
        };
        Columns { hits: grown(first.hits, last.hits), others: grown(first.others, last.others) }
    }

    fn title(&self) -> String {
        let columns = self.columns();
        let time = match self.time {
            HistTime::Whole => "to the last byte",
            HistTime::FirstByte => "to the first byte",
        };
        let (hits, others): (u64, u64) = (columns.hits.iter().sum(), columns.others.iter().sum());
        if self.is_gone {
            return "larder hist  larder does not answer: waiting for it".to_owned();
        }
        let (first, last) = (self.kept.front(), self.kept.back());
        let span =
            last.map_or(Duration::ZERO, |(at, _)| *at).saturating_sub(first.map_or(Duration::ZERO, |(at, _)| *at));
        let seconds = span.as_secs_f64().round();
        format!("larder hist  {time}, last {seconds} s: | {hits} from the store, # {others} by origins")
    }
}

/// Of the text of `/metrics`, both times.
fn read(metrics: &str) -> [Columns; 2] {
    let mut times = [Columns::default(); 2];
    for (time, name) in
        ["larder_response_seconds_bucket{", "larder_response_first_byte_seconds_bucket{"].iter().enumerate()
    {
        for class in FROM_STORE.iter().chain(&FROM_ORIGINS) {
            let mut below = 0;
            let prefix = format!("{name}class=\"{class}\",le=\"");
            for line in metrics.lines() {
                let Some((le, count)) = line.strip_prefix(&prefix).and_then(|rest| rest.split_once("\"} ")) else {
                    continue;
                };
                let count: u64 = count.trim().parse().unwrap_or(below);
                let column = column_of(le);
                let to = if FROM_STORE.contains(class) { &mut times[time].hits } else { &mut times[time].others };
                to[column] += count.saturating_sub(below);
                below = count;
            }
        }
    }
    times
}

/// By a bucket's upper end in seconds.
fn column_of(le: &str) -> usize {
    let Ok(seconds) = le.parse::<f64>() else { return COLUMNS - 1 };
    let micros = (seconds * 1e6).round().max(1.0);
    (micros.log2().floor() as usize).min(COLUMNS - 1)
}

/// Rows of text, the highest first.
fn bars(columns: &Columns, rows: usize) -> Vec<String> {
    let most = (0..COLUMNS).map(|at| columns.hits[at] + columns.others[at]).max().unwrap_or(0).max(1);
    // What was there at all is seen.
    let height = |count: u64| match count {
        0 => 0,
        count => (count as f64 * rows as f64 / most as f64).round().max(1.0) as usize,
    };
    let sign = |at: usize, row: usize| {
        let others = height(columns.others[at]);
        match row {
            row if row < others => '#',
            row if row < others + height(columns.hits[at]) => '|',
            _ => ' ',
        }
    };
    (0..rows)
        .rev()
        .map(|row| {
            (0..COLUMNS).flat_map(|at| [sign(at, row), sign(at, row), ' ']).collect::<String>().trim_end().to_owned()
        })
        .collect()
}

/// Under each fourth column, where it ends.
fn axis() -> String {
    let mut axis = String::new();
    for at in (0..COLUMNS).step_by(4) {
        let label = show_micros(1 << at).replace(".00", "").replace(".0 ", " ");
        axis.push_str(&format!("{label:<width$}", width = COLUMN_CELLS * 4));
    }
    axis
}

/// The upper end of the column in which so much of all is reached.
fn percentile(counts: &[u64; COLUMNS], percent: f64) -> Option<u64> {
    let all: u64 = counts.iter().sum();
    let wanted = (all as f64 * percent / 100.0).ceil().max(1.0) as u64;
    let mut reached = 0;
    counts
        .iter()
        .position(|count| {
            reached += count;
            all > 0 && reached >= wanted
        })
        .map(|at| 2 << at)
}

impl View for HistView {
    fn look(&mut self) -> Result<(), String> {
        let now = since(self.begun);
        let Ok(text) = metrics(&self.larder) else {
            self.is_gone = true;
            return Ok(());
        };
        self.is_gone = false;
        self.kept.push_back((now, read(&text)));
        // One that is as old as the window stays, to be compared with.
        while self.kept.get(1).is_some_and(|(at, _)| now.saturating_sub(*at) >= self.window) {
            self.kept.pop_front();
        }
        Ok(())
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        let [title, picture, axis_area, foot] =
            Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1), Constraint::Length(1)])
                .areas(frame.area());
        frame.render_widget(Line::from(format!(" {} ", self.title())).reversed(), title);
        let rows = bars(&self.columns(), usize::from(picture.height));
        for (row, text) in (picture.y..).zip(rows) {
            let area = Rect { y: row, height: 1, ..picture };
            frame.render_widget(Line::from(format!(" {text}")), area);
        }
        frame.render_widget(Line::from(format!(" {}", axis())).dim(), axis_area);
        frame.render_widget(Line::from(" q ends   t the other time").dim(), foot);
    }

    fn key(&mut self, key: KeyCode) {
        if key == KeyCode::Char('t') {
            self.time = match self.time {
                HistTime::Whole => HistTime::FirstByte,
                HistTime::FirstByte => HistTime::Whole,
            };
        }
    }

    fn lines(&self) -> String {
        if self.as_json {
            return format!("{}\n", self.json());
        }
        if self.is_gone {
            return "larder does not answer\n".to_owned();
        }
        let columns = self.columns();
        let of = |counts: &[u64; COLUMNS]| {
            let at = |percent| {
                percentile(counts, percent)
                    .map_or_else(|| "–".to_owned(), |micros| format!("< {}", show_micros(micros)))
            };
            format!("{} (50 % {}, 90 % {}, 99 % {})", counts.iter().sum::<u64>(), at(50.0), at(90.0), at(99.0))
        };
        format!("from the store {}   by origins {}\n", of(&columns.hits), of(&columns.others))
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn metrics_of(hits: [u64; 2], misses: u64) -> String {
        format!(
            "larder_response_seconds_bucket{{class=\"hit\",le=\"0.000015\"}} {}\n\
             larder_response_seconds_bucket{{class=\"hit\",le=\"0.000031\"}} {}\n\
             larder_response_seconds_bucket{{class=\"hit\",le=\"+Inf\"}} {1}\n\
             larder_response_seconds_bucket{{class=\"miss\",le=\"0.002047\"}} {misses}\n\
             larder_response_seconds_bucket{{class=\"miss\",le=\"+Inf\"}} {misses}\n\
             larder_response_first_byte_seconds_bucket{{class=\"miss\",le=\"0.001023\"}} {misses}\n",
            hits[0],
            hits[0] + hits[1],
        )
    }

    fn view(kept: &[String]) -> HistView {
        HistView {
            larder: AdminFlags::default(),
            time: HistTime::Whole,
            window: Duration::from_secs(10),
            kept: kept.iter().zip(0..).map(|(text, at)| (Duration::from_secs(at), read(text))).collect(),
            begun: Moment::now(),
            is_gone: false,
            as_json: false,
        }
    }

    #[test]
    fn programs_get_an_object_a_line() {
        let view = HistView { as_json: true, ..view(&[metrics_of([1, 1], 1), metrics_of([101, 11], 5)]) };
        let told: Value = serde_json::from_str(view.lines().trim_end()).expect("it is JSON");
        let of = |which: &str, key: &str| told[which][key].as_u64();
        assert_eq!(
            (of("from_store", "count"), of("from_store", "p50_us"), of("from_store", "p99_us")),
            (Some(110), Some(16), Some(32))
        );
        assert_eq!((of("by_origins", "count"), told["answers"].as_bool()), (Some(4), Some(true)));
    }

    #[test]
    fn what_came_within_the_window_is_counted_by_column() {
        let mut view = view(&[metrics_of([1, 1], 1), metrics_of([101, 11], 5)]);
        let columns = view.columns();
        assert_eq!((columns.hits[3], columns.hits[4], columns.others[10]), (100, 10, 4));
        assert_eq!(
            view.lines(),
            "from the store 110 (50 % < 16 µs, 90 % < 16 µs, 99 % < 32 µs)   by origins 4 (50 % < 2.04 ms, 90 % < 2.04 ms, 99 % < 2.04 ms)\n"
        );
        view.key(KeyCode::Char('t'));
        assert_eq!(view.columns().others[9], 4);
    }

    #[test]
    fn the_picture_fits_a_small_terminal() {
        let view = view(&[metrics_of([0, 0], 0), metrics_of([100, 10], 5)]);
        let screen = |width, height| {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a made-up terminal");
            terminal.draw(|frame| view.draw(frame)).expect("it takes everything");
            terminal.backend().to_string()
        };
        let text = screen(80, 24);
        assert!(
            text.contains("| 110 from the store, # 5 by origins") && text.contains("##") && text.contains("||"),
            "{text}"
        );
        assert!(text.contains("65.5 ms"), "{text}");
        for (width, height) in [(1, 1), (20, 5), (300, 100)] {
            screen(width, height);
        }
    }

    #[test]
    fn the_axis_has_a_label_for_each_fourth_column() {
        assert_eq!(axis().split_whitespace().collect::<Vec<_>>().join(" "), "1 µs 16 µs 256 µs 4.09 ms 65.5 ms 1.04 s");
        assert!(axis().chars().count() <= 78);
    }
}
