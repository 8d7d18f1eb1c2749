//! Values as larder.toml writes them: what the defaults of the code are, for the pages and for `larder config show`.

use std::time::Duration;

use proxy::settings::Network;

const SIZES: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// In the largest unit that leaves no rest; without a unit below 1024.
pub fn size(bytes: impl TryInto<u64>) -> String {
    let bytes = bytes.try_into().unwrap_or(u64::MAX);
    match SIZES.iter().find(|(_, factor)| bytes >= *factor && bytes.is_multiple_of(*factor)) {
        Some((unit, factor)) => format!("\"{}{unit}\"", bytes / factor),
        None => bytes.to_string(),
    }
}

/// Up to two minutes in seconds, then in the largest unit that leaves no rest.
pub fn time(time: Duration) -> String {
    let ms = time.as_millis();
    let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)];
    match units.iter().find(|(unit, factor)| ms.is_multiple_of(*factor) && (ms > 120_000 || *unit == "s")) {
        Some((unit, factor)) => format!("\"{}{unit}\"", ms / factor),
        None => format!("\"{ms}ms\""),
    }
}

pub fn number(number: impl TryInto<u64>) -> String {
    number.try_into().unwrap_or(u64::MAX).to_string()
}

/// A part of a whole, as a fraction.
pub fn share(part: u64, whole: u64) -> String {
    format!("{:?}", part as f64 / whole as f64)
}

pub fn switch(is_on: bool) -> String {
    is_on.to_string()
}

/// A text in quotes.
pub fn text(written: &str) -> String {
    toml::Value::String(written.to_owned()).to_string()
}

/// A key, in quotes where it needs them.
pub fn key(written: &str) -> String {
    let is_bare = !written.is_empty() && written.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    if is_bare { written.to_owned() } else { text(written) }
}

pub fn texts<'a>(all: impl IntoIterator<Item = &'a str>) -> String {
    list(all.into_iter().map(text))
}

/// Of literals.
pub fn list(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(", "))
}

pub fn networks(networks: &[Network]) -> String {
    list(networks.iter().map(|network| text(&network.to_string())))
}

/// The word for one of a few values.
pub fn word<T: PartialEq>(value: &T, words: &[(&'static str, T)]) -> String {
    words.iter().find(|(_, of)| of == value).map_or_else(String::new, |(word, _)| text(word))
}

/// All words, for a `ValueKind::Words`.
pub fn words<T>(words: &[(&'static str, T)]) -> Vec<&'static str> {
    words.iter().map(|(word, _)| *word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_written_short_and_read_back() {
        for (bytes, expect) in [(0_u64, "0"), (100, "100"), (1024, "\"1KiB\""), (1 << 40, "\"1TiB\""), (1025, "1025")] {
            assert_eq!(size(bytes), expect);
        }
        for (ms, expect) in [
            (0, "\"0s\""),
            (250, "\"250ms\""),
            (60_000, "\"60s\""),
            (120_000, "\"120s\""),
            (180_000, "\"3m\""),
            (3_600_000, "\"1h\""),
            (86_400_000, "\"1d\""),
        ] {
            assert_eq!(time(Duration::from_millis(ms)), expect);
            let read = crate::quantities::parse_duration(expect.trim_matches('"'));
            assert_eq!(read, Ok(Duration::from_millis(ms)));
        }
    }

    #[test]
    fn texts_and_networks_are_toml() {
        assert_eq!(texts(["a", "b\"c"]), "[\"a\", 'b\"c']");
        assert_eq!(networks(&Network::LOOPBACK), "[\"127.0.0.0/8\", \"::1\"]");
    }
}
