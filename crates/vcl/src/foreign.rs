//! Spellings of other languages that look like VCL 4: Varnish 1 to 3, Fastly's dialect, templates, C.
//!
//! Nothing here is read as a program. It is recognised, so that the message names the way out and not only the place
//! at which reading failed.

use crate::codes::Code;
use crate::diagnostics::{Diagnostic, Reports};
use crate::source_files::{Sources, Span};

/// A file without `vcl 4.1;`: what it may be instead.
pub fn version_missing(report: Diagnostic, sources: &Sources, span: Span) -> Diagnostic {
    let bytes = &sources.file(span.file).bytes;
    let has = |word: &str| bytes.windows(word.len()).any(|window| window == word.as_bytes());
    if has("#FASTLY") || has("declare local") {
        let note = "the file is written for Fastly, whose language parted from VCL with Varnish 2.1";
        return Diagnostic { code: Code::FastlyVcl, ..report }.note(note);
    }
    if has("vcl_fetch") || has("req.request") || has("vcl_error") || has("obj.cacheable") {
        let note = "the file is written for Varnish 3 or older; `larder import` is meant for such files";
        return Diagnostic { code: Code::OldVcl, ..report }.note(note);
    }
    report
}

pub fn inline_c(span: Span) -> Diagnostic {
    Diagnostic::new(Code::InlineC, span, "inline C is not supported")
        .label("larder compiles no C")
        .way_out("look for a function of the built-in vmods that does it: std, header, str, blob, cookie, var")
}

pub fn old_attribute(span: Span) -> Diagnostic {
    Diagnostic::new(Code::OldVcl, span, "attributes are not `set`")
        .label("the spelling of Varnish 1")
        .way_out("write `.host = \"…\";` without `set` and `backend`")
}

pub fn if_function(span: Span) -> Diagnostic {
    Diagnostic::new(Code::FastlyVcl, span, "`if(…)` is no function in VCL")
        .label("Fastly's dialect")
        .way_out("use an `if` statement that sets a header on either side")
}

pub fn subfield(span: Span) -> Diagnostic {
    Diagnostic::new(Code::FastlyVcl, span, "`:` does not select a part of a header in VCL")
        .label("Fastly's dialect")
        .way_out("use `cookie.get(\"name\")` of vmod cookie, or `header.get(…)`")
}

/// Whether the word begins a definition of another language.
pub fn is_definition(word: &str) -> bool {
    old_definition(word).is_some()
}

fn old_definition(word: &str) -> Option<(Code, &'static str)> {
    match word {
        "director" => Some((Code::OldVcl, "create a director in vcl_init: `new d = directors.round_robin();`")),
        "table" => Some((Code::FastlyVcl, "there are no tables; use `if` and `elseif`, or vmod var")),
        "ratecounter" | "penaltybox" => Some((Code::FastlyVcl, "use `vsthrottle.is_denied(…)` of vmod vsthrottle")),
        "pragma" | "import_c" => Some((Code::FastlyVcl, "leave it away")),
        _ => None,
    }
}

/// An unknown word at the top level.
pub fn definition(word: &str, span: Span) -> Diagnostic {
    match old_definition(word) {
        Some((code, way_out)) => {
            Diagnostic::new(code, span, format!("there is no definition `{word}` in VCL 4")).way_out(way_out)
        }
        None => {
            const WORDS: [&str; 8] = ["sub", "acl", "backend", "probe", "import", "include", "vcl", "unused"];
            let folded = word.to_ascii_lowercase();
            Diagnostic::new(Code::Syntax, span, format!("no definition begins with `{word}`"))
                .label("expected sub, acl, backend, probe, import or include")
                .did_you_mean(crate::near_names::nearest(&folded, WORDS))
        }
    }
}

/// Whether the word is a statement of another language even when parentheses follow.
pub fn is_statement(word: &str) -> bool {
    old_statement(word).is_some()
}

fn old_statement(word: &str) -> Option<(Code, &'static str)> {
    Some(match word {
        "error" => {
            (Code::OldVcl, "write `return (synth(404, \"Not found\"));`, in backend subroutines `return (error(503));`")
        }
        "remove" => (Code::OldVcl, "write `unset` instead"),
        "purge" => (Code::OldVcl, "write `return (purge);` in vcl_recv"),
        "purge_url" | "purge_hash" | "ban_url" => (Code::OldVcl, "write `ban(\"req.url ~ \" + …);`"),
        "esi" => (Code::OldVcl, "write `set beresp.do_esi = true;` in vcl_backend_response"),
        "log" => (Code::OldVcl, "write `std.log(…);` after `import std;`"),
        "restart" => (Code::OldVcl, "write `return (restart);`"),
        "panic" => (Code::OldVcl, "write `return (fail(\"why\"));`"),
        "rollback" => (Code::OldVcl, "write `std.rollback(req);` after `import std;`"),
        "lookup" | "deliver" | "pass" | "fetch" | "hash" | "pipe" => {
            (Code::OldVcl, "actions are returned: `return (…);`")
        }
        "insert" | "prefetch" | "discard" => (Code::OldVcl, "there is nothing to write for it any more"),
        "declare" => (Code::FastlyVcl, "there are no local variables; use `var.set(…)` of vmod var"),
        "goto" | "switch" | "case" | "break" => (Code::FastlyVcl, "use `if`, `elseif` and subroutines"),
        "add" => (Code::FastlyVcl, "write `header.append(resp.http.Name, …);` of vmod header"),
        "synthetic-base64" => (Code::FastlyVcl, "write `synthetic(blob.transcode(decoding=BASE64, encoded=…));`"),
        _ => return None,
    })
}

