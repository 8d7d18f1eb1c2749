//! The built-in modules: what their functions do. What they take and give is in `vmod_table`.
//!
//! A function is found by name when the program is compiled, and is one of an enum from then on. Its arguments are
//! evaluated before it is called, so it sees values only. What it remembers is in the object (`Object`, shared by all
//! transactions) or in the transaction's `Task`.

mod blob_forms;
mod blob_vmod;
mod bodyaccess_vmod;
mod connection_vmods;
pub mod cookie_jar;
mod cookie_vmod;
pub(crate) mod directors;
mod directors_vmod;
pub(crate) mod dynamic_vmod;
mod header_vmod;
pub mod kept_values;
mod purge_vmod;
pub(crate) mod saintmode_vmod;
pub(crate) mod shard_director;
pub(crate) mod shard_parameters;
mod std_numbers;
mod std_texts;
mod std_vmod;
mod str_vmod;
mod token_buckets;
mod var_vmod;
mod vsthrottle_vmod;
mod vtc_vmod;
mod wildcards;

use std::ops::Deref;

use crate::evaluation::evaluator::Run;
use crate::header_names::{HeaderName, KeptName};
use crate::host::{Host, Message};
use crate::limits::HEADER_NAME_BYTES_MAX;
use crate::matching::pattern::Pattern;
use crate::objects::Object;
use crate::plain_values::{BackendRef, Fault, Ip, Plain};
use crate::scope_arena::Arena;
use crate::typed_program::{AclId, ObjectId, ProbeId, SubroutineId};
use crate::vmod_signatures::Function;

