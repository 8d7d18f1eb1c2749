//! The keys of `[process]`.

use crate::config::choices::SANDBOX;
use crate::config::definition::ValueKind::{List, Text, Words};
use crate::config::definition::{KeyDefinition, PATH, V0_1, key};
use crate::config::literal;
use crate::plan::SandboxPlan;
use crate::process_user::USER_FORM;

pub const PROCESS: &[KeyDefinition] = &[
    key(
        V0_1,
        "user",
        Text(USER_FORM),
        "Whom larder becomes once its addresses are bound, where root starts it: from then on it has no other rights, and what it opens, such as \
         logs and disks, it opens as that user. \"root\" says that it stays root on purpose. --user is the flag. docs/running.md",
    )
    .without("larder runs as whoever starts it, and warns where that is root")
    .example("\"larder\""),
    key(
        V0_1,
        "sandbox",
        Words(|| SANDBOX.map(|(word, _)| word).to_vec()),
        "Whether larder, once its addresses are bound, gives up all files that the config does not name, and all system calls that serving \
         does not need. What the kernel cannot is said at the start. --sandbox is the flag. docs/sandbox.md",
    )
    .by_default(|| {
        let is_default = |(_, is_on): &&(&str, bool)| *is_on == SandboxPlan::default().is_on;
        literal::text(SANDBOX.iter().find(is_default).map_or("", |(word, _)| word))
    }),
    key(
        V0_1,
        "sandbox_reads",
        List(&PATH),
        "Files and folders that are read besides: roots and certificates that a reload will name, what std.fileread() of a VCL reads. \
         docs/sandbox.md",
    )
    .without("only what the config names, with the folder that it is in")
    .example("[\"/srv/sites\"]"),
    key(
        V0_1,
        "sandbox_writes",
        List(&PATH),
        "Folders that are written in besides: of logs and sockets that a reload will name. docs/sandbox.md",
    )
    .without("only where the config has logs, disks, sockets and certificates that are ordered")
    .example("[\"/var/log/sites\"]"),
];
