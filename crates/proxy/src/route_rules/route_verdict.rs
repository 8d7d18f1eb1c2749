//! What the words of a route make of a request, before the policy sees it: an answer, or another request.
//!
//! In this order: who may ask and which paths are closed, how often, with what body; name and password; what the route answers by itself; then
//! what the request becomes: its query, its cookies, its fields.

use std::sync::Arc;

use message::{Field, FieldName, Fields, Method, Request};
use rules::credentials;
use wire::{ReceivedRequest, RequestBody};

use crate::access_log::CacheVerdict;
use crate::client_identity::ClientIdentity;
use crate::clock::Moment;
use crate::closed_paths;
use crate::core::Core;
use crate::field_set::FieldSet;
use crate::forward::passwords::{self, Known};
use crate::page_budget::IncludingPage;
use crate::policy::WhyPassed;
use crate::route_rules::auth_request::AuthRequest;
use crate::route_rules::caching_rules::{self, DEVICE_FIELD};
use crate::route_rules::cookie_rules::{CookieUse, CookieVerdict};
use crate::route_rules::cross_origin::CrossOrigin;
use crate::route_rules::field_template::{FieldTemplate, TemplateSource};
use crate::route_rules::guards::WhyRefused;
use crate::route_rules::nominated_fields::without_nominated;
use crate::route_rules::own_answer::OwnAnswer;
use crate::route_rules::rate_table::whom_it_counts_for;
use crate::route_rules::rewritten_request::{RewritingRoom, RewrittenRequest};
use crate::route_rules::{Login, RouteRules};
use crate::route_table::RouteAt;
use crate::settings::RouteSettings;
use crate::site::Site;
use crate::transaction::synth::{HasShown, Synth};

/// What the words of a route come to.
#[derive(Default)]
pub(crate) struct RouteVerdict {
    pub(crate) route: Option<RouteAt>,
    /// What comes before anybody else has a say.
    pub(crate) first: Option<FirstWord>,
    /// Past the store, and what is answered is for this client alone.
    pub(crate) bypass: Option<WhyPassed>,
    /// It was answered before there was a route.
    pub(crate) is_settled: bool,
    /// Its client has shown a password that is right, and its name is noted in the core.
    pub(crate) is_user: bool,
}

/// What comes first.
#[derive(Clone)]
pub(crate) enum FirstWord {
    Answer(Box<Synth>),
    /// It is to be found out whether its client may come in. `then`: what the route answers those who may.
    Admit {
        /// Name and password that are to be verified: the value of Authorization.
        credentials: Option<Box<[u8]>>,
        then: Option<Box<Synth>>,
        /// Routes that the path belongs to in another of its meanings, whose requests are counted.
        also: Box<[MeantRoute]>,
    },
}

/// A route to which a path belongs in another of its meanings, which is this one.
#[derive(Clone, Debug)]
pub(crate) struct MeantRoute {
    pub(crate) at: RouteAt,
    pub(crate) path: Box<[u8]>,
}

