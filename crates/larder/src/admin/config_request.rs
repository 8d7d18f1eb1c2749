//! `GET /config`: the config that larder holds, without its secrets, and what its file says otherwise by now.
//!
//! Whether somebody may ask that is judged before, in `admin_request`.

use message::{Method, Request};
use serde_json::json;

use super::vcl_requests::{NotVcl, VclReply};
use crate::held_config::HeldConfig;

/// Does the request ask for it?
pub fn is_asked_by(request: &Request<'_>) -> Result<(), NotVcl> {
    match (request.path, request.method) {
        (b"/config", Method::Get | Method::Head) => Ok(()),
        (b"/config", _) => Err(NotVcl::Refused(405, "this path takes GET")),
        _ => Err(NotVcl::Elsewhere),
    }
}

pub fn act(held: &HeldConfig) -> VclReply {
    let (status, told) = match held.get() {
        None => (409, json!({ "error": "this larder has no config of its own" })),
        Some(read) => {
            let (changed, refused) = match (read.by_now)() {
                Ok(changed) => (changed, None),
                Err(why) => (Vec::new(), Some(why)),
            };
            let (file, read_ms) = (read.file.as_ref().map(|file| file.display().to_string()), read.wall_ms);
            let told = json!({ "config": read.text, "file": file, "read_ms": read_ms, "changed": changed, "refused": refused });
            (200, told)
        }
    };
    VclReply { status, body: format!("{told}\n") }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::held_config::{FileByNow, ReadConfig};

    fn told(by_now: fn() -> FileByNow) -> Value {
        let held = HeldConfig::default();
        let read =
            ReadConfig { text: "a = 1\n".to_owned(), file: Some("/x".into()), wall_ms: 7, by_now: Box::new(by_now) };
        held.hold(read);
        let reply = act(&held);
        assert_eq!(reply.status, 200);
        serde_json::from_str(&reply.body).unwrap()
    }

    #[test]
    fn what_holds_is_told_with_what_the_file_says_by_now() {
        let same = json!({ "config": "a = 1\n", "file": "/x", "read_ms": 7, "changed": [], "refused": null });
        assert_eq!(told(|| Ok(vec![])), same);
        assert_eq!(told(|| Ok(vec!["[limits]".to_owned()]))["changed"], json!(["[limits]"]));
        assert_eq!(told(|| Err("x:1:2".to_owned()))["refused"], json!("x:1:2"));
        assert_eq!(act(&HeldConfig::default()).status, 409);
    }
}
