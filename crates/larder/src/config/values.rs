//! The values of keys: texts, numbers, sizes, times, networks and words, each read from what the parser found, or with a complaint that says what
//! to write. This file knows no section.

#[cfg(test)]
use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;

use message::{Authority, Scheme};
use proxy::settings::Network;
use toml::Spanned;
use toml::de::DeValue;

use super::complaint::Complaint;
use super::nearest::nearest;
use crate::quantities;

/// A value and where it stands.
pub type Node<'a> = &'a Spanned<DeValue<'a>>;

/// What a reader took a value for.
#[cfg(test)]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReadForm {
    Text,
    Switch,
    Count,
    Size,
    Time,
    Words(Vec<&'static str>),
}

#[cfg(test)]
thread_local! {
    pub static FORMS: RefCell<Vec<ReadForm>> = const { RefCell::new(Vec::new()) };
}

#[cfg(test)]
fn note(form: ReadForm) {
    FORMS.with_borrow_mut(|forms| forms.push(form));
}

pub fn is_table(node: &Spanned<DeValue<'_>>) -> bool {
    matches!(node.get_ref(), DeValue::Table(_))
}

pub fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a fraction",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// A complaint about a value of the wrong type.
pub fn wrong_type(node: Node<'_>, expected: &str) -> Complaint {
    Complaint::new(node.span(), format!("expected {expected}, found {}", kind(node.get_ref())), "has the wrong type")
}

/// Which of several kinds of value it is, before it is read as one of them.
pub fn is_text(node: Node<'_>) -> bool {
    matches!(node.get_ref(), DeValue::String(_))
}

/// The same of `true` and `false`.
pub fn as_switch(node: Node<'_>) -> Option<bool> {
    match node.get_ref() {
        DeValue::Boolean(on) => Some(*on),
        _ => None,
    }
}

pub fn text<'a>(node: Node<'a>) -> Result<&'a str, Complaint> {
    #[cfg(test)]
    note(ReadForm::Text);
    written(node)
}

fn written<'a>(node: Node<'a>) -> Result<&'a str, Complaint> {
    match node.get_ref() {
        DeValue::String(text) => Ok(text),
        DeValue::Integer(_) | DeValue::Float(_) | DeValue::Datetime(_) => {
            Err(wrong_type(node, "a string").suggest("put it in quotes"))
        }
        DeValue::Array(_) => Err(wrong_type(node, "a string").suggest("write one text in quotes, and no list")),
        _ => Err(wrong_type(node, "a string").suggest("write a text in quotes")),
    }
}

pub fn switch(node: Node<'_>) -> Result<bool, Complaint> {
    #[cfg(test)]
    note(ReadForm::Switch);
    match node.get_ref() {
        DeValue::Boolean(on) => Ok(*on),
        _ => Err(wrong_type(node, "true or false").suggest("write true or false, without quotes")),
    }
}

pub fn count(node: Node<'_>) -> Result<u64, Complaint> {
    #[cfg(test)]
    note(ReadForm::Count);
    whole_number(node)
}

fn whole_number(node: Node<'_>) -> Result<u64, Complaint> {
    match node.get_ref() {
        DeValue::Integer(n) => u64::from_str_radix(n.as_str(), n.radix()).map_err(|_| {
            let is_negative = n.as_str().starts_with('-');
            let why = if is_negative { "must be 0 or more" } else { "larger than any number that larder reads" };
            Complaint::new(node.span(), "the number is out of range", why)
        }),
        _ => Err(wrong_type(node, "a whole number")),
    }
}

/// Bytes: an integer, or a text with a unit.
pub fn size(node: Node<'_>) -> Result<u64, Complaint> {
    #[cfg(test)]
    note(ReadForm::Size);
    match node.get_ref() {
        DeValue::Integer(_) => whole_number(node),
        DeValue::String(text) => {
            quantities::parse_size(text).map_err(|why| Complaint::new(node.span(), format!("`{text}` is no size"), why))
        }
        _ => Err(wrong_type(node, "a size, such as \"64MiB\"")),
    }
}

pub fn duration(node: Node<'_>) -> Result<Duration, Complaint> {
    #[cfg(test)]
    note(ReadForm::Time);
    match node.get_ref() {
        DeValue::String(text) => quantities::read_duration(text).map_err(|why| {
            let complaint = Complaint::new(node.span(), format!("`{text}` is no duration"), why);
            match quantities::meant_duration(text) {
                Some(meant) => complaint.suggest(format!("write \"{meant}\"")),
                None => complaint,
            }
        }),
        DeValue::Integer(n) if n.as_str().starts_with('-') => {
            Err(Complaint::new(node.span(), format!("{n} is no duration"), "must be 0 or more")
                .suggest("such as \"10s\""))
        }
        DeValue::Integer(n) => {
            let suggestion = format!("write \"{n}s\" or \"{n}ms\"");
            Err(Complaint::new(node.span(), "a duration needs its unit", "which unit?").suggest(suggestion))
        }
        _ => Err(wrong_type(node, "a duration, such as \"10s\"")),
    }
}

