//! Holds one act's course against what the row wants: the verdicts V2 to V4 and V7 of the list. It says what is
//! wrong in one sentence; the report around it is made by who asks.

use crate::answer_stream::{self, Answer};
use crate::input_table::Act;
use crate::notation::{self, Names};
use crate::raw_client::{Client, End};
use crate::recording_origin::{RecordingOrigin, Seen, echo_body};
use crate::strict_head::{FieldLine, Framing};
use crate::wanted::{After, Outcome};

/// Around the row's own bytes on the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Around {
    /// A good request stands before.
    pub good: bool,
    /// The marker stands behind.
    pub marker: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    /// Something is missing that may still come.
    NotYet(String),
    Wrong(String),
}

/// Everything a judgement looks at.
pub struct Course<'a> {
    pub act: &'a Act,
    pub outcomes: &'a [Outcome],
    pub names: &'a Names,
    pub around: Around,
    /// A reset behind a complete answer is no fault: the input is larger than any drain.
    pub may_reset: bool,
    pub client: &'a Client,
    pub origin: &'a RecordingOrigin,
}

impl Course<'_> {
    /// The best verdict over all acceptable outcomes.
    pub fn judge(&self) -> Verdict {
        let mut worst = Verdict::Wrong("no outcome is wanted".into());
        for (index, outcome) in self.outcomes.iter().enumerate() {
            match self.judge_one(outcome) {
                Verdict::Pass => return Verdict::Pass,
                verdict @ Verdict::NotYet(_) => worst = verdict,
                verdict if index == 0 => worst = verdict,
                _ => {}
            }
        }
        worst
    }

    fn judge_one(&self, outcome: &Outcome) -> Verdict {
        if outcome.after == After::Gone {
            return self.judge_origin(outcome, false);
        }
        let methods = self.methods();
        let read = match answer_stream::read(&self.client.received, &methods, self.client.end) {
            Ok(read) => read,
            Err(problem) => return Verdict::Wrong(format!("the client got {problem}")),
        };
        let mut wanted: Vec<_> = outcome.answers.iter().map(|statuses| (statuses.clone(), false)).collect();
        if self.around.good {
            wanted.insert(0, (vec![crate::wanted::StatusPattern::Exactly(200)], true));
        }
        let own_count = wanted.len();
        for (index, (statuses, _)) in wanted.iter().enumerate() {
            match read.answers.get(index) {
                Some(answer) if statuses.iter().any(|status| status.fits(answer.status)) => {}
                Some(answer) => return Verdict::Wrong(format!("answer {} is {}", index + 1, answer.status)),
                None if self.client.end.is_none() => {
                    return Verdict::NotYet(format!("{} of {own_count} answers came", read.answers.len()));
                }
                None => return Verdict::Wrong(format!("closed after {} of {own_count} answers", read.answers.len())),
            }
        }
        let own = &read.answers[usize::from(self.around.good)..own_count];
        let marker_answered = match self.judge_end(outcome, &read, own_count) {
            Ok(answered) => answered,
            Err(verdict) => return verdict,
        };
        match self.judge_answers(outcome, own, &read.answers) {
            Verdict::Pass => self.judge_origin(outcome, marker_answered),
            verdict => verdict,
        }
    }

    /// The method of each request on the connection, as far as answers depend on it.
    fn methods(&self) -> Vec<String> {
        let mut methods = self.act.methods.clone();
        if methods.is_empty() && self.act.send.starts_with("HEAD ") {
            methods.push("HEAD".into());
        }
        if self.around.good {
            methods.insert(0, "GET".into());
        }
        methods
    }

    /// What stands behind the own answers: the end, or the marker's answer. `Ok(true)`: the marker was answered.
    fn judge_end(&self, outcome: &Outcome, read: &answer_stream::Answers, own_count: usize) -> Result<bool, Verdict> {
        let end = self.client.end;
        let extra = read.answers.len() - own_count;
        let cut = read.answers[..own_count].last().is_some_and(|answer| !answer.complete);
        let wrong = |text: String| Err(Verdict::Wrong(text));
        match outcome.after {
            After::Tunnel => {
                let got = notation::read_bytes(&self.act.tunnel_out, self.names).unwrap_or_default();
                return match () {
                    () if !read.tunnel => wrong("there is no tunnel".into()),
                    () if read.rest != got && got.starts_with(&read.rest) && end.is_none() => {
                        Err(Verdict::NotYet("not all came through the tunnel".into()))
                    }
                    () if read.rest != got => {
                        wrong(format!("through the tunnel came {}", notation::show(&read.rest, 200)))
                    }
                    () => Ok(false),
                };
            }
            After::Cut if cut && end.is_some() => return Ok(false),
            After::Cut if end.is_some() => return wrong("the answer looks complete".into()),
            After::Cut => return Err(Verdict::NotYet("the answer is not cut".into())),
            _ => {}
        }
        if cut {
            return match end {
                None => Err(Verdict::NotYet("the body is not complete".into())),
                Some(_) => wrong("the body is cut short".into()),
            };
        }
        if !read.rest.is_empty() {
            let text = format!("behind the answers came {}", notation::show(&read.rest, 200));
            return if end.is_some() { wrong(text) } else { Err(Verdict::NotYet(text)) };
        }
        let answered = extra > 0;
        let expects_marker = self.around.marker && outcome.after != After::Close;
        if answered && !expects_marker || extra > 1 {
            return wrong(format!("{} answers too many", extra - usize::from(expects_marker)));
        }
        if answered && read.answers[own_count].status != 200 {
            return wrong(format!("the marker got {}", read.answers[own_count].status));
        }
        match (outcome.after, end) {
            (After::Close, None) => Err(Verdict::NotYet("the connection is not closed".into())),
            (After::Close | After::Either, Some(End::Reset)) if !self.may_reset => {
                wrong("the connection was reset, not closed in good order".into())
            }
            (After::Open, Some(_)) => wrong("the connection was closed".into()),
            (After::Open, None) if self.around.marker && !answered => {
                Err(Verdict::NotYet("the marker is not answered".into()))
            }
            (After::Either, None) if self.around.marker && !answered => {
                Err(Verdict::NotYet("neither is the marker answered nor the connection closed".into()))
            }
            _ => Ok(answered),
        }
    }

    /// The own answers one by one.
    fn judge_answers(&self, outcome: &Outcome, own: &[Answer], all: &[Answer]) -> Verdict {
        let says_close = |answer: &Answer| answer.head.lists("Connection", "close");
        let refusal = own.last().filter(|answer| {
            outcome.after == After::Close && answer.status >= 400 && answer.framing != Framing::UntilClose
        });
        if refusal.is_some_and(|answer| !says_close(answer)) {
            return Verdict::Wrong("the refusal does not say Connection: close".into());
        }
        if let Some(answer) = all[..all.len().saturating_sub(1)].iter().find(|answer| says_close(answer)) {
            return Verdict::Wrong(format!("an answer ({}) follows one that says Connection: close", answer.status));
        }
        let is_old = self.act.send.contains("HTTP/1.0");
        if is_old && own.iter().any(|answer| answer.framing == Framing::Chunked || !answer.interim.is_empty()) {
            return Verdict::Wrong("an HTTP/1.0 client got chunks or a 1xx".into());
        }
        if self.act.interim && own.first().is_none_or(|first| first.interim.is_empty()) {
            return Verdict::Wrong("no 1xx came before the answer".into());
        }
        if let Some(first) = own.first() {
            for line in &self.act.answer_fields {
                if let Err(problem) = check_field(line, &first.head.fields, &[], self.names) {
                    return Verdict::Wrong(format!("in the answer: {problem}"));
                }
            }
        }
        let body = self.act.answer_body.as_ref().map(|text| notation::read_bytes(text, self.names).unwrap_or_default());
        let at_origin = if outcome.forwards { self.at_origin() } else { Vec::new() };
        let mut echoed = at_origin.iter();
        for answer in own.iter().filter(|answer| answer.status / 100 == 2 && answer.complete) {
            let method = self.act.send.split(' ').next().unwrap_or_default();
            let wanted = match (&body, echoed.next()) {
                (Some(body), _) => body.clone(),
                (None, Some((method, target, _))) if self.act.answers.is_empty() => {
                    echo_body(method, target).into_bytes()
                }
                _ => continue,
            };
            if method != "HEAD" && answer.body != wanted {
                return Verdict::Wrong(format!(
                    "the answer's body is {} and not {}",
                    notation::show(&answer.body, 120),
                    notation::show(&wanted, 120)
                ));
            }
        }
        Verdict::Pass
    }

    /// Method, target and body of each request that the origin shall get.
    fn at_origin(&self) -> Vec<(String, String, Vec<u8>)> {
        let lines = self.act.at_origin.iter().flatten().filter(|line| *line != "any");
        let lines = lines.flat_map(|line| match line.rsplit_once(" *") {
            Some((line, count)) => {
                let count: usize = count.parse().unwrap_or(0);
                (0..count).map(|i| line.replace("{i}", &i.to_string())).collect::<Vec<_>>()
            }
            None => vec![line.clone()],
        });
        let read = |line: String| {
            let bytes = notation::read_bytes(&line, self.names).unwrap_or_default();
            let (head, body) = match crate::strict_head::find(&bytes, b"\r\n") {
                Some(end) => (&bytes[..end], bytes[end + 2..].to_vec()),
                None => (&bytes[..], Vec::new()),
            };
            let head = String::from_utf8_lossy(head).into_owned();
            let (method, target) = head.split_once(' ').unwrap_or((&head, ""));
            (method.to_string(), target.to_string(), body)
        };
        lines.map(read).collect()
    }

    fn judge_origin(&self, outcome: &Outcome, marker_answered: bool) -> Verdict {
        let any = self.act.at_origin.iter().flatten().any(|line| line == "any");
        let mut wanted = Vec::new();
        let run = format!("{:06}", self.names.run);
        if self.around.good {
            wanted.push(("GET".to_string(), format!("/good{run}"), Vec::new()));
        }
        let own_from = wanted.len();
        if outcome.forwards && !self.act.aborted {
            wanted.extend(self.at_origin());
        }
        if marker_answered {
            wanted.push(("GET".to_string(), format!("/marker{run}"), Vec::new()));
        }
        let mut seen: Vec<&Seen> = self.origin.seen.iter().collect();
        for request in &seen {
            if let Some(problem) = request.problems.first() {
                return Verdict::Wrong(format!("at the origin: {problem}"));
            }
            if request.target.contains("smuggled") && !wanted.iter().any(|(_, target, _)| *target == request.target) {
                return Verdict::Wrong("a smuggled request reached the origin".into());
            }
        }
        if let Some(bytes) = self.origin.leftovers().next() {
            return Verdict::Wrong(format!("the origin got half a head: {}", notation::show(bytes, 120)));
        }
        if self.act.aborted {
            if let Some(open) = seen.iter().find(|s| !s.complete && !self.origin.is_closed(s.connection)) {
                return Verdict::NotYet(format!("{} {} still stands open at the origin", open.method, open.target));
            }
            seen.retain(|request| request.complete);
        }
        if any {
            return Verdict::Pass;
        }
        let found: Vec<_> = seen.iter().map(|s| (s.method.clone(), s.target.clone(), s.body.clone())).collect();
        let complete = seen.iter().all(|request| request.complete);
        if found != wanted || !complete && !self.act.early {
            return Verdict::Wrong(format!("the origin got {} and not {}", list(&found), list(&wanted)));
        }
        self.judge_first_request(outcome, seen.get(own_from).copied())
    }

    /// The fields of the first own request at the origin, and its tunnel.
    fn judge_first_request(&self, outcome: &Outcome, first: Option<&Seen>) -> Verdict {
        let Some(first) = first.filter(|_| outcome.forwards) else { return Verdict::Pass };
        for line in &self.act.origin_fields {
            if let Err(problem) = check_field(line, &first.fields, &first.trailers, self.names) {
                return Verdict::Wrong(format!("at the origin: {problem}"));
            }
        }
        if outcome.after == After::Tunnel {
            let wanted = notation::read_bytes(&self.act.tunnel_in, self.names).unwrap_or_default();
            let got = self.origin.tunnel_bytes(first.connection);
            if got != wanted {
                return Verdict::Wrong(format!("the origin got {} through the tunnel", notation::show(got, 200)));
            }
        }
        Verdict::Pass
    }
}