/// An unknown first word of a statement.
pub fn statement(word: &str, span: Span, sources: &Sources) -> Diagnostic {
    if let Some((code, way_out)) = old_statement(word) {
        return Diagnostic::new(code, span, format!("there is no statement `{word}` in VCL 4"))
            .in_varnish(format!("Symbol not found: '{word}'"))
            .way_out(way_out);
    }
    const WORDS: [&str; 9] = ["set", "unset", "call", "return", "if", "new", "ban", "hash_data", "synthetic"];
    let written = sources.text(span);
    if matches!(word, "else" | "elseif" | "elsif" | "elif") {
        return Diagnostic::new(Code::Syntax, span, format!("`{written}` without an `if` before it"));
    }
    Diagnostic::new(Code::Syntax, span, format!("no statement begins with `{written}`"))
        .in_varnish(format!("Symbol not found: '{written}'"))
        .label("expected set, unset, call, return, if, or a function")
        .did_you_mean(crate::near_names::nearest(word, WORDS))
}

/// The VCL 4 spelling of a variable of another language.
pub fn variable(name: &str) -> Option<(Code, &'static str)> {
    let name = name.to_ascii_lowercase();
    let old = |way_out| Some((Code::OldVcl, way_out));
    let fastly = |way_out| Some((Code::FastlyVcl, way_out));
    match name.as_str() {
        "req.request" => old("it is called `req.method` now"),
        "bereq.request" => old("it is called `bereq.method` now"),
        "req.backend" => old("it is called `req.backend_hint` now"),
        "req.backend.healthy" | "backend.health" => old("write `std.healthy(req.backend_hint)` after `import std;`"),
        "beresp.response" => old("it is called `beresp.reason` now"),
        "resp.response" | "obj.response" => old("it is called `resp.reason` now"),
        "beresp.cacheable" | "obj.cacheable" => {
            old("write `set beresp.uncacheable = true;` for what is not to be stored")
        }
        "beresp.saintmode" | "req.saintmode" => old("use vmod saintmode"),
        "obj.lastuse" => old("there is no such thing now"),
        "server.port" => old("write `std.port(server.ip)` after `import std;`"),
        "client.port" => old("write `std.port(client.ip)` after `import std;`"),
        "req.hash" | "obj.hash" => old("call `hash_data(…);` in vcl_hash"),
        "beresp.grace_ttl" => old("it is called `beresp.grace`"),
        "obj.prefetch" => old("there is nothing to write for it any more"),
        _ if name.starts_with("client.geo") || name.starts_with("geoip.") => {
            fastly("look the address up before larder")
        }
        _ if name.starts_with("fastly.") || name.starts_with("fastly_info.") => {
            fastly("there is no such thing outside Fastly")
        }
        _ if name.starts_with("var.") => fastly("use `var.set(…)` and `var.get(…)` of vmod var"),
        _ if name.starts_with("tls.client.") || name.starts_with("quic.") => {
            fastly("use vmod proxy behind a TLS terminator")
        }
        _ if name.starts_with("req.url.") => fastly("take the part out with `regsub(req.url, …)`"),
        "beresp.stale_if_error" | "beresp.stale_while_revalidate" => fastly("set `beresp.grace`"),
        "req.digest" | "req.postbody" | "req.body" => fastly("use vmod bodyaccess"),
        _ => None,
    }
}

/// Why there is no built-in subroutine of this name.
pub fn subroutine(name: &str) -> Option<(Code, &'static str)> {
    Some(match name {
        "vcl_fetch" => (Code::OldVcl, "it is called `vcl_backend_response` now, and sees `bereq` and `beresp`"),
        "vcl_error" => (Code::OldVcl, "it is called `vcl_synth` now, and `vcl_backend_error` on the origin's side"),
        "vcl_timeout" | "vcl_discard" | "vcl_prefetch" => (Code::OldVcl, "there is no such subroutine any more"),
        "vcl_log" => (Code::FastlyVcl, "log with `std.log(…)` in vcl_deliver"),
        _ => return None,
    })
}

/// Marks of templates, by the text that stands in for what is to be filled in.
const PLACEHOLDERS: [&[u8]; 8] = [b"{{", b"{%", b"<%", b"${", b"<?", b"%{", b"@@", b"[["];

/// Whether the text holds a mark that is to be filled in.
pub fn has_placeholder(text: &[u8]) -> bool {
    PLACEHOLDERS.iter().any(|mark| text.windows(mark.len()).any(|window| window == *mark))
}

/// When a mistake stands in a line with a template's mark, the mark is the reason: says so, once a file.
pub fn templates(sources: &Sources, reports: &mut Reports) {
    let mut told: Vec<_> = reports.errors().filter(|e| e.code == Code::Template).map(|e| e.span.file).collect();
    let places: Vec<Span> = reports.errors().map(|e| e.span).collect();
    for span in places {
        let line = sources.line(span);
        if told.contains(&span.file) || !has_placeholder(sources.bytes(line)) {
            continue;
        }
        told.push(span.file);
        let report = Diagnostic::new(Code::Template, line, "this file is a template")
            .label("to be filled in by the program that the file belongs to")
            .way_out("check the file that the template makes: the mistakes in such lines come from the placeholders");
        reports.add(report);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_known() {
        let check = |text: &str, expect| assert_eq!(has_placeholder(text.as_bytes()), expect, "{text}");
        check(".host = \"{{ host }}\";", true);
        check("<%= @port %>", true);
        check("{%- if tls %}", true);
        check("/* {{ ips }} */", true);
        check("if (req.url ~ \"{\") {", false);
    }
}
