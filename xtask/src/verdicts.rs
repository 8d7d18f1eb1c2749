//! Judges the public cache test suite's raw results: what each test's verdict is, given those of the tests that
//! it depends on, and whether the failures are exactly those that docs/conformance.md lists.

use std::collections::BTreeMap;

use serde_json::Value;

/// A test as the suite describes it.
#[derive(Clone, Debug)]
pub struct Test {
    pub id: String,
    pub kind: Kind,
    pub depends_on: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A cache must behave so.
    Required,
    /// A good cache does.
    Optimal,
    /// Either way is right; the suite only asks which.
    Check,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    Pass,
    Fail,
    /// The exchange that should have prepared the test went wrong.
    Setup,
    /// A test that this one depends on did not pass.
    Dependency,
    /// The suite printed nothing for it.
    Absent,
}

impl Kind {
    pub fn word(self) -> &'static str {
        match self {
            Kind::Required => "required",
            Kind::Optimal => "optimal",
            Kind::Check => "check",
        }
    }
}

impl Verdict {
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Fail => "fail",
            Verdict::Setup => "setup",
            Verdict::Dependency => "dependency",
            Verdict::Absent => "absent",
        }
    }
}

/// What a run showed, by test.
pub struct Verdicts {
    by_id: BTreeMap<String, (Kind, Verdict)>,
    raw: Value,
}

impl Verdicts {
    pub fn judge(tests: &[Test], raw: Value) -> Verdicts {
        let known: BTreeMap<&str, &Test> = tests.iter().map(|test| (test.id.as_str(), test)).collect();
        let by_id = tests.iter().map(|test| (test.id.clone(), (test.kind, verdict(test, &known, &raw)))).collect();
        Verdicts { by_id, raw }
    }

    pub fn count(&self, kind: Kind, verdict: Verdict) -> usize {
        self.by_id.values().filter(|&&pair| pair == (kind, verdict)).count()
    }

    /// Required and optimal tests that did not pass. A check has no wrong answer.
    pub fn failures(&self) -> impl Iterator<Item = (&str, Kind, Verdict)> {
        let all = self.by_id.iter().map(|(id, &(kind, verdict))| (id.as_str(), kind, verdict));
        all.filter(|&(_, kind, verdict)| kind != Kind::Check && verdict != Verdict::Pass)
    }

    /// What the suite said of a test.
    pub fn said(&self, id: &str) -> String {
        let result = &self.raw[id];
        result[1].as_str().map_or_else(|| result.to_string(), str::to_string)
    }

    /// One line a kind.
    pub fn summary(&self) -> Vec<String> {
        let line = |kind: Kind| {
            let count = |verdict| self.count(kind, verdict);
            let (yes, no) = if kind == Kind::Check { ("yes", "no") } else { ("pass", "fail") };
            format!(
                "{:<9} {:>4} {yes} {:>4} {no} {:>4} setup {:>4} dependency {:>4} absent",
                kind.word(),
                count(Verdict::Pass),
                count(Verdict::Fail),
                count(Verdict::Setup),
                count(Verdict::Dependency),
                count(Verdict::Absent)
            )
        };
        [Kind::Required, Kind::Optimal, Kind::Check].map(line).to_vec()
    }

    /// Where the failures and the list differ. The list is closed: a test on it that passes is a difference too.
    pub fn differences(&self, list: &[Row]) -> Vec<String> {
        let mut differences = Vec::new();
        for (id, kind, verdict) in self.failures() {
            match list.iter().find(|row| row.id == id) {
                None => differences.push(format!("{} {id}: {}: {}", kind.word(), verdict.word(), self.said(id))),
                Some(row) if row.verdict != verdict.word() => {
                    differences.push(format!("{id}: listed as '{}', and is '{}'", row.verdict, verdict.word()));
                }
                Some(row) if row.kind != kind.word() => {
                    differences.push(format!("{id}: listed as '{}', and is '{}'", row.kind, kind.word()));
                }
                Some(_) => {}
            }
        }
        for row in list {
            match self.by_id.get(&row.id) {
                None => differences.push(format!("{}: listed, and no test of the suite", row.id)),
                Some((_, Verdict::Pass)) => differences.push(format!("{}: listed, and passes", row.id)),
                Some((Kind::Check, _)) => differences.push(format!("{}: listed, and only a check", row.id)),
                Some(_) => {}
            }
            if row.reason.is_empty() {
                differences.push(format!("{}: listed without a reason", row.id));
            }
        }
        differences
    }
}

