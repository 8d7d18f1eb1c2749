//! What a transaction asks an origin: its fetches know nothing of it but this.

use std::sync::Arc;

use cache::Object;
use message::FieldName;

use crate::fetch::Fetch;
use crate::fetch::begin::{Requester, Under};
use crate::fetch::bereq::BereqOf;
use crate::fetch::purpose::Purpose;
use crate::fetch::slice_fetch::{SliceProgram, SliceSource};
use crate::transaction::Transaction;
use crate::transaction::synth::Synth;
use crate::vcl_story::backend_task::MadeFor;
use crate::vcl_story::client_steps::original_of;

impl<'a> Requester<'a> {
    pub(crate) fn of(tx: &'a Transaction) -> Requester<'a> {
        Requester {
            body: tx.body,
            expects_continue: tx.expects_continue,
            client: Some(tx.client),
            script: tx.script.as_ref(),
            trace: tx.trace.as_ref(),
            // A page does not tell of what its parts have asked.
            tells_tries: tx.place_in_page.level == 0,
            under: tx.policy.program().map_or(Under::Builtin, Under::Program),
            ..Requester::in_background((&tx.core, &tx.site), tx.routed, &tx.head)
        }
    }
}

impl Purpose {
    /// What is piped without an Upgrade is a pass that nobody judges.
    pub(crate) fn of_pipe(tx: &Transaction) -> Purpose {
        match tx.head.fields().contains(FieldName::Upgrade) {
            true => Purpose::Upgrade,
            false if tx.site.settings.pipes_as_it_comes() => Purpose::Raw,
            false => Purpose::Piped,
        }
    }
}

impl Fetch {
    /// The fetch of a transaction.
    pub(crate) fn of(tx: &Transaction, purpose: Purpose) -> Result<Box<Fetch>, Synth> {
        Fetch::begin(&Requester::of(tx), purpose)
    }
}

impl SliceSource {
    /// `None` for what does not lie in slices.
    pub(crate) fn of(tx: &Transaction, manifest: &Arc<Object>) -> Option<SliceSource> {
        let asked = tx.head.request();
        let of = BereqOf::of(false, &tx.site);
        let program =
            tx.policy.program().map(|state| SliceProgram::new(MadeFor::of(state), (&asked, original_of(tx)), of));
        let whose = (Some(tx.client), tx.trace.clone(), program);
        SliceSource::new((&tx.core, &tx.site), (tx.routed, &tx.head), whose, manifest)
    }
}
