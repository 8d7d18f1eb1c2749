//! What may be asked of the admin address about origins: which request asks what, what is done, and the answer as JSON.
//!
//! Whether somebody may change anything is judged before, in `admin_request`.

use message::{Method, Request};
use proxy::origin::{AddressChange, AddressOrder, UnknownOrigin, WeightOrder};
use proxy::{OriginStatus, Proxy};
use serde_json::{Value, json};

use super::history::AnnotationKind;
use super::vcl_requests::{NotVcl, VclReply, probe_json, query_value};
use crate::limits::ORIGIN_WEIGHT_MAX;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OriginRequest {
    /// `GET /origins`
    List,
    /// `POST /origins/NAME[?address=ADDRESS][&set=auto|up|down|drain][&weight=N|auto]`; without an address, all of them.
    Change { origin: String, address: Option<String>, change: AddressChange },
}

impl OriginRequest {
    pub fn of(request: &Request<'_>) -> Result<OriginRequest, NotVcl> {
        use NotVcl::{Elsewhere, Refused};
        let path = std::str::from_utf8(request.path).map_err(|_| Elsewhere)?;
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        match segments[..] {
            ["origins"] if matches!(request.method, Method::Get | Method::Head) => Ok(OriginRequest::List),
            ["origins"] => Err(Refused(405, "this path takes GET")),
            ["origins", origin] if request.method == Method::Post => {
                let address = query_value(request.query, "address");
                Ok(OriginRequest::Change { origin: origin.into(), address, change: change(request.query)? })
            }
            ["origins", _] => Err(Refused(405, "this path takes POST")),
            _ => Err(Elsewhere),
        }
    }

    /// Anybody who reaches the address may look.
    pub fn changes(&self) -> bool {
        !matches!(self, OriginRequest::List)
    }

    /// What the history says of it once it is done.
    pub fn annotation(&self) -> Option<(AnnotationKind, String)> {
        let OriginRequest::Change { origin, address, change } = self else { return None };
        let order = change.order.map(|order| order.word().to_owned());
        let weight = change.weight.map(|weight| match weight {
            WeightOrder::Auto => "weight auto".to_owned(),
            WeightOrder::Set(weight) => format!("weight {weight}"),
        });
        let words: Vec<String> = order.into_iter().chain(weight).collect();
        let whom = address.iter().fold(origin.clone(), |whom, address| format!("{whom} {address}"));
        Some((AnnotationKind::Order, format!("{whom}: {}", words.join(", "))))
    }

    pub fn act(self, proxy: &Proxy) -> VclReply {
        let done = match self {
            OriginRequest::List => Ok(()),
            OriginRequest::Change { origin, address, change } => {
                proxy.order_origin(&origin, address.as_deref(), change)
            }
        };
        match done {
            Ok(()) => {
                let origins: Vec<Value> = proxy.origins_status().iter().map(origin_json).collect();
                VclReply { status: 200, body: format!("{}\n", json!({ "origins": origins })) }
            }
            Err(UnknownOrigin(why)) => VclReply { status: 404, body: format!("{}\n", json!({ "error": why })) },
        }
    }
}

fn change(query: Option<&[u8]>) -> Result<AddressChange, NotVcl> {
    const FORM: &str = "write ?set=auto, up, down or drain, ?weight=N or auto, or both; and &address=ADDRESS for one";
    let order = |word: String| AddressOrder::WORDS.iter().find(|(known, _)| *known == word).map(|(_, order)| *order);
    let weight = |word: String| match word.as_str() {
        "auto" => Some(WeightOrder::Auto),
        number => number.parse().ok().filter(|weight| *weight <= ORIGIN_WEIGHT_MAX).map(WeightOrder::Set),
    };
    let refused = NotVcl::Refused(400, FORM);
    let order = query_value(query, "set").map(|word| order(word).ok_or(refused)).transpose()?;
    let weight = query_value(query, "weight").map(|word| weight(word).ok_or(refused)).transpose()?;
    let change = AddressChange { order, weight };
    if change == AddressChange::default() { Err(refused) } else { Ok(change) }
}

/// An origin, for `/origins` and `/status`.
pub fn origin_json(origin: &OriginStatus) -> Value {
    use proxy::origin::{AddressState, OriginFault};
    let addresses = origin.addresses.iter().map(|address| {
        let back_in_ms = match address.state {
            AddressState::Ejected { for_ms } => Some(for_ms),
            _ => None,
        };
        json!({
            "address": &*address.label,
            "state": address.state.word(),
            "back_in_ms": back_in_ms,
            "ordered": address.ordered.word(),
            "weight": address.share.weight,
            "weight_ordered": address.weight_is_ordered,
            "backup": address.share.is_backup,
            "share_percent": f64::from(address.permille) / 10.0,
            "probe": address.probe.as_ref().map(probe_json),
            "in_use": address.in_use,
            "idle": address.idle,
            "http2_connections": address.http2_connections,
            "failures": address.failures,
        })
    });
    let faults = OriginFault::ALL.iter().zip(&origin.faults);
    let faults: serde_json::Map<_, _> = faults.map(|((word, _), count)| ((*word).to_owned(), json!(count))).collect();
    json!({
        "name": &*origin.name,
        "balance": origin.balance,
        "connections": origin.connections,
        "max_connections": origin.connections_max,
        "queued": origin.queued,
        "errors": origin.errors(),
        "errors_by_kind": faults,
        "addresses": addresses.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use message::Scheme;
    use wire::limits::HeadLimits;
    use wire::read_request;

    use super::*;

    fn asked(line: &str) -> Result<OriginRequest, NotVcl> {
        let head = format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n");
        let mut spans = Vec::new();
        let received = read_request(head.as_bytes(), &mut spans, &HeadLimits::REQUEST, Scheme::Http).unwrap().unwrap();
        OriginRequest::of(&received.request)
    }

    fn check(line: &str, address: Option<&str>, order: Option<AddressOrder>, weight: Option<WeightOrder>) {
        let (origin, address) = ("shop".to_owned(), address.map(str::to_owned));
        let expect = OriginRequest::Change { origin, address, change: AddressChange { order, weight } };
        assert_eq!(asked(line), Ok(expect), "{line}");
    }

    #[test]
    fn requests_say_what_they_want() {
        assert_eq!(asked("GET /origins"), Ok(OriginRequest::List));
        let one = "POST /origins/shop?address=";
        let (drain, up) = (Some(AddressOrder::Drain), Some(AddressOrder::Up));
        check(&format!("{one}10.0.0.1:80&set=drain"), Some("10.0.0.1:80"), drain, None);
        check(&format!("{one}unix:/run/a%20b&weight=7"), Some("unix:/run/a b"), None, Some(WeightOrder::Set(7)));
        check("POST /origins/shop?set=up&weight=auto", None, up, Some(WeightOrder::Auto));
        assert!(asked("POST /origins/shop?set=up").unwrap().changes() && !OriginRequest::List.changes());
    }

    #[test]
    fn what_is_wrong_is_said() {
        let refused = |line: &str, status: u16| {
            let got = asked(line);
            assert!(matches!(got, Err(NotVcl::Refused(is, _)) if is == status), "{line}: {got:?}");
        };
        refused("POST /origins", 405);
        refused("GET /origins/shop", 405);
        refused("POST /origins/shop", 400);
        refused("POST /origins/shop?set=gone", 400);
        refused("POST /origins/shop?weight=1001", 400);
        refused("POST /origins/shop?set=up&weight=-1", 400);
        assert_eq!(asked("GET /origins/shop/x"), Err(NotVcl::Elsewhere));
    }
}
