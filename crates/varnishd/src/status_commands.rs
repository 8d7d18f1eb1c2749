//! Commands about the process itself and about the conversation.

use crate::answers::{Answer, json, objects, quoted, status as code};
use crate::command_table::{COMMANDS, Command, When};
use crate::commands::{Asked, Front};

/// Reached only by who is known already; strangers' are the session's.
pub(crate) fn auth(front: &Front, _: &Asked<'_>) -> Answer {
    Answer::ok(front.banner())
}

pub(crate) fn banner(front: &Front, _: &Asked<'_>) -> Answer {
    Answer::ok(front.banner())
}

pub(crate) fn ping(front: &Front, asked: &Asked<'_>) -> Answer {
    let now_s = front.served.now_s();
    if asked.wants_json {
        return json(2, asked.all, now_s, " \"PONG\"\n");
    }
    Answer::ok(format!("PONG {} 1.0", now_s as u64))
}

pub(crate) fn quit(_: &Front, _: &Asked<'_>) -> Answer {
    Answer::new(code::CLOSE, "Closing CLI connection")
}

pub(crate) fn nothing(_: &Front, _: &Asked<'_>) -> Answer {
    Answer::ok("")
}

pub(crate) fn xid(front: &Front, asked: &Asked<'_>) -> Answer {
    let (xid, chunk) = match asked.words.len() {
        0 => ("0".into(), "32768".into()),
        1 => (asked.word(0), "1".into()),
        _ => (asked.word(0), asked.word(1)),
    };
    let (Ok(next), Ok(block)) = (xid.parse::<u32>(), chunk.parse::<u32>()) else { return Answer::wrong("No number") };
    if !asked.words.is_empty() {
        // The number that was used last, for Varnish.
        front.served.set_xids(next.wrapping_add(1), block);
    }
    Answer::ok(format!("XID is {xid} chunk {chunk}"))
}

pub(crate) fn help(front: &Front, asked: &Asked<'_>) -> Answer {
    if asked.wants_json {
        let rows: Vec<String> = COMMANDS.iter().map(help_json).collect();
        return json(2, asked.all, front.served.now_s(), &objects(&rows));
    }
    let is_shown: fn(&Command) -> bool = match &*asked.word(0) {
        "" => |command| command.when != When::Debug,
        "-a" => |_| true,
        "-d" => |command| command.when == When::Debug,
        _ => return help_about(front, asked),
    };
    let shown = COMMANDS.iter().filter(|command| is_shown(command) && front.is_answered(command));
    Answer::ok(shown.map(|command| command.shown() + "\n").collect::<String>())
}

fn help_about(front: &Front, asked: &Asked<'_>) -> Answer {
    match COMMANDS.iter().find(|command| command.name == asked.word(0)) {
        Some(command) if !front.is_answered(command) => Front::not_running(),
        Some(command) => Answer::ok(format!("{}\n{}\n", command.shown(), command.purpose)),
        None => Answer::new(code::UNKNOWN, "Unknown request.\nType 'help' for more info.\n"),
    }
}

fn help_json(command: &Command) -> String {
    let (least, most) = command.words;
    let most = i64::try_from(most).ok().filter(|most| *most < i64::from(u32::MAX)).unwrap_or(-1);
    format!(
        "  {{\n    \"request\": {},\n    \"syntax\": {},\n    \"help\": {},\n    \"minarg\": {least},\n    \"maxarg\": {most},\n    \
         \"flags\": \"{}\",\n    \"json\": {}\n  }}",
        quoted(command.name),
        quoted(&command.shown()),
        quoted(command.purpose),
        if command.when == When::Debug { "d" } else { "" },
        command.has_json
    )
}

pub(crate) fn status(front: &Front, asked: &Asked<'_>) -> Answer {
    let word = state(front);
    if asked.wants_json {
        return json(2, asked.all, front.served.now_s(), &format!(" {}", quoted(word)));
    }
    Answer::ok(format!("Child in state {word}"))
}

fn state(front: &Front) -> &'static str {
    if front.served.is_running() { "running" } else { "stopped" }
}

pub(crate) fn start(front: &Front, _: &Asked<'_>) -> Answer {
    if front.served.is_running() {
        return Answer::new(code::CANNOT, "Child in state running");
    }
    Answer::of(front.served.start())
}

pub(crate) fn stop(front: &Front, _: &Asked<'_>) -> Answer {
    if !front.served.is_running() {
        return Answer::new(code::CANNOT, "Child in state stopped");
    }
    Answer::of(front.served.stop())
}

pub(crate) fn pid(front: &Front, asked: &Asked<'_>) -> Answer {
    let (master, worker) = front.served.pids();
    if asked.wants_json {
        let worker = worker.map(|pid| format!(", \"worker\": {pid}")).unwrap_or_default();
        return json(2, asked.all, front.served.now_s(), &format!("\n  {{\"master\": {master}{worker}}}"));
    }
    let worker = worker.map(|pid| format!("Worker: {pid:10}\n")).unwrap_or_default();
    Answer::ok(format!("Master: {master:10}\n{worker}"))
}

/// A panic ends the process, and whoever started it starts it again: there is never one to show.
pub(crate) fn panic_show(_: &Front, _: &Asked<'_>) -> Answer {
    Answer::new(code::CANNOT, "Child has not panicked or panic has been cleared")
}

pub(crate) fn panic_clear(_: &Front, asked: &Asked<'_>) -> Answer {
    match &*asked.word(0) {
        "" => Answer::new(code::CANNOT, "No panic to clear"),
        "-z" => Answer::ok(""),
        other => Answer::wrong(format!("Unknown parameter \"{other}\".")),
    }
}

pub(crate) fn storages(front: &Front, asked: &Asked<'_>) -> Answer {
    let storages = front.served.storages();
    if asked.wants_json {
        let row = |(name, kind): &(String, String)| {
            format!("  {{\n    \"name\": {},\n    \"storage\": {}\n}}", quoted(name), quoted(kind))
        };
        let rows: Vec<String> = storages.iter().map(row).collect();
        return json(2, asked.all, front.served.now_s(), &objects(&rows));
    }
    let lines: String = storages.iter().map(|(name, kind)| format!("\tstorage.{name} = {kind}\n")).collect();
    Answer::ok(format!("Storage devices:\n{lines}"))
}

pub(crate) fn listen_address(front: &Front, _: &Asked<'_>) -> Answer {
    let line = |row: crate::served::ListenRow| {
        let port = row.port.map_or("-".to_owned(), |port| port.to_string());
        format!("{} {} {port}\n", row.name, row.host)
    };
    Answer::ok(front.served.listeners().into_iter().map(line).collect::<String>())
}
