//! The first half of an exchange whose client may ask along with its request why it is answered as it is (`explain_field.rs`): what would
//! become of the request is told before anything is done of it, and goes out with the answer (`transaction/transmit.rs`).
//!
//! The field that asks is taken out here, before anybody looks at the request: no key, program, log or origin sees it.

use std::rc::Rc;

use message::Request;
use wire::ReceivedRequest;

use crate::asker::Asker;
use crate::client_identity::ClientIdentity;
use crate::clock::Moment;
use crate::connection_addresses::ConnectionAddresses;
use crate::core::Core;
use crate::exchange_opening;
use crate::explain;
use crate::explain_field::AskedWhy;
use crate::records::session_records::SessionRecords;
use crate::request_source::{Opened, RequestSource};
use crate::site::Site;

/// Answers the request, or says how it goes on.
#[inline]
pub(crate) fn open<S: RequestSource>(
    core: &Rc<Core>,
    source: &mut S,
    received: ReceivedRequest<'_>,
    moment: Moment,
) -> Opened {
    let field = core.site_ref().settings.explain_field.clone();
    match field.and_then(|field| field.asked(received.request.fields)) {
        None => exchange_opening::open(core, source, received, moment),
        Some(asked) => open_asked(core, source, received, (asked, moment)),
    }
}

/// A request that asks goes on without the field. That of an operator is explained, and then takes every step of the story: what is answered
/// at once has no room for more.
#[cold]
fn open_asked<S: RequestSource>(
    core: &Rc<Core>,
    source: &mut S,
    received: ReceivedRequest<'_>,
    (asked, moment): (AskedWhy, Moment),
) -> Opened {
    let request = Request { fields: asked.others.view(), ..received.request.clone() };
    let received = ReceivedRequest { request, ..received.clone() };
    // What a forward proxy is asked for is nobody's to explain.
    if !asked.is_operator || source.asker().asks_proxy() {
        return exchange_opening::open(core, source, received, moment);
    }
    let explained = explain::of_received(core, &source.asker(), &received);
    match exchange_opening::open(core, &mut Unhurried(source), received, moment) {
        Opened::Begun(mut tx, step) => {
            tx.explained = Some(explain::line(&explained).into());
            Opened::Begun(tx, step)
        }
        answered => answered,
    }
}

/// A client that is not answered at once.
struct Unhurried<'s, S>(&'s mut S);

impl<S: RequestSource> RequestSource for Unhurried<'_, S> {
    type Client = S::Client;

    fn asker(&self) -> Asker<'_> {
        self.0.asker()
    }

    fn session(&self) -> Option<&SessionRecords> {
        self.0.session()
    }

    fn begins_exchange(&mut self, core: &Core, site: &Site, received: &ReceivedRequest<'_>) -> bool {
        self.0.begins_exchange(core, site, received)
    }

    fn at_once(&mut self) -> Option<&mut S::Client> {
        None
    }

    fn addresses(&mut self, client: &ClientIdentity) -> Rc<ConnectionAddresses> {
        self.0.addresses(client)
    }
}
