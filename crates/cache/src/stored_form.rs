//! An object without its body as bytes: what a disk keeps of it, in a form of our own that says its version.
//!
//! The store knows nothing of this: to it these are the opaque bytes beside a body. What is read here was verified by a
//! checksum and was written by some larder; still nothing in it is trusted, and whatever does not add up is no object.
//!
//! ```text
//! version u8 · key u128 · variant u128 (its lower half counts) · boot u64 · received mono_ms u64 · received wall_ms u64
//! facts: initial_age_ms u64 · lifetime_ms u64 · stale_while_revalidate_ms u64 · stale_if_error_ms u64 (all ones: none)
//!        last_modified i64 (i64::MIN: none) · date i64 · flags u8
//! keep_ms u64 (all ones: no policy decided) · status u16 · HTTP version u8
//! then texts and lists, each with its length before it as u32:
//! Vary's names · reason (all ones: none) · fields · rendered · slots of its groups · slots of its tags · digests of its tags
//! version 4, a manifest: complete u64 · slice_bytes u64 · stamp u64
//! version 6, a page with parts: what was found in it, see `esi_form`
//! versions 8, 9 and 10: as 3, 4 and 6, and behind it all the URL that it was fetched for
//! ```
//!
//! Numbers are little-endian. Times: a clock that does not jump is used within one boot, the wall clock from one to the
//! next; one that was set back makes nothing younger than it was.
//!
//! Version 7 is an encoding beside its object, which is none by itself: see `encoding_form`.
//!
//! Versions 1 and 2 are not read: they do not say whether others may have what was asked for with credentials.

use bytes::Bytes;
use message::{FieldName, Fields, ResponseHead, Status, Version};
use rules::{Facts, Vary, VarySpec};

use crate::esi_form;
use crate::esi_page::EsiPage;
use crate::form_fields::{FormReader, FormWriter, NONE_LEN};
use crate::kept_facts;
use crate::key::{Key, Variant};
use crate::moment::Now;
use crate::object::Object;
use crate::slice_layout::Sliced;

const FORM_VERSION: u8 = 8;
/// Of a response whose body lies in slices.
const MANIFEST_VERSION: u8 = 9;
/// Of a page with parts.
const PAGE_VERSION: u8 = 10;
/// The same, as larder wrote them before it kept URLs.
const WITHOUT_URL: [(u8, u8); 3] = [(3, FORM_VERSION), (4, MANIFEST_VERSION), (6, PAGE_VERSION)];
const NONE_U64: u64 = u64::MAX;

/// What is read back.
#[derive(Debug)]
pub(crate) struct StoredForm {
    pub key: Key,
    pub variant: Variant,
    pub vary: Option<VarySpec>,
    pub head: ResponseHead,
    pub rendered: Bytes,
    /// When it was received, on the clocks of this boot: no earlier than that began, and the rest of its age is in the facts.
    pub received: Now,
    pub facts: Facts,
    /// Set if a program decided how long it lives.
    pub keep_ms: Option<u64>,
    pub group_slots: Vec<u32>,
    pub tag_slots: Vec<u32>,
    pub tag_digests: Vec<u64>,
    pub sliced: Option<Sliced>,
    pub esi: Option<EsiPage>,
    /// That it was fetched for; none was kept by older versions.
    pub url: Option<Box<[u8]>>,
}

/// Which boot of the machine this is: only within one can its clock that does not jump be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Boot(pub u64);

impl Boot {
    /// By the kernel's random name for it; where there is none, one of our own, and the wall clock counts.
    pub fn this_one() -> Boot {
        let name = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let digits: String = name.chars().filter(char::is_ascii_hexdigit).take(16).collect();
        Boot(u64::from_str_radix(&digits, 16).unwrap_or_else(|_| crate::key::random_number()))
    }
}

