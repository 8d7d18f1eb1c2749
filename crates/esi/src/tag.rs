//! What stands between `<esi:` and `>`.

/// A tag of ESI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TagName {
    Include,
    Remove,
    Comment,
    Try,
    Attempt,
    Except,
    Vars,
    Choose,
    When,
    Otherwise,
}

const NAMES: [(&[u8], TagName); 10] = [
    (b"include", TagName::Include),
    (b"remove", TagName::Remove),
    (b"comment", TagName::Comment),
    (b"try", TagName::Try),
    (b"attempt", TagName::Attempt),
    (b"except", TagName::Except),
    (b"vars", TagName::Vars),
    (b"choose", TagName::Choose),
    (b"when", TagName::When),
    (b"otherwise", TagName::Otherwise),
];

/// The name that the text begins with, and what follows.
pub(crate) fn name(text: &[u8]) -> Option<(TagName, &[u8])> {
    NAMES.iter().find_map(|(name, tag)| Some((*tag, text.strip_prefix(*name)?)))
}

/// What is said behind a name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Attributes<'t> {
    all: Vec<(&'t [u8], &'t [u8])>,
    /// `/` at the end: nothing is between this tag and its end.
    pub(crate) is_empty_element: bool,
}

impl<'t> Attributes<'t> {
    /// The error is a sentence about what is no XML.
    pub(crate) fn read(mut text: &'t [u8]) -> Result<Attributes<'t>, &'static str> {
        let mut read = Attributes::default();
        let mut may_begin = false;
        loop {
            let blanks = text.iter().take_while(|byte| is_blank(**byte)).count();
            may_begin |= blanks > 0;
            text = &text[blanks..];
            match text {
                [] => return Ok(read),
                [b'/'] => {
                    read.is_empty_element = true;
                    return Ok(read);
                }
                [b'/', ..] => return Err("XML 1.0 '>' does not follow '/' in tag"),
                [first, ..] if may_begin && begins_name(*first) => {
                    let (attribute, rest) = attribute(text)?;
                    read.all.extend(attribute);
                    text = rest;
                }
                _ => return Err("XML 1.0 Illegal attribute start char"),
            }
        }
    }

    /// The only one of this name. `None`: there is none; the error is two of them.
    pub(crate) fn only(&self, name: &[u8]) -> Result<Option<&'t [u8]>, ()> {
        let mut values = self.all.iter().filter(|(known, _)| *known == name).map(|(_, value)| *value);
        let first = values.next();
        if values.next().is_some() { Err(()) } else { Ok(first) }
    }

    /// The last one of this name.
    pub(crate) fn last(&self, name: &[u8]) -> Option<&'t [u8]> {
        self.all.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
}

type Attribute<'t> = (&'t [u8], &'t [u8]);

/// `name="value"`, and what follows; a name without a value is passed over.
fn attribute(text: &[u8]) -> Result<(Option<Attribute<'_>>, &[u8]), &'static str> {
    let name_len = text.iter().take_while(|byte| is_in_name(**byte)).count();
    let (name, rest) = text.split_at(name_len);
    let rest = match rest {
        [] => return Ok((None, rest)),
        [b'=', rest @ ..] => rest,
        [next, ..] if *next == b'/' || is_blank(*next) => return Ok((None, rest)),
        _ => return Err("XML 1.0 Illegal attr char"),
    };
    let (from, length) = match rest {
        [quote @ (b'"' | b'\''), value @ ..] => (1, value.iter().position(|byte| byte == quote)),
        [first, ..] if !is_blank(*first) => (0, rest.iter().position(|byte| is_blank(*byte))),
        _ => return Err("XML 1.0 Illegal attribute delimiter"),
    };
    let length = length.ok_or("XML 1.0 Missing end attribute delimiter")?;
    Ok((Some((name, &rest[from..from + length])), &rest[from + length + 1..]))
}

pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte == b':' || byte >= 0x80
}

fn is_in_name(byte: u8) -> bool {
    begins_name(byte) || byte.is_ascii_digit() || byte == b'-' || byte == b'.'
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attributes, and whether the element is empty.
    type Read<'t> = (&'t [(&'t str, &'t str)], bool);

    fn check(text: &str, expect: Result<Read<'_>, &str>) {
        let read = Attributes::read(text.as_bytes());
        match (read, expect) {
            (Ok(read), Ok((all, is_empty))) => {
                assert_eq!(read.all.len(), all.len(), "{text}");
                for (read, all) in read.all.iter().zip(all) {
                    assert_eq!(*read, (all.0.as_bytes(), all.1.as_bytes()), "{text}");
                }
                assert_eq!(read.is_empty_element, is_empty, "{text}");
            }
            (Err(read), Err(why)) => assert_eq!(read, why, "{text}"),
            (read, expect) => panic!("{text}: {read:?}, not {expect:?}"),
        }
    }

    #[test]
    fn attributes_are_read_as_xml_has_them() {
        check("", Ok((&[], false)));
        check("/", Ok((&[], true)));
        check(" \n", Ok((&[], false)));
        check(" src=\"/a\"/", Ok((&[("src", "/a")], true)));
        check(" src='/a' onerror=\"continue\" /", Ok((&[("src", "/a"), ("onerror", "continue")], true)));
        check("\tsrc=\"/a\"onerror=\"x\"", Ok((&[("src", "/a"), ("onerror", "x")], false)));
        check(" src=/a /", Ok((&[("src", "/a")], true)));
        check(" checked /", Ok((&[], true)));
        check(" xml:lang=\"de\" a.b-1=\"\"/", Ok((&[("xml:lang", "de"), ("a.b-1", "")], true)));
    }

    #[test]
    fn what_is_no_xml_is_said() {
        check("src=\"/a\"/", Err("XML 1.0 Illegal attribute start char"));
        check(" 1=\"/a\"/", Err("XML 1.0 Illegal attribute start char"));
        check("/ a", Err("XML 1.0 '>' does not follow '/' in tag"));
        check(" src=\"/a", Err("XML 1.0 Missing end attribute delimiter"));
        check(" src=/a/", Err("XML 1.0 Missing end attribute delimiter"));
        check(" src= \"/a\"/", Err("XML 1.0 Illegal attribute delimiter"));
        check(" src=", Err("XML 1.0 Illegal attribute delimiter"));
        check(" s!c=\"/a\"/", Err("XML 1.0 Illegal attr char"));
    }

    #[test]
    fn one_is_found_by_its_name() {
        let read = Attributes::read(b" a=\"1\" b=\"2\" b=\"3\"/").unwrap();
        assert_eq!(read.only(b"a"), Ok(Some(&b"1"[..])));
        assert_eq!(read.only(b"b"), Err(()));
        assert_eq!(read.only(b"c"), Ok(None));
        assert_eq!(read.last(b"b"), Some(&b"3"[..]));
    }
}
