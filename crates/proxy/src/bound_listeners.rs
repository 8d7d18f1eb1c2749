//! Sockets that are bound, and on which nobody accepts yet: who needs a right to bind may give it up before a worker starts.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::accepted::Listener;
use crate::listener;
use crate::settings::{ListenAddress, ListenerSettings};
use crate::socket_keeper::SocketKeeper;

/// The sockets of every listener, one for each core.
pub struct BoundListeners {
    pub(crate) listeners: Vec<BoundListener>,
    pub(crate) keeper: Arc<dyn SocketKeeper>,
}

pub(crate) struct BoundListener {
    pub(crate) settings: ListenerSettings,
    /// With the port that was picked where 0 was asked for.
    pub(crate) address: ListenAddress,
    pub(crate) sockets: Vec<Listener>,
    /// It was bound here.
    is_fresh: bool,
}

impl BoundListeners {
    pub(crate) fn bind(
        listeners: &[ListenerSettings],
        cores: usize,
        keeper: Arc<dyn SocketKeeper>,
    ) -> Result<BoundListeners, String> {
        let bind = |settings: &ListenerSettings| BoundListener::bind(settings, cores, &*keeper);
        let listeners = listeners.iter().map(bind).collect::<Result<Vec<_>, String>>()?;
        Ok(BoundListeners { listeners, keeper })
    }

    /// Where they are, with the port that was picked where 0 was asked for.
    pub fn addresses(&self) -> impl Iterator<Item = &ListenAddress> {
        self.listeners.iter().map(|bound| &bound.address)
    }
}

impl BoundListener {
    /// What is kept for the address is taken; otherwise it is bound.
    pub(crate) fn bind(
        settings: &ListenerSettings,
        cores: usize,
        keeper: &dyn SocketKeeper,
    ) -> Result<BoundListener, String> {
        let kept = keeper.take(&settings.address);
        let is_fresh = kept.is_empty();
        let (address, sockets) = match kept.first() {
            None => listener::bind(settings, cores)?,
            Some(socket) => (listener::address_of(socket, settings), spread(&kept, settings, cores)?),
        };
        let sockets = sockets.into_iter().map(|socket| Listener { settings: settings.clone(), socket }).collect();
        Ok(BoundListener { settings: settings.clone(), address, sockets, is_fresh })
    }

    /// Nothing is refused any more: it outlives this process.
    pub(crate) fn keep(&self, keeper: &dyn SocketKeeper) {
        if self.is_fresh {
            let sockets: Vec<&OwnedFd> = self.sockets.iter().map(|listener| &listener.socket).collect();
            keeper.keep(&self.settings.address, &sockets);
        }
    }
}

/// One for each core at least, and none left out: what waits in it would wait for ever. Who kept them may have had another number of cores,
/// or bound them in its own way.
fn spread(kept: &[OwnedFd], settings: &ListenerSettings, cores: usize) -> Result<Vec<OwnedFd>, String> {
    let is_unix = matches!(settings.address, ListenAddress::Unix(_));
    let wanted = if is_unix { kept.len() } else { cores.max(kept.len()) };
    let ready = |at: usize| -> io::Result<OwnedFd> {
        let socket = kept[at % kept.len()].try_clone()?;
        listener::make_ready(&socket, is_unix)?;
        Ok(socket)
    };
    let failed = |error| format!("a socket that was bound before cannot be used again: {error}");
    (0..wanted).map(ready).collect::<io::Result<_>>().map_err(failed)
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use parking_lot::Mutex;

    use super::*;

    /// Holds copies of what it is given, as another process would.
    #[derive(Default)]
    struct Shelf(Mutex<Vec<OwnedFd>>);

    impl SocketKeeper for Shelf {
        fn take(&self, _: &ListenAddress) -> Vec<OwnedFd> {
            std::mem::take(&mut *self.0.lock())
        }

        fn keep(&self, _: &ListenAddress, sockets: &[&OwnedFd]) {
            self.0.lock().extend(sockets.iter().map(|socket| socket.try_clone().expect("a descriptor is free")));
        }

        fn release(&self, _: &ListenAddress) {}
    }

    fn bind(cores: usize, keeper: &Arc<Shelf>) -> BoundListeners {
        let anywhere = ListenerSettings::at(ListenAddress::Tcp("127.0.0.1:0".parse().expect("an address")));
        let keeper = Arc::clone(keeper) as Arc<dyn SocketKeeper>;
        let bound = BoundListeners::bind(&[anywhere], cores, Arc::clone(&keeper)).expect("it is bound");
        bound.listeners.iter().for_each(|listener| listener.keep(&*keeper));
        bound
    }

    #[test]
    fn who_comes_next_has_the_same_address_and_what_waits_there() {
        let shelf = Arc::new(Shelf::default());
        let first = bind(2, &shelf);
        let address = first.listeners[0].address.clone();
        let ListenAddress::Tcp(at) = &address else { panic!("it was asked for TCP") };
        // Nobody accepts: they wait in one socket's queue or the other's.
        let waiting: Vec<TcpStream> = (0..8).map(|_| TcpStream::connect(at).expect("somebody listens")).collect();
        drop(first);
        for cores in [1, 3] {
            let next = bind(cores, &shelf);
            assert_eq!(next.listeners[0].address, address);
            assert_eq!(next.listeners[0].sockets.len(), cores.max(2), "each core has one, and none is left out");
            let sockets: Vec<OwnedFd> =
                next.listeners.into_iter().flat_map(|it| it.sockets).map(|it| it.socket).collect();
            shelf.keep(&address, &[&sockets[0], &sockets[1]]);
        }
        let sockets = shelf.take(&address);
        let accepted = sockets.iter().map(|socket| std::iter::from_fn(|| listener::accept(socket).ok()).count());
        assert_eq!(accepted.sum::<usize>(), waiting.len());
    }
}
