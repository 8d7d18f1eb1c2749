//! Laws of running VCL, for any bytes that are a program or become one between the lines below: whatever is accepted is
//! loaded or refused with a reason, every subroutine ends within its limits, and one that fails says why in the log.

use vcl::{Arena, Included, Loaded, LogKind, MapHost, Message, NoIncludes, NoWorld, Plain, VariableId};

/// Panics when a law is broken. Whether there was a program to run.
pub fn run(data: &[u8]) -> bool {
    let wrapped = [HEAD, data, b"\n}\n"].concat();
    program(data) | program(&wrapped)
}

const HEAD: &[u8] = b"vcl 4.1; import std; import cookie; import header; import str; import blob; import directors;\n\
    backend a { .host = \"127.0.0.1\"; } backend b { .host = \"127.0.0.1\"; }\n\
    acl near { \"10.0.0.0\"/8; ! \"10.0.0.1\"; }\n\
    sub vcl_init { new d = directors.round_robin(); d.add_backend(a); new h = directors.shard(); h.add_backend(b); }\n\
    sub vcl_recv {\n";

fn program(text: &[u8]) -> bool {
    let first = Included { name: "fuzz.vcl".to_owned(), bytes: text.to_vec() };
    let checked = vcl::check(first, &NoIncludes);
    let Some(program) = checked.program else { return false };
    let loaded = match Loaded::load(program, checked.sources, &NoWorld) {
        Ok(loaded) => loaded,
        Err(why) => {
            assert!(!why.is_empty());
            return false;
        }
    };
    macro_rules! run {
        ($($subroutine:ident)*) => {
            $({
                let arena = Arena::default();
                let host = host(&arena);
                let verdict = format!("{:?}", loaded.$subroutine(&host));
                ended(&host, &verdict);
            })*
        };
    }
    run!(recv pipe pass hash purge miss hit deliver synth backend_fetch backend_refresh backend_response backend_error);
    loaded.discard(&NoWorld);
    true
}

/// It ended; every failure is in the log.
fn ended(host: &MapHost<'_>, verdict: &str) {
    assert!(!verdict.starts_with("Fail") || !host.logged(LogKind::Error).is_empty(), "{verdict} is not in the log");
    assert!(host.statements.borrow().len() <= vcl::limits::STATEMENTS_MAX as usize);
}

fn host(arena: &Arena) -> MapHost<'_> {
    MapHost::new(arena, &NoWorld)
        .with_variable(VariableId::REQ_URL, Plain::Text(Some(b"/a/b.jpg?utm_source=x&b=1")))
        .with_variable(VariableId::REQ_METHOD, Plain::Text(Some(b"GET")))
        .with_variable(VariableId::REQ_PROTO, Plain::Text(Some(b"HTTP/1.1")))
        .with_variable(VariableId::BERESP_STATUS, Plain::Int(200))
        .with_variable(VariableId::RESP_STATUS, Plain::Int(200))
        .with_variable(VariableId::BERESP_TTL, Plain::Duration(120.0))
        .with_header(Message::Req, "Host", "A.example:8080")
        .with_header(Message::Req, "Cookie", "a=1; b=2; has_js=1")
        .with_header(Message::Req, "User-Agent", "Mozilla/5.0 (X11; Linux) aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!")
        .with_header(Message::Beresp, "Cache-Control", "max-age=60")
        .with_header(Message::Resp, "Via", "1.1 larder")
}
