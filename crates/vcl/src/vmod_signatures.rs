//! The functions, objects and methods of the built-in modules: what they take, what they give, where they may be called.
//!
//! Read once from `vmod_table`. What they do is the evaluator's.

use std::sync::OnceLock;

use crate::subroutines::MethodSet;
use crate::types::Type;
use crate::vmod_table::{FOREIGN, VMODS};

/// A function, or a method of an object, or what makes an object.
#[derive(Debug, PartialEq)]
pub struct Function {
    pub vmod: &'static str,
    /// For a method, of which class.
    pub class: Option<&'static str>,
    pub name: &'static str,
    pub gives: Type,
    pub parameters: Vec<Parameter>,
    pub allowed: MethodSet,
    /// Elsewhere it fails when it runs.
    pub works: MethodSet,
    /// The version of Varnish that dropped it.
    pub until: Option<&'static str>,
}

#[derive(Debug, PartialEq)]
pub struct Parameter {
    pub of: Type,
    pub name: Option<&'static str>,
    /// As it is written in the table; for an ENUM one of the words.
    pub default: Option<&'static str>,
    /// May be left away without a default: the function sees that it is absent.
    pub optional: bool,
    /// Of an ENUM.
    pub words: Vec<&'static str>,
}

/// A class of objects.
#[derive(Debug, PartialEq)]
pub struct Class {
    pub name: &'static str,
    pub constructor: Function,
    pub methods: Vec<Function>,
}

#[derive(Debug, PartialEq)]
pub struct Vmod {
    pub name: &'static str,
    pub functions: Vec<Function>,
    pub classes: Vec<Class>,
}

/// All built-in modules.
pub fn vmods() -> &'static [Vmod] {
    static ALL: OnceLock<Vec<Vmod>> = OnceLock::new();
    ALL.get_or_init(|| VMODS.iter().map(|(name, lines)| vmod(name, lines)).collect())
}

pub fn find(name: &str) -> Option<&'static Vmod> {
    vmods().iter().find(|vmod| vmod.name.eq_ignore_ascii_case(name))
}

/// Of a module that larder does not have: who makes it, and the way out.
pub fn foreign(name: &str) -> Option<(&'static str, &'static str)> {
    let name = name.to_ascii_lowercase();
    FOREIGN.iter().find(|(known, ..)| *known == name).map(|(_, maker, way_out)| (*maker, *way_out))
}

impl Vmod {
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|function| function.name.eq_ignore_ascii_case(name))
    }

    pub fn class(&self, name: &str) -> Option<&Class> {
        self.classes.iter().find(|class| class.name.eq_ignore_ascii_case(name))
    }

    /// Functions and classes, for suggestions.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.functions.iter().map(|function| function.name).chain(self.classes.iter().map(|class| class.name))
    }
}

impl Class {
    pub fn method(&self, name: &str) -> Option<&Function> {
        self.methods.iter().find(|method| method.name.eq_ignore_ascii_case(name))
    }
}

impl Function {
    /// `std.tolower(STRANDS s)`, for messages.
    pub fn show(&self) -> String {
        let parameters: Vec<String> = self.parameters.iter().map(Parameter::show).collect();
        let dot = if self.class.is_some() { "" } else { self.vmod };
        format!("{dot}.{}({})", self.name, parameters.join(", "))
    }
}

impl Parameter {
    fn show(&self) -> String {
        let mut text = self.of.name().to_owned();
        if let Some(name) = self.name {
            text = format!("{text} {name}");
        }
        if let Some(default) = self.default {
            text = format!("{text}={default}");
        }
        if self.optional { format!("[{text}]") } else { text }
    }
}

// The table is part of the program, so what cannot be read in it is a mistake of ours, which the test below finds.

fn vmod(name: &'static str, lines: &'static str) -> Vmod {
    let mut vmod = Vmod { name, functions: Vec::new(), classes: Vec::new() };
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut function = function(name, line);
        let class = vmod.classes.last_mut();
        match (class, function.name.strip_prefix('.')) {
            (Some(class), Some(method)) => {
                function.name = method;
                function.class = Some(class.name);
                class.methods.push(function);
            }
            _ if function.gives == Type::Instance => {
                vmod.classes.push(Class { name: function.name, constructor: function, methods: Vec::new() });
            }
            _ => vmod.functions.push(function),
        }
    }
    vmod
}

