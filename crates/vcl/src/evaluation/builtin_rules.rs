//! Two rules of builtin.vcl as functions: what nearly every request ends with, so that it costs next to nothing.
//!
//! They stand in for `call vcl_builtin_recv` and `call vcl_builtin_hash` of programs that put nothing of their own into
//! those subroutines or into what they call. That both say the same of every request is tested.

use std::sync::LazyLock;

use super::evaluator::Run;
use crate::header_names::{HeaderName, KeptName};
use crate::host::{Host, Message};
use crate::plain_values::Fault;
use crate::subroutine_verdicts::{Ending, Status};
use crate::subroutines::Action;
use crate::typed_program::{Program, Statement, StatementKind, SubroutineId};
use crate::variables::VariableId;

/// A rule of builtin.vcl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltinRule {
    Recv,
    Hash,
}

static HOST: LazyLock<HeaderName> = LazyLock::new(|| HeaderName::new(b"host"));
static AUTHORIZATION: LazyLock<HeaderName> = LazyLock::new(|| HeaderName::new(b"authorization"));
static COOKIE: LazyLock<HeaderName> = LazyLock::new(|| HeaderName::new(b"cookie"));

/// What builtin.vcl knows of, and passes on.
const METHODS: [&[u8]; 8] = [b"GET", b"HEAD", b"PUT", b"POST", b"TRACE", b"OPTIONS", b"DELETE", b"PATCH"];

impl BuiltinRule {
    /// The rule that a call of this subroutine is.
    pub fn of(program: &Program, id: SubroutineId) -> Option<BuiltinRule> {
        let rule = match program.subroutines[id.index()].name.as_str() {
            "vcl_builtin_recv" => BuiltinRule::Recv,
            "vcl_builtin_hash" => BuiltinRule::Hash,
            _ => return None,
        };
        is_untouched(program, id).then_some(rule)
    }
}

/// Has the program nothing of its own in this subroutine, nor in those that it calls?
pub fn is_untouched(program: &Program, id: SubroutineId) -> bool {
    let calls_untouched = |statement: &Statement| match &statement.kind {
        StatementKind::Call(called) => is_untouched(program, *called),
        StatementKind::If { branches, otherwise } => {
            let blocks = branches.iter().map(|(_, block)| block).chain([otherwise]);
            blocks.flatten().all(|inner| !matches!(inner.kind, StatementKind::Call(_)))
        }
        _ => true,
    };
    match program.subroutines[id.index()].bodies.as_slice() {
        [only] => only.is_builtin && only.statements.iter().all(calls_untouched),
        _ => false,
    }
}

/// vcl_builtin_recv: `None` where it comes to its end.
pub fn recv<'a, H: Host<'a>>(run: &Run<'a, '_, H>) -> Result<Option<Ending<'a>>, Fault> {
    let refused = |status| Ok(Some(Ending::Status(Action::Synth, Status { status, reason: None })));
    let host = run.host;
    let text = |of: VariableId| host.variable(of).text().unwrap_or_default();
    match host.header(Message::Req, &HOST) {
        Some(name) if name.iter().any(u8::is_ascii_uppercase) => {
            let lower = super::text_forms::lower(name, run.arena)?;
            host.set_header(Message::Req, KeptName::Known(&HOST), lower)?;
        }
        Some(_) => {}
        None if host.variable(VariableId::REQ_ESI_LEVEL).int() == 0 && text(VariableId::REQ_PROTO) == b"HTTP/1.1" => {
            return refused(400);
        }
        None => {}
    }
    let (method, url) = (text(VariableId::REQ_METHOD), text(VariableId::REQ_URL));
    let is_lawful = method == b"CONNECT" || url.starts_with(b"/") || method == b"OPTIONS" && url == b"*";
    if !is_lawful {
        return refused(400);
    }
    match METHODS.iter().position(|known| *known == method) {
        None => return refused(501),
        Some(2..) => return Ok(Some(Ending::Plain(Action::Pass))),
        Some(_) => {}
    }
    let is_personal = [&*AUTHORIZATION, &*COOKIE].into_iter().any(|name| host.header(Message::Req, name).is_some());
    Ok(is_personal.then_some(Ending::Plain(Action::Pass)))
}

/// vcl_builtin_hash.
pub fn hash<'a, H: Host<'a>>(run: &Run<'a, '_, H>) -> Result<(), Fault> {
    let host = run.host;
    host.hash_data(host.variable(VariableId::REQ_URL).text());
    host.hash_data_ends();
    match host.header(Message::Req, &HOST) {
        Some(name) => host.hash_data(Some(name)),
        None => host.hash_data(run.text_of(host.variable(VariableId::SERVER_IP))?),
    }
    host.hash_data_ends();
    Ok(())
}
