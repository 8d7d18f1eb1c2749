//! The screen of a run of load: rate, goodput over time, percentiles, errors by kind, and who is busy.
//!
//! Drawn once a second. Keys are not read, so Ctrl-C is the signal that it always is. What is shown is in `RunNumbers`, which knows
//! no terminal; the drawing knows no run.

use std::collections::VecDeque;

use lab::limits::BUSY_SHARE_MAX;
use lab::{ErrorKind, Second, TreeUse};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph, Row, Sparkline, Table};

use crate::terminal_screen::{Keys, TerminalScreen};

/// Seconds that the curve may hold; a terminal is not wider.
const CURVE_SECONDS_MAX: usize = 512;

/// What is known until now.
#[derive(Default)]
pub struct RunNumbers {
    title: String,
    seconds: usize,
    last: Second,
    good: u64,
    failed: u64,
    body_bytes: u64,
    errors: Vec<u64>,
    all: Option<Second>,
    curve: VecDeque<u64>,
    /// Of the generator, in percent of one core, and of how many threads.
    pub client_busy_percent: f64,
    client_threads: usize,
    pub server: Option<ServerUse>,
}

/// The server's processes in the last second.
#[derive(Clone, Copy)]
pub struct ServerUse {
    pub cpu_percent: f64,
    pub tree: TreeUse,
}

impl RunNumbers {
    pub fn of_nothing_yet(title: String, client_threads: usize) -> RunNumbers {
        RunNumbers { title, client_threads, ..RunNumbers::default() }
    }

    pub fn add(&mut self, second: &Second) {
        self.seconds += 1;
        self.good += second.good;
        self.failed += second.failed;
        self.body_bytes += second.body_bytes;
        self.errors.resize(second.errors.len(), 0);
        self.errors.iter_mut().zip(second.errors).for_each(|(mine, theirs)| *mine += theirs);
        match &mut self.all {
            Some(all) => all.from_intended.add(&second.from_intended).expect("all seconds have the same bounds"),
            None => self.all = Some(second.clone()),
        }
        if self.curve.len() == CURVE_SECONDS_MAX {
            self.curve.pop_front();
        }
        self.curve.push_back(second.good);
        self.last = second.clone();
    }
}

/// A terminal that shows a run.
pub struct Screen(TerminalScreen);

impl Screen {
    /// Nothing where there is no terminal, or none that can do this.
    pub fn open() -> Option<Screen> {
        TerminalScreen::open(Keys::Unread).map(Screen)
    }

    /// A terminal that is gone is no reason to end a run.
    pub fn draw(&mut self, numbers: &RunNumbers) {
        let _ = self.0.draw(|frame| draw(frame, numbers));
    }
}

fn draw(frame: &mut Frame<'_>, numbers: &RunNumbers) {
    let [title, rate, curve, latency, errors, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(4),
        Constraint::Length(6),
        Constraint::Length(5),
        Constraint::Min(3),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let name = format!(" larder bench  {}  {} s ", numbers.title, numbers.seconds);
    frame.render_widget(Line::from(name).reversed(), title);
    frame.render_widget(rates(numbers), rate);
    draw_curve(frame, curve, numbers);
    frame.render_widget(latencies(numbers), latency);
    frame.render_widget(errors_table(numbers), errors);
    frame.render_widget(Line::from(" Ctrl-C ends the run and prints the report").dim(), foot);
}

fn rates(numbers: &RunNumbers) -> Paragraph<'static> {
    let last = &numbers.last;
    let mean = numbers.good as f64 / numbers.seconds.max(1) as f64;
    let failed = format!("{} failed", numbers.failed);
    let busy = format!("client {:.0} % of {} core(s)", numbers.client_busy_percent, numbers.client_threads);
    let is_bound = numbers.client_busy_percent > 100.0 * BUSY_SHARE_MAX * numbers.client_threads as f64;
    let mut who = vec![if is_bound { format!("{busy}: client-bound").yellow() } else { busy.into() }];
    if let Some(server) = &numbers.server {
        let memory = server.tree.resident_bytes as f64 / 1_048_576.0;
        let text = format!(
            "   server {:.0} % of a core, {memory:.1} MiB, {} process(es)",
            server.cpu_percent, server.tree.processes
        );
        who.push(if server.tree.processes == 0 { "   server is gone".red() } else { text.into() });
    }
    Paragraph::new(vec![
        Line::from(vec![
            format!(" {} good/s", last.good).green().bold(),
            format!("   {:.2} MiB/s   mean {mean:.0} good/s", last.body_bytes as f64 / 1_048_576.0).into(),
        ]),
        Line::from(vec![
            format!(" {} good, ", numbers.good).into(),
            if numbers.failed > 0 { failed.red().bold() } else { failed.into() },
            format!(", {:.1} MiB   {} connections open", numbers.body_bytes as f64 / 1_048_576.0, last.connections)
                .into(),
        ]),
        Line::from([vec![" ".into()], who].concat()),
    ])
}

