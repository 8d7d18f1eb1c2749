//! What can be asked for: every request as the bytes that are sent, made before the run begins.
//!
//! One block of bytes and an end for each request, so 150,000 URLs cost what their text costs. The number of a
//! request here is also its number in `learned`.

use std::fmt;

use crate::lab_url::{LabUrl, check_bytes};
use crate::limits::URLS_MAX;

#[derive(Debug, Default)]
pub struct Catalogue {
    requests: Vec<u8>,
    ends: Vec<usize>,
    paths: Vec<(usize, usize)>,
}

/// Which request comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One after another, from the beginning again when all were asked; the threads share one round.
    InTurn,
    Random,
}

/// What is wrong with a list of URLs, and where.
#[derive(Debug, PartialEq, Eq)]
pub struct CatalogueError {
    /// From 1; 0 when it is about all of it.
    pub line: usize,
    pub what: String,
}

impl fmt::Display for CatalogueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}", self.what),
            line => write!(f, "line {line}: {}", self.what),
        }
    }
}

/// What is the same in every request.
struct Common {
    authority: String,
    fields: String,
}

impl Catalogue {
    /// One request: the URL itself. `fields` are whole `Name: value` lines.
    pub fn of_url(url: &LabUrl, fields: &[String], short: bool) -> Result<Catalogue, CatalogueError> {
        let common = Common::new(url, fields, short)?;
        let mut catalogue = Catalogue::default();
        catalogue.add(&url.path, &common);
        Ok(catalogue)
    }

    /// A request for each line: a path, or a URL of the same host and port. Empty lines and `#` comments are passed over.
    pub fn of_list(url: &LabUrl, list: &str, fields: &[String], short: bool) -> Result<Catalogue, CatalogueError> {
        let common = Common::new(url, fields, short)?;
        let mut catalogue = Catalogue::default();
        for (index, line) in list.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let refuse = |what| CatalogueError { line: index + 1, what };
            if line.starts_with('/') {
                check_bytes(line).map_err(refuse)?;
                catalogue.add(line, &common);
            } else {
                let other = LabUrl::parse(line).map_err(refuse)?;
                if (&*other.host, other.port) != (&*url.host, url.port) {
                    let what = format!("{} is not the target, {}:{}", other.authority, url.host, url.port);
                    return Err(refuse(what));
                }
                catalogue.add(&other.path, &common);
            }
            if catalogue.len() > URLS_MAX {
                return Err(refuse(format!("more than {URLS_MAX} URLs")));
            }
        }
        if catalogue.is_empty() {
            return Err(CatalogueError { line: 0, what: "holds no URL".to_owned() });
        }
        Ok(catalogue)
    }

    fn add(&mut self, path: &str, common: &Common) {
        self.requests.extend_from_slice(b"GET ");
        self.paths.push((self.requests.len(), path.len()));
        for part in [path, " HTTP/1.1\r\nHost: ", &common.authority, "\r\n", &common.fields, "\r\n"] {
            self.requests.extend_from_slice(part.as_bytes());
        }
        self.ends.push(self.requests.len());
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The bytes to send.
    #[inline]
    pub(crate) fn request(&self, index: usize) -> &[u8] {
        let from = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.requests[from..self.ends[index]]
    }

    /// For messages.
    pub(crate) fn path(&self, index: usize) -> &str {
        let (from, length) = self.paths[index];
        std::str::from_utf8(&self.requests[from..from + length]).expect("paths were checked to be ASCII")
    }
}

impl Common {
    fn new(url: &LabUrl, fields: &[String], short: bool) -> Result<Common, CatalogueError> {
        let refuse = |what| CatalogueError { line: 0, what };
        let mut authority = url.authority.clone();
        let mut text = String::new();
        let mut has_agent = false;
        for field in fields {
            let (name, value) = field
                .split_once(':')
                .filter(|(name, _)| !name.is_empty() && name.bytes().all(is_token_byte))
                .ok_or_else(|| refuse(format!("`{field}` is no header field; write 'Name: value'")))?;
            let value = value.trim_matches([' ', '\t']);
            if value.bytes().any(|b| b.is_ascii_control() && b != b'\t') {
                return Err(refuse(format!("the field {name} holds a control byte")));
            }
            match name.to_ascii_lowercase().as_str() {
                "host" => value.clone_into(&mut authority),
                "content-length" | "transfer-encoding" => {
                    return Err(refuse(format!("{name} would announce a body, and none is sent")));
                }
                lower => {
                    has_agent |= lower == "user-agent";
                    text.push_str(&format!("{name}: {value}\r\n"));
                }
            }
        }
        if !has_agent {
            text.push_str("User-Agent: larder-bench\r\n");
        }
        if short {
            text.push_str("Connection: close\r\n");
        }
        Ok(Common { authority, fields: text })
    }
}

/// RFC 9110 §5.6.2.
fn is_token_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url() -> LabUrl {
        LabUrl::parse("http://a:81/x").unwrap()
    }

    #[test]
    fn requests_are_whole_before_the_run() {
        let fields = ["Accept: */*".to_owned(), "Host: b".to_owned()];
        let one = Catalogue::of_url(&url(), &fields, true).unwrap();
        let expect =
            "GET /x HTTP/1.1\r\nHost: b\r\nAccept: */*\r\nUser-Agent: larder-bench\r\nConnection: close\r\n\r\n";
        assert_eq!(std::str::from_utf8(one.request(0)).unwrap(), expect);
        let list = Catalogue::of_list(&url(), "# two\n/b\n\nhttp://a:81/c?d\r\n", &[], false).unwrap();
        assert_eq!((list.len(), list.path(0), list.path(1)), (2, "/b", "/c?d"));
        assert!(list.request(1).starts_with(b"GET /c?d HTTP/1.1\r\nHost: a:81\r\n"));
        assert!(list.request(0).ends_with(b"\r\n\r\n"));
    }

    fn check_refused(list: &str, field: Option<&str>, line: usize, part: &str) {
        let fields: Vec<String> = field.into_iter().map(str::to_owned).collect();
        let error = Catalogue::of_list(&url(), list, &fields, false).unwrap_err();
        assert_eq!(error.line, line, "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }

    #[test]
    fn rubbish_is_refused_with_its_line() {
        check_refused("/a\nhttp://other/\n", None, 2, "line 2: other is not the target, a:81");
        check_refused("/a\n\n/b c\n", None, 3, "may not stand");
        check_refused("\u{1}\u{2}\n", None, 1, "may not stand");
        check_refused("# nothing\n", None, 0, "holds no URL");
        check_refused("/", Some("no colon"), 0, "no header field");
        check_refused("/", Some("A b: c"), 0, "no header field");
        check_refused("/", Some("A: b\r\nC: d"), 0, "control byte");
        check_refused("/", Some("Content-Length: 5"), 0, "none is sent");
    }
}
