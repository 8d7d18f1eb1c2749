//! The fuzz target of this crate as a plain test: it runs over the seeds, and whatever else, in `fuzz/corpus`.
//!
//! What it asserts is written in `fuzz/src`, which stands outside the workspace because only the fuzzer's build has its
//! dependencies.

#[path = "../../../fuzz/src/codings.rs"]
mod codings;

#[test]
fn codings_keep_their_laws() {
    let folder = format!("{}/../../fuzz/corpus/codings", env!("CARGO_MANIFEST_DIR"));
    let mut seeds_count = 0;
    for seed in std::fs::read_dir(&folder).expect("the corpus is part of the repository") {
        let path = seed.expect("a readable folder").path();
        println!("{}", path.display()); // shown when the test fails
        codings::run(&std::fs::read(&path).expect("a readable file"));
        seeds_count += 1;
    }
    assert!(seeds_count >= 30, "{folder} holds only {seeds_count}");
}
