//! `larder config show`: every setting that holds, and where it comes from, as a larder.toml that says the same.
//!
//! What a file says is shown as it stands there, what flags say as the keys that they stand for, and all else by the definitions'
//! defaults. Limits are shown as they hold, for they have names of Varnish's as well.

use proxy::limits::Limits;
use toml::Table;
use toml::de::DeTable;

use super::definition::{KeyDefinition, KeyGroup, SectionDefinition, ValueKind};
use super::file_table::FileTable;
use super::flag_words::{FlagTable, FlagWords};
use super::keys::{self, SECTIONS};
use super::limits_section;
use super::{literal, secrets};
use crate::quantities::{parse_duration, parse_size};

/// A file, what flags say over it, and what came of both.
pub struct Shown<'a> {
    /// As it is called in "NAME:LINE".
    pub name: &'a str,
    /// It was read without a complaint.
    pub text: &'a str,
    pub flags: &'a FlagWords,
    pub limits: &'a Limits,
    /// A VCL decides.
    pub has_program: bool,
    /// There is something that a listener could stand in front of.
    pub accelerates: bool,
    /// Where larder listens without any `[[listen]]`, as TOML.
    pub listens_by_default: String,
    /// Leave out what is a default.
    pub changed_only: bool,
    /// Tokens and passwords are shown, too.
    pub with_secrets: bool,
}

const DEFAULT: &str = "default";

/// One table of the output.
struct Block {
    header: String,
    lines: Vec<Line>,
    /// It means something without a line, too: an item of a list that the file has.
    is_item: bool,
}

struct Line {
    key: String,
    value: String,
    from: String,
    /// The default depends on what stands beside the key, so it is not said again.
    is_comment: bool,
}

impl Shown<'_> {
    /// The whole output.
    pub fn draw(&self) -> String {
        let (document, _) = DeTable::parse_recoverable(self.text);
        let values: Table = toml::from_str(self.text).unwrap_or_default();
        let top = FileTable { values: &values, places: document.get_ref() };
        let sections = SECTIONS.iter().filter(|section| !section.path.ends_with(".tls"));
        let blocks = sections.flat_map(|section| self.blocks(section, top));
        let drawn: Vec<String> =
            blocks.filter(|block| block.is_item || !block.lines.is_empty()).map(|block| block.draw()).collect();
        drawn.join("\n")
    }

    /// The tables of one kind.
    fn blocks(&self, section: &SectionDefinition, top: FileTable<'_>) -> Vec<Block> {
        let (first, inner) = section.path.split_once('.').unwrap_or((section.path, ""));
        let is_here = |table: &&FlagTable| match inner {
            "NAME" => table.path.split('.').next() == Some(first),
            _ => table.path == section.path,
        };
        let is_replaced = self.flags.replaces(first);
        let mut blocks = Vec::new();
        if section.path == "listen" {
            let none_is_said = !is_replaced && !top.has(first);
            let joins = is_replaced && self.flags.joins_default_listener && self.accelerates;
            blocks.extend(self.listener_by_default(joins).filter(|_| none_is_said || joins));
        }
        let of_flags = self.flags.tables.iter().filter(is_here);
        blocks.extend(of_flags.map(|table| self.of_flag(section, table)));
        if is_replaced {
            return blocks;
        }
        let block = |header: String, table| self.block(section, header, (table, top.table("policy")));
        match (section.is_list, inner) {
            (false, "") if first.is_empty() => blocks.push(block(String::new(), Some(top))),
            (false, "") => blocks.push(block(section.header(), top.table(first))),
            (true, "") => {
                blocks.extend(top.tables(first).into_iter().map(|table| block(section.header(), Some(table))))
            }
            (false, _) => {
                for (name, table) in
                    top.table(first).iter().flat_map(|all| all.keys().into_iter().map(|k| (k, all.table(k))))
                {
                    blocks.push(block(format!("[{first}.{}]", literal::key(name)), table));
                }
            }
            (true, _) => {
                let tables = top.table(first).map_or_else(Vec::new, |outer| outer.tables(inner));
                blocks.extend(tables.into_iter().map(|table| block(section.header(), Some(table))));
            }
        }
        blocks
    }

    fn of_flag(&self, section: &SectionDefinition, table: &FlagTable) -> Block {
        let header = if section.is_list { section.header() } else { format!("[{}]", table.path) };
        let line = |(key, value): &(&'static str, String)| Line::new(key, value.clone(), table.flag);
        Block { header, lines: table.keys.iter().map(line).collect(), is_item: false }
    }

    /// Beside others it is no default.
    fn listener_by_default(&self, joins: bool) -> Option<Block> {
        let from = if joins { "there is something to stand in front of" } else { DEFAULT };
        let lines = vec![Line::new("address", self.listens_by_default.clone(), from)];
        (joins || !self.changed_only).then(|| Block { header: "[[listen]]".to_owned(), lines, is_item: false })
    }

    /// What holds of one table, which the file may have or not, as [policy].
    fn block(
        &self,
        section: &SectionDefinition,
        header: String,
        (table, policy): (Option<FileTable<'_>>, Option<FileTable<'_>>),
    ) -> Block {
        let is_said =
            |name: &str| table.is_some_and(|table| table.has(name)) || self.flags.of(section.path, name).is_some();
        // A section that cannot do without a key is not there without it.
        let lacks_key = |key: &KeyDefinition| key.is_required && key.without.is_none() && !is_said(key.name);
        let mut lines = Vec::new();
        if !section.is_one_of_groups && section.keys().any(lacks_key) {
            return Block { header, lines, is_item: false };
        }
        for group in section.groups {
            let shows_defaults = self.shows_defaults(section, group, &is_said);
            let is_shown = |key: &&KeyDefinition| {
                keys::at(&format!("{}.{}", section.path, key.name)).is_none_or(|inner| !inner.is_list)
            };
            for key in group.keys.iter().filter(is_shown) {
                let is_said_elsewhere = section.path == "route" && says_words_of_routes(key.name, table, policy);
                lines.extend(self.line(section, key, table, (shows_defaults && !is_said_elsewhere, is_said_elsewhere)));
            }
        }
        // Varnish's parameters that mean nothing here.
        if let Some(table) = table.filter(|_| section.path == "policy") {
            let others = table.keys().into_iter().filter(|name| section.key(name).is_none());
            lines.extend(others.filter_map(|name| self.of_file(section, None, table, name)));
        }
        Block { header, lines, is_item: section.is_list && table.is_some() }
    }

    fn shows_defaults(&self, section: &SectionDefinition, group: &KeyGroup, is_said: &impl Fn(&str) -> bool) -> bool {
        // Beside a VCL these are refused.
        let is_refused = section.path == "compress" && self.has_program;
        !self.changed_only && !group.are_aliases && group.beside.is_none_or(is_said) && !is_refused
    }

    fn of_file(
        &self,
        section: &SectionDefinition,
        definition: Option<&KeyDefinition>,
        table: FileTable<'_>,
        key: &str,
    ) -> Option<Line> {
        let (value, line) = table.shown(self.text, key)?;
        let shown = match self.with_secrets {
            true => value.to_string(),
            false => secrets::hidden(section.path, definition, key, value).to_string(),
        };
        Some(Line::new(key, shown, &format!("{}:{line}", self.name)))
    }

    fn line(
        &self,
        section: &SectionDefinition,
        key: &KeyDefinition,
        table: Option<FileTable<'_>>,
        (shows_default, is_said_elsewhere): (bool, bool),
    ) -> Option<Line> {
        let default = key.default.map(|literal| literal());
        let of_flag =
            || self.flags.of(section.path, key.name).map(|(value, flag)| Line::new(key.name, value.to_owned(), flag));
        let of_file = || table.and_then(|table| self.of_file(section, Some(key), table, key.name));
        let of_default = || default.clone().filter(|_| shows_default).map(|value| Line::new(key.name, value, DEFAULT));
        let said = of_flag().or_else(of_file);
        let said = if section.path == "limits" { self.limit(said, key, default.as_deref()) } else { said };
        // Where it depends on others, saying it is another thing than leaving it out.
        let is_default = |line: &Line| {
            key.without.is_none()
                && !is_said_elsewhere
                && default.as_deref().is_some_and(|default| key.kind.says_the_same(default, &line.value))
        };
        let said = said.filter(|line| !self.changed_only || !is_default(line));
        let line = said.or_else(of_default)?;
        Some(Line { is_comment: line.from == DEFAULT && key.without.is_some(), ..line })
    }

    /// A limit as it holds: one of Varnish's names may have set it.
    fn limit(&self, said: Option<Line>, key: &KeyDefinition, default: Option<&str>) -> Option<Line> {
        let value = limits_section::value_of(key.name, self.limits)?;
        match said.filter(|line| key.kind.says_the_same(&line.value, &value)) {
            Some(line) => Some(line),
            None if default == Some(value.as_str()) => None,
            None => Some(Line::new(key.name, value, "parameter")),
        }
    }
}

