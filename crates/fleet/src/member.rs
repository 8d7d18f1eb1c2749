//! One node of a fleet, as the program holds it: its thread, its orders, its end.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::fleet_status::FleetStatus;
use crate::hearing;
use crate::limits::ORDERS_UNDER_WAY_MAX;
use crate::node::Node;
use crate::order::{Acknowledge, Ordered};
use crate::ordering::{self, OrderGiven};
use crate::saving;
use crate::saying;
use crate::shared_state::{FleetSettings, Shared};

/// One node's part in it. Clones are the same.
#[derive(Clone)]
pub struct Fleet {
    pub(crate) shared: Arc<Shared>,
    orders: mpsc::Sender<OrderGiven>,
    _thread: Arc<JoinHandle<()>>,
}

impl Fleet {
    /// Begins to listen and to say words. Nothing that is stored is served unconfirmed before the first is answered.
    pub fn start(settings: FleetSettings, node: Arc<dyn Node>) -> io::Result<Fleet> {
        let kept = settings.position_file.as_deref().map(saving::read).unwrap_or_default();
        let state = saving::begin(kept, &*node);
        let shared = Arc::new(Shared::new(settings, node, state));
        let (orders, given) = mpsc::channel(ORDERS_UNDER_WAY_MAX);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let running = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("larder-fleet".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::spawn(hearing::listen(Arc::clone(&running)));
                tokio::spawn(saving::save_often(Arc::clone(&running)));
                tokio::spawn(ordering::take_orders(Arc::clone(&running), given));
                saying::say_words(Arc::clone(&running)).await;
            });
            // Its tasks end with it.
            drop(runtime);
            saving::save_last(&running);
        })?;
        Ok(Fleet { shared, orders, _thread: Arc::new(thread) })
    }

    /// Has an order carried out, here and by all others, and waits for what was asked for. `text` was looked at before: this node understands it.
    pub async fn order(&self, text: String, acknowledge: Acknowledge) -> Ordered {
        let (tell, told) = oneshot::channel();
        let given = OrderGiven { text, acknowledge, tell };
        let refused = |why: &str| Ordered::refused(why.to_owned());
        match self.orders.try_send(given) {
            Ok(()) => told.await.unwrap_or_else(|_| refused("larder is ending")),
            Err(mpsc::error::TrySendError::Full(_)) => {
                refused("too many orders are under way at once: try again in a moment")
            }
            Err(mpsc::error::TrySendError::Closed(_)) => refused("larder is ending"),
        }
    }

    /// Tells the others of what this node is about to carry out by itself. It goes into the log as soon as may be, behind what was told before;
    /// nobody waits for it. To be called before it is carried out: nothing that is older comes from an owner from then on.
    pub fn tell(&self, text: String) {
        self.shared.state.lock().counts.told += 1;
        self.shared.queue(text, self.shared.token());
    }

    /// The same, of what cannot be told: the others have everything confirmed that they hold.
    pub fn tell_of_loss(&self) {
        self.shared.queue_loss(self.shared.token());
    }

    /// Another process of this node goes on from what was written down. This one hears and says orders as before, until it
    /// [ends](Fleet::finish).
    pub fn let_next_go_on(&self) {
        *self.shared.is_followed.lock() = true;
    }

    pub fn status(&self) -> FleetStatus {
        FleetStatus::of(&self.shared)
    }

    /// Says good-bye, so that nobody waits for this node, and writes its position down. Nothing stored may be served behind this.
    pub fn finish(&self, patience: Duration) {
        self.shared.ends.send_replace(true);
        let step = Duration::from_millis(10);
        let steps = patience.as_millis() / step.as_millis();
        // It ends by itself; who is too slow is waited for by others until its lease is over.
        for _ in 0..steps {
            if self._thread.is_finished() {
                return;
            }
            std::thread::sleep(step);
        }
    }
}
