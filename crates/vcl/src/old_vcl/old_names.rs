//! What variables of old are called now, which depends on the subroutine: one that ran between the two sides runs on
//! one of them today.

use crate::subroutines::{Method, MethodSet};
use crate::variables::{self, Found};

/// What is done with a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read,
    Set,
    Unset,
}

/// What becomes of a variable.
#[derive(Clone, Debug, PartialEq)]
pub enum Renamed {
    /// The present text, which may be the old one.
    To(String),
    /// A function of vmod std does it.
    Std(String),
    /// There is nothing that means this here.
    Gone { why: String, way_out: Option<&'static str> },
}

/// Messages and the like, whose names are translated; all others are the program's own.
pub fn is_variable(first: &str) -> bool {
    const FIRST: [&str; 8] = ["req", "bereq", "beresp", "obj", "resp", "client", "server", "backend"];
    FIRST.contains(&first.to_ascii_lowercase().as_str())
}

pub fn is_backend_side(method: Method) -> bool {
    MethodSet::BACKEND.has(method)
}

/// The present name of a variable of so many parts in a subroutine.
pub fn renamed(parts: &[String], method: Method, access: Access) -> Renamed {
    let lower: Vec<String> = parts.iter().map(|part| part.to_ascii_lowercase()).collect();
    let old = lower.join(".");
    if let Some(special) = special(&old, method, access) {
        return special;
    }
    let mut now = parts.to_vec();
    now[0] = message(&lower, method).to_owned();
    if now.len() == 2 {
        now[1] = property(&now[0], &lower[1]).unwrap_or(&parts[1]).to_owned();
    }
    let is_same = now.iter().zip(&lower).all(|(now, old)| now.eq_ignore_ascii_case(old));
    match unavailable(&now, method, access) {
        Some(why) => Renamed::Gone { why, way_out: way_out(&old) },
        None => Renamed::To(if is_same { parts.join(".") } else { now.join(".") }),
    }
}

/// What is no variable any more.
fn special(old: &str, method: Method, access: Access) -> Option<Renamed> {
    let backend = if is_backend_side(method) { "bereq.backend" } else { "req.backend_hint" };
    let reads = access == Access::Read;
    Some(match old {
        "req.backend.healthy" | "req.backend.health" | "backend.health" | "backend.healthy" if reads => {
            Renamed::Std(format!("std.healthy({backend})"))
        }
        "client.port" if reads => Renamed::Std("std.port(client.ip)".to_owned()),
        "server.port" if reads => Renamed::Std("std.port(server.ip)".to_owned()),
        "obj.cacheable" | "beresp.cacheable" if reads && is_backend_side(method) => {
            Renamed::To("(beresp.ttl > 0s)".to_owned())
        }
        // What is not cacheable is passed before vcl_hit.
        "obj.cacheable" if reads && method == Method::Hit => Renamed::To("true".to_owned()),
        _ => return None,
    })
}

/// The message that was meant.
fn message(lower: &[String], method: Method) -> &str {
    let property = lower.get(1).map_or("", String::as_str);
    match (lower[0].as_str(), method) {
        ("req", method) if is_backend_side(method) => "bereq",
        ("obj", method) if is_backend_side(method) => "beresp",
        // What these change in the request is what is sent: the origin's request is made after them.
        ("bereq", Method::Miss | Method::Pass) => "req",
        ("obj", Method::Synth) => "resp",
        ("obj", Method::Deliver) if matches!(property, "http" | "status" | "response" | "proto") => "resp",
        (message, _) => message,
    }
}

fn property(message: &str, property: &str) -> Option<&'static str> {
    Some(match (message, property) {
        ("req" | "bereq", "request") => "method",
        ("req", "backend") => "backend_hint",
        ("bereq", "restarts") => "retries",
        ("beresp" | "resp" | "obj", "response") => "reason",
        _ => return None,
    })
}

