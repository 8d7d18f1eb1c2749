//! The keys of `[[route]]`, but for those of routes to memcached: which requests it is for, who answers, and what of it is ours.

use std::path::PathBuf;

use proxy::settings::{RootSettings, ShownSources, StatusPageSettings};

use crate::config::choices::LISTINGS;
use crate::config::definition::ValueKind::{Either, List, Map, Switch, Text, Words};
use crate::config::definition::{KeyDefinition, NETWORK, PATH, V0_1, key};
use crate::config::literal;

fn root() -> RootSettings {
    RootSettings::of(PathBuf::new())
}

/// An origin answers; and what any kind of route may say.
pub const ROUTE: &[KeyDefinition] = &[
    key(V0_1, "origin", Text("the name of an [origin.NAME]"), "The origin that answers; beside `memcached`, for what that has nothing.").required("\"site\""),
    key(
        V0_1,
        "host",
        List(&Text("a name without port, or *.NAME")),
        "Hosts that it is for; \"*.example.org\" is every name below.",
    )
    .without("any host")
    .example("[\"www.example.org\", \"*.example.org\"]"),
    key(
        V0_1,
        "path",
        List(&Text("a path that begins with /, without ?, # or space")),
        "The beginning of the path, by whole segments: \"/api\" is /api and /api/x, not /apix. One, or a list.",
    )
    .by_default(|| literal::text("/")),
    key(
        V0_1,
        "closed_paths",
        Either(&[Switch, List(&Text("a PCRE2 pattern"))]),
        "Paths that nobody is answered for (403): patterns, held against every meaning that a path may have, beside those that a preset closes on \
         its host. false: nor those. docs/static.md#closed-paths",
    )
    .without("none")
    .example("['^/private(?:$|/)', '(?i)\\.bak$']"),
    key(
        V0_1,
        "compress",
        Either(&[Switch, Words(|| vec!["always"])]),
        "What it answers is compressed as [compress] says (true), not at all (false), or also what is made for one client alone, with \
         cookies (\"always\").",
    )
    .by_default(|| literal::switch(true)),
    key(
        V0_1,
        "dictionary_paths",
        List(&Text("a path with * for what differs")),
        "Paths of which the answers are dictionaries for one another, where [compress] has dictionaries: files with a version in their \
         names. A * stands for what differs.",
    )
    .without("each answer is one for its own path")
    .example("[\"/static/app.*.js\"]"),
    key(
        V0_1,
        "purge_from",
        List(&NETWORK),
        "Networks that may PURGE its URLs, in place of those of [policy]. What belongs to a group (Cache-Group-Invalidation) is for those of [policy]. docs/purge.md",
    )
    .without("those of [policy] may")
    .example("[\"192.0.2.0/24\"]"),
    key(
        V0_1,
        "esi",
        Either(&[Switch, Words(|| vec!["surrogate"])]),
        "Which of its answers are looked through for parts. docs/esi.md",
    )
    .without("as [esi] says")
    .example("\"surrogate\""),
];

/// Files of a directory answer.
pub const ROOT: &[KeyDefinition] = &[
    key(V0_1, "root", PATH, "The directory. The whole path of the request is looked up beneath it.")
        .required("\"/srv/www\""),
    key(V0_1, "index", List(&Text("the name of a file")), "What answers for a directory: the first of these that is there. [] makes a directory as absent as a file that is not there.")
        .by_default(|| literal::texts(root().index.iter().map(String::as_str))),
    key(
        V0_1,
        "fallback",
        Text("the path of a file, such as \"/index.html\""),
        "A file that answers where there is none, for applications that make their pages in the browser.",
    )
    .without("404")
    .example("\"/index.html\""),
    key(V0_1, "precompressed", Switch, "Send a.js.br, a.js.zst or a.js.gz in place of a.js to clients that accept it.")
        .by_default(|| literal::switch(root().precompressed)),
    key(V0_1, "charset", Text("a name such as utf-8"), "The charset in the Content-Type of text.")
        .without("none is said")
        .example("\"utf-8\""),
    key(V0_1, "cache_control", Text("a value of the field"), "The Cache-Control field of every file.")
        .without("no such field")
        .example("\"public, max-age=3600\""),
    key(
        V0_1,
        "dotfiles",
        Switch,
        "Show files and directories whose names begin with a dot. /.well-known/ is shown in any case.",
    )
    .by_default(|| literal::switch(root().dotfiles)),
    key(
        V0_1,
        "sources",
        Switch,
        "Show sources of programs (.php and copies such as .php.bak) where nothing runs them. Where another route of the host does, .inc is one, too.",
    )
    .by_default(|| literal::switch(root().sources == ShownSources::All)),
    key(
        V0_1,
        "listing",
        Words(|| literal::words(&LISTINGS)),
        "A directory without an index file: 403 (\"off\"), or a list of it; \"negotiated\" goes by the request's Accept.",
    )
    .by_default(|| literal::word(&root().listing, &LISTINGS)),
    key(
        V0_1,
        "types",
        Map("the end of a name, without its dot", &Text("TYPE/SUBTYPE")),
        "Content-Types by the ends of names, in place of those built in.",
    )
    .without("larder's own table")
    .example("{ log = \"text/plain; charset=utf-8\" }"),
    key(V0_1, "default_type", Text("TYPE/SUBTYPE"), "The Content-Type for names that say nothing.")
        .without("\"application/octet-stream\"")
        .example("\"text/plain\""),
    key(
        V0_1,
        "error_pages",
        Map("a status from 400 to 599, 4xx or 5xx", &Text("the path of a file")),
        "Pages that stand in for errors of larder's own, by status or class. Each must belong to a route with a root; any kind of route \
         may have them.",
    )
    .without("a sentence in plain text")
    .example("{ 404 = \"/404.html\", 5xx = \"/50x.html\" }"),
];

/// larder's own counters answer.
pub const STATUS_PAGE: &[KeyDefinition] = &[
    key(V0_1, "stub_status", Switch, "Answer with larder's counters in the form of nginx's stub_status.")
        .without("no such page")
        .required("true"),
    key(V0_1, "allow_from", List(&NETWORK), "Networks that may see it.")
        .by_default(|| literal::networks(&StatusPageSettings::default().allow_from)),
];

/// Nobody answers.
pub const CLOSED: &[KeyDefinition] =
    &[key(V0_1, "closed", Switch, "403 for all of it.").without("the route's answerer answers").required("true")];
