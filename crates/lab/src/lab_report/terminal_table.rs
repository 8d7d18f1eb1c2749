//! The matrix on a terminal: rows × servers, then what follows from it, in as many columns as there are.
//!
//! A cell is three lines: goodput with its place, p50 / p99, CPU for each answer with its place. A letter says what
//! the page says by colour, so the table reads the same in a log file. When the servers do not fit beside one another
//! they follow in groups. Whoever calls knows whether there is a terminal.

use std::fmt::Write;

use super::cell_words::{
    change_with_interval, colour_mark, counted, metric_value, micros, per_second, percent, plain, significant,
    verdict_words, wrapped,
};
use super::ranking::{Places, places};
use super::verdict_sentences::{noise_floor, sentences};
use crate::results::{Bound, Cell, Colour, LabResults, Metric, ServerUsed, Verdict};

/// What the terminal can show.
#[derive(Clone, Copy, Debug)]
pub struct TableForm {
    pub width_columns: usize,
    /// Colour the cells' background by ANSI sequences.
    pub ansi: bool,
}

const CELL_COLUMNS: usize = 20;
const ROW_COLUMNS_MAX: usize = 34;
/// Of a ratio with its interval.
const INTERVAL_COLUMNS: usize = 31;
const LINES: usize = 3;
/// What the letters and the lines of a cell mean.
const LETTERS: &str = "letters: y fewer than 0.1 % failed, O fewer than 10 %, R more, a bad byte or a crash, c client-bound, \
                       - not run. #1 is the place in the row; overlapping intervals share one.";
const LINES_OF_A_CELL: &str = "lines of a cell: goodput (in brackets where it ranks nobody); p50 / p99; CPU of the server for \
                               each answer. Of held connections: memory for each; p50 / p99.";

/// The whole report for a terminal.
pub fn table(results: &LabResults, form: TableForm) -> String {
    let mut out = format!("{}\n", plain(&results.title));
    if !results.about.is_empty() {
        out.push_str(&wrapped(&plain(&results.about), form.width_columns, "", ""));
    }
    let conditions = format!(
        "{} · {} blocks of {} s · seed {} · begun {}{}",
        machine(results),
        results.method.blocks,
        significant(results.method.slice_seconds),
        results.method.seed,
        plain(&results.begun),
        if results.smoke { " · smoke" } else { "" },
    );
    out.push_str(&wrapped(&conditions, form.width_columns, "", "  "));
    out.push('\n');
    matrix(&mut out, results, form);
    let section = |out: &mut String, name, lines| section(out, form, name, lines);
    section(&mut out, "what it shows", sentences(results));
    differences(&mut out, results);
    section(&mut out, "noise: what the same server twice differed by", noise(results).collect());
    section(&mut out, "warnings", results.warnings.clone());
    section(&mut out, "took no part", skipped(results).collect());
    if !results.repeat.is_empty() {
        let _ = writeln!(out, "to repeat it: {}", plain(&results.repeat));
    }
    out
}

fn section(out: &mut String, form: TableForm, name: &str, lines: Vec<String>) {
    if !lines.is_empty() {
        let _ = writeln!(out, "{name}");
        lines.iter().for_each(|line| out.push_str(&wrapped(&plain(line), form.width_columns, "  ", "    ")));
        out.push('\n');
    }
}

fn machine(results: &LabResults) -> String {
    let machine = &results.machine;
    // What a kernel adds in brackets is who built it.
    let kernel = machine.kernel.split(" (").next().unwrap_or_default();
    format!("{}, {}, {}", plain(&machine.cpu_model), counted(machine.cpus, "CPU"), plain(kernel))
}

