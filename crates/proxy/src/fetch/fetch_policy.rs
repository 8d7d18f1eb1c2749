//! The policy of a fetch: who decides what its origin is asked and what comes of the answer. Everything else about a fetch is
//! told once, in `fetch_loop.rs` and `fill.rs`, and asks here.
//!
//! One method a step, which says what is to happen next. What they do is in `builtin_steps.rs`, and for a program in
//! `program_steps.rs` and `program_answer.rs`.

use std::rc::Rc;

use cache::{Began, Failure, Ticket};
use message::{FieldName, Request, ResponseHead, TargetForm};
use rules::ContentCoding;
use wire::Parties;

use crate::clock::Moment;
use crate::fetch::bereq::BereqOf;
use crate::fetch::broken::Broken;
use crate::fetch::client_link::ClientLink;
use crate::fetch::fill::Landing;
use crate::fetch::notes::FetchNotes;
use crate::fetch::origin_request::{OriginRequest, is_last};
use crate::fetch::settled::{Ruling, Settled};
use crate::fetch::slice_fetch::SliceProgram;
use crate::fetch::{Fetch, OriginReply, builtin_esi, builtin_steps, program_answer, program_steps, slice_manifest};
use crate::settings::{EsiPages, OriginUrl};
use crate::traces::exchange_trace::TraceForOrigin;
use crate::traces::query_redaction::redacted;
use crate::traces::try_span::TrySpan;
use crate::vcl_story::backend_task::BackendTask;

/// Who decides.
pub(crate) enum FetchPolicy {
    /// RFC 9111, with the switches of `[policy]`.
    Builtin,
    /// A VCL program.
    Program(Box<BackendTask>),
}

/// What is to happen next.
pub(crate) enum FetchVerdict {
    /// There is an answer.
    Settled(Box<Settled>),
    /// The origin is asked again, from Prepare on.
    Again,
    /// There is none.
    Fail(Broken),
}

impl FetchPolicy {
    pub(crate) fn task(&self) -> Option<&BackendTask> {
        match self {
            FetchPolicy::Builtin => None,
            FetchPolicy::Program(task) => Some(task),
        }
    }
}

impl Fetch {
    /// Prepare: what is to happen in place of asking the origin. `None`: it is asked.
    pub(super) async fn prepare(&mut self, client: &mut ClientLink<'_>) -> Option<FetchVerdict> {
        match self.policy {
            FetchPolicy::Builtin => None,
            FetchPolicy::Program(_) => program_steps::prepare(self, client).await,
        }
    }

