//! The tables of spec/bad-input as data: rows, their acts, and the list of ids that must be there. A row is one
//! input; an act is what one connection says, what the origin answers, and what must come of it.

use std::path::Path;

use serde::Deserialize;

/// One connection's worth of a row.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Act {
    /// What the client does, in the notation.
    pub send: String,
    /// What the origin answers to the act's requests, one after the other, the last one for all further; an echo if
    /// there is none.
    pub answers: Vec<String>,
    /// The origin answers when it has the head, before the body.
    pub early: bool,
    /// The origin sends this as soon as it accepts.
    pub greeting: Option<String>,
    /// The origin resets connections as soon as it accepts.
    pub slam: bool,
    /// The origin sends no 100 to an Expect.
    pub mute: bool,
    /// See `wanted`.
    pub want: String,
    /// `METHOD target`, and behind a ¶ the body, for each request that reaches the origin; `any`: not looked at.
    pub at_origin: Option<Vec<String>>,
    /// Lines the first request has at the origin; `!Name`: has not; `!trailer Name`: not in its trailers.
    pub origin_fields: Vec<String>,
    /// The same for the first answer at the client.
    pub answer_fields: Vec<String>,
    /// A 1xx comes before the first answer.
    pub interim: bool,
    /// The body of every answer with status 2xx at the client.
    pub answer_body: Option<String>,
    /// The request may have been begun at the origin, but is never completed there.
    pub aborted: bool,
    /// Bytes the origin gets and the client gets through a tunnel.
    pub tunnel_in: String,
    pub tunnel_out: String,
    /// Use the listener that expects a PROXY protocol header.
    pub proxied: bool,
    /// The methods of the act's requests, when not all are that of the first line.
    pub methods: Vec<String>,
}

/// One input with its setting.
#[derive(Clone, Debug)]
pub struct Row {
    pub id: String,
    pub why: String,
    pub plan: Plan,
}

/// Where the row is tested.
#[derive(Clone, Debug)]
pub enum Plan {
    /// By playing it.
    Played(Box<Play>),
    /// By a test function of this binary.
    Function(String),
    /// Elsewhere, or argued: the reason.
    NotHere(String),
}

