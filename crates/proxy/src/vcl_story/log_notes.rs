//! What the log line of a request says under a program beside the usual: the texts of `std.log`, and how long what was
//! fetched for it lives, and by which rule or statement.
//!
//! A request has none until there is something to note; a hit whose program logs nothing never has. The fetch of a miss
//! or a pass writes into its request's.

use std::cell::RefCell;
use std::rc::Rc;

use rules::Facts;
use rules::lifetimes::{Announced, Bounds, LifetimeRule, Stage, judge};
use vcl::Sources;
use vcl::source_files::Span;

use crate::fetch::settled::Keeping;
use crate::policy_columns::{Kept, Life, LoggedTexts};

/// What decided about a lifetime.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum DecidedBy {
    Rule(LifetimeRule),
    /// A statement of the program, or of builtin.vcl.
    Statement(Span),
    /// `return (pass(…))`.
    Verdict,
    /// What vcl_backend_error makes has no life of its own.
    Error,
    /// A pass is for one client.
    Pass,
    /// A field of the response itself, by this name.
    Response(&'static str),
}

/// The same for everything about a response that is decided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LifeBy {
    pub(crate) ttl: DecidedBy,
    pub(crate) grace: DecidedBy,
    pub(crate) keep: DecidedBy,
    /// Why it is not kept, where it is not.
    pub(crate) uncacheable: Option<DecidedBy>,
}

impl LifeBy {
    pub(crate) const ERROR: LifeBy =
        LifeBy { ttl: DecidedBy::Error, grace: DecidedBy::Error, keep: DecidedBy::Error, uncacheable: None };

    pub(crate) const PASS: LifeBy =
        LifeBy { ttl: DecidedBy::Pass, grace: DecidedBy::Pass, keep: DecidedBy::Pass, uncacheable: None };

    pub(crate) const VERDICT: LifeBy = LifeBy {
        ttl: DecidedBy::Verdict,
        grace: DecidedBy::Verdict,
        keep: DecidedBy::Verdict,
        uncacheable: Some(DecidedBy::Verdict),
    };

    pub(crate) fn announced(announced: &Announced) -> LifeBy {
        LifeBy {
            ttl: DecidedBy::Rule(announced.ttl_by),
            grace: DecidedBy::Rule(announced.grace_by),
            keep: DecidedBy::Rule(LifetimeRule::DefaultKeep),
            uncacheable: None,
        }
    }
}

/// For the log.
pub(crate) fn life(lifetimes: &rules::Lifetimes, by: &LifeBy, keeping: Keeping, sources: &Sources) -> Life {
    let text = |by: DecidedBy| -> Box<str> {
        match by {
            DecidedBy::Rule(rule) => rule.name().into(),
            DecidedBy::Statement(at) => format!("{}:{}", sources.file(at.file).name, sources.position(at).line).into(),
            DecidedBy::Verdict => "return".into(),
            DecidedBy::Error => "vcl_backend_error".into(),
            DecidedBy::Pass => "pass".into(),
            DecidedBy::Response(field) => field.into(),
        }
    };
    let is_over = judge(&lifetimes.facts(&Facts::default()), lifetimes.keep_ms, 0, &Bounds::default()) == Stage::Over;
    Life {
        ttl_ms: lifetimes.ttl_ms,
        grace_ms: lifetimes.grace_ms,
        keep_ms: lifetimes.keep_ms,
        ttl_by: text(by.ttl),
        grace_by: text(by.grace),
        keep_by: text(by.keep),
        kept: match keeping {
            Keeping::Store if is_over => Kept::No,
            Keeping::Store => Kept::Stored,
            Keeping::HitForMiss => Kept::HitForMiss,
            Keeping::HitForPass => Kept::HitForPass,
            Keeping::Not => Kept::No,
        },
        kept_by: match keeping {
            Keeping::Store if is_over => Some(text(by.ttl)),
            _ => by.uncacheable.map(text),
        },
    }
}

#[derive(Debug, Default)]
pub(crate) struct LogNotes {
    texts: RefCell<LoggedTexts>,
    life: RefCell<Option<Life>>,
}

impl LogNotes {
    pub(crate) fn note_text(&self, text: &[u8]) {
        self.texts.borrow_mut().push(text);
    }

    /// Of what was fetched last: a retry or a restart brings another.
    pub(crate) fn note_life(&self, life: Life) {
        *self.life.borrow_mut() = Some(life);
    }

    /// For as long as the line is written.
    pub(crate) fn with<R>(&self, show: impl FnOnce(&LoggedTexts, Option<&Life>) -> R) -> R {
        show(&self.texts.borrow(), self.life.borrow().as_ref())
    }
}

/// A request's, if it has any.
pub(crate) fn with<R>(notes: Option<&Rc<LogNotes>>, show: impl FnOnce(Option<&LoggedTexts>, Option<&Life>) -> R) -> R {
    match notes {
        None => show(None, None),
        Some(notes) => notes.with(|texts, life| show(Some(texts), life)),
    }
}
