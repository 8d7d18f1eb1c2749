//! The first half: what the route makes of it (`ruled_request.rs`), and the policy. The same functions in the same order as `exchange_opening.rs`.

use std::sync::Arc;

use message::{Authority, Field, FieldName, FieldsView, Request, Scheme};
use rules::credentials;
use wire::{ReceivedRequest, Refusal};

use crate::asker::Asker;
use crate::clock::{Clock, mono_now_ms};
use crate::core::{Core, Shared};
use crate::counted_routes;
use crate::exchange_opening::is_program_s;
use crate::explain::file_explained::{self, FileAnswering};
use crate::explain::held_refusal;
use crate::explain::held_rule::{self, HeldRule};
use crate::explain::looked_up;
use crate::explain::{ExplainQuestion, ExplainedRoute, Explanation, GivenReason, WouldBe};
use crate::peer::Peer;
use crate::policy::{self, WhyPassed};
use crate::reason::Reason;
use crate::receive::{self, OfScripts, Received, Verdict};
use crate::route_rules::cookie_rules;
use crate::route_table::RouteAt;
use crate::ruled_request::{self, RuledRequest};
use crate::settings::{ListenAddress, ListenMode, ListenerSettings, RootScripts, RouteTarget};
use crate::site::{Backend, Routed, Site};
use crate::transaction::admit::Unverified;
use crate::transaction::files;
use crate::transaction::lookup::Question;
use crate::transaction::synth::Synth;

const BY_PROGRAM: &str =
    "the VCL says what is looked up, and under which key: `larder vcl explain` shows what it does with a request";
const LIMITED: &str = "the route limits how many requests may come; explaining counts none";
const BY_PASSWORD: &str = "name and password are verified first; what is said here holds if they are right";
const BY_SERVICE: &str = "a service is asked first whether the client may come in (auth_request); what is said here holds if it may, and says nothing of fields";
const BY_COUNT: &str =
    "it is counted first how many requests are under way (connection_limit); what is said here holds if it may come";

pub(super) fn explain(shared: Arc<Shared>, question: &ExplainQuestion) -> Result<Explanation, Refusal> {
    let core = Core::that_only_looks(shared, Clock::ahead(question.ahead_ms));
    let site = core.site();
    let mode = mode_of(&site, question.scheme, port_asked_for(&question.head));
    let asker = Asker { peer: Peer::of((question.client, 0).into()), mode, tls: None };
    let asked = (question.head.as_slice(), question.scheme);
    ruled_request::with((&core, &site), &asker, asked, |ruled| explain_ruled(&core, &site, ruled))
}

pub(super) fn of_received(serving: &Core, asker: &Asker<'_>, received: &ReceivedRequest<'_>) -> Explanation {
    let core = Core::that_only_looks(Arc::clone(&serving.shared), serving.clock());
    let site = core.site();
    ruled_request::of_received((&core, &site), asker, received.clone(), |ruled| explain_ruled(&core, &site, ruled))
}

fn explain_ruled(core: &Core, site: &Arc<Site>, ruled: RuledRequest<'_, '_>) -> Explanation {
    let RuledRequest { received, came, seen, client, ruling } = ruled;
    let mut explained = Explanation::new(WouldBe::Miss, core.now().wall_ms);
    note_route(site, ruling.route, &mut explained);
    match site.program.as_ref().filter(|_| is_program_s(site, &ruling)) {
        Some(program) => {
            explained.would_be = WouldBe::Program(program.name.to_string());
            explained.notes.push(BY_PROGRAM.to_owned());
        }
        None => {
            let found = receive::judge(core, site, received, (seen, client), ruling);
            let asked = ExplainedRequest { core, site, received, came };
            asked.explain(&found, &found.verdict, &mut explained);
            asked.note_origin(found.routed, &mut explained);
        }
    }
    explained
}

/// What is asked where a request of this scheme comes: of the listener with the port that its URL names, or goes without; of one that only leads
/// to https://, where there is no other. Somebody in front of larder may have other ports.
fn mode_of(site: &Site, scheme: Scheme, port: Option<u16>) -> ListenMode {
    let port = port.unwrap_or(scheme.default_port());
    let listeners = &site.settings.listeners;
    let serving = listeners.iter().filter(|listener| listener.mode != ListenMode::Forward);
    let serving: Vec<_> = serving.filter(|listener| listener.tls.is_some() == (scheme == Scheme::Https)).collect();
    let has_port =
        |listener: &&&ListenerSettings| matches!(listener.address, ListenAddress::Tcp(at) if at.port() == port);
    if let Some(met) = serving.iter().find(has_port) {
        return met.mode;
    }
    let mut modes = serving.iter().map(|listener| listener.mode);
    match modes.next() {
        Some(redirect @ ListenMode::Redirect { .. }) if modes.all(|mode| mode != ListenMode::Accelerate) => redirect,
        _ => ListenMode::Accelerate,
    }
}