/// A duration where nothing counts less than a second.
pub fn seconds(node: Node<'_>) -> Result<u64, Complaint> {
    let time = duration(node)?;
    if time.subsec_nanos() == 0 {
        return Ok(time.as_secs());
    }
    let (what, next) = (format!("`{}` is no whole number of seconds", text(node)?), time.as_secs() + 1);
    Err(Complaint::new(node.span(), what, "seconds are counted here").suggest(format!("write \"{next}s\"")))
}

/// A pattern, of which no character is a control one: within double quotes `\b` is one in TOML, and not the border of a word.
pub fn pattern<'a>(node: Node<'a>) -> Result<&'a str, Complaint> {
    let pattern = text(node)?;
    if !pattern.chars().any(char::is_control) {
        return Ok(pattern);
    }
    let what = "this pattern has a control character, as which \\b, \\t and their like count within double quotes";
    let plain: String = pattern
        .chars()
        .map(|c| match c {
            '\u{8}' => "\\b".to_owned(),
            c if c.is_control() => c.escape_default().to_string(),
            c => c.to_string(),
        })
        .collect();
    let written =
        if plain.contains('\'') { format!("\"{}\"", plain.replace('\\', "\\\\")) } else { format!("'{plain}'") };
    Err(Complaint::new(node.span(), what, "no path has one").suggest(format!("write {written}")))
}

/// An address or a prefix.
pub fn network(node: Node<'_>) -> Result<Network, Complaint> {
    let form = "an address or a prefix, such as 10.0.0.0/8 or ::1";
    let network = parsed(node, "network", form, |written| written.parse().ok());
    let network = network.map_err(|complaint| match node.get_ref() {
        DeValue::String(written) => match written.to_ascii_lowercase().as_str() {
            "localhost" => complaint.suggest("write \"127.0.0.0/8\" and \"::1\""),
            "all" | "any" | "*" | "everybody" => {
                complaint.suggest("name the networks that are meant. Behind `allow` nobody else is let in, without a `deny`: one that names all shuts everybody out")
            }
            _ => complaint,
        },
        _ => complaint.suggest("such as [\"10.0.0.0/8\", \"::1\"]"),
    })?;
    check_network(node, network, &|network| network.to_string())?;
    Ok(network)
}

/// `10.0.0.1/8` may mean one address or its whole network, which is no small difference where somebody is let in. `shown`: as it is written here.
pub fn check_network(node: Node<'_>, network: Network, shown: &dyn Fn(Network) -> String) -> Result<(), Complaint> {
    let whole = network.from_its_first();
    if whole == network {
        return Ok(());
    }
    let prefix_bits = if network.address.is_ipv4() { 32 } else { 128 };
    let one = Network { prefix_bits, ..network };
    let what = format!("`{network}` is one address with the prefix of a network");
    let complaint = Complaint::new(node.span(), what, format!("all of {whole}, or {one} alone?"));
    Err(complaint.suggest(format!("write \"{}\" for the network, or \"{}\" for the address", shown(whole), shown(one))))
}

/// A whole number that fits.
pub fn whole<T: TryFrom<u64>>(node: Node<'_>) -> Result<T, Complaint> {
    let number = count(node)?;
    number.try_into().map_err(|_| Complaint::new(node.span(), format!("{number} is out of range"), "too large"))
}

pub fn host_field(node: Node<'_>) -> Result<String, Complaint> {
    parsed(node, "host", "a Host field: a name or address, with a port if need be", |written| {
        Authority::parse(written.as_bytes(), Scheme::Http).map(|_| written.to_owned())
    })
}

/// A text that `parse` understands.
pub fn parsed<'a, T>(
    node: Node<'a>,
    what: &str,
    form: &str,
    parse: impl FnOnce(&'a str) -> Option<T>,
) -> Result<T, Complaint> {
    let written = text(node)?;
    parse(written).ok_or_else(|| Complaint::new(node.span(), format!("`{written}` is no {what}"), form.to_owned()))
}

/// For [`parsed`]: a file or a folder, wherever it is.
pub fn path(written: &str) -> Option<PathBuf> {
    (!written.is_empty()).then(|| PathBuf::from(written))
}

/// One of a few words.
pub fn choice<T: Copy>(node: Node<'_>, words: &[(&'static str, T)]) -> Result<T, Complaint> {
    #[cfg(test)]
    note(ReadForm::Words(words.iter().map(|(word, _)| *word).collect()));
    let written = written(node)?;
    words.iter().find(|(word, _)| *word == written).map(|&(_, value)| value).ok_or_else(|| {
        let list: Vec<_> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        let complaint = Complaint::new(node.span(), format!("`{written}` is not among the choices"), "no such choice");
        match nearest(written, words.iter().map(|(word, _)| *word)) {
            Some(meant) => complaint.suggest(format!("did you mean \"{meant}\"?")),
            None => complaint.suggest(format!("write {}", list.join(" or "))),
        }
    })
}
