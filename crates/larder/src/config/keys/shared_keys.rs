//! The keys of `[shared]`.

use crate::config::definition::ValueKind::{Size, Text};
use crate::config::definition::{KeyDefinition, PATH, SIZE, TIME, V0_1, key};
use crate::config::literal;
use crate::limits::{SHARED_OBJECT_MAX, SHARED_QUEUE_MIN};
use crate::shared_plan::by_default;

pub const SHARED: &[KeyDefinition] = &[
    key(
        V0_1,
        "url",
        Text(
            "memcached://HOST[:PORT], redis://[USER:PASSWORD@]HOST[:PORT][/DB] or rediss://…, several with commas between them; or redis+sentinel://[USER:PASSWORD@]HOST[:PORT],…/NAME[/DB]",
        ),
        "Where the nodes keep what they have fetched for one another. It needs `log` and `secret_file` of [fleet].",
    )
    .without("each node stores by itself")
    .example("\"memcached://10.0.0.5:11211,10.0.0.6:11211\"")
    .secret(),
    key(V0_1, "ca", PATH, "Who may sign the certificate of a Redis that is reached by rediss://: a file in PEM.")
        .without("whom this system trusts")
        .example("\"/etc/larder/redis-ca.pem\""),
    key(V0_1, "wait_max", TIME, "How long a request waits for an answer; beyond it the origin is asked.")
        .by_default(|| literal::time(by_default(Vec::new()).wait_max)),
    key(
        V0_1,
        "fetch_wait_max",
        TIME,
        "How long a request waits for another node that fetches the same; beyond it the origin is asked.",
    )
    .by_default(|| literal::time(by_default(Vec::new()).fetch_wait_max)),
    key(V0_1, "object_max", Size(1, SHARED_OBJECT_MAX), "Larger bodies are not kept there.")
        .by_default(|| literal::size(by_default(Vec::new()).body_bytes_max)),
    key(
        V0_1,
        "queue_max",
        Size(SHARED_QUEUE_MIN as u64, u64::MAX),
        "Bytes on their way there; what comes beyond is not kept.",
    )
    .by_default(|| literal::size(by_default(Vec::new()).queue_bytes_max as u64)),
    key(V0_1, "bandwidth", SIZE, "Bytes that this node sends there in a second; what comes beyond is not kept.")
        .without("as many as there are")
        .example("\"100MiB\""),
];
