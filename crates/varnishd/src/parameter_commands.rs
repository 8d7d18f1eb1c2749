//! Commands about parameters.

use crate::answers::{Answer, json, objects, quoted, status};
use crate::commands::{Asked, Front};
use crate::parameter_book::Unset;
use crate::parameter_forms::Value;
use crate::parameter_table::{PARAMETERS, Parameter};
use crate::served::Refusal;

/// Columns of a list that the name takes.
const NAME_WIDTH: usize = 30;
const LINE_WIDTH: usize = 64;

pub(crate) fn show(front: &Front, asked: &Asked<'_>) -> Answer {
    let (mut is_long, mut wants_json) = (false, asked.wants_json);
    let mut words = asked.words.iter().map(|word| String::from_utf8_lossy(word)).peekable();
    while let Some(flag) = words.next_if(|word| word.starts_with('-')) {
        match &*flag {
            "-l" => is_long = true,
            "-j" => wants_json = true,
            other => return Answer::wrong(format!("Invalid flag {}", &other[1..])),
        }
    }
    let wanted = words.next();
    if words.next().is_some() {
        return Answer::new(status::TOO_MANY, "Too many parameters\n");
    }
    let book = front.parameters.lock();
    let rows: Vec<(&Parameter, &Value)> = match wanted.as_deref() {
        None => book.rows().collect(),
        Some("changed") => book.rows().filter(|(row, value)| value.shown != row.default).collect(),
        Some(name) => {
            is_long = true;
            book.rows().filter(|(row, _)| row.name == name).collect()
        }
    };
    if let Some(name) = wanted.filter(|name| name != "changed" && rows.is_empty()) {
        return Answer::wrong(Unset::Unknown.sentence(&name, ""));
    }
    if wants_json {
        let rows: Vec<String> = rows.iter().map(|(row, value)| row_json(front, row, value)).collect();
        return json(2, asked.all, front.served.now_s(), &objects(&rows));
    }
    let one = |(row, value): &(&Parameter, &Value)| if is_long { long(front, row, value) } else { short(row, value) };
    Answer::ok(rows.iter().map(one).collect::<String>())
}

pub(crate) fn set(front: &Front, asked: &Asked<'_>) -> Answer {
    let (name, written) = (asked.word(0), asked.word(1));
    let answer = change(front, &name, &written);
    if !asked.wants_json || !answer.is_good() {
        return answer;
    }
    let book = front.parameters.lock();
    let rows: Vec<String> =
        book.rows().filter(|(row, _)| row.name == name).map(|(row, value)| row_json(front, row, value)).collect();
    // The value that was typed is not repeated.
    json(2, &asked.all[..asked.all.len() - 1], front.served.now_s(), &objects(&rows))
}

pub(crate) fn reset(front: &Front, asked: &Asked<'_>) -> Answer {
    let name = asked.word(0);
    let default = PARAMETERS.iter().find(|row| row.name == name).map_or("", |row| row.default);
    // Words are changed singly, so what is there has to go first.
    let written = if default.starts_with(['+', '-']) { format!("none,{default}") } else { default.to_owned() };
    change(front, &name, &written)
}

fn change(front: &Front, name: &str, written: &str) -> Answer {
    let value = match front.parameters.lock().read(name, written) {
        Ok(value) => value,
        Err(Unset::ReadOnly) => {
            return Answer::new(status::AUTHENTICATION, Unset::ReadOnly.sentence(name, written));
        }
        Err(why) => return Answer::wrong(why.sentence(name, written)),
    };
    match front.served.set_parameter(name, &value.plain) {
        Ok(()) => {
            front.parameters.lock().put(name, value);
            Answer::ok("")
        }
        Err(Refusal::Wrong(why)) => Answer::wrong(Unset::Wrong(why).sentence(name, written)),
        Err(refusal) => refusal.into(),
    }
}

fn with_unit(row: &Parameter, shown: &str) -> String {
    match row.form.unit() {
        "" => shown.to_owned(),
        unit => format!("{shown} [{unit}]"),
    }
}

fn short(row: &Parameter, value: &Value) -> String {
    let mark = if value.shown == row.default { " (default)" } else { "" };
    format!("{:NAME_WIDTH$}{}{mark}\n", row.name, with_unit(row, &value.shown))
}

fn long(front: &Front, row: &Parameter, value: &Value) -> String {
    let indent = "        ";
    let mut text = format!("{}\n{indent}Value is: {}", row.name, with_unit(row, &value.shown));
    if value.shown == row.default {
        text.push_str(" (default)\n");
    } else {
        text.push_str(&format!("\n{indent}Default is: {}\n", row.default));
    }
    for (word, bound) in [("Minimum", row.min), ("Maximum", row.max)] {
        if !bound.is_empty() {
            text.push_str(&format!("{indent}{word} is: {bound}\n"));
        }
    }
    text.push('\n');
    let mut line = String::new();
    for word in purpose(front, row).split(' ') {
        if !line.is_empty() && line.len() + word.len() >= LINE_WIDTH {
            text.push_str(&format!("{indent}{line}\n"));
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    text.push_str(&format!("{indent}{line}\n\n"));
    text
}

fn purpose(front: &Front, row: &Parameter) -> String {
    match front.served.parameter_note(row.name) {
        Some(why) => format!("It changes nothing in larder: {why}."),
        None => "It does in larder what it does in Varnish.".to_owned(),
    }
}

fn row_json(front: &Front, row: &Parameter, value: &Value) -> String {
    let mut text = format!(
        "  {{\n    \"name\": {},\n    \"implemented\": true,\n    \"value\": {}",
        quoted(row.name),
        row.form.json(value)
    );
    let unit = if row.form.unit() == "bool" { "" } else { row.form.unit() };
    for (key, member) in [("units", unit), ("default", row.default), ("minimum", row.min), ("maximum", row.max)] {
        if !member.is_empty() {
            text.push_str(&format!(",\n    \"{key}\": {}", quoted(member)));
        }
    }
    text.push_str(&format!(",\n    \"description\": {}\n  }}", quoted(&purpose(front, row))));
    text
}
