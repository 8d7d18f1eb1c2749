//! The types of VCL, and which becomes which by itself.
//!
//! Two of the language's types are one here: what Varnish calls STRINGS (a concatenation on its way) is `String`, and
//! whether a value is a concatenation shows in the program (`ValueKind::Join`).

/// A type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    Acl,
    Backend,
    Blob,
    Body,
    Bool,
    Bytes,
    Duration,
    Enum,
    Header,
    Http,
    /// An object made by `new`.
    Instance,
    Int,
    Ip,
    Probe,
    Real,
    Regex,
    Stevedore,
    String,
    Strands,
    Sub,
    Time,
    Vcl,
    Void,
}

const NAMES: [(Type, &str); 23] = [
    (Type::Acl, "ACL"),
    (Type::Backend, "BACKEND"),
    (Type::Blob, "BLOB"),
    (Type::Body, "BODY"),
    (Type::Bool, "BOOL"),
    (Type::Bytes, "BYTES"),
    (Type::Duration, "DURATION"),
    (Type::Enum, "ENUM"),
    (Type::Header, "HEADER"),
    (Type::Http, "HTTP"),
    (Type::Instance, "INSTANCE"),
    (Type::Int, "INT"),
    (Type::Ip, "IP"),
    (Type::Probe, "PROBE"),
    (Type::Real, "REAL"),
    (Type::Regex, "REGEX"),
    (Type::Stevedore, "STEVEDORE"),
    (Type::String, "STRING"),
    (Type::Strands, "STRANDS"),
    (Type::Sub, "SUB"),
    (Type::Time, "TIME"),
    (Type::Vcl, "VCL"),
    (Type::Void, "VOID"),
];

impl Type {
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(of, _)| *of == self).map_or("", |(_, name)| name)
    }

    pub fn by_name(name: &str) -> Option<Type> {
        NAMES.iter().find(|(_, known)| *known == name).map(|(of, _)| *of)
    }

    /// Text that is wanted or there: STRING, STRANDS, and a HEADER once it is read.
    pub fn is_text(self) -> bool {
        matches!(self, Type::String | Type::Strands)
    }

    /// Whether a value of this type becomes text where text is wanted.
    pub fn has_text(self) -> bool {
        !matches!(
            self,
            Type::Body | Type::Enum | Type::Http | Type::Instance | Type::Regex | Type::Sub | Type::Vcl | Type::Void
        )
    }

    /// Whether it becomes a BOOL in a condition. REAL does not: comparing it with zero is seldom what is meant.
    pub fn has_truth(self) -> bool {
        matches!(
            self,
            Type::Bool | Type::Backend | Type::Int | Type::Duration | Type::String | Type::Strands | Type::Header
        )
    }

    /// What its values are multiplied and divided by.
    pub fn factor(self) -> Option<Type> {
        match self {
            Type::Int => Some(Type::Int),
            Type::Real | Type::Bytes | Type::Duration => Some(Type::Real),
            _ => None,
        }
    }

    /// The six comparisons, or only `==` and `!=`, or none.
    pub fn comparison(self) -> Comparison {
        match self {
            Type::Bytes | Type::Duration | Type::Int | Type::Real | Type::Time => Comparison::Order,
            Type::String | Type::Strands | Type::Header => Comparison::Order,
            Type::Acl | Type::Backend | Type::Bool | Type::Ip | Type::Probe | Type::Stevedore | Type::Instance => {
                Comparison::Equality
            }
            _ => Comparison::None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Order,
    Equality,
    None,
}

/// The type of `left + right` or `left - right`; `None` when there is no such sum.
pub fn sum(left: Type, subtract: bool, right: Type) -> Option<Type> {
    match (left, right) {
        (Type::Bytes, Type::Bytes) => Some(Type::Bytes),
        (Type::Duration, Type::Duration) => Some(Type::Duration),
        (Type::Int, Type::Int) => Some(Type::Int),
        (Type::Int | Type::Real, Type::Int | Type::Real) => Some(Type::Real),
        (Type::Time, Type::Time) if subtract => Some(Type::Duration),
        (Type::Time, Type::Duration) => Some(Type::Time),
        _ => None,
    }
}

/// Whether some sum begins with a value of this type.
pub fn begins_sum(left: Type) -> bool {
    matches!(left, Type::Bytes | Type::Duration | Type::Int | Type::Real | Type::Time)
}

/// Seconds of a unit of time.
pub fn seconds_of(unit: &str) -> Option<f64> {
    Some(match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86400.0,
        "w" => 7.0 * 86400.0,
        "y" => 365.0 * 86400.0,
        _ => return None,
    })
}

/// Bytes of a unit of size, in any case of letters and with or without the B: in VCL a KB is 1024.
pub fn bytes_of(unit: &str) -> Option<f64> {
    let unit = unit.to_ascii_lowercase();
    let letter = if unit == "b" { "" } else { unit.strip_suffix('b').unwrap_or(&unit) };
    let power = ["", "k", "m", "g", "t", "p"].iter().position(|known| *known == letter)?;
    Some(1024f64.powi(power as i32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_a_name() {
        for (of, name) in NAMES {
            assert_eq!((of.name(), Type::by_name(name)), (name, Some(of)));
        }
    }

    #[test]
    fn sums_are_those_of_vcl() {
        let check =
            |left, subtract, right, expect| assert_eq!(sum(left, subtract, right), expect, "{left:?} {right:?}");
        check(Type::Int, false, Type::Real, Some(Type::Real));
        check(Type::Time, true, Type::Time, Some(Type::Duration));
        check(Type::Time, false, Type::Time, None);
        check(Type::Duration, false, Type::Time, None);
        check(Type::Bytes, false, Type::Int, None);
    }
}
