//! A stored response, or one that is being stored, as `obj` and `obj_stale` show it.

use std::sync::Arc;

use cache::{EsiPage, Headed, Now, Object};
use message::{FieldsView, ResponseHead, Status};
use rules::{Facts, Lifetimes};

#[derive(Clone, Copy)]
pub(crate) struct StoredView<'a> {
    pub(crate) status: Status,
    pub(crate) fields: FieldsView<'a>,
    pub(crate) hits: u32,
    pub(crate) lifetimes: Lifetimes,
    pub(crate) resident_ms: u64,
    /// What its sender calls the status.
    pub(crate) reason: Option<&'a [u8]>,
    /// It is passed, or may not be stored.
    pub(crate) is_uncacheable: bool,
    /// Still what is stored.
    pub(crate) is_live: bool,
    /// Something is included in it.
    pub(crate) can_esi: bool,
}

impl<'a> StoredView<'a> {
    pub(crate) fn of(object: &'a Arc<Object>, now: Now) -> StoredView<'a> {
        StoredView {
            status: object.status(),
            reason: object.reason(),
            is_uncacheable: false,
            fields: object.fields(),
            hits: object.hits(),
            lifetimes: object.lifetimes(now),
            resident_ms: object.resident_ms(now),
            is_live: object.is_live(),
            can_esi: object.esi().is_some(),
        }
    }

    /// A response that has just come: the one that the request caused.
    pub(crate) fn arriving(head: &'a ResponseHead, facts: Option<&Facts>) -> StoredView<'a> {
        StoredView {
            status: head.status,
            reason: head.reason.as_deref(),
            fields: head.fields.view(),
            hits: 0,
            lifetimes: facts.map(|facts| Lifetimes::of(facts, 0, 0)).unwrap_or_default(),
            resident_ms: 0,
            is_uncacheable: facts.is_none(),
            is_live: facts.is_some(),
            can_esi: false,
        }
    }

    /// The same of what something is included in.
    pub(crate) fn with_page(self, page: Option<&EsiPage>) -> StoredView<'a> {
        StoredView { can_esi: page.is_some(), ..self }
    }

    pub(crate) fn of_headed(headed: &'a Headed, now: Now) -> StoredView<'a> {
        let resident_ms = now.mono_ms.saturating_sub(headed.received.mono_ms);
        StoredView {
            lifetimes: headed.facts.as_ref().map(|facts| Lifetimes::of(facts, 0, resident_ms)).unwrap_or_default(),
            resident_ms,
            hits: headed.hits,
            can_esi: headed.esi.is_some(),
            ..StoredView::arriving(&headed.head, headed.facts.as_ref())
        }
    }
}
