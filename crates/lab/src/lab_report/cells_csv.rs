//! The run as CSV, for spreadsheets and data frames: a line for each cell, and one for each of its blocks.
//!
//! `record` tells the two apart: `cell` lines hold medians with their 95 % intervals (`_low`, `_high`) and sums over
//! the blocks, `block` lines one server's slice of one block; a column that has no meaning for a record is empty.
//! Times are in the unit of their column's name, shares between 0 and 1. RFC 4180, except that lines end in LF.

use std::fmt::Write;

use super::ranking::{Places, places};
use crate::results::{Block, Cell, Estimate, HandshakesSeen, LabResults, RowUsed, ServerUsed};

/// The first line; a new column goes to the end.
const COLUMNS: &str = "\
    record,server,version,row,family,size_bytes,urls,connections,keep_alive,rate_per_second,colour,\
    bound,ranks_throughput,goodput_place,cpu_place,p99_place,block,at_seconds,elapsed_seconds,good,\
    failed,body_bytes,goodput_per_second,goodput_per_second_low,goodput_per_second_high,\
    server_micros_per_answer,server_micros_per_answer_low,server_micros_per_answer_high,p50_micros,\
    p50_micros_low,p50_micros_high,p99_micros,p99_micros_low,p99_micros_high,max_micros,\
    connections_opened,client_busy_share,server_busy_share,server_cpu_seconds,server_user_seconds,\
    server_system_seconds,server_pss_bytes,server_fds,server_threads,server_voluntary_switches,\
    server_involuntary_switches,origin_requests,restarted,errors,why,steady,bytes_per_connection,bytes_per_connection_low,bytes_per_connection_high,send_lag_p99_micros,\
    server_died,tls,http2,streams,resume,handshakes,handshakes_resumed,handshake_p50_micros,\
    encoding,text_bytes";

/// A line with the names of the columns, then the records.
pub fn csv(results: &LabResults) -> String {
    let mut out = COLUMNS.to_owned();
    out.push('\n');
    for (cell, places) in results.cells.iter().zip(places(results)) {
        let server = results.servers.iter().find(|server| server.name == cell.server);
        let row = results.rows.iter().find(|row| row.name == cell.row);
        let subject = subject(cell, server, row);
        let mut record = |kind: &str, fields: Vec<String>, blocks: &[Block]| {
            let last = [handshakes_of(blocks).to_vec(), coded(row, blocks).to_vec()].concat();
            line(&mut out, [vec![kind.to_owned()], subject.clone(), fields, spoken(row), last].concat());
        };
        record("cell", cell_fields(cell, places), &cell.blocks);
        for block in &cell.blocks {
            record("block", block_fields(block), std::slice::from_ref(block));
        }
    }
    out
}

fn line(out: &mut String, fields: Vec<String>) {
    assert_eq!(fields.len(), COLUMNS.split(',').count());
    for (index, field) in fields.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(out, "{comma}{}", quoted(field));
    }
    out.push('\n');
}

/// The columns from `server` to `rate_per_second`.
fn subject(cell: &Cell, server: Option<&ServerUsed>, row: Option<&RowUsed>) -> Vec<String> {
    vec![
        words(&cell.server),
        words(server.map_or("", |server| &server.version)),
        words(&cell.row),
        words(row.map_or("", |row| &row.family)),
        optional(row.and_then(|row| row.size_bytes)),
        optional(row.map(|row| row.urls)),
        optional(row.map(|row| row.connections)),
        optional(row.map(|row| row.keep_alive)),
        optional(row.and_then(|row| row.rate_per_second)),
    ]
}

/// The columns from `tls` to `resume`.
fn spoken(row: Option<&RowUsed>) -> Vec<String> {
    vec![
        optional(row.map(|row| row.tls)),
        optional(row.map(|row| row.http2)),
        optional(row.and_then(|row| row.streams)),
        optional(row.map(|row| row.resume)),
    ]
}

/// Sums; the median time of one block alone.
fn handshakes_of(blocks: &[Block]) -> [String; 3] {
    let seen: Vec<&HandshakesSeen> = blocks.iter().filter_map(|block| block.handshakes.as_ref()).collect();
    let sum = |of: fn(&HandshakesSeen) -> u64| (!seen.is_empty()).then(|| seen.iter().map(|one| of(one)).sum::<u64>());
    let p50 = match seen[..] {
        [one] => one.p50_micros,
        _ => None,
    };
    [optional(sum(|one| one.made)), optional(sum(|one| one.resumed)), optional(p50)]
}

/// Which coding, and the sum of the texts that came in it.
fn coded(row: Option<&RowUsed>, blocks: &[Block]) -> [String; 2] {
    let texts: Vec<u64> = blocks.iter().filter_map(|block| block.text_bytes).collect();
    let coding = row.and_then(|row| row.encoding.clone());
    [optional(coding), optional((!texts.is_empty()).then(|| texts.iter().sum::<u64>()))]
}

