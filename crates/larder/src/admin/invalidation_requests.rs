//! What may be asked of the admin address about what goes and what is fetched again: `POST /purge`, `POST /refresh`, `POST /warm`, how far
//! that has come (`GET /refresh`), and which tags there are (`GET /tags`).
//!
//! Whether somebody may is judged before, in `admin_request`; a body comes whole or not at all. Looking through the store is done on a
//! thread of its own (`looking.rs`).

use std::sync::Arc;

use fleet::Acknowledge;
use message::{FieldName, Method, Request};
use proxy::{Moment, Proxy, PurgeOrder, PurgeOutcome, PurgeSelector, StoredSample, TagCount};
use serde_json::{Value, json};

use super::fleet_door::FleetDoor;
use super::history::AnnotationKind;
use super::looking::{looking, looking_and_then};
use super::purge_body::{self, PurgeAsked, RefreshOrder, ToFetch};
use super::purge_hints;
use super::refresher::{Refresher, Run};
use super::vcl_requests::{NotVcl, VclReply, query_value};
use crate::limits::{
    DISKS_PATIENCE, PURGE_BODY_BYTES_MAX, REFRESH_URLS_MAX, TAGS_LISTED, TAGS_LISTED_MAX, WARM_BODY_BYTES_MAX,
};

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidationRequest {
    /// `POST /purge`
    Purge,
    /// `POST /refresh`
    Refresh,
    /// `POST /warm`
    Warm,
    /// `GET /refresh`
    Progress,
    /// `DELETE /refresh`
    End,
    /// `GET /tags[?prefix=P][&limit=N]`
    Tags { prefix: String, limit: usize },
}

impl InvalidationRequest {
    pub fn of(request: &Request<'_>) -> Result<InvalidationRequest, NotVcl> {
        use NotVcl::{Elsewhere, Refused};
        let get = matches!(request.method, Method::Get | Method::Head);
        let post = request.method == Method::Post;
        match request.path {
            b"/purge" if post => Ok(InvalidationRequest::Purge),
            b"/warm" if post => Ok(InvalidationRequest::Warm),
            b"/purge" | b"/warm" => Err(Refused(405, "this path takes POST")),
            b"/refresh" if post => Ok(InvalidationRequest::Refresh),
            b"/refresh" if get => Ok(InvalidationRequest::Progress),
            b"/refresh" if request.method == Method::Delete => Ok(InvalidationRequest::End),
            b"/refresh" => Err(Refused(405, "this path takes GET, POST or DELETE")),
            b"/tags" if get => {
                let limit = query_value(request.query, "limit").map_or(Ok(TAGS_LISTED), |text| text.parse());
                match limit {
                    Ok(limit @ 1..=TAGS_LISTED_MAX) => {
                        let prefix = query_value(request.query, "prefix").unwrap_or_default();
                        Ok(InvalidationRequest::Tags { prefix, limit })
                    }
                    _ => Err(Refused(400, "limit is a number from 1 to 1000")),
                }
            }
            b"/tags" => Err(Refused(405, "this path takes GET")),
            _ => Err(Elsewhere),
        }
    }

    /// Bytes of its body; `None` where it has none.
    pub fn body_bytes_max(&self) -> Option<u64> {
        match self {
            InvalidationRequest::Purge | InvalidationRequest::Refresh => Some(PURGE_BODY_BYTES_MAX),
            InvalidationRequest::Warm => Some(WARM_BODY_BYTES_MAX),
            _ => None,
        }
    }

    /// A web page can send many kinds of bodies without asking first, and none of this one.
    pub fn takes_type_of(&self, request: &Request<'_>) -> bool {
        let given = request.fields.get(FieldName::ContentType).unwrap_or_default();
        let essence = given.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        self.body_bytes_max().is_none() || essence.eq_ignore_ascii_case(b"application/json")
    }

    /// What the history says of it once it is done. What was only tried is nothing.
    pub fn annotation(&self, reply: &VclReply) -> Option<(AnnotationKind, String)> {
        match (self, reply.status) {
            (InvalidationRequest::Purge, 200 | 503) => {
                let told: Value = serde_json::from_str(&reply.body).ok()?;
                let selector = told["selector"].as_str()?;
                let soft = if told["soft"] == true { ", softly" } else { "" };
                (told["dry_run"] == false).then(|| (AnnotationKind::Purge, format!("by {selector}{soft}")))
            }
            (InvalidationRequest::Refresh, 202) => Some((AnnotationKind::Order, "refresh".to_owned())),
            (InvalidationRequest::Warm, 202) => Some((AnnotationKind::Order, "warm-up".to_owned())),
            _ => None,
        }
    }

