//! vmod vsthrottle: how often something may happen for one key.

use std::sync::LazyLock;

use super::token_buckets::{Rate, Ruling, TokenBuckets};
use super::{Arguments, NOTHING, functions};
use crate::evaluation::evaluator::Run;
use crate::host::{Host, LogKind};
use crate::limits::THROTTLE_BUCKETS_MAX;
use crate::plain_values::{Fault, Plain};

functions! {
    ThrottleFunction {
        IsDenied "is_denied",
        ReturnToken "return_token",
        Remaining "remaining",
        Blocked "blocked",
        RemoveBucket "remove_bucket",
    }
}

/// Of the process, as in Varnish: who is throttled stays so when a new program is loaded.
static BUCKETS: LazyLock<TokenBuckets> = LazyLock::new(|| TokenBuckets::new(THROTTLE_BUCKETS_MAX));

pub fn call<'a, H: Host<'a>>(
    run: &Run<'a, '_, H>,
    function: ThrottleFunction,
    given: &Arguments<'_, 'a>,
) -> Result<Plain<'a>, Fault> {
    use ThrottleFunction as F;
    let Some(key) = given.text(0) else {
        return Ok(match function {
            F::IsDenied => Plain::Bool(true),
            F::Remaining => Plain::Int(-1),
            F::Blocked => Plain::Duration(-1.0),
            F::ReturnToken | F::RemoveBucket => NOTHING,
        });
    };
    let rate = Rate { key, limit: given.int(1), period_s: given.real(2), block_s: given.real(3) };
    let now_s = run.host.world().now_s();
    Ok(match function {
        F::IsDenied if run.host.is_dry_run() => Plain::Bool(BUCKETS.left(&rate, now_s) < 1),
        F::ReturnToken | F::RemoveBucket if run.host.is_dry_run() => NOTHING,
        F::IsDenied => Plain::Bool(ruled(run, BUCKETS.take(&rate, now_s))),
        F::ReturnToken => {
            ruled(run, BUCKETS.give_back(&rate, now_s));
            NOTHING
        }
        F::Remaining => Plain::Int(BUCKETS.left(&rate, now_s)),
        F::Blocked => Plain::Duration(BUCKETS.blocked_s(&rate, now_s)),
        F::RemoveBucket => {
            BUCKETS.remove(&rate);
            NOTHING
        }
    })
}

fn ruled<'a, H: Host<'a>>(run: &Run<'a, '_, H>, ruling: Ruling) -> bool {
    if ruling.forgotten_count > 0 {
        let count = ruling.forgotten_count;
        let line = format!("vsthrottle forgot {count} keys: it counts {THROTTLE_BUCKETS_MAX} (THROTTLE_BUCKETS_MAX)");
        run.host.log(LogKind::Error, line.as_bytes());
    }
    ruling.denied
}
