//! Synth: makes the answer that a step asked for, or has the program make one.

use message::{FieldName, Fields, Status};
use wire::{Content, Refusal, leading_blanks};

use crate::answer_head::AnswerHead;
use crate::body::BodySource;
use crate::core::Core;
use crate::error_note::ErrorNote;
use crate::outgoing::Outgoing;
use crate::peer::Peer;
use crate::policy_steps;
use crate::records::{RecordKind, request_records};
use crate::stored_head;
use crate::stub_status;
use crate::transaction::error_text::{self, ErrorText, Reader};
use crate::transaction::synth::{Also, Synth, Text, VCL_FAILED};
use crate::transaction::{Step, Transaction, error_page};
use crate::vcl_story::client_steps;

pub(crate) fn run(tx: &mut Transaction, synth: Synth) -> Step {
    tx.error_note = synth.note().map(Box::new);
    tx.outcome.verdict = synth.verdict;
    tx.outcome.why = synth.token;
    // After a failure of the program nothing is known of what it wanted, neither with the connection nor with the request.
    let has_failed = synth.token == VCL_FAILED;
    tx.persistent &= !synth.close && !has_failed;
    if has_failed {
        client_steps::roll_back(tx);
    }
    if let Some(step) = policy_steps::synthesize(tx, &synth) {
        return step;
    }
    if let Some(records) = tx.policy.records() {
        records.put(RecordKind::Error, &[synth.token.as_bytes()]);
        request_records::response(records, vcl::Message::Resp, (synth.status, None), std::iter::empty());
    }
    error_page::answer(tx, synth)
}

/// The answer, as deliver wants it.
pub(crate) fn deliver(tx: &Transaction, synth: Synth, head_only: bool) -> Outgoing {
    let request = tx.head.request();
    let reader = Reader::of(&tx.site.settings, &tx.client, request.fields, tx.error_note.as_deref());
    synth.into_outgoing(&tx.core, reader, head_only)
}

impl Synth {
    /// The whole answer, for this reader.
    pub(crate) fn into_outgoing(self, core: &Core, reader: Reader, head_only: bool) -> Outgoing {
        let mut head = self.head(core);
        let text = self.body(core, reader).map_or(String::new(), |ErrorText { kind, text }| {
            head.fields.push(FieldName::ContentType, &*kind);
            head.fields.push_named(b"X-Content-Type-Options", b"nosniff");
            text
        });
        self.push_rest(&mut head.fields, core);
        let content = Content::Length(text.len() as u64);
        match head_only || text.is_empty() {
            true => Outgoing::without_body(head, content),
            false => Outgoing::new(head, content, BodySource::Bytes(text.into())),
        }
    }

    /// The status, and the fields before those of the body.
    pub(crate) fn head(&self, core: &Core) -> AnswerHead {
        let mut head = AnswerHead::new(Status(self.status));
        head.fields.push(FieldName::Date, stored_head::date(core.now()));
        match &self.also {
            Also::Nothing => {}
            Also::Allow(methods) => head.fields.push(FieldName::Allow, methods),
            Also::Location(location) => head.fields.push(FieldName::Location, location),
            Also::RetryAfter(seconds) => head.fields.push_named(b"Retry-After", seconds.to_string().as_bytes()),
            Also::Challenge => {
                let realm = &core.site_ref().settings.forward.realm;
                let challenge = format!("Basic realm=\"{realm}\", charset=\"UTF-8\"");
                head.fields.push(FieldName::ProxyAuthenticate, challenge);
            }
            Also::Login(realm) => {
                head.fields
                    .push_named(b"WWW-Authenticate", format!("Basic realm=\"{realm}\", charset=\"UTF-8\"").as_bytes());
            }
            Also::Unsatisfied(length) => head.push_unsatisfied(*length),
        }
        head
    }

    /// The fields behind those of the body.
    pub(crate) fn push_rest(&self, fields: &mut Fields, core: &Core) {
        if !self.may_be_stored {
            fields.push(FieldName::CacheControl, "no-store");
        }
        let name = &core.site_ref().settings.server_name;
        fields.push(FieldName::CacheStatus, format!("{name}; detail={}", self.token));
    }

    fn body(&self, core: &Core, reader: Reader) -> Option<ErrorText> {
        match &self.text {
            Text::Detail(text) | Text::Sentence(text) if text.is_empty() => None,
            Text::Detail(text) => Some(error_text::said_to(reader, self.status, text)),
            Text::Sentence(text) => Some(error_text::said_to_all(self.status, text)),
            Text::Exact(text) => Some(ErrorText { kind: "application/octet-stream".into(), text: text.to_string() }),
            Text::Page { text, .. } if text.is_empty() => None,
            Text::Page { kind, text } => Some(ErrorText { kind: kind.to_string().into(), text: text.to_string() }),
            Text::StubStatus => Some(ErrorText { kind: "text/plain".into(), text: stub_status::text(core) }),
        }
    }
}

/// The answer to bytes that are no acceptable request, and what the log says of it.
pub(crate) fn answer_refusal(
    core: &Core,
    peer: Peer,
    bytes: &[u8],
    refusal: &Refusal,
) -> (Outgoing, Option<ErrorNote>) {
    let synth = Synth::refused(refusal);
    let note = synth.note();
    let reader = Reader::of_refused(&core.site_ref().settings, peer, bytes, note.as_ref());
    let asked = &bytes[leading_blanks(bytes)..];
    (synth.into_outgoing(core, reader, asked.starts_with(b"HEAD ")), note)
}
