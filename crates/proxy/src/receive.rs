//! The first step: who asks, for what, and what the policy makes of it. Runs over the borrowed head, before
//! anything is copied.

use std::cell::Cell;

use cache::Key;
use message::{Field, FieldName, Fields, Request, TargetForm};
use rules::forwarded;
use wire::ReceivedRequest;

use crate::asker::Asker;
use crate::client_certificates::{self, Claims};
use crate::client_identity::{ClientIdentity, is_in};
use crate::core::Core;
use crate::field_set::FieldSet;
use crate::peer::Peer;
use crate::policy::{self, BuiltinVerdict, WhyPassed};
use crate::route_rules::route_verdict::{FirstWord, RouteVerdict};
use crate::settings::{ListenMode, Network, RouteSettings, RouteTarget, Settings};
use crate::site::{Backend, Routed, Site};
use crate::static_files::open_file_table::KnownFile;
use crate::stub_status;
use crate::transaction::admit::{Door, Unverified};
use crate::transaction::synth::Synth;
use crate::transaction::{Step, files};

/// What receive found out.
pub(crate) struct Received {
    pub(crate) verdict: Verdict,
    pub(crate) seen: FieldSet,
    pub(crate) client: ClientIdentity,
    pub(crate) routed: Routed,
}

#[derive(Clone)]
pub(crate) enum Verdict {
    Lookup(Key),
    /// A file beneath this root.
    Files(usize),
    /// The same, or what a script of the root's answers.
    Scripts(usize, OfScripts),
    /// A command to memcached, by this route.
    Memcached(usize),
    Pass(WhyPassed),
    Pipe,
    Purge,
    Synth(Synth),
    /// Who asks has to be verified first.
    Admit(Box<Unverified>),
    /// A program says how it goes on.
    Program,
}

/// How what a script answers goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OfScripts {
    Lookup(Key),
    Pass(WhyPassed),
}

impl Verdict {
    /// Why the store is passed by, for the log.
    pub(crate) fn why_passed(&self) -> Option<WhyPassed> {
        match self {
            Verdict::Pass(why) | Verdict::Scripts(_, OfScripts::Pass(why)) => Some(*why),
            _ => None,
        }
    }

    /// The same without the store, if that was to be asked.
    pub(crate) fn past_the_store(self, why: WhyPassed) -> Verdict {
        match self {
            Verdict::Lookup(_) => Verdict::Pass(why),
            Verdict::Scripts(root, OfScripts::Lookup(_)) => Verdict::Scripts(root, OfScripts::Pass(why)),
            other => other,
        }
    }

    /// The step that it asks for, in the loop.
    pub(crate) fn into_step(self) -> Step {
        match self {
            Verdict::Lookup(_) => Step::Lookup,
            Verdict::Files(root) => Step::Files { root, file: KnownFile::Nothing, is_lookup: false },
            Verdict::Scripts(root, of) => {
                let is_lookup = matches!(of, OfScripts::Lookup(_));
                Step::Files { root, file: KnownFile::Nothing, is_lookup }
            }
            Verdict::Memcached(route) => Step::Memcached(route),
            Verdict::Pass(_) => Step::Pass,
            Verdict::Pipe => Step::Pipe,
            Verdict::Purge => Step::Purge,
            Verdict::Synth(synth) => Step::Synth(synth),
            Verdict::Admit(unverified) => Step::Admit(unverified),
            Verdict::Program => Step::Receive,
        }
    }
}

/// Who asks, with which fields. May change the request's scheme, on a trusted proxy's word.
#[inline]
pub(crate) fn who_asks(site: &Site, received: &mut ReceivedRequest<'_>, peer: Peer) -> (FieldSet, ClientIdentity) {
    let seen = FieldSet::of(received.request.fields);
    (seen, client_of_hop(&site.settings, received, seen, peer))
}

