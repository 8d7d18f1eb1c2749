//! Deliver: from whatever answers the request to what goes out: the head, and how much of the body behind it.
//!
//! An answer becomes a draft, by the built-in policy here or through vcl_deliver (`vcl_story/delivered.rs`). One plan says what of
//! a draft goes out, and one function does it.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use cache::{EsiPage, Follower, Now, Object};
use message::{FieldName, Fields, FieldsView, ResponseHead, Status};
use rules::Facts;
use rules::conditions::Holder;
use rules::freshness::age_s;
use rules::range::ContentRange;
use wire::{Content, HopByHop, has_length};

use crate::access_log::CacheVerdict;
use crate::answer_body::AnswerBody;
use crate::answer_head::{AnswerHead, Rendered};
use crate::answer_plan::{self, Access, AnswerPlan, PlanRules, Representation};
use crate::body::Body;
use crate::fetch::fetched_body::FetchedBody;
use crate::fetch::program_answer;
use crate::fleet::node_proof::NodeWord;
use crate::memcached_gateway::item_answer::{ItemAnswer, ItemBody};
use crate::outgoing::{Outgoing, OutgoingHead};
use crate::policy::Policy;
use crate::policy_steps;
use crate::reason::Reason;
use crate::records::request_records;
use crate::reply_head::{OUR_BYTES, OUR_LINES};
use crate::route_rules::answer_editing;
use crate::route_rules::field_template::TemplateSource;
use crate::settings::EsiPages;
use crate::sliced_read::SlicedRead;
use crate::static_files::open_file::OpenFile;
use crate::stored_head;
use crate::transaction::synth::Synth;
use crate::transaction::synthesis;
use crate::transaction::{BeginIncluded, Step, Transaction, assembled_answer, hit};
use crate::vcl_story::scope_heads::MadeHead;

/// What answers the request.
pub(crate) enum Answer {
    Stored {
        object: Arc<Object>,
        why: hit::Why,
        /// Set where the body lies in slices, and goes out.
        slices: Option<Box<SlicedRead>>,
    },
    /// A fetch that is under way, ours or somebody else's.
    Followed {
        head: Arc<ResponseHead>,
        length: Option<u64>,
        follower: Follower,
        facts: Option<Facts>,
        /// When the head came.
        received: Now,
        /// What is to be included in it.
        page: Option<Arc<EsiPage>>,
    },
    /// A file beneath a root.
    File(Arc<OpenFile>),
    /// What memcached replied.
    Item(ItemAnswer),
    /// The origin, past the store.
    Origin {
        head: ResponseHead,
        body: Box<FetchedBody>,
    },
    Synth(Synth),
    /// An error of ours, for which the operator has a page.
    ErrorPage {
        synth: Synth,
        file: Arc<OpenFile>,
    },
    Made(Made),
    /// What the origin answered to a request that a program pipes.
    Piped(Box<Answer>),
}

impl Answer {
    /// What is to be included in it, if anything is.
    pub(crate) fn page(&self) -> Option<&Arc<EsiPage>> {
        match self {
            Answer::Stored { object, .. } => object.esi(),
            Answer::Followed { page, .. } | Answer::Made(Made { page, .. }) => page.as_ref(),
            Answer::File(_)
            | Answer::Item(_)
            | Answer::Origin { .. }
            | Answer::Synth(_)
            | Answer::ErrorPage { .. }
            | Answer::Piped(_) => None,
        }
    }
}

impl Answer {
    /// What another node is told of it: an error of ours is not to be taken for the origin's.
    fn word(&self) -> NodeWord {
        match self {
            Answer::Synth(synth) | Answer::ErrorPage { synth, .. } => synth.word(),
            Answer::Stored { .. } | Answer::Followed { .. } | Answer::Origin { .. } | Answer::Made(_) => {
                NodeWord::Answer
            }
            Answer::File(_) | Answer::Item(_) | Answer::Piped(_) => NodeWord::Unable,
        }
    }
}

