//! What a file is, by the end of its name.

use std::collections::BTreeMap;

use crate::settings::{NamedTypes, RootSettings};

/// For names that say nothing.
pub const UNKNOWN: &str = "application/octet-stream";

/// Extension, media type; sorted by extension.
const TYPES: &[(&str, &str)] = &[
    ("7z", "application/x-7z-compressed"),
    ("aac", "audio/aac"),
    ("apng", "image/apng"),
    ("atom", "application/atom+xml"),
    ("avi", "video/x-msvideo"),
    ("avif", "image/avif"),
    ("bmp", "image/bmp"),
    ("bz2", "application/x-bzip2"),
    ("cjs", "text/javascript"),
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("deb", "application/vnd.debian.binary-package"),
    ("doc", "application/msword"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("eot", "application/vnd.ms-fontobject"),
    ("epub", "application/epub+zip"),
    ("flac", "audio/flac"),
    ("geojson", "application/geo+json"),
    ("gif", "image/gif"),
    ("gz", "application/gzip"),
    ("heic", "image/heic"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("ico", "image/x-icon"),
    ("ics", "text/calendar"),
    ("jar", "application/java-archive"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript"),
    ("json", "application/json"),
    ("jsonld", "application/ld+json"),
    ("jxl", "image/jxl"),
    ("m3u8", "application/vnd.apple.mpegurl"),
    ("m4a", "audio/mp4"),
    ("m4s", "video/iso.segment"),
    ("m4v", "video/mp4"),
    ("map", "application/json"),
    ("md", "text/markdown"),
    ("mid", "audio/midi"),
    ("mjs", "text/javascript"),
    ("mkv", "video/matroska"),
    ("mov", "video/quicktime"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("mpd", "application/dash+xml"),
    ("mpeg", "video/mpeg"),
    ("mpg", "video/mpeg"),
    ("odp", "application/vnd.oasis.opendocument.presentation"),
    ("ods", "application/vnd.oasis.opendocument.spreadsheet"),
    ("odt", "application/vnd.oasis.opendocument.text"),
    ("oga", "audio/ogg"),
    ("ogg", "audio/ogg"),
    ("ogv", "video/ogg"),
    ("opus", "audio/ogg"),
    ("otf", "font/otf"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("ppt", "application/vnd.ms-powerpoint"),
    ("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    ("rss", "application/rss+xml"),
    ("rtf", "application/rtf"),
    ("shtml", "text/html"),
    ("svg", "image/svg+xml"),
    ("svgz", "image/svg+xml"),
    ("swf", "application/x-shockwave-flash"),
    ("tar", "application/x-tar"),
    ("tif", "image/tiff"),
    ("tiff", "image/tiff"),
    ("toml", "application/toml"),
    ("ts", "video/mp2t"),
    ("ttf", "font/ttf"),
    ("txt", "text/plain"),
    ("vtt", "text/vtt"),
    ("wasm", "application/wasm"),
    ("wav", "audio/wav"),
    ("weba", "audio/webm"),
    ("webm", "video/webm"),
    ("webmanifest", "application/manifest+json"),
    ("webp", "image/webp"),
    ("woff", "font/woff"),
    ("woff2", "font/woff2"),
    ("xhtml", "application/xhtml+xml"),
    ("xls", "application/vnd.ms-excel"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("xml", "text/xml"),
    ("xz", "application/x-xz"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("zip", "application/zip"),
    ("zst", "application/zstd"),
];

/// Is it what sites publish: a page, a style, a script, a picture, a font, sound, film or a document, be it packed for browsers? Not data,
/// plain text, archives, and what is called as nothing that is known.
pub(super) fn is_published(name: &[u8]) -> bool {
    let is_script = |ending: String| SCRIPT_PAGES.contains(&ending.as_str());
    extension(unpacked(name)).is_some_and(is_script) || is_page_or_part(name)
}

/// The same without what is run.
pub(super) fn is_page_or_part(name: &[u8]) -> bool {
    let is_of_class = |media: &str| PUBLISHED.iter().any(|class| media.starts_with(class));
    extension(unpacked(name)).and_then(|ending| shipped_type(&ending)).is_some_and(is_of_class)
}

fn unpacked(name: &[u8]) -> &[u8] {
    PACKED.iter().find_map(|packed| name.strip_suffix(packed.as_bytes())).unwrap_or(name)
}

const PACKED: [&str; 3] = [".br", ".zst", ".gz"];
/// Pages whose types are not sent, since they are run.
const SCRIPT_PAGES: [&str; 2] = ["php", "phtml"];
/// How the types of what is published begin.
const PUBLISHED: [&str; 10] = [
    "text/html",
    "application/xhtml",
    "text/css",
    "text/javascript",
    "image/",
    "font/",
    "audio/",
    "video/",
    "application/pdf",
    "application/vnd.ms-fontobject",
];

/// The Content-Type of a file. Text gets the charset, if one is given: nothing in the file's name says which it is.
pub(crate) fn content_type(name: &[u8], settings: &RootSettings) -> String {
    let RootSettings { types, default_type, charset, .. } = settings;
    named_type(name, types, default_type.as_deref(), charset.as_deref())
}

/// The same, of what else has a name.
pub(crate) fn content_type_of_item(name: &[u8], types: &NamedTypes) -> String {
    named_type(name, &types.types, types.default_type.as_deref(), types.charset.as_deref())
}

fn named_type(
    name: &[u8],
    types: &BTreeMap<String, String>,
    default_type: Option<&str>,
    charset: Option<&str>,
) -> String {
    let extension = extension(name);
    if let Some(kind) = extension.as_ref().and_then(|extension| types.get(extension)) {
        return kind.clone();
    }
    let Some(kind) = extension.and_then(|extension| shipped_type(&extension)) else {
        return default_type.unwrap_or(UNKNOWN).to_owned();
    };
    match charset {
        Some(charset) if is_text(kind) => format!("{kind}; charset={charset}"),
        _ => kind.to_owned(),
    }
}

/// What ships, by the end of a name in lower case and without its dot.
pub fn shipped_type(extension: &str) -> Option<&'static str> {
    TYPES.binary_search_by(|(known, _)| (*known).cmp(extension)).ok().map(|at| TYPES[at].1)
}

/// Every end of a name that something ships for.
pub fn shipped_extensions() -> impl Iterator<Item = &'static str> {
    TYPES.iter().map(|(extension, _)| *extension)
}

/// What is behind the last dot, in lower case.
/// What ships for this name.
pub(crate) fn type_by_name(name: &[u8]) -> &'static str {
    extension(name).and_then(|extension| shipped_type(&extension)).unwrap_or(UNKNOWN)
}

fn extension(name: &[u8]) -> Option<String> {
    let name = name.rsplit(|&b| b == b'/').next().unwrap_or(name);
    let dot = name.iter().rposition(|&b| b == b'.')?;
    String::from_utf8(name[dot + 1..].to_ascii_lowercase()).ok()
}

/// Text as its readers decode it by the charset: all `text/`, and XML of other kinds.
pub fn is_text(kind: &str) -> bool {
    kind.starts_with("text/") || kind.starts_with("application/") && kind.ends_with("+xml")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> RootSettings {
        RootSettings { charset: Some("gbk".to_owned()), ..RootSettings::of("/".into()) }
    }

    fn check(name: &str, expect: &str) {
        assert_eq!(content_type(name.as_bytes(), &settings()), expect, "{name}");
    }

    #[test]
    fn the_end_of_a_name_says_what_it_is() {
        check("a/index.html", "text/html; charset=gbk");
        check("A.HTML", "text/html; charset=gbk");
        check("a.min.js", "text/javascript; charset=gbk");
        check("feed.rss", "application/rss+xml; charset=gbk");
        check("a.json", "application/json");
        check("a.svg", "image/svg+xml");
        check("a.tar.gz", "application/gzip");
        check("b.html/a", "application/octet-stream");
        check("README", "application/octet-stream");
        check("a.", "application/octet-stream");
        check("a.\u{e9}", "application/octet-stream");
        assert_eq!(content_type(b"a.txt", &RootSettings::of("/".into())), "text/plain");
    }

    #[test]
    fn what_sites_publish_is_told_from_data() {
        for name in [
            "a.html",
            "A.HTM",
            "a.css.br",
            "b/a.js.gz",
            "a.php",
            "a.phtml",
            "a.svg",
            "a.woff2",
            "a.eot",
            "a.mp4",
            "a.pdf",
        ] {
            assert!(is_published(name.as_bytes()), "{name}");
        }
        for name in ["a", "a.txt", "a.json", "a.toml", "a.zip", "a.html.bak", "a.tar.gz", "a.conf", "a.xml"] {
            assert!(!is_published(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn an_operator_s_types_go_before_those_that_ship() {
        let mut settings = settings();
        settings.types.insert("txt".to_owned(), "text/plain; charset=utf-8".to_owned());
        settings.default_type = Some("text/plain".to_owned());
        for (name, expect) in
            [("a.TXT", "text/plain; charset=utf-8"), ("a.html", "text/html; charset=gbk"), ("README", "text/plain")]
        {
            assert_eq!(content_type(name.as_bytes(), &settings), expect, "{name}");
        }
    }

    #[test]
    fn the_table_is_sorted() {
        assert!(TYPES.is_sorted_by(|a, b| a.0 < b.0));
    }
}
