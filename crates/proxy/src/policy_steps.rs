//! What the policy says of each step of a request: the built-in one, or the program by its subroutine.
//!
//! `None` means that the step goes on as it does by itself. The steps of `transaction` ask here for every verdict.

use std::rc::Rc;
use std::sync::Arc;

use cache::{Failure, Headed, Object};
use message::{RequestHead, TargetForm};

use crate::access_log::CacheVerdict;
use crate::answer_plan::PlanRules;
use crate::coded_answer;
use crate::downstream::Downstream;
use crate::fetch::notes::FetchNotes;
use crate::policy::Policy;
use crate::records::task_records::TaskRecords;
use crate::transaction::deliver::{Answer, UnplannedAnswer};
use crate::transaction::synth::Synth;
use crate::transaction::{BeginIncluded, Step, Transaction, assembled_answer, deliver};
use crate::vcl_story::client_state::ClientState;
use crate::vcl_story::log_notes::LogNotes;
use crate::vcl_story::{client_steps, delivered};

impl Policy {
    /// The state of the program, for what is a program's alone.
    pub(crate) fn program(&self) -> Option<&ClientState> {
        match self {
            Policy::Builtin => None,
            Policy::Program(state) => Some(state),
        }
    }

    pub(crate) fn program_mut(&mut self) -> Option<&mut ClientState> {
        match self {
            Policy::Builtin => None,
            Policy::Program(state) => Some(state),
        }
    }

    /// Who collects records of the request, if anybody wants them.
    pub(crate) fn records(&self) -> Option<&Rc<TaskRecords>> {
        self.program()?.records.as_ref()
    }

    /// What is to be said of the request in the log.
    pub(crate) fn log_notes(&self) -> Option<&Rc<LogNotes>> {
        self.program()?.log_notes.get()
    }

    /// Has something been invalidated that the answer says is? Then a crash must not undo it.
    pub(crate) fn has_invalidated(&self) -> bool {
        self.program().is_some_and(|state| state.has_invalidated.get())
    }

    /// May something stale answer when a fetch fails (RFC 5861 §4)? Under a program its grace has been asked before the fetch.
    pub(crate) fn serves_stale_on_error(&self) -> bool {
        matches!(self, Policy::Builtin)
    }

    /// Do routes say who answers, and which page an error has?
    pub(crate) fn has_routes(&self) -> bool {
        matches!(self, Policy::Builtin)
    }
}

impl Transaction {
    /// The request as the client sent it, whatever a program made of it.
    pub(crate) fn asked(&self) -> &RequestHead {
        self.asked_head()
    }

    /// The same, to be shared.
    pub(crate) fn asked_head(&self) -> &Rc<RequestHead> {
        self.policy.program().and_then(|state| state.original.as_ref()).unwrap_or(&self.head)
    }

    /// Is Surrogate-Control of its answer said to us, and nothing for the client? A program says that itself.
    pub(crate) fn is_esi_surrogate(&self) -> bool {
        let is_forwarded = matches!(self.head.form, TargetForm::Absolute | TargetForm::Authority);
        matches!(self.policy, Policy::Builtin) && self.site.is_esi_surrogate && !is_forwarded
    }

    /// Whose rules say what of a representation goes out.
    pub(crate) fn plan_rules(&self) -> PlanRules {
        match self.policy {
            Policy::Builtin => PlanRules::Rfc,
            Policy::Program(_) => PlanRules::Varnish {
                honours_ranges: self.site.settings.vcl.http_range_support,
                refuses_meaningless: self.site.settings.as_varnishd,
            },
        }
    }
}

/// The cache is to be asked.
pub(crate) fn look_up(tx: &mut Transaction) -> Option<Step> {
    match tx.policy {
        Policy::Builtin => None,
        Policy::Program(_) => Some(client_steps::look_up(tx)),
    }
}

/// Something stored may be served.
pub(crate) fn hit(tx: &mut Transaction, object: &Arc<Object>) -> Option<Step> {
    match tx.policy {
        Policy::Builtin => None,
        Policy::Program(_) => client_steps::hit(tx, object),
    }
}

/// The same of an answer that is still arriving.
pub(crate) fn hit_followed(tx: &mut Transaction, headed: &Headed) -> Option<Step> {
    match tx.policy {
        Policy::Builtin => None,
        Policy::Program(_) => client_steps::hit_followed(tx, headed),
    }
}

/// The origin is to be asked, and its answer stored.
pub(crate) fn miss(tx: &mut Transaction, downstream: &Downstream<'_>) -> Option<Step> {
    match tx.policy {
        Policy::Builtin => None,
        Policy::Program(_) => client_steps::miss(tx).or_else(|| without_body(tx, downstream)),
    }
}

/// The origin is to be asked past the store.
pub(crate) fn pass(tx: &mut Transaction, downstream: &Downstream<'_>) -> Option<Step> {
    match tx.policy {
        Policy::Builtin => None,
        Policy::Program(_) => client_steps::pass(tx).or_else(|| without_body(tx, downstream)),
    }
}

/// Its body went to an origin as it came: asked without it, it would be another request.
fn without_body(tx: &Transaction, downstream: &Downstream<'_>) -> Option<Step> {
    client_steps::body_is_gone(tx, downstream).then(|| Step::Synth(Synth::unfetched("request-body-gone")))
}

/// Bytes are to flow both ways.
pub(crate) fn pipe(tx: &mut Transaction) -> Option<Step> {
    match tx.policy {
        Policy::Builtin => None,
        Policy::Program(_) => client_steps::pipe(tx),
    }
}

/// What an origin answered to a request that was to be piped: no program sees it.
pub(crate) fn piped(tx: &Transaction, answer: Answer) -> Answer {
    match tx.policy {
        Policy::Builtin => answer,
        Policy::Program(_) => Answer::Piped(Box::new(answer)),
    }
}

/// A purge.
pub(crate) fn purge(tx: &mut Transaction) -> Option<Step> {
    match tx.policy {
        Policy::Builtin => None,
        Policy::Program(_) => {
            tx.outcome.verdict = CacheVerdict::Purge;
            Some(client_steps::purge(tx))
        }
    }
}

/// An answer of ours is to be made.
pub(crate) fn synthesize(tx: &mut Transaction, synth: &Synth) -> Option<Step> {
    match tx.policy {
        Policy::Program(_) if synth.is_left_to_programs() => Some(client_steps::synthesize(tx, synth)),
        _ => None,
    }
}

/// What answers, before it is planned how much of it goes out. The error is where the request goes instead.
pub(crate) fn draft(tx: &mut Transaction, answer: Answer, begin: BeginIncluded) -> Result<UnplannedAnswer, Step> {
    match tx.policy {
        Policy::Builtin => {
            let draft = deliver::builtin_draft(tx, answer, begin);
            // Another node puts it into its clients' codings itself.
            let draft = if tx.node.is_some() { draft } else { coded_answer::fit(tx, draft) };
            Ok(if tx.place_in_page.level > 0 { assembled_answer::part(tx, draft) } else { draft })
        }
        Policy::Program(_) => delivered::draft(tx, answer, begin),
    }
}

/// An origin brought nothing.
pub(crate) fn failed(tx: &Transaction, failure: &Failure) -> Step {
    Step::Synth(match tx.policy {
        Policy::Builtin => Synth::failed(failure),
        Policy::Program(_) => Synth::unfetched(failure.token),
    })
}

/// The fetch of the request has brought something.
pub(crate) fn note_brought(tx: &Transaction, notes: &FetchNotes) {
    if let Some(state) = tx.policy.program() {
        state.brought.set(notes.lifetimes());
    }
}
