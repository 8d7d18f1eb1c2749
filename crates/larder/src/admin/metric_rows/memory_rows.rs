//! Metrics of the memory, and of what is stored.

use crate::admin::metric_definition::{MetricDefinition, Unit, counter, gauge};
use crate::admin::metric_label::LabelDefinition;

const BYTES: Unit = Unit::Bytes;
const COUNT: Unit = Unit::Count;

const SELECTOR: LabelDefinition = LabelDefinition { name: "selector", says: "what said what is meant", bound: "9" };
const OUTCOME: LabelDefinition =
    LabelDefinition { name: "outcome", says: "`dropped`, `softened`, `dry` or `refused`", bound: "4" };

pub const ROWS: &[MetricDefinition] = &[
    counter("larder_purge_orders_total", COUNT, "Orders to purge, by the admin address", |seen, to| {
        seen.purge_orders.iter().for_each(|(selector, outcome, count)| to.of(&[selector, outcome], count));
    })
    .by(&[&SELECTOR, &OUTCOME]),
    gauge("larder_memory_limit_bytes", BYTES, "What the process may occupy beside its base", |seen, to| {
        to.one(seen.memory.limit_bytes);
    }),
    gauge("larder_memory_base_bytes", BYTES, "What a process occupies anyway", |seen, to| {
        to.one(seen.memory.base_bytes);
    }),
    gauge(
        "larder_memory_occupied_bytes",
        BYTES,
        "What the process occupies, the store's file in memory included",
        |seen, to| to.one(seen.memory.occupied_bytes),
    ),
    gauge(
        "larder_memory_share_bytes",
        BYTES,
        "What of the limit what is accounted may take at the moment",
        |seen, to| to.one(seen.cache.memory_bytes_max),
    ),
    gauge("larder_memory_used_bytes", BYTES, "What is accounted: index, heads, bodies, connections", |seen, to| {
        to.one(seen.cache.memory_bytes);
    }),
    gauge("larder_memory_file_bytes", BYTES, "What bodies take that are sent from the file in memory", |seen, to| {
        to.one(seen.cache.file_memory_bytes);
    }),
    gauge("larder_memory_leaving_bytes", BYTES, "Of these, what only its last readers keep", |seen, to| {
        to.one(seen.cache.leaving_bytes);
    }),
    gauge("larder_memory_refuses", COUNT, "1 while new connections are refused for want of memory", |seen, to| {
        to.one(u64::from(seen.memory.refuses));
    }),
    gauge(
        "larder_dictionaries",
        COUNT,
        "Texts that are known as dictionaries, stored or kept beside the store",
        |seen, to| to.one(seen.cache.dictionaries),
    ),
    gauge("larder_dictionary_bytes", BYTES, "What those take that are kept beside the store", |seen, to| {
        to.one(seen.cache.dictionary_bytes);
    }),
    gauge("larder_objects", COUNT, "Stored answers", |seen, to| to.one(seen.cache.objects)),
    gauge("larder_keys", COUNT, "Stored URLs", |seen, to| to.one(seen.cache.keys)),
    counter(
        "larder_encodings_recalled_total",
        COUNT,
        "Codings of stored answers that came back from disks",
        |seen, to| to.one(seen.cache.encodings_recalled),
    ),
    counter("larder_encodings_made_total", COUNT, "Codings of stored answers that were made and kept", |seen, to| {
        to.one(seen.cache.encodings_made);
    }),
    counter("larder_deltas_made_total", COUNT, "Of them those that say what differs from a dictionary", |seen, to| {
        to.one(seen.cache.deltas_made);
    }),
    counter(
        "larder_dictionaries_given_up_total",
        COUNT,
        "Dictionaries that were kept and went for their age or for want of room",
        |seen, to| to.one(seen.cache.dictionaries_given_up),
    ),
    counter("larder_evictions_total", COUNT, "Answers that made room for others", |seen, to| {
        to.one(seen.cache.evictions);
    }),
    counter("larder_invalidated_total", COUNT, "Answers dropped by purges and unsafe methods", |seen, to| {
        to.one(seen.cache.invalidated);
    }),
    counter("larder_banned_total", COUNT, "Answers dropped by bans", |seen, to| to.one(seen.cache.banned)),
    counter("larder_stored_total", COUNT, "Answers that were stored whole", |seen, to| to.one(seen.cache.landed)),
    counter("larder_refreshed_total", COUNT, "Stored answers that the origin confirmed", |seen, to| {
        to.one(seen.cache.refreshed);
    }),
    counter(
        "larder_overflowed_total",
        COUNT,
        "Answers that grew too large to store while they were fetched",
        |seen, to| to.one(seen.cache.overflowed),
    ),
];
