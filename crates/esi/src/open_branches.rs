//! What has branches and no end yet: `<esi:try>` and `<esi:choose>`.

use crate::document::{Piece, When};
use crate::esi_variables::{VariableName, Variables};
use crate::tag::TagName;
use crate::when_test::holds;

#[derive(Debug)]
pub(crate) enum OpenBranches {
    Try { attempt: Vec<Piece>, except: Vec<Piece>, within: Within },
    Choose { whens: Vec<When>, otherwise: Vec<Piece>, within: Within },
}

/// Where the text is that comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Within {
    /// Between the branches: nothing of that goes out.
    #[default]
    Neither,
    /// `<esi:attempt>`, or the newest `<esi:when>`.
    First,
    /// `<esi:except>`, or `<esi:otherwise>`.
    Last,
}

/// Says nothing: for a look whether a test is one.
struct Silent;

impl Variables for Silent {
    fn value(&self, _: VariableName, _: Option<&[u8]>) -> Option<Vec<u8>> {
        None
    }
}

impl OpenBranches {
    /// What a tag of this name begins, if it begins any.
    pub(crate) fn begun_by(name: TagName) -> Option<OpenBranches> {
        let within = Within::default();
        match name {
            TagName::Try => Some(OpenBranches::Try { attempt: Vec::new(), except: Vec::new(), within }),
            TagName::Choose => Some(OpenBranches::Choose { whens: Vec::new(), otherwise: Vec::new(), within }),
            _ => None,
        }
    }

    /// Is a tag of this name one of its own?
    pub(crate) fn has(&self, name: TagName) -> bool {
        match self {
            OpenBranches::Try { .. } => matches!(name, TagName::Try | TagName::Attempt | TagName::Except),
            OpenBranches::Choose { .. } => matches!(name, TagName::Choose | TagName::When | TagName::Otherwise),
        }
    }

    /// What is wrong with a tag of this name where there is none.
    pub(crate) const fn not_open(name: TagName) -> &'static str {
        match name {
            TagName::Choose | TagName::When | TagName::Otherwise => "ESI 1.0 <esi:choose> not open",
            _ => "ESI 1.0 <esi:try> not open",
        }
    }

    /// A branch begins or ends.
    pub(crate) fn turn(&mut self, name: TagName, is_end: bool, test: &[u8]) -> Result<(), &'static str> {
        let to = match name {
            _ if is_end => Within::Neither,
            TagName::Attempt | TagName::When => Within::First,
            _ => Within::Last,
        };
        let (OpenBranches::Try { within, .. } | OpenBranches::Choose { within, .. }) = self;
        *within = Within::Neither;
        if let (OpenBranches::Choose { whens, .. }, Within::First) = (&mut *self, to) {
            holds(test, &Silent)?;
            whens.push(When { test: test.to_vec(), pieces: Vec::new() });
        }
        let (OpenBranches::Try { within, .. } | OpenBranches::Choose { within, .. }) = self;
        *within = to;
        Ok(())
    }

    /// Where pieces go. `None`: nowhere.
    pub(crate) fn pieces(&mut self) -> Option<&mut Vec<Piece>> {
        match self {
            OpenBranches::Try { within: Within::Neither, .. }
            | OpenBranches::Choose { within: Within::Neither, .. } => None,
            OpenBranches::Try { attempt, within: Within::First, .. } => Some(attempt),
            OpenBranches::Try { except, .. } => Some(except),
            OpenBranches::Choose { whens, within: Within::First, .. } => whens.last_mut().map(|when| &mut when.pieces),
            OpenBranches::Choose { otherwise, .. } => Some(otherwise),
        }
    }

    pub(crate) fn into_piece(self) -> Piece {
        match self {
            OpenBranches::Try { attempt, except, .. } => Piece::Try { attempt, except },
            OpenBranches::Choose { whens, otherwise, .. } => Piece::Choose { whens, otherwise },
        }
    }

    pub(crate) const fn without_end(&self) -> &'static str {
        match self {
            OpenBranches::Try { .. } => "ESI 1.0 <esi:try> has no end",
            OpenBranches::Choose { .. } => "ESI 1.0 <esi:choose> has no end",
        }
    }
}
