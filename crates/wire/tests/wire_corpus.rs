//! The fuzz targets of this crate as plain tests: each runs over the seeds, and whatever else, in `fuzz/corpus`.
//!
//! What they assert is written in `fuzz/src`, which stands outside the workspace because only the fuzzer's build has its
//! dependencies.

#[path = "../../../fuzz/src/chunked.rs"]
mod chunked;
#[path = "../../../fuzz/src/request_head.rs"]
mod request_head;
#[path = "../../../fuzz/src/request_vs_hyper.rs"]
mod request_vs_hyper;
#[path = "../../../fuzz/src/response_head.rs"]
mod response_head;

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
fn request_head_keeps_its_laws() {
    check("request_head", request_head::run);
}

#[test]
fn response_head_keeps_its_laws() {
    check("response_head", response_head::run);
}

#[test]
fn chunked_keeps_its_laws() {
    check("chunked", chunked::run);
}

#[test]
fn hyper_reads_what_we_read() {
    check("request_vs_hyper", request_vs_hyper::run);
}