/// `None` for what is not kept on disks: marks, and parts of a representation.
pub(crate) fn write(object: &Object, boot: Boot) -> Option<Bytes> {
    if object.mark().is_some() || object.partial().is_some() {
        return None;
    }
    let (head, facts, received) = (object.response(), object.facts(), object.received);
    let mut out = FormWriter(Vec::with_capacity(256 + 2 * object.kept_head().head_len()));
    out.0.push(match (object.sliced(), object.esi()) {
        (Some(_), _) => MANIFEST_VERSION,
        (None, Some(_)) => PAGE_VERSION,
        (None, None) => FORM_VERSION,
    });
    out.0.extend_from_slice(&object.key().0.to_le_bytes());
    out.0.extend_from_slice(&u128::from(object.variant.0).to_le_bytes());
    out.numbers([boot.0, received.mono_ms, received.wall_ms]);
    let (numbers, flags) = kept_facts::as_stored(&facts);
    out.numbers(numbers);
    out.0.push(flags);
    out.numbers([object.by_program().map_or(NONE_U64, |policy| policy.keep_ms)]);
    out.0.extend_from_slice(&head.status.0.to_le_bytes());
    out.0.push(match head.version {
        Version::Http10 => 0,
        Version::Http11 | Version::Http2 => 1,
    });
    let vary: Option<Vec<&[u8]>> = object.spec.as_ref().map(|spec| spec.vary().names().collect());
    out.text(vary.unwrap_or_default().join(&b", "[..]).as_slice());
    match head.reason {
        None => out.0.extend_from_slice(&NONE_LEN.to_le_bytes()),
        Some(reason) => out.text(reason),
    }
    let mut lines = Vec::new();
    head.fields.write_lines(&mut lines, |_| true);
    out.text(&lines);
    out.text(object.rendered());
    out.list(object.groups().map_or(&[][..], |groups| groups.slots()), |slot| slot.to_le_bytes());
    let (slots, digests) = object.tags().map_or((&[][..], &[][..]), |tags| tags.as_stored());
    out.list(slots, |slot| slot.to_le_bytes());
    out.list(digests, |digest| digest.to_le_bytes());
    if let Some(sliced) = object.sliced() {
        out.numbers([sliced.complete, sliced.slice_bytes, sliced.stamp]);
    } else if let Some(page) = object.esi() {
        esi_form::write(page, &mut out);
    }
    out.text(object.url().unwrap_or_default());
    Some(Bytes::from(out.0))
}

/// `None`: of another version, or what no larder wrote.
pub(crate) fn read(bytes: &Bytes, boot: Boot, now: Now) -> Option<StoredForm> {
    let mut from = FormReader(bytes);
    let version = from.bytes::<1>()?[0];
    let older = WITHOUT_URL.iter().find(|(older, _)| *older == version);
    let form_version = older.map_or(version, |(_, now)| *now);
    if !matches!(form_version, FORM_VERSION | MANIFEST_VERSION | PAGE_VERSION) {
        return None;
    }
    let key = Key(u128::from_le_bytes(from.bytes()?));
    let variant = Variant(u128::from_le_bytes(from.bytes()?) as u64);
    let (stored_in, received_mono_ms, received_wall_ms) = (from.number()?, from.number()?, from.number()?);
    let mut numbers = [0; 6];
    for number in &mut numbers {
        *number = from.number()?;
    }
    let mut facts = kept_facts::from_stored(numbers, from.bytes::<1>()?[0])?;
    let resident_ms = match stored_in == boot.0 {
        true => now.mono_ms.saturating_sub(received_mono_ms),
        false => now.wall_ms.saturating_sub(received_wall_ms),
    };
    let since_ms = resident_ms.min(now.mono_ms);
    facts.initial_age_ms = facts.initial_age_ms.saturating_add(resident_ms - since_ms);
    let received =
        Now { mono_ms: now.mono_ms - since_ms, wall_ms: now.wall_ms.saturating_sub(since_ms), confirmed_from: 0 };
    let keep_ms = Some(from.number()?).filter(|&ms| ms != NONE_U64);
    let status = Status(u16::from_le_bytes(from.bytes()?));
    let version = match from.bytes::<1>()?[0] {
        0 => Version::Http10,
        1 => Version::Http11,
        _ => return None,
    };
    let names = from.text()??;
    let vary = match names.is_empty() {
        true => None,
        false => Some(vary_of(names)?),
    };
    let reason = from.text()?.map(Box::from);
    let fields = fields_of(from.text()??)?;
    let rendered = bytes.slice_ref(from.text()??);
    let group_slots = from.list(u32::from_le_bytes)?;
    let tag_slots = from.list(u32::from_le_bytes)?;
    let tag_digests = from.list(u64::from_le_bytes)?;
    let sliced = match form_version {
        MANIFEST_VERSION => Some(Sliced::read([from.number()?, from.number()?, from.number()?])?),
        _ => None,
    };
    let esi = match form_version {
        PAGE_VERSION => Some(esi_form::read(&mut from)?),
        _ => None,
    };
    let url = match older {
        None => Some(from.text()??).filter(|url| !url.is_empty()).map(Box::from),
        Some(_) => None,
    };
    let is_whole = from.0.is_empty() && (100..1_000).contains(&status.0);
    let head = ResponseHead { status, version, reason, fields };
    is_whole.then_some(StoredForm {
        key,
        variant,
        vary,
        head,
        rendered,
        received,
        facts,
        keep_ms,
        group_slots,
        tag_slots,
        tag_digests,
        sliced,
        esi,
        url,
    })
}

