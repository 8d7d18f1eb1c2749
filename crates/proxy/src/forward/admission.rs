//! Receive, on a forward listener: who asks, whether it may, and where it wants to be led. From a verdict on, the story is
//! everybody's.

use cache::Key;
use message::{FieldName, Method, TargetForm};
use wire::ReceivedRequest;

use crate::client_identity::ClientIdentity;
use crate::clock::deadline_now_ms;
use crate::core::Core;
use crate::field_set::FieldSet;
use crate::forward::destinations::{self, Asked};
use crate::forward::passwords::{self, Known};
use crate::peer::Peer;
use crate::policy::{self, BuiltinVerdict};
use crate::receive::{self, Received, Verdict};
use crate::route_rules::rate_table::{Rate, client_network};
use crate::site::{Backend, Routed, Site};
use crate::transaction::admit::{Door, Unverified};
use crate::transaction::synth::{HasShown, Synth};

/// Runs the step.
pub(crate) fn run(core: &Core, site: &Site, received: &mut ReceivedRequest<'_>, peer: Peer) -> Received {
    let seen = FieldSet::of(received.request.fields);
    let mut client = receive::client_of_hop(&site.settings, received, seen, peer);
    if seen.has(FieldName::ProxyConnection) && asks_to_close(received) {
        received.persistent = false;
    }
    let verdict = match judge(core, site, received, seen, &mut client) {
        // Behind a CONNECT there may be bytes that were meant for a tunnel: nothing is read as a request any more.
        Verdict::Synth(synth) if received.request.method == Method::Connect => Verdict::Synth(synth.closing()),
        Verdict::Admit(unverified) if received.request.method == Method::Connect => {
            Verdict::Admit(unverified.closing())
        }
        verdict => verdict,
    };
    let routed = Routed { backend: Some(Backend::Forward), ..Routed::default() };
    Received { verdict, seen, client, routed }
}

/// What clients said to proxies before HTTP/1.1 was sure of itself. Only its `close` is heard: `keep-alive` is the rule,
/// and from HTTP/1.0 a promise that others between us may not keep.
fn asks_to_close(received: &ReceivedRequest<'_>) -> bool {
    received.request.fields.has_token(FieldName::ProxyConnection, "close")
}

fn judge(
    core: &Core,
    site: &Site,
    received: &ReceivedRequest<'_>,
    seen: FieldSet,
    client: &mut ClientIdentity,
) -> Verdict {
    let settings = &site.forward.settings;
    let request = &received.request;
    if !client.is_among_proxies(&settings.allow_clients) {
        return denied(core, Synth::client_refused(client));
    }
    let per_second_max = settings.client_requests_per_second_max;
    if per_second_max > 0 {
        let network = client_network(client.ip).to_string();
        let who = core.shared.cache.key([&b"forward"[..], network.as_bytes()]).bits();
        if core.shared.rates.take(who, Rate::per_second(per_second_max), deadline_now_ms() * 1_000).is_err() {
            return denied(core, Synth::requests_too_many());
        }
    }
    if request.form == TargetForm::Origin {
        return Verdict::Synth(Synth::wants_absolute_form());
    }
    if let Some(synth) = receive::refusal(site, received, seen) {
        return Verdict::Synth(synth);
    }
    match who_is_it(site, received) {
        Who::Anybody => lead(core, site, received, *client),
        Who::User(name) => {
            client.is_user = true;
            core.note_user(&name);
            lead(core, site, received, *client)
        }
        Who::Unknown(credentials) => {
            let then = lead(core, site, received, *client);
            Verdict::Admit(Box::new(Unverified {
                credentials: Some(credentials),
                by: Door::Forward,
                also: Box::default(),
                then,
            }))
        }
        Who::Nobody => {
            let has_shown = HasShown::by(received.request.fields.get(FieldName::ProxyAuthorization));
            denied(core, Synth::wants_credentials(has_shown))
        }
    }
}

/// Who asks, by name and password.
enum Who {
    /// Nobody has to say.
    Anybody,
    /// By name.
    User(Vec<u8>),
    /// Credentials that have to be verified first.
    Unknown(Box<[u8]>),
    Nobody,
}

fn who_is_it(site: &Site, received: &ReceivedRequest<'_>) -> Who {
    if site.forward.settings.password_file.is_none() {
        return Who::Anybody;
    }
    let credentials = received.request.fields.get(FieldName::ProxyAuthorization);
    match (credentials, &site.forward.passwords) {
        (Some(credentials), Some(passwords)) => match passwords.known(credentials) {
            Known::Right => Who::User(passwords::user_of(credentials).unwrap_or_default()),
            Known::Nothing => Who::Unknown(credentials.into()),
            Known::Wrong => Who::Nobody,
        },
        _ => Who::Nobody,
    }
}

/// Where a client that may come is led.
fn lead(core: &Core, site: &Site, received: &ReceivedRequest<'_>, client: ClientIdentity) -> Verdict {
    let (settings, request) = (&site.forward.settings, &received.request);
    let is_connect = request.method == Method::Connect;
    // `OPTIONS *` is about us.
    if request.form != TargetForm::Asterisk {
        let port = request.authority.port.unwrap_or(request.scheme.default_port());
        let asked = Asked { host: &request.authority.host, port, by_connect: is_connect };
        if let Err(why) = destinations::judge(settings, &asked) {
            return denied(core, Synth::destination_refused(why));
        }
    }
    if is_connect {
        return Verdict::Pipe;
    }
    match policy::receive(received, || client.is_among(&site.settings.policy.purge_from)) {
        BuiltinVerdict::Synth(status) => Verdict::Synth(Synth::of_policy(status)),
        BuiltinVerdict::Purge => Verdict::Purge,
        BuiltinVerdict::PurgeRefused => Verdict::Synth(Synth::purge_forbidden(&client)),
        BuiltinVerdict::Lookup => Verdict::Lookup(key(core, received)),
        BuiltinVerdict::Pass(why) => Verdict::Pass(why),
        BuiltinVerdict::Pipe => Verdict::Pipe,
    }
}

fn key(core: &Core, received: &ReceivedRequest<'_>) -> Key {
    policy::key(&core.shared, &received.request)
}

fn denied(core: &Core, synth: Synth) -> Verdict {
    core.counters.forward_denied.add(1);
    Verdict::Synth(synth)
}