/// What a function of a module is called with.
#[derive(Debug)]
pub enum Argument<'a> {
    Absent,
    Plain(Plain<'a>),
    /// A text that was joined of several, and how long the first of them is, where the program says that.
    Joined(&'a [u8], usize),
    Header(Message, HeaderArgument<'a>),
    Http(Message),
    Word(&'static str),
    Pattern(&'a Pattern),
    Acl(AclId),
    Probe(Option<ProbeId>),
    Subroutine(SubroutineId),
    /// An object, of which the functions know by themselves.
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

    fn kept(&self, arena: &'a Arena) -> Result<KeptName<'a>, Fault> {
        Ok(match self {
            HeaderArgument::Fixed(name) => KeptName::Known(name),
            HeaderArgument::Called(name) => KeptName::Made(arena.copy(name.written())?),
        })
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
            Some(Argument::Joined(text, _)) => Some(Plain::Text(Some(text))),
            _ => None,
        }
    }

    pub fn text(&self, index: usize) -> Option<&'a [u8]> {
        self.plain(index).and_then(Plain::text)
    }

    /// The first of the texts that one was joined of: what Varnish quotes of it.
    pub fn first_of(&self, index: usize) -> &'a [u8] {
        match self.0.get(index) {
            Some(Argument::Joined(text, first)) => &text[..*first],
            _ => self.bytes(index),
        }
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

    /// The same, to write by.
    pub fn kept_header(&self, index: usize, arena: &'a Arena) -> Result<(Message, KeptName<'a>), Fault> {
        match self.0.get(index) {
            Some(Argument::Header(of, name)) => Ok((*of, name.kept(arena)?)),
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
    Directors(directors_vmod::DirectorsFunction),
    Cookie(cookie_vmod::CookieFunction),
    Header(header_vmod::HeaderFunction),
    Purge(purge_vmod::PurgeFunction),
    Str(str_vmod::StrFunction),
    Var(var_vmod::VarFunction),
    Vsthrottle(vsthrottle_vmod::ThrottleFunction),
    Xkey(purge_vmod::XkeyFunction),
    Blob(blob_vmod::BlobFunction),
    Unix(connection_vmods::UnixFunction),
    Proxy(connection_vmods::ProxyFunction),
    Vtc(vtc_vmod::VtcFunction),
    H2(connection_vmods::H2Function),
    Saintmode(saintmode_vmod::SaintmodeFunction),
    Bodyaccess(bodyaccess_vmod::BodyFunction),
    Dynamic(dynamic_vmod::DynamicFunction),
    Tls(connection_vmods::TlsFunction),
}

impl VmodFunction {
    pub fn of(function: &Function) -> Option<VmodFunction> {
        use VmodFunction as V;
        let name = match function.class {
            Some(class) => format!("{class}.{}", function.name),
            None => function.name.to_owned(),
        };
        match function.vmod {
            "std" => std_vmod::StdFunction::by_name(&name).map(V::Std),
            "cookie" => cookie_vmod::CookieFunction::by_name(&name).map(V::Cookie),
            "header" => header_vmod::HeaderFunction::by_name(&name).map(V::Header),
            "purge" => purge_vmod::PurgeFunction::by_name(&name).map(V::Purge),
            "str" => str_vmod::StrFunction::by_name(&name).map(V::Str),
            "var" => var_vmod::VarFunction::by_name(&name).map(V::Var),
            "vsthrottle" => vsthrottle_vmod::ThrottleFunction::by_name(&name).map(V::Vsthrottle),
            "xkey" => purge_vmod::XkeyFunction::by_name(&name).map(V::Xkey),
            "directors" => directors_vmod::DirectorsFunction::by_name(&name).map(V::Directors),
            "blob" => blob_vmod::BlobFunction::by_name(&name).map(V::Blob),
            "unix" => connection_vmods::UnixFunction::by_name(&name).map(V::Unix),
            "proxy" => connection_vmods::ProxyFunction::by_name(&name).map(V::Proxy),
            "vtc" => vtc_vmod::VtcFunction::by_name(&name).map(V::Vtc),
            "h2" => connection_vmods::H2Function::by_name(&name).map(V::H2),
            "saintmode" => saintmode_vmod::SaintmodeFunction::by_name(&name).map(V::Saintmode),
            "bodyaccess" => bodyaccess_vmod::BodyFunction::by_name(&name).map(V::Bodyaccess),
            "dynamic" => dynamic_vmod::DynamicFunction::by_name(&name).map(V::Dynamic),
            "tls" => connection_vmods::TlsFunction::by_name(&name).map(V::Tls),
            _ => None,
        }
    }
}

/// Calls a function, or a method of an object.
pub fn call<'a, H: Host<'a>>(
    run: &Run<'a, '_, H>,
    function: VmodFunction,
    object: Option<ObjectId>,
    arguments: &Arguments<'_, 'a>,
) -> Result<Plain<'a>, Fault> {
    use VmodFunction as V;
    match function {
        V::Std(function) => std_vmod::call(run, function, arguments),
        V::Cookie(function) => cookie_vmod::call(run, function, arguments),
        V::Header(function) => header_vmod::call(run, function, arguments),
        V::Purge(function) => purge_vmod::call(run, function, arguments),
        V::Str(function) => str_vmod::call(run, function, arguments),
        V::Var(function) => var_vmod::call(run, function, arguments),
        V::Vsthrottle(function) => vsthrottle_vmod::call(run, function, arguments),
        V::Xkey(function) => purge_vmod::call_xkey(run, function, arguments),
        V::Directors(function) => directors_vmod::call(run, function, object, arguments),
        V::Blob(function) => blob_vmod::call(run, function, object, arguments),
        V::Unix(function) => connection_vmods::unix(run, function),
        V::Proxy(function) => Ok(connection_vmods::proxy(run, function)),
        V::Vtc(function) => vtc_vmod::call(run, function, arguments),
        V::H2(function) => Ok(connection_vmods::h2(run, function)),
        V::Saintmode(function) => saintmode_vmod::call(run, function, object, arguments),
        V::Bodyaccess(function) => bodyaccess_vmod::call(run, function, arguments),
        V::Dynamic(function) => dynamic_vmod::call(run, function, object, arguments),
        V::Tls(function) => Ok(connection_vmods::tls(run, function)),
    }
}

/// Makes an object.
pub fn make(function: VmodFunction, arguments: &Arguments<'_, '_>) -> Result<Object, Fault> {
    match function {
        VmodFunction::Directors(function) => directors_vmod::make(function, arguments),
        VmodFunction::Blob(_) => blob_vmod::make(arguments),
        VmodFunction::Saintmode(_) => saintmode_vmod::make(arguments),
        VmodFunction::Dynamic(function) => dynamic_vmod::make(function, arguments),
        other => Err(Fault::new(format!("{other:?} makes no object"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vmod_signatures;

    #[test]
    fn every_function_of_the_table_is_there() {
        for vmod in vmod_signatures::vmods() {
            let classes = vmod.classes.iter().flat_map(|class| class.methods.iter().chain([&class.constructor]));
            for function in vmod.functions.iter().chain(classes) {
                assert!(VmodFunction::of(function).is_some(), "{}", function.show());
            }
        }
    }
}
