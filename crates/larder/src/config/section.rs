//! Reading one table of larder.toml: each key by name and type, every mistake noted, none of them the end.
//!
//! Derived deserialisers stop at the first error; an operator wants all of them at once, with a suggestion each. So
//! the tree that `toml` parsed, spans included, is read key by key. This file knows TOML, not larder's keys.

use std::cell::RefCell;
#[cfg(test)]
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::complaint::Complaint;
use super::literal;
use super::nearest::nearest;
#[cfg(test)]
use super::values::FORMS;
#[cfg(test)]
pub use super::values::ReadForm;
pub use super::values::{
    Node, as_switch, check_network, choice, count, duration, host_field, is_table, is_text, kind, network, parsed,
    path, pattern, seconds, size, switch, text, whole, wrong_type,
};

/// A longer list of keys than this helps nobody.
const KEYS_LISTED_MAX: usize = 16;

/// The mistakes found so far.
#[derive(Debug, Default)]
pub struct Complaints {
    found: RefCell<Vec<Complaint>>,
    /// What to write in place of a key that is unknown.
    advice: Option<fn(UnknownKey<'_>) -> Option<Advice>>,
    /// What to write in place of a value that is no table, where the section of a path is.
    table_advice: Option<fn(&str, Written<'_>) -> Option<String>>,
    /// Where relative paths begin.
    folder: PathBuf,
    /// Files that were named to be read with the config.
    files_read: RefCell<Vec<PathBuf>>,
    /// Every key that was asked for, by its section's path, and how: what the definitions are held against.
    #[cfg(test)]
    pub asked: RefCell<BTreeMap<(String, &'static str), AskedKey>>,
}

impl Complaints {
    pub fn with_advice(
        advice: fn(UnknownKey<'_>) -> Option<Advice>,
        table_advice: fn(&str, Written<'_>) -> Option<String>,
    ) -> Complaints {
        Complaints { advice: Some(advice), table_advice: Some(table_advice), ..Complaints::default() }
    }

    /// Of a file in this folder.
    pub fn in_folder(self, folder: &Path) -> Complaints {
        Complaints { folder: folder.to_owned(), ..self }
    }

    /// A file as it is found from here: a relative path begins at the folder of the config.
    pub fn beside(&self, file: PathBuf) -> PathBuf {
        self.folder.join(file)
    }

    /// Those that were named so far, each of which is larder's own.
    pub fn files_read(&self) -> Vec<PathBuf> {
        self.files_read.borrow().clone()
    }

    pub fn add(&self, complaint: Complaint) {
        self.found.borrow_mut().push(complaint);
    }

    fn in_place_of_a_value(&self, path: &str, header: &str, value: &DeValue<'_>) -> String {
        let written = self.table_advice.and_then(|advice| advice(path, Written::of(value)));
        written.unwrap_or_else(|| format!("write {header} on a line of its own, and its keys below it"))
    }

    /// In the order of the file, without those that follow from another one.
    pub fn into_sorted(self) -> Vec<Complaint> {
        let mut all = self.found.into_inner();
        let causes = all.iter().filter(|complaint| complaint.relation.follows_from.is_empty());
        let causes: Vec<(usize, String)> =
            causes.filter_map(|cause| Some((cause.span.start, cause.relation.of.clone()?))).collect();
        let is_its_own = |complaint: &Complaint| {
            let is_cause = |(at, key): &(usize, String)| {
                complaint.relation.until.is_none_or(|until| *at < until)
                    && complaint.relation.follows_from.contains(&key.as_str())
            };
            !causes.iter().any(is_cause)
        };
        all.retain(is_its_own);
        all.sort_by_key(|c| c.span.start);
        all
    }
}

/// A key that nobody asked for.
#[derive(Clone, Copy, Debug)]
pub struct UnknownKey<'a> {
    /// Of its section.
    pub path: &'a str,
    /// Of its section, as an operator names it.
    pub label: &'a str,
    pub key: &'a str,
    /// The key of this section of which it is another spelling.
    pub spelling_of: Option<&'a str>,
}

/// What to write in place of a key.
#[derive(Clone, Debug)]
pub struct Advice {
    pub write: String,
    /// The key of the same section that was meant: it is not missing, then.
    pub of: Option<&'static str>,
}

/// A value that was written where a table belongs, for what is to be written instead.
#[derive(Clone, Copy, Debug)]
pub enum Written<'a> {
    Text(&'a str),
    Number(&'a str),
    Switch(bool),
    Other,
}

impl<'a> Written<'a> {
    /// Of a list the first.
    fn of(value: &'a DeValue<'a>) -> Written<'a> {
        match value {
            DeValue::String(text) => Written::Text(text),
            DeValue::Integer(number) => Written::Number(number.as_str()),
            DeValue::Boolean(on) => Written::Switch(*on),
            DeValue::Array(items) => items.first().map_or(Written::Other, |first| match first.get_ref() {
                DeValue::Array(_) => Written::Other,
                first => Written::of(first),
            }),
            _ => Written::Other,
        }
    }
}

/// How a key was read.
#[cfg(test)]
#[derive(Debug, Default)]
pub struct AskedKey {
    pub is_there: bool,
    pub forms: std::collections::BTreeSet<ReadForm>,
}

/// A table whose keys are being read. [`Section::end`] complains about those nobody asked for.
pub struct Section<'a> {
    /// As an operator names it: `[limits]`, `the top level`.
    label: String,
    /// As the definitions name it: `limits`, `listen.tls`, `origin.NAME`.
    path: String,
    table: &'a DeTable<'a>,
    span: Range<usize>,
    known: Vec<&'static str>,
    /// Keys that it shares with sections of another kind.
    shared: Vec<&'static str>,
    complaints: &'a Complaints,
}

impl<'a> Section<'a> {
    /// The top level.
    pub fn top(table: &'a DeTable<'a>, span: Range<usize>, complaints: &'a Complaints) -> Section<'a> {
        let label = "the top level".to_owned();
        Section { label, path: String::new(), table, span, known: Vec::new(), shared: Vec::new(), complaints }
    }

    /// Reads keys that mean here what they mean in the sections of another path.
    pub fn read_as<T>(&mut self, path: &str, read: impl FnOnce(&mut Section<'a>) -> T) -> T {
        let (table, span, complaints) = (self.table, self.span.clone(), self.complaints);
        let (known, shared) = (Vec::new(), Vec::new());
        let label = self.label.clone();
        let mut other = Section { label, path: path.to_owned(), table, span, known, shared, complaints };
        let found = read(&mut other);
        #[cfg(test)]
        other.note_asked();
        self.shared.append(&mut other.known);
        found
    }

    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    pub fn complaints(&self) -> &'a Complaints {
        self.complaints
    }

    /// The value of a key, which from now on is known.
    pub fn get(&mut self, key: &'static str) -> Option<Node<'a>> {
        self.known.push(key);
        self.table.get(key)
    }

    /// Is the key there? It is not known by this: who reads it says so.
    pub fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// A key's value as `reader` understands it; a complaint and `None` if it does not.
    pub fn read<T>(&mut self, key: &'static str, reader: impl FnOnce(Node<'a>) -> Result<T, Complaint>) -> Option<T> {
        let node = self.get(key)?;
        // What was looked at between two keys is neither's.
        #[cfg(test)]
        drop(FORMS.with_borrow_mut(std::mem::take));
        let value = reader(node).map_err(|complaint| self.complaints.add(complaint.of_key(key))).ok();
        #[cfg(test)]
        self.note_forms(key);
        value
    }

    /// One value or a list of them, each read on its own.
    pub fn read_list<T>(
        &mut self,
        key: &'static str,
        mut reader: impl FnMut(Node<'_>) -> Result<T, Complaint>,
    ) -> Option<Vec<T>> {
        let node = self.get(key)?;
        #[cfg(test)]
        drop(FORMS.with_borrow_mut(std::mem::take));
        let mut note = |node: Node<'_>, is_item: bool| {
            let value = reader(node).map_err(|complaint| {
                let complaint = match several(node, &mut reader) {
                    Some(items) if is_item => complaint.suggest(format!("write {}", items.join(", "))),
                    Some(items) => complaint.suggest(format!("write {key} = [{}]", items.join(", "))),
                    None => complaint,
                };
                self.complaints.add(complaint.of_key(key));
            });
            value.ok()
        };
        let values = match node.get_ref() {
            DeValue::Array(items) => items.iter().filter_map(|item| note(item, true)).collect(),
            _ => note(node, false).into_iter().collect(),
        };
        #[cfg(test)]
        self.note_forms(key);
        Some(values)
    }

    /// The table `[key]` inside this one.
    pub fn section(&mut self, key: &'static str) -> Option<Section<'a>> {
        let node = self.get(key)?;
        self.within(node, format!("[{key}]"), key)
    }

    /// The tables `[[key]]` inside this one.
    pub fn sections(&mut self, key: &'static str) -> Vec<Section<'a>> {
        match self.get(key).map(|node| (node, node.get_ref())) {
            None => Vec::new(),
            Some((_, DeValue::Array(items))) if items.iter().any(is_table) => {
                items.iter().filter_map(|node| self.within(node, format!("[[{key}]]"), key)).collect()
            }
            Some((node, other)) => {
                let found = match other {
                    DeValue::Table(_) => "one table",
                    DeValue::Array(_) => "a list of other values",
                    other => kind(other),
                };
                let what = format!("`{key}` must be a list of tables, but this is {found}");
                let complaint = Complaint::new(head(node), what, "begins here");
                self.complaints.add(complaint.suggest(match other {
                    DeValue::Table(_) => format!("write [[{key}]] with two brackets on each side"),
                    _ => self.complaints.in_place_of_a_value(&self.path_of(key), &format!("[[{key}]]"), other),
                }));
                Vec::new()
            }
        }
    }

    /// The table of a key that is a word of the operator's.
    pub fn section_of(&self, node: Node<'a>, label: String) -> Option<Section<'a>> {
        self.within(node, label, "NAME")
    }

    /// A table among the values of a key.
    pub fn table_of(&self, node: Node<'a>, key: &'static str) -> Option<Section<'a>> {
        self.within(node, format!("[{key}]"), key)
    }

    fn within(&self, node: Node<'a>, label: String, key: &str) -> Option<Section<'a>> {
        match node.get_ref() {
            DeValue::Table(table) => {
                let path = self.path_of(key);
                let (span, complaints) = (node.span(), self.complaints);
                Some(Section { label, path, table, span, known: Vec::new(), shared: Vec::new(), complaints })
            }
            other => {
                let what = format!("{label} must be a table, but this is {}", kind(other));
                let of = self.path.split('.').next().filter(|first| !first.is_empty()).unwrap_or(key);
                let complaint = Complaint::new(node.span(), what, "a table of keys was expected").of_key(of);
                self.complaints.add(match other {
                    DeValue::Array(items) if !items.is_empty() && items.iter().all(is_table) => {
                        complaint.suggest(format!("write {label} with one bracket on each side"))
                    }
                    _ => complaint.suggest(self.complaints.in_place_of_a_value(&self.path_of(key), &label, other)),
                });
                None
            }
        }
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Complains when a key that must be there is not, unless an unknown one looks like it and will be named.
    pub fn require(&mut self, key: &'static str, suggestion: &str) {
        self.require_among(key, &[], suggestion);
    }

    /// The same for one that may be missing only because one of these others was written wrongly.
    pub fn require_among(&mut self, key: &'static str, others: &'static [&'static str], suggestion: &str) {
        let absent = self.get(key).is_none();
        let stands_for_it = |word: &str| {
            let is_unknown = !self.known.contains(&word);
            let is_slip = || nearest(word, [key]).is_some();
            let is_meant = || self.advice(word, None).is_some_and(|advice| advice.of == Some(key));
            is_unknown && (is_slip() || is_meant())
        };
        if absent && !self.entries().any(|(word, ..)| stands_for_it(word)) {
            let complaint = Complaint::new(self.span(), format!("`{key}` is missing"), "in this section");
            self.complaints.add(complaint.suggest(suggestion).following_from(others));
        }
    }

    fn advice(&self, key: &str, spelling_of: Option<&str>) -> Option<Advice> {
        let unknown = UnknownKey { path: &self.path, label: &self.label, key, spelling_of };
        self.complaints.advice.and_then(|advice| advice(unknown))
    }

    /// Every key and value, for tables whose keys are names.
    pub fn entries(&self) -> impl Iterator<Item = (&'a str, Range<usize>, Node<'a>)> {
        self.table.iter().map(|(key, node)| (key.get_ref().as_ref(), key.span(), node))
    }

    /// Complains about the keys that were not asked for.
    pub fn end(self) {
        #[cfg(test)]
        self.note_asked();
        let is_known = |key: &str| self.known.contains(&key) || self.shared.contains(&key);
        for (key, span, _) in self.entries().filter(|(key, ..)| !is_known(key)) {
            self.complaints.add(self.unknown(key, span));
        }
    }

    fn unknown(&self, key: &str, span: Range<usize>) -> Complaint {
        let complaint = Complaint::new(span, format!("unknown key `{key}` in {}", self.label), "no such key");
        let meant = nearest(key, self.known.iter().chain(&self.shared).copied());
        let spelling_of = meant.filter(|meant| fold(meant) == fold(key));
        if let Some(advice) = self.advice(key, spelling_of) {
            let complaint = complaint.suggest(advice.write);
            return match advice.of {
                Some(meant) => complaint.of_key(meant),
                None => complaint,
            };
        }
        match meant {
            Some(meant) => complaint.suggest(format!("did you mean `{meant}`?")).of_key(meant),
            None => {
                // One that is asked for twice is one key.
                let mut known: Vec<&str> = Vec::new();
                for key in &self.known {
                    if !known.contains(key) {
                        known.push(key);
                    }
                }
                match known.len() <= KEYS_LISTED_MAX {
                    true => complaint.suggest(format!("the keys here are {}", known.join(", "))),
                    false => complaint,
                }
            }
        }
    }
}

#[cfg(test)]
impl Section<'_> {
    /// Sections of one kind are one here, whatever their names.
    fn note_asked(&self) {
        let mut asked = self.complaints.asked.borrow_mut();
        for key in &self.known {
            asked.entry((self.path.clone(), key)).or_default().is_there |= self.table.contains_key(*key);
        }
    }

    fn note_forms(&self, key: &'static str) {
        let mut asked = self.complaints.asked.borrow_mut();
        let forms = FORMS.with_borrow_mut(std::mem::take);
        asked.entry((self.path.clone(), key)).or_default().forms.extend(forms);
    }
}

/// The values in a text that is a list as other programs write it, with commas or blanks between them. `None`: it is no list of such values.
fn several<T>(node: Node<'_>, reader: &mut impl FnMut(Node<'_>) -> Result<T, Complaint>) -> Option<Vec<String>> {
    let DeValue::String(written) = node.get_ref() else { return None };
    let items: Vec<&str> =
        written.split(|c: char| c == ',' || c.is_whitespace()).filter(|item| !item.is_empty()).collect();
    let is_read = |item: &&str| {
        let item = Spanned::new(node.span(), DeValue::String((*item).into()));
        reader(&item).is_ok()
    };
    let is_list = items.len() > 1 && items.iter().all(is_read);
    is_list.then(|| items.into_iter().map(literal::text).collect())
}

/// Another spelling of the same word: `-` for `_`, capitals, a plural.
fn fold(word: &str) -> String {
    word.to_ascii_lowercase().replace('-', "_").trim_end_matches('s').to_owned()
}

/// The first line of a value that may span many.
fn head(node: Node<'_>) -> Range<usize> {
    node.span().start..node.span().start + 1
}

/// A file that is read while the config is: it begins at the config's folder.
pub fn file<'a>(node: Node<'a>, complaints: &Complaints) -> Result<PathBuf, Complaint> {
    let file = parsed(node, "file", "a path", path).map(|file| complaints.beside(file))?;
    complaints.files_read.borrow_mut().push(file.clone());
    Ok(file)
}
