//! The fuzz targets of this crate as plain tests: each runs over the seeds, and whatever else, in `fuzz/corpus`.
//!
//! What they assert is written in `fuzz/src`, which stands outside the workspace because only the fuzzer's build has its
//! dependencies.

#[path = "../../../fuzz/src/chunked.rs"]
mod chunked;
#[path = "../../../fuzz/src/fastcgi_answer.rs"]
mod fastcgi_answer;
#[path = "../../../fuzz/src/hpack_vs_h2.rs"]
mod hpack_vs_h2;
#[path = "../../../fuzz/src/http2_connection.rs"]
mod http2_connection;
#[path = "../../../fuzz/src/http2_frames.rs"]
mod http2_frames;
#[path = "../../../fuzz/src/request_head.rs"]
mod request_head;
#[path = "../../../fuzz/src/request_vs_hyper.rs"]
mod request_vs_hyper;
#[path = "../../../fuzz/src/response_head.rs"]
mod response_head;

use request_vs_hyper::{Difference, STRICTER};

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = format!("{}/../../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
    let files = std::fs::read_dir(&folder).expect("the corpus is part of the repository");
    let seeds: Vec<_> =
        files.map(|file| std::fs::read(file.expect("a readable folder").path()).expect("a readable file")).collect();
    assert!(seeds.len() >= 30, "{folder} holds only {}", seeds.len());
    seeds
}

fn check(target: &str, run: fn(&[u8])) {
    for seed in seeds(target) {
        println!("{}", seed.escape_ascii()); // shown when the test fails
        run(&seed);
    }
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
fn fastcgi_answer_keeps_its_laws() {
    check("fastcgi_answer", fastcgi_answer::run);
}

#[test]
fn http2_connection_keeps_its_laws() {
    check("http2_connection", http2_connection::run);
}

#[test]
fn http2_frames_keep_the_same_laws() {
    check("http2_frames", http2_frames::run);
}

#[test]
fn h2_reads_the_requests_that_we_read() {
    check("hpack_vs_h2", hpack_vs_h2::run);
}

#[test]
fn hyper_reads_what_we_read() {
    check("request_vs_hyper", request_vs_hyper::run);
}

#[test]
fn every_difference_from_hyper_on_the_list_is_shown_by_a_seed() {
    let shown: Vec<_> =
        seeds("request_vs_hyper").iter().filter_map(|seed| request_vs_hyper::difference(seed)).collect();
    let stricter = STRICTER.iter().map(|(token, _)| Difference::WeAreStricter(token));
    let others = [Difference::HigherMinorVersion, Difference::HyperRefusesTarget];
    let unshown: Vec<_> = stricter.chain(others).filter(|difference| !shown.contains(difference)).collect();
    assert!(unshown.is_empty(), "{unshown:?}");
}
