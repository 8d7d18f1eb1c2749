//! Metrics of the disks.

use std::fmt::Display;

use cache::{DiskState, DiskStats};

use crate::admin::metric_definition::{MetricDefinition, Unit, counter, gauge};
use crate::admin::metric_label::LabelDefinition;
use crate::admin::metric_samples::Samples;
use crate::admin::observation::Observation;

pub const PATH: LabelDefinition =
    LabelDefinition { name: "path", says: "the disk's folder", bound: "the [[disk]]s of the configuration" };
const WHY: LabelDefinition =
    LabelDefinition { name: "why", says: "why something was not written", bound: "one for each reason: fewer than 20" };

pub fn each<T: Display>(seen: &Observation, to: &mut Samples<'_>, figure: fn(&DiskStats) -> T) {
    for disk in &seen.disks {
        to.of(&[&disk.path.to_string_lossy()], figure(disk));
    }
}

pub const ROWS: &[MetricDefinition] = &[
    gauge("larder_disk_up", Unit::Count, "1, or 0 for a disk that failed", |seen, to| {
        each(seen, to, |disk| u64::from(disk.state == DiskState::Up));
    })
    .by(&[&PATH]),
    gauge("larder_disk_limit_bytes", Unit::Bytes, "Its size", |seen, to| each(seen, to, |disk| disk.bytes))
        .by(&[&PATH]),
    gauge("larder_disk_objects", Unit::Count, "Answers on it", |seen, to| each(seen, to, |disk| disk.objects))
        .by(&[&PATH]),
    gauge("larder_disk_index_bytes", Unit::Bytes, "Memory that its index takes", |seen, to| {
        each(seen, to, |disk| disk.index_bytes);
    })
    .by(&[&PATH]),
    gauge(
        "larder_disk_index_ready",
        Unit::Count,
        "1, or 0 while its index is still coming back after a start",
        |seen, to| each(seen, to, |disk| u64::from(disk.index_is_back)),
    )
    .by(&[&PATH]),
    gauge("larder_disk_index_ratio", Unit::Ratio, "How much of its index has been read", |seen, to| {
        each(seen, to, |disk| disk.index_percent as f64 / 100.0);
    })
    .by(&[&PATH]),
    gauge("larder_disk_queued_bytes", Unit::Bytes, "Bodies that wait to be written", |seen, to| {
        each(seen, to, |disk| disk.queued_bytes);
    })
    .by(&[&PATH]),
    counter("larder_disk_hits_total", Unit::Count, "Records and blocks that were read", |seen, to| {
        each(seen, to, |disk| disk.hits);
    })
    .by(&[&PATH]),
    counter("larder_disk_read_bytes_total", Unit::Bytes, "Bytes read", |seen, to| {
        each(seen, to, |disk| disk.bytes_read);
    })
    .by(&[&PATH]),
    counter(
        "larder_disk_lent_total",
        Unit::Count,
        "Answers and slices sent from the file without a copy",
        |seen, to| each(seen, to, |disk| disk.leased),
    )
    .by(&[&PATH]),
    counter("larder_disk_written_bytes_total", Unit::Bytes, "Bytes written", |seen, to| {
        each(seen, to, |disk| disk.bytes_written);
    })
    .by(&[&PATH]),
    counter("larder_disk_damaged_total", Unit::Count, "What was there and did not sum up", |seen, to| {
        each(seen, to, |disk| disk.lost_damaged);
    })
    .by(&[&PATH]),
    counter("larder_disk_refused_total", Unit::Count, "What was not written, and why", |seen, to| {
        for disk in &seen.disks {
            for (why, count) in disk.refused {
                to.of(&[&disk.path.to_string_lossy(), why.token()], count);
            }
        }
    })
    .by(&[&PATH, &WHY]),
];
