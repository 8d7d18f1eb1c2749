//! What the words of a program say, as a tree, before anything is known of names and types.
//!
//! The parser makes it, the checker reads it. Every node knows its place.

use crate::source_files::Span;

/// A word that names something, as it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Identifier {
    pub text: String,
    pub span: Span,
}

/// `req.http.X-Y`: parts joined by dots. A part in quotes is a header's name.
#[derive(Clone, Debug, PartialEq)]
pub struct Name {
    pub parts: Vec<Identifier>,
    /// The last part was written in quotes.
    pub quoted: bool,
    pub span: Span,
}

impl Name {
    pub fn text(&self) -> String {
        self.parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join(".")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOperator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Match,
    NoMatch,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

impl BinaryOperator {
    pub fn text(self) -> &'static str {
        match self {
            BinaryOperator::Or => "||",
            BinaryOperator::And => "&&",
            BinaryOperator::Equal => "==",
            BinaryOperator::NotEqual => "!=",
            BinaryOperator::Less => "<",
            BinaryOperator::LessEqual => "<=",
            BinaryOperator::Greater => ">",
            BinaryOperator::GreaterEqual => ">=",
            BinaryOperator::Match => "~",
            BinaryOperator::NoMatch => "!~",
            BinaryOperator::Add => "+",
            BinaryOperator::Subtract => "-",
            BinaryOperator::Multiply => "*",
            BinaryOperator::Divide => "/",
            BinaryOperator::Modulo => "%",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    pub kind: ExpressionKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ExpressionKind {
    Integer(u64),
    Real(f64),
    /// `1.5h`, `10 MB`.
    Measure {
        number: f64,
        unit: Identifier,
    },
    Text(Vec<u8>),
    /// Base64, without the colons.
    Blob(String),
    Name(Name),
    /// `regsub(…)`, `std.log(…)`, `object.method(…)`.
    Call {
        callee: Name,
        arguments: Vec<Argument>,
    },
    /// `(…).upper()`: a property of what is no name.
    Property {
        of: Box<Expression>,
        name: Identifier,
        arguments: Option<Vec<Argument>>,
    },
    Group(Box<Expression>),
    Negative(Box<Expression>),
    Not(Box<Expression>),
    /// The operators of `||`, `&&`, `+ -` and `* / %` chains lean to the left; each chain is one node, so that a long
    /// concatenation is no deep tree.
    Chain {
        first: Box<Expression>,
        rest: Vec<(BinaryOperator, Span, Expression)>,
    },
    /// `==`, `~` and the like, which do not chain.
    Compare {
        operator: BinaryOperator,
        operator_span: Span,
        left: Box<Expression>,
        right: Box<Expression>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    pub name: Option<Identifier>,
    pub value: Expression,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssignOperator {
    Set,
    Add,
    Subtract,
    Multiply,
    Divide,
}

impl AssignOperator {
    pub fn text(self) -> &'static str {
        match self {
            AssignOperator::Set => "=",
            AssignOperator::Add => "+=",
            AssignOperator::Subtract => "-=",
            AssignOperator::Multiply => "*=",
            AssignOperator::Divide => "/=",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    pub statements: Vec<Statement>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    pub kind: StatementKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum StatementKind {
    Set {
        target: Name,
        operator: AssignOperator,
        operator_span: Span,
        value: Expression,
    },
    Unset(Name),
    Call(Expression),
    Return(Option<ReturnAction>),
    If {
        branches: Vec<(Expression, Block)>,
        otherwise: Option<Block>,
    },
    New {
        name: Identifier,
        class: Name,
        arguments: Vec<Argument>,
    },
    Ban(Expression),
    HashData(Expression),
    Synthetic(Expression),
    /// A function of a module, or a method of an object.
    Function(Expression),
    Block(Block),
}

/// `synth(404, "no")` within `return (…)`.
#[derive(Clone, Debug, PartialEq)]
pub struct ReturnAction {
    pub word: Identifier,
    /// `None` without parentheses.
    pub arguments: Option<Vec<Expression>>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Definition {
    /// `vcl 4.1;`: 40 or 41.
    Version {
        version: u8,
        span: Span,
    },
    Import {
        module: Identifier,
        alias: Option<Identifier>,
        from: Option<Span>,
        span: Span,
    },
    Subroutine {
        name: Identifier,
        body: Block,
    },
    Acl(Acl),
    Backend(Backend),
    Probe {
        name: Identifier,
        attributes: Vec<Attribute>,
    },
    Unused(Name),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Acl {
    pub name: Identifier,
    /// `+log`: whether it is switched on, and its name.
    pub flags: Vec<(bool, Identifier)>,
    pub entries: Vec<AclEntry>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AclEntry {
    pub negated: bool,
    /// In parentheses: ignored when its name does not resolve.
    pub optional: bool,
    /// What stands in the quotes.
    pub address: String,
    /// The mask outside the quotes.
    pub mask: Option<(u64, Span)>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Backend {
    pub name: Identifier,
    /// `None` for `backend x none;`.
    pub attributes: Option<Vec<Attribute>>,
}

/// `.host = "x";`
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    pub name: Identifier,
    pub value: AttributeValue,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum AttributeValue {
    /// One string, or several in a row: only `.request` may have them.
    Texts(Vec<(Vec<u8>, Span)>),
    Expression(Expression),
    /// A probe in place.
    Probe(Vec<Attribute>),
}