/// The verdict of the built-in policy on what the route's words have left of a request.
#[inline]
pub(crate) fn judge(
    core: &Core,
    site: &Site,
    received: &ReceivedRequest<'_>,
    (seen, client): (FieldSet, ClientIdentity),
    ruling: RouteVerdict,
) -> Received {
    let route = ruling.route.map(|route| site.routes.at(route));
    let target = route.map(|route| route.target);
    let backend = match target {
        Some(RouteTarget::Origin(origin)) => Some(Backend::Origin(origin)),
        Some(RouteTarget::Memcached(route)) => site.settings.memcached[route].origin.map(Backend::Origin),
        Some(RouteTarget::Root(root)) => {
            site.settings.roots[root].scripts.as_ref().map(|scripts| Backend::Origin(scripts.origin))
        }
        _ => None,
    };
    let routed = Routed { route: ruling.route, backend, is_bypass: ruling.bypass.is_some() };
    let (answer, admission) = match ruling.first {
        None => (None, None),
        Some(FirstWord::Answer(synth)) => (Some(synth), None),
        Some(FirstWord::Admit { credentials, then, also }) => (then, Some((credentials, also))),
    };
    let then = match answer {
        Some(synth) => Verdict::Synth(*synth),
        None => answered_by(core, site, received, (seen, client), (route, ruling.bypass)),
    };
    let verdict = match admission {
        None => then,
        Some((credentials, also)) => {
            let by = ruling.route.map_or(Door::Forward, Door::Route);
            Verdict::Admit(Box::new(Unverified { credentials, by, also, then }))
        }
    };
    Received { verdict, seen, client, routed }
}

/// What is answered before any route and any policy have their say.
#[inline]
pub(crate) fn settled(core: &Core, asker: &Asker<'_>, request: &Request<'_>) -> Option<Synth> {
    challenge_answered(core, request).or_else(|| sent_elsewhere(core, asker, request))
}

/// The answer to an authority that asks whether we are who we say.
#[inline]
fn challenge_answered(core: &Core, request: &Request<'_>) -> Option<Synth> {
    let text = core.shared.http_challenges.answer(request)?;
    core.counters.acme_challenges_http.add(1);
    Some(Synth::challenge_answered(text))
}

#[inline]
fn answered_by(
    core: &Core,
    site: &Site,
    received: &ReceivedRequest<'_>,
    (seen, client): (FieldSet, ClientIdentity),
    (route, bypass): (Option<&RouteSettings>, Option<WhyPassed>),
) -> Verdict {
    if let Some(synth) = refusal(site, received, seen) {
        return Verdict::Synth(synth);
    }
    let target = route.map(|route| route.target);
    match target {
        Some(RouteTarget::Root(root)) if site.settings.roots[root].scripts.is_none() => {
            return match files::method_refused(received.request.method) {
                Some(synth) => Verdict::Synth(synth),
                None => Verdict::Files(root),
            };
        }
        Some(RouteTarget::StatusPage(page)) => {
            return Verdict::Synth(stub_status::answer(site, page, received.request.method, client));
        }
        Some(RouteTarget::Memcached(route)) => return Verdict::Memcached(route),
        Some(RouteTarget::Closed) => return Verdict::Synth(Synth::closed()),
        Some(RouteTarget::Itself) => return Verdict::Synth(Synth::no_route()),
        Some(RouteTarget::Origin(_) | RouteTarget::Root(_)) | None => {}
    }
    let asked = asked_of_origin(core, site, received, client, (route, bypass));
    match target {
        Some(RouteTarget::Root(root)) => of_scripts(root, asked),
        _ => asked,
    }
}

/// Any of the files may be a script. CGI knows no other protocol to switch to, and a request that asks for one is answered without.
fn of_scripts(root: usize, asked: Verdict) -> Verdict {
    match asked {
        Verdict::Lookup(key) => Verdict::Scripts(root, OfScripts::Lookup(key)),
        Verdict::Pass(why) => Verdict::Scripts(root, OfScripts::Pass(why)),
        Verdict::Pipe => Verdict::Scripts(root, OfScripts::Pass(policy::WhyPassed::Method)),
        other => other,
    }
}