/// What a program made, or what came whole past the store.
pub(crate) struct Made {
    pub(crate) made: MadeHead,
    pub(crate) body: Bytes,
    /// By vcl_synth: vcl_deliver does not see it.
    pub(crate) is_final: bool,
    /// What is to be included in it.
    pub(crate) page: Option<Arc<EsiPage>>,
}

impl Made {
    /// When vcl_synth itself fails.
    pub(crate) fn bare_failure() -> Made {
        let mut head = ResponseHead::new(Status(500));
        head.fields.push(FieldName::Connection, "close");
        Made { made: MadeHead { head, status: 500 }, body: Bytes::new(), is_final: true, page: None }
    }
}

/// An answer before it is planned how much of it goes out.
pub(crate) struct UnplannedAnswer {
    pub(crate) status: Status,
    /// Another reason than the registered one.
    pub(crate) reason: Option<Box<[u8]>>,
    pub(crate) fields: UnplannedFields,
    /// Fields of ours, which go out whatever is planned.
    pub(crate) ours: Fields,
    pub(crate) body: AnswerBody,
    pub(crate) facts: Facts,
    pub(crate) holder: Holder,
    pub(crate) rules: PlanRules,
    /// What an answer to HEAD says of its length.
    pub(crate) length_said: Option<u64>,
}

/// The fields of the whole representation.
pub(crate) enum UnplannedFields {
    /// With a head that was rendered.
    Rendered(Rendered),
    Shared(Arc<ResponseHead>),
    Own(Fields),
    /// With all that we say of them: they go out as they are, since an origin has answered this very request by them.
    Complete(Fields),
}

impl UnplannedFields {
    pub(crate) fn view(&self) -> FieldsView<'_> {
        match self {
            UnplannedFields::Rendered(rendered) => rendered.fields(),
            UnplannedFields::Shared(head) => head.fields.view(),
            UnplannedFields::Own(fields) | UnplannedFields::Complete(fields) => fields.view(),
        }
    }
}

/// `begin`: how what the answer includes is begun.
pub(crate) fn run(tx: &mut Transaction, answer: Answer, begin: BeginIncluded) -> Step {
    let (head_only, has_parts) = (tx.wants_head_only(), answer.page().is_some());
    let word = tx.node.is_some().then(|| answer.word());
    let outgoing = match answer {
        Answer::Synth(synth) => synthesis::deliver(tx, synth, head_only),
        Answer::ErrorPage { synth, file } => error_page(tx, &synth, &file, head_only),
        Answer::Item(item) => item_of_memcached(tx, item, head_only),
        // What is piped goes by: no program sees it.
        Answer::Piped(answer) => {
            let draft = builtin_draft(tx, *answer, begin);
            compose(tx, draft, head_only)
        }
        answer => match policy_steps::draft(tx, answer, begin) {
            Ok(draft) => {
                let made = draft.status;
                let outgoing = compose(tx, draft, head_only);
                record(tx, made, &outgoing);
                outgoing
            }
            Err(step) => return step,
        },
    };
    let mut outgoing = outgoing;
    if let OutgoingHead::Whole { head, .. } = &mut outgoing.head {
        tx.outcome.status = head.status.0;
        if let (Some(node), Some(word)) = (&tx.node, word) {
            tx.core.counters.fleet_answers.add(u64::from(word == NodeWord::Answer));
            node.tell(word, &mut head.fields);
            return Step::Transmit(Box::new(outgoing));
        }
        // Last, whoever answers. What a page includes has no head of its own.
        if let Some(edits) = tx.site.answer_fields_of(tx.routed).filter(|_| tx.place_in_page.level == 0) {
            edits.apply(&TemplateSource::of(&tx.head.request(), &tx.client), head);
            // What the route says of its pages is not said of those who do not get them: a browser would show it again to who has logged in.
            if matches!(tx.outcome.verdict, CacheVerdict::Refused | CacheVerdict::Error) {
                answer_editing::forbid_storing(head);
            }
        }
        // Whoever stores it behind us asks nobody who may have it, or a part of it.
        if tx.site.asks_service(tx.routed) || has_parts && (tx.site.has_services || hands_on_credentials(tx)) {
            answer_editing::keep_from_others(head);
        }
    }
    Step::Transmit(Box::new(outgoing))
}

