//! The states of a stream (RFC 9113 §5.1) and one table of the steps between them.
//!
//! Streams that are reserved by a push are missing: neither side of ours pushes, and none may push to us. The machine of a
//! connection asks it what may still come, and what may still be sent.

/// RFC 9113 §5.1, figure 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum StreamState {
    Idle,
    Open,
    /// We have sent all that we will.
    HalfClosedLocal,
    /// The peer has.
    HalfClosedRemote,
    Closed,
}

/// What happens to a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum StreamStep {
    /// The first HEADERS was received, or sent.
    Opened,
    /// The peer has sent END_STREAM.
    RemoteEnded,
    /// We have sent END_STREAM.
    LocalEnded,
    /// RST_STREAM was received, or sent.
    Reset,
}

/// One legal step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamEdge {
    pub from: StreamState,
    pub step: StreamStep,
    pub to: StreamState,
}

const fn edge(from: StreamState, step: StreamStep, to: StreamState) -> StreamEdge {
    StreamEdge { from, step, to }
}

/// The table: all that may ever happen.
pub const STREAM_EDGES: &[StreamEdge] = {
    use StreamState::*;
    use StreamStep::*;
    &[
        edge(Idle, Opened, Open),
        edge(Open, RemoteEnded, HalfClosedRemote),
        edge(Open, LocalEnded, HalfClosedLocal),
        edge(HalfClosedRemote, LocalEnded, Closed),
        edge(HalfClosedLocal, RemoteEnded, Closed),
        edge(Open, Reset, Closed),
        edge(HalfClosedRemote, Reset, Closed),
        edge(HalfClosedLocal, Reset, Closed),
    ]
};

const STEPS_COUNT: usize = StreamStep::Reset as usize + 1;
const STATES_COUNT: usize = StreamState::Closed as usize + 1;

/// The table by state and step, made from [`STREAM_EDGES`] by the compiler.
static AFTER: [[Option<StreamState>; STEPS_COUNT]; STATES_COUNT] = {
    let mut after = [[None; STEPS_COUNT]; STATES_COUNT];
    let mut at = 0;
    while at < STREAM_EDGES.len() {
        let StreamEdge { from, step, to } = STREAM_EDGES[at];
        assert!(after[from as usize][step as usize].is_none(), "one edge for each step");
        after[from as usize][step as usize] = Some(to);
        at += 1;
    }
    after
};

impl StreamState {
    /// The state behind the step; `None` where there is none.
    #[inline]
    pub fn after(self, step: StreamStep) -> Option<StreamState> {
        AFTER[self as usize][step as usize]
    }

    /// May DATA and trailers still come?
    #[inline]
    pub fn may_receive(self) -> bool {
        matches!(self, StreamState::Open | StreamState::HalfClosedLocal)
    }

    /// May HEADERS and DATA still be sent?
    #[inline]
    pub fn may_send(self) -> bool {
        matches!(self, StreamState::Open | StreamState::HalfClosedRemote)
    }
}

#[cfg(test)]
mod tests {
    use super::StreamState::*;
    use super::StreamStep::*;
    use super::*;

    fn check(steps: &[StreamStep], expect: Option<StreamState>) {
        let end = steps.iter().try_fold(Idle, |state, step| state.after(*step));
        assert_eq!(end, expect, "{steps:?}");
    }

    #[test]
    fn a_stream_ends_when_both_sides_have() {
        check(&[Opened, RemoteEnded, LocalEnded], Some(Closed));
        check(&[Opened, LocalEnded, RemoteEnded], Some(Closed));
        check(&[Opened, Reset], Some(Closed));
    }

    #[test]
    fn nothing_happens_twice_and_nothing_before_the_head() {
        for steps in [
            &[RemoteEnded][..],
            &[LocalEnded],
            &[Reset],
            &[Opened, Opened],
            &[Opened, RemoteEnded, RemoteEnded],
            &[Opened, LocalEnded, LocalEnded],
            &[Opened, Reset, LocalEnded],
            &[Opened, Reset, Reset],
        ] {
            check(steps, None);
        }
    }

    #[test]
    fn each_side_is_closed_by_itself() {
        for (state, may_receive, may_send) in [
            (Idle, false, false),
            (Open, true, true),
            (HalfClosedLocal, true, false),
            (HalfClosedRemote, false, true),
            (Closed, false, false),
        ] {
            assert_eq!((state.may_receive(), state.may_send()), (may_receive, may_send), "{state:?}");
        }
    }
}
