//! vmod bodyaccess: the request's body, once std.cache_req_body has it.

use super::{Arguments, NOTHING, functions};
use crate::evaluation::evaluator::Run;
use crate::host::{Host, LogKind};
use crate::plain_values::{Fault, Plain};

functions! {
    BodyFunction {
        Rematch "rematch_req_body",
        Hash "hash_req_body",
        Length "len_req_body",
        Log "log_req_body",
    }
}

pub fn call<'a, H: Host<'a>>(
    run: &Run<'a, '_, H>,
    function: BodyFunction,
    given: &Arguments<'_, 'a>,
) -> Result<Plain<'a>, Fault> {
    let Some(body) = run.host.request_body() else {
        run.host.log(LogKind::Error, b"vmod bodyaccess: the body was not read before, by std.cache_req_body()");
        return Ok(match function {
            BodyFunction::Rematch | BodyFunction::Length => Plain::Int(-1),
            BodyFunction::Hash | BodyFunction::Log => NOTHING,
        });
    };
    Ok(match function {
        BodyFunction::Rematch => Plain::Int(i64::from(given.pattern(0)?.is_match(body)?)),
        BodyFunction::Length => Plain::Int(body.len() as i64),
        BodyFunction::Hash => {
            run.host.hash_data(Some(body));
            run.host.hash_data_ends();
            NOTHING
        }
        BodyFunction::Log => {
            let length = usize::try_from(given.int(1)).ok().filter(|length| *length > 0).unwrap_or(body.len());
            for part in body.chunks(length.max(1)) {
                run.spend()?;
                run.host.log(LogKind::Program, &[given.bytes(0), part].concat());
            }
            NOTHING
        }
    })
}