/// May a part of the page be made for what its client has shown? Cookies and logins that its parts may have are in none of its own fields, and who is
/// known to the page is known to parts that want the same login.
fn hands_on_credentials(tx: &Transaction) -> bool {
    let (esi, came) = (&tx.site.settings.esi, tx.as_it_came().fields());
    matches!(tx.policy, Policy::Builtin)
        && (tx.user.is_some()
            || esi.passes_cookies && came.contains(FieldName::Cookie)
            || esi.passes_authorization && came.contains(FieldName::Authorization))
}

/// What of a stored response goes out.
pub(crate) fn plan_stored(tx: &Transaction, object: &Object) -> AnswerPlan {
    plan(tx, Representation::stored(object, &object.facts()), tx.plan_rules())
}

/// What of a file goes out.
pub(crate) fn plan_file(tx: &Transaction, file: &OpenFile) -> AnswerPlan {
    let held = Representation {
        head: file.head().response(),
        facts: file.facts(),
        holder: Holder::Origin,
        length: Some(file.length()),
        part: None,
        access: Access::Random,
    };
    plan(tx, held, tx.plan_rules())
}

fn plan(tx: &Transaction, held: Representation<'_>, rules: PlanRules) -> AnswerPlan {
    answer_plan::plan(&tx.head.request(), tx.seen, tx.wants_head_only(), held, rules)
}

impl UnplannedAnswer {
    fn plan(&self, tx: &Transaction) -> AnswerPlan {
        let head = message::Response {
            status: self.status,
            version: message::Version::Http11,
            reason: None,
            fields: self.fields.view(),
        };
        let part = match &self.body {
            AnswerBody::Object { object, .. } => object.partial(),
            _ => None,
        };
        let (facts, holder) = (&self.facts, self.holder);
        let held = Representation { head, facts, holder, length: self.body.length(), part, access: self.body.access() };
        plan(tx, held, self.rules)
    }
}

/// The head and the body of what is planned.
fn compose(tx: &Transaction, draft: UnplannedAnswer, head_only: bool) -> Outgoing {
    let plan = draft.plan(tx);
    let UnplannedAnswer { status, reason, fields, ours, body, rules, length_said, .. } = draft;
    let is_whole = matches!(plan, AnswerPlan::Whole | AnswerPlan::HeadOnly);
    let said_kind = matches!(plan, AnswerPlan::Parts(_)).then(|| fields.view().get(FieldName::ContentType)).flatten();
    let parts_type = said_kind.map(Box::<[u8]>::from);
    let mut head = match fields {
        // Another node gets what the origin said, and edits it itself.
        UnplannedFields::Rendered(rendered) if is_whole && tx.node.is_none() => AnswerHead::rendered(rendered),
        UnplannedFields::Complete(fields) => AnswerHead::of_fields(status, fields),
        UnplannedFields::Own(fields) => AnswerHead::planned_of_own(&plan, status, fields, rules),
        fields => {
            let mut head = AnswerHead::planned(&plan, status, fields.view(), rules);
            if let UnplannedFields::Rendered(Rendered::Object(object)) = &fields {
                // Which the rendered head has.
                stored_head::push_via(&mut head.fields, object.response().version, &tx.site);
            }
            head
        }
    };
    head.reason = reason.filter(|_| is_whole);
    if tx.is_esi_surrogate() && tx.node.is_none() {
        head.fields.remove(FieldName::SurrogateControl);
    }
    match head.fields.view().count() {
        0 => head.fields = ours,
        _ => head.fields.append(&ours),
    }
    let (content, body) = match plan {
        AnswerPlan::Whole | AnswerPlan::HeadOnly if body.is_bodiless_answer() => {
            let said = length_said.map_or(Content::Unsaid, Content::Length);
            (if head_only { said } else { Content::Length(0) }, body.whole())
        }
        AnswerPlan::Whole if has_length(head.status) => (body.content(), body.whole()),
        AnswerPlan::Whole | AnswerPlan::HeadOnly => (body.content(), body.leave()),
        AnswerPlan::NotModified => (Content::Unsaid, body.leave()),
        AnswerPlan::Part(range) => {
            let (complete_length, length) = (body.complete_length(), range.end - range.start);
            head.push_content_range(ContentRange { range: range.clone(), complete_length });
            (Content::Length(length), body.range(range))
        }
        AnswerPlan::Parts(ranges) => {
            let (multipart, body) = body.parts(&ranges, parts_type.as_deref());
            multipart.push_type(&mut head.fields);
            (Content::Length(multipart.length), body)
        }
        AnswerPlan::Unsatisfiable { length } => {
            head.push_unsatisfied(length);
            (Content::Length(0), body.leave())
        }
        AnswerPlan::PreconditionFailed => unreachable!("`files` has said so before, and nothing else is our own"),
    };
    let sends_content = !head_only && has_length(head.status);
    Outgoing { head: OutgoingHead::Whole { head, content, sends_content }, body }
}

