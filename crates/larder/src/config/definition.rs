//! What a key of larder.toml is: its type, its default, an example, and what it does. One row a key, in `config/keys/`; the pages, the
//! sample, the schema for editors and `larder config show` are made of these rows, and the tests hold them against what is read.
//!
//! It does not know what any key means.

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct KeyDefinition {
    pub name: &'static str,
    pub kind: ValueKind,
    /// The version that had it first.
    pub since: &'static str,
    /// What it does, in sentences.
    pub says: &'static str,
    /// What holds without it, as TOML. It comes from the code that uses it.
    pub default: Option<fn() -> String>,
    /// The same in words, where it is no value or depends on other keys.
    pub without: Option<&'static str>,
    /// A value, as TOML. Without: the default is one.
    pub example: Option<&'static str>,
    /// Its section means nothing without it.
    pub is_required: bool,
    /// What a number counts, where the name does not say.
    pub unit: Option<&'static str>,
    pub secrecy: Secrecy,
}

/// Whether a value is for its owner alone. `larder config show` leaves such out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrecy {
    Open,
    /// All that stands there; of a map, each value.
    Secret,
    /// Of a map, values under names that credentials have: `Authorization`, `DB_PASSWORD`.
    ByName,
}

/// What values a key takes.
#[derive(Clone, Copy, Debug)]
pub enum ValueKind {
    /// `true` or `false`.
    Switch,
    /// A whole number.
    Count(u64, u64),
    /// Bytes: a number, or a text with a unit.
    Size(u64, u64),
    /// A text with a unit. `true`: longer than nothing.
    Time(bool),
    /// One of a few words.
    Words(fn() -> Vec<&'static str>),
    /// A text of this form.
    Text(&'static str),
    /// As it would stand behind `-p`: a number, a text or a switch.
    Parameter(&'static str),
    /// One, or a list of them.
    List(&'static ValueKind),
    /// One of several.
    Either(&'static [ValueKind]),
    /// A table whose keys are the operator's own words, of this form.
    Map(&'static str, &'static ValueKind),
    /// A table with keys of its own: the section of this path.
    Table,
}

/// Whole numbers without a bound that means anything.
pub const COUNT: ValueKind = ValueKind::Count(0, u64::MAX);
pub const SIZE: ValueKind = ValueKind::Size(0, u64::MAX);
pub const TIME: ValueKind = ValueKind::Time(false);
pub const PATH: ValueKind = ValueKind::Text("a path");
pub const NETWORK: ValueKind = ValueKind::Text("a network or an address");

/// The versions that keys came with.
pub const V0_1: &str = "0.1.0";

/// A key of this name and type.
pub const fn key(since: &'static str, name: &'static str, kind: ValueKind, says: &'static str) -> KeyDefinition {
    let (default, without, example) = (None, None, None);
    KeyDefinition {
        name,
        kind,
        since,
        says,
        default,
        without,
        example,
        is_required: false,
        unit: None,
        secrecy: Secrecy::Open,
    }
}

impl KeyDefinition {
    /// What holds without it. Take it from where the code has it: `Plan::default()`, a constant.
    pub const fn by_default(mut self, literal: fn() -> String) -> KeyDefinition {
        self.default = Some(literal);
        self
    }

    /// What holds without it, in words that go on behind "Without it: ". With a default, too: then that is only the usual one.
    pub const fn without(mut self, words: &'static str) -> KeyDefinition {
        self.without = Some(words);
        self
    }

    pub const fn example(mut self, literal: &'static str) -> KeyDefinition {
        self.example = Some(literal);
        self
    }

    /// Its section cannot do without it; with an example.
    pub const fn required(mut self, example: &'static str) -> KeyDefinition {
        self.is_required = true;
        self.example = Some(example);
        self
    }

    pub const fn unit(mut self, unit: &'static str) -> KeyDefinition {
        self.unit = Some(unit);
        self
    }

    /// Nobody is shown what stands there.
    pub const fn secret(mut self) -> KeyDefinition {
        self.secrecy = Secrecy::Secret;
        self
    }

    /// Nobody is shown what stands there under a name that credentials have.
    pub const fn secret_by_name(mut self) -> KeyDefinition {
        self.secrecy = Secrecy::ByName;
        self
    }

    /// A value that may stand there: the example, or the default.
    pub fn shown(&self) -> String {
        let default = || self.default.map(|literal| literal());
        self.example.map(str::to_owned).or_else(default).unwrap_or_default()
    }
}

/// Keys of one section that are told of together.
#[derive(Clone, Copy, Debug)]
pub struct KeyGroup {
    /// What stands above them; of one that begins with `--- `, the part of the file begins there.
    pub intro: &'static str,
    pub keys: &'static [KeyDefinition],
    /// They mean something beside this key alone.
    pub beside: Option<&'static str>,
    /// In the sample their table is for this path.
    pub shown_at: Option<&'static str>,
    /// Other names for keys of another section.
    pub are_aliases: bool,
}

impl KeyGroup {
    pub const fn new(intro: &'static str, keys: &'static [KeyDefinition]) -> KeyGroup {
        KeyGroup { intro, keys, beside: None, shown_at: None, are_aliases: false }
    }

    pub const fn beside(mut self, key: &'static str) -> KeyGroup {
        self.beside = Some(key);
        self
    }

    pub const fn aliases(mut self) -> KeyGroup {
        self.are_aliases = true;
        self
    }

    pub const fn shown_at(mut self, path: &'static str) -> KeyGroup {
        self.shown_at = Some(path);
        self
    }
}

/// One section: a table, a list of tables, or the top level.
#[derive(Clone, Copy, Debug)]
pub struct SectionDefinition {
    /// `""` is the top level, `listen.tls` lies in `listen`; `NAME` stands for a word of the operator's.
    pub path: &'static str,
    /// `[[path]]`: there may be several.
    pub is_list: bool,
    /// In the sample its header stands once for each group, since a table has the keys of one of them.
    pub is_one_of_groups: bool,
    /// Where the keys are defined, for who adds one.
    pub file: &'static str,
    pub groups: &'static [KeyGroup],
}

impl SectionDefinition {
    /// `[memory]`, `[[listen]]`.
    pub fn header(&self) -> String {
        match (self.path, self.is_list) {
            ("", _) => "the top level".to_owned(),
            (path, true) => format!("[[{path}]]"),
            (path, false) => format!("[{path}]"),
        }
    }

    pub fn keys(&self) -> impl Iterator<Item = &'static KeyDefinition> {
        self.groups.iter().flat_map(|group| group.keys)
    }

    pub fn key(&self, name: &str) -> Option<&'static KeyDefinition> {
        self.keys().find(|key| key.name == name)
    }
}
