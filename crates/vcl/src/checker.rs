//! The tree into a program: names resolved, types agreed, every use held against where it is allowed.
//!
//! ```text
//! declare              every definition and object gets its name, so that order does not matter
//!   → definition_checker, acl_checker     backends, probes, ACLs
//!   → statement_checker → expression_checker → call_checker     the bodies of subroutines
//!   → call_graph       what each built-in subroutine reaches, and whether all of it is allowed there
//!   → lints, unused    what is lawful and probably not meant
//! ```
//!
//! A mistake is reported once and its value is dropped (`None`); what depends on it is not reported again. The program
//! is good only if nothing was reported as an error.

use std::collections::HashMap;

use crate::codes::Code;
use crate::diagnostics::{Diagnostic, Reports};
use crate::foreign;
use crate::near_names::nearest;
use crate::source_files::{FileId, Sources, Span};
use crate::subroutines::{Action, Method, MethodSet};
use crate::syntax::{Block, Definition, Identifier, StatementKind};
use crate::typed_program::{
    AclId, Backend, BackendId, Body, Object, ObjectId, ProbeId, Program, RegexId, Subroutine, SubroutineId,
};
use crate::variables;
use crate::vmod_signatures::{self, Vmod};

mod acl_checker;
mod call_checker;
mod call_graph;
mod definition_checker;
mod expression_checker;
mod known_headers;
mod lints;
mod statement_checker;
mod via_checker;

/// Checks the user's definitions and those of builtin.vcl. `elsewhere`: backends that others define, by name.
pub fn check(
    (user, builtin): (&[Definition], &[Definition]),
    elsewhere: &[String],
    sources: &Sources,
    reports: &mut Reports,
) -> Program {
    let mut checker = Checker {
        sources,
        reports,
        names: HashMap::new(),
        program: Program::default(),
        regex_ids: HashMap::new(),
        facts: Vec::new(),
        current: 0,
        default_probe: None,
        elsewhere,
    };
    checker.declare(user, false);
    checker.declare(builtin, true);
    checker.definitions(user);
    checker.some_backend(user);
    checker.bodies(user, false);
    checker.bodies(builtin, true);
    checker.call_graph();
    checker.unused(user);
    lints::lint(&checker.program, checker.sources, checker.reports);
    checker.program
}

struct Checker<'a> {
    sources: &'a Sources,
    reports: &'a mut Reports,
    /// By the name in small letters: names are the same in any case.
    names: HashMap<String, Symbol>,
    program: Program,
    regex_ids: HashMap<Vec<u8>, RegexId>,
    /// For each subroutine of the program what it does that is not allowed everywhere.
    facts: Vec<Facts>,
    /// The subroutine whose body is being checked.
    current: usize,
    default_probe: Option<ProbeId>,
    /// Backends that others define, and the program may name.
    elsewhere: &'a [String],
}

struct Symbol {
    kind: SymbolKind,
    span: Span,
    used: bool,
}

#[derive(Clone, Copy)]
enum SymbolKind {
    Acl(AclId),
    Backend(BackendId),
    Probe(ProbeId),
    Subroutine(SubroutineId),
    Vmod(&'static Vmod),
    Object(ObjectId),
    /// Something whose definition is at fault and reported; its uses are not.
    Faulty,
}

impl SymbolKind {
    fn noun(self) -> &'static str {
        match self {
            SymbolKind::Acl(_) => "ACL",
            SymbolKind::Backend(_) => "Backend",
            SymbolKind::Probe(_) => "Probe",
            SymbolKind::Subroutine(_) => "Subroutine",
            SymbolKind::Vmod(_) => "Module",
            SymbolKind::Object(_) => "Object",
            SymbolKind::Faulty => "Name",
        }
    }

    /// Varnish's word for it.
    fn short(self) -> &'static str {
        match self {
            SymbolKind::Acl(_) => "acl",
            SymbolKind::Backend(_) => "backend",
            SymbolKind::Probe(_) => "probe",
            SymbolKind::Subroutine(_) => "sub",
            SymbolKind::Vmod(_) => "vmod",
            SymbolKind::Object(_) => "instance",
            SymbolKind::Faulty => "none",
        }
    }
}

/// What a subroutine does that depends on who calls it.
struct Facts {
    name: String,
    span: Span,
    method: Option<Method>,
    is_builtin: bool,
    uses: Vec<Use>,
    calls: Vec<(SubroutineId, Span)>,
    returns: Vec<(Action, Span)>,
}

