//! A head that a policy changes without copying it: the fields as they are, and a short list of what was set, added
//! and unset since.
//!
//! A name that stands in the list hides all lines of that name below it. Texts live as long as the scope in which the
//! policy runs; when it has run, whoever needs the head afterwards takes a copy.

use std::cell::{Cell, RefCell};

use message::{FieldName, Fields, FieldsView};
use smallvec::SmallVec;

use crate::policy::Seen;

/// A field's name, known or not, as the list keeps it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name<'a> {
    pub(crate) known: FieldName,
    pub(crate) text: &'a [u8],
}

impl<'a> Name<'a> {
    #[cfg(test)]
    pub(crate) fn of(text: &'a [u8]) -> Name<'a> {
        Name { known: FieldName::classify(text), text }
    }

    #[inline]
    fn is(self, known: FieldName, text: &[u8]) -> bool {
        self.known == known && (known != FieldName::Other || self.text.eq_ignore_ascii_case(text))
    }
}

/// One line that was set, or (`None`) the mark that a name was unset.
#[derive(Clone, Copy, Debug)]
struct Edit<'a> {
    name: Name<'a>,
    value: Option<&'a [u8]>,
}

/// Names that a usual policy edits in one head.
const EDITS_USUAL: usize = 8;

#[derive(Debug)]
pub(crate) struct EditedHead<'a> {
    base: Cell<FieldsView<'a>>,
    /// The names of the base.
    seen: Cell<Seen>,
    edits: RefCell<SmallVec<[Edit<'a>; EDITS_USUAL]>>,
    /// Their names: most questions are about others.
    edited: Cell<Seen>,
}