/// Has [policy], or the preset of a route, said something of its word? The default would take it back; and a preset is for all paths.
fn says_words_of_routes(key: &str, route: Option<FileTable<'_>>, policy: Option<FileTable<'_>>) -> bool {
    let has_preset = route.is_some_and(|route| route.has("preset"));
    let is_said = has_preset || policy.is_some_and(|policy| policy.has(key));
    is_said && keys::is_word_of_routes(key) || has_preset && key == "path"
}

impl Line {
    fn new(key: &str, value: String, from: &str) -> Line {
        Line { key: literal::key(key), value, from: from.to_owned(), is_comment: false }
    }
}

impl Block {
    fn draw(&self) -> String {
        let mut out = if self.header.is_empty() { String::new() } else { format!("{}\n", self.header) };
        let comment = |line: &Line| if line.is_comment { "# " } else { "" };
        let text = |line: &Line| format!("{}{} = {}", comment(line), line.key, line.value);
        // One long line does not push all the others' origins away.
        let width = self.lines.iter().map(|line| text(line).chars().count()).filter(|n| *n <= 60).max().unwrap_or(0);
        for line in &self.lines {
            out.push_str(&format!("{:width$}  # {}\n", text(line), line.from));
        }
        out
    }
}

impl ValueKind {
    /// Do two literals mean the same? `"60s"` and `"1m"` do.
    fn says_the_same(&self, one: &str, other: &str) -> bool {
        let text = |literal: &str| literal.trim_matches(['"', '\'']).to_owned();
        match self {
            ValueKind::Size(..) => parse_size(&text(one)).ok() == parse_size(&text(other)).ok(),
            ValueKind::Time(_) => parse_duration(&text(one)).ok() == parse_duration(&text(other)).ok(),
            ValueKind::List(inner) if !one.starts_with('[') || !other.starts_with('[') => {
                let bare = |literal: &str| literal.trim_start_matches('[').trim_end_matches(']').to_owned();
                one == other || inner.says_the_same(&bare(one), &bare(other))
            }
            _ => one == other,
        }
    }
}
