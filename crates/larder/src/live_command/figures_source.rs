//! The figures of a running larder, read again and again: `/status` and `/metrics` of its admin address.

use std::collections::BTreeMap;
use std::time::Duration;

use proxy::Moment;
use serde_json::Value;

use crate::admin_client::{AdminFlags, exchange_within};

/// A larder that takes longer is gone for now: keys are heard meanwhile.
const LOOK_PATIENCE: Duration = Duration::from_secs(2);

/// Numbers by their names; what is nested has a name with dots.
#[derive(Clone, Debug)]
pub struct StatusFigures {
    /// How long after the first look they were read.
    pub at: Duration,
    pub numbers: BTreeMap<String, f64>,
}

impl StatusFigures {
    pub fn read(larder: &AdminFlags, begun: Moment) -> Result<StatusFigures, String> {
        let text = page(larder, "/status")?;
        let status: Value = serde_json::from_slice(&text).map_err(|_| "/status has no figures".to_owned())?;
        let mut numbers = BTreeMap::new();
        flatten("", &status, &mut numbers);
        Ok(StatusFigures { at: since(begun), numbers })
    }

    pub fn of(&self, name: &str) -> f64 {
        self.numbers.get(name).copied().unwrap_or(0.0)
    }
}

/// A list's members are known by `name`, `address` or `path`, where they have one, else by their number.
fn flatten(prefix: &str, value: &Value, numbers: &mut BTreeMap<String, f64>) {
    let below = |name: &str| if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
    match value {
        Value::Number(number) => {
            numbers.insert(prefix.to_owned(), number.as_f64().unwrap_or(0.0));
        }
        Value::Bool(is_so) => {
            numbers.insert(prefix.to_owned(), f64::from(u8::from(*is_so)));
        }
        Value::Object(fields) => fields.iter().for_each(|(name, value)| flatten(&below(name), value, numbers)),
        Value::Array(members) => {
            for (at, member) in members.iter().enumerate() {
                let known = ["name", "address", "path"].iter().find_map(|key| member[*key].as_str());
                let name = known.map_or_else(|| at.to_string(), str::to_owned);
                flatten(&below(&name), member, numbers);
            }
        }
        Value::Null | Value::String(_) => {}
    }
}

/// How long ago that was.
pub fn since(moment: Moment) -> Duration {
    Duration::from_micros(moment.micros_until(Moment::now()))
}

/// The text of `/metrics`.
pub fn metrics(larder: &AdminFlags) -> Result<String, String> {
    Ok(String::from_utf8_lossy(&page(larder, "/metrics")?).into_owned())
}

fn page(larder: &AdminFlags, path: &str) -> Result<Vec<u8>, String> {
    match exchange_within(LOOK_PATIENCE, larder, ("GET", path), b"")? {
        (200, body) => Ok(body),
        (status, body) => Err(format!("{path} is answered with {status}: {}", String::from_utf8_lossy(&body).trim())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_nested_has_a_name_with_dots() {
        let mut numbers = BTreeMap::new();
        let status = json!({ "hits": 3, "memory": { "used_bytes": 7, "refuses": true },
            "origins": [{ "name": "app", "asked": 9, "addresses": [{ "address": "10.0.0.1:80", "weight": 1 }] }],
            "version": "0.1.0", "hit_percent": null });
        flatten("", &status, &mut numbers);
        let names: Vec<&str> = numbers.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "hits",
                "memory.refuses",
                "memory.used_bytes",
                "origins.app.addresses.10.0.0.1:80.weight",
                "origins.app.asked"
            ]
        );
    }
}