fn function(vmod: &'static str, line: &'static str) -> Function {
    let (head, rest) = line.split_once('(').unwrap_or((line, ")"));
    let (inside, tail) = rest.rsplit_once(')').unwrap_or((rest, ""));
    let (gives, name) = head.split_once(' ').unwrap_or(("VOID", head));
    let gives = if gives == "object" { Type::Instance } else { Type::by_name(gives).unwrap_or(Type::Void) };
    let parameters = split_outside(inside, ',').into_iter().filter(|text| !text.is_empty()).map(parameter).collect();
    let set = |prefix: &str| tail.trim().strip_prefix(prefix).map_or(MethodSet::ALL, MethodSet::by_words);
    let (allowed, works) = (set("in "), set("works in "));
    let until = tail.trim().strip_prefix("until ");
    Function { vmod, class: None, name, gives, parameters, allowed, works, until }
}

fn parameter(text: &'static str) -> Parameter {
    let inside = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let (text, optional) = (inside.unwrap_or(text), inside.is_some());
    let (declared, default) = match text.split_once('=') {
        Some((declared, default)) => (declared, Some(default.trim_matches('"'))),
        None => (text, None),
    };
    let (of, name) = match split_outside(declared, ' ')[..] {
        [of, name] => (of, Some(name)),
        [of, ..] => (of, None),
        [] => ("", None),
    };
    let (of, words) = match of.split_once('{') {
        Some((of, words)) => (of, words.trim_end_matches('}').split(',').collect()),
        None => (of, Vec::new()),
    };
    Parameter { of: Type::by_name(of).unwrap_or(Type::Void), name, default, optional, words }
}

/// The parts between separators that stand in no braces or quotes.
fn split_outside(text: &'static str, separator: char) -> Vec<&'static str> {
    let (mut depth, mut quoted, mut start) = (0, false, 0);
    let mut parts = Vec::new();
    for (at, c) in text.char_indices() {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            '"' => quoted = !quoted,
            _ if c == separator && depth == 0 && !quoted => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_can_be_read() {
        let count = |name: &str| {
            let vmod = find(name).expect(name);
            let methods: usize = vmod.classes.iter().map(|class| class.methods.len()).sum();
            (vmod.functions.iter().filter(|f| f.until.is_none()).count(), vmod.classes.len(), methods)
        };
        assert_eq!(count("std"), (34, 0, 0));
        assert_eq!(count("directors"), (1, 6, 31));
        assert_eq!(count("cookie"), (13, 0, 0));
        assert_eq!(count("blob"), (7, 1, 2));
        assert_eq!(count("vtc"), (18, 0, 0));
        assert_eq!(count("var"), (17, 0, 0));
        for vmod in vmods() {
            for function in vmod.functions.iter().chain(vmod.classes.iter().flat_map(|class| &class.methods)) {
                assert!(!function.allowed.is_empty(), "{}", function.show());
                let lawful = |p: &Parameter| p.of != Type::Void && (p.of == Type::Enum) != p.words.is_empty();
                assert!(function.parameters.iter().all(lawful), "{function:?}");
            }
        }
    }

    #[test]
    fn signatures_are_shown_as_they_are_called() {
        let check = |vmod: &str, name: &str, expect: &str| {
            assert_eq!(find(vmod).and_then(|vmod| vmod.function(name)).map(Function::show).as_deref(), Some(expect));
        };
        check("std", "collect", "std.collect(HEADER hdr, STRING sep=, )");
        check("std", "IP", "std.ip(STRING s, [IP fallback], BOOL resolve=true, [STRING p])");
        check("blob", "same", "blob.same(BLOB, BLOB)");
    }

    #[test]
    fn no_module_is_both_ours_and_foreign() {
        assert!(FOREIGN.iter().all(|(name, ..)| find(name).is_none()));
    }
}
