//! How long a stored response lives: as its policy decided, or as its own fields say.

use rules::lifetimes::Stage;
use rules::{Freshness, Lifetimes, RequestDirectives};

use crate::by_program::{MarkKind, stage};
use crate::lookup_options::LookupOptions;
use crate::moment::Now;
use crate::object::Object;

impl Object {
    /// How long it has been here (RFC 9111 §4.2.3: resident_time).
    #[inline]
    pub fn resident_ms(&self, now: Now) -> u64 {
        now.mono_ms.saturating_sub(self.received.mono_ms)
    }

    /// What its Age field says.
    pub fn age_s(&self, now: Now) -> u64 {
        rules::freshness::age_s(&self.facts(), self.resident_ms(now))
    }

    /// May it be used as it is? (RFC 9111 §4.2)
    #[inline]
    pub fn freshness(&self, now: Now, directives: &RequestDirectives) -> Freshness {
        if self.must_be_confirmed(now) {
            return Freshness::Validate;
        }
        rules::freshness::judge(&self.facts(), self.resident_ms(now), directives)
    }

    /// The lifetimes that a program gave it, or that its own fields did, as they are at this moment.
    pub fn lifetimes(&self, now: Now) -> Lifetimes {
        let keep_ms = self.by_program().map_or(0, |policy| policy.keep_ms);
        Lifetimes::of(&self.facts(), keep_ms, self.resident_ms(now))
    }

    /// Did a program decide how long it lives?
    pub fn is_by_program(&self) -> bool {
        self.by_program().is_some()
    }

    pub(crate) fn mark(&self) -> Option<MarkKind> {
        self.by_program().and_then(|policy| policy.mark)
    }

    /// Where it stands by these lookup options, if a program decides.
    pub(crate) fn stage(&self, options: &LookupOptions, now: Now) -> Option<Stage> {
        let policy = self.by_program()?;
        let stage = stage(&self.facts(), policy.keep_ms, self.resident_ms(now), options);
        Some(match stage {
            Stage::Fresh | Stage::Grace if self.must_be_confirmed(now) => Stage::Keep,
            stage => stage,
        })
    }

    /// Others may have purged it unheard.
    #[inline]
    fn must_be_confirmed(&self, now: Now) -> bool {
        self.began() < now.confirmed_from
    }

    /// Has nobody a use for it any more, as its policy said?
    pub(crate) fn is_over(&self, now: Now) -> bool {
        self.stage(&LookupOptions::default(), now) == Some(Stage::Over)
    }
}
