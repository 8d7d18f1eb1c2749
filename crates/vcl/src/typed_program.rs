//! A checked program: every name resolved, every value typed, every conversion written out. An evaluator is compiled
//! from this, and needs to look nothing up and to check nothing again.
//!
//! ```text
//! Program.methods[vcl_recv] → Subroutine.bodies, in order: the user's own, then builtin.vcl's
//!   → Statement → Value
//! ```
//!
//! What an evaluator must know that the types do not say:
//! * A subroutine whose bodies all end without a return ends without an action; the last body of a built-in one, from
//!   builtin.vcl, always returns.
//! * **Absent is not empty.** A header or text that is absent stays absent through `ToText` and a comparison (`==` is
//!   false, `<` too, `>` true, both absent is not equal); it matches a regex as the empty text; it is false as a BOOL,
//!   and `""` is true. A `Join` takes absent parts as empty and is itself never absent. `set` of a header from an absent
//!   value makes an empty one.
//! * Integers are of 64 bits and a result out of range fails the transaction; durations and times are seconds.

use crate::plain_values::Ip;
use crate::subroutines::{Action, METHODS_COUNT, Method};
use crate::syntax::{AssignOperator, BinaryOperator};
use crate::types::Type;
use crate::variables::VariableId;
use crate::vmod_signatures::Function;

pub use crate::acl_entries::{AclEntry, Network};
pub use crate::source_files::Span;

macro_rules! ids {
    ($($name:ident $what:literal,)*) => {
        $(
            #[doc = $what]
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
            pub struct $name(pub u32);

            impl $name {
                pub fn index(self) -> usize {
                    self.0 as usize
                }
            }
        )*
    };
}

ids! {
    AclId "Of `Program::acls`.",
    BackendId "Of `Program::backends`.",
    ProbeId "Of `Program::probes`.",
    SubroutineId "Of `Program::subroutines`.",
    ObjectId "Of `Program::objects`.",
    RegexId "Of `Program::regexes`.",
}

/// A checked program.
#[derive(Debug, Default)]
pub struct Program {
    /// 40 or 41.
    pub version: u8,
    pub acls: Vec<Acl>,
    pub backends: Vec<Backend>,
    /// `backend default`, or else the first. `None` only when a director is set in vcl_recv or nothing is fetched.
    pub default_backend: Option<BackendId>,
    pub probes: Vec<Probe>,
    pub subroutines: Vec<Subroutine>,
    /// The built-in subroutines; all are there but vcl_init and vcl_fini, which may be empty.
    pub methods: [Option<SubroutineId>; METHODS_COUNT],
    pub objects: Vec<Object>,
    /// Each pattern once. All compile.
    pub regexes: Vec<Vec<u8>>,
    /// Names of other programs in `return (vcl(label))`.
    pub labels: Vec<String>,
}

impl Program {
    /// What it holds, in one line.
    pub fn summary(&self) -> String {
        let counted = |n: usize, one: &str, many: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {many}") };
        let own = |subroutine: &&Subroutine| subroutine.bodies.iter().any(|body| !body.is_builtin);
        let parts = [
            counted(self.subroutines.iter().filter(own).count(), "subroutine", "subroutines"),
            counted(self.backends.len(), "backend", "backends"),
            counted(self.acls.len(), "ACL", "ACLs"),
        ];
        parts.join(", ")
    }

    pub fn method(&self, method: Method) -> Option<&Subroutine> {
        self.methods[method as usize].map(|id| &self.subroutines[id.index()])
    }
}