/// Why the variable cannot be used so here.
fn unavailable(now: &[String], method: Method, access: Access) -> Option<String> {
    let name = now.join(".");
    let parts: Vec<&str> = now.iter().map(String::as_str).collect();
    let row = match variables::find(&parts, 41) {
        Some(Found::Variable(row) | Found::Header(row, _) | Found::Storage(row, _)) => row.get(),
        None => return Some(format!("there is no `{name}` now")),
    };
    let (places, verb) = match access {
        Access::Read => (row.readable, "read"),
        Access::Set => (row.writable, "set"),
        Access::Unset => (row.unsettable, "unset"),
    };
    if places.has(method) {
        return None;
    }
    let where_else = if places.is_empty() { String::new() } else { format!(", only in {}", places.show()) };
    Some(format!("`{name}` cannot be {verb} in {}{where_else}", method.name()))
}

fn way_out(old: &str) -> Option<&'static str> {
    Some(match old {
        "beresp.saintmode" | "req.saintmode" | "obj.saintmode" => {
            "make an object of vmod saintmode for each backend, and call `saintmode.blacklist(…)`"
        }
        "req.esi" => "set `resp.do_esi` in vcl_deliver",
        "bereq.connect_timeout" | "bereq.first_byte_timeout" | "bereq.between_bytes_timeout" => {
            "set it in vcl_backend_fetch"
        }
        "obj.ttl" | "obj.grace" => "set `beresp.ttl` and `beresp.grace` in vcl_backend_response, or purge.soft(…) here",
        "req.grace" => "set `beresp.grace` here, and `req.grace` in vcl_recv",
        "obj.cacheable" | "beresp.cacheable" => "look at `obj.uncacheable` in vcl_deliver",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_depend_on_the_subroutine() {
        let check = |old: &str, method: &str, access, expect: &str| {
            let parts: Vec<String> = old.split('.').map(str::to_owned).collect();
            let shown = match renamed(&parts, Method::by_name(method).unwrap(), access) {
                Renamed::To(now) | Renamed::Std(now) => now,
                Renamed::Gone { why, .. } => format!("- {why}"),
            };
            assert_eq!(shown, expect, "{old} in {method}");
        };
        check("req.request", "vcl_recv", Access::Read, "req.method");
        check("Req.Http.X-Y", "vcl_recv", Access::Set, "Req.Http.X-Y");
        check("req.http.X-Y", "vcl_backend_response", Access::Read, "bereq.http.X-Y");
        check("req.request", "vcl_backend_error", Access::Read, "bereq.method");
        check("req.backend", "vcl_recv", Access::Set, "req.backend_hint");
        check("req.backend", "vcl_backend_response", Access::Read, "bereq.backend");
        check("req.backend.healthy", "vcl_recv", Access::Read, "std.healthy(req.backend_hint)");
        check("req.restarts", "vcl_backend_response", Access::Read, "bereq.retries");
        check("obj.ttl", "vcl_backend_response", Access::Set, "beresp.ttl");
        check("obj.response", "vcl_synth", Access::Read, "resp.reason");
        check("obj.http.Location", "vcl_synth", Access::Set, "resp.http.Location");
        check("obj.hits", "vcl_deliver", Access::Read, "obj.hits");
        check("obj.http.X", "vcl_deliver", Access::Read, "resp.http.X");
        check("bereq.http.X", "vcl_miss", Access::Unset, "req.http.X");
        check("bereq.http.X", "vcl_pipe", Access::Set, "bereq.http.X");
        check("beresp.response", "vcl_backend_response", Access::Read, "beresp.reason");
        check("obj.cacheable", "vcl_backend_response", Access::Read, "(beresp.ttl > 0s)");
        check("req.grace", "vcl_recv", Access::Set, "req.grace");
        check("obj.lastuse", "vcl_hit", Access::Read, "- there is no `obj.lastuse` now");
        check("req.esi_level", "vcl_backend_response", Access::Read, "- there is no `bereq.esi_level` now");
        check("obj.http.X", "vcl_hit", Access::Set, "- `obj.http.X` cannot be set in vcl_hit");
        check(
            "beresp.http.X",
            "vcl_deliver",
            Access::Read,
            "- `beresp.http.X` cannot be read in vcl_deliver, only in vcl_backend_refresh, vcl_backend_response, vcl_backend_error",
        );
    }
}
