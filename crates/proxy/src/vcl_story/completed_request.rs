//! The request as a program first sees it, where nothing is copied before the program has spoken.

use message::{FieldName, FieldsView};
use smallvec::SmallVec;
use vcl::{Arena, Fault};

use crate::vcl_story::field_bits::Name;
use crate::vcl_story::head_edits::EditedHead;

/// One Cache-Control, and the client behind those who forwarded it: as edits.
pub(crate) fn complete_in_place<'a>(
    head: &EditedHead<'a>,
    arena: &'a Arena,
    fields: FieldsView<'a>,
    peer: &'a [u8],
) -> Result<(), Fault> {
    let forwarded = match fields.contains(FieldName::XForwardedFor) {
        true => joined(fields.get_all(FieldName::XForwardedFor).chain([peer]), arena)?,
        false => peer,
    };
    head.set(Name::of_known(FieldName::XForwardedFor), forwarded);
    if fields.get_all(FieldName::CacheControl).nth(1).is_some() {
        head.set(Name::of_known(FieldName::CacheControl), joined(fields.get_all(FieldName::CacheControl), arena)?);
    }
    Ok(())
}

fn joined<'a>(lines: impl Iterator<Item = &'a [u8]>, arena: &'a Arena) -> Result<&'a [u8], Fault> {
    let mut parts: SmallVec<[&[u8]; 8]> = SmallVec::new();
    for line in lines {
        if !parts.is_empty() {
            parts.push(b", ");
        }
        parts.push(line);
    }
    arena.join(&parts)
}
