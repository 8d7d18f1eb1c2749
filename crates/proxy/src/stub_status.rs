//! The numbers of a server at a glance, in the form of nginx's stub_status, which many programs read.

use std::sync::atomic::Ordering;

use message::Method;

use crate::client_identity::ClientIdentity;
use crate::core::Core;
use crate::site::Site;
use crate::transaction::synth::Synth;

/// What is said to a request for this page.
pub(crate) fn answer(site: &Site, page: usize, method: Method, client: ClientIdentity) -> Synth {
    if !client.is_among(&site.settings.status_pages[page].allow_from) {
        return Synth::status_forbidden(&client);
    }
    match method {
        Method::Get | Method::Head => Synth::stub_status(),
        _ => Synth::only_reading(),
    }
}

/// The seven numbers. What other cores' connections do is known as of their last tick; what they are, exactly.
pub(crate) fn text(core: &Core) -> String {
    let shared = &core.shared;
    let (mut active, mut accepts, mut handled, mut requests) = (0, 0, 0, 0);
    let (mut reading, mut writing, mut waiting) = (0, 0, 0);
    for (index, counters) in shared.counters.iter().enumerate() {
        let open = shared.loads[index].load(Ordering::Relaxed) as u64;
        let (of_reading, of_writing) = match index == core.index {
            true => core.slots.census().busy(),
            false => (counters.connections_reading.get(), counters.connections_writing.get()),
        };
        active += open;
        accepts += counters.connections_accepted.get();
        handled += counters.connections_accepted.get().saturating_sub(counters.connections_refused.get());
        requests += counters.requests.get();
        reading += of_reading;
        writing += of_writing;
        waiting += open.saturating_sub(of_reading + of_writing);
    }
    format!(
        "Active connections: {active} \nserver accepts handled requests\n {accepts} {handled} {requests} \n\
         Reading: {reading} Writing: {writing} Waiting: {waiting} \n"
    )
}
