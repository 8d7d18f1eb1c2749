//! Commands about programs and labels. What Varnish would refuse is refused here, in its order and with its statuses; what
//! larder refuses beyond that says why itself.

use crate::answers::{Answer, json, objects, quoted};
use crate::columns::columns;
use crate::commands::{Asked, Front};
use crate::name_pattern::{fits, illegal_in_name};
use crate::served::{Refusal, SourceRow, Temperature, VclRow, VclState, VclText};

const STATES: &str = "State must be one of auto, cold or warm.";

pub(crate) fn load(front: &Front, asked: &Asked<'_>) -> Answer {
    loaded(front, asked, VclText::File(&asked.word(1)))
}

pub(crate) fn inline(front: &Front, asked: &Asked<'_>) -> Answer {
    // A text behind `<<` comes last, behind the state if there is one.
    loaded(front, asked, VclText::Inline(&asked.words[1]))
}

fn loaded(front: &Front, asked: &Asked<'_>, text: VclText<'_>) -> Answer {
    let name = asked.word(0);
    let state = match asked.words.len() {
        3 => state_of(&asked.word(2)),
        _ => Some(VclState::Auto),
    };
    let Some(state) = state else { return Answer::wrong(STATES) };
    if let Err(why) = check_name(&name) {
        return Answer::wrong(why);
    }
    if front.served.vcls().iter().any(|row| row.name == name) {
        return Answer::wrong(format!("Already a VCL named {name}"));
    }
    match front.served.load(&name, text, state) {
        Ok(warnings) => Answer::ok(warnings),
        Err(Refusal::Wrong(why)) => {
            Answer::wrong(format!("Message from VCC-compiler:\n{}\n\nVCL compilation failed", why.trim_end()))
        }
        Err(refusal) => refusal.into(),
    }
}

fn state_of(word: &str) -> Option<VclState> {
    VclState::WORDS.iter().find(|(known, _)| *known == word).map(|(_, state)| *state)
}

fn check_name(name: &str) -> Result<(), String> {
    match illegal_in_name(name) {
        Some(bad) => Err(format!("Illegal character in VCL name ('{bad}')")),
        None if name.is_empty() => Err("Empty VCL name".to_owned()),
        None => Ok(()),
    }
}

fn unknown(name: &str) -> Answer {
    Answer::wrong(format!("No VCL named {name} known\n"))
}

pub(crate) fn use_vcl(front: &Front, asked: &Asked<'_>) -> Answer {
    let name = asked.word(0);
    match front.served.vcls().iter().find(|row| row.name == name) {
        None => unknown(&name),
        Some(row) if row.is_active => Answer::ok(""),
        Some(_) => match front.served.use_vcl(&name) {
            Ok(()) => Answer::ok(format!("VCL '{name}' now active")),
            Err(refusal) => refusal.into(),
        },
    }
}

pub(crate) fn label(front: &Front, asked: &Asked<'_>) -> Answer {
    let (label, name) = (asked.word(0), asked.word(1));
    if let Err(why) = check_name(&label) {
        return Answer::wrong(why);
    }
    let rows = front.served.vcls();
    let Some(program) = rows.iter().find(|row| row.name == name) else { return unknown(&name) };
    if program.label_of.is_some() {
        return Answer::of(Err(Refusal::Cannot("VCL labels cannot point to labels".to_owned())));
    }
    if rows.iter().any(|row| row.name == label && row.label_of.is_none()) {
        return Answer::wrong(format!("{label} is not a label"));
    }
    Answer::of(front.served.label(&label, &name))
}

pub(crate) fn state(front: &Front, asked: &Asked<'_>) -> Answer {
    let name = asked.word(0);
    let rows = front.served.vcls();
    let Some(row) = rows.iter().find(|row| row.name == name) else { return unknown(&name) };
    if row.label_of.is_some() {
        return Answer::wrong("Labels are always warm");
    }
    let Some(state) = state_of(&asked.word(1)) else { return Answer::wrong(STATES) };
    let cannot = |why: &str| Answer::of(Err(Refusal::Cannot(why.to_owned())));
    match state {
        VclState::Cold if row.is_active => cannot("Cannot set the active VCL cold."),
        VclState::Cold if !row.labels.is_empty() => cannot("A labeled VCL cannot be set cold"),
        state => Answer::of(front.served.set_state(&name, state)),
    }
}

pub(crate) fn discard(front: &Front, asked: &Asked<'_>) -> Answer {
    let rows = front.served.vcls();
    let mut chosen: Vec<&VclRow> = Vec::new();
    for pattern in asked.words {
        let found: Vec<&VclRow> = rows.iter().filter(|row| fits(pattern, row.name.as_bytes())).collect();
        if found.is_empty() {
            return Answer::wrong(format!("No VCL name matches {}\n", String::from_utf8_lossy(pattern)));
        }
        chosen.extend(found);
    }
    if let Err(why) = chosen.iter().try_for_each(|row| check_discard(row, &chosen, &rows)) {
        return Answer::of(Err(Refusal::Cannot(why)));
    }
    // Who uses something goes before what is used.
    chosen.sort_by_key(|row| (row.hands_to.is_empty(), row.label_of.is_none(), row.name.clone()));
    chosen.dedup_by_key(|row| &row.name);
    Answer::of(chosen.iter().try_for_each(|row| front.served.discard(&row.name)))
}

