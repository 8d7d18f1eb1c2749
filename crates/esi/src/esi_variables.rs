//! Variables of the request for a page: `$(HTTP_COOKIE{id}|nobody)` in `<esi:vars>`, in the address of an include and in the test of
//! `<esi:when>`.

/// What a request says.
pub trait Variables {
    /// The value of a variable, of the part with this key where there is one. `None`: it says nothing of it.
    fn value(&self, name: VariableName, key: Option<&[u8]>) -> Option<Vec<u8>>;
}

/// ESI 1.0, section 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableName {
    AcceptLanguage,
    Cookie,
    Host,
    Referer,
    UserAgent,
    QueryString,
}

/// As pages write them.
pub const VARIABLE_NAMES: [(&str, VariableName); 6] = [
    ("HTTP_ACCEPT_LANGUAGE", VariableName::AcceptLanguage),
    ("HTTP_COOKIE", VariableName::Cookie),
    ("HTTP_HOST", VariableName::Host),
    ("HTTP_REFERER", VariableName::Referer),
    ("HTTP_USER_AGENT", VariableName::UserAgent),
    ("QUERY_STRING", VariableName::QueryString),
];

/// One of them, where a page names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    pub name: VariableName,
    pub key: Option<Vec<u8>>,
    /// What stands for a value that is not there.
    pub default: Option<Vec<u8>>,
}

impl Variable {
    /// `$(NAME{key}|default)`, and how long that is. `None`: these bytes begin with no such.
    pub fn read(text: &[u8]) -> Option<(Variable, usize)> {
        let inner = text.strip_prefix(b"$(")?;
        let end = inner.iter().position(|byte| *byte == b')')?;
        let (name, default) = match inner[..end].iter().position(|byte| *byte == b'|') {
            Some(bar) => (&inner[..bar], Some(unquoted(inner[bar + 1..end].trim_ascii()).to_vec())),
            None => (&inner[..end], None),
        };
        let (name, key) = match name.iter().position(|byte| *byte == b'{') {
            Some(brace) => (&name[..brace], Some(name[brace + 1..].trim_ascii_end().strip_suffix(b"}")?.to_vec())),
            None => (name, None),
        };
        let name = VARIABLE_NAMES.iter().find(|(known, _)| known.as_bytes() == name.trim_ascii())?.1;
        Some((Variable { name, key, default }, end + 3))
    }

    /// What it says, or what stands for that; nothing where there is neither.
    pub fn value(&self, variables: &dyn Variables) -> Vec<u8> {
        let said = variables.value(self.name, self.key.as_deref()).filter(|value| !value.is_empty());
        said.or_else(|| self.default.clone()).unwrap_or_default()
    }

    /// The same as text of a page: no value ends a text, a tag or an attribute.
    pub fn escaped(&self, variables: &dyn Variables) -> Vec<u8> {
        let mut out = Vec::new();
        for byte in self.value(variables) {
            match byte {
                b'&' => out.extend_from_slice(b"&amp;"),
                b'<' => out.extend_from_slice(b"&lt;"),
                b'>' => out.extend_from_slice(b"&gt;"),
                b'"' => out.extend_from_slice(b"&quot;"),
                b'\'' => out.extend_from_slice(b"&#39;"),
                byte => out.push(byte),
            }
        }
        out
    }
}

/// An address with the values of its variables in it: each is one piece of a path or of a query, whatever is in it (RFC 3986 §2.1).
pub fn expanded(address: &[u8], variables: &dyn Variables) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::with_capacity(address.len()), address);
    while let [first, behind @ ..] = rest {
        if let Some((variable, length)) = Variable::read(rest) {
            for byte in variable.value(variables) {
                match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                    true => out.push(byte),
                    false => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
                }
            }
            rest = &rest[length..];
        } else {
            out.push(*first);
            rest = behind;
        }
    }
    out
}

fn unquoted(text: &[u8]) -> &[u8] {
    match text {
        [b'\'', inner @ .., b'\''] => inner,
        text => text,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A request with a cookie `id`, a query `q` and a host.
    pub(crate) struct Asked;

    impl Variables for Asked {
        fn value(&self, name: VariableName, key: Option<&[u8]>) -> Option<Vec<u8>> {
            match (name, key) {
                (VariableName::Cookie, Some(b"id")) => Some(b"7".to_vec()),
                (VariableName::QueryString, Some(b"q")) => Some(b"<a b>/&'\"".to_vec()),
                (VariableName::Host, None) => Some(b"a.test".to_vec()),
                _ => None,
            }
        }
    }

    fn check(text: &str, expect: Option<(&str, usize)>) {
        let read = Variable::read(text.as_bytes());
        let shown = read.map(|(variable, length)| (variable.escaped(&Asked), length));
        assert_eq!(shown, expect.map(|(value, length)| (value.as_bytes().to_vec(), length)), "{text}");
    }

    #[test]
    fn a_variable_says_what_the_request_says_or_what_stands_for_that() {
        check("$(HTTP_HOST) x", Some(("a.test", 12)));
        check("$(HTTP_COOKIE{id})", Some(("7", 18)));
        check("$(HTTP_COOKIE{no}|nobody)", Some(("nobody", 25)));
        check("$(HTTP_COOKIE{no}|'no body')", Some(("no body", 28)));
        check("$(HTTP_COOKIE{no})", Some(("", 18)));
        check("$(QUERY_STRING{q})", Some(("&lt;a b&gt;/&amp;&#39;&quot;", 18)));
        for text in ["$(HTTP_HOST", "$(HTTP_OTHER)", "$()", "$HTTP_HOST", "(HTTP_HOST)", "$(HTTP_COOKIE{id)", ""] {
            check(text, None);
        }
    }

    #[test]
    fn a_value_in_an_address_is_one_piece_of_it() {
        let expand = |text: &str| String::from_utf8(expanded(text.as_bytes(), &Asked)).unwrap();
        assert_eq!(expand("/x/$(HTTP_COOKIE{id})?q=$(QUERY_STRING{q})&$(x)"), "/x/7?q=%3Ca%20b%3E%2F%26%27%22&$(x)");
        assert_eq!(expand("http://$(HTTP_HOST)/"), "http://a.test/");
        assert_eq!(expand("$(QUERY_STRING{none}|../../x)"), "..%2F..%2Fx");
    }
}
