//! The requests of a catalogue as HTTP/2 has them, made from what HTTP/1 would send (RFC 9113 §8.3.1).
//!
//! Method and path come from the request line, `:authority` from the Host field, and a field that speaks of one connection
//! is left out. What is the same in all requests but their path is mostly the same in all, and is kept once.

use std::collections::HashMap;

use bytes::Bytes;
use http::header::{CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue};
use http::uri::{Authority, Parts, PathAndQuery, Scheme};
use http::{Method, Request, Uri};

use crate::catalogue::Catalogue;

#[derive(Debug)]
pub(crate) struct Http2Requests {
    scheme: Scheme,
    /// All paths, one behind another, and where each ends.
    paths: Bytes,
    path_ends: Vec<usize>,
    /// Which of the moulds each request has.
    mould_of: Vec<u32>,
    moulds: Vec<Mould>,
}

/// A request without its path.
#[derive(Debug)]
struct Mould {
    method: Method,
    authority: Authority,
    fields: HeaderMap,
    body: Bytes,
}

impl Http2Requests {
    /// Or which of them cannot be asked so.
    pub(crate) fn of(catalogue: &Catalogue, over_tls: bool) -> Result<Http2Requests, String> {
        let scheme = if over_tls { Scheme::HTTPS } else { Scheme::HTTP };
        let (mut paths, mut path_ends, mut mould_of, mut moulds) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut known: HashMap<(&[u8], &[u8]), u32> = HashMap::new();
        for index in 0..catalogue.len() {
            let (path, request) = (catalogue.path(index), catalogue.request(index));
            let refuse = |what: String| format!("{path}: cannot be asked over HTTP/2: {what}");
            PathAndQuery::try_from(path).map_err(|error| refuse(error.to_string()))?;
            let (method, rest) = request.split_at(request.iter().position(|&b| b == b' ').unwrap_or(0));
            let line_end = rest.iter().position(|&b| b == b'\n').map_or(rest.len(), |at| at + 1);
            let next = u32::try_from(moulds.len()).map_err(|_| refuse("too many heads that differ".to_owned()))?;
            let mould = *known.entry((method, &rest[line_end..])).or_insert(next);
            if mould == next {
                moulds.push(Mould::read(method, &rest[line_end..]).map_err(refuse)?);
            }
            paths.extend_from_slice(path.as_bytes());
            path_ends.push(paths.len());
            mould_of.push(mould);
        }
        Ok(Http2Requests { scheme, paths: paths.into(), path_ends, mould_of, moulds })
    }

    /// Head and body.
    pub(crate) fn make(&self, index: usize) -> (Request<()>, Bytes) {
        let mould = &self.moulds[self.mould_of[index] as usize];
        let from = if index == 0 { 0 } else { self.path_ends[index - 1] };
        let path = self.paths.slice(from..self.path_ends[index]);
        let mut parts = Parts::default();
        parts.scheme = Some(self.scheme.clone());
        parts.authority = Some(mould.authority.clone());
        parts.path_and_query = PathAndQuery::from_maybe_shared(path).ok();
        let mut request = Request::new(());
        *request.method_mut() = mould.method.clone();
        *request.uri_mut() = Uri::from_parts(parts).expect("all parts were read before the run");
        *request.headers_mut() = mould.fields.clone();
        (request, mould.body.clone())
    }
}

impl Mould {
    /// From the first field line on.
    fn read(method: &[u8], mut rest: &[u8]) -> Result<Mould, String> {
        let (mut authority, mut fields) = (None, HeaderMap::new());
        while let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") {
            let (line, behind) = (&rest[..end], &rest[end + 2..]);
            rest = behind;
            if line.is_empty() {
                break;
            }
            let colon = line.iter().position(|&b| b == b':').unwrap_or(line.len());
            let value = line.get(colon + 1..).unwrap_or_default().trim_ascii();
            let name = HeaderName::from_bytes(&line[..colon]).map_err(|error| error.to_string())?;
            match name {
                HOST => authority = Some(Authority::try_from(value).map_err(|error| error.to_string())?),
                CONNECTION => {}
                name => drop(fields.append(name, HeaderValue::from_bytes(value).map_err(|error| error.to_string())?)),
            }
        }
        Ok(Mould {
            method: Method::from_bytes(method).map_err(|error| error.to_string())?,
            authority: authority.ok_or("it names no host")?,
            fields,
            body: Bytes::copy_from_slice(rest),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{AskMethod, Recipe};
    use crate::lab_url::LabUrl;

    fn requests(list: &str, recipe: &Recipe) -> Result<Http2Requests, String> {
        let url = LabUrl::parse("https://a:81/").unwrap();
        Http2Requests::of(&Catalogue::of_list(&url, list, recipe).unwrap(), true)
    }

    #[test]
    fn a_request_is_the_one_of_http_1_without_its_connection() {
        let fields = ["X-A: b".to_owned(), "Host: other".to_owned()].to_vec();
        let recipe =
            Recipe { fields, short: true, method: AskMethod::Post, body: b"a=b".to_vec(), ..Recipe::default() };
        let requests = requests("/x?y=1\n/z\n", &recipe).unwrap();
        let (request, body) = requests.make(0);
        assert_eq!((request.method(), &*request.uri().to_string()), (&Method::POST, "https://other/x?y=1"));
        let fields: Vec<_> = request.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        let agent = ("user-agent", &b"larder-bench"[..]);
        assert_eq!(fields, [("x-a", &b"b"[..]), agent, ("content-length", b"3")]);
        assert_eq!(&*body, b"a=b");
        assert_eq!(requests.make(1).0.uri().path(), "/z");
        assert_eq!(requests.moulds.len(), 1, "they differ in nothing but their paths");
    }

    #[test]
    fn what_http_2_has_no_form_for_is_refused_by_name() {
        assert!(
            requests("/a\n/b<c\n", &Recipe::default()).unwrap_err().starts_with("/b<c: cannot be asked over HTTP/2")
        );
    }
}
