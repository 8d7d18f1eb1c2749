//! One exchange in memory: a request's bytes in, the answer out, and the story itself in between. No socket, no instant run: every step
//! is taken in the loop.

use std::net::IpAddr;
use std::rc::Rc;

use bytes::Bytes;
use message::{Scheme, Version};
use wire::{BodyDecoder, Decoded, ReceivedRequest, Refusal, read_request, refusals};

use crate::access_log::CacheVerdict;
use crate::asker::Asker;
use crate::client_identity::ClientIdentity;
use crate::clock::Moment;
use crate::connection_addresses::ConnectionAddresses;
use crate::core::Core;
use crate::downstream::Downstream;
use crate::downstream::dry_run::DryRun;
use crate::instant_answer::Nobody;
use crate::marked_opening;
use crate::peer::Peer;
use crate::records::session_records::SessionRecords;
use crate::request_source::{Opened, RequestSource};
use crate::settings::ListenMode;
use crate::site::Site;
use crate::transaction::{log, story, synthesis};

/// What a client does that most do not.
#[derive(Clone, Copy)]
pub(crate) struct Manner {
    /// It leaves as soon as it has to wait.
    pub(crate) leaves: bool,
    /// What is asked where it came.
    pub(crate) mode: ListenMode,
}

impl Default for Manner {
    fn default() -> Manner {
        Manner { leaves: false, mode: ListenMode::Accelerate }
    }
}

/// Asks as this client does, with a head and, behind it, a whole body.
pub(crate) async fn ask(core: &Rc<Core>, client: IpAddr, bytes: &[u8]) -> DryRun {
    ask_as(core, client, bytes, Manner::default()).await
}

/// The same for a client of this manner.
pub(crate) async fn ask_as(core: &Rc<Core>, client: IpAddr, bytes: &[u8], manner: Manner) -> DryRun {
    let peer = Peer::of((client, 0).into());
    let limits = core.site_ref().settings.limits.request_head;
    let mut spans = Vec::new();
    let received = read_request(bytes, &mut spans, &limits, Scheme::Http);
    // All of it is there: a head without an end has a line that does not end.
    let received = received.and_then(|received| received.ok_or(refusals::LINE_END_INVALID));
    let asked = received.and_then(|received| {
        let body = whole_body(core, &received, &bytes[received.head_bytes..])?;
        Ok((received, body))
    });
    match asked {
        Ok((received, body)) => {
            let mut run = DryRun::with_body(body);
            run.leaves = manner.leaves;
            let asker = Asker { peer, mode: manner.mode, tls: None };
            let opened = marked_opening::open(core, &mut DrySource(asker), received, Moment::now());
            let Opened::Begun(tx, step) = opened else { unreachable!("nobody is there to be answered at once") };
            story::run(tx, Downstream::DryRun(&mut run), step).await;
            run
        }
        Err(refusal) => refuse(core, peer, bytes, refusal).await,
    }
}

/// Where its request comes from.
struct DrySource<'a>(Asker<'a>);

impl RequestSource for DrySource<'_> {
    type Client = Nobody;

    fn asker(&self) -> Asker<'_> {
        self.0
    }

    fn session(&self) -> Option<&SessionRecords> {
        None
    }

    fn begins_exchange(&mut self, _: &Core, _: &Site, received: &ReceivedRequest<'_>) -> bool {
        received.persistent
    }

    fn at_once(&mut self) -> Option<&mut Nobody> {
        None
    }

    fn addresses(&mut self, client: &ClientIdentity) -> Rc<ConnectionAddresses> {
        Rc::new(ConnectionAddresses::without_socket(client.ip, self.0.peer))
    }
}

fn whole_body(core: &Core, received: &ReceivedRequest<'_>, behind: &[u8]) -> Result<Bytes, Refusal> {
    let mut decoder = BodyDecoder::for_request(received.body, &core.site_ref().settings.limits.chunked);
    let (mut body, mut at) = (Vec::new(), 0);
    while !decoder.is_end() {
        match decoder.decode(&behind[at..])? {
            Decoded::Data { from, to } => {
                body.extend_from_slice(&behind[at + from..at + to]);
                at += to;
            }
            Decoded::End { consumed } => at += consumed,
            // What is left out does not come.
            Decoded::More { .. } => break,
        }
    }
    Ok(body.into())
}

async fn refuse(core: &Rc<Core>, peer: Peer, bytes: &[u8], refusal: Refusal) -> DryRun {
    core.counters.answered(CacheVerdict::Refused);
    let (outgoing, note) = synthesis::answer_refusal(core, peer, bytes, &refusal);
    let mut run = DryRun::default();
    let sent = run.take_answer(outgoing, false).await;
    log::refused(core, (peer, None), (&refusal, note.as_ref()), (Version::Http11, sent.body_bytes));
    run
}
