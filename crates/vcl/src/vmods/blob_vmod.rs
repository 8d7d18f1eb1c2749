//! vmod blob: bytes and the ways to write them.

use super::blob_forms::{Case, Form, decode, encode};
use super::{Arguments, functions};
use crate::evaluation::evaluator::Run;
use crate::host::Host;
use crate::objects::Object;
use crate::plain_values::{Fault, Plain};
use crate::typed_program::ObjectId;

functions! {
    BlobFunction {
        Decode "decode",
        Encode "encode",
        Transcode "transcode",
        Same "same",
        Equal "equal",
        Length "length",
        Sub "sub",
        New "blob",
        Get "blob.get",
        EncodeObject "blob.encode",
    }
}

pub fn make(given: &Arguments<'_, '_>) -> Result<Object, Fault> {
    let decoded = decode(Form::by_name(given.word(0)), given.bytes(1), given.first_of(1), 0)?;
    Ok(Object::Blob(decoded.into()))
}

pub fn call<'a, H: Host<'a>>(
    run: &Run<'a, '_, H>,
    function: BlobFunction,
    object: Option<ObjectId>,
    given: &Arguments<'_, 'a>,
) -> Result<Plain<'a>, Fault> {
    use BlobFunction as F;
    let form = |index: usize| Form::by_name(given.word(index));
    let written = |bytes: &[u8], form: Form, case: usize| {
        let text = encode(form, Case::by_name(form, given.word(case))?, bytes);
        // A text ends where a NUL stands, as in Varnish.
        let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(Plain::Text(Some(run.arena.copy(text)?)))
    };
    match function {
        F::Decode => {
            let decoded = decode(form(0), given.bytes(2), given.first_of(2), given.int(1))?;
            Ok(Plain::Blob(Some(run.arena.copy(&decoded)?)))
        }
        F::Encode => match given.text(2) {
            Some(blob) => written(blob, form(0), 1),
            None => Ok(Plain::Text(None)),
        },
        F::Transcode => {
            let decoded = decode(form(0), given.bytes(4), given.first_of(4), given.int(3))?;
            written(&decoded, form(1), 2)
        }
        // The same bytes at the same place; which is rather less to say than that they are equal.
        F::Same => Ok(Plain::Bool(match (given.text(0), given.text(1)) {
            (Some(left), Some(right)) => std::ptr::eq(left, right) || left.is_empty() && right.is_empty(),
            (left, right) => left.is_none() && right.is_none(),
        })),
        F::Equal => Ok(Plain::Bool(given.bytes(0) == given.bytes(1))),
        F::Length => Ok(Plain::Int(given.bytes(0).len() as i64)),
        F::Sub => {
            let (length, offset) = (given.int(1), given.int(2));
            let end = offset.checked_add(length).and_then(|end| usize::try_from(end).ok());
            let start = usize::try_from(offset).ok();
            let part = start.zip(end).and_then(|(start, end)| given.bytes(0).get(start..end));
            part.filter(|_| !given.bytes(0).is_empty()).map(|part| Plain::Blob(Some(part))).ok_or_else(|| {
                Fault::new(match given.bytes(0).len() {
                    0 => "vmod blob error: blob is empty in blob.sub()".to_owned(),
                    _ if length < 0 || offset < 0 => "vmod blob error: size or offset negative in blob.sub()".to_owned(),
                    has => format!(
                        "vmod blob error: size {length} from offset {offset} requires more bytes than blob length {has} in \
                         blob.sub()"
                    ),
                })
            })
        }
        F::Get | F::EncodeObject => match object.and_then(|id| run.loaded.objects().get(id)) {
            Some(Object::Blob(blob)) if function == F::Get => Ok(Plain::Blob(Some(blob))),
            Some(Object::Blob(blob)) => written(blob, form(0), 1),
            _ => Err(Fault::new("a blob object is used before `new` has made it")),
        },
        F::New => Err(Fault::new("blob.blob makes an object")),
    }
}
