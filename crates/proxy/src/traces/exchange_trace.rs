//! The place of an exchange in a trace: begun when its request has come, told to each origin that is asked for it.

use message::FieldsView;

use crate::traces::trace_ids::{SpanId, TraceDice, TraceId};
use crate::traces::trace_parent::{TraceParent, state_of};
use crate::traces::trace_settings::TraceSettings;

/// Of one exchange.
#[derive(Debug)]
pub(crate) struct ExchangeTrace {
    pub(crate) trace: TraceId,
    /// The span of whoever has asked for it.
    pub(crate) parent: Option<SpanId>,
    /// Its own.
    pub(crate) span: SpanId,
    /// It is told of, whatever becomes of it, and so may be what origins do for it.
    pub(crate) is_sampled: bool,
    /// What others who tell of this trace keep in it.
    pub(crate) state: Option<Box<[u8]>>,
}

/// What an origin is told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TraceForOrigin<'a> {
    pub(crate) of: &'a ExchangeTrace,
    /// The span of the question to it.
    pub(crate) span: SpanId,
}

impl ExchangeTrace {
    /// Goes on with the trace of its client, if that has one, and else starts one. Whether it is told of, only a client decides that is
    /// trusted: anyone else could fill a collector, or stay out of it.
    pub(crate) fn begin(
        settings: &TraceSettings,
        dice: &TraceDice,
        (fields, client_is_trusted): (FieldsView<'_>, bool),
    ) -> ExchangeTrace {
        let is_sampled = is_sampled(settings, dice, (fields, client_is_trusted));
        ExchangeTrace::of(dice, fields, is_sampled)
    }

    /// The same of what is over already, if it is told of. `stands_out`: it is, whether or not it is sampled.
    pub(crate) fn of_ended(
        settings: &TraceSettings,
        dice: &TraceDice,
        (fields, client_is_trusted): (FieldsView<'_>, bool),
        stands_out: bool,
    ) -> Option<ExchangeTrace> {
        let is_sampled = is_sampled(settings, dice, (fields, client_is_trusted));
        (is_sampled || stands_out).then(|| ExchangeTrace::of(dice, fields, is_sampled))
    }

    fn of(dice: &TraceDice, fields: FieldsView<'_>, is_sampled: bool) -> ExchangeTrace {
        let parent = TraceParent::of(fields);
        ExchangeTrace {
            trace: parent.map_or_else(|| dice.trace(), |parent| parent.trace),
            parent: parent.map(|parent| parent.span),
            span: dice.span(),
            is_sampled,
            // Without a parent it is about nothing (§4.2).
            state: parent.and_then(|_| state_of(fields)),
        }
    }

    /// Of what is asked for nobody in particular, and is told of nowhere.
    pub(crate) fn untold(dice: &TraceDice) -> ExchangeTrace {
        ExchangeTrace { trace: dice.trace(), parent: None, span: dice.span(), is_sampled: false, state: None }
    }
}

fn is_sampled(settings: &TraceSettings, dice: &TraceDice, (fields, client_is_trusted): (FieldsView<'_>, bool)) -> bool {
    match client_is_trusted.then(|| TraceParent::of(fields)).flatten() {
        Some(parent) => parent.is_sampled,
        None => dice.takes(settings.sample_millionths),
    }
}

impl TraceForOrigin<'_> {
    pub(crate) fn traceparent(&self) -> impl AsRef<[u8]> + use<> {
        TraceParent { trace: self.of.trace, span: self.span, is_sampled: self.of.is_sampled }.to_bytes()
    }

    pub(crate) fn tracestate(&self) -> Option<&[u8]> {
        self.of.state.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use message::Fields;

    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn begin(sample_millionths: u64, parent: &str, client_is_trusted: bool) -> ExchangeTrace {
        let mut fields = Fields::default();
        fields.push_named(b"traceparent", parent.as_bytes());
        fields.push_named(b"tracestate", b"a=1");
        let settings = TraceSettings { sample_millionths, ..TraceSettings::default() };
        ExchangeTrace::begin(&settings, &TraceDice::default(), (fields.view(), client_is_trusted))
    }

    fn told(trace: &ExchangeTrace) -> String {
        let told = TraceForOrigin { of: trace, span: trace.span }.traceparent();
        String::from_utf8(told.as_ref().to_vec()).unwrap()
    }

    #[test]
    fn the_trace_of_a_client_goes_on_under_a_span_of_ours() {
        let trace = begin(TraceSettings::WHOLE, PARENT, false);
        let told = told(&trace);
        assert!(told.starts_with(&PARENT[..36]) && told.ends_with("-01"), "{told}");
        assert_ne!(told[36..52], PARENT[36..52]);
        assert_eq!(trace.state.as_deref(), Some(&b"a=1"[..]));
    }

    #[test]
    fn what_is_malformed_is_replaced_and_its_state_with_it() {
        let trace = begin(0, &PARENT[1..], true);
        let told = told(&trace);
        assert!(told[3..35] != PARENT[3..35] && told.ends_with("-00"), "{told}");
        assert_eq!((trace.state, trace.parent), (None, None));
    }

    #[test]
    fn only_who_is_trusted_decides_what_is_told_of() {
        let unsampled = PARENT.replace("-01", "-00");
        assert!(begin(0, PARENT, true).is_sampled && !begin(0, PARENT, false).is_sampled);
        let whole = TraceSettings::WHOLE;
        assert!(!begin(whole, &unsampled, true).is_sampled && begin(whole, &unsampled, false).is_sampled);
    }
}