fn matrix(out: &mut String, results: &LabResults, form: TableForm) {
    let places = places(results);
    let taking_part: Vec<&ServerUsed> = results.servers.iter().filter(|server| server.skipped.is_none()).collect();
    let longest = results.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    let row_columns = longest.clamp(8, ROW_COLUMNS_MAX) + 2;
    let at_once = (form.width_columns.saturating_sub(row_columns) / CELL_COLUMNS).max(1);
    for group in taking_part.chunks(at_once) {
        out.push_str(&" ".repeat(row_columns));
        for server in group {
            out.push_str(&fitted(&plain(&server.name), CELL_COLUMNS));
        }
        out.push('\n');
        for row in &results.rows {
            let cells: Vec<Option<(&Cell, Places)>> = group
                .iter()
                .map(|server| {
                    let of_both = |cell: &Cell| cell.server == server.name && cell.row == row.name;
                    let index = results.cells.iter().position(of_both)?;
                    Some((&results.cells[index], places[index]))
                })
                .collect();
            matrix_row(out, &plain(&row.name), row_columns, &cells, form.ansi);
        }
    }
    for explained in [LINES_OF_A_CELL, LETTERS] {
        out.push_str(&wrapped(explained, form.width_columns, "", "  "));
    }
    out.push('\n');
}

fn matrix_row(out: &mut String, name: &str, columns: usize, cells: &[Option<(&Cell, Places)>], ansi: bool) {
    let lines: Vec<[String; LINES]> = cells
        .iter()
        .map(|cell| cell.map_or_else(Default::default, |(cell, places)| cell_lines(cell, places)))
        .collect();
    let mut words = name.split(' ').peekable();
    for line in 0..LINES {
        // A long name goes on beneath itself.
        let mut part = words.next().unwrap_or_default().to_owned();
        let fits = |part: &str, word: &str| part.chars().count() + 1 + word.chars().count() < columns;
        while let Some(word) = words.next_if(|word| line == LINES - 1 || fits(&part, word)) {
            part = format!("{part} {word}");
        }
        let mut text = fitted(&part, columns);
        for (cell, lines) in cells.iter().zip(&lines) {
            let shown = fitted(&lines[line], CELL_COLUMNS);
            match cell.filter(|_| ansi).and_then(|(cell, _)| background(cell)) {
                // The last column stays uncoloured, to keep neighbours apart.
                Some(code) => {
                    let body: String = shown.chars().take(CELL_COLUMNS - 1).collect();
                    let _ = write!(text, "\x1b[{code}m{body}\x1b[0m ");
                }
                None => text.push_str(&shown),
            }
        }
        let _ = writeln!(out, "{}", text.trim_end());
    }
    out.push('\n');
}

fn cell_lines(cell: &Cell, places: Places) -> [String; LINES] {
    if cell.colour == Colour::White {
        return ["- not run".to_owned(), cell.why.first().map_or_else(String::new, |why| plain(why)), String::new()];
    }
    let place = |place: Option<usize>| place.map_or_else(String::new, |place| format!(" #{place}"));
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    let bound = if cell.bound == Bound::Client { "c" } else { "" };
    let marks = format!("{}{bound}", colour_mark(cell.colour));
    // In brackets: it is what was counted, and ranks nobody.
    let goodput = or_dash(cell.goodput_per_second.map(|goodput| match cell.ranks_throughput {
        true => per_second(goodput.median),
        false => format!("({})", per_second(goodput.median)),
    }));
    let p50 = or_dash(cell.p50_micros.map(|p50| micros(p50.median)));
    let p99 = or_dash(cell.p99_micros.map(|p99| micros(p99.median)));
    let cpu = or_dash(cell.server_micros_per_answer.map(|cpu| format!("{} µs CPU", significant(cpu.median))));
    let latency = format!("{p50} / {p99}{}", place(places.p99));
    if let Some(held) = cell.bytes_per_connection {
        let held = metric_value(Metric::BytesPerConnection, held.median);
        return [format!("{held} each{} {marks}", place(places.bytes_per_connection)), latency, String::new()];
    }
    [
        format!("{goodput}{} {marks}", place(places.goodput)),
        latency,
        format!("{cpu}{}", place(places.server_micros_per_answer)),
    ]
}