/// What Varnish's log says of what became of the draft: filters, and another status than the program's.
fn record(tx: &Transaction, made: Status, outgoing: &Outgoing) {
    let OutgoingHead::Whole { head, .. } = &outgoing.head else { return };
    if let Some(records) = tx.policy.records().filter(|_| head.status != made) {
        request_records::status_line(records, vcl::Message::Resp, head.status.0, None);
    }
}

/// What answers, by the built-in policy: with Via, Age and Cache-Status.
pub(crate) fn builtin_draft(tx: &mut Transaction, answer: Answer, begin: BeginIncluded) -> UnplannedAnswer {
    // What was stored with its parts, and may have none since the settings are others, is the text that its origin sent.
    let has_parts = tx.site.esi_pages(tx.routed) != EsiPages::None;
    let page = answer.page().filter(|_| has_parts).cloned();
    let draft = draft_of_text(tx, answer);
    match page {
        Some(page) => assembled_answer::page(tx, draft, page, begin),
        None => draft,
    }
}

/// The same without what is included in it.
fn draft_of_text(tx: &mut Transaction, answer: Answer) -> UnplannedAnswer {
    match answer {
        Answer::Stored { object, why, slices } => stored(tx, object, why, slices),
        Answer::Followed { head, length, follower, facts, received, page: _ } => {
            followed(tx, head, AnswerBody::Follower { follower, length }, facts, received)
        }
        Answer::File(file) => file_beneath(tx, file),
        Answer::Origin { head, body } => {
            let is_bodiless = body.is_none();
            passed(tx, head, AnswerBody::Origin(body), is_bodiless)
        }
        Answer::Made(Made { made, body, .. }) => passed(tx, made.head, AnswerBody::Bytes(body), false),
        Answer::Synth(_) | Answer::ErrorPage { .. } | Answer::Item(_) | Answer::Piped(_) => {
            unreachable!("these are answers already")
        }
    }
}

fn stored(
    tx: &mut Transaction,
    object: Arc<Object>,
    why: hit::Why,
    slices: Option<Box<SlicedRead>>,
) -> UnplannedAnswer {
    let (now, facts) = (tx.core.now(), object.facts());
    let mut ours = Fields::with_room(OUR_LINES, OUR_BYTES);
    ours.push_number(FieldName::Age, object.age_s(now));
    match forwarded(tx, why) {
        Some(how) => push_cache_status(&mut ours, tx, &[&how]),
        None => {
            let mut status = Vec::new();
            stored_head::write_hit_status(&mut status, &tx.site, &object, object.age_s(now));
            ours.push(FieldName::CacheStatus, status);
        }
    }
    for field in std::mem::take(&mut tx.own_fields).view().iter() {
        ours.push_field(&field);
    }
    UnplannedAnswer {
        status: object.status(),
        reason: None,
        fields: UnplannedFields::Rendered(Rendered::Object(Arc::clone(&object))),
        ours,
        body: AnswerBody::Object { object, leased: tx.leased.clone(), slices },
        facts,
        holder: Holder::Cache,
        rules: PlanRules::Rfc,
        length_said: None,
    }
}

