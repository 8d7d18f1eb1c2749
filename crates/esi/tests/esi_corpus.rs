//! The fuzz target of this crate as a plain test: it runs over the seeds, and whatever else, in `fuzz/corpus`; and over texts of what matters.
//!
//! What it asserts is written in `fuzz/src`, which stands outside the workspace because only the fuzzer's build has its
//! flags.

use esi::Options;
use proptest::prelude::*;

#[path = "../../../fuzz/src/esi_text.rs"]
mod esi_text;

use esi_text::{obvious, scan, sent};

#[test]
fn seeds_of_esi_text() {
    let folder = format!("{}/../../fuzz/corpus/esi_text", env!("CARGO_MANIFEST_DIR"));
    let mut seeds = 0;
    for file in std::fs::read_dir(&folder).expect("the corpus is part of the repository") {
        let path = file.expect("it can be listed").path();
        esi_text::run(&std::fs::read(&path).expect("it can be read"));
        seeds += 1;
    }
    assert!(seeds >= 12, "{folder} has {seeds}");
}

proptest! {
    #[test]
    fn it_reads_as_the_obvious_scanner_does(
        parts in proptest::collection::vec(proptest::sample::select(vec![
            "<esi:include src=\"/x\"/>", "<esi:remove>", "</esi:remove>", "<!--esi", "-->", "<!--", "<![CDATA[", "]]>",
            "<", ">", "-", "!", "<p>", "a", "--", "<esi:comment x=\"\"/>", "<!---->", "\n", "]", "esi:", "/",
        ]), 0..14),
        piece in 1_usize..9,
    ) {
        let text = parts.concat();
        let document = scan(Options::default(), text.as_bytes(), piece);
        let (sent, obvious) = (sent(text.as_bytes(), &document.pieces), obvious(text.as_bytes()));
        prop_assert_eq!(String::from_utf8_lossy(&sent), String::from_utf8_lossy(&obvious), "{}", text);
    }
}
