//! What nginx's memc module answers to what memcached replied: memcached's own words are the body, and incr and decr
//! are a 201, as the module's code has it and its manual has not.

use message::{FieldName, Request};
use rules::conditions::Outcome as Condition;
use wire::memcached::{Blame, Reply};

use crate::memcached_gateway::gateway_call::ReceivedReply;
use crate::memcached_gateway::gateway_settings::{MemcachedCommand, MemcachedSettings};
use crate::memcached_gateway::item_answer::{self, ItemAnswer, missed};
use crate::memcached_gateway::memcached_request::MemcachedRequest;
use crate::transaction::synth::Synth;

pub(crate) fn answer(
    request: &Request<'_>,
    wanted: &MemcachedRequest,
    settings: &MemcachedSettings,
    got: ReceivedReply,
    now_s: i64,
) -> Result<ItemAnswer, Synth> {
    // By the path, whatever the key.
    let kind = item_answer::content_type(request.path, settings);
    let raw = |status| Ok(ItemAnswer::text(status, kind.as_bytes(), got.bytes.clone()));
    match &got.reply {
        Reply::Item(item) => {
            let modified_s = settings.flags_as_time.then_some(i64::from(item.flags));
            let mut answer = ItemAnswer::text(200, kind.as_bytes(), got.bytes.slice(item.value.clone()));
            if let Some(modified_s) = modified_s {
                answer.fields.push(FieldName::LastModified, rules::date::write_date(modified_s));
            }
            if item.flags & settings.gzip_flag != 0 {
                answer.fields.push(FieldName::ContentEncoding, "gzip");
            }
            match item_answer::condition(request, None, modified_s, now_s) {
                Condition::NotModified => Ok(ItemAnswer { fields: answer.fields, ..ItemAnswer::empty(304) }),
                _ => Ok(answer),
            }
        }
        Reply::Miss | Reply::NotFound => Err(missed()),
        Reply::Stored { .. } | Reply::Number { .. } => raw(201),
        Reply::NotStored
        | Reply::Exists
        | Reply::Deleted
        | Reply::Done
        | Reply::Lines
        | Reply::Version { .. }
        | Reply::Debug { .. } => raw(200),
        // To a get the module makes a page of an error, to everything else it is the body.
        Reply::Error { .. } if wanted.command == MemcachedCommand::Get => {
            Err(Synth::memcached_error(502, "memcached-error", "memcached answered with an error."))
        }
        Reply::Error { of: Blame::Command | Blame::Client | Blame::Server, .. } => raw(502),
    }
}
