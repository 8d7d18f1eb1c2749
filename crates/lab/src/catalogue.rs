//! What can be asked for: every request as the bytes that are sent, made before the run begins.
//!
//! One block of bytes and an end for each request, so 150,000 URLs cost what their text costs. The number of a
//! request here is also its number in `learned`.

use std::borrow::Cow;
use std::fmt;

use crate::lab_url::{LabUrl, check_bytes};
use crate::limits::{REQUESTS_BYTES_MAX, URLS_MAX};
use crate::memcached_catalogue::Values;
use crate::received_head::is_token_byte;

#[derive(Debug, Default)]
pub struct Catalogue {
    requests: Vec<u8>,
    ends: Vec<usize>,
    paths: Vec<(usize, usize)>,
    values: Option<Values>,
}

/// Which request comes next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    /// One after another, from the beginning again when all were asked; the threads share one round.
    InTurn,
    Random,
    /// By popularity: the k-th of the catalogue in proportion to k to the power of -alpha.
    Zipf {
        alpha: f64,
    },
    /// At random, and so many of a million from the second half.
    Halves {
        second_per_million: u32,
    },
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
#[derive(Clone, Debug, Default)]
pub struct Recipe {
    pub method: AskMethod,
    /// Whole `Name: value` lines.
    pub fields: Vec<String>,
    /// Each request closes its connection.
    pub short: bool,
    /// To a forward proxy: the whole URL stands in the request, and a list may name many hosts.
    pub proxied: bool,
    /// Sent with every request of a POST.
    pub body: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AskMethod {
    #[default]
    Get,
    /// Its answers have no body, whatever their head announces.
    Head,
    Post,
}

impl Catalogue {
    /// One request: the URL itself.
    pub fn of_url(url: &LabUrl, recipe: &Recipe) -> Result<Catalogue, CatalogueError> {
        let common = Common::new(recipe)?;
        let mut catalogue = Catalogue::default();
        catalogue.add(recipe.method, &url.authority, &url.path, &common);
        Ok(catalogue)
    }

    /// A request for each line: a path, or a URL of the same host and port (of any, when a proxy is asked). Empty
    /// lines and `#` comments are passed over.
    pub fn of_list(url: &LabUrl, list: &str, recipe: &Recipe) -> Result<Catalogue, CatalogueError> {
        let common = Common::new(recipe)?;
        let mut catalogue = Catalogue::default();
        for (index, line) in list.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let refuse = |what| CatalogueError { line: index + 1, what };
            let (authority, path) = target_of_line(line, url, recipe.proxied).map_err(refuse)?;
            catalogue.add(recipe.method, &authority, &path, &common);
            if catalogue.len() > URLS_MAX {
                return Err(refuse(format!("more than {URLS_MAX} URLs")));
            }
            if catalogue.requests.len() > REQUESTS_BYTES_MAX {
                return Err(refuse(format!(
                    "all requests together, bodies too, are more than {REQUESTS_BYTES_MAX} bytes"
                )));
            }
        }
        if catalogue.is_empty() {
            return Err(CatalogueError { line: 0, what: "holds no URL".to_owned() });
        }
        Ok(catalogue)
    }

    /// To be filled with requests to a memcached.
    pub(crate) fn of_values(values: Values) -> Catalogue {
        Catalogue { values: Some(values), ..Catalogue::default() }
    }

    /// A request as it is sent, and where in it the name stands that messages call it by.
    pub(crate) fn add_raw(&mut self, request: &[u8], name_at: usize, name_bytes: usize) {
        self.paths.push((self.requests.len() + name_at, name_bytes));
        self.requests.extend_from_slice(request);
        self.ends.push(self.requests.len());
    }

    pub(crate) fn is_of_memcached(&self) -> bool {
        self.values.is_some()
    }

    /// The value that this request must bring, where a rule says it.
    #[inline]
    pub(crate) fn value(&self, index: usize) -> Option<&[u8]> {
        let values = self.values.as_ref()?;
        values.setter(index).map(|setter| values.value(self.request(setter)))
    }