/// RFC 9211 §2.2: what Cache-Status says of a stored response for which the origin was asked; `None` where it was not.
fn forwarded(tx: &Transaction, why: hit::Why) -> Option<Cow<'static, str>> {
    let (detail, reason) = (tx.outcome.why, tx.outcome.forwarded.word());
    Some(match why {
        hit::Why::Revalidated => format!("fwd={reason}; fwd-status=304").into(),
        hit::Why::RevalidatedAlone => format!("fwd={reason}; fwd-status=304; detail={detail}").into(),
        hit::Why::OriginFailed { status, is_collapsed } => {
            let collapsed = if is_collapsed { "; collapsed" } else { "" };
            match status {
                Some(status) => format!("fwd={reason}; fwd-status={status}{collapsed}").into(),
                None => format!("fwd={reason}{collapsed}; detail={detail}").into(),
            }
        }
        hit::Why::Collapsed => format!("fwd={reason}; collapsed").into(),
        hit::Why::Fetched => format!("fwd={reason}; stored").into(),
        hit::Why::Incomplete => "fwd=partial".into(),
        hit::Why::Fresh | hit::Why::Stale => return None,
    })
}

/// A file, whole or in part. We are its origin: no Via, no Age, no Cache-Status.
fn file_beneath(tx: &Transaction, file: Arc<OpenFile>) -> UnplannedAnswer {
    let mut ours = Fields::with_room(OUR_LINES, OUR_BYTES);
    ours.push(FieldName::Date, stored_head::date(tx.core.now()));
    UnplannedAnswer {
        status: Status::OK,
        reason: None,
        facts: *file.facts(),
        fields: UnplannedFields::Rendered(Rendered::File(Arc::clone(&file))),
        ours,
        body: AnswerBody::File(file),
        holder: Holder::Origin,
        rules: PlanRules::Rfc,
        length_said: None,
    }
}

/// A response that is still arriving. Its length may be unknown; its ranges then too.
fn followed(
    tx: &Transaction,
    head: Arc<ResponseHead>,
    body: AnswerBody,
    facts: Option<Facts>,
    received: Now,
) -> UnplannedAnswer {
    let is_leader = matches!(&body, AnswerBody::Follower { follower, .. } if follower.is_leader());
    let is_stored = facts.is_some();
    let mut ours = Fields::with_room(OUR_LINES, OUR_BYTES);
    stored_head::push_via(&mut ours, head.version, &tx.site);
    // RFC 9111 §5.1: who gets what another asked for is told how old it is. The leader has what the origin said.
    match &facts {
        Some(facts) if !is_leader => {
            let resident_ms = tx.core.now().mono_ms.saturating_sub(received.mono_ms);
            ours.push_number(FieldName::Age, age_s(facts, resident_ms));
        }
        _ => push_age_said(&mut ours, &head),
    }
    let reason = tx.outcome.forwarded.word();
    let how = match (tx.outcome.verdict == CacheVerdict::Coalesced, is_stored) {
        (true, _) => "; collapsed",
        (false, true) => "; stored",
        (false, false) => "",
    };
    match tx.outcome.why {
        why if !is_stored && !why.is_empty() => {
            push_cache_status(&mut ours, tx, &["fwd=", reason, how, "; detail=", why])
        }
        _ => push_cache_status(&mut ours, tx, &["fwd=", reason, how]),
    }
    UnplannedAnswer {
        status: head.status,
        reason: None,
        ours,
        body,
        facts: facts.unwrap_or_else(|| program_answer::dates(&head, tx.core.now())),
        fields: UnplannedFields::Shared(head),
        holder: if is_stored { Holder::Cache } else { Holder::Relay },
        rules: PlanRules::Rfc,
        length_said: None,
    }
}

