//! Commands about bans.

use crate::answers::{Answer, json, objects, quoted};
use crate::commands::{Asked, Front};

/// Words of the command are words of the expression.
pub(crate) fn ban(front: &Front, asked: &Asked<'_>) -> Answer {
    if let Some(word) = asked.words.iter().find(|word| word.is_empty() || word.iter().any(u8::is_ascii_whitespace)) {
        let word = String::from_utf8_lossy(word);
        return Answer::wrong(format!(
            "a ban has no words with blanks in them, nor empty ones: \"{word}\" (\\s in a regex)"
        ));
    }
    // Three words a condition, and one between two.
    if asked.words.len() % 4 != 3 {
        return Answer::wrong("Wrong number of arguments");
    }
    Answer::of(front.served.ban(&asked.words.join(&b' ')))
}

pub(crate) fn list(front: &Front, asked: &Asked<'_>) -> Answer {
    let bans = front.served.bans();
    if asked.wants_json {
        let rows: Vec<String> = bans
            .iter()
            .map(|ban| {
                format!(
                    "  {{\n    \"time\": {:.6},\n    \"refs\": 0,\n    \"completed\": {},\n    \"spec\": {}\n}}",
                    ban.at_s,
                    ban.is_done,
                    quoted(&ban.expression)
                )
            })
            .collect();
        return json(2, asked.all, front.served.now_s(), &objects(&rows));
    }
    let line = |ban: &crate::served::BanRow| {
        format!("{:10.6} {:5} {}  {}\n", ban.at_s, 0, if ban.is_done { 'C' } else { '-' }, ban.expression)
    };
    Answer::ok(format!("Present bans:\n{}", bans.iter().map(line).collect::<String>()))
}
