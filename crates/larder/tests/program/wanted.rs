//! What a table row wants, read from its short form: `R`, `RC`, `OK`, `N`, or words such as `417 either`,
//! `200*1000 open`, `200 400 close`, `self 504 open`, `502 either or 200 cut`. It knows nothing of bytes.

/// One acceptable course of events; a row may have several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The final answers to the row's own requests, each with the statuses that will do.
    pub answers: Vec<Vec<StatusPattern>>,
    pub after: After,
    /// The row's requests reach the origin as its `at_origin` says; else none does.
    pub forwards: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusPattern {
    Exactly(u16),
    /// `4xx`: the hundreds.
    Class(u16),
}

/// The connection behind the last answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// It takes further requests.
    Open,
    /// It is closed in good order, and nothing behind is read.
    Close,
    /// One of the two, but nothing between.
    Either,
    /// The last answer is visibly cut short.
    Cut,
    /// It carries opaque bytes.
    Tunnel,
    /// Our own side reset it.
    Gone,
}

impl StatusPattern {
    pub fn fits(self, status: u16) -> bool {
        match self {
            StatusPattern::Exactly(wanted) => wanted == status,
            StatusPattern::Class(hundreds) => status / 100 == hundreds,
        }
    }
}

/// Reads a `want`.
pub fn read(text: &str) -> Result<Vec<Outcome>, String> {
    let mut outcomes = Vec::new();
    for alternative in text.split(" or ") {
        match alternative.trim() {
            "R" => outcomes.push(refused(vec![StatusPattern::Exactly(400)])),
            "RC" => {
                outcomes.push(refused(vec![StatusPattern::Class(4), StatusPattern::Class(5)]));
                outcomes.push(Outcome { answers: Vec::new(), after: After::Close, forwards: false });
            }
            "OK" | "N" => outcomes.push(read_words("200 open")?),
            words => outcomes.push(read_words(words)?),
        }
    }
    Ok(outcomes)
}

fn refused(statuses: Vec<StatusPattern>) -> Outcome {
    Outcome { answers: vec![statuses], after: After::Close, forwards: false }
}

fn read_words(text: &str) -> Result<Outcome, String> {
    let mut outcome = Outcome { answers: Vec::new(), after: After::Open, forwards: true };
    for word in text.split_whitespace() {
        match word {
            "self" => outcome.forwards = false,
            "open" => outcome.after = After::Open,
            "close" => outcome.after = After::Close,
            "either" => outcome.after = After::Either,
            "cut" => outcome.after = After::Cut,
            "tunnel" => outcome.after = After::Tunnel,
            "gone" => outcome.after = After::Gone,
            _ => {
                let (statuses, count) = word.split_once('*').unwrap_or((word, "1"));
                let count: usize = count.parse().map_err(|_| format!("{word:?} is no answer"))?;
                let statuses = statuses.split('/').map(read_status).collect::<Result<Vec<_>, _>>()?;
                outcome.answers.extend(std::iter::repeat_n(statuses, count));
            }
        }
    }
    Ok(outcome)
}

fn read_status(text: &str) -> Result<StatusPattern, String> {
    let error = || format!("{text:?} is no status");
    match text.strip_suffix("xx") {
        Some(hundreds) => hundreds.parse().map(StatusPattern::Class).map_err(|_| error()),
        None => text.parse().map(StatusPattern::Exactly).map_err(|_| error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, answers_count: usize, after: After, forwards: bool) {
        let outcome = &read(text).unwrap()[0];
        assert_eq!(
            (outcome.answers.len(), outcome.after, outcome.forwards),
            (answers_count, after, forwards),
            "{text}"
        );
    }

    #[test]
    fn short_forms_are_read() {
        check("R", 1, After::Close, false);
        check("OK", 1, After::Open, true);
        check("200*1000 400 close", 1001, After::Close, true);
        check("self 417/501 either", 1, After::Either, false);
        check("close", 0, After::Close, true);
        check("200 cut or 502 either", 1, After::Cut, true);
        assert_eq!(read("RC").unwrap().len(), 2);
        assert!(read("maybe").is_err());
    }
}