    pub async fn act(
        self,
        proxy: &Proxy,
        fleet: Option<&FleetDoor>,
        refresher: &Arc<Refresher>,
        body: Vec<u8>,
    ) -> VclReply {
        let done = match self {
            InvalidationRequest::Purge => purge(proxy, fleet, body).await,
            InvalidationRequest::Refresh => match purge_body::refresh(&body) {
                Ok(order) => refresh(proxy, refresher, order).await,
                Err(why) => Err((400, why)),
            },
            InvalidationRequest::Warm => match purge_body::warm(&body) {
                Ok(order) => refresh(proxy, refresher, order).await,
                Err(why) => Err((400, why)),
            },
            InvalidationRequest::Progress => Ok((200, refresher.progress_json())),
            InvalidationRequest::End => {
                refresher.end();
                Ok((200, json!({ "ok": true })))
            }
            InvalidationRequest::Tags { prefix, limit } => tags(proxy, prefix, limit).await,
        };
        let (status, answer) = done.unwrap_or_else(|(status, why)| (status, json!({ "error": why })));
        VclReply { status, body: format!("{answer}\n") }
    }
}

/// Status and body; or status and sentence.
type Done = Result<(u16, Value), (u16, String)>;

/// Here, or in all of the fleet; and what the disks say of it.
async fn purge(proxy: &Proxy, fleet: Option<&FleetDoor>, body: Vec<u8>) -> Done {
    let started = Moment::now();
    let PurgeAsked { order, acknowledge, .. } = purge_body::purge(&body).map_err(|why| (400, why))?;
    let (mut status, mut answer) = match fleet.filter(|_| !order.is_dry) {
        Some(fleet) => everywhere(proxy, fleet, (&order, acknowledge), body).await?,
        None if acknowledge.is_some_and(|wanted| wanted != Acknowledge::Local) && !order.is_dry => {
            return Err((422, NO_FLEET.to_owned()));
        }
        None => {
            let (asked, behind) = (proxy.clone(), proxy.clone());
            (200, looking_and_then(move || carry_out(&asked, &body), move || behind.take_out_purged()).await??)
        }
    };
    answer["disks"] = match (proxy.disks_status().is_empty(), order.is_dry) {
        (true, _) => "none".into(),
        (false, true) => "untouched".into(),
        (false, false) => match settled(proxy).await {
            Ok(()) => "acknowledged".into(),
            Err(why) => {
                status = 503;
                answer["error"] = format!("it is in force, but a crash may undo it: {why}").into();
                "silent".into()
            }
        },
    };
    answer["took_ms"] = took_ms(started);
    Ok((status, answer))
}

const NO_FLEET: &str =
    "`acknowledge` says what all nodes of a fleet must have done, and this larder belongs to none: [fleet] log";

/// Has all nodes carry an order out. What this one says of it is the answer, and how far it came.
async fn everywhere(
    proxy: &Proxy,
    door: &FleetDoor,
    (order, acknowledge): (&PurgeOrder, Option<Acknowledge>),
    body: Vec<u8>,
) -> Done {
    // What nobody could carry out does not go into the log.
    let (asked, meant) = (proxy.clone(), order.clone());
    looking(move || asked.understands(&meant)).await?.map_err(|why| (422, why))?;
    let text = String::from_utf8(body).map_err(|_| (400, "the body is no UTF-8".to_owned()))?;
    let wanted = acknowledge.unwrap_or(door.acknowledge);
    let ordered = door.fleet.order(text, wanted).await;
    let told = ordered.told.map_err(|why| (503, why))?;
    let mut answer: Value = serde_json::from_str(&told).map_err(|why| (500, why.to_string()))?;
    answer["acknowledged"] = ordered.acknowledged.word().into();
    answer["number"] = ordered.number.into();
    answer["lapsed"] = ordered.lapsed.into();
    if ordered.acknowledged >= wanted {
        return Ok((200, answer));
    }
    let why = ordered.why_less.unwrap_or_default();
    answer["error"] = format!("it is not acknowledged as {}: {why}", wanted.word()).into();
    Ok((503, answer))
}

