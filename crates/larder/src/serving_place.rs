//! The place of a serving process between others: its supervisor, the one before it, and the one that takes over from it.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use proxy::vital_thread;
use supervisor::{Beginning, Said, ServingLink};
use tokio::sync::mpsc;

use crate::given_sockets;
use crate::handing_over::{Former, Heir, Retire, Secrets};
use crate::kept_listeners::KeptListeners;
use crate::limits::PLACE_ORDERS_MAX;
use crate::notify_socket::NotifySocket;
use crate::panics;
use crate::process_flags::ProcessRole;
use crate::running::Forerunners;
use crate::say::say;
use crate::tls_files;

/// What others want of the main thread.
pub enum PlaceOrder {
    /// Somebody is about to take over: the way to it.
    Heir(OwnedFd),
    /// It is ready to.
    Retire(Heir),
    /// It serves.
    Succeeded { process: i32 },
    /// It does not after all.
    NotSucceeded(String),
    /// Of those that served before none is left.
    Alone,
}

impl From<Retire> for PlaceOrder {
    fn from(Retire(heir): Retire) -> PlaceOrder {
        PlaceOrder::Retire(heir)
    }
}

/// See the module.
pub struct ServingPlace {
    pub link: Option<Arc<ServingLink>>,
    keeper: Arc<KeptListeners>,
    former: Option<Former>,
    beside: bool,
    /// So many serving processes have died since the supervisor was started.
    pub deaths: u64,
    orders: mpsc::Sender<PlaceOrder>,
    heard: mpsc::Receiver<PlaceOrder>,
}

impl ServingPlace {
    /// Hears what there was before. To be called before a config is read: session tickets are those of the process that serves still.
    pub fn take(role: ProcessRole) -> Result<ServingPlace, String> {
        let (orders, heard) = mpsc::channel(PLACE_ORDERS_MAX);
        if role != ProcessRole::Supervised {
            let keeper = Arc::new(KeptListeners::new(given_sockets::of_environment(), None));
            return Ok(ServingPlace { link: None, keeper, former: None, beside: false, deaths: 0, orders, heard });
        }
        // It may have been started as /proc/self/exe.
        let _ = rustix::thread::set_name(c"larder");
        let begun = supervisor::begin().map_err(|error| format!("cannot speak with the supervisor: {error}"))?;
        let Beginning { link, kept, former, beside, deaths, reports } = begun;
        let former = former.map(Former::meet).transpose();
        let former = former.map_err(|error| format!("cannot speak with the process that serves: {error}"))?;
        if let Some(former) = &former {
            tls_files::take_over_ticket_secret(former.secrets.tickets.clone());
        }
        let link = Arc::new(link);
        panics::outlive_the_process(Arc::clone(&link), reports);
        let keeper = Arc::new(KeptListeners::new(kept, Some(Arc::clone(&link))));
        Ok(ServingPlace { link: Some(link), keeper, former, beside, deaths, orders, heard })
    }

    pub fn forerunners(&mut self) -> Forerunners {
        Forerunners { keeper: Arc::clone(&self.keeper) as Arc<_>, former: self.former.take(), beside: self.beside }
    }

    /// The way to the service manager.
    pub fn notify_socket(&self) -> NotifySocket {
        self.link.as_ref().map_or_else(NotifySocket::of_environment, |link| NotifySocket::over(Arc::clone(link)))
    }

    /// This process serves: from here on it hears what others want, and closes sockets that its plan does not name.
    pub fn serves(&self) -> Result<(), String> {
        for name in self.keeper.release_unclaimed() {
            say!("{name} is listened on no longer: the config does not name it");
        }
        let Some(link) = &self.link else { return Ok(()) };
        let failed = |error| format!("cannot hear the supervisor: {error}");
        link.ready().map_err(|error| format!("the supervisor is gone: {error}"))?;
        let (link, orders) = (Arc::clone(link), self.orders.clone());
        let hear = move || {
            loop {
                let order = match link.hear() {
                    Said::Heir(end) => PlaceOrder::Heir(end),
                    Said::Succeeded { process } => PlaceOrder::Succeeded { process },
                    Said::Verdict(why) => PlaceOrder::NotSucceeded(why),
                    Said::Alone => PlaceOrder::Alone,
                    Said::Gone => {
                        say!("error: the supervisor is gone; larder ends");
                        // Whoever starts it again needs the addresses and the disks at once, whatever the main thread does.
                        std::process::exit(1);
                    }
                };
                if orders.blocking_send(order).is_err() {
                    return;
                }
            }
        };
        vital_thread("larder-link", "what hears the supervisor", hear).map(drop).map_err(failed)
    }

    /// The next thing that others want. It never comes where there are no others.
    pub async fn next_order(&mut self) -> PlaceOrder {
        match self.heard.recv().await {
            Some(order) => order,
            // Never: a sender is kept here.
            None => std::future::pending().await,
        }
    }

    /// Says to who is about to take over what it cannot know, and from then on hears when it wants to.
    pub fn meet(&self, end: OwnedFd, key_seed: [u8; 16]) {
        let tickets = tls_files::ticket_secret_of_process().to_vec();
        if let Err(error) = Heir::meet(end, &Secrets { key_seed, tickets }, self.orders.clone()) {
            say!("warning: the process that is to take over cannot be spoken with: {error}");
        }
    }
}
