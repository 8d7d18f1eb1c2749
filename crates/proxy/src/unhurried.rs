//! A request whose answer has to take every step of the story.

use std::rc::Rc;

use wire::ReceivedRequest;

use crate::asker::Asker;
use crate::client_identity::ClientIdentity;
use crate::connection_addresses::ConnectionAddresses;
use crate::core::Core;
use crate::records::session_records::SessionRecords;
use crate::request_source::RequestSource;
use crate::site::Site;

/// A client that is not answered at once.
pub(crate) struct Unhurried<'s, S>(pub(crate) &'s mut S);

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
