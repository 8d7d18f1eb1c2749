//! The fuzz targets of this crate as plain tests: each runs over the seeds, and whatever else, in `fuzz/corpus`.
//!
//! What they assert is written in `fuzz/src`, which stands outside the workspace because only the fuzzer's build has its
//! dependencies.

#[path = "../../../fuzz/src/accept_encoding.rs"]
mod accept_encoding;
#[path = "../../../fuzz/src/cache_control.rs"]
mod cache_control;
#[path = "../../../fuzz/src/range.rs"]
mod range;

fn check(target: &str, run: fn(&[u8])) {
    let folder = format!("{}/../../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
    let mut seeds_count = 0;
    for seed in std::fs::read_dir(&folder).expect("the corpus is part of the repository") {
        let path = seed.expect("a readable folder").path();
        println!("{}", path.display()); // shown when the test fails
        run(&std::fs::read(&path).expect("a readable file"));
        seeds_count += 1;
    }
    assert!(seeds_count >= 30, "{folder} holds only {seeds_count}");
}

#[test]
fn accept_encoding_keeps_its_laws() {
    check("accept_encoding", accept_encoding::run);
}

#[test]
fn cache_control_keeps_its_laws() {
    check("cache_control", cache_control::run);
}

#[test]
fn range_keeps_its_laws() {
    check("range", range::run);
}
