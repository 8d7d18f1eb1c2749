//! Commands about backends: which there are, how they are, and what an operator decides about them.

use std::time::{Duration, UNIX_EPOCH};

use crate::answers::{Answer, json, quoted};
use crate::columns::columns;
use crate::commands::{Asked, Front};
use crate::name_pattern::fits;
use crate::served::{BackendRow, Order, Served};

pub(crate) fn list(front: &Front, asked: &Asked<'_>) -> Answer {
    let (mut with_probes, mut wants_json) = (false, asked.wants_json);
    let mut words = asked.words.iter().map(|word| String::from_utf8_lossy(word)).peekable();
    while let Some(flag) = words.next_if(|word| word.starts_with('-')) {
        for letter in flag.chars().skip(1) {
            match letter {
                'p' => with_probes = true,
                'j' => wants_json = true,
                other => return Answer::wrong(format!("Invalid flag {other}")),
            }
        }
    }
    let rows = matching(&*front.served, &words.next().unwrap_or_default());
    if words.next().is_some() {
        return Answer::wrong("Too many parameters\n");
    }
    if wants_json {
        let members: Vec<String> = rows.iter().map(|row| row_json(row, with_probes)).collect();
        return json(3, asked.all, front.served.now_s(), &format!("\n  {{\n{}\n  }}", members.join(",\n")));
    }
    let head = ["Backend name", "Admin", "Probe", "Health", "Last change"].map(str::to_owned).to_vec();
    let table: Vec<Vec<String>> = std::iter::once(head).chain(rows.iter().map(cells)).collect();
    let table = columns(&table);
    if !with_probes {
        return Answer::ok(table);
    }
    let mut text = String::new();
    for (line, row) in table.lines().zip(std::iter::once(None).chain(rows.iter().map(Some))) {
        text.push_str(line);
        text.push('\n');
        if let Some(probe) = row.and_then(|row| row.probe.as_ref()) {
            let (good, threshold, window, last) = (probe.good, probe.threshold, probe.window, &probe.last);
            text.push_str(&format!(" Current states  good: {good:2} threshold: {threshold:2} window: {window:2}\n"));
            text.push_str(&format!("  Last probe: {last}\n"));
        }
    }
    Answer::ok(text)
}

pub(crate) fn set_health(front: &Front, asked: &Asked<'_>) -> Answer {
    let word = asked.word(1);
    let Some((_, order)) = Order::WORDS.iter().find(|(known, _)| known.eq_ignore_ascii_case(&word)) else {
        return Answer::wrong(format!("Invalid state {word}"));
    };
    let rows = matching(&*front.served, &asked.word(0));
    if rows.is_empty() {
        return Answer::wrong("No Backends matches");
    }
    let done = rows.iter().try_for_each(|row| front.served.order_health(&row.vcl, &row.name, *order));
    Answer::of(done)
}

/// `NAME` is one of the active program, `VCL.NAME` one of that one; both may have stars.
fn matching(served: &dyn Served, pattern: &str) -> Vec<BackendRow> {
    let mut rows = served.backends();
    let fits = |pattern: &str, name: &str| fits(pattern.as_bytes(), name.as_bytes());
    rows.retain(|row| match pattern {
        "" => row.is_of_active,
        pattern if pattern.contains('.') => fits(pattern, &format!("{}.{}", row.vcl, row.name)),
        pattern => row.is_of_active && fits(pattern, &row.name),
    });
    rows
}

fn admin(row: &BackendRow) -> &'static str {
    match (row.ordered, &row.probe) {
        (Order::Healthy, _) | (Order::Auto, None) => "healthy",
        (Order::Sick, _) => "sick",
        (Order::Auto, Some(_)) => "probe",
    }
}

fn health(row: &BackendRow) -> &'static str {
    if row.is_healthy { "healthy" } else { "sick" }
}

fn cells(row: &BackendRow) -> Vec<String> {
    let (good, window) = row.probe.as_ref().map_or((0, 0), |probe| (probe.good, probe.window));
    vec![
        format!("{}.{}", row.vcl, row.name),
        admin(row).to_owned(),
        format!("{good}/{window}"),
        health(row).to_owned(),
        http_date(row.changed_s),
    ]
}

fn row_json(row: &BackendRow, with_probe: bool) -> String {
    let (good, window) = row.probe.as_ref().map_or((0, 0), |probe| (probe.good, probe.window));
    let details = match &row.probe {
        _ if !with_probe => String::new(),
        None => "      \"probe_details\": {},\n".to_owned(),
        Some(probe) => format!(
            "      \"probe_details\": {{\n        \"good\": {good},\n        \"threshold\": {},\n        \"window\": {window}\n      }},\n",
            probe.threshold
        ),
    };
    format!(
        "    {}: {{\n      \"type\": \"backend\",\n      \"admin_health\": \"{}\",\n      \"probe_message\": [{good}, {window}, \
         \"{}\"],\n{details}      \"last_change\": {:.3}\n    }}",
        quoted(&format!("{}.{}", row.vcl, row.name)),
        admin(row),
        health(row),
        row.changed_s
    )
}

/// `Sun, 22 Nov 2026 22:19:00 GMT`
fn http_date(since_1970_s: f64) -> String {
    let since = Duration::try_from_secs_f64(since_1970_s).unwrap_or_default().min(LAST_DATE);
    httpdate::fmt_http_date(UNIX_EPOCH + since)
}

/// Dates have four digits of a year.
const LAST_DATE: Duration = Duration::from_secs(253_402_300_799);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_http() {
        let check = |seconds: f64, expect: &str| assert_eq!(http_date(seconds), expect);
        check(0.0, "Thu, 01 Jan 1970 00:00:00 GMT");
        check(1_795_385_940.9, "Sun, 22 Nov 2026 22:19:00 GMT");
        check(-1.0, "Thu, 01 Jan 1970 00:00:00 GMT");
        check(1e30, "Thu, 01 Jan 1970 00:00:00 GMT");
        check(1e12, "Fri, 31 Dec 9999 23:59:59 GMT");
    }
}