#[derive(Clone, Debug)]
pub struct Play {
    pub before: Vec<Act>,
    pub main: Act,
    pub after: Vec<Act>,
    /// The main act is about what the origin answers: its bytes are split, not the client's.
    pub is_answer: bool,
    pub splits: Splits,
    /// Needs the program with short deadlines.
    pub brief: bool,
    /// Only these of alone, behind, marker, pipelined; empty: all.
    pub modes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Splits {
    /// Every offset when it is small and stands alone.
    Automatic,
    Every,
    None,
}

/// A file: one group.
#[derive(Debug)]
pub struct Table {
    pub rows: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    group: String,
    #[serde(default)]
    payload: String,
    row: Vec<toml::Table>,
}

/// What stands in a row beside its act.
#[derive(Deserialize)]
struct Frame {
    id: String,
    #[serde(default)]
    why: String,
    not_here: Option<String>,
    function: Option<String>,
    #[serde(default)]
    before: Vec<Act>,
    #[serde(default)]
    after: Vec<Act>,
    #[serde(default)]
    modes: Vec<String>,
    splits: Option<bool>,
    #[serde(default)]
    brief: bool,
    /// A field line behind `{P}`, the payload behind it.
    field: Option<String>,
    payload: Option<String>,
    /// A chunked body behind `{T}`.
    chunks: Option<String>,
    /// What is wanted when the same field or chunks stand in an answer.
    response: Option<String>,
    response_body: Option<String>,
    #[serde(default)]
    is_answer: bool,
}

const FRAME_KEYS: &[&str] = &[
    "id",
    "why",
    "not_here",
    "function",
    "before",
    "after",
    "modes",
    "splits",
    "brief",
    "field",
    "payload",
    "chunks",
    "response",
    "response_body",
    "is_answer",
];

/// Reads `spec/bad-input/GROUP.toml`, as it is played at servers or at a forward proxy.
pub fn load(group: &str, forward: bool) -> Table {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../spec/bad-input/{group}.toml"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file: File = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(file.group, group, "{}", path.display());
    let mut rows = Vec::new();
    for row in file.row {
        let shown = row.get("id").map(|id| id.to_string()).unwrap_or_default();
        let row = said_to(forward, row);
        read_row(row, &file.payload, &mut rows).unwrap_or_else(|error| panic!("{} {shown}: {error}", path.display()));
    }
    Table { rows }
}

/// At a forward proxy what stands under `forward` replaces what stands in the row.
fn said_to(forward: bool, mut row: toml::Table) -> toml::Table {
    match row.remove("forward") {
        Some(toml::Value::Table(other)) if forward => row.extend(other),
        Some(toml::Value::Table(_)) | None => {}
        Some(other) => panic!("forward = {other}: a table is wanted"),
    }
    row
}

fn read_row(mut table: toml::Table, payload: &str, rows: &mut Vec<Row>) -> Result<(), toml::de::Error> {
    let mut frame_table = toml::Table::new();
    for key in FRAME_KEYS {
        if let Some(value) = table.remove(*key) {
            frame_table.insert((*key).to_string(), value);
        }
    }
    let frame: Frame = frame_table.try_into()?;
    let mut main: Act = table.try_into()?;
    let payload = frame.payload.as_deref().unwrap_or(payload);
    let framed = match (&frame.field, &frame.chunks) {
        (Some(field), _) => Some((format!("{{P}}{field}¶¶{payload}"), format!("{{H}}{field}¶¶{payload}"))),
        (_, Some(chunks)) => Some((format!("{{T}}{chunks}"), format!("{{H}}Transfer-Encoding: chunked¶¶{chunks}"))),
        _ => None,
    };
    if let Some((request, _)) = &framed {
        main.send.clone_from(request);
    }
    if frame.is_answer && main.send.is_empty() {
        main.send = "{G}¶".into();
        main.at_origin.get_or_insert(vec!["GET /g{n}".into()]);
    }
    let play = |main: Act, is_answer: bool| {
        Plan::Played(Box::new(Play {
            before: frame.before.clone(),
            main,
            after: frame.after.clone(),
            is_answer,
            splits: match frame.splits {
                Some(true) => Splits::Every,
                Some(false) => Splits::None,
                None => Splits::Automatic,
            },
            brief: frame.brief,
            modes: frame.modes.clone(),
        }))
    };
    if let (Some(want), Some((_, answer))) = (&frame.response, &framed) {
        let act = Act {
            send: "{G}¶".into(),
            answers: vec![answer.clone()],
            want: want.clone(),
            at_origin: Some(vec!["GET /g{n}".into()]),
            answer_body: frame.response_body.clone(),
            ..Act::default()
        };
        let id = format!("{}-answer", frame.id);
        rows.push(Row { id, why: frame.why.clone(), plan: play(act, true) });
    }
    let plan = match (&frame.not_here, &frame.function) {
        (Some(reason), None) => Plan::NotHere(reason.clone()),
        (None, Some(function)) => Plan::Function(function.clone()),
        _ => play(main, frame.is_answer),
    };
    rows.push(Row { id: frame.id.clone(), why: frame.why.clone(), plan });
    Ok(())
}

/// File, letter and last number of a group, and how many inputs the lists inside its rows hold at least.
type Group = (&'static str, &'static str, u32, &'static [(u32, usize)]);

/// Every id that must be there.
pub const GROUPS: &[Group] = &[
    ("a", "A", 35, &[(9, 8), (10, 2), (13, 2), (22, 5), (23, 2), (25, 4), (26, 2), (29, 2), (31, 3), (33, 2), (35, 2)]),
    (
        "b",
        "B",
        33,
        &[(4, 7), (5, 5), (8, 3), (10, 2), (11, 2), (12, 2), (13, 2), (14, 5), (15, 2), (18, 2), (19, 4), (20, 3)],
    ),
    ("c", "C", 17, &[(1, 13), (3, 3), (4, 3), (5, 2), (7, 3), (8, 2), (9, 4), (14, 9), (16, 3)]),
    ("d", "D", 21, &[(1, 2), (2, 2), (3, 4), (4, 2), (5, 3), (6, 2), (10, 3), (11, 2), (12, 2), (13, 5), (14, 2)]),
    ("e", "E", 24, &[(1, 4), (2, 4), (3, 10), (4, 4), (5, 2), (9, 2), (10, 4), (11, 3), (12, 2), (13, 7), (14, 3)]),
    ("f", "F", 21, &[(4, 2), (8, 3), (9, 3), (12, 6), (16, 2), (19, 3)]),
    ("i", "I", 11, &[(1, 2), (2, 2), (3, 2), (4, 2), (8, 6)]),
    ("j", "J", 21, &[(1, 3), (2, 6), (4, 5), (5, 8), (6, 7), (8, 2), (9, 2), (10, 4), (11, 2), (19, 4), (21, 3)]),
    (
        "k",
        "K",
        14,
        &[(1, 9), (2, 2), (4, 4), (5, 5), (6, 5), (7, 2), (8, 9), (9, 2), (10, 2), (11, 2), (12, 2), (13, 4)],
    ),
    ("l", "L", 12, &[(1, 2), (2, 8), (3, 20), (4, 2), (5, 2), (6, 6), (8, 4), (12, 2)]),
    ("m", "M", 11, &[(1, 6), (2, 2), (3, 3)]),
    ("o", "O-", 17, &[(1, 7), (2, 3), (3, 4), (5, 2), (6, 2), (7, 3), (9, 4), (10, 2), (11, 3), (12, 4)]),
];

/// Rows of other groups that belong to this issue.
pub const SINGLE_IDS: &[&str] = &["N07", "N08", "N09", "X05", "X06", "X10"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notation::{self, Names};
    use crate::wanted;

    #[test]
    fn every_id_of_the_lists_is_in_a_table() {
        let mut missing = Vec::new();
        for (group, letter, last, lists) in GROUPS {
            let rows = load(group, false).rows;
            let inputs_of = |id: &str| {
                let family = format!("{id}.");
                rows.iter().filter(|row| row.id == id || row.id.starts_with(&family)).count()
            };
            for number in 1..=*last {
                let id = format!("{letter}{number:02}");
                let wanted = lists.iter().find(|(of, _)| *of == number).map_or(1, |(_, count)| *count);
                if inputs_of(&id) < wanted {
                    missing.push(format!("{id}: {} of {wanted} inputs", inputs_of(&id)));
                }
            }
        }
        let singles = load("nx", false).rows;
        let is_there = |id: &str| singles.iter().any(|row| row.id.split('.').next() == Some(id));
        missing.extend(SINGLE_IDS.iter().filter(|id| !is_there(id)).map(|id| id.to_string()));
        assert!(missing.is_empty(), "{missing:#?}");
    }

    fn every_table() -> impl Iterator<Item = (&'static str, bool)> {
        let groups = GROUPS.iter().map(|group| group.0).chain(["nx"]);
        groups.flat_map(|group| [(group, false), (group, true)])
    }

    #[test]
    fn every_row_can_be_read_and_says_what_it_wants() {
        let names = Names::default();
        for (group, forward) in every_table() {
            let mut ids = std::collections::BTreeSet::new();
            for row in load(group, forward).rows {
                assert!(ids.insert(row.id.clone()), "{} twice", row.id);
                let Plan::Played(play) = &row.plan else { continue };
                for act in play.before.iter().chain([&play.main]).chain(&play.after) {
                    for text in [&act.send].into_iter().chain(&act.answers) {
                        notation::read(text, &names).unwrap_or_else(|error| panic!("{}: {error}", row.id));
                    }
                    for text in act.at_origin.iter().flatten() {
                        let text = text.rsplit_once(" *").map_or(&text[..], |(line, _)| line).replace("/{i}", "");
                        notation::read(&text, &names).unwrap_or_else(|error| panic!("{}: {error}", row.id));
                    }
                    let outcomes = wanted::read(&act.want).unwrap_or_else(|error| panic!("{}: {error}", row.id));
                    let forwards = outcomes.iter().any(|outcome| outcome.forwards && !outcome.answers.is_empty());
                    assert!(!forwards || act.at_origin.is_some(), "{}: at_origin is missing", row.id);
                }
            }
        }
    }

    #[test]
    fn a_row_that_is_not_played_says_why() {
        for (group, forward) in every_table() {
            for row in load(group, forward).rows {
                let Plan::NotHere(reason) = &row.plan else { continue };
                assert!(reason.split_whitespace().count() >= 3, "{}: {reason:?}", row.id);
            }
        }
    }

    #[test]
    fn every_function_that_a_row_names_is_there() {
        const SOURCES: &[&str] = &[
            include_str!("slow_and_many.rs"),
            include_str!("http2_limits.rs"),
            include_str!("tls_faults.rs"),
            include_str!("tls_serving.rs"),
            include_str!("process_faults.rs"),
            include_str!("log_faults.rs"),
            include_str!("static_faults.rs"),
            include_str!("forward_proxy.rs"),
            include_str!("memcached_faults.rs"),
            include_str!("body_bombs.rs"),
        ];
        for (group, forward) in every_table() {
            for row in load(group, forward).rows {
                let Plan::Function(name) = &row.plan else { continue };
                let text = format!("fn {name}()");
                assert!(SOURCES.iter().any(|source| source.contains(&text)), "{}: no {name}", row.id);
            }
        }
    }
}