impl<'a> EditedHead<'a> {
    pub(crate) fn new(base: FieldsView<'a>) -> EditedHead<'a> {
        let (base, seen) = (Cell::new(base), Cell::new(Seen::of(base)));
        EditedHead { base, seen, edits: RefCell::default(), edited: Cell::new(Seen::NONE) }
    }

    /// Forgets all edits and begins anew with these fields.
    pub(crate) fn reset(&self, base: FieldsView<'a>) {
        self.base.set(base);
        self.seen.set(Seen::of(base));
        self.edits.borrow_mut().clear();
        self.edited.set(Seen::NONE);
    }

    /// Was one of these fields set or added?
    pub(crate) fn sets_any(&self, names: Seen) -> bool {
        self.edits.borrow().iter().any(|edit| edit.value.is_some() && names.has(edit.name.known))
    }

    pub(crate) fn is_edited(&self) -> bool {
        !self.edits.borrow().is_empty()
    }

    /// The first line of a name.
    #[inline]
    pub(crate) fn first(&self, name: Name<'_>) -> Option<&'a [u8]> {
        if self.edited.get().has(name.known)
            && let Some(edit) = self.edits.borrow().iter().find(|edit| edit.name.is(name.known, name.text))
        {
            return edit.value;
        }
        if !self.seen.get().has(name.known) {
            return None;
        }
        self.base.get().get_named(name.known, name.text)
    }

    /// Every line of a name, in order.
    pub(crate) fn lines(&self, name: Name<'_>, each: &mut dyn FnMut(&'a [u8])) {
        if self.hides(name) {
            let edits: SmallVec<[Edit<'a>; EDITS_USUAL]> = self.edits.borrow().clone();
            let of_name = edits.iter().filter(|edit| edit.name.is(name.known, name.text));
            of_name.filter_map(|edit| edit.value).for_each(each);
            return;
        }
        self.base.get().get_all_named(name.text).for_each(each);
    }

    fn hides(&self, name: Name<'_>) -> bool {
        self.edited.get().has(name.known) && self.edits.borrow().iter().any(|edit| edit.name.is(name.known, name.text))
    }

    /// In place of all lines of the name.
    pub(crate) fn set(&self, name: Name<'a>, value: &'a [u8]) {
        self.put(Edit { name, value: Some(value) });
    }

    #[inline]
    fn put(&self, edit: Edit<'a>) {
        let mut edits = self.edits.borrow_mut();
        let edited = self.edited.get();
        if !edited.has(edit.name.known) {
            self.edited.set(edited.with(edit.name.known));
            return edits.push(edit);
        }
        let is_same = |other: &Edit<'a>| other.name.is(edit.name.known, edit.name.text);
        match edits.iter().position(is_same) {
            None => edits.push(edit),
            Some(at) => {
                edits[at] = edit;
                if edits[at + 1..].iter().any(is_same) {
                    let mut place = 0;
                    edits.retain(|other| {
                        place += 1;
                        place <= at + 1 || !is_same(other)
                    });
                }
            }
        }
    }

    /// Behind the lines of the name that are there.
    pub(crate) fn add(&self, name: Name<'a>, value: &'a [u8]) {
        let is_hidden = self.hides(name);
        let mut edits = self.edits.borrow_mut();
        if !is_hidden {
            let below = self.base.get().get_all_named(name.text);
            edits.extend(below.map(|line| Edit { name, value: Some(line) }));
            self.edited.set(self.edited.get().with(name.known));
        }
        let edit = Edit { name, value: Some(value) };
        // The mark of what was unset stands alone.
        match edits.iter().position(|edit| edit.value.is_none() && edit.name.is(name.known, name.text)) {
            Some(mark) => edits[mark] = edit,
            None => edits.push(edit),
        }
    }

    pub(crate) fn unset(&self, name: Name<'a>) {
        let is_below = self.seen.get().has(name.known) && self.base.get().get_named(name.known, name.text).is_some();
        if is_below {
            return self.put(Edit { name, value: None });
        }
        if !self.edited.get().has(name.known) {
            return;
        }
        let mut edits = self.edits.borrow_mut();
        if edits.iter().any(|edit| edit.name.is(name.known, name.text)) {
            edits.retain(|edit| !edit.name.is(name.known, name.text));
        }
    }

    /// Every line as it stands now: what was not touched in its place, then what was set.
    pub(crate) fn each(&self, mut each: impl FnMut(FieldName, &'a [u8], &'a [u8])) {
        let (edits, edited) = (self.edits.borrow(), self.edited.get());
        for field in self.base.get().iter() {
            if !edited.has(field.name) || !edits.iter().any(|edit| edit.name.is(field.name, field.name_text)) {
                each(field.name, field.name_text, field.value);
            }
        }
        for edit in edits.iter() {
            if let Some(value) = edit.value {
                each(edit.name.known, edit.name.text, value);
            }
        }
    }

    /// A copy of the head as it stands now.
    pub(crate) fn to_fields(&self) -> Fields {
        let mut fields = Fields::default();
        self.each(|_, name, value| fields.push_named(name, value));
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> Fields {
        let mut fields = Fields::default();
        for (name, value) in [("Host", "a"), ("x-own", "1"), ("Cookie", "c"), ("X-Own", "2")] {
            fields.push_named(name.as_bytes(), value.as_bytes());
        }
        fields
    }

    fn check(edit: impl Fn(&EditedHead<'_>), expect: &str) {
        let base = base();
        let head = EditedHead::new(base.view());
        edit(&head);
        let mut all = Vec::new();
        head.each(|_, name, value| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            all.push(format!("{}={}", text(name).to_lowercase(), text(value)));
        });
        assert_eq!(all.join(" "), expect);
    }

    #[test]
    fn what_is_not_touched_stays_in_its_place() {
        check(|_| {}, "host=a x-own=1 cookie=c x-own=2");
        check(|head| head.unset(Name::of(b"COOKIE")), "host=a x-own=1 x-own=2");
        check(|head| head.unset(Name::of(b"absent")), "host=a x-own=1 cookie=c x-own=2");
    }

    #[test]
    fn setting_replaces_every_line_and_adding_none() {
        check(|head| head.set(Name::of(b"X-OWN"), b"3"), "host=a cookie=c x-own=3");
        check(|head| head.add(Name::of(b"X-Own"), b"3"), "host=a cookie=c x-own=1 x-own=2 x-own=3");
        check(
            |head| {
                head.unset(Name::of(b"Host"));
                head.add(Name::of(b"host"), b"c");
                head.add(Name::of(b"host"), b"d");
                assert_eq!(head.first(Name::of(b"HOST")), Some(&b"c"[..]));
            },
            "x-own=1 cookie=c x-own=2 host=c host=d",
        );
        check(
            |head| {
                head.add(Name::of(b"X-Own"), b"3");
                head.set(Name::of(b"x-own"), b"4");
            },
            "host=a cookie=c x-own=4",
        );
        check(
            |head| {
                head.add(Name::of(b"X-Own"), b"3");
                head.unset(Name::of(b"x-own"));
                head.unset(Name::of(b"x-other"));
                assert_eq!(head.first(Name::of(b"x-own")), None);
            },
            "host=a cookie=c",
        );
        check(
            |head| {
                head.unset(Name::of(b"Host"));
                head.set(Name::of(b"Host"), b"b");
                head.add(Name::of(b"host"), b"c");
            },
            "x-own=1 cookie=c x-own=2 host=b host=c",
        );
    }

    #[test]
    fn reading_sees_the_edits() {
        let base = base();
        let head = EditedHead::new(base.view());
        assert_eq!(head.first(Name::of(b"x-OWN")), Some(&b"1"[..]));
        head.set(Name::of(b"Cookie"), b"");
        assert_eq!(head.first(Name::of(b"cookie")), Some(&b""[..]));
        head.unset(Name::of(b"cookie"));
        assert_eq!(head.first(Name::of(b"cookie")), None);
        let mut lines = Vec::new();
        head.lines(Name::of(b"x-own"), &mut |line| lines.push(line));
        assert_eq!(lines, [b"1", b"2"]);
        head.reset(base.view());
        assert!(!head.is_edited() && head.first(Name::of(b"cookie")) == Some(b"c"));
    }
}