impl MeantRoute {
    /// What the route says of a request for that path.
    pub(crate) fn hear<T>(
        &self,
        site: &Site,
        (request, client): (&Request<'_>, &ClientIdentity),
        hear: impl FnOnce(&RouteRules, &TemplateSource<'_>) -> T,
    ) -> T {
        let (route, request) = (site.routes.at(self.at), Request { path: &self.path, ..request.clone() });
        let groups = route.groups_named(&self.path);
        hear(&route.rules, &TemplateSource { groups: groups.as_ref(), ..TemplateSource::of(&request, client) })
    }
}

/// A request that is to be ruled on.
pub(crate) struct RouteQuestion<'a, 'r> {
    pub(crate) received: &'a ReceivedRequest<'r>,
    pub(crate) seen: FieldSet,
    pub(crate) client: &'a ClientIdentity,
    pub(crate) moment: Moment,
    /// By which it is included: its client has been counted there, and what has let it in there lets it in here.
    pub(crate) page: Option<&'a IncludingPage>,
}

impl RouteQuestion<'_, '_> {
    /// Has its client shown there what this login wants?
    fn is_let_in(&self, site: &Site, login: &Login) -> bool {
        let page_route = self.page.and_then(|page| page.route);
        page_route.is_some_and(|at| site.routes.at(at).rules.access.login.as_ref() == Some(login))
    }
}

impl RouteVerdict {
    fn answer(route: Option<RouteAt>, synth: Synth) -> RouteVerdict {
        RouteVerdict { route, first: Some(FirstWord::Answer(Box::new(synth))), ..RouteVerdict::default() }
    }

    /// The same of a request that these routes count, too.
    #[cold]
    fn counted_by(mut self, routes: Vec<MeantRoute>) -> RouteVerdict {
        let routes = routes.into_boxed_slice();
        self.first = Some(match self.first {
            None => FirstWord::Admit { credentials: None, then: None, also: routes },
            Some(FirstWord::Admit { credentials, then, .. }) => FirstWord::Admit { credentials, then, also: routes },
            Some(answer @ FirstWord::Answer(_)) => answer,
        });
        self
    }

    /// Of what is answered before any route.
    pub(crate) fn settled(synth: Synth) -> RouteVerdict {
        RouteVerdict { is_settled: true, ..RouteVerdict::answer(None, synth) }
    }
}

/// Rules on a request; what it becomes, where it becomes another one, is in `room`.
#[inline]
pub(crate) fn of_request(
    core: &Core,
    site: &Site,
    asked: &RouteQuestion<'_, '_>,
    room: &mut RewritingRoom<'_>,
) -> RouteVerdict {
    let request = &asked.received.request;
    let route = site.routes.find(request);
    if let Some(why) = site.why_refused(request, asked.client, route) {
        return RouteVerdict::answer(route, why.synth(asked.client));
    }
    let also = match refused_as_meant(core, site, asked, route) {
        Ok(also) => also,
        Err(refused) => return RouteVerdict::answer(route, *refused),
    };
    let Some(at) = route else {
        // Another spelling of what is counted is no way to somebody who is not asked to count it.
        return match also.is_empty() {
            true => RouteVerdict::default(),
            false => RouteVerdict::answer(None, WhyRefused::Closed.synth(asked.client)),
        };
    };
    let (heeds, ignores_tracking) = (site.routes.heeds(at), site.ignores_tracking());
    let may_act = heeds.requests
        || heeds.methods && request.method != Method::Get
        || request.query.is_some() && (heeds.queries || ignores_tracking)
        || asked.seen.has(FieldName::Cookie) && (heeds.cookies || ignores_tracking);
    let verdict = match may_act {
        true => by_rules(core, site, asked, at, room.take()),
        false => RouteVerdict { route, ..RouteVerdict::default() },
    };
    if also.is_empty() { verdict } else { verdict.counted_by(also) }
}

fn by_rules(
    core: &Core,
    site: &Site,
    asked: &RouteQuestion<'_, '_>,
    at: RouteAt,
    rewritten: &mut RewrittenRequest,
) -> RouteVerdict {
    let (request, route) = (&asked.received.request, Some(at));
    let rules = &*site.routes.at(at).rules;
    let groups = site.routes.at(at).groups_named(request.path);
    let wanted = rules.access.login.as_ref().filter(|login| !asked.is_let_in(site, login));
    let user = match wanted {
        Some(_) => user_of(request),
        // Of a part, only where its own login is met: to whom no login is asked nobody is known.
        None => rules.access.login.as_ref().and(asked.page).and_then(|page| page.user.as_deref()).map(<[u8]>::to_vec),
    };
    let source =
        TemplateSource { user: user.as_deref(), groups: groups.as_ref(), ..TemplateSource::of(request, asked.client) };
    if let Some(refused) = refusal(core, asked, rules, &source) {
        return RouteVerdict::answer(route, refused);
    }
    let verify = match wanted.map(|login| admits(site, login, request)) {
        None | Some(Admission::Known) => None,
        Some(Admission::Unknown(credentials)) => Some(credentials),
        Some(Admission::Nobody(synth)) => return RouteVerdict::answer(route, synth),
    };
    let known = user.as_deref().filter(|_| verify.is_none());
    known.iter().for_each(|name| core.note_user(name));
    let is_user = known.is_some();
    let waits = verify.is_some() || rules.takes_time();
    if let Some(synth) = own_answer(asked, site.routes.at(at), &source) {
        if !waits {
            return RouteVerdict { is_user, ..RouteVerdict::answer(route, synth) };
        }
        // Who is to be told something has to be known first.
        let first = FirstWord::Admit { credentials: verify, then: Some(Box::new(synth)), also: Box::default() };
        return RouteVerdict { route, first: Some(first), is_user, ..RouteVerdict::default() };
    }
    let bypass = rewrite(asked, Words::of(rules, site), &source, rewritten);
    let bypass = bypass.or_else(|| passed_by_method(site, request, at));
    let first = waits.then(|| FirstWord::Admit { credentials: verify, then: None, also: Box::default() });
    RouteVerdict { route, first, bypass, is_settled: false, is_user }
}

/// What the request becomes whose client a service has let in, with its word in it. What the client has said in that place no value is made of.
pub(crate) fn of_admitted(
    site: &Site,
    asked: &RouteQuestion<'_, '_>,
    (at, user): (RouteAt, Option<&[u8]>),
    room: &mut RewritingRoom<'_>,
) -> Option<WhyPassed> {
    let (request, route) = (&asked.received.request, site.routes.at(at));
    let groups = route.groups_named(request.path);
    let source = TemplateSource { user, groups: groups.as_ref(), ..TemplateSource::of(request, asked.client) };
    let words = Words { is_said_by_service: true, ..Words::of(&route.rules, site) };
    let bypass = rewrite(asked, words, &source, room.take());
    bypass.or_else(|| passed_by_method(site, request, at))
}

/// What somebody else has answered to a GET answers no request that its method leads here, and the other way round.
fn passed_by_method(site: &Site, request: &Request<'_>, at: RouteAt) -> Option<WhyPassed> {
    (site.routes.heeds(at).methods && site.routes.is_apart_from_get(request, at)).then_some(WhyPassed::Route)
}

/// Limits of routes that the path belongs to in another of its meanings, and what those answer themselves: no spelling is a way round them.
/// Returns those that count requests.
#[inline]
fn refused_as_meant(
    core: &Core,
    site: &Site,
    asked: &RouteQuestion<'_, '_>,
    route: Option<RouteAt>,
) -> Result<Vec<MeantRoute>, Box<Synth>> {
    let request = &asked.received.request;
    if !site.has_limits || closed_paths::means_itself(request.path) {
        return Ok(Vec::new());
    }
    let Some(meanings) = closed_paths::meanings(request.path) else {
        let holds = |route: &RouteSettings| route.rules.limits_requests() || route.rules.keeps_out(asked.client);
        return match site.routes.any_of_host(&request.authority.host, holds) {
            true => Err(Box::new(WhyRefused::Meaningless.synth(asked.client))),
            false => Ok(Vec::new()),
        };
    };
    let mut others: Vec<MeantRoute> = Vec::new();
    for path in meanings {
        let at = site.routes.find_path(request, &path).filter(|at| Some(*at) != route);
        if let Some(at) = at.filter(|at| others.iter().all(|other| other.at != *at)) {
            others.push(MeantRoute { at, path: path.into() });
        }
    }
    if let Some(said) = others.iter().find_map(|other| of_meant(core, site, asked, other)) {
        return Err(Box::new(said));
    }
    others.retain(|other| !site.routes.at(other.at).rules.connection_limits.is_empty());
    Ok(others)
}

/// What another route than that of the path as it stands says of a request: its limits hold, and an error that it answers itself is answered.
/// Where it leads elsewhere, or shows a page, that is about its own path: a directory whose script is led to the directory would be led to itself.
pub(crate) fn of_meant(core: &Core, site: &Site, asked: &RouteQuestion<'_, '_>, meant: &MeantRoute) -> Option<Synth> {
    meant.hear(site, (&asked.received.request, asked.client), |rules, source| {
        let answer = || rules.answer.as_ref().filter(|_| rules.keeps_out(asked.client));
        refusal(core, asked, rules, source).or_else(|| answer().map(|answer| answer.synth(source)))
    })
}

/// Who asks too often, or sends too much.
fn refusal(
    core: &Core,
    asked: &RouteQuestion<'_, '_>,
    rules: &RouteRules,
    source: &TemplateSource<'_>,
) -> Option<Synth> {
    let now_us = core.clock().at(asked.moment).mono_ms.saturating_mul(1_000);
    for limit in rules.rate_limits.iter().filter(|_| asked.page.is_none() && !core.only_looks) {
        let Some(who) = whom_it_counts_for(limit.by.as_ref(), source, asked.client.ip) else { continue };
        let who = core.shared.cache.key([&b"rate"[..], limit.zone.as_bytes(), &who]).bits();
        if let Err(wait_us) = core.shared.rates.take(who, limit.rate, now_us) {
            core.counters.route_rate_limited.add(1);
            return Some(Synth::too_often(
                limit.status,
                u32::try_from(wait_us.div_ceil(1_000_000)).unwrap_or(u32::MAX),
            ));
        }
    }
    match (asked.received.body, rules.request_body_bytes_max) {
        (RequestBody::Length(length), Some(max)) if length > max => Some(Synth::body_too_large_for_route()),
        (RequestBody::Chunked, Some(_)) => Some(Synth::body_length_wanted()),
        _ => None,
    }
}

enum Admission {
    Known,
    Unknown(Box<[u8]>),
    Nobody(Synth),
}

fn admits(site: &Site, login: &Login, request: &Request<'_>) -> Admission {
    let shown = request.fields.get(FieldName::Authorization);
    let nobody = || Admission::Nobody(Synth::wants_login(&login.realm, HasShown::by(shown)));
    let Some(credentials) = shown else { return nobody() };
    let Some(passwords) = site.passwords_of(&login.file) else { return nobody() };
    match passwords.known(credentials) {
        Known::Right => Admission::Known,
        Known::Nothing => Admission::Unknown(credentials.into()),
        Known::Wrong => nobody(),
    }
}

fn user_of(request: &Request<'_>) -> Option<Vec<u8>> {
    passwords::user_of(request.fields.get(FieldName::Authorization)?)
}

/// What the route answers by itself.
fn own_answer(asked: &RouteQuestion<'_, '_>, route: &RouteSettings, source: &TemplateSource<'_>) -> Option<Synth> {
    let (request, rules) = (source.request, &*route.rules);
    if rules.answer_fields.cross_origin.is_some() && CrossOrigin::is_preflight(request) {
        return Some(Synth::preflight());
    }
    let answer = rules.answer.as_ref().filter(|_| rules.answers(asked.client))?;
    let synth = answer.synth(source);
    let is_of_url = answer.but_for.is_empty() && answer.location.as_ref().is_some_and(FieldTemplate::is_of_url);
    let is_for_all = is_of_url && route.fields.is_empty() && !rules.access.guards();
    Some(if is_for_all { synth.for_all() } else { synth })
}

/// By which words a request becomes another one.
#[derive(Clone, Copy)]
struct Words<'a> {
    rules: &'a RouteRules,
    /// Parameters and cookies by which visits are counted make no difference.
    ignores_tracking: bool,
    /// A service has let its client in: the fields that the service says stand in the request already.
    is_said_by_service: bool,
}

impl<'a> Words<'a> {
    fn of(rules: &'a RouteRules, site: &Site) -> Words<'a> {
        Words { rules, ignores_tracking: site.ignores_tracking(), is_said_by_service: false }
    }

    /// Is Authorization the password that the route asks for? It was meant for us, and is nobody else's; what a service says in its place is
    /// meant for the origin.
    fn take_authorization(self) -> bool {
        let says_it = |service: &AuthRequest| service.copies(b"Authorization");
        let is_service_s = self.is_said_by_service && self.rules.access.service.as_ref().is_some_and(says_it);
        self.rules.access.login.is_some() && !is_service_s
    }
}

/// Writes what the request becomes; says whether it goes past the store.
fn rewrite(
    asked: &RouteQuestion<'_, '_>,
    words: Words<'_>,
    source: &TemplateSource<'_>,
    rewritten: &mut RewrittenRequest,
) -> Option<WhyPassed> {
    let (request, seen) = (source.request, asked.seen);
    let Words { rules, ignores_tracking, .. } = words;
    let only_reads = matches!(request.method, Method::Get | Method::Head);
    // A purge is about what a GET of the same URL is given.
    let ignores_tracking = ignores_tracking && (only_reads || request.method == Method::Purge);
    if let Some(query) = request.query.filter(|_| rules.query.acts() || ignores_tracking) {
        rewritten.rewrite_query(|out| rules.query.cut(query, ignores_tracking, out));
    }
    let is_passed = rules.caching.is_off || request.query.is_some_and(|query| rules.query.bypasses(query));
    let mut bypass = is_passed.then_some(WhyPassed::Route);
    if rules.access.service.as_ref().is_some_and(|service| service.makes_personal(&rules.caching)) {
        bypass = bypass.or(Some(WhyPassed::Credentials));
    }
    if only_reads && seen.has(FieldName::Cookie) {
        let read = CookieUse { ignores_tracking, is_stored: !rules.caching.is_off };
        let judge = |left: &mut Vec<u8>| rules.cookies.judge(request.fields, read, left);
        if rewritten.cut_cookies(request, judge) == CookieVerdict::Bypass {
            bypass = bypass.or(Some(WhyPassed::Cookie));
        }
    }
    if words.take_authorization() {
        rewritten.fields_of(request).remove(FieldName::Authorization);
    }
    if rules.caching.selects_by_device() || rules.request_fields.acts() {
        drop_nominated(request, rewritten);
    }
    if rules.caching.selects_by_device() {
        let device = caching_rules::device(request.fields.get(FieldName::UserAgent).unwrap_or_default());
        let fields = rewritten.fields_of(request);
        fields.retain(|field| !field.name_text.eq_ignore_ascii_case(DEVICE_FIELD.as_bytes()));
        fields.push_named(DEVICE_FIELD.as_bytes(), device.as_bytes());
    }
    if rules.request_fields.acts() {
        let is_from_trusted = asked.client.peer_is_trusted;
        let edit = |fields: &mut Fields, value: &mut Vec<u8>| {
            rules.request_fields.apply(source, is_from_trusted, fields, value);
        };
        rewritten.edit_fields(request, edit);
    }
    // What is written may be answered by a page (RFC 9110 §9.3.3), which is its writer's alone.
    let is_for_some = rules.caching.grant.gives_lifetimes() || !rules.cookies.bypass.is_empty();
    if bypass.is_none() && !only_reads && is_for_some {
        return Some(WhyPassed::Method);
    }
    if bypass.is_none() && rules.caching.grant.gives_lifetimes() {
        let mut left = request.clone();
        rewritten.put_into(&mut left);
        bypass = why_personal(&left, rules);
    }
    bypass
}

/// So that a client cannot take out what its route puts in.
fn drop_nominated(request: &Request<'_>, rewritten: &mut RewrittenRequest) {
    if request.fields.contains(FieldName::Connection) {
        let fields = rewritten.fields_of(request);
        if let Some(left) = without_nominated(fields.view()) {
            *fields = left;
        }
    }
}

/// Where the operator says that pages live, nothing has been said of who may have them: whoever brings credentials, or cookies that nobody has
/// named, is answered by the origin alone.
fn why_personal(request: &Request<'_>, rules: &RouteRules) -> Option<WhyPassed> {
    let (mut has_cookies, mut has_others) = (false, false);
    // What the service says is no word of the client's; where it does not select responses they go past the store for that. Nor is what the
    // route says in the same words to all, such as a secret by which its origin knows larder.
    let is_client_s = |field: &Field<'_>| {
        credentials::is_credential(field)
            && !rules.access.says(field.name_text)
            && !rules.request_fields.says_to_all(field)
    };
    for field in request.fields.iter().filter(is_client_s) {
        match field.name {
            FieldName::Cookie => has_cookies = !rules.cookies.select(),
            _ => has_others = true,
        }
    }
    match (has_others, has_cookies) {
        (true, _) => Some(WhyPassed::Credentials),
        (false, true) => Some(WhyPassed::Cookie),
        (false, false) => None,
    }
}

impl OwnAnswer {
    fn synth(&self, source: &TemplateSource<'_>) -> Synth {
        let (mut text, mut location) = (Vec::new(), Vec::new());
        if let Some(body) = &self.body {
            body.write(source, &mut text);
        }
        if let Some(target) = &self.location {
            target.write_location(source, &mut location);
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        let verdict = if self.status >= 500 { CacheVerdict::Error } else { CacheVerdict::Synth };
        let synth = Synth::of_route(self.status, verdict, (Arc::clone(&self.kind), text));
        match (&self.location, self.retry_after) {
            (Some(_), _) => synth.with_location(location),
            (None, Some(seconds)) => synth.with_retry_after(seconds),
            (None, None) => synth,
        }
    }
}
