//! The first half of an exchange whose client asks along with its request why it is answered as it is (`explain_field.rs`): what would
//! become of the request is told before anything is done of it, and goes out with the answer (`transaction/transmit.rs`).

use std::rc::Rc;

use message::Request;
use wire::ReceivedRequest;

use crate::clock::Moment;
use crate::core::Core;
use crate::exchange_opening;
use crate::explain;
use crate::explain_field::AskedWhy;
use crate::request_source::{Opened, RequestSource};
use crate::unhurried::Unhurried;

/// A request that asks goes on without the field. That of an operator is explained, and then takes every step of the story: what is answered
/// at once has no room for more.
#[cold]
pub(crate) fn open<S: RequestSource>(
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