/// Black on the colour; the colours of the page, from the 256 that terminals agree on.
fn background(cell: &Cell) -> Option<&'static str> {
    match (cell.colour, cell.bound) {
        (Colour::Red, _) => Some("30;48;5;210"),
        (Colour::Orange, _) => Some("30;48;5;215"),
        (Colour::White, _) => None,
        (_, Bound::Client) => Some("30;48;5;250"),
        (Colour::LightYellow, _) => Some("30;48;5;229"),
        (Colour::Clean, _) => Some("30;48;5;194"),
    }
}

fn differences(out: &mut String, results: &LabResults) {
    let shown: Vec<_> = results.differences.iter().filter(|d| d.verdict != Verdict::NotRanked).collect();
    if shown.is_empty() {
        return;
    }
    let reference = plain(&results.method.reference);
    let _ = writeln!(out, "differences against {reference} (median of the ratios within blocks, 95 % interval)");
    for metric in Metric::ALL {
        // A row's name stands once, over its servers: cut to a column, the names of two rows may be one.
        let mut row = None;
        for difference in shown.iter().filter(|difference| difference.metric == metric) {
            if row != Some(&difference.row) {
                row = Some(&difference.row);
                let _ = writeln!(out, "  {} · {}", metric.words(), plain(&difference.row));
            }
            let _ = writeln!(
                out,
                "    {}{}{}",
                fitted(&plain(&difference.server), CELL_COLUMNS),
                fitted(&change_with_interval(&difference.ratio), INTERVAL_COLUMNS),
                verdict_words(difference.verdict),
            );
        }
    }
    out.push('\n');
}

fn noise(results: &LabResults) -> impl Iterator<Item = String> {
    Metric::ALL.into_iter().filter_map(|metric| {
        noise_floor(results, metric).map(|gap| format!("{}: {} at most", metric.words(), percent(gap)))
    })
}

fn skipped(results: &LabResults) -> impl Iterator<Item = String> {
    results
        .servers
        .iter()
        .filter_map(|server| server.skipped.as_ref().map(|why| format!("{}: {}", plain(&server.name), plain(why))))
}

/// Exactly so many columns, the last of them a space.
fn fitted(text: &str, columns: usize) -> String {
    let length = text.chars().count();
    match length < columns {
        true => format!("{text}{}", " ".repeat(columns - length)),
        false => format!("{}… ", text.chars().take(columns - 2).collect::<String>()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::example_results::{HOSTILE, example};
    use super::*;

    fn check(width_columns: usize, ansi: bool, has: &[&str], has_not: &[&str]) {
        let text = table(&example(), TableForm { width_columns, ansi });
        for part in has {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
        for part in has_not {
            assert!(!text.contains(part), "{part:?} in\n{text}");
        }
    }

    #[test]
    fn the_table_says_what_the_page_says() {
        let words = ["larder", "#1", "/s) c", "R", "- not run", "apt install trafficserver", "noise", "to repeat it"];
        check(140, false, &words, &["\x1b", HOSTILE]);
        check(140, true, &["\x1b[30;48;5;194m", "\x1b[30;48;5;210m", "\x1b[0m"], &[]);
    }

    #[test]
    fn a_narrow_terminal_gets_groups() {
        let wide = table(&example(), TableForm { width_columns: 400, ansi: false });
        let narrow = table(&example(), TableForm { width_columns: 60, ansi: false });
        assert!(narrow.lines().count() > wide.lines().count() + 20);
        // All but what is to be pasted, and names that have a line of their own.
        let text = narrow.split("differences against").next().unwrap().lines().skip(4);
        for line in
            text.chain(narrow.split("noise: what").nth(1).unwrap().split("to repeat it").next().unwrap().lines())
        {
            assert!(line.chars().count() <= 60, "{line:?} in\n{narrow}");
        }
    }

    #[test]
    fn texts_are_cut_to_their_columns() {
        assert_eq!(fitted("abc", 5), "abc  ");
        assert_eq!(fitted("abcde", 5), "abc… ");
    }
}