/// Past the store: what the origin said, less what concerns only its connection to us.
fn passed(tx: &Transaction, head: ResponseHead, body: AnswerBody, is_bodiless: bool) -> UnplannedAnswer {
    let length_said = if is_bodiless { length_said(head.fields.view()) } else { None };
    let ResponseHead { mut fields, .. } = head;
    HopByHop::keep_end_to_end(&mut fields);
    stored_head::push_via(&mut fields, head.version, &tx.site);
    const HEAD: &str = Reason::Head.token();
    const METHOD: &str = Reason::Method.token();
    let reason = tx.outcome.why_forwarded().unwrap_or("bypass");
    match tx.outcome.why {
        "" | HEAD | METHOD => push_cache_status(&mut fields, tx, &["fwd=", reason]),
        why => push_cache_status(&mut fields, tx, &["fwd=", reason, "; detail=", why]),
    }
    UnplannedAnswer {
        status: head.status,
        reason: None,
        fields: UnplannedFields::Complete(fields),
        ours: Fields::default(),
        body,
        facts: Facts::default(),
        holder: Holder::Relay,
        rules: PlanRules::Rfc,
        length_said,
    }
}

/// What a head says of the length of its content.
pub(crate) fn length_said(fields: FieldsView<'_>) -> Option<u64> {
    std::str::from_utf8(fields.get(FieldName::ContentLength)?).ok()?.parse().ok()
}

/// A response that has just arrived may have an age already: the one its sender gave it.
fn push_age_said(fields: &mut Fields, head: &ResponseHead) {
    if let Some(age) = head.fields.view().get(FieldName::Age) {
        fields.push(FieldName::Age, age);
    }
}

/// `how` has five parts at most.
fn push_cache_status(fields: &mut Fields, tx: &Transaction, how: &[&str]) {
    debug_assert!(how.len() <= 5);
    let name = tx.site.settings.server_name.as_bytes();
    let part = |at: usize| how.get(at).copied().unwrap_or_default().as_bytes();
    fields.push_joined(FieldName::CacheStatus, &[name, b"; ", part(0), part(1), part(2), part(3), part(4)]);
}

/// The operator's page for an error of ours: the whole of it, whatever conditions and ranges the request names. What is
/// true of the page as a file of its own is not said, but its tag, as by nginx.
fn error_page(tx: &Transaction, synth: &Synth, file: &Arc<OpenFile>, head_only: bool) -> Outgoing {
    let file = file.chosen(tx.head.fields());
    let is_of_file = |name| matches!(name, FieldName::LastModified | FieldName::CacheControl | FieldName::AcceptRanges);
    let mut head = synth.head(&tx.core);
    for field in file.head().fields.view().iter().filter(|field| !is_of_file(field.name)) {
        head.fields.push_field(&field);
    }
    synth.push_rest(&mut head.fields, &tx.core);
    let content = Content::Length(file.length());
    match head_only {
        true => Outgoing::without_body(head, content),
        false => Outgoing::new(head, content, AnswerBody::File(Arc::clone(file)).whole()),
    }
}

/// What memcached has. We are its origin as we are a file's.
fn item_of_memcached(tx: &Transaction, item: ItemAnswer, head_only: bool) -> Outgoing {
    let mut head = AnswerHead::new(Status(item.status));
    head.fields.push(FieldName::Date, stored_head::date(tx.core.now()));
    item.fields.view().iter().for_each(|field| head.fields.push_field(&field));
    let content = Content::Length(item.body.length());
    let body = match item.body {
        ItemBody::Whole(bytes) => AnswerBody::Bytes(bytes).whole(),
        ItemBody::Chunked(read) => AnswerBody::Chunks(read).whole(),
        ItemBody::Unsaid(_) => Body::empty(),
    };
    match head_only || !has_length(head.status) || body.is_empty() {
        true => Outgoing::without_body(head, content),
        false => Outgoing::new(head, content, body),
    }
}
