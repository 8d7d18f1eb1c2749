//! Where a request comes from, in whatever protocol: what the first half of an exchange (`exchange_opening.rs`,
//! `vcl_story/program_request.rs`) asks of it, and what it gets back.

use std::rc::Rc;

use wire::ReceivedRequest;

use crate::asker::Asker;
use crate::client_identity::ClientIdentity;
use crate::connection_addresses::ConnectionAddresses;
use crate::core::Core;
use crate::instant_answer::InstantClient;
use crate::records::session_records::SessionRecords;
use crate::site::Site;
use crate::transaction::{Step, Transaction};

/// A connection of HTTP/1, a stream of HTTP/2, a dry run.
pub(crate) trait RequestSource {
    type Client: InstantClient;

    fn asker(&self) -> Asker<'_>;

    /// Where records are wanted.
    fn session(&self) -> Option<&SessionRecords>;

    /// The head of a request has been read. May the client ask again the same way, as far as is known by now?
    fn begins_exchange(&mut self, core: &Core, site: &Site, received: &ReceivedRequest<'_>) -> bool;

    /// Who is answered at once. `None` where nobody may be: a body follows, which may have to be read first, or it is a dry run.
    fn at_once(&mut self) -> Option<&mut Self::Client>;

    /// The ends of the connection, and who asks, if a trusted proxy says so. Asked where a program decides.
    fn addresses(&mut self, client: &ClientIdentity) -> Rc<ConnectionAddresses>;
}

/// What became of a request.
pub(crate) enum Opened {
    /// It was answered at once. May the client ask again the same way, and did it say that it does not?
    Answered { persistent: bool, client_closes: bool },
    /// It goes on with this step.
    Begun(Box<Transaction>, Step),
}

impl Opened {
    #[inline]
    pub(crate) fn answered(persistent: bool, received: &ReceivedRequest<'_>) -> Opened {
        Opened::Answered { persistent, client_closes: !received.persistent }
    }
}