    /// What the origin is asked.
    pub(super) fn asked(&self) -> OriginRequest<'_> {
        OriginRequest {
            request: self.request_to_origin(),
            purpose: &self.purpose,
            is_program_s: matches!(self.policy, FetchPolicy::Program(_)),
            client: self.client,
            trace: self.trace_for_origin(),
            parent: self.parent.map(|_| self.parent_login()),
            node: self.asked_as_node(),
            host: self.host_to_send(),
            accept_encoding: self.codings_asked(),
            server_name: &self.site.settings.server_name,
            pseudonym: &self.site.pseudonym,
            speaks_esi: self.speaks_esi(),
            body: self.body,
            carried: self.carried.as_ref(),
            expects_continue: self.expects_continue,
            rules: self.site.rules_of(self.routed),
        }
    }

    /// What the origin is told of the trace. Destinations of a forward proxy, which do not know us, are told what the client says.
    fn trace_for_origin(&self) -> Option<TraceForOrigin<'_>> {
        let trace = self.trace.as_deref().filter(|_| !self.is_forwarded())?;
        Some(TraceForOrigin { of: trace, span: self.tries.span().unwrap_or(trace.span) })
    }

    /// The span of a try that is about to begin, where the exchange may be told of with its tries.
    pub(super) fn try_span(&self) -> Option<Box<TrySpan>> {
        let is_told = self.tells_tries && self.site.settings.traces.as_ref().is_some_and(|traces| traces.exports);
        self.trace.as_ref().filter(|_| is_told)?;
        let (request, begun) = (self.request_to_origin(), Moment::now());
        let mut url = Vec::new();
        if !matches!(request.form, TargetForm::Absolute | TargetForm::Authority) {
            let is_tls = self.origin().urls().iter().any(|url| matches!(url, OriginUrl::Tls { .. }));
            url.extend_from_slice(if is_tls { b"https://" } else { b"http://" });
            let of_program = request.fields.get(FieldName::Host).filter(|_| self.policy.task().is_some());
            match of_program.or(self.host_to_send().map(str::as_bytes)) {
                Some(host) => url.extend_from_slice(host),
                None => request.authority.write_to(&mut url),
            }
        }
        let query = request.query.map(redacted);
        Request { query: query.as_deref(), ..request.clone() }.write_target(&mut url);
        let (id, method) = (self.core.trace_dice.span(), request.method_text.into());
        Some(Box::new(TrySpan { id, method, url: url.into(), begun, ended: begun }))
    }

    /// The Host of the request where the client's does not go on: the origin's own name stands in for one that nobody said, for HTTP/1.1 may
    /// not be spoken without it. (A program's request is looked at where it is written.)
    fn host_to_send(&self) -> Option<&str> {
        let origin = self.origin();
        let is_said = self.policy.task().is_none() && !self.request_to_origin().authority.host.is_empty();
        origin.host.as_deref().or_else(|| origin.host_without.as_deref().filter(|_| !is_said))
    }

    /// Is the origin told that its answer may have parts? A program says itself what it tells.
    fn speaks_esi(&self) -> bool {
        match self.policy {
            FetchPolicy::Builtin => {
                builtin_esi::pages(&self.site, (self.routed, &self.head.request()), &self.purpose) != EsiPages::None
            }
            FetchPolicy::Program(_) => false,
        }
    }

    /// Which codings what is fetched for many may come in. A page is looked through for parts as text, or in gzip.
    fn codings_asked(&self) -> Option<&str> {
        self.compression()?;
        match self.site.esi_pages(self.routed) {
            EsiPages::None => Some(&self.site.codings_asked),
            EsiPages::Surrogate | EsiPages::All => Some(ContentCoding::Gzip.name()),
        }
    }

    /// Does nothing follow on the origin's connection?
    pub(super) fn is_last(&self) -> bool {
        let is_program_s = matches!(self.policy, FetchPolicy::Program(_));
        is_last(&self.purpose, is_program_s, self.head.fields())
    }

    /// Whose connection it is, for origins that want a PROXY header. What is fetched for many is nobody's, where Varnish names
    /// who caused it.
    pub(super) fn parties(&self) -> Option<Parties> {
        let names_cause = self.site.settings.names_cause_of_shared_fetch();
        let task = self.policy.task().filter(|task| task.is_pass || names_cause)?;
        let addresses = &task.made_for.addresses;
        Some(Parties { source: addresses.client, destination: addresses.server })
    }

    /// Reply: what becomes of a final answer.
    pub(super) fn judge(&mut self, reply: OriginReply) -> FetchVerdict {
        let is_large = |length| self.core.shared.cache.is_to_be_sliced(length);
        self.ranges_tag = reply
            .body
            .length()
            .filter(|&length| is_large(length))
            .and_then(|_| slice_manifest::ranges_tag(&reply.head));
        match self.policy {
            FetchPolicy::Builtin => builtin_steps::judge(self, reply),
            FetchPolicy::Program(_) => program_steps::judge(self, reply),
        }
    }

    /// The same where no final answer came, or its body broke off before anybody saw anything of it.
    pub(super) fn judge_broken(&mut self, client: &mut ClientLink<'_>, broken: Broken) -> FetchVerdict {
        match self.policy {
            FetchPolicy::Builtin => FetchVerdict::Fail(broken),
            FetchPolicy::Program(_) => program_steps::judge_broken(self, client, broken),
        }
    }

    /// One more time from the start.
    pub(super) fn note_again(&mut self) {
        match self.policy {
            FetchPolicy::Builtin => {}
            FetchPolicy::Program(_) => program_steps::note_again(self),
        }
    }

    /// Fill: how the answer is described to who waits, and what is stored of it, under which key and for how long. The error
    /// is a failure that is better than the answer.
    pub(super) fn landing(
        &self,
        settled: &Settled,
        ticket: &mut Ticket,
        notes: Option<&FetchNotes>,
    ) -> Result<Landing, Failure> {
        match &settled.ruling {
            Ruling::Rules(storable) => builtin_steps::landing(self, settled, storable, ticket, notes),
            &Ruling::Program { keeping, lifetimes } => {
                Ok(program_answer::landing(self, settled, (keeping, lifetimes), ticket, notes))
            }
        }
    }

    /// How an answer is described that is passed.
    pub(crate) fn describe_passed(&self, head: &mut ResponseHead) {
        if matches!(self.policy, FetchPolicy::Builtin) {
            builtin_steps::say_selection(self, head);
        }
    }

    /// What an answer that is passed changes of what is stored: by RFC 9111 it may freshen or invalidate, in Varnish nothing does
    /// but the program. Returns the number under which the answer itself may be stored, if RFC 9111 says whether it may.
    pub(crate) fn change_stored(&self, settled: &Settled, began: Began) -> Option<Began> {
        match self.policy {
            FetchPolicy::Builtin => Some(builtin_steps::change_stored(self, settled, began)),
            FetchPolicy::Program(_) => None,
        }
    }

    /// The number of the last transaction to the origin, where they have any.
    pub(crate) fn xid(&self) -> Option<u64> {
        self.policy.task().map(|task| task.xid.get())
    }

    /// Is it nobody's wish any more when all who waited have left? What a program does about an answer may be meant for more
    /// than who asked, such as a mark that the next requests meet, and a body that is kept is there for whoever asks
    /// next: as in Varnish its fetch goes on to its end.
    pub(super) fn ends_with_its_readers(&self) -> bool {
        matches!(self.policy, FetchPolicy::Builtin)
    }

    /// By whose word the slices of a body are asked for that this fetch brought. `None`: by the built-in policy's.
    pub(super) fn slice_program(&self) -> Option<Rc<SliceProgram>> {
        let (task, of) = (self.policy.task()?, BereqOf::of(false, &self.site));
        Some(SliceProgram::new(Rc::clone(&task.made_for), (&task.original.request(), None), of))
    }
}
