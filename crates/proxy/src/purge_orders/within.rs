//! Requests of larder's own: a connection that comes in as a client's does, without a socket that anybody else could reach. What is to be
//! fetched again, or before anybody asks, is asked for here, and so goes by the same routes, keys, limits and origins as if somebody had.

use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;

use message::Scheme;

use crate::accepted::Accepted;
use crate::mailbox::Message;
use crate::peer::Peer;
use crate::service::Proxy;
use crate::settings::ListenMode;

impl Proxy {
    /// A connection on which HTTP/1.1 is spoken, as if it had come in by this scheme. `refreshes`: where a program decides, what is stored
    /// answers nothing that is asked here.
    pub fn connect_within(&self, scheme: Scheme, refreshes: bool) -> std::io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        theirs.set_nonblocking(true)?;
        let accepted = Accepted {
            socket: theirs.into(),
            is_unix: true,
            peer: Peer::UNIX,
            proxy_protocol: false,
            mode: ListenMode::Within { scheme, refreshes },
            name: None,
            h2c: false,
            tls: None,
            permit: None,
        };
        let loads = self.shared.loads.iter().enumerate();
        let (least, load) =
            loads.min_by_key(|(_, load)| load.load(Ordering::Relaxed)).expect("there is at least one core");
        load.fetch_add(1, Ordering::Relaxed);
        self.shared.mailboxes[least].post(Message::Connection(accepted));
        Ok(ours)
    }

    /// Does a request of a client's that says `no-cache` have the origin asked? Not where the policy does not listen: there what is stored
    /// has to be made stale first.
    pub fn heeds_no_cache(&self) -> bool {
        self.shared.site.load().settings.policy.honour_client_cache_control
    }

    /// Does a program decide, where no route does?
    pub fn is_under_program(&self) -> bool {
        self.shared.site.load().program.is_some()
    }
}