/// `None`: what no response varies by.
pub(crate) fn vary_of(names: &[u8]) -> Option<VarySpec> {
    let mut fields = Fields::default();
    fields.push(FieldName::Vary, names);
    match Vary::of(fields.view()) {
        Vary::Fields(spec) => Some(spec),
        _ => None,
    }
}

fn fields_of(mut lines: &[u8]) -> Option<Fields> {
    let mut fields = Fields::default();
    while !lines.is_empty() {
        let end = lines.windows(2).position(|two| two == b"\r\n")?;
        let colon = lines[..end].windows(2).position(|two| two == b": ")?;
        let (name, value) = (&lines[..colon], &lines[colon + 2..end]);
        if name.is_empty() || value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
            return None;
        }
        fields.push_named(name, value);
        lines = &lines[end + 2..];
    }
    fields.shrink();
    Some(fields)
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use std::sync::Arc;

    use store::Account;

    use super::*;
    use crate::body_form::Part;
    use crate::by_program::ByProgram;
    use crate::group_table::{GroupTable, Groups, Membership};
    use crate::kept_head::KeptHead;
    use crate::key::Digester;
    use crate::object::{EncodingsFrom, ObjectParts};
    use crate::spec::Spec;
    use crate::tag_index::{TagIndex, TagSet, Tags};

    const NOW: Now = Now { wall_ms: 1_700_000_000_000, mono_ms: 50_000, confirmed_from: 0 };
    const BOOT: Boot = Boot(7);
    const URL: &[u8] = b"http://a.test/x?y";

    fn parts() -> ObjectParts {
        let mut fields = Fields::default();
        fields.push(FieldName::Vary, "accept-encoding, X-Kind");
        fields.push_named(b"X-Empty", b"");
        fields.push_named(b"x-colon", b"a: b");
        let Vary::Fields(vary) = Vary::of(fields.view()) else { panic!("it varies") };
        let digester = Digester::random();
        let digest = |text: &str| digester.key([text.as_bytes()]);
        let groups = Groups::new([digest("a group")]).unwrap();
        let tags = Tags::new(["one", "two"].map(digest)).unwrap().unwrap();
        let reason = Some(b"Quite fine".as_slice().into());
        let facts = Facts { initial_age_ms: 3, lifetime_ms: 60_000, last_modified: Some(-4), ..Facts::default() };
        ObjectParts {
            key: Key(3 << 100 | 5),
            variant: Variant(9 << 40 | 1),
            spec: Some(Spec::new(vary, digester)),
            head: KeptHead::of_url(
                URL,
                (
                    &ResponseHead { status: Status(203), version: Version::Http10, reason, fields },
                    b"HTTP/1.1 203 Quite fine\r\nX-Empty: \r\n",
                ),
                &[b"a body"],
            ),
            out_of_line: None,
            facts: Facts { date: 5, immutable: true, ..facts },
            received: NOW,
            order: 0,
            part: None,
            sliced: None,
            groups: Some(Membership::new(&GroupTable::new(), &groups, 0)),
            policy: Some(ByProgram { keep_ms: 11, mark: None }),
            tags: Some(TagSet::new(&TagIndex::new(), tags)),
            esi: None,
            checked: 0,
            began: 0,
            on_disk: 0,
            encodings: EncodingsFrom::Nobody,
        }
    }

    fn object(parts: ObjectParts) -> Arc<Object> {
        let account = Account::new(1 << 20);
        Object::new(parts, |bytes| account.charge(bytes))
    }

    #[test]
    fn an_object_comes_back_as_it_was() {
        let object = object(parts());
        let form = read(&write(&object, BOOT).unwrap(), BOOT, NOW).unwrap();
        assert_eq!((form.key, form.variant, form.keep_ms), (object.key(), object.variant, Some(11)));
        assert_eq!(form.vary.as_ref(), object.spec.as_ref().map(|spec| spec.vary()));
        assert_eq!((form.facts, &form.rendered[..]), (object.facts(), object.rendered()));
        let (head, was) = (form.head.response(), object.response());
        assert_eq!((head.status, head.version, head.reason), (was.status, was.version, was.reason));
        let lines = |fields: message::FieldsView<'_>| {
            fields.iter().map(|field| (field.name, field.name_text.to_vec(), field.value.to_vec())).collect::<Vec<_>>()
        };
        assert_eq!(lines(head.fields), lines(was.fields));
        assert_eq!(form.group_slots, object.groups().unwrap().slots());
        assert_eq!((&form.tag_slots[..], &form.tag_digests[..]), object.tags().unwrap().as_stored());
        let plain = ObjectParts { spec: None, groups: None, policy: None, tags: None, ..parts() };
        let form = read(&write(&self::object(plain), BOOT).unwrap(), BOOT, NOW).unwrap();
        assert_eq!((form.vary, form.keep_ms, form.group_slots.len(), form.tag_digests.len()), (None, None, 0, 0));
    }

    #[test]
    fn a_manifest_says_where_its_slices_are() {
        let sliced = Sliced { complete: 5 << 30, slice_bytes: 1 << 20, stamp: 77 };
        let written = write(&object(ObjectParts { sliced: Some(sliced), ..parts() }), BOOT).unwrap();
        assert_eq!(read(&written, BOOT, NOW).unwrap().sliced, Some(sliced));
        assert!(read(&written.slice(..written.len() - 1), BOOT, NOW).is_none());
        assert!(read(&write(&object(parts()), BOOT).unwrap(), BOOT, NOW).unwrap().sliced.is_none());
        let nothing = Sliced { slice_bytes: 0, ..sliced };
        let written = write(&object(ObjectParts { sliced: Some(nothing), ..parts() }), BOOT).unwrap();
        assert!(read(&written, BOOT, NOW).is_none());
    }

    #[test]
    fn a_page_says_where_its_parts_stand() {
        use crate::esi_page::PagePiece;

        let mut scanner = esi::Scanner::new(esi::Options { has_variables: true, ..esi::Options::default() });
        scanner.push(
            b"a<esi:include src=\"/1\" alt=\"/2\" onerror=\"continue\"/>b<esi:include src=\"/3\"/>\
              <esi:vars>$(HTTP_COOKIE{id}|nobody)</esi:vars><esi:choose><esi:when test=\"$(HTTP_HOST)\">e</esi:when>\
              <esi:otherwise>f$(x)<esi:include src=\"/$(HTTP_HOST)\"/></esi:otherwise></esi:choose><esi:try><esi:attempt>c<esi:include src=\"/4\"/></esi:attempt><esi:except>d</esi:except></esi:try>",
        );
        let piece = |text_at: u64, coded: std::ops::Range<u64>, text: &[u8]| PagePiece {
            text_at,
            gzip: coding::GzipPiece { coded, sum: coding::TextSum::of(text) },
        };
        let in_gzip = Some(vec![piece(0, 15..20, b"a"), piece(55, 40..44, b"b")]);
        let page = EsiPage { document: scanner.finish(), in_gzip };
        assert_eq!(page.gzip_piece(55).unwrap().coded, 40..44);
        assert_eq!(page.gzip_piece(54), None);
        assert!(page.document.has_esi && page.document.complaints.is_empty());
        let whole = write(&object(ObjectParts { esi: Some(Arc::new(page.clone())), ..parts() }), BOOT).unwrap();
        assert_eq!(read(&whole, BOOT, NOW).unwrap().esi, Some(page));
        assert!(read(&write(&object(parts()), BOOT).unwrap(), BOOT, NOW).unwrap().esi.is_none());
        for length in 0..whole.len() {
            assert!(read(&whole.slice(..length), BOOT, NOW).is_none(), "{length}");
        }
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut damaged = whole.to_vec();
                damaged[at] ^= 1 << bit;
                let _ = read(&Bytes::from(damaged), BOOT, NOW);
            }
        }
    }

    #[test]
    fn what_lay_on_a_disk_has_aged() {
        let written = write(&object(parts()), BOOT).unwrap();
        let check = |boot: u64, mono_ms: u64, wall_ms: u64, (age_ms, received_ms): (u64, u64)| {
            let now = Now { mono_ms, wall_ms, confirmed_from: 0 };
            let form = read(&written, Boot(boot), now).unwrap();
            let found = (form.facts.age_ms(mono_ms - form.received.mono_ms), form.received.mono_ms);
            assert_eq!(found, (age_ms, received_ms), "{boot} {now:?}");
        };
        let (mono, wall) = (NOW.mono_ms, NOW.wall_ms);
        check(7, mono + 40, wall, (43, mono));
        // The wall clock was set: within one boot nobody asks it.
        check(7, mono + 40, wall - 9_000_000, (43, mono));
        check(8, 9_000, wall + 2_000, (2_003, 7_000));
        // Received before this boot.
        check(8, 10, wall + 2_000, (2_003, 0));
        check(8, mono + 40, wall - 5, (3, mono + 40));
    }

    #[test]
    fn what_does_not_add_up_is_no_object() {
        let whole = write(&object(parts()), BOOT).unwrap();
        for length in 0..whole.len() {
            assert!(read(&whole.slice(..length), BOOT, NOW).is_none(), "{length}");
        }
        let more = Bytes::from([&whole[..], b"x"].concat());
        assert!(read(&more, BOOT, NOW).is_none());
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut damaged = whole.to_vec();
                damaged[at] ^= 1 << bit;
                // Checksums are the store's; here nothing but a wrong object may come of it, and no panic.
                let _ = read(&Bytes::from(damaged), BOOT, NOW);
            }
        }
        let mut other = whole.to_vec();
        other[0] = PAGE_VERSION + 1;
        assert!(read(&Bytes::from(other), BOOT, NOW).is_none());
    }

    #[test]
    fn what_was_written_before_urls_were_kept_is_read_without_one() {
        let written = write(&object(parts()), BOOT).unwrap();
        assert_eq!(read(&written, BOOT, NOW).unwrap().url.as_deref(), Some(URL));
        let mut before = written[..written.len() - URL.len() - 4].to_vec();
        before[0] = 3;
        let form = read(&Bytes::from(before), BOOT, NOW).unwrap();
        assert_eq!((form.url, form.head.status), (None, Status(203)));
    }

    #[test]
    fn a_part_is_not_kept_on_disks() {
        let part = Some(Part { from: 0, to: 1, complete: Some(2) });
        assert!(write(&object(ObjectParts { part, ..parts() }), BOOT).is_none());
    }
}