/// From `colour` on.
fn cell_fields(cell: &Cell, places: Places) -> Vec<String> {
    let sum = |of: fn(&Block) -> u64| cell.blocks.iter().map(of).sum::<u64>().to_string();
    let errors: Vec<String> = cell.errors.iter().map(|(kind, seen)| format!("{kind}={}", seen.count)).collect();
    let mut fields = vec![
        json_word(&cell.colour),
        json_word(&cell.bound),
        cell.ranks_throughput.to_string(),
        optional(places.goodput),
        optional(places.server_micros_per_answer),
        optional(places.p99),
        String::new(),
        String::new(),
        cell.blocks.iter().map(|block| block.elapsed_seconds).sum::<f64>().to_string(),
        sum(|block| block.good),
        sum(|block| block.failed),
        sum(|block| block.body_bytes),
    ];
    for estimate in [cell.goodput_per_second, cell.server_micros_per_answer, cell.p50_micros, cell.p99_micros] {
        let part = |of: fn(Estimate) -> f64| optional(estimate.map(of));
        fields.extend([part(|e| e.median), part(|e| e.low), part(|e| e.high)]);
    }
    fields.push(optional(cell.blocks.iter().filter_map(|block| block.max_micros).max()));
    fields.push(sum(|block| block.connections_opened));
    // What a sum or a median over blocks would not say truly stands in the blocks' own lines.
    fields.extend(vec![String::new(); 12]);
    fields.extend([words(&errors.join(" ")), words(&cell.why.join(" ")), optional(cell.steady)]);
    let held = |of: fn(Estimate) -> f64| optional(cell.bytes_per_connection.map(of));
    fields.extend([held(|e| e.median), held(|e| e.low), held(|e| e.high), String::new()]);
    fields.push(cell.blocks.iter().any(|block| block.server_died).to_string());
    fields
}

fn block_fields(block: &Block) -> Vec<String> {
    let (good, server) = (block.good as f64, &block.server);
    let single = |value: String| [value, String::new(), String::new()];
    let micros = (block.good > 0).then(|| server.cpu_seconds * 1e6 / good);
    let mut fields = vec![String::new(); 6];
    fields.extend([
        block.block.to_string(),
        block.at_seconds.to_string(),
        block.elapsed_seconds.to_string(),
        block.good.to_string(),
        block.failed.to_string(),
        block.body_bytes.to_string(),
    ]);
    fields.extend(single((good / block.elapsed_seconds.max(1e-9)).to_string()));
    fields.extend(single(optional(micros)));
    fields.extend(single(optional(block.p50_micros)));
    fields.extend(single(optional(block.p99_micros)));
    fields.extend([
        optional(block.max_micros),
        block.connections_opened.to_string(),
        block.client_busy_share.to_string(),
        server.busy_share.to_string(),
        server.cpu_seconds.to_string(),
        server.user_seconds.to_string(),
        server.system_seconds.to_string(),
        server.pss_bytes.to_string(),
        server.fds.to_string(),
        server.threads.to_string(),
        server.voluntary_switches.to_string(),
        server.involuntary_switches.to_string(),
        optional(block.origin_requests),
        block.restarted.to_string(),
    ]);
    fields.extend(vec![String::new(); 6]);
    fields.extend([optional(block.send_lag_p99_micros), block.server_died.to_string()]);
    fields
}

fn optional(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// The word that the JSON has for it.
fn json_word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Text that others wrote: a spreadsheet would take what begins so for a formula.
fn words(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{text}") } else { text.to_owned() }
}

fn quoted(field: &str) -> String {
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::super::example_results::example;
    use super::*;

    /// Quotes undone, as a spreadsheet reads it.
    fn read(text: &str) -> Vec<Vec<String>> {
        let (mut rows, mut field, mut inside) = (vec![vec![]], String::new(), false);
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '"' if inside && chars.peek() == Some(&'"') => field.extend(chars.next()),
                '"' => inside = !inside,
                ',' if !inside => rows.last_mut().unwrap().push(std::mem::take(&mut field)),
                '\n' if !inside => {
                    rows.last_mut().unwrap().push(std::mem::take(&mut field));
                    rows.push(vec![]);
                }
                c => field.push(c),
            }
        }
        rows.pop();
        rows
    }

    #[test]
    fn every_line_has_every_column() {
        let mut results = example();
        results.cells[0].server = "=cmd(\"a, b\")\n".to_owned();
        let rows = read(&csv(&results));
        assert_eq!(rows.iter().filter(|row| row[0] == "cell").count(), results.cells.len());
        let blocks: usize = results.cells.iter().map(|cell| cell.blocks.len()).sum();
        assert_eq!(rows.iter().filter(|row| row[0] == "block").count(), blocks);
        assert!(rows.iter().all(|row| row.len() == COLUMNS.split(',').count()));
        assert_eq!(rows[1][1], "'=cmd(\"a, b\")\n");
    }

    #[test]
    fn columns_hold_what_they_are_named_for() {
        let results = example();
        let rows = read(&csv(&results));
        let column = |name: &str| COLUMNS.split(',').position(|column| column == name).unwrap();
        let (cell, block) = (&results.cells[0], &results.cells[0].blocks[0]);
        for (name, expect) in [
            ("p99_micros_high", cell.p99_micros.unwrap().high.to_string()),
            ("good", cell.blocks.iter().map(|b| b.good).sum::<u64>().to_string()),
            ("connections_opened", cell.blocks.iter().map(|b| b.connections_opened).sum::<u64>().to_string()),
            ("why", cell.why.join(" ")),
        ] {
            assert_eq!(rows[1][column(name)], expect, "{name}");
        }
        for (name, expect) in [
            ("p99_micros", block.p99_micros.unwrap().to_string()),
            ("max_micros", block.max_micros.unwrap().to_string()),
            ("server_pss_bytes", block.server.pss_bytes.to_string()),
            ("restarted", block.restarted.to_string()),
        ] {
            assert_eq!(rows[2][column(name)], expect, "{name}");
        }
    }
}
