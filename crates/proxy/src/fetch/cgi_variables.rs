//! A request to a script: the variables of CGI (RFC 3875 §4.1), those that PHP's applications know from other servers, and the request's
//! fields as variables.
//!
//! To a script we are the server and no proxy: who asks, by what and for which host is told by variables, and not once more by fields that a
//! proxy adds. Each variable is said once, for which of two counts is every application's own decision.

use std::net::IpAddr;

use bytes::Bytes;
use message::{DIGITS_MAX, FieldName, Fields, FieldsView, Scheme, decimal, write_address};
use wire::RequestBody;
use wire::fastcgi::{RECORD_CONTENT_BYTES_MAX, RequestWriter, STDIN_END, stdin_head};

use crate::fetch::origin_request::OriginRequest;
use crate::limits::HEAD_BYTES_USUAL;
use crate::settings::{FastCgiKeepAlive, FastCgiSettings};
use crate::static_files::script_path::ScriptPath;

/// Room for what a fetch asks for besides what the client sent: its conditions, and what we can do.
const ADDED_LINES: usize = 4;
const ADDED_BYTES: usize = 192;
/// An address as text.
const ADDRESS_BYTES_USUAL: usize = 40;

/// Which script is asked, and where it lies.
pub(super) struct ScriptCall<'a> {
    pub(super) settings: &'a FastCgiSettings,
    pub(super) script: &'a ScriptPath,
    /// Without a slash at its end.
    pub(super) document_root: &'a str,
    pub(super) server_address: Option<IpAddr>,
}

/// The variables of a request, of which the operator may have said some.
struct Variables<'a> {
    writer: RequestWriter<'a>,
    params: &'a [(String, String)],
}

impl Variables<'_> {
    fn set(&mut self, name: &str, value: &[&[u8]]) {
        if !self.params.iter().any(|(said, _)| said == name) {
            self.writer.variable(name.as_bytes(), value.iter().copied());
        }
    }

    fn set_number(&mut self, name: &str, number: u64) {
        self.set(name, &[decimal(&mut [0; DIGITS_MAX], number)]);
    }

    fn set_address(&mut self, name: &str, address: IpAddr) {
        let mut text = Vec::with_capacity(ADDRESS_BYTES_USUAL);
        write_address(&mut text, address);
        self.set(name, &[&text]);
    }
}

