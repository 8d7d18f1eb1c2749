//! `[traces]`: trace context that is handed on, and which exchanges are told of.

use std::sync::Arc;

use proxy::settings::{Settings, TraceSettings};
use toml::de::DeValue;

use super::complaint::Complaint;
use super::section::{Node, Section, switch, wrong_type};

pub fn read(mut section: Section<'_>, settings: &mut Settings) {
    let mut traces = TraceSettings::default();
    if let Some(millionths) = section.read("sample", sample) {
        traces.sample_millionths = millionths;
    }
    let propagates = section.read("propagate", switch).unwrap_or(false);
    settings.traces = propagates.then(|| Arc::new(traces));
    section.end();
}

/// A part of one, in millionths, or nothing.
fn sample(node: Node<'_>) -> Result<u64, Complaint> {
    let share = match node.get_ref() {
        DeValue::Float(share) => share.as_str().parse::<f64>().ok(),
        DeValue::Integer(share) => share.as_str().parse::<f64>().ok(),
        _ => return Err(wrong_type(node, "a share, such as 0.01")),
    };
    let share = share.filter(|share| (0.0..=1.0).contains(share));
    share.map(|share| (share * TraceSettings::WHOLE as f64).round() as u64).ok_or_else(|| {
        Complaint::new(node.span(), "the share is out of range", "must be 0 to 1: 0.01 is every hundredth")
    })
}

#[cfg(test)]
mod tests {
    use super::super::read as read_config;

    fn sample(text: &str) -> Option<u64> {
        let plan = read_config(text).unwrap_or_else(|wrong| panic!("{wrong:?}"));
        plan.settings.traces.map(|traces| traces.sample_millionths)
    }

    #[test]
    fn trace_context_is_handed_on_where_that_is_said() {
        assert_eq!((sample(""), sample("[traces]\nsample = 1\n")), (None, None));
        assert_eq!(sample("[traces]\npropagate = true\n"), Some(10_000));
        for (share, expect) in [("1", 1_000_000), ("0", 0), ("0.5", 500_000), ("1e-9", 0)] {
            assert_eq!(sample(&format!("[traces]\npropagate = true\nsample = {share}\n")), Some(expect), "{share}");
        }
    }

    fn check(line: &str, expect: &str) {
        let wrong = read_config(&format!("[traces]\n{line}\n")).expect_err(line);
        assert_eq!(wrong.iter().map(|complaint| complaint.what.as_str()).collect::<Vec<_>>(), [expect], "{line}");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        check("sample = 1.5", "the share is out of range");
        check("sample = -0.1", "the share is out of range");
        check("sample = nan", "the share is out of range");
        check("sample = \"1%\"", "expected a share, such as 0.01, found a string");
    }
}
