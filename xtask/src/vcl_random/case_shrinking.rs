//! A case that differs made smaller, step by step, for as long as it differs in the same place: requests are taken away
//! and made simpler, statements, branches, subroutines and declarations taken away.

use super::answer_comparison::Difference;
use super::argued_differences::ArguedDifferences;
use super::compared_pair::ComparedPair;
use super::replayed_case::{Case, Request, USUAL_CLIENT, WELL};
use super::syntax_tree::Program;

/// A trial takes a run of the C compiler.
const TRIALS_MAX: usize = 400;

struct Shrinking<'a> {
    pair: &'a mut ComparedPair,
    argued: &'a ArguedDifferences,
    program: Program,
    requests: Vec<Request>,
    difference: Difference,
    trials: usize,
}

pub fn shrink(
    pair: &mut ComparedPair,
    argued: &ArguedDifferences,
    program: Program,
    case: Case,
    difference: Difference,
) -> Result<(Case, Difference), String> {
    let mut shrinking = Shrinking { pair, argued, program, requests: case.requests, difference, trials: 0 };
    let after = shrinking.difference.step + 1;
    let until_then = shrinking.requests[..after.min(shrinking.requests.len())].to_vec();
    shrinking.try_requests(until_then)?;
    loop {
        let before = (shrinking.program.clone(), shrinking.requests.clone());
        shrinking.shrink_requests()?;
        shrinking.shrink_program()?;
        if before == (shrinking.program.clone(), shrinking.requests.clone()) || shrinking.trials > TRIALS_MAX {
            return Ok((Case { vcl: shrinking.program.text(), requests: shrinking.requests }, shrinking.difference));
        }
    }
}

impl Shrinking<'_> {
    /// What is smaller is taken if it still differs.
    fn differs(&mut self, program: &Program, requests: &[Request]) -> Result<bool, String> {
        self.trials += 1;
        let case = Case { vcl: program.text(), requests: requests.to_vec() };
        let found = self.pair.play(&case)?;
        match self.argued.unlisted(&case, &found.differences) {
            Some(difference) if difference.is_like(&self.difference) => {
                self.difference = difference;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn try_requests(&mut self, requests: Vec<Request>) -> Result<bool, String> {
        let program = self.program.clone();
        let differs = self.trials <= TRIALS_MAX && !requests.is_empty() && self.differs(&program, &requests)?;
        if differs {
            self.requests = requests;
        }
        Ok(differs)
    }

    fn shrink_requests(&mut self) -> Result<(), String> {
        let mut which = 0;
        while which < self.requests.len() {
            let mut fewer = self.requests.clone();
            fewer.remove(which);
            if !self.try_requests(fewer)? {
                which += 1;
            }
        }
        self.shrink_targets()?;
        for which in 0..self.requests.len() {
            let mut next = 0;
            while let Some(simpler) = simpler(&self.requests[which]).into_iter().nth(next) {
                let mut requests = self.requests.clone();
                requests[which] = simpler;
                if !self.try_requests(requests)? {
                    next += 1;
                }
            }
        }
        Ok(())
    }

    /// Words of the origin, in all requests for the same at once.
    fn shrink_targets(&mut self) -> Result<(), String> {
        for which in 0..self.requests.len() {
            let mut next = 0;
            loop {
                let target = target(&self.requests[which]).to_string();
                let Some(fewer) = fewer_words(&target).into_iter().nth(next) else { break };
                let mut requests = self.requests.clone();
                for request in requests.iter_mut().filter(|request| self::target(request) == target) {
                    request.line = format!("{} {fewer}", request.method());
                }
                if !self.try_requests(requests)? {
                    next += 1;
                }
            }
        }
        Ok(())
    }

    fn shrink_program(&mut self) -> Result<(), String> {
        let mut next = 0;
        while let Some(smaller) = self.program.smaller().into_iter().nth(next) {
            if self.trials > TRIALS_MAX {
                break;
            }
            let requests = self.requests.clone();
            if self.differs(&smaller, &requests)? {
                self.program = smaller;
            } else {
                next += 1;
            }
        }
        Ok(())
    }
}

/// Everything that is one step simpler.
fn simpler(request: &Request) -> Vec<Request> {
    let mut all = Vec::new();
    let mut add = |change: &dyn Fn(&mut Request)| {
        let mut changed = request.clone();
        change(&mut changed);
        if changed != *request {
            all.push(changed);
        }
    };
    add(&|request| request.wait_ms = 0);
    add(&|request| request.client = USUAL_CLIENT.to_string());
    add(&|request| request.origin = WELL.to_string());
    for which in 0..request.fields.len() {
        add(&|request| drop(request.fields.remove(which)));
    }
    add(&|request| request.body = None);
    let (method, target) = request.line.split_once(' ').unwrap_or((&request.line, "/"));
    if request.body.is_none() {
        add(&|request| request.line = format!("GET {target}"));
    }
    for fewer in fewer_words(target) {
        add(&|request| request.line = format!("{method} {fewer}"));
    }
    all
}

fn target(request: &Request) -> &str {
    request.line.split(' ').nth(1).unwrap_or("/")
}

fn fewer_words(target: &str) -> Vec<String> {
    let Some((path, query)) = target.split_once('?') else { return Vec::new() };
    let words: Vec<&str> = query.split('&').collect();
    let without = |which: usize| {
        let mut fewer = words.clone();
        fewer.remove(which);
        if fewer.is_empty() { path.to_string() } else { format!("{path}?{}", fewer.join("&")) }
    };
    (0..words.len()).map(without).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_becomes_simpler_until_nothing_is_left() {
        let text = "vcl = ''\n[[request]]\nline = 'HEAD /a?b=1&c=2'\nfields = ['X: 1', 'Y: 2']\nwait_ms = 5\norigin = 'gone'\n";
        let mut request = Case::read(text).expect("a case").requests.remove(0);
        for _ in 0..10 {
            let Some(next) = simpler(&request).into_iter().next() else { break };
            request = next;
        }
        assert_eq!(request.short(), "GET /a");
        assert!(simpler(&request).is_empty());
    }
}