/// Carries an order out on this node alone, and says what came of it.
pub fn carry_out(proxy: &Proxy, body: &[u8]) -> Result<Value, (u16, String)> {
    let started = Moment::now();
    let PurgeAsked { word, order, .. } = purge_body::purge(body).map_err(|why| (400, why))?;
    let outcome = proxy.purge(&order).map_err(|why| (422, why))?;
    let mut answer = purge_json(word, &order, &outcome);
    let mut notes = notes(proxy, &order, &outcome, !proxy.disks_status().is_empty());
    if outcome.matched == Some(0) && !outcome.is_pending {
        notes.extend(purge_hints::why_nothing(proxy, &order.selector));
    }
    answer["notes"] = notes.into();
    answer["took_ms"] = took_ms(started);
    Ok(answer)
}

async fn settled(proxy: &Proxy) -> Result<(), String> {
    match tokio::time::timeout(DISKS_PATIENCE, proxy.settled()).await {
        Ok(settled) => settled,
        Err(_) => Err(format!("no disk answered in {} s", DISKS_PATIENCE.as_secs())),
    }
}

fn notes(proxy: &Proxy, order: &PurgeOrder, outcome: &PurgeOutcome, has_disks: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if outcome.is_pending {
        notes.push("a condition on the request: each response is tested when somebody asks for it".to_owned());
    }
    if outcome.unjudged > 0 {
        notes.push(format!(
            "the pattern gave up at its limit with {} responses, which are left as they are: write a simpler one, or a prefix or glob",
            outcome.unjudged
        ));
    }
    if proxy.is_under_program() && order.selector.is_pattern() {
        notes.push(OF_PROGRAMS_URLS.to_owned());
    }
    if has_disks && !order.is_dry {
        notes.push("what lies on the disks alone is not counted: it is dropped when it is read".to_owned());
    }
    notes
}

const OF_PROGRAMS_URLS: &str =
    "what is stored is compared by its URL as the VCL leaves it; a whole `url` is the one that clients ask for";

fn purge_json(word: &str, order: &PurgeOrder, outcome: &PurgeOutcome) -> Value {
    json!({
        "selector": word,
        "soft": order.soft.is_some(),
        "dry_run": order.is_dry,
        "matched": outcome.matched,
        "dropped": outcome.dropped,
        "softened": outcome.softened,
        "samples": outcome.samples.iter().map(sample_json).collect::<Vec<_>>(),
        "sequence": outcome.sequence,
    })
}

fn sample_json(sample: &StoredSample) -> Value {
    json!({
        "url": sample.url,
        "key": format!("{:016x}", sample.key_bits),
        "status": sample.status,
        "age_s": sample.age_s,
        "bytes": sample.body_bytes,
        "hits": sample.hits,
        "fresh": sample.is_fresh,
    })
}

async fn refresh(proxy: &Proxy, refresher: &Arc<Refresher>, order: RefreshOrder) -> Done {
    let started = Moment::now();
    let rate = order.rate;
    let (answer, run) = match order.what {
        ToFetch::Stored(selector) => {
            let (samples_max, asked, looks) = (order.samples_max, selector.clone(), proxy.clone());
            let found = looking(move || looks.to_refresh(&asked, samples_max, REFRESH_URLS_MAX)).await?;
            let found = found.map_err(|why| (422, why))?;
            let answer = json!({
                "matched": found.matched,
                "queued": found.urls.len(),
                "left_out": found.left_out,
                "rate": rate,
                "dry_run": order.is_dry,
                "samples": found.samples.iter().map(sample_json).collect::<Vec<_>>(),
                "notes": refresh_notes(proxy, &selector),
            });
            (answer, Run::refresh(found.urls, selector, rate))
        }
        ToFetch::Urls(urls) => (json!({ "queued": urls.len(), "rate": rate }), Run::warm(urls, rate)),
        ToFetch::Sitemap(url) => (json!({ "queued": null, "rate": rate }), Run::sitemap(url, rate)),
    };
    if !order.is_dry && !Refresher::begin(refresher, proxy, run) {
        return Err((
            409,
            "a refresh runs already: GET /refresh says how far it is, DELETE /refresh ends it".to_owned(),
        ));
    }
    let mut answer = answer;
    answer["took_ms"] = took_ms(started);
    Ok((if order.is_dry { 200 } else { 202 }, answer))
}

fn refresh_notes(proxy: &Proxy, selector: &PurgeSelector) -> Vec<&'static str> {
    let mut notes = Vec::new();
    if !matches!(selector, PurgeSelector::Urls(_)) && !proxy.disks_status().is_empty() {
        notes.push("what lies on the disks alone is not fetched again: name it by its `url`");
    }
    if proxy.is_under_program() && selector.is_pattern() {
        notes.push(OF_PROGRAMS_URLS);
    }
    notes
}

