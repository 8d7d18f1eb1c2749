//! The keys of `[memory]`, `[[disk]]`, `[store]`, `[log]` and `[admin]`.

use crate::addresses::AdminAddress;
use crate::config::choices::{EVICTIONS, LOG_FORMATS};
use crate::config::definition::ValueKind::{List, Size, Switch, Text, Words};
use crate::config::definition::{KeyDefinition, NETWORK, PATH, SIZE, V0_1, key};
use crate::config::literal;
use crate::limits::{DISK_SENDFILE_MIN, MEMORY_BYTES_MIN};
use crate::plan::Plan;

pub const MEMORY: &[KeyDefinition] = &[
    key(
        V0_1,
        "size",
        Size(MEMORY_BYTES_MIN, u64::MAX),
        "What the process may take, connections and buffers included, beside a base of 32 MiB (and 2 MiB for each worker after the \
         first). At least 1MiB. --memory is the flag.",
    )
    .by_default(|| literal::size(Plan::default().settings.memory_bytes_max as u64)),
    key(
        V0_1,
        "eviction",
        Words(|| literal::words(&EVICTIONS)),
        "Which object leaves when there is no room. docs/simulate.md compares them on your log.",
    )
    .by_default(|| literal::word(&Plan::default().settings.eviction, &EVICTIONS)),
];

pub const DISK: &[KeyDefinition] = &[
    key(V0_1, "path", PATH, "A file, or a directory that it is made in.").required("\"/var/cache/larder\""),
    key(V0_1, "size", Size(cache::DiskFile::BYTES_MIN, u64::MAX), "How large the file is from the first moment on.")
        .required("\"10GiB\""),
];

pub const STORE: &[KeyDefinition] = &[
    key(
        V0_1,
        "disk_admission",
        Words(|| vec!["all", "second-fetch"]),
        "What is written to disks: \"all\", or \"second-fetch\", which spares a disk what is fetched once and never again.",
    )
    .by_default(|| literal::text("all")),
    key(V0_1, "disk_at_once_min", SIZE, "With \"second-fetch\": bodies from this size on …").without("1").example("1"),
    key(V0_1, "disk_at_once_max", SIZE, "… up to this one are written the first time all the same.")
        .without("none are")
        .example("\"16KiB\""),
    key(
        V0_1,
        "disk_sendfile",
        Switch,
        "Send large bodies from the disk's file and do not bring them back into memory. What that gives up is in docs/disk.md.",
    )
    .without("false")
    .example("true"),
    key(V0_1, "disk_sendfile_min", SIZE, "With disk_sendfile: bodies from this size on.")
        .by_default(|| literal::size(DISK_SENDFILE_MIN)),
];

pub const LOG: &[KeyDefinition] = &[
    key(
        V0_1,
        "path",
        Text("a path, or \"-\" for standard output"),
        "Where it is written. Without [log]: no access log.",
    )
    .required("\"/var/log/larder/access.log\""),
    key(
        V0_1,
        "format",
        Words(|| literal::words(&LOG_FORMATS)),
        "\"combined\", with the cache's verdict behind it, or \"json\".",
    )
    .by_default(|| literal::word(&Plan::default().settings.log_format, &LOG_FORMATS)),
];

pub const ADMIN: &[KeyDefinition] = &[
    key(
        V0_1,
        "address",
        Text("IP:PORT, unix:/PATH or \"off\""),
        "Where /metrics, /status and / (the dashboard) are, and where commands come in.",
    )
    .by_default(|| match Plan::default().admin.address {
        AdminAddress::At(address) => literal::text(&crate::addresses::show_listen(&address)),
        AdminAddress::Off => literal::text("off"),
    })
    .without("where that one is taken, larder starts without it"),
    key(
        V0_1,
        "token",
        Text("16 printable characters or more, without spaces"),
        "What a client must present to change anything over TCP, as `Authorization: Bearer TOKEN`.",
    )
    .without("only the UNIX socket may")
    .example("\"0123456789abcdef\"")
    .secret(),
    key(V0_1, "token_file", PATH, "A file with the token, for its owner and larder alone: whoever may read larder.toml reads `token`.")
        .without("`token` is it, if there is one")
        .example("\"/etc/larder/admin.token\""),
    key(
        V0_1,
        "explain_header",
        Text("the name of a header"),
        "A request of a site that brings the token of [admin] in this header is answered as always, and told why in larder-explain. docs/explain.md",
    )
    .without("no header asks that")
    .example("\"X-Larder-Explain\""),
    key(
        V0_1,
        "history",
        Text("a path, or \"off\""),
        "The file of some 2 MB that keeps the dashboard's last day over a restart; \"off\" keeps it in memory alone. docs/dashboard.md",
    )
    .without("beside the first [[disk]]: PATH.history, or larder.history in its directory; without a disk, in memory alone")
    .example("\"/var/lib/larder/history\""),
    key(
        V0_1,
        "details_to",
        List(&NETWORK),
        "Clients of the site that are told in an error what failed, where, and which setting changes it. All others are told a number, \
         which the access log has too.",
    )
    .by_default(|| literal::networks(&Plan::default().settings.details_to)),
    key(V0_1, "debug", Switch, "Allow POST /debug/advance, which moves the clocks of freshness. For tests.")
        .by_default(|| literal::switch(Plan::default().settings.debug)),
];
