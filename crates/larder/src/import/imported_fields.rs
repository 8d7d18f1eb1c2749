//! Fields of requests or of answers as rules of another server edit them one after the other, as what a `[[route]]` says of them
//! at once. It knows no server's words.

use crate::import::import_findings::quoted;
use crate::import::nginx_fields::inline_table;

/// Fields of answers by which caches know what they may keep, and for whom.
const SAY_WHO_STORES: [&str; 6] =
    ["cache-control", "cdn-cache-control", "expires", "pragma", "surrogate-control", "vary"];

/// Does a field say who may keep an answer?
pub fn is_of_caches(name: &str) -> bool {
    SAY_WHO_STORES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Does an answer to which a rule gives this field stay one that everybody may be given? A value that is made up as it is sent may say anything.
pub fn lets_store(name: &str, value: &str) -> bool {
    let value = value.to_lowercase();
    let is_known = !value.contains(['$', '%']);
    match name.to_lowercase().as_str() {
        "vary" => value.split(',').all(|part| part.trim() == "accept-encoding"),
        "expires" => is_known && !matches!(value.trim(), "0" | "-1") && !value.contains("1970"),
        name if is_of_caches(name) => {
            is_known && !["private", "no-store", "no-cache"].iter().any(|word| value.contains(word))
        }
        _ => true,
    }
}

/// What is left of a list of edits: the last word on a name counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EditedFields {
    set: Vec<(String, String)>,
    added: Vec<(String, String)>,
    /// Names, with a `*` for any text.
    removed: Vec<String>,
}

impl EditedFields {
    pub fn set(&mut self, name: &str, value: String) {
        self.forget(name);
        self.set.push((name.to_owned(), value));
    }

    pub fn add(&mut self, name: &str, value: String) {
        // What is taken out and then added is set.
        match self.removed.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            true => self.set(name, value),
            false => self.added.push((name.to_owned(), value)),
        }
    }

    pub fn remove(&mut self, name: &str) {
        self.forget(name);
        self.removed.push(name.to_owned());
    }

    fn forget(&mut self, name: &str) {
        self.set.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.added.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.removed.retain(|known| !known.eq_ignore_ascii_case(name));
    }

    /// Has a rule changed the field of this name?
    pub fn touches(&self, name: &str) -> bool {
        let is_it = |known: &str| match known.strip_suffix('*') {
            Some(start) => name.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start)),
            None => known.eq_ignore_ascii_case(name),
        };
        let names = self.set.iter().chain(&self.added).map(|(known, _)| known);
        names.chain(&self.removed).any(|known| is_it(known))
    }

    /// Does a text with larder's variables in it say what a rule has changed? A client's word would be said in its place.
    pub fn are_said_in(&self, text: &str) -> bool {
        let edited = self.set.iter().chain(&self.added).map(|(name, _)| name).chain(&self.removed);
        edited.map(|name| format!("${{http_{}", name.to_lowercase().replace('-', "_"))).any(|start| {
            match start.strip_suffix('*') {
                Some(start) => text.contains(start),
                None => text.contains(&format!("{start}}}")),
            }
        })
    }

    /// What a second list makes of the fields after this one.
    pub fn then(&mut self, later: &EditedFields) {
        later.removed.iter().for_each(|name| self.remove(name));
        later.set.iter().for_each(|(name, value)| self.set(name, value.clone()));
        for (name, value) in &later.added {
            self.add(name, value.clone());
        }
    }

    /// The line of a route, `key` being `request_headers` or `response_headers`. A name is said once: further values of it are dropped, and
    /// the second says which.
    pub fn line(&self, key: &str) -> (Option<String>, Vec<String>) {
        let (mut added, mut dropped): (Vec<(String, String)>, Vec<String>) = (Vec::new(), Vec::new());
        for (name, value) in &self.added {
            let is_known = self.set.iter().chain(&added).any(|(known, _)| known.eq_ignore_ascii_case(name));
            if is_known { dropped.push(name.clone()) } else { added.push((name.clone(), value.clone())) }
        }
        let mut tables = Vec::new();
        for (word, fields) in [("set", &self.set), ("add", &added)] {
            if !fields.is_empty() {
                tables.push(format!("{word} = {}", inline_table(fields)));
            }
        }
        if !self.removed.is_empty() {
            let names: Vec<String> = self.removed.iter().map(|name| quoted(name)).collect();
            tables.push(format!("remove = [{}]", names.join(", ")));
        }
        ((!tables.is_empty()).then(|| format!("{key} = {{ {} }}", tables.join(", "))), dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_may_say_that_an_answer_is_one_clients() {
        for (name, value, expect) in [
            ("Cache-Control", "public, max-age=5", true),
            ("Cache-Control", "max-age=5, Private", false),
            ("cache-control", "no-store", false),
            ("Cache-Control", "$how", false),
            ("Pragma", "no-cache", false),
            ("Pragma", "public", true),
            ("Expires", "0", false),
            ("Vary", "Accept-Encoding", true),
            ("Vary", "X-Session", false),
            ("X-Private", "private", true),
        ] {
            assert_eq!(lets_store(name, value), expect, "{name}: {value}");
        }
    }

    #[test]
    fn the_last_word_on_a_field_counts() {
        let mut edits = EditedFields::default();
        edits.set("X-A", "1".into());
        edits.add("x-b", "2".into());
        edits.remove("X-a");
        edits.remove("X-C-*");
        edits.add("X-A", "3".into());
        let line = "f = { set = { \"X-A\" = \"3\" }, add = { \"x-b\" = \"2\" }, remove = [\"X-C-*\"] }";
        assert_eq!(edits.line("f"), (Some(line.to_owned()), Vec::new()));
        assert!(edits.touches("X-B") && edits.touches("x-c-d") && !edits.touches("X-D"));
        assert!(edits.are_said_in("${uri} ${http_x_b}") && edits.are_said_in("${http_x_c_d}"));
        assert!(!edits.are_said_in("${http_x_bc} ${http_x_d}"));
        let mut first = EditedFields::default();
        first.set("X-B", "old".into());
        first.then(&edits);
        assert!(first.line("f").1 == ["x-b"], "{first:?}");
        assert_eq!(EditedFields::default().line("f"), (None, Vec::new()));
    }
}