fn draw_curve(frame: &mut Frame<'_>, area: Rect, numbers: &RunNumbers) {
    let block = Block::bordered().title(" good answers in each second ");
    let width = usize::from(block.inner(area).width);
    let skip = numbers.curve.len().saturating_sub(width);
    let values: Vec<u64> = numbers.curve.iter().skip(skip).copied().collect();
    frame.render_widget(Sparkline::default().data(&values).style(Style::new().fg(Color::Green)).block(block), area);
}

fn latencies(numbers: &RunNumbers) -> Table<'static> {
    let cells = |name: &str, second: Option<&Second>| {
        let values = second.map(|second| &second.from_intended).filter(|values| !values.is_empty());
        let at =
            |percent: f64| values.map_or_else(|| "–".to_owned(), |v| lab::show_micros(v.value_at_percentile(percent)));
        Row::new([name.to_owned(), at(50.0), at(90.0), at(99.0), at(99.9), at(100.0)])
    };
    let rows = [cells(" last second", Some(&numbers.last)), cells(" whole run", numbers.all.as_ref())];
    let widths = [Constraint::Length(13)].into_iter().chain([Constraint::Length(10); 5]);
    let header = Row::new(["", "p50", "p90", "p99", "p99.9", "max"]).dim();
    Table::new(rows, widths).header(header).block(Block::bordered().title(" latency from intended start "))
}

fn errors_table(numbers: &RunNumbers) -> Table<'static> {
    let count = |kind: &ErrorKind| numbers.errors.get(*kind as usize).copied().unwrap_or(0);
    let rows: Vec<Row<'static>> = ErrorKind::ALL
        .iter()
        .filter(|kind| count(kind) > 0)
        .map(|kind| {
            let last = numbers.last.errors[*kind as usize];
            Row::new([
                format!(" {}", kind.name()),
                count(kind).to_string(),
                format!("+{last}"),
                kind.meaning().to_owned(),
            ])
            .red()
        })
        .collect();
    let title = if rows.is_empty() { " no errors " } else { " errors: all, in the last second " };
    let widths = [Constraint::Length(20), Constraint::Length(9), Constraint::Length(8), Constraint::Min(10)];
    Table::new(rows, widths).block(Block::bordered().title(title))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn screen(numbers: &RunNumbers, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a made-up terminal");
        terminal.draw(|frame| draw(frame, numbers)).expect("it takes everything");
        terminal.backend().to_string()
    }

    fn numbers() -> RunNumbers {
        let mut numbers = RunNumbers { title: "http://a/".to_owned(), client_threads: 1, ..RunNumbers::default() };
        for good in [100, 200] {
            let mut second = Second { good, failed: 2, connections: 7, body_bytes: 1 << 20, ..Second::default() };
            second.errors[ErrorKind::BadBytes as usize] = 2;
            second.from_intended.record(1_500).expect("within the bounds");
            numbers.add(&second);
        }
        numbers
    }

    #[test]
    fn the_screen_shows_rates_latencies_and_errors_by_kind() {
        let mut numbers = numbers();
        let text = screen(&numbers, 90, 30);
        for part in
            ["200 good/s", "mean 150 good/s", "300 good, 4 failed", "7 connections", "p99.9", "1.5", "bad-bytes", "+2"]
        {
            assert!(text.contains(part), "{part}:\n{text}");
        }
        assert!(!text.contains("server") && !text.contains("client-bound"), "{text}");
        numbers.client_busy_percent = 95.0;
        let tree = TreeUse { processes: 3, cpu: Duration::ZERO, resident_bytes: 3 << 20 };
        numbers.server = Some(ServerUse { cpu_percent: 42.0, tree });
        let text = screen(&numbers, 90, 30);
        assert!(text.contains("client-bound") && text.contains("server 42 % of a core, 3.0 MiB, 3 process"), "{text}");
    }

    #[test]
    fn a_screen_of_any_size_can_be_drawn() {
        for (width, height) in [(1, 1), (20, 5), (300, 100)] {
            screen(&numbers(), width, height);
        }
        assert!(screen(&RunNumbers::default(), 80, 24).contains("no errors"));
    }
}
