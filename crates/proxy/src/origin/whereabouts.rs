//! Where a name leads, for somebody who keeps connections of its own to it: its addresses, looked up as an origin's are
//! and again when their time is over, and a connection to the first of them that answers. It keeps no connection and
//! no health.

use std::sync::Arc;
use std::time::Duration;

use super::balance::RequestTurn;
use super::dial::{DialAddress, dial};
use super::origin_error::OriginErrorKind;
use super::origin_pool::IdleAccount;
use super::resolver::Resolver;
use super::servers::{Servers, ServersTerms};
use super::staggered_dial::dial_staggered;
use crate::clock::Moment;
use crate::settings::OriginUrl;
use crate::socket::Socket;

#[derive(Debug)]
pub struct Whereabouts {
    servers: Arc<Servers>,
    resolver: Arc<Resolver>,
}

impl Whereabouts {
    pub(super) fn new(url: OriginUrl, account: &Arc<IdleAccount>, resolver: &Arc<Resolver>) -> Whereabouts {
        Whereabouts {
            servers: Servers::new(vec![url], ServersTerms::default(), 1, account, None),
            resolver: Arc::clone(resolver),
        }
    }

    /// A connection to its first address, or to another where that does not answer: everybody who asks for one name is
    /// to come to one server. `timeout` is for looking up, and again for connecting.
    pub async fn dial(&self, now_ms: u64, timeout: Duration) -> Result<(Socket, DialAddress), OriginErrorKind> {
        let began = Moment::now();
        let elapsed_ms = move || began.micros_until(Moment::now()) / 1_000;
        let found = self.servers.look_up(&self.resolver, now_ms, elapsed_ms, timeout).await;
        found.map_err(|nowhere| OriginErrorKind::Resolve { why: nowhere.why })?;
        let first = self.servers.book().in_turn(0).next().cloned().ok_or(OriginErrorKind::Nowhere)?;
        let next = |begun: &[_]| self.servers.book().beside(RequestTurn::default(), now_ms, begun).cloned();
        let (dialled, address) = dial_staggered(
            first,
            next,
            |address| async move { dial(&address.place, timeout, async |stream| Ok(stream)).await },
            |_, _| {},
        )
        .await;
        Ok((dialled?, address.place.clone()))
    }

    /// For whoever has connections: asks again for a name whose answer ends soon.
    pub fn follow(&self, now_ms: u64) {
        self.servers.next_turn();
        self.servers.renew_names(&self.resolver, now_ms);
    }

    /// Is this still where it leads? As long as nothing else was heard it is.
    pub fn leads_to(&self, place: &DialAddress) -> bool {
        let book = self.servers.book();
        book.addresses.is_empty() || book.addresses.iter().any(|address| address.place == *place)
    }
}
