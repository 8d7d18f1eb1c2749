//! The built-in modules: what their functions do. What they take and give is in `vmod_table`.
//!
//! A function is found by name when the program is compiled, and is one of an enum from then on. Its arguments are
//! evaluated before it is called, so it sees values only. What it remembers is in the object (`Object`, shared by all
//! transactions) or in the transaction's `Task`.

pub mod cookie_jar;
mod cookie_vmod;
mod header_vmod;
pub mod kept_values;
mod purge_vmod;
mod std_numbers;
mod std_texts;
mod std_vmod;
mod str_vmod;
mod var_vmod;
mod wildcards;

use std::ops::Deref;

use crate::header_names::HeaderName;
use crate::host::{Host, Message};
use crate::limits::HEADER_NAME_BYTES_MAX;
use crate::matching::pattern::Pattern;
use crate::plain_values::{BackendRef, Fault, Ip, Plain};
use crate::running::evaluator::Run;
use crate::typed_program::{ObjectId, SubroutineId};
use crate::vmod_signatures::Function;

/// What a function of a module is called with.
#[derive(Debug)]
pub enum Argument<'a> {
    Absent,
    Plain(Plain<'a>),
    Header(Message, HeaderArgument<'a>),
    Http(Message),
    Word(&'static str),
    Pattern(&'a Pattern),
    Subroutine(SubroutineId),
    /// Of a kind that only names something of the program: no function here looks at it.
    Other,
}

/// A header's name: of the program, or by `header.dyn`.
#[derive(Debug)]
pub enum HeaderArgument<'a> {
    Fixed(&'a HeaderName),
    Called(Box<HeaderName>),
}

impl<'a> HeaderArgument<'a> {
    /// A name made at run time, if it can be one.
    pub fn called(name: &[u8]) -> Result<HeaderArgument<'a>, Fault> {
        let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
        if name.is_empty() || name.len() > HEADER_NAME_BYTES_MAX || !name.iter().all(is_token) {
            return Err(Fault::new(format!("\"{}\" cannot be a header's name", name.escape_ascii())));
        }
        Ok(HeaderArgument::Called(Box::new(HeaderName::new(name))))
    }
}

impl Deref for HeaderArgument<'_> {
    type Target = HeaderName;

    fn deref(&self) -> &HeaderName {
        match self {
            HeaderArgument::Fixed(name) => name,
            HeaderArgument::Called(name) => name,
        }
    }
}

/// The arguments, one for each parameter. The checker has seen that they are of the parameters' types.
#[derive(Debug)]
pub struct Arguments<'s, 'a>(pub &'s [Argument<'a>]);

impl<'a> Arguments<'_, 'a> {
    pub fn is_given(&self, index: usize) -> bool {
        !matches!(self.0.get(index), None | Some(Argument::Absent))
    }

    pub fn plain(&self, index: usize) -> Option<Plain<'a>> {
        match self.0.get(index) {
            Some(Argument::Plain(plain)) => Some(*plain),
            _ => None,
        }
    }

    pub fn text(&self, index: usize) -> Option<&'a [u8]> {
        self.plain(index).and_then(Plain::text)
    }

    /// Absent is empty.
    pub fn bytes(&self, index: usize) -> &'a [u8] {
        self.text(index).unwrap_or_default()
    }

    pub fn truth(&self, index: usize) -> bool {
        self.plain(index).is_some_and(Plain::truth)
    }

    pub fn int(&self, index: usize) -> i64 {
        self.plain(index).map_or(0, Plain::int)
    }

    pub fn real(&self, index: usize) -> f64 {
        self.plain(index).map_or(0.0, Plain::real)
    }

    pub fn ip(&self, index: usize) -> Ip {
        self.plain(index).map_or(Ip::NONE, Plain::ip)
    }

    pub fn backend(&self, index: usize) -> BackendRef {
        self.plain(index).map_or(BackendRef::None, Plain::backend)
    }

    pub fn header(&self, index: usize) -> Result<(Message, &HeaderName), Fault> {
        match self.0.get(index) {
            Some(Argument::Header(of, name)) => Ok((*of, name)),
            _ => Err(odd()),
        }
    }

    pub fn message(&self, index: usize) -> Result<Message, Fault> {
        match self.0.get(index) {
            Some(Argument::Http(of)) => Ok(*of),
            _ => Err(odd()),
        }
    }

    pub fn pattern(&self, index: usize) -> Result<&'a Pattern, Fault> {
        match self.0.get(index) {
            Some(Argument::Pattern(pattern)) => Ok(pattern),
            _ => Err(odd()),
        }
    }

    pub fn subroutine(&self, index: usize) -> Result<SubroutineId, Fault> {
        match self.0.get(index) {
            Some(Argument::Subroutine(id)) => Ok(*id),
            _ => Err(odd()),
        }
    }

    #[expect(dead_code, reason = "for modules to come")]
    pub fn word(&self, index: usize) -> Option<&'static str> {
        match self.0.get(index) {
            Some(Argument::Word(word)) => Some(word),
            _ => None,
        }
    }
}

