//! What is done about VCLs on all nodes of a fleet at once: loads, uses, labels and discards, as they stand in the log. A JSON object with the
//! word `vcl`. A node that cannot do it keeps what it has, and says so.

use parking_lot::Mutex;
use proxy::Proxy;
use serde_json::{Value, json};

use std::path::PathBuf;

use super::told_order::{bytes, letters};
use super::vcl_requests::{VclReply, VclRequest};

/// What every such order has, and no other.
const VCL: &str = "vcl";

/// As it stands in the log; `None`: it is each node's own affair.
pub fn text_of(request: &VclRequest, text: &[u8]) -> Option<String> {
    let order = match request {
        VclRequest::Load { name, from } => json!({ VCL: "load", "name": name, "from": from, "text": letters(text) }),
        VclRequest::Use { name } => json!({ VCL: "use", "name": name }),
        VclRequest::Discard { name } => json!({ VCL: "discard", "name": name }),
        VclRequest::Label { label, name } => json!({ VCL: "label", "label": label, "name": name }),
        _ => return None,
    };
    Some(order.to_string())
}

/// `None`: it is another order. The error is a sentence.
pub fn of_text(text: &str) -> Option<Result<(VclRequest, Vec<u8>), String>> {
    let Ok(order @ Value::Object(_)) = serde_json::from_str(text) else { return None };
    let kind = order.get(VCL)?.as_str().unwrap_or_default();
    let word = |key: &str| order[key].as_str().map(str::to_owned);
    let asked = || {
        let name = word("name")?;
        Some(match kind {
            "load" => (VclRequest::Load { name, from: word("from") }, bytes(&order["text"])?),
            "use" => (VclRequest::Use { name }, Vec::new()),
            "discard" => (VclRequest::Discard { name }, Vec::new()),
            "label" => (VclRequest::Label { label: word("label")?, name }, Vec::new()),
            _ => return None,
        })
    };
    Some(asked().ok_or_else(|| format!("what is ordered of VCLs by `{kind}` is not known to this version")))
}

/// What this node makes of such orders.
pub struct VclOrders {
    /// Where what a VCL includes is looked for. `None`: they are not taken.
    pub vcl_path: Option<Vec<PathBuf>>,
    /// Why the last one could not be carried out here.
    pub complaint: Mutex<String>,
}

impl VclOrders {
    /// The reply, as text. Whatever comes of it, the order was understood.
    pub fn carry_out(&self, proxy: &Proxy, (request, text): (VclRequest, Vec<u8>)) -> String {
        let what = match &request {
            VclRequest::Load { name, .. } => format!("VCL {name} is not loaded"),
            VclRequest::Use { name } => format!("VCL {name} is not used"),
            VclRequest::Discard { name } => format!("VCL {name} is not discarded"),
            VclRequest::Label { label, .. } => format!("label {label} is not set"),
            _ => String::new(),
        };
        let reply = match &self.vcl_path {
            Some(vcl_path) => request.act(proxy, vcl_path, text),
            None => VclReply { status: 403, body: json!({ "error": NOT_TAKEN }).to_string() },
        };
        *self.complaint.lock() = match reply.status {
            200 => String::new(),
            _ => format!("{what}: {}", first_line(&reply.body)),
        };
        json!({ "status": reply.status, "body": reply.body }).to_string()
    }
}

const NOT_TAKEN: &str = "this node takes no VCL from the log: [fleet] vcl";

/// The reply that a node's own carrying out came to.
pub fn reply_of(told: &str) -> Option<VclReply> {
    let told: Value = serde_json::from_str(told).ok()?;
    let status = told["status"].as_u64()?.try_into().ok()?;
    Some(VclReply { status, body: told["body"].as_str()?.to_owned() })
}

fn first_line(body: &str) -> String {
    let told: Value = serde_json::from_str(body).unwrap_or_default();
    told["error"]
        .as_str()
        .and_then(|error| error.lines().find(|line| !line.trim().is_empty()))
        .unwrap_or_default()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ordered_comes_back_as_it_was() {
        let (name, label) = (|| "shop".to_owned(), || "live".to_owned());
        let text = b"vcl 4.1; # caf\xe9\n".to_vec();
        for (request, text) in [
            (VclRequest::Load { name: name(), from: Some("/etc/shop.vcl".to_owned()) }, text.clone()),
            (VclRequest::Load { name: name(), from: None }, text),
            (VclRequest::Use { name: name() }, Vec::new()),
            (VclRequest::Discard { name: name() }, Vec::new()),
            (VclRequest::Label { label: label(), name: name() }, Vec::new()),
        ] {
            let order = text_of(&request, &text).expect("it is for all");
            assert_eq!(of_text(&order), Some(Ok((request, text))));
        }
        assert_eq!(text_of(&VclRequest::Bans, b""), None);
    }

    #[test]
    fn what_is_no_such_order_is_left_to_others_and_what_is_not_known_is_said() {
        for text in [r#"{"url": "http://a.test/"}"#, r#"{"told": "ban", "ban": "a"}"#, "{", ""] {
            assert_eq!(of_text(text), None, "{text}");
        }
        for text in [
            r#"{"vcl": "dream", "name": "a"}"#,
            r#"{"vcl": "load", "name": "a"}"#,
            r#"{"vcl": "use"}"#,
            r#"{"vcl": 1}"#,
        ] {
            assert!(of_text(text).expect("it is of VCLs").is_err(), "{text}");
        }
    }
}