/// What the policy makes of it where an origin may answer.
#[inline]
fn asked_of_origin(
    core: &Core,
    site: &Site,
    received: &ReceivedRequest<'_>,
    client: ClientIdentity,
    (route, bypass): (Option<&RouteSettings>, Option<WhyPassed>),
) -> Verdict {
    match policy::receive(received, || client.is_among(purgers(site, received, route))) {
        BuiltinVerdict::Synth(status) => Verdict::Synth(Synth::of_policy(status)),
        BuiltinVerdict::Purge => Verdict::Purge,
        BuiltinVerdict::PurgeRefused => Verdict::Synth(Synth::purge_forbidden(&client)),
        _ if route.is_none() => Verdict::Synth(Synth::no_route()),
        BuiltinVerdict::Lookup if bypass.is_some() => Verdict::Pass(bypass.unwrap_or(WhyPassed::Route)),
        BuiltinVerdict::Lookup => Verdict::Lookup(policy::key(&core.shared, &received.request)),
        BuiltinVerdict::Pass(why) => Verdict::Pass(why),
        BuiltinVerdict::Pipe => Verdict::Pipe,
    }
}

/// Who may purge what is asked for. What belongs to a group may be another route's.
#[cold]
fn purgers<'a>(site: &'a Site, received: &ReceivedRequest<'_>, route: Option<&'a RouteSettings>) -> &'a [Network] {
    let is_of_group = received.request.fields.contains(FieldName::CacheGroupInvalidation);
    let of_route = route.and_then(|route| route.purge_from.as_deref()).filter(|_| !is_of_group);
    of_route.unwrap_or(&site.settings.policy.purge_from)
}

/// Who asks, where a program decides: it reads itself what a trusted proxy says of the scheme.
pub(crate) fn who_asks_program(site: &Site, received: &ReceivedRequest<'_>, peer: Peer) -> (FieldSet, ClientIdentity) {
    let seen = FieldSet::of(received.request.fields);
    let client = match site.settings.trusted_proxies.is_empty() && !seen.has_any(RELAYED) {
        true => ClientIdentity::of_peer(peer),
        false => client_of_hop(&site.settings, &mut received.clone(), seen, peer),
    };
    (seen, client)
}

/// The answer to who has to ask somewhere else: over TLS, or on another connection.
#[inline]
fn sent_elsewhere(core: &Core, asker: &Asker<'_>, request: &Request<'_>) -> Option<Synth> {
    if let ListenMode::Redirect { https_port } = asker.mode {
        let host = &request.authority.host;
        let site = core.site_ref();
        // Where every route names hosts, a host that none names is not this site's, and nobody is led there.
        let is_strange = !host.is_empty() && site.program.is_none() && !site.routes.is_host_known(host);
        return Some(if is_strange { Synth::no_route() } else { Synth::to_https(request, https_port) });
    }
    let host = asker.tls.and(std::str::from_utf8(&request.authority.host).ok())?;
    asker.session().is_some_and(|session| session.misdirects(host)).then(Synth::misdirected)
}

/// The fields of a request at a server, where they are not to be read as they came: its target names the host, and then whatever Host
/// says does not count (RFC 9112 §3.2.2); or it is known whose certificate the client has shown; or names are not plain, which somebody behind us
/// may take for others, that a route changes or a key holds.
#[inline]
pub(crate) fn fields_at_origin(site: &Site, asker: &Asker<'_>, received: &ReceivedRequest<'_>) -> Option<Fields> {
    if asker.asks_proxy() {
        return None;
    }
    let request = &received.request;
    let names_host = request.form == TargetForm::Absolute;
    let drops_odd = received.has_odd_names && !site.settings.takes_odd_field_names();
    let claims = Claims::of(site, asker, request.fields);
    (names_host || drops_odd || claims.is_some()).then(|| rewrite(request, (names_host, drops_odd), claims))
}

/// A request as it is asked of an origin's server: by its path, with the fields that name its host.
#[inline]
pub(crate) fn at_origin<'a>(request: &mut Request<'a>, named: Option<&'a Fields>) {
    request.form = request.form.at_origin(request.path);
    if let Some(fields) = named {
        request.fields = fields.view();
    }
}

