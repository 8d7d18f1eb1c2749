//! Laws of Range and Content-Range, for any bytes. The first eight bytes are the body's length, kept small by the ninth.

use rules::limits::RANGES_MAX;
use rules::range::{ContentRange, RangeSpecs, Ranges};

/// Panics when a law is broken.
pub fn run(data: &[u8]) {
    let Some((head, value)) = data.split_first_chunk::<9>() else { return };
    let [length_bytes @ .., bits] = *head;
    let length = u64::from_le_bytes(length_bytes) >> (bits & 63);
    if let Some(specs) = RangeSpecs::parse(value) {
        assert!((1..=RANGES_MAX).contains(&specs.specs().len()));
        check_resolved(&specs, length);
    }
    if let Some(part) = ContentRange::parse(value) {
        check_content_range(&part, value);
    }
}

fn check_resolved(specs: &RangeSpecs, length: u64) {
    let ranges = match specs.resolve(length) {
        Ranges::Unsatisfiable => {
            assert!(specs.specs().iter().all(|spec| spec.resolve(length).is_none()));
            return;
        }
        Ranges::Whole => std::iter::once(0..length).collect(),
        Ranges::One(range) => vec![range],
        Ranges::Many(ranges) => {
            assert!(ranges.len() > 1 && ranges.len() <= specs.specs().len());
            ranges
        }
    };
    let total: u64 = ranges.iter().map(|range| range.end - range.start).sum();
    assert!(total <= length, "never more than the whole");
    for (n, range) in ranges.iter().enumerate() {
        assert!(range.start < range.end && range.end <= length);
        let apart = |other: &std::ops::Range<u64>| other.end < range.start || range.end < other.start;
        assert!(ranges[..n].iter().all(apart), "what overlaps or touches is sent as one");
    }
    // Every byte asked for is sent; and none that was not, unless the whole is.
    let asked: Vec<_> = specs.specs().iter().filter_map(|spec| spec.resolve(length)).collect();
    for range in &asked {
        assert!(ranges.iter().any(|sent| sent.start <= range.start && range.end <= sent.end));
    }
    let is_whole = ranges.first() == Some(&(0..length));
    for at in ranges.iter().flat_map(|range| [range.start, range.end - 1, range.start + (range.end - range.start) / 2])
    {
        assert!(is_whole || asked.iter().any(|range| range.contains(&at)));
    }
}

fn check_content_range(part: &ContentRange, value: &[u8]) {
    assert!(part.range.start < part.range.end && part.length() > 0);
    assert!(part.complete_length.is_none_or(|complete| part.range.end <= complete));
    assert_eq!(part.is_whole(), part.complete_length == Some(part.length()) && part.range.start == 0);
    let mut written = Vec::new();
    part.write_to(&mut written);
    assert_eq!(ContentRange::parse(&written).as_ref(), Some(part), "what is written is read as the same");
    // The part serves exactly the requests whose one range lies in it.
    let own = format!("bytes={}-{}", part.range.start, part.range.end - 1);
    let own = RangeSpecs::parse(own.as_bytes()).expect("a range by the grammar");
    assert_eq!(part.serves(&own), Some(part.range.clone()), "{}", value.escape_ascii());
    if let Some(complete) = part.complete_length {
        let all = RangeSpecs::parse(b"bytes=0-").expect("a range by the grammar");
        assert_eq!(part.serves(&all).is_some(), part.length() == complete);
    }
}
