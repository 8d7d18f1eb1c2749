//! What an operator decides about content codings: which answers are compressed, and how.

use rules::ContentCoding;

/// The settings of `[compress]`. Where a VCL decides they do not count: it has words of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompressSettings {
    pub is_on: bool,
    /// Media types that are worth it: `text/*`, `application/*+json`.
    pub types: Vec<String>,
    /// Shorter bodies are not compressed …
    pub bytes_min: u64,
    /// … and nor are longer ones.
    pub bytes_max: u64,
    /// In which codings answers are made, the dearest first.
    pub codings: Vec<ContentCoding>,
    /// Which ones origins are asked for, whoever asks us: what they send is stored once, and made into whatever else is asked for.
    pub asked_of_origins: Vec<ContentCoding>,
    /// Texts over TLS say that they are dictionaries, and go to who has one as what differs from it (RFC 9842).
    pub dictionaries: bool,
}

/// What of a route is compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RouteCompression {
    /// As `[compress]` says.
    #[default]
    Usual,
    Off,
    /// Also what is made for one client alone, with cookies on either side: nothing that a stranger can put into such an answer stands
    /// beside anything that he must not learn (BREACH).
    Always,
}

/// Texts, and formats that are texts in all but name. What is compressed already is not among them.
const TYPES: [&str; 17] = [
    "text/*",
    "application/javascript",
    "application/json",
    "application/xml",
    "application/*+json",
    "application/*+xml",
    "application/wasm",
    "application/x-javascript",
    "application/x-ndjson",
    "application/rtf",
    "application/vnd.ms-fontobject",
    "font/ttf",
    "font/otf",
    "image/svg+xml",
    "image/bmp",
    "image/x-icon",
    "image/vnd.microsoft.icon",
];

impl Default for CompressSettings {
    fn default() -> CompressSettings {
        use ContentCoding::{Brotli, Gzip, Zstd};
        CompressSettings {
            is_on: true,
            types: TYPES.map(str::to_owned).to_vec(),
            bytes_min: 1 << 10,
            bytes_max: 8 << 20,
            codings: vec![Brotli, Zstd, Gzip],
            asked_of_origins: vec![Gzip],
            dictionaries: false,
        }
    }
}

impl CompressSettings {
    /// The Accept-Encoding that origins are sent.
    pub(crate) fn asked(&self) -> String {
        let names: Vec<&str> = self.asked_of_origins.iter().map(|coding| coding.name()).collect();
        if names.is_empty() { ContentCoding::Identity.name().to_owned() } else { names.join(", ") }
    }
}