struct Use {
    kind: UseKind,
    name: String,
    allowed: MethodSet,
    span: Span,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum UseKind {
    Read,
    Write,
    Unset,
    /// A statement or function.
    Call,
    /// A function that may be called anywhere, and fails elsewhere.
    CallThatFails,
}

/// Names that mean something by themselves, besides the variables of one word.
const RESERVED: [&str; 21] = [
    "set",
    "unset",
    "call",
    "return",
    "if",
    "new",
    "ban",
    "hash_data",
    "synthetic",
    "regsub",
    "regsuball",
    "true",
    "false",
    "default",
    "vcl",
    "import",
    "include",
    "acl",
    "backend",
    "probe",
    "sub",
];

impl<'a> Checker<'a> {
    fn report(&mut self, diagnostic: Diagnostic) {
        self.reports.add(diagnostic);
    }

    /// Gives everything that is defined its name and its number.
    fn declare(&mut self, definitions: &[Definition], is_builtin: bool) {
        for definition in definitions {
            match definition {
                Definition::Version { version, span } if !is_builtin => self.version(*version, *span),
                Definition::Import { module, alias, from, span } => {
                    self.import(module, alias.as_ref().unwrap_or(module), *from, *span);
                }
                Definition::Subroutine { name, body } => {
                    self.declare_subroutine(name, is_builtin);
                    self.declare_objects(body);
                }
                Definition::Acl(acl) => {
                    let id = AclId(self.program.acls.len() as u32);
                    let made =
                        crate::typed_program::Acl { name: acl.name.text.clone(), log: false, entries: Vec::new() };
                    self.program.acls.push(made);
                    self.name(&acl.name, SymbolKind::Acl(id));
                }
                Definition::Backend(backend) => {
                    let id = BackendId(self.program.backends.len() as u32);
                    let made = Backend::none(&backend.name.text);
                    self.program.backends.push(made);
                    self.declare_backend(&backend.name, id);
                }
                // Probes in place come between, so named ones get their numbers first.
                Definition::Probe { name, .. } => {
                    let id = ProbeId(self.program.probes.len() as u32);
                    self.program.probes.push(definition_checker::default_probe(Some(name.text.clone())));
                    if name.text == "default" {
                        if self.default_probe.replace(id).is_some() {
                            self.report(Diagnostic::new(Code::Duplicate, name.span, "there are two probes `default`"));
                        }
                    } else {
                        self.name(name, SymbolKind::Probe(id));
                    }
                }
                Definition::Version { .. } | Definition::Unused(_) => {}
            }
        }
    }

    fn version(&mut self, version: u8, span: Span) {
        if self.program.version == 0 {
            self.program.version = version;
        }
        let first = self.program.version;
        if version > first {
            let show = |version: u8| format!("{}.{}", version / 10, version % 10);
            let what = format!("VCL {} within a program of version {}", show(version), show(first));
            let report = Diagnostic::new(Code::VersionUnknown, span, what)
                .way_out(format!("write `vcl {};` in the first file", show(version)));
            self.report(report);
        }
    }

    /// The backend `default`, or else the first, is the default. Another case of that word is no name, for Varnish neither.
    fn declare_backend(&mut self, name: &Identifier, id: BackendId) {
        if name.text == "default" {
            let earlier = self.program.backends[..id.index()].iter().any(|b| b.name == "default");
            if earlier {
                self.report(Diagnostic::new(Code::Duplicate, name.span, "there are two backends `default`"));
            }
            self.program.default_backend = Some(id);
            return;
        }
        self.name(name, SymbolKind::Backend(id));
        self.program.default_backend.get_or_insert(id);
    }

    /// Without one nothing could be fetched. A file that only defines things for others to include has none either,
    /// but then it is not what is loaded.
    fn some_backend(&mut self, definitions: &[Definition]) {
        if !self.program.backends.is_empty() || self.reports.has_errors() {
            return;
        }
        // Of those that are defined elsewhere the same is the default.
        let usual = self.elsewhere.iter().find(|name| *name == "default").or(self.elsewhere.first());
        if let Some(name) = usual {
            self.program.default_backend = Some(self.declare_elsewhere(name));
            return;
        }
        let Some(Definition::Version { span, .. }) = definitions.first() else { return };
        let report = Diagnostic::new(Code::NoBackend, *span, "the program has no backend")
            .note("a file that is included by others is checked by way of the file that includes it")
            .way_out(
                "write `backend default { .host = \"…\"; }`, or `backend default none;` for one that always fails",
            );
        self.report(report);
    }

    /// A backend that others define, if there is one of this name and the program has nothing that is called so.
    fn backend_elsewhere(&mut self, name: &str) -> Option<SymbolKind> {
        let found = self.elsewhere.iter().find(|other| other.eq_ignore_ascii_case(name))?;
        Some(SymbolKind::Backend(self.declare_elsewhere(found)))
    }