    pub(crate) fn add(&mut self, method: AskMethod, authority: &str, path: &str, common: &Common) {
        let host = common.host.as_deref().unwrap_or(authority);
        let origin = if common.proxied { ["http://", authority] } else { ["", ""] };
        for part in [method.name(), " ", origin[0], origin[1]] {
            self.requests.extend_from_slice(part.as_bytes());
        }
        self.paths.push((self.requests.len(), path.len()));
        for part in [path, " HTTP/1.1\r\nHost: ", host, "\r\n", &common.fields, "\r\n"] {
            self.requests.extend_from_slice(part.as_bytes());
        }
        if method == AskMethod::Post {
            self.requests.extend_from_slice(&common.body);
        }
        self.ends.push(self.requests.len());
    }

    /// The same requests with another header field in the place of this one, a whole line each without its end.
    pub(crate) fn with_field_replaced(&self, field: &str, other: &str) -> Catalogue {
        let line = format!("\r\n{field}\r\n").into_bytes();
        let mut changed = Catalogue::default();
        for index in 0..self.len() {
            let request = self.request(index);
            let from = if index == 0 { 0 } else { self.ends[index - 1] };
            let (name_at, name_bytes) = self.paths[index];
            let made = match request.windows(line.len()).position(|bytes| bytes == line) {
                None => request.to_vec(),
                Some(at) => [&request[..at + 2], other.as_bytes(), &request[at + line.len() - 2..]].concat(),
            };
            changed.add_raw(&made, name_at - from, name_bytes);
        }
        changed
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Of what is sent for one.
    pub fn request_bytes_mean(&self) -> f64 {
        self.requests.len() as f64 / self.len().max(1) as f64
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

/// A path, or a URL of the same host and port; of any, when a proxy is asked.
pub(crate) fn target_of_line<'a>(
    text: &'a str,
    url: &'a LabUrl,
    proxied: bool,
) -> Result<(Cow<'a, str>, Cow<'a, str>), String> {
    if text.starts_with('/') {
        check_bytes(text)?;
        return Ok((url.authority.as_str().into(), text.into()));
    }
    let other = LabUrl::parse(text)?;
    if proxied {
        return Ok((other.authority.into(), other.path.into()));
    }
    if (&*other.host, other.port) != (&*url.host, url.port) || (text.contains("://") && other.scheme != url.scheme) {
        return Err(format!("{} is not the target, {}:{}", other.authority, url.host, url.port));
    }
    Ok((url.authority.as_str().into(), other.path.into()))
}

impl AskMethod {
    pub const fn name(self) -> &'static str {
        match self {
            AskMethod::Get => "GET",
            AskMethod::Head => "HEAD",
            AskMethod::Post => "POST",
        }
    }
}

/// A recipe that was checked.
pub(crate) struct Common {
    /// Of a Host field that was asked for; without one the URL's.
    host: Option<String>,
    fields: String,
    proxied: bool,
    body: Vec<u8>,
}

impl Common {
    pub(crate) fn new(recipe: &Recipe) -> Result<Common, CatalogueError> {
        let refuse = |what| CatalogueError { line: 0, what };
        let mut host = None;
        let mut text = String::new();
        let mut has_agent = false;
        for field in &recipe.fields {
            let (name, value) = field
                .split_once(':')
                .filter(|(name, _)| !name.is_empty() && name.bytes().all(is_token_byte))
                .ok_or_else(|| refuse(format!("`{field}` is no header field; write 'Name: value'")))?;
            let value = value.trim_matches([' ', '\t']);
            if value.bytes().any(|b| b.is_ascii_control() && b != b'\t') {
                return Err(refuse(format!("the field {name} holds a control byte")));
            }
            match name.to_ascii_lowercase().as_str() {
                "host" => host = Some(value.to_owned()),
                "content-length" | "transfer-encoding" => {
                    return Err(refuse(format!("{name} is said by us, when there is a body to send")));
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
        if recipe.method == AskMethod::Post {
            text.push_str(&format!("Content-Length: {}\r\n", recipe.body.len()));
        }
        if recipe.short {
            text.push_str("Connection: close\r\n");
        }
        Ok(Common { host, fields: text, proxied: recipe.proxied, body: recipe.body.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url() -> LabUrl {
        LabUrl::parse("http://a:81/x").unwrap()
    }

    #[test]
    fn requests_are_whole_before_the_run() {
        let fields = vec!["Accept: */*".to_owned(), "Host: b".to_owned()];
        let one = Catalogue::of_url(&url(), &Recipe { fields, short: true, ..Recipe::default() }).unwrap();
        let expect =
            "GET /x HTTP/1.1\r\nHost: b\r\nAccept: */*\r\nUser-Agent: larder-bench\r\nConnection: close\r\n\r\n";
        assert_eq!(std::str::from_utf8(one.request(0)).unwrap(), expect);
        let list = Catalogue::of_list(&url(), "# two\n/b\n\nhttp://a:81/c?d\r\n", &Recipe::default()).unwrap();
        assert_eq!((list.len(), list.path(0), list.path(1)), (2, "/b", "/c?d"));
        assert!(list.request(1).starts_with(b"GET /c?d HTTP/1.1\r\nHost: a:81\r\n"));
        assert!(list.request(0).ends_with(b"\r\n\r\n"));
    }

    #[test]
    fn a_field_is_replaced_in_every_request() {
        let fields = vec!["X-A: b".to_owned(), "X-C: d".to_owned()];
        let list = Catalogue::of_list(&url(), "/1\n/22", &Recipe { fields, ..Recipe::default() }).unwrap();
        let changed = list.with_field_replaced("X-A: b", "X-A: longer");
        assert_eq!((changed.len(), changed.path(0), changed.path(1)), (2, "/1", "/22"));
        let expect = "GET /22 HTTP/1.1\r\nHost: a:81\r\nX-A: longer\r\nX-C: d\r\nUser-Agent: larder-bench\r\n\r\n";
        assert_eq!(std::str::from_utf8(changed.request(1)).unwrap(), expect);
    }

    #[test]
    fn methods_bodies_and_proxies() {
        let head = Recipe { method: AskMethod::Head, ..Recipe::default() };
        let head = Catalogue::of_url(&url(), &head).unwrap();
        assert!(head.request(0).starts_with(b"HEAD /x HTTP/1.1\r\n"));
        let post = Recipe { method: AskMethod::Post, body: b"a=b".to_vec(), ..Recipe::default() };
        let post = Catalogue::of_list(&url(), "/1\n/2", &post).unwrap();
        assert!(post.request(1).starts_with(b"POST /2 HTTP/1.1\r\n"));
        assert!(post.request(0).ends_with(b"\r\nContent-Length: 3\r\n\r\na=b"));
        let proxied = Recipe { proxied: true, ..Recipe::default() };
        let proxied = Catalogue::of_list(&url(), "http://b/1\n/2", &proxied).unwrap();
        assert!(proxied.request(0).starts_with(b"GET http://b/1 HTTP/1.1\r\nHost: b\r\n"));
        assert!(proxied.request(1).starts_with(b"GET http://a:81/2 HTTP/1.1\r\nHost: a:81\r\n"));
        assert_eq!((proxied.path(0), proxied.path(1)), ("/1", "/2"));
    }

    fn check_refused(list: &str, field: Option<&str>, line: usize, part: &str) {
        let fields = field.into_iter().map(str::to_owned).collect();
        let error = Catalogue::of_list(&url(), list, &Recipe { fields, ..Recipe::default() }).unwrap_err();
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
        check_refused("/", Some("Content-Length: 5"), 0, "is said by us");
    }
}
