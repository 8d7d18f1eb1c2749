//! `.via`: a backend that is reached through another one, which is told the name of what is wanted.
//!
//! Looked at when all backends are known, because the other may stand behind.

use super::Checker;
use super::definition_checker::is_address;
use crate::codes::Code;
use crate::diagnostics::Diagnostic;
use crate::source_files::Span;
use crate::syntax::{Backend, Definition};
use crate::typed_program::{Address, Endpoint};

impl Checker<'_> {
    pub(super) fn ways_through_backends(&mut self, definitions: &[Definition]) {
        let backends = definitions.iter().filter_map(|definition| match definition {
            Definition::Backend(backend) => Some(backend),
            _ => None,
        });
        let mut wrong = Vec::new();
        for (backend, known) in backends.zip(&self.program.backends) {
            let Some(endpoint) = &known.endpoint else { continue };
            let through = endpoint.via.and_then(|id| self.program.backends[id.index()].endpoint.as_ref());
            wrong.extend(what_is_wrong(backend, endpoint, through));
        }
        wrong.into_iter().for_each(|report| self.report(report));
    }
}

fn what_is_wrong(backend: &Backend, endpoint: &Endpoint, through: Option<&Endpoint>) -> Option<Diagnostic> {
    let place = |name: &str| -> Option<Span> {
        backend.attributes.iter().flatten().find(|attribute| attribute.name.text == name).map(|found| found.span)
    };
    let via = place("via")?;
    let bad = |span: Span, what: &str| Some(Diagnostic::new(Code::BadBackend, span, what));
    if through.is_some_and(|through| through.via.is_some()) {
        return bad(via, "`.via` leads to a backend that has a `.via` itself");
    }
    let Address::Host { host, .. } = &endpoint.address else {
        return bad(via, "a backend has `.via` or `.path`, not both");
    };
    let (told, of) = match &endpoint.host_header {
        Some(told) => (told, "host_header"),
        None => (host, "host"),
    };
    if endpoint.authority.is_some() || !is_address(told) {
        return None;
    }
    let report = bad(place(of).unwrap_or(via), "with `.via` this is told to the other backend, and must be a name")?;
    Some(report.way_out("give the name as `.authority`, or say `.authority = \"\";` to tell none"))
}
