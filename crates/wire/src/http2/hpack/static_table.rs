//! The static table of HPACK (RFC 7541, appendix A), and what a line's name is.
//!
//! Read by the decoder; the encoder finds in it which names and lines need no text.

use message::FieldName;

/// The name of a line of a header list: a pseudo-field (RFC 9113 §8.3) or a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineName {
    Authority,
    Method,
    Path,
    Scheme,
    Status,
    /// RFC 8441 §4.
    Protocol,
    /// It begins with a colon, and is none of these.
    UnknownPseudo,
    Field(FieldName),
}

impl LineName {
    /// What a name given as text is.
    #[inline]
    pub fn classify(name: &[u8]) -> LineName {
        match name {
            [b':', pseudo @ ..] => match pseudo {
                b"authority" => LineName::Authority,
                b"method" => LineName::Method,
                b"path" => LineName::Path,
                b"scheme" => LineName::Scheme,
                b"status" => LineName::Status,
                b"protocol" => LineName::Protocol,
                _ => LineName::UnknownPseudo,
            },
            _ => LineName::Field(FieldName::classify(name)),
        }
    }
}

/// One line of the table: its name and its value, one behind the other.
#[derive(Clone, Copy, Debug)]
pub struct StaticLine {
    pub name: LineName,
    pub name_len: u16,
    pub text: &'static str,
}

const fn line(name: LineName, name_text: &'static str, text: &'static str) -> StaticLine {
    StaticLine { name, name_len: name_text.len() as u16, text }
}

macro_rules! lines {
    ($($name:expr, $name_text:literal, $value:literal;)*) => {
        [$(line($name, $name_text, concat!($name_text, $value))),*]
    };
}

pub const STATIC_LINES_COUNT: usize = 61;

/// Index 1 is the first.
pub static STATIC_TABLE: [StaticLine; STATIC_LINES_COUNT] = STATIC_LINES;
const STATIC_LINES: [StaticLine; STATIC_LINES_COUNT] = {
    use FieldName::*;
    use LineName::Field;
    lines! {
        LineName::Authority, ":authority", "";
        LineName::Method, ":method", "GET";
        LineName::Method, ":method", "POST";
        LineName::Path, ":path", "/";
        LineName::Path, ":path", "/index.html";
        LineName::Scheme, ":scheme", "http";
        LineName::Scheme, ":scheme", "https";
        LineName::Status, ":status", "200";
        LineName::Status, ":status", "204";
        LineName::Status, ":status", "206";
        LineName::Status, ":status", "304";
        LineName::Status, ":status", "400";
        LineName::Status, ":status", "404";
        LineName::Status, ":status", "500";
        Field(Other), "accept-charset", "";
        Field(AcceptEncoding), "accept-encoding", "gzip, deflate";
        Field(AcceptLanguage), "accept-language", "";
        Field(AcceptRanges), "accept-ranges", "";
        Field(Accept), "accept", "";
        Field(Other), "access-control-allow-origin", "";
        Field(Age), "age", "";
        Field(Allow), "allow", "";
        Field(Authorization), "authorization", "";
        Field(CacheControl), "cache-control", "";
        Field(Other), "content-disposition", "";
        Field(ContentEncoding), "content-encoding", "";
        Field(ContentLanguage), "content-language", "";
        Field(ContentLength), "content-length", "";
        Field(ContentLocation), "content-location", "";
        Field(ContentRange), "content-range", "";
        Field(ContentType), "content-type", "";
        Field(Cookie), "cookie", "";
        Field(Date), "date", "";
        Field(Etag), "etag", "";
        Field(Expect), "expect", "";
        Field(Expires), "expires", "";
        Field(Other), "from", "";
        Field(Host), "host", "";
        Field(IfMatch), "if-match", "";
        Field(IfModifiedSince), "if-modified-since", "";
        Field(IfNoneMatch), "if-none-match", "";
        Field(IfRange), "if-range", "";
        Field(IfUnmodifiedSince), "if-unmodified-since", "";
        Field(LastModified), "last-modified", "";
        Field(Other), "link", "";
        Field(Location), "location", "";
        Field(MaxForwards), "max-forwards", "";
        Field(ProxyAuthenticate), "proxy-authenticate", "";
        Field(ProxyAuthorization), "proxy-authorization", "";
        Field(Range), "range", "";
        Field(Referer), "referer", "";
        Field(Other), "refresh", "";
        Field(RetryAfter), "retry-after", "";
        Field(Server), "server", "";
        Field(SetCookie), "set-cookie", "";
        Field(StrictTransportSecurity), "strict-transport-security", "";
        Field(TransferEncoding), "transfer-encoding", "";
        Field(UserAgent), "user-agent", "";
        Field(Vary), "vary", "";
        Field(Via), "via", "";
        Field(Other), "www-authenticate", "";
    }
};

/// The index whose name a known field has; 0 where there is none.
pub static INDEX_OF_FIELD: [u8; FieldName::Other as usize + 1] = {
    let mut index_of = [0; FieldName::Other as usize + 1];
    let mut at = 0;
    while at < STATIC_LINES_COUNT {
        if let LineName::Field(name) = STATIC_LINES[at].name {
            index_of[name as usize] = at as u8 + 1;
        }
        at += 1;
    }
    index_of[FieldName::Other as usize] = 0;
    index_of
};

/// The index of a name, in lower case, that no [`FieldName`] stands for; 0 where there is none.
pub fn index_of_other(name: &[u8]) -> u8 {
    let is_same = |line: &StaticLine| {
        line.name == LineName::Field(FieldName::Other) && &line.text.as_bytes()[..usize::from(line.name_len)] == name
    };
    STATIC_TABLE.iter().position(is_same).map_or(0, |at| at as u8 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_what_its_text_says() {
        for line in &STATIC_TABLE {
            let name = &line.text.as_bytes()[..usize::from(line.name_len)];
            assert_eq!(LineName::classify(name), line.name, "{}", line.text);
        }
    }

    #[test]
    fn names_are_found_by_field_and_by_text() {
        assert_eq!(INDEX_OF_FIELD[FieldName::CacheControl as usize], 24);
        assert_eq!(INDEX_OF_FIELD[FieldName::Via as usize], 60);
        assert_eq!(INDEX_OF_FIELD[FieldName::CacheStatus as usize], 0);
        assert_eq!(index_of_other(b"www-authenticate"), 61);
        assert_eq!(index_of_other(b"x-own"), 0);
    }
}
