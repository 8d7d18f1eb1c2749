//! A program as it is run: trees with one kind of node for each kind of value, so that a number is never wrapped as
//! something that could be a text.
//!
//! Everything that can be known when the program is loaded is in the nodes: constants folded, header names and regexes
//! prepared, functions found. The trees know no host.

use std::sync::Arc;

use super::builtin_rules::BuiltinRule;
use crate::header_names::HeaderName;
use crate::host::Message;
use crate::matching::acl_ranges::AclRanges;
use crate::matching::pattern::Pattern;
use crate::matching::pattern_sets::PatternsSet;
use crate::plain_values::{BackendRef, Ip};
use crate::source_files::Span;
use crate::subroutines::{Action, METHODS_COUNT};
use crate::syntax::BinaryOperator;
use crate::typed_program::{AclId, ObjectId, ProbeId, RegexId, SubroutineId};
use crate::types::Type;
use crate::variables::VariableId;
use crate::vmods::VmodFunction;

/// A program, ready to run.
#[derive(Debug, Default)]
pub struct Compiled {
    pub subroutines: Vec<Vec<Step>>,
    pub methods: [Option<SubroutineId>; METHODS_COUNT],
    /// The program has nothing of its own in these.
    pub untouched: [bool; METHODS_COUNT],
    pub patterns: Vec<Pattern>,
    pub groups: Vec<Group>,
    pub sets_count: usize,
    pub acls: Vec<AclRanges>,
    /// The most that a call of std.cache_req_body asks for.
    pub request_body_bytes: Option<u64>,
    /// req.hash or bereq.hash is read somewhere, or chosen by.
    pub asks_hash: bool,
    /// It may purge what lies under its request's hash.
    pub purges_hash: bool,
    /// It sets resp.filters.
    pub names_filters: bool,
    /// It is a test that waits for something.
    pub waits: bool,
    pub labels: Vec<String>,
}

/// The regexes that one subroutine asks about one text.
#[derive(Debug, Default)]
pub struct Group {
    pub members: Vec<RegexId>,
    /// There if they are worth one.
    pub set: Option<GroupSet>,
}

#[derive(Debug)]
pub struct GroupSet {
    pub engine: PatternsSet,
    /// Of all sets of the program.
    pub number: u32,
    /// Which of the set's regexes each member is, if it is in it.
    pub places: Vec<Option<u32>>,
}

/// A statement.
#[derive(Debug)]
pub struct Step {
    pub act: Act,
    pub at: Span,
}

#[derive(Debug)]
pub enum Act {
    SetHeader {
        of: Message,
        name: Arc<HeaderName>,
        value: Text,
        /// Whatever the value turns out to be, it can stand in a line.
        is_lawful: bool,
    },
    AddToHeader {
        of: Message,
        name: Arc<HeaderName>,
        value: Text,
    },
    UnsetHeader {
        of: Message,
        name: Arc<HeaderName>,
    },
    /// Several substitutions in the same header, one after another.
    RewriteHeader {
        of: Message,
        name: Arc<HeaderName>,
        /// In shorter texts there is nothing to replace.
        bytes_min: usize,
        steps: Box<[Rewriting]>,
        set: Option<Box<ChainSet>>,
    },
    /// For `+=` and its like the value is the whole sum.
    SetVariable {
        of: VariableId,
        value: Any,
    },
    UnsetVariable(VariableId),
    /// `resp.body` or `beresp.body`.
    SetBody {
        append: bool,
        value: Any,
    },
    Call(SubroutineId),
    Builtin(BuiltinRule, SubroutineId),
    Leave,
    Return(Ending),
    If(Box<Branches>),
    New {
        object: ObjectId,
        call: Box<Call>,
    },
    Ban(Text),
    HashData(Box<[Text]>),
    Synthetic(Box<[Text]>),
    Function(Box<Call>),
    Block(Box<[Step]>),
}

/// Tells in one pass which of a chain's regexes match.
#[derive(Debug)]
pub struct ChainSet {
    pub engine: PatternsSet,
    /// Which of the set's regexes each step's is, if it is in it.
    pub places: Vec<Option<u32>>,
}

/// `set name = regsub(name, pattern, replacement)`
#[derive(Debug)]
pub struct Rewriting {
    pub all: bool,
    pub pattern: RegexId,
    pub replacement: Box<[u8]>,
    pub at: Span,
}

#[derive(Debug)]
pub struct Branches {
    pub branches: Box<[Branch]>,
    pub otherwise: Box<[Step]>,
}

#[derive(Debug)]
pub struct Branch {
    /// Where the condition stands.
    pub at: Span,
    pub condition: Cond,
    pub steps: Box<[Step]>,
}

#[derive(Debug)]
pub enum Ending {
    Plain(Action),
    Status { action: Action, status: Int, reason: Option<Text> },
    PassFor(Real),
    Fail(Option<Text>),
    Vcl(usize),
}

