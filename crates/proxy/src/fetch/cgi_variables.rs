//! A request to a script: the variables of CGI (RFC 3875 §4.1), those that PHP's applications know from other servers, and the request's
//! fields as variables.
//!
//! To a script we are the server and no proxy: who asks, by what and for which host is told by variables, and not once more by fields that a
//! proxy adds. Each variable is said once, for which of two counts is every application's own decision.

use std::net::IpAddr;

use bytes::Bytes;
use message::{FieldName, Fields, FieldsView, Scheme};
use wire::RequestBody;
use wire::fastcgi::{RECORD_CONTENT_BYTES_MAX, RequestWriter, STDIN_END, stdin_head};

use crate::fetch::origin_request::OriginRequest;
use crate::limits::HEAD_BYTES_USUAL;
use crate::settings::FastCgiSettings;
use crate::static_files::script_path::ScriptPath;

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
            self.writer.variable(name.as_bytes(), value);
        }
    }

    fn set_number(&mut self, name: &str, number: u64) {
        self.set(name, &[number.to_string().as_bytes()]);
    }
}

impl OriginRequest<'_> {
    /// The records of the request, and the body behind them if that is here already.
    pub(super) fn to_records(&self, call: &ScriptCall<'_>) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEAD_BYTES_USUAL);
        let params = &call.settings.params;
        let mut variables = Variables { writer: RequestWriter::begin(&mut out, call.settings.keep_alive), params };
        self.set_script(call, &mut variables);
        self.set_request(&mut variables);
        self.set_ends(call, &mut variables);
        self.set_fields(&mut variables);
        params.iter().for_each(|(name, value)| variables.writer.variable(name.as_bytes(), &[value.as_bytes()]));
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
        let mut target = Vec::new();
        request.write_target(&mut target);
        variables.set("GATEWAY_INTERFACE", &[b"CGI/1.1"]);
        variables.set("REQUEST_METHOD", &[request.method_text]);
        variables.set("REQUEST_URI", &[&target]);
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
        let text = |ip: IpAddr| ip.to_string();
        variables.set("SERVER_SOFTWARE", &[self.server_name.as_bytes()]);
        variables.set("SERVER_NAME", &[&request.authority.host]);
        let port = request.authority.port.unwrap_or(request.scheme.default_port());
        variables.set_number("SERVER_PORT", u64::from(port));
        if let Some(address) = call.server_address {
            variables.set("SERVER_ADDR", &[text(address).as_bytes()]);
        }
        // Something stale is refreshed for nobody, and nobody is let in where some are: least of all as this machine.
        let ip = self.client.map_or(std::net::Ipv4Addr::UNSPECIFIED.into(), |client| client.ip);
        variables.set("REMOTE_ADDR", &[text(ip).as_bytes()]);
        let port = self.client.filter(|client| client.peer.ip() == client.ip).map_or(0, |client| client.peer.port);
        variables.set_number("REMOTE_PORT", u64::from(port));
    }

    fn set_fields(&self, variables: &mut Variables<'_>) {
        let mut fields = Fields::default();
        self.write_server_fields(&mut fields);
        let fields = fields.view();
        for (nth, field) in fields.iter().enumerate() {
            let is_same = |name: &[u8]| name.eq_ignore_ascii_case(field.name_text);
            if fields.iter().take(nth).any(|earlier| is_same(earlier.name_text))
                || is_param(variables.params, field.name_text)
            {
                continue;
            }
            let value = joined(fields, field.name_text, field.name);
            variables.writer.field(field.name_text, &value);
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
fn joined<'a>(fields: FieldsView<'a>, name: &[u8], known: FieldName) -> Vec<&'a [u8]> {
    let between: &[u8] = if known == FieldName::Cookie { b"; " } else { b", " };
    let mut parts = Vec::with_capacity(1);
    for value in fields.get_all_named(name) {
        if !parts.is_empty() {
            parts.push(between);
        }
        parts.push(value);
    }
    parts
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