    fn declare_elsewhere(&mut self, name: &str) -> BackendId {
        let id = BackendId(self.program.backends.len() as u32);
        self.program.backends.push(Backend { is_elsewhere: true, ..Backend::none(name) });
        let span = Span { file: FileId(0), start: 0, end: 0 };
        let symbol = Symbol { kind: SymbolKind::Backend(id), span, used: true };
        self.names.insert(name.to_ascii_lowercase(), symbol);
        id
    }

    fn declare_subroutine(&mut self, name: &Identifier, is_builtin: bool) {
        let key = name.text.to_ascii_lowercase();
        if let Some(Symbol { kind: SymbolKind::Subroutine(id), span, .. }) = self.names.get(&key) {
            let (id, span) = (*id, *span);
            let joins = is_builtin || key.starts_with("vcl_");
            if !joins {
                let report =
                    Diagnostic::new(Code::Duplicate, name.span, format!("Subroutine '{}' redefined", name.text))
                        .note_at(span, "the first is here")
                        .note("only the built-in subroutines, whose names begin with `vcl_`, may have several bodies");
                self.report(report);
            }
            self.facts[id.index()].is_builtin &= is_builtin;
            return;
        }
        let method = Method::by_name(&key);
        if key.starts_with("vcl_") && method.is_none() && !is_builtin && !crate::builtin_names().contains(&key) {
            self.report(reserved_subroutine(name));
            self.names.insert(key, Symbol { kind: SymbolKind::Faulty, span: name.span, used: true });
            return;
        }
        let id = SubroutineId(self.program.subroutines.len() as u32);
        if !self.name(name, SymbolKind::Subroutine(id)) {
            return;
        }
        if let Some(method) = method {
            self.program.methods[method as usize] = Some(id);
        }
        self.program.subroutines.push(Subroutine { name: name.text.clone(), bodies: Vec::new() });
        let facts = Facts {
            name: name.text.clone(),
            span: name.span,
            method,
            is_builtin,
            uses: Vec::new(),
            calls: Vec::new(),
            returns: Vec::new(),
        };
        self.facts.push(facts);
    }

    /// Objects are known wherever they are made, so that a use may stand before it in the text.
    fn declare_objects(&mut self, block: &Block) {
        for statement in &block.statements {
            match &statement.kind {
                StatementKind::New { name, class, .. } => self.declare_object(name, class),
                StatementKind::Block(inside) => self.declare_objects(inside),
                StatementKind::If { branches, otherwise } => {
                    let blocks = branches.iter().map(|(_, block)| block).chain(otherwise);
                    blocks.for_each(|block| self.declare_objects(block));
                }
                _ => {}
            }
        }
    }

    fn declare_object(&mut self, name: &Identifier, class: &crate::syntax::Name) {
        let made = match class.parts.as_slice() {
            [vmod, class_name] => match self.symbol(&vmod.text) {
                Some(SymbolKind::Vmod(vmod)) => vmod.class(&class_name.text),
                _ => None,
            },
            _ => None,
        };
        let kind = match made {
            Some(class) => {
                let id = ObjectId(self.program.objects.len() as u32);
                self.program.objects.push(Object { name: name.text.clone(), constructor: &class.constructor });
                SymbolKind::Object(id)
            }
            // The statement that makes it says what is wrong.
            None => SymbolKind::Faulty,
        };
        self.name(name, kind);
        if let Some(symbol) = self.names.get_mut(&name.text.to_ascii_lowercase()) {
            symbol.used = true;
        }
    }

    fn import(&mut self, module: &Identifier, name: &Identifier, from: Option<Span>, span: Span) {
        let Some(vmod) = vmod_signatures::find(&module.text) else {
            self.report(unknown_vmod(module));
            self.names.insert(name.text.to_ascii_lowercase(), Symbol { kind: SymbolKind::Faulty, span, used: true });
            return;
        };
        if let Some(from) = from {
            let what = format!("larder has vmod {} built in; no file is loaded", vmod.name);
            self.report(Diagnostic::new(Code::Ignored, from, what));
        }
        if let Some(SymbolKind::Vmod(other)) = self.symbol(&name.text)
            && std::ptr::eq(other, vmod)
        {
            return; // importing twice is allowed
        }
        self.name(name, SymbolKind::Vmod(vmod));
    }