/// The verdict of one test: a dependency that did not pass outweighs its own result.
fn verdict(test: &Test, known: &BTreeMap<&str, &Test>, raw: &Value) -> Verdict {
    let passes = |id: &String| known.get(id.as_str()).is_some_and(|other| verdict(other, known, raw) == Verdict::Pass);
    match raw.get(&test.id) {
        None => Verdict::Absent,
        Some(_) if !test.depends_on.iter().all(passes) => Verdict::Dependency,
        Some(Value::Bool(true)) => Verdict::Pass,
        Some(result) if result[0] == "Setup" => Verdict::Setup,
        Some(_) => Verdict::Fail,
    }
}

/// A row of the list in docs/conformance.md.
#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    pub id: String,
    pub kind: String,
    pub verdict: String,
    pub reason: String,
}

/// The rows of every Markdown table that has the four columns id, kind, verdict, reason.
pub fn list(text: &str) -> Vec<Row> {
    let rows = text.lines().filter_map(|line| {
        let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
        let cells: Vec<&str> = inner.splitn(4, '|').map(str::trim).collect();
        let [id, kind, verdict, reason] = cells.as_slice() else { return None };
        let id = id.strip_prefix('`')?.strip_suffix('`')?;
        let owned = |text: &str| text.to_string();
        Some(Row { id: owned(id), kind: owned(kind), verdict: owned(verdict), reason: owned(reason) })
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tests() -> Vec<Test> {
        let test = |id: &str, kind, depends_on: &[&str]| Test {
            id: id.to_string(),
            kind,
            depends_on: depends_on.iter().map(|d| d.to_string()).collect(),
        };
        vec![
            test("base", Kind::Required, &[]),
            test("middle", Kind::Required, &["base"]),
            test("top", Kind::Optimal, &["middle"]),
            test("asks", Kind::Check, &[]),
        ]
    }

    fn check(raw: Value, expect: [Verdict; 4]) {
        let verdicts = Verdicts::judge(&tests(), raw.clone());
        for (id, expected) in ["base", "middle", "top", "asks"].iter().zip(expect) {
            assert_eq!(verdicts.by_id[*id].1, expected, "{id} of {raw}");
        }
    }

    #[test]
    fn a_verdict_depends_on_those_it_depends_on() {
        use Verdict::*;
        let failed = || json!(["Assertion", "x"]);
        check(json!({"base": true, "middle": true, "top": true, "asks": failed()}), [Pass, Pass, Pass, Fail]);
        check(
            json!({"base": failed(), "middle": true, "top": true, "asks": true}),
            [Fail, Dependency, Dependency, Pass],
        );
        check(json!({"base": true, "middle": ["Setup", "x"], "top": true}), [Pass, Setup, Dependency, Absent]);
        check(
            json!({"base": true, "middle": true, "top": ["AbortError", "x"], "asks": true}),
            [Pass, Pass, Fail, Pass],
        );
    }

    #[test]
    fn the_list_is_closed() {
        let raw = json!({"base": true, "middle": ["Assertion", "says why"], "top": true, "asks": false});
        let verdicts = Verdicts::judge(&tests(), raw);
        let row = |id: &str, kind: &str, verdict: &str| format!("| `{id}` | {kind} | {verdict} | because |\n");
        let differences = |rows: &[String]| verdicts.differences(&list(&rows.concat()));
        let exact = [row("middle", "required", "fail"), row("top", "optimal", "dependency")];
        assert!(differences(&exact).is_empty(), "{:?}", differences(&exact));
        assert!(differences(&exact[..1])[0].starts_with("optimal top: dependency"));
        assert!(differences(&exact[1..])[0].contains("says why"));
        assert_eq!(
            differences(&[&exact[..], &[row("base", "required", "fail")]].concat()),
            ["base: listed, and passes"]
        );
        assert_eq!(differences(&[&exact[..], &[row("new", "required", "fail")]].concat()).len(), 1);
        assert_eq!(differences(&[row("middle", "required", "setup"), exact[1].clone()]).len(), 1);
        assert_eq!(differences(&[exact[0].replace("because", ""), exact[1].clone()]).len(), 1);
    }
}