#[cold]
fn odd() -> Fault {
    Fault::new("an argument is not of its parameter's type")
}

/// What a function gives that gives nothing.
pub const NOTHING: Plain<'static> = Plain::Text(None);

/// Declares the functions of a module: a variant and the name in the table, for methods with the class before it.
macro_rules! functions {
    ($name:ident { $($variant:ident $written:literal,)* }) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($variant,)*
        }

        impl $name {
            pub fn by_name(name: &str) -> Option<$name> {
                match name {
                    $($written => Some($name::$variant),)*
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use functions;

/// A function or method or constructor of any module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VmodFunction {
    Std(std_vmod::StdFunction),
    Cookie(cookie_vmod::CookieFunction),
    Header(header_vmod::HeaderFunction),
    Purge(purge_vmod::PurgeFunction),
    Str(str_vmod::StrFunction),
    Var(var_vmod::VarFunction),
    Xkey(purge_vmod::XkeyFunction),
}

impl VmodFunction {
    pub fn of(function: &Function) -> Option<VmodFunction> {
        let name = match function.class {
            Some(class) => format!("{class}.{}", function.name),
            None => function.name.to_owned(),
        };
        match function.vmod {
            "std" => std_vmod::StdFunction::by_name(&name).map(VmodFunction::Std),
            "cookie" => cookie_vmod::CookieFunction::by_name(&name).map(VmodFunction::Cookie),
            "header" => header_vmod::HeaderFunction::by_name(&name).map(VmodFunction::Header),
            "purge" => purge_vmod::PurgeFunction::by_name(&name).map(VmodFunction::Purge),
            "str" => str_vmod::StrFunction::by_name(&name).map(VmodFunction::Str),
            "var" => var_vmod::VarFunction::by_name(&name).map(VmodFunction::Var),
            "xkey" => purge_vmod::XkeyFunction::by_name(&name).map(VmodFunction::Xkey),
            _ => None,
        }
    }
}

/// Calls a function, or a method of an object.
pub fn call<'a, H: Host<'a>>(
    run: &Run<'a, '_, H>,
    function: VmodFunction,
    _object: Option<ObjectId>,
    arguments: &Arguments<'_, 'a>,
) -> Result<Plain<'a>, Fault> {
    match function {
        VmodFunction::Std(function) => std_vmod::call(run, function, arguments),
        VmodFunction::Cookie(function) => cookie_vmod::call(run, function, arguments),
        VmodFunction::Header(function) => header_vmod::call(run, function, arguments),
        VmodFunction::Purge(function) => purge_vmod::call(run, function, arguments),
        VmodFunction::Str(function) => str_vmod::call(run, function, arguments),
        VmodFunction::Var(function) => var_vmod::call(run, function, arguments),
        VmodFunction::Xkey(function) => purge_vmod::call_xkey(run, function, arguments),
    }
}

/// Makes an object.
pub fn make<'a, H: Host<'a>>(
    _run: &Run<'a, '_, H>,
    _object: ObjectId,
    function: VmodFunction,
    _arguments: &Arguments<'_, 'a>,
) -> Result<(), Fault> {
    Err(Fault::new(format!("{function:?} makes no object")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vmod_signatures;

    #[test]
    fn every_function_of_these_modules_is_there() {
        for vmod in ["std", "cookie", "header", "purge", "str", "var", "xkey"] {
            let vmod = vmod_signatures::find(vmod).expect("it is in the table");
            let classes = vmod.classes.iter().flat_map(|class| class.methods.iter().chain([&class.constructor]));
            for function in vmod.functions.iter().chain(classes) {
                assert!(VmodFunction::of(function).is_some(), "{}", function.show());
            }
        }
    }
}