/// As the Host of a head has it.
fn port_asked_for(head: &[u8]) -> Option<u16> {
    let host = head.split(|byte| *byte == b'\n').find_map(|line| {
        let (name, value) = line.split_at_checked(line.iter().position(|byte| *byte == b':')?)?;
        name.eq_ignore_ascii_case(b"host").then(|| value[1..].trim_ascii())
    })?;
    Authority::parse_as_given(host)?.port
}

fn note_route(site: &Site, route: Option<RouteAt>, explained: &mut Explanation) {
    let Some(at) = route else { return };
    let (route, settings) = (site.routes.at(at), &site.settings);
    let target = match route.target {
        RouteTarget::Origin(origin) => format!("origin {}", settings.origins[origin].name),
        RouteTarget::Root(root) => {
            let runs = |scripts: &RootScripts| format!(", scripts by {}", settings.origins[scripts.origin].name);
            let root = &settings.roots[root];
            format!("root {}{}", root.directory.display(), root.scripts.as_ref().map(runs).unwrap_or_default())
        }
        RouteTarget::StatusPage(_) => "a status page".to_owned(),
        RouteTarget::Memcached(_) => "memcached".to_owned(),
        RouteTarget::Itself => "the route itself".to_owned(),
        RouteTarget::Closed => "nobody: the route is closed".to_owned(),
    };
    explained.route = Some(ExplainedRoute { name: counted_routes::name_of(route), target });
    if !route.rules.rate_limits.is_empty() || !route.rules.connection_limits.is_empty() {
        explained.notes.push(LIMITED.to_owned());
    }
}

/// A request on a core that only looks.
pub(super) struct ExplainedRequest<'a, 'r> {
    pub core: &'a Core,
    pub site: &'a Site,
    /// As its route leaves it.
    pub received: &'a ReceivedRequest<'r>,
    /// As it came.
    pub came: &'a Request<'a>,
}

impl ExplainedRequest<'_, '_> {
    fn explain(&self, found: &Received, verdict: &Verdict, explained: &mut Explanation) {
        explained.would_be = match verdict {
            Verdict::Lookup(key) => return self.look_up(*key, found, explained),
            Verdict::Scripts(root, of) => return self.explain_scripts(*root, *of, found, explained),
            Verdict::Pass(why) => self.passed(found.routed, *why, explained),
            Verdict::Admit(unverified) => {
                explained.notes.push(who_admits(self.site, found.routed, unverified).to_owned());
                explained.notes.extend(held_refusal::users_of(self.site.route_of(found.routed)));
                return self.explain(found, &unverified.then, explained);
            }
            Verdict::Files(root) => self.beneath(*root, found, explained).unwrap_or(WouldBe::Miss),
            Verdict::Memcached(_) => WouldBe::Memcached,
            Verdict::Pipe => WouldBe::Tunnel,
            Verdict::Purge => WouldBe::Purge,
            Verdict::Synth(synth) => {
                let refused = (found.routed.route, synth.token);
                explained.notes.extend(held_refusal::of(self.site, self.came, &found.client, refused));
                answered(synth)
            }
            // That was asked before.
            Verdict::Program => WouldBe::Program(String::new()),
        };
    }

    /// What is stored and fresh is answered before the disk is asked; then a file answers, and a script where that is what there is.
    fn explain_scripts(&self, root: usize, of: OfScripts, found: &Received, explained: &mut Explanation) {
        let mut stored = explained.clone();
        if let OfScripts::Lookup(key) = of {
            self.look_up(key, found, &mut stored);
        }
        explained.would_be = match (self.beneath(root, found, explained), of) {
            (_, OfScripts::Lookup(_)) if stored.would_be == WouldBe::Hit => return *explained = stored,
            (Some(would_be), _) => would_be,
            (None, OfScripts::Lookup(key)) => return self.look_up(key, found, explained),
            (None, OfScripts::Pass(why)) => self.passed(found.routed, why, explained),
        };
    }

