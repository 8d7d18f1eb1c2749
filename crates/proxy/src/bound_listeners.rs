//! Sockets that are bound, and on which nobody accepts yet: who needs a right to bind may give it up before a worker starts.

use crate::accepted::Listener;
use crate::listener;
use crate::settings::{ListenAddress, ListenerSettings};

/// The sockets of every listener, one for each core.
pub struct BoundListeners(pub(crate) Vec<(ListenerSettings, ListenAddress, Vec<Listener>)>);

impl BoundListeners {
    pub(crate) fn bind(listeners: &[ListenerSettings], cores: usize) -> Result<BoundListeners, String> {
        let bind = |settings: &ListenerSettings| {
            let (address, sockets) = listener::bind(settings, cores)?;
            Ok((settings.clone(), address, sockets))
        };
        listeners.iter().map(bind).collect::<Result<Vec<_>, String>>().map(BoundListeners)
    }

    /// Where they are, with the port that was picked where 0 was asked for.
    pub fn addresses(&self) -> impl Iterator<Item = &ListenAddress> {
        self.0.iter().map(|(_, address, _)| address)
    }
}