#[cold]
fn rewrite(request: &Request<'_>, (names_host, drops_odd): (bool, bool), claims: Option<Claims>) -> Fields {
    let is_dropped = |field: &Field<'_>| {
        names_host && field.name == FieldName::Host
            || drops_odd && field.name == FieldName::Other && !message::is_plain_name(field.name_text)
            || claims.is_some() && client_certificates::is_claim(field)
    };
    let mut fields = Fields::default();
    request.fields.iter().filter(|field| !is_dropped(field)).for_each(|field| fields.push_field(&field));
    if names_host {
        let mut host = Vec::new();
        request.authority.write_to(&mut host);
        fields.push(FieldName::Host, host);
    }
    if let Some(Claims::Replaced(certificate)) = claims {
        fields.push_named(client_certificates::CLIENT_CERT.as_bytes(), &certificate);
    }
    fields
}

/// The fields of a request whose client waits for 100.
pub(crate) fn without_expect(request: &Request<'_>) -> Fields {
    let mut fields = Fields::default();
    let others = request.fields.iter().filter(|field| field.name != FieldName::Expect);
    others.for_each(|field| fields.push_field(&field));
    fields
}

#[inline]
pub(crate) fn refusal(site: &Site, received: &ReceivedRequest<'_>, seen: FieldSet) -> Option<Synth> {
    if seen.has(FieldName::Via) && passed_here(site, received) {
        return Some(Synth::loop_detected(&site.pseudonym));
    }
    match received.body {
        wire::RequestBody::Length(length) if length > site.settings.limits.request_body_bytes_max => {
            Some(Synth::body_too_large())
        }
        _ => None,
    }
}

/// Who asks. Only a trusted proxy may say who its client is and by which scheme it came.
#[inline]
pub(crate) fn client_of_hop(
    settings: &Settings,
    received: &mut ReceivedRequest<'_>,
    seen: FieldSet,
    peer: Peer,
) -> ClientIdentity {
    let mut client = ClientIdentity::of_peer(peer);
    let trusted = &settings.trusted_proxies;
    client.peer_is_trusted = !trusted.is_empty() && is_in(trusted, client.ip);
    if seen.has_any(RELAYED) {
        let sender = forwarded::sender(client.ip, received.request.fields, |hop| is_in(trusted, hop));
        (client.ip, client.is_vouched_for) = (sender.address, sender.is_vouched_for);
    }
    if client.peer_is_trusted && seen.has(FieldName::XForwardedProto) {
        take_scheme(received);
    }
    client
}

/// The same of what another node of the fleet sends on. By its proof, and not by its address, it is known to be one.
pub(crate) fn client_of_node(
    settings: &Settings,
    received: &mut ReceivedRequest<'_>,
    seen: FieldSet,
    peer: Peer,
) -> ClientIdentity {
    let mut client = ClientIdentity { peer_is_trusted: true, is_node: true, ..ClientIdentity::of_peer(peer) };
    let is_node = Cell::new(true);
    // The node itself is asked about first.
    let trusted = |hop| is_node.replace(false) || is_in(&settings.trusted_proxies, hop);
    let sender = forwarded::sender(client.ip, received.request.fields, trusted);
    (client.ip, client.is_vouched_for) = (sender.address, sender.is_vouched_for);
    if seen.has(FieldName::XForwardedProto) {
        take_scheme(received);
    }
    client
}

/// The scheme by which its client came, on the word of who sends it on.
fn take_scheme(received: &mut ReceivedRequest<'_>) {
    let request = &mut received.request;
    let scheme = forwarded::client_scheme(request.scheme, true, request.fields);
    if scheme != request.scheme {
        request.scheme = scheme;
        // It was read as the other one: which port is the default is known only now.
        request.authority.port = received.given_port.filter(|&port| port != scheme.default_port());
    }
}

/// What shows that somebody speaks for somebody else.
const RELAYED: FieldSet = FieldSet::mask(forwarded::RELAY_FIELDS);

/// RFC 9110 §7.6.3: does `Via` hold our own pseudonym?
#[cold]
fn passed_here(site: &Site, received: &ReceivedRequest<'_>) -> bool {
    forwarded::via_count(received.request.fields, &site.pseudonym) > 0
}
