//! A head that a program changes without copying it: the fields as they are, and a short list of what was set, added
//! and unset since.
//!
//! A name that stands in the list hides all lines of that name below it. Texts live as long as the scope in which the
//! policy runs; when it has run, whoever needs the head afterwards takes a copy.

use std::cell::{Cell, RefCell};

use message::{Field, FieldName, Fields, FieldsView};
use smallvec::SmallVec;
use wire::write_field;

use crate::field_set::FieldSet;
use crate::vcl_story::field_bits::{FieldBits, Name};

/// One line that was set, or (`None`) the mark that a name was unset.
#[derive(Clone, Copy, Debug)]
struct Edit<'a> {
    name: Name<'a>,
    value: Option<&'a [u8]>,
}

/// Names that a usual policy edits in one head.
const EDITS_USUAL: usize = 12;

#[derive(Debug)]
pub(crate) struct EditedHead<'a> {
    base: Cell<FieldsView<'a>>,
    /// The names of the base.
    seen: Cell<FieldBits>,
    edits: RefCell<SmallVec<[Edit<'a>; EDITS_USUAL]>>,
    /// Their names.
    edited: Cell<FieldBits>,
    /// The names of both: most questions are about others.
    either: Cell<FieldBits>,
    /// Those that may stand in the list more than once.
    several: Cell<FieldBits>,
}

