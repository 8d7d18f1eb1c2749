//! Several items in one answer: a JSON object by key. What is not there is left out; a value that is no text is base64,
//! and of one in chunks it says how long it is.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use wire::memcached::Reply;

use crate::memcached_gateway::chunk_layout::Manifest;
use crate::memcached_gateway::gateway_call::ReceivedReply;
use crate::memcached_gateway::item_answer::ItemAnswer;
use crate::memcached_gateway::memcached_request::{MemcachedRequest, tag_of_cas};

/// The items in the order of their keys.
pub(crate) fn answer(
    wanted: &MemcachedRequest,
    names: &[Vec<u8>],
    items: &[ReceivedReply],
    has_chunks: bool,
) -> ItemAnswer {
    let mut out = b"{".to_vec();
    for ((key, name), got) in wanted.keys.iter().zip(names).zip(items) {
        let Reply::Item(item) = &got.reply else { continue };
        let stored = &got.bytes[item.value.clone()];
        let Some(begins) = key.unwrap(stored) else { continue };
        if out.len() > 1 {
            out.push(b',');
        }
        out.extend_from_slice(b"\n");
        put_text(&mut out, &String::from_utf8_lossy(name));
        out.extend_from_slice(format!(": {{\"flags\": {}", item.flags).as_bytes());
        if let Some(cas) = item.cas.filter(|&cas| cas != 0) {
            out.extend_from_slice(b", \"etag\": ");
            put_text(&mut out, &tag_of_cas(cas));
        }
        if let Some(ttl_s) = item.ttl_s.filter(|&ttl_s| ttl_s >= 0) {
            out.extend_from_slice(format!(", \"ttl\": {ttl_s}").as_bytes());
        }
        let manifest = if has_chunks { Manifest::read(&stored[begins..]) } else { None };
        if let Some(manifest) = manifest {
            out.extend_from_slice(format!(", \"chunked_bytes\": {}}}", manifest.value_bytes).as_bytes());
            continue;
        }
        match std::str::from_utf8(&stored[begins..]) {
            Ok(text) => {
                out.extend_from_slice(b", \"value\": ");
                put_text(&mut out, text);
            }
            Err(_) => {
                out.extend_from_slice(b", \"base64\": \"");
                out.extend_from_slice(BASE64.encode(&stored[begins..]).as_bytes());
                out.push(b'"');
            }
        }
        out.push(b'}');
    }
    out.extend_from_slice(b"\n}\n");
    ItemAnswer::text(200, b"application/json", out.into())
}

/// RFC 8259 §7.
fn put_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0..0x20 | 0x7f => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_inside_its_quotes() {
        let mut out = Vec::new();
        put_text(&mut out, "a\"b\\c\n\u{7f}\u{e9}");
        assert_eq!(String::from_utf8_lossy(&out), "\"a\\\"b\\\\c\\u000a\\u007f\u{e9}\"");
    }
}