/// STRING, STRANDS, or a HEADER that is read.
#[derive(Debug)]
pub enum Text {
    Absent,
    Constant(Box<[u8]>),
    Header(Message, Arc<HeaderName>),
    HeaderCalled(Message, Box<Text>),
    Variable(VariableId),
    Join(Box<[Text]>),
    Changed(Box<ChangedText>),
    Of(Box<Any>),
    Call(Box<Call>),
}

impl Text {
    /// Both are the same header or the same variable.
    pub fn reads_as(&self, other: &Text) -> bool {
        match (self, other) {
            (Text::Header(of, name), Text::Header(of_other, other)) => of == of_other && name.lower() == other.lower(),
            (Text::Variable(id), Text::Variable(other)) => id == other,
            _ => false,
        }
    }
}

#[derive(Debug)]
pub enum ChangedText {
    Upper(Text),
    Lower(Text),
    Substituted { all: bool, text: Text, pattern: RegexId, replacement: Text },
}

/// BOOL.
#[derive(Debug)]
pub enum Cond {
    Constant(bool),
    Variable(VariableId),
    HeaderIsThere(Message, Arc<HeaderName>),
    IsThere(Text),
    IsNotZero(Int),
    IsPositive(Real),
    IsSome(BackendOf),
    StorageIsHappy(StorageOf),
    Not(Box<Cond>),
    And(Box<[Cond]>),
    Or(Box<[Cond]>),
    Match(Box<Match>),
    AclMatch {
        negated: bool,
        address: IpOf,
        acl: AclId,
    },
    Texts(BinaryOperator, Box<(Text, Text)>),
    /// The text of a header or variable is one of these, or none of them.
    Among(Box<Among>),
    Ints(BinaryOperator, Box<(Int, Int)>),
    Reals(BinaryOperator, Box<(Real, Real)>),
    /// The same or not, of any other type.
    Same {
        negated: bool,
        sides: Box<(Any, Any)>,
    },
    Call(Box<Call>),
}

#[derive(Debug)]
pub struct Among {
    pub negated: bool,
    pub text: Text,
    pub constants: Vec<Box<[u8]>>,
}

#[derive(Debug)]
pub struct Match {
    pub negated: bool,
    pub text: Text,
    pub pattern: RegexId,
    /// Shorter texts do not match.
    pub bytes_min: usize,
    /// Of which group, and as which member.
    pub in_group: Option<(u32, u32)>,
}

/// INT and BYTES.
#[derive(Debug)]
pub enum Int {
    Constant(i64),
    Variable(VariableId),
    Negative(Box<Int>),
    Arithmetic(BinaryOperator, Box<(Int, Int)>),
    /// BYTES multiplied or divided.
    Scaled(BinaryOperator, Box<(Int, Real)>),
    StorageSpace(StorageOf, VariableId),
    Call(Box<Call>),
}

/// REAL, DURATION and TIME.
#[derive(Debug)]
pub enum Real {
    Constant(f64),
    Variable(VariableId),
    OfInt(Box<Int>),
    Negative(Box<Real>),
    Arithmetic(BinaryOperator, Box<(Real, Real)>),
    Call(Box<Call>),
}

#[derive(Debug)]
pub enum IpOf {
    Constant(Ip),
    Variable(VariableId),
    Call(Box<Call>),
}

#[derive(Debug)]
pub enum BlobOf {
    Constant(Box<[u8]>),
    Variable(VariableId),
    Call(Box<Call>),
}

#[derive(Debug)]
pub enum BackendOf {
    Constant(BackendRef),
    Variable(VariableId),
    Resolved(Box<BackendOf>),
    Call(Box<Call>),
}

#[derive(Debug)]
pub enum StorageOf {
    Constant(Box<[u8]>),
    Variable(VariableId),
    Call(Box<Call>),
}

/// A header as such, for a function.
#[derive(Debug)]
pub enum HeaderOf {
    Fixed(Message, Arc<HeaderName>),
    Called(Message, Text),
}

/// A value of any type.
#[derive(Debug)]
pub enum Any {
    Text(Text),
    Bool(Cond),
    Int(Int),
    Bytes(Int),
    Real(Real),
    Duration(Real),
    Time(Real),
    Ip(IpOf),
    Blob(BlobOf),
    Backend(BackendOf),
    Storage(StorageOf),
    Header(HeaderOf),
    Http(Message),
    Word(&'static str),
    Pattern(RegexId),
    Acl(AclId),
    Probe(Option<ProbeId>),
    Subroutine(SubroutineId),
    Object(ObjectId),
}

/// A call of a module's function, or of an object's method.
#[derive(Debug)]
pub struct Call {
    pub function: VmodFunction,
    pub object: Option<ObjectId>,
    /// One for each parameter; defaults are filled in. `None` where the caller gave none.
    pub arguments: Box<[Option<Any>]>,
    pub gives: Type,
}