    /// What answers of what lies beneath a root; none where a script does, which the origin runs.
    fn beneath(&self, root: usize, found: &Received, explained: &mut Explanation) -> Option<WouldBe> {
        let routed = (root, found.routed);
        match file_explained::of(self.site, routed, &found.client, &self.received.request) {
            FileAnswering::File(shown) => Some(WouldBe::File(shown)),
            FileAnswering::Answered(synth) => Some(answered(&synth)),
            FileAnswering::Absent(missing) => {
                explained.notes.push(missing);
                Some(answered(&files::absent()))
            }
            FileAnswering::Script(shown) => {
                explained.notes.push(format!("{shown} is what the origin runs"));
                None
            }
        }
    }

    fn look_up(&self, key: cache::Key, found: &Received, explained: &mut Explanation) {
        let request = &self.received.request;
        let directives = policy::directives(&self.site.settings.policy, request, found.seen);
        let (seen, routed, directives) = (found.seen, found.routed, &directives);
        let question = Question { key, request, seen, directives, routed, alone: false, has_recalled: false };
        looked_up::explain(self, &question, explained);
    }

    fn passed(&self, routed: Routed, why: WhyPassed, explained: &mut Explanation) -> WouldBe {
        let mut rule = self.site.rules_of(routed).and_then(|rules| held_rule::of(rules, self.came, why));
        let of_rule = rule.as_mut().and_then(HeldRule::take_about);
        let about = of_rule.or_else(|| match why {
            WhyPassed::Cookie | WhyPassed::Credentials => who_it_names(self.came.fields),
            WhyPassed::Method => Some(String::from_utf8_lossy(self.came.method_text).into_owned()),
            WhyPassed::Body | WhyPassed::NoHost | WhyPassed::Route => None,
        });
        explained.reasons.push(GivenReason { reason: why.reason(), about, rule });
        WouldBe::Pass
    }

    /// Where an origin is asked, or has failed a moment ago: which of its addresses are down, as far as is known.
    fn note_origin(&self, routed: Routed, explained: &mut Explanation) {
        use WouldBe::{Answered, Coalesced, Disk, Miss, Pass, Revalidated, Stale, Tunnel};
        let (Miss | Coalesced | Revalidated | Pass | Disk | Tunnel | Stale { .. } | Answered { status: 500.., .. }) =
            explained.would_be
        else {
            return;
        };
        if let Some(Backend::Origin(at)) = routed.backend {
            explained.notes.extend(self.site.origins.get(at).what_is_down(mono_now_ms()));
        }
    }

    /// The URL under which it is looked up.
    pub(super) fn key_text(&self) -> String {
        let request = &self.received.request;
        let mut url = Vec::new();
        request.write_url(&mut url);
        String::from_utf8_lossy(&url).into_owned()
    }
}

fn who_admits(site: &Site, routed: Routed, unverified: &Unverified) -> &'static str {
    match unverified.credentials {
        Some(_) => BY_PASSWORD,
        None if site.asks_service(routed) => BY_SERVICE,
        None => BY_COUNT,
    }
}

pub(super) fn answered(synth: &Synth) -> WouldBe {
    WouldBe::Answered { status: synth.status, token: synth.token, text: synth.sentence().to_owned() }
}

/// The names of the fields of a request that say who asks, and of its cookies.
pub(super) fn who_it_names(fields: FieldsView<'_>) -> Option<String> {
    let text = |field: &Field<'_>| String::from_utf8_lossy(field.name_text).into_owned();
    let mut names: Vec<String> = Vec::new();
    for field in fields.iter().filter(credentials::is_credential) {
        let name = match field.name {
            FieldName::Cookie => format!("Cookie ({})", shown(cookie_rules::shown_names(fields))),
            _ => text(&field),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    (!names.is_empty()).then(|| names.join(", "))
}

fn shown(names: Vec<&[u8]>) -> String {
    let names: Vec<_> = names.into_iter().map(String::from_utf8_lossy).collect();
    names.join(", ")
}

/// A reason beside what it is about.
pub(super) fn of_whom(reason: Reason, fields: FieldsView<'_>) -> Option<String> {
    match reason {
        Reason::Cookie | Reason::Authorization | Reason::Credentials => who_it_names(fields),
        _ => None,
    }
}