#[derive(Debug)]
pub struct Acl {
    pub name: String,
    /// A match is logged.
    pub log: bool,
    /// In the order of the text. The most specific that matches decides.
    pub entries: Vec<AclEntry>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Backend {
    pub name: String,
    /// `None` for `backend x none;`, which always fails.
    pub endpoint: Option<Endpoint>,
    /// Others define it, whom the host knows by this name.
    pub is_elsewhere: bool,
}

impl Backend {
    /// `backend NAME none;`
    pub fn none(name: &str) -> Backend {
        Backend { name: name.to_owned(), endpoint: None, is_elsewhere: false }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Endpoint {
    pub address: Address,
    pub host_header: Option<String>,
    pub connect_timeout_s: Option<f64>,
    pub first_byte_timeout_s: Option<f64>,
    pub between_bytes_timeout_s: Option<f64>,
    pub wait_timeout_s: Option<f64>,
    pub connections_max: Option<u64>,
    pub waiting_max: Option<u64>,
    /// 1 or 2.
    pub proxy_header: Option<u8>,
    pub preamble: Option<Vec<u8>>,
    pub probe: Option<ProbeId>,
    pub via: Option<BackendId>,
    pub authority: Option<String>,
    pub tls: Tls,
    /// It is asked over HTTP/2: as it agrees to over TLS, else by prior knowledge.
    pub http2: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tls {
    pub on: bool,
    pub without_sni: bool,
    pub without_verification: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Address {
    /// A name or address and a port or service, not yet looked up.
    Host { host: String, port: Option<String> },
    /// A UNIX socket; `@name` is abstract.
    Path(String),
}

impl Default for Address {
    fn default() -> Address {
        Address::Path(String::new())
    }
}

#[derive(Debug, PartialEq)]
pub struct Probe {
    /// `None` for one in place.
    pub name: Option<String>,
    pub request: ProbeRequest,
    pub expected_status: u16,
    pub expect_close: bool,
    pub timeout_s: f64,
    pub interval_s: f64,
    pub window: u32,
    pub threshold: u32,
    pub initial: u32,
}

#[derive(Debug, PartialEq)]
pub enum ProbeRequest {
    Url(String),
    /// Lines, to each of which CRLF is added, and CRLF after the last.
    Lines(Vec<Vec<u8>>),
}

#[derive(Debug)]
pub struct Subroutine {
    pub name: String,
    /// The user's, in the order of the text, then that of builtin.vcl.
    pub bodies: Vec<Body>,
}

#[derive(Debug)]
pub struct Body {
    pub is_builtin: bool,
    pub statements: Vec<Statement>,
}

/// An object of a module: `new name = class(…)`. It exists when the statement in vcl_init has run.
#[derive(Debug)]
pub struct Object {
    pub name: String,
    pub constructor: &'static Function,
}

#[derive(Debug)]
pub struct Statement {
    pub kind: StatementKind,
    pub span: Span,
}

#[derive(Debug)]
pub enum StatementKind {
    Set {
        target: Target,
        operator: AssignOperator,
        value: Value,
    },
    Unset(Target),
    /// Accepted and without effect, as the setting of Content-Length.
    Nothing,
    Call(SubroutineId),
    /// Ends this subroutine of one's own.
    Leave,
    Return(Verdict),
    If {
        branches: Vec<(Value, Vec<Statement>)>,
        otherwise: Vec<Statement>,
    },
    New {
        object: ObjectId,
        arguments: Vec<Option<Value>>,
    },
    Ban(Value),
    HashData(Value),
    Synthetic(Value),
    /// A call for its effect; the value is dropped.
    Function(Value),
    Block(Vec<Statement>),
}

/// What is set or unset.
#[derive(Debug, PartialEq)]
pub enum Target {
    Variable(VariableId),
    /// The row says of which message.
    Header(VariableId, String),
}

/// The action of a return, with its arguments.
#[derive(Debug)]
pub enum Verdict {
    /// An action without arguments.
    Plain(Action),
    /// `synth` and `error`: status and reason.
    Status {
        action: Action,
        status: Box<Value>,
        reason: Option<Box<Value>>,
    },
    /// In vcl_backend_response: hit-for-pass for so long.
    PassFor(Box<Value>),
    Fail(Option<Box<Value>>),
    /// The number of a label in `Program::labels`.
    Vcl(usize),
}

/// A typed value.
#[derive(Debug)]
pub struct Value {
    pub kind: ValueKind,
    pub of: Type,
    pub span: Span,
}

#[derive(Debug)]
pub enum ValueKind {
    Bool(bool),
    Int(i64),
    Real(f64),
    /// Seconds.
    Duration(f64),
    Bytes(i64),
    Text(Box<[u8]>),
    Blob(Box<[u8]>),
    /// A word of an ENUM.
    Word(&'static str),
    Regex(RegexId),
    /// An address written as a text.
    Ip(Ip),

    Variable(VariableId),
    /// The row says of which message. As a value: its first line, or absent.
    Header(VariableId, String),
    /// `storage.name`, or with the row a property of it.
    Storage(String, Option<VariableId>),
    Acl(AclId),
    Backend(BackendId),
    DefaultBackend,
    /// `default` where a probe is wanted; `None` when none is called that.
    DefaultProbe(Option<ProbeId>),
    Probe(ProbeId),
    Subroutine(SubroutineId),
    /// The object itself, as a method's first operand.
    Object(ObjectId),

    ToText(Box<Value>),
    ToBool(Box<Value>),
    /// INT where a REAL, DURATION or BYTES is wanted.
    Widened(Box<Value>),
    /// A concatenation: two or more parts, all of them text.
    Join(Vec<Value>),
    Negative(Box<Value>),
    /// `+ - * / %` of numbers, times and sizes.
    Arithmetic {
        operator: BinaryOperator,
        left: Box<Value>,
        right: Box<Value>,
    },
    /// Both sides are of the same type.
    Compare {
        operator: BinaryOperator,
        left: Box<Value>,
        right: Box<Value>,
    },
    Match {
        negated: bool,
        text: Box<Value>,
        regex: RegexId,
    },
    AclMatch {
        negated: bool,
        address: Box<Value>,
        acl: Box<Value>,
    },
    Not(Box<Value>),
    /// Evaluated from the left, as far as needed.
    And(Vec<Value>),
    Or(Vec<Value>),
    Regsub {
        all: bool,
        text: Box<Value>,
        regex: RegexId,
        replacement: Box<Value>,
    },
    /// An argument for each parameter; absent only where the parameter is optional or has a default.
    Call {
        function: &'static Function,
        object: Option<ObjectId>,
        arguments: Vec<Option<Value>>,
    },
    Property {
        of: Box<Value>,
        property: Property,
    },
}

/// What values have by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    Upper,
    Lower,
    /// Of a BACKEND: the one behind directors.
    Resolve,
    FreeSpace,
    UsedSpace,
    Happy,
}