fn check_discard(row: &VclRow, chosen: &[&VclRow], rows: &[VclRow]) -> Result<(), String> {
    let stays = |name: &str| !chosen.iter().any(|chosen| chosen.name == name);
    let list = |names: Vec<&str>| names.iter().map(|name| format!("\t{name}\n")).collect::<String>();
    let kind = if row.label_of.is_some() { "label" } else { "program" };
    if row.is_active {
        return Err(format!("Cannot discard active VCL {kind} {}\n", row.name));
    }
    let labels: Vec<&str> = row.labels.iter().map(String::as_str).filter(|label| stays(label)).collect();
    if !labels.is_empty() {
        return Err(format!("Cannot discard labeled VCL program {}:\n{}", row.name, list(labels)));
    }
    let users = rows.iter().filter(|user| user.hands_to.contains(&row.name)).map(|user| &*user.name);
    let users: Vec<&str> = users.filter(|user| row.label_of.is_some() && stays(user)).collect();
    if users.is_empty() {
        return Ok(());
    }
    Err(format!("Cannot discard VCL label {}, other VCLs depend on it:\n{}", row.name, list(users)))
}

pub(crate) fn list(front: &Front, asked: &Asked<'_>) -> Answer {
    let rows = front.served.vcls();
    if asked.wants_json {
        let rows: Vec<String> = rows.iter().map(|row| row_json(row, &rows)).collect();
        return json(2, asked.all, front.served.now_s(), &objects(&rows));
    }
    let table: Vec<Vec<String>> = rows.iter().map(|row| cells(row, &rows)).collect();
    Answer::ok(columns(&table))
}

fn status_word(row: &VclRow) -> &'static str {
    if row.is_active { "active" } else { "available" }
}

fn state_word(row: &VclRow) -> &'static str {
    if row.label_of.is_some() { "label" } else { row.state.word() }
}

fn temperature_word(row: &VclRow) -> &'static str {
    match row.temperature {
        Temperature::Cold => "cold",
        Temperature::Warm => "warm",
    }
}

/// Programs that hand requests to the label.
fn users_count(label: &VclRow, rows: &[VclRow]) -> usize {
    rows.iter().filter(|user| user.hands_to.contains(&label.name)).count()
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn cells(row: &VclRow, rows: &[VclRow]) -> Vec<String> {
    let busy = row.busy.map_or("-".to_owned(), |busy| busy.to_string());
    let mut cells = vec![
        status_word(row).into(),
        state_word(row).into(),
        temperature_word(row).into(),
        format!("{busy:>6}"),
        row.name.clone(),
    ];
    if let Some(of) = &row.label_of {
        let users = match users_count(row, rows) {
            0 => String::new(),
            count => format!(" ({count} return(vcl){})", plural(count)),
        };
        cells.extend(["->".to_owned(), format!("{of}{users}")]);
    } else if !row.labels.is_empty() {
        let count = row.labels.len();
        cells.extend(["<-".to_owned(), format!("({count} label{})", plural(count))]);
    }
    cells
}

fn row_json(row: &VclRow, rows: &[VclRow]) -> String {
    let mut text = format!(
        "  {{\n    \"status\": \"{}\",\n    \"state\": \"{}\",\n    \"temperature\": \"{}\",\n    \"busy\": {},\n    \"name\": {}",
        status_word(row),
        state_word(row),
        temperature_word(row),
        row.busy.unwrap_or(0),
        quoted(&row.name)
    );
    if let Some(of) = &row.label_of {
        let refs = users_count(row, rows);
        text.push_str(&format!(
            ",\n    \"label\": {{\n      \"name\": {},\n      \"refs\": {refs}\n    }}",
            quoted(of)
        ));
    } else if !row.labels.is_empty() {
        text.push_str(&format!(",\n    \"labels\": {}", row.labels.len()));
    }
    text + "\n  }"
}

pub(crate) fn deps(front: &Front, asked: &Asked<'_>) -> Answer {
    let rows = front.served.vcls();
    let of = |row: &VclRow| row.label_of.iter().chain(&row.hands_to).cloned().collect::<Vec<String>>();
    if asked.wants_json {
        let one = |row: &VclRow| {
            let deps: Vec<String> = of(row).iter().map(|name| quoted(name)).collect();
            format!("  {{\n    \"name\": {},\n    \"deps\": [{}]\n  }}", quoted(&row.name), deps.join(", "))
        };
        let rows: Vec<String> = rows.iter().map(one).collect();
        return json(1, asked.all, front.served.now_s(), &objects(&rows));
    }
    let table: Vec<Vec<String>> =
        rows.iter().map(|row| std::iter::once(row.name.clone()).chain(of(row)).collect()).collect();
    Answer::ok(columns(&table))
}

pub(crate) fn show(front: &Front, asked: &Asked<'_>) -> Answer {
    let is_verbose = asked.word(0) == "-v";
    let behind = usize::from(is_verbose);
    if asked.words.len() > behind + 1 {
        return Answer::wrong("Too many parameters\n");
    }
    let rows = front.served.vcls();
    let name = match asked.words.get(behind) {
        Some(_) => asked.word(behind).into_owned(),
        None => match rows.iter().find(|row| row.is_active) {
            Some(row) => row.name.clone(),
            None => return Answer::wrong("No active VCL"),
        },
    };
    let program = rows.iter().find(|row| row.name == name).and_then(|row| row.label_of.as_ref()).unwrap_or(&name);
    let Some(sources) = front.served.sources(program) else {
        return Answer::wrong(format!("No VCL named '{name}'"));
    };
    if !is_verbose {
        return Answer::ok(sources.into_iter().next().map(|source| source.text).unwrap_or_default());
    }
    let mut text = Vec::new();
    for (at, SourceRow { name, text: source }) in sources.iter().enumerate() {
        text.extend_from_slice(format!("// VCL.SHOW {at} {} {name}\n", source.len()).as_bytes());
        text.extend_from_slice(source);
        text.push(b'\n');
    }
    Answer::ok(text)
}
