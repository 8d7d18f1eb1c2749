//! Values as they pass between a program and its host: small, copied, without a pointer to anything that must be freed.
//!
//! Durations, times and reals are `f64`, in seconds where they are time, as in Varnish.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::typed_program::{BackendId, ObjectId};
use crate::types::Type;

/// A value of one of the types.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Plain<'a> {
    /// Absent is not empty.
    Text(Option<&'a [u8]>),
    Bool(bool),
    Int(i64),
    Real(f64),
    Duration(f64),
    /// Seconds since 1970.
    Time(f64),
    Bytes(i64),
    Ip(Ip),
    Blob(Option<&'a [u8]>),
    Backend(BackendRef),
    /// The name of a store; `None` lets the cache choose.
    Storage(Option<&'a [u8]>),
}

/// An IP with its port, which an IP of VCL has: `std.port(client.ip)`. A UNIX socket is 0.0.0.0 port 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip {
    pub address: IpAddr,
    pub port: u16,
}

/// A BACKEND: one that was defined, or a director, which chooses when the fetch begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BackendRef {
    #[default]
    None,
    /// Of `Program::backends`, or beyond them one of `Loaded::dynamic_backend`.
    Named(BackendId),
    Director(ObjectId),
}

/// Why a transaction fails. One word wide: nearly every step of a program gives a value or one of these, and as long as
/// it is no wider, both fit into registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault(Box<Reason>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Reason {
    text: Box<str>,
    is_of_room: bool,
}

impl Fault {
    #[cold]
    pub fn new(reason: impl Into<Box<str>>) -> Fault {
        Fault(Box::new(Reason { text: reason.into(), is_of_room: false }))
    }

    /// There is no room for what the program makes.
    #[cold]
    pub(crate) fn of_room(reason: impl Into<Box<str>>) -> Fault {
        Fault(Box::new(Reason { text: reason.into(), is_of_room: true }))
    }

    /// The same with more words.
    pub(crate) fn told_as(&self, reason: String) -> Fault {
        Fault(Box::new(Reason { text: reason.into(), is_of_room: self.0.is_of_room }))
    }

    pub fn reason(&self) -> &str {
        &self.0.text
    }

    /// There was no room for what the program made: Varnish's workspace overflow.
    pub fn is_of_room(&self) -> bool {
        self.0.is_of_room
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

impl Ip {
    /// What stands for no address: 0.0.0.0, port 0.
    pub const NONE: Ip = Ip { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), port: 0 };

    /// `1.2.3.4`, `1.2.3.4:80`, `1.2.3.4 80`, `[::1]`, `[::1]:80`, `::1`, with this port if none is written.
    pub(crate) fn read(text: &str, port: u16) -> Option<Ip> {
        let bare = |text: &str| {
            let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
            inner.parse::<IpAddr>().ok()
        };
        if let Some(address) = bare(text) {
            return Some(Ip { address, port });
        }
        if let Ok(socket) = text.parse::<SocketAddr>() {
            return Some(Ip { address: socket.ip(), port: socket.port() });
        }
        let (address, port) = text.rsplit_once([' ', ':']).filter(|(address, _)| !address.contains(' '))?;
        Some(Ip { address: bare(address)?, port: port.parse().ok()? })
    }
}

impl<'a> Plain<'a> {
    /// What a variable of the type is when there is nothing to say: absent, false, zero.
    pub fn nothing(of: Type) -> Plain<'a> {
        match of {
            Type::Bool => Plain::Bool(false),
            Type::Int => Plain::Int(0),
            Type::Real => Plain::Real(0.0),
            Type::Duration => Plain::Duration(0.0),
            Type::Time => Plain::Time(0.0),
            Type::Bytes => Plain::Bytes(0),
            Type::Ip => Plain::Ip(Ip::NONE),
            Type::Blob => Plain::Blob(None),
            Type::Backend => Plain::Backend(BackendRef::None),
            Type::Stevedore => Plain::Storage(None),
            _ => Plain::Text(None),
        }
    }

    /// Whether the value is of the type.
    pub fn is_of(self, of: Type) -> bool {
        match self {
            Plain::Text(_) => of.is_text() || of == Type::Header || of == Type::Body,
            Plain::Bool(_) => of == Type::Bool,
            Plain::Int(_) => of == Type::Int,
            Plain::Real(_) => of == Type::Real,
            Plain::Duration(_) => of == Type::Duration,
            Plain::Time(_) => of == Type::Time,
            Plain::Bytes(_) => of == Type::Bytes,
            Plain::Ip(_) => of == Type::Ip,
            Plain::Blob(_) => of == Type::Blob || of == Type::Body,
            Plain::Backend(_) => of == Type::Backend,
            Plain::Storage(_) => of == Type::Stevedore,
        }
    }

    // A host that answers with another type than the variable has is at fault; the program goes on with nothing.

    pub fn text(self) -> Option<&'a [u8]> {
        match self {
            Plain::Text(text) | Plain::Blob(text) | Plain::Storage(text) => text,
            _ => None,
        }
    }

    pub fn truth(self) -> bool {
        matches!(self, Plain::Bool(true))
    }

    pub fn int(self) -> i64 {
        match self {
            Plain::Int(number) | Plain::Bytes(number) => number,
            _ => 0,
        }
    }

    pub fn real(self) -> f64 {
        match self {
            Plain::Real(number) | Plain::Duration(number) | Plain::Time(number) => number,
            _ => 0.0,
        }
    }

    pub fn ip(self) -> Ip {
        match self {
            Plain::Ip(ip) => ip,
            _ => Ip::NONE,
        }
    }

    pub fn backend(self) -> BackendRef {
        match self {
            Plain::Backend(backend) => backend,
            _ => BackendRef::None,
        }
    }
}

const _: () = assert!(size_of::<Plain<'_>>() <= 24);