impl<'a> EditedHead<'a> {
    pub(crate) fn new(base: FieldsView<'a>) -> EditedHead<'a> {
        let seen = FieldBits::of(base);
        EditedHead {
            base: Cell::new(base),
            seen: Cell::new(seen),
            edits: RefCell::default(),
            edited: Cell::new(FieldBits::NONE),
            either: Cell::new(seen),
            several: Cell::new(FieldBits::NONE),
        }
    }

    /// Forgets all edits and begins anew with these fields.
    pub(crate) fn reset(&self, base: FieldsView<'a>) {
        self.base.set(base);
        let seen = FieldBits::of(base);
        self.seen.set(seen);
        self.either.set(seen);
        self.edits.borrow_mut().clear();
        self.edited.set(FieldBits::NONE);
        self.several.set(FieldBits::NONE);
    }

    /// Was one of these fields set or added?
    pub(crate) fn sets_any(&self, names: FieldSet) -> bool {
        self.edits.borrow().iter().any(|edit| edit.value.is_some() && names.has(edit.name.known()))
    }

    pub(crate) fn is_edited(&self) -> bool {
        !self.edits.borrow().is_empty()
    }

    /// The first line of a name.
    #[inline(always)]
    pub(crate) fn first(&self, name: Name<'_>) -> Option<&'a [u8]> {
        if self.either.get().may_have(name) { self.first_of_either(name) } else { None }
    }

    #[inline(never)]
    fn first_of_either(&self, name: Name<'_>) -> Option<&'a [u8]> {
        if self.edited.get().may_have(name)
            && let Some(edit) = self.edits.borrow().iter().find(|edit| edit.name.is(name))
        {
            return edit.value;
        }
        if !self.seen.get().may_have(name) {
            return None;
        }
        self.base.get().get_named(name.known(), name.text)
    }

    /// Every line of a name, in order.
    pub(crate) fn lines(&self, name: Name<'_>, each: &mut dyn FnMut(&'a [u8])) {
        if !self.either.get().may_have(name) {
            return;
        }
        if self.hides(name) {
            let edits: SmallVec<[Edit<'a>; EDITS_USUAL]> = self.edits.borrow().clone();
            let of_name = edits.iter().filter(|edit| edit.name.is(name));
            of_name.filter_map(|edit| edit.value).for_each(each);
            return;
        }
        self.base.get().get_all_named(name.text).for_each(each);
    }

    fn hides(&self, name: Name<'_>) -> bool {
        self.edited.get().may_have(name) && self.edits.borrow().iter().any(|edit| edit.name.is(name))
    }

    /// In place of all lines of the name.
    pub(crate) fn set(&self, name: Name<'a>, value: &'a [u8]) {
        self.put(Edit { name, value: Some(value) });
    }

    #[inline]
    fn put(&self, edit: Edit<'a>) {
        let mut edits = self.edits.borrow_mut();
        let edited = self.edited.get();
        if !edited.may_have(edit.name) {
            self.note(edit.name);
            return edits.push(edit);
        }
        let is_same = |other: &Edit<'a>| other.name.is(edit.name);
        match edits.iter().position(is_same) {
            None => edits.push(edit),
            Some(at) => {
                edits[at] = edit;
                if self.several.get().may_have(edit.name) && edits[at + 1..].iter().any(is_same) {
                    let mut place = 0;
                    edits.retain(|other| {
                        place += 1;
                        place <= at + 1 || !is_same(other)
                    });
                }
            }
        }
    }

    /// The name stands in the list from here on.
    #[inline]
    fn note(&self, name: Name<'_>) {
        self.edited.set(self.edited.get().with(name));
        self.either.set(self.either.get().with(name));
    }

    /// Behind the lines of the name that are there.
    pub(crate) fn add(&self, name: Name<'a>, value: &'a [u8]) {
        let edit = Edit { name, value: Some(value) };
        if !self.either.get().may_have(name) {
            self.note(name);
            return self.edits.borrow_mut().push(edit);
        }
        let is_hidden = self.hides(name);
        let mut edits = self.edits.borrow_mut();
        if !is_hidden {
            let below = self.base.get().get_all_named(name.text);
            edits.extend(below.map(|line| Edit { name, value: Some(line) }));
            self.note(name);
        }
        self.several.set(self.several.get().with(name));
        // The mark of what was unset stands alone.
        match edits.iter().position(|edit| edit.value.is_none() && edit.name.is(name)) {
            Some(mark) => edits[mark] = edit,
            None => edits.push(edit),
        }
    }

    #[inline(always)]
    pub(crate) fn unset(&self, name: Name<'a>) {
        if self.either.get().may_have(name) {
            self.unset_of_either(name);
        }
    }

    /// A mark, whether the name is below or in the list; it hides nothing where another name has the same bit.
    #[inline(never)]
    fn unset_of_either(&self, name: Name<'a>) {
        self.put(Edit { name, value: None });
    }

    /// Every line as it stands now: what was not touched in its place, then what was set.
    pub(crate) fn each(&self, mut each: impl FnMut(FieldName, &'a [u8], &'a [u8])) {
        let (edits, edited) = (self.edits.borrow(), self.edited.get());
        for field in self.base.get().iter().filter(|field| stays(field, edited, &edits)) {
            each(field.name, field.name_text, field.value);
        }
        for edit in edits.iter() {
            if let Some(value) = edit.value {
                each(edit.name.known(), edit.name.text, value);
            }
        }
    }

    /// The same lines as bytes, but for those of the names that somebody else writes.
    pub(crate) fn write(&self, out: &mut Vec<u8>, without: FieldBits) {
        let edits = self.edits.borrow();
        let (edited, touched) = (self.edited.get(), self.edited.get().or(without));
        self.base.get().write_lines(out, |at| {
            // The names of most are in neither.
            if at.name != FieldName::Other && !touched.has_known(at.name) {
                return true;
            }
            let field = at.field();
            let name = Name::classified(field.name, field.name_text);
            !touched.may_have(name) || !without.may_have(name) && stays(&field, edited, &edits)
        });
        for edit in edits.iter() {
            if let Some(value) = edit.value.filter(|_| !without.may_have(edit.name)) {
                write_field(out, edit.name.text, value);
            }
        }
    }

    /// The same lines one by one.
    pub(crate) fn each_without(&self, without: FieldBits, mut each: impl FnMut(FieldName, &'a [u8], &'a [u8])) {
        self.each(|known, name, value| {
            if !without.may_have(Name::classified(known, name)) {
                each(known, name, value);
            }
        });
    }

    /// A copy of the head as it stands now.
    pub(crate) fn to_fields(&self) -> Fields {
        let mut fields = Fields::default();
        self.each(|_, name, value| fields.push_named(name, value));
        fields
    }
}

/// Whether a line below the list shows.
#[inline]
fn stays(field: &Field<'_>, edited: FieldBits, edits: &[Edit<'_>]) -> bool {
    let name = Name::classified(field.name, field.name_text);
    !edited.may_have(name) || !edits.iter().any(|edit| edit.name.is(name))
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
        let mut written = Vec::new();
        head.write(&mut written, FieldBits::of_known(&[FieldName::Host]));
        let lines = all.iter().filter(|line| !line.starts_with("host="));
        let lines: String = lines.map(|line| line.replacen('=', ": ", 1) + "\r\n").collect();
        assert_eq!(String::from_utf8_lossy(&written).to_lowercase(), lines);
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
                head.add(Name::of(b"Via"), b"1");
                head.unset(Name::of(b"via"));
                head.add(Name::of(b"Via"), b"2");
                head.add(Name::of(b"Via"), b"3");
                head.set(Name::of(b"X-New"), b"1");
                head.unset(Name::of(b"x-new"));
            },
            "host=a x-own=1 cookie=c x-own=2 via=2 via=3",
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