impl OriginRequest<'_> {
    /// The records of the request, and the body behind them if that is here already.
    pub(super) fn to_records(&self, call: &ScriptCall<'_>) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEAD_BYTES_USUAL);
        let params = &call.settings.params;
        let keeps = call.settings.keep_alive != FastCgiKeepAlive::Never;
        let mut variables = Variables { writer: RequestWriter::begin(&mut out, keeps), params };
        self.set_script(call, &mut variables);
        self.set_request(&mut variables);
        self.set_ends(call, &mut variables);
        self.set_fields(&mut variables);
        for (name, value) in params {
            variables.writer.variable(name.as_bytes(), [value.as_bytes()].into_iter());
        }
        variables.writer.end();
        if let Some(carried) = self.carried {
            write_body(carried, &mut out);
        }
        if !self.body.follows() {
            out.extend_from_slice(&STDIN_END);
        }
        out
    }

    fn set_script(&self, call: &ScriptCall<'_>, variables: &mut Variables<'_>) {
        let (root, script) = (call.document_root.as_bytes(), call.script);
        let (name, info) = (&script.relative[..], &script.path_info[..]);
        variables.set("SCRIPT_FILENAME", &[root, b"/", name]);
        variables.set("SCRIPT_NAME", &[b"/", name]);
        variables.set("DOCUMENT_URI", &[b"/", name]);
        variables.set("DOCUMENT_ROOT", &[root]);
        if !info.is_empty() {
            variables.set("PATH_INFO", &[info]);
            variables.set("PATH_TRANSLATED", &[root, info]);
        }
    }

    fn set_request(&self, variables: &mut Variables<'_>) {
        let request = &self.request;
        variables.set("GATEWAY_INTERFACE", &[b"CGI/1.1"]);
        variables.set("REQUEST_METHOD", &[request.method_text]);
        match request.query {
            Some(query) => variables.set("REQUEST_URI", &[request.path, b"?", query]),
            None => variables.set("REQUEST_URI", &[request.path]),
        }
        variables.set("QUERY_STRING", &[request.query.unwrap_or_default()]);
        variables.set("CONTENT_TYPE", &[request.fields.get(FieldName::ContentType).unwrap_or_default()]);
        match (self.body, self.carried) {
            (RequestBody::Length(length), _) => variables.set_number("CONTENT_LENGTH", length),
            (_, Some(carried)) => variables.set_number("CONTENT_LENGTH", carried.len() as u64),
            (RequestBody::None | RequestBody::Chunked, None) => variables.set("CONTENT_LENGTH", &[]),
        }
        // What is fetched for many is fetched as HTTP/1.1, whoever asked first.
        variables.set("SERVER_PROTOCOL", &[b"HTTP/1.1"]);
        variables.set("REQUEST_SCHEME", &[request.scheme.text().as_bytes()]);
        if request.scheme == Scheme::Https {
            variables.set("HTTPS", &[b"on"]);
        }
        // PHP as CGI wants to be told that it was not called directly.
        variables.set("REDIRECT_STATUS", &[b"200"]);
    }

    /// Who asks, and whom. Name and port are those that the client says, for keys hold them: what a page says of its own address is stored
    /// for nobody else.
    fn set_ends(&self, call: &ScriptCall<'_>, variables: &mut Variables<'_>) {
        let request = &self.request;
        variables.set("SERVER_SOFTWARE", &[self.server_name.as_bytes()]);
        variables.set("SERVER_NAME", &[&request.authority.host]);
        let port = request.authority.port.unwrap_or(request.scheme.default_port());
        variables.set_number("SERVER_PORT", u64::from(port));
        if let Some(address) = call.server_address {
            variables.set_address("SERVER_ADDR", address);
        }
        // Something stale is refreshed for nobody, and nobody is let in where some are: least of all as this machine.
        let ip = self.client.map_or(std::net::Ipv4Addr::UNSPECIFIED.into(), |client| client.ip);
        variables.set_address("REMOTE_ADDR", ip);
        let port = self.client.filter(|client| client.peer.ip() == client.ip).map_or(0, |client| client.peer.port);
        variables.set_number("REMOTE_PORT", u64::from(port));
    }

    fn set_fields(&self, variables: &mut Variables<'_>) {
        let (sent, host) = (self.request.fields, &self.request.authority.host);
        let mut fields = Fields::with_room(sent.count() + ADDED_LINES, sent.lines_bytes() + host.len() + ADDED_BYTES);
        self.write_server_fields(&mut fields);
        let fields = fields.view();
        for (nth, field) in fields.iter().enumerate() {
            let is_same = |name: &[u8]| name.eq_ignore_ascii_case(field.name_text);
            if fields.iter().take(nth).any(|earlier| is_same(earlier.name_text))
                || is_param(variables.params, field.name_text)
            {
                continue;
            }
            variables.writer.field(field.name_text, joined(fields, field.name_text, field.name));
        }
    }
}

/// Has the operator said what this field's variable is?
fn is_param(params: &[(String, String)], name: &[u8]) -> bool {
    params.iter().any(|(param, _)| {
        param.strip_prefix("HTTP_").is_some_and(|rest| {
            let same = |(said, name): (u8, &u8)| said == if *name == b'-' { b'_' } else { name.to_ascii_uppercase() };
            rest.len() == name.len() && rest.bytes().zip(name).all(same)
        })
    })
}

/// All values of a field as one (RFC 9110 §5.3, RFC 6265 §5.4).
fn joined<'a>(fields: FieldsView<'a>, name: &'a [u8], known: FieldName) -> impl Iterator<Item = &'a [u8]> {
    let between: &[u8] = if known == FieldName::Cookie { b"; " } else { b", " };
    let values = fields.get_all_named(name).enumerate();
    values.flat_map(move |(nth, value)| [if nth == 0 { b"" } else { between }, value])
}

fn write_body(body: &Bytes, out: &mut Vec<u8>) {
    for piece in body.chunks(RECORD_CONTENT_BYTES_MAX) {
        out.extend_from_slice(&stdin_head(piece.len()));
        out.extend_from_slice(piece);
    }
}

#[cfg(test)]
#[path = "cgi_variables_tests.rs"]
mod tests;
