//! Annotations in the history: a restart, a reload, purges, an address that is left out or comes back, an operator's order or note.

use crate::limits::ANNOTATION_BYTES_MAX;

/// What an annotation is about. The number stands in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnnotationKind {
    Restart = 1,
    Reload = 2,
    Purge = 3,
    /// An address of an origin, or a backend, gets no requests any more.
    Out = 4,
    Back = 5,
    /// An operator has said so.
    Order = 6,
    /// An operator has written it: something that larder does not see.
    Note = 7,
}

impl AnnotationKind {
    const ALL: [AnnotationKind; 7] = [
        AnnotationKind::Restart,
        AnnotationKind::Reload,
        AnnotationKind::Purge,
        AnnotationKind::Out,
        AnnotationKind::Back,
        AnnotationKind::Order,
        AnnotationKind::Note,
    ];

    pub fn of_number(number: u64) -> Option<AnnotationKind> {
        AnnotationKind::ALL.into_iter().find(|kind| *kind as u64 == number)
    }

    /// The same again is counted. Each start is told: figures begin at nothing there.
    pub fn is_counted(self) -> bool {
        self != AnnotationKind::Restart
    }

    pub const fn word(self) -> &'static str {
        match self {
            AnnotationKind::Restart => "restart",
            AnnotationKind::Reload => "reload",
            AnnotationKind::Purge => "purge",
            AnnotationKind::Out => "out",
            AnnotationKind::Back => "back",
            AnnotationKind::Order => "order",
            AnnotationKind::Note => "note",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// When it happened first and last, in seconds since 1970.
    pub at_s: u64,
    pub until_s: u64,
    pub kind: AnnotationKind,
    /// At most [`ANNOTATION_BYTES_MAX`] bytes.
    pub text: String,
    /// How often.
    pub count: u64,
}

impl Annotation {
    pub fn new(at_s: u64, kind: AnnotationKind, text: &str) -> Annotation {
        let end = text.floor_char_boundary(ANNOTATION_BYTES_MAX);
        Annotation { at_s, until_s: at_s, kind, text: text[..end].to_owned(), count: 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_two_letters() {
        let annotation = Annotation::new(1, AnnotationKind::Out, &"ä".repeat(200));
        assert!(
            annotation.text.len() <= ANNOTATION_BYTES_MAX && annotation.text.chars().all(|c| c == 'ä'),
            "{}",
            annotation.text
        );
    }

    #[test]
    fn a_kind_comes_back_from_its_number() {
        for kind in AnnotationKind::ALL {
            assert_eq!(AnnotationKind::of_number(kind as u64), Some(kind));
        }
        assert_eq!(AnnotationKind::of_number(0), None);
    }
}