fn list(requests: &[(String, String, Vec<u8>)]) -> String {
    let shown: Vec<_> = requests
        .iter()
        .take(8)
        .map(|(method, target, body)| {
            let target = notation::show(target.as_bytes(), 100);
            let body = if body.is_empty() { String::new() } else { format!("¶{}", notation::show(body, 100)) };
            format!("{method} {target}{body}")
        })
        .collect();
    match requests.len() {
        0 => "nothing".into(),
        count if count > shown.len() => format!("{} … ({count} requests)", shown.join(", ")),
        _ => shown.join(", "),
    }
}

/// `Name: value`, `Name` (any value), `!Name`, `!trailer Name`, `trailer Name: value`.
fn check_field(line: &str, fields: &[FieldLine], trailers: &[FieldLine], names: &Names) -> Result<(), String> {
    let (negated, rest) = line.strip_prefix('!').map_or((false, line), |rest| (true, rest));
    let (place, rest) = rest.strip_prefix("trailer ").map_or((fields, rest), |rest| (trailers, rest));
    let (name, value) = match rest.split_once(':') {
        Some((name, value)) => (name, Some(notation::read_bytes(value.trim_start_matches(' '), names)?)),
        None => (rest, None),
    };
    let mut values = place.iter().filter(|field| field.name.eq_ignore_ascii_case(name)).map(|field| &field.value);
    let found = match &value {
        Some(value) => values.clone().any(|found| found == value),
        None => values.clone().next().is_some(),
    };
    if found != negated {
        return Ok(());
    }
    let found: Vec<_> = values.by_ref().map(|value| notation::show(value, 100)).collect();
    Err(format!("wanted {line}, found {found:?}"))
}