    /// Whether the name was free.
    fn name(&mut self, name: &Identifier, kind: SymbolKind) -> bool {
        let key = name.text.to_ascii_lowercase();
        // `req` is a variable; `client` only begins the names of some, and people name ACLs so.
        let is_variable = variables::names().any(|known| known == key);
        let is_subroutine = matches!(kind, SymbolKind::Subroutine(_));
        if RESERVED.contains(&key.as_str()) || is_variable || key.starts_with("vcl_") && !is_subroutine {
            let report =
                Diagnostic::new(Code::ReservedName, name.span, format!("`{}` is a word of the language", name.text))
                    .label("cannot be the name of something else")
                    .way_out(format!("choose another name, such as `my_{key}`"));
            self.report(report);
            return false;
        }
        if let Some(first) = self.names.get(&key) {
            let report =
                Diagnostic::new(Code::Duplicate, name.span, format!("{} '{}' redefined", kind.noun(), name.text))
                    .note_at(first.span, "the first definition is here");
            self.report(report);
            return false;
        }
        self.names.insert(key, Symbol { kind, span: name.span, used: matches!(kind, SymbolKind::Vmod(_)) });
        true
    }

    fn symbol(&self, name: &str) -> Option<SymbolKind> {
        self.names.get(&name.to_ascii_lowercase()).map(|symbol| symbol.kind)
    }

    /// What a name means; from now on it counts as used.
    fn symbol_used(&mut self, name: &str) -> Option<SymbolKind> {
        let symbol = self.names.get_mut(&name.to_ascii_lowercase())?;
        symbol.used = true;
        Some(symbol.kind)
    }

    fn bodies(&mut self, definitions: &[Definition], is_builtin: bool) {
        for definition in definitions {
            let Definition::Subroutine { name, body } = definition else { continue };
            let Some(SymbolKind::Subroutine(id)) = self.symbol(&name.text) else { continue };
            self.current = id.index();
            let statements = self.block(body);
            self.program.subroutines[id.index()].bodies.push(Body { is_builtin, statements });
            if self.reports.is_full() {
                return;
            }
        }
    }

    fn unused(&mut self, definitions: &[Definition]) {
        for definition in definitions {
            if let Definition::Unused(name) = definition
                && self.symbol_used(&name.text()).is_none()
            {
                let what = format!("nothing is called `{}`", name.text());
                self.report(Diagnostic::new(Code::UnknownName, name.span, what));
            }
        }
        let first_backend = self.program.default_backend;
        let is_unused = |symbol: &Symbol| {
            let kind = match symbol.kind {
                SymbolKind::Acl(_) => "ACL",
                SymbolKind::Backend(id) if Some(id) != first_backend => "backend",
                SymbolKind::Probe(_) => "probe",
                SymbolKind::Subroutine(id) => {
                    let facts = &self.facts[id.index()];
                    let own = facts.method.is_none()
                        && !facts.is_builtin
                        && !facts.name.to_ascii_lowercase().starts_with("vcl_");
                    own.then_some("subroutine")?
                }
                _ => return None,
            };
            (!symbol.used).then_some((kind, symbol.span))
        };
        let mut unused: Vec<(&str, Span)> = self.names.values().filter_map(is_unused).collect();
        unused.sort_by_key(|(_, span)| (span.file, span.start));
        for (kind, span) in unused {
            let name = self.sources.text(span);
            let short = if kind == "subroutine" { "sub" } else { kind }.to_ascii_lowercase();
            let report = Diagnostic::new(Code::Unused, span, format!("the {kind} `{name}` is used nowhere"))
                .in_varnish(format!("Unused {short} {name}, defined:"))
                .note("Varnish refuses such a file, unless it was told `-p vcc_feature=-err_unref`");
            self.report(report);
        }
    }
}

fn reserved_subroutine(name: &Identifier) -> Diagnostic {
    let text = &name.text;
    if let Some((code, way_out)) = foreign::subroutine(text) {
        return Diagnostic::new(code, name.span, format!("there is no subroutine `{text}` in VCL 4")).way_out(way_out);
    }
    let known: Vec<&str> = Method::all().map(Method::name).collect();
    Diagnostic::new(Code::ReservedName, name.span, format!("there is no built-in subroutine `{text}`"))
        .label("names that begin with `vcl_` are kept for built-in subroutines")
        .did_you_mean(nearest(text, known))
}

fn unknown_vmod(module: &Identifier) -> Diagnostic {
    let name = &module.text;
    let built_in = || {
        let names: Vec<&str> = vmod_signatures::vmods().iter().map(|vmod| vmod.name).collect();
        format!("built in are {}", names.join(", "))
    };
    if let Some((maker, way_out)) = vmod_signatures::foreign(name) {
        return Diagnostic::new(Code::UnknownVmod, module.span, format!("vmod {name}, of {maker}, is not in larder"))
            .way_out(way_out);
    }
    let report = Diagnostic::new(Code::UnknownVmod, module.span, format!("there is no vmod {name} in larder"));
    match nearest(name, vmod_signatures::vmods().iter().map(|vmod| vmod.name)) {
        Some(near) => report.note(built_in()).did_you_mean(Some(near)),
        None => report.note(built_in()),
    }
}
