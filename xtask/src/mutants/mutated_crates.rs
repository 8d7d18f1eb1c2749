//! Which files are mutated, and which tests must notice. A crate's own unit tests are asked first, because they are built
//! fastest; its corpus is asked about what they let live.

use std::path::{Path, PathBuf};

/// What of a crate is mutated.
pub struct MutatedCrate {
    pub name: &'static str,
    /// Said in the table of docs/behaviours.md.
    pub what: &'static str,
    /// In its `src`: files, and folders with all beneath them.
    pub places: &'static [&'static str],
    /// What `cargo test` is told, one run after the other.
    pub tests: &'static [&'static [&'static str]],
}

pub const CRATES: [MutatedCrate; 3] = [
    MutatedCrate { name: "rules", what: "all of it", places: &[""], tests: &[&["--lib"], &["--test", "rules_corpus"]] },
    MutatedCrate {
        name: "wire",
        what: "framing (heads, bodies, chunks, the exchange)",
        places: &[
            "body_decoder.rs",
            "chunk_encoder.rs",
            "chunk_reader.rs",
            "connection_options.rs",
            "exchange.rs",
            "framing.rs",
            "head_lines.rs",
            "hop_by_hop.rs",
            "request_head.rs",
            "request_target.rs",
            "response_head.rs",
            "response_writer.rs",
            "trailer_section.rs",
        ],
        tests: &[&["--lib"], &["--test", "wire_corpus"]],
    },
    MutatedCrate {
        name: "proxy",
        what: "the steps of a request and of a fetch",
        places: &[
            "fetch",
            "fetch.rs",
            "policy_steps.rs",
            "transaction",
            "transaction.rs",
            "upstream/block_read.rs",
            "upstream/http1_exchange.rs",
        ],
        tests: &[&["--lib"]],
    },
];

impl MutatedCrate {
    pub fn named(name: &str) -> Option<&'static MutatedCrate> {
        CRATES.iter().find(|of| of.name == name)
    }

    pub fn source(&self) -> PathBuf {
        Path::new("crates").join(self.name).join("src")
    }

    /// Is this file, as git names it, one to mutate? Files of tests are none; and a limit that is one more is another
    /// opinion and no fault.
    pub fn has(&self, path: &Path) -> bool {
        let Ok(inside) = path.strip_prefix(self.source()) else { return false };
        let name = inside.file_name().unwrap_or_default().to_string_lossy();
        let of_tests = name == "tests.rs" || name.ends_with("_tests.rs") || name.contains("_test_");
        let is_code = name.ends_with(".rs") && name != "limits.rs" && !of_tests;
        is_code && self.places.iter().any(|place| inside.starts_with(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_mutated_and_their_tests_are_not() {
        let proxy = MutatedCrate::named("proxy").unwrap();
        let has = |path: &str| proxy.has(Path::new(path));
        assert!(has("crates/proxy/src/fetch.rs") && has("crates/proxy/src/transaction/hit.rs"));
        assert!(!has("crates/proxy/src/fetch/prepare_tests.rs") && !has("crates/proxy/src/body.rs"));
        assert!(MutatedCrate::named("rules").unwrap().has(Path::new("crates/rules/src/date.rs")));
    }
}