async fn tags(proxy: &Proxy, prefix: String, limit: usize) -> Done {
    let (started, asked) = (Moment::now(), proxy.clone());
    let (listed, total) = looking(move || asked.tags(&prefix, limit)).await?;
    let rows: Vec<Value> = listed.iter().map(tag_json).collect();
    let truncated = total > rows.len();
    Ok((200, json!({ "tags": rows, "total": total, "truncated": truncated, "took_ms": took_ms(started) })))
}

fn tag_json(tag: &TagCount) -> Value {
    json!({ "tag": tag.tag, "field": tag.field, "urls": tag.urls, "objects": tag.objects })
}

/// Milliseconds, to the tenth.
fn took_ms(started: Moment) -> Value {
    let micros = started.micros_until(Moment::now());
    json!((micros / 100) as f64 / 10.0)
}

#[cfg(test)]
mod tests {
    use message::Scheme;
    use wire::limits::HeadLimits;
    use wire::read_request;

    use super::*;

    fn asked(line: &str, fields: &str) -> (Result<InvalidationRequest, NotVcl>, bool) {
        let head = format!("{line} HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let mut spans = Vec::new();
        let received = read_request(head.as_bytes(), &mut spans, &HeadLimits::REQUEST, Scheme::Http).unwrap().unwrap();
        let wanted = InvalidationRequest::of(&received.request);
        let fits = wanted.as_ref().is_ok_and(|wanted| wanted.takes_type_of(&received.request));
        (wanted, fits)
    }

    #[test]
    fn what_was_done_is_annotated_and_what_was_tried_is_not() {
        let of = |request: InvalidationRequest, status, body: &str| {
            let told = request.annotation(&VclReply { status, body: body.to_owned() });
            told.map(|(kind, text)| format!("{} {text}", kind.word()))
        };
        let purged = |soft, dry| format!(r#"{{"selector":"prefix","soft":{soft},"dry_run":{dry},"matched":12}}"#);
        let expect = |text: &str| Some(text.to_owned());
        assert_eq!(of(InvalidationRequest::Purge, 200, &purged(false, false)), expect("purge by prefix"));
        assert_eq!(of(InvalidationRequest::Purge, 503, &purged(true, false)), expect("purge by prefix, softly"));
        assert_eq!(of(InvalidationRequest::Purge, 200, &purged(false, true)), None);
        assert_eq!(of(InvalidationRequest::Purge, 422, r#"{"error":"no"}"#), None);
        assert_eq!(of(InvalidationRequest::Refresh, 202, "{}"), expect("order refresh"));
        assert_eq!(of(InvalidationRequest::Refresh, 409, "{}"), None);
        assert_eq!(of(InvalidationRequest::Progress, 200, "{}"), None);
    }

    #[test]
    fn requests_say_what_they_want() {
        use InvalidationRequest::*;
        let tags = |prefix: &str, limit| Tags { prefix: prefix.to_owned(), limit };
        for (line, expect) in [
            ("POST /purge", Purge),
            ("POST /refresh", Refresh),
            ("POST /warm", Warm),
            ("GET /refresh", Progress),
            ("DELETE /refresh", End),
            ("GET /tags", tags("", TAGS_LISTED)),
            ("GET /tags?prefix=a%20b&limit=7", tags("a b", 7)),
        ] {
            assert_eq!(asked(line, "").0, Ok(expect), "{line}");
        }
        for (line, status) in [
            ("GET /purge", 405),
            ("PUT /refresh", 405),
            ("POST /tags", 405),
            ("GET /tags?limit=0", 400),
            ("GET /tags?limit=1001", 400),
            ("GET /tags?limit=x", 400),
        ] {
            assert!(matches!(asked(line, "").0, Err(NotVcl::Refused(got, _)) if got == status), "{line}");
        }
        assert_eq!(asked("POST /purged", "").0, Err(NotVcl::Elsewhere));
    }

    #[test]
    fn a_form_of_a_web_page_is_no_order() {
        let fits = |line: &str, fields: &str| asked(line, fields).1;
        assert!(fits("POST /purge", "Content-Type: application/json\r\n"));
        assert!(fits("POST /purge", "Content-Type: Application/JSON; charset=utf-8\r\n"));
        for other in ["", "Content-Type: text/plain\r\n", "Content-Type: application/x-www-form-urlencoded\r\n"] {
            for line in ["POST /purge", "POST /refresh", "POST /warm"] {
                assert!(!fits(line, other), "{line} {other}");
            }
        }
        assert!(fits("GET /tags", ""));
    }
}
