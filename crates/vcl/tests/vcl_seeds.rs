//! The fuzz target of this crate as a plain test: it runs over the seeds, and whatever else, in `fuzz/corpus`.
//!
//! What it asserts is written in `fuzz/src`, which stands outside the workspace because only the fuzzer's build has its
//! dependencies.

use std::path::PathBuf;

#[path = "../../../fuzz/src/vcl_text.rs"]
mod vcl_text;

#[path = "../../../fuzz/src/vcl_program.rs"]
mod vcl_program;

#[test]
fn vcl_text_keeps_its_laws() {
    let folder = format!("{}/../../fuzz/corpus/vcl_text", env!("CARGO_MANIFEST_DIR"));
    let files = std::fs::read_dir(&folder).expect("the corpus is part of the repository");
    let mut count = 0;
    for file in files {
        let seed = std::fs::read(file.expect("a readable folder").path()).expect("a readable file");
        println!("{}", seed.escape_ascii()); // shown when the test fails
        vcl_text::run(&seed);
        count += 1;
    }
    assert!(count >= 30, "{folder} holds only {count}");
}

/// For whoever has a folder of VCL files: `VCL_TEXTS=DIR cargo test --release -p vcl laws`.
#[test]
fn texts_of_others_keep_the_laws() {
    let mut folders: Vec<PathBuf> = std::env::var_os("VCL_TEXTS").map(PathBuf::from).into_iter().collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a readable folder") {
            let path = entry.expect("a readable folder").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "vcl") {
                println!("{}", path.display()); // shown when the test fails
                vcl_text::run(&std::fs::read(&path).expect("a readable file"));
            }
        }
    }
}

/// Laws hold for long texts too; that the work is linear in them is counted in `effort`.
#[test]
fn long_texts_keep_the_laws() {
    let shapes =
        ["{\"", "vcl 4.1; /* ", "vcl 4.1; sub a { set x = (", "vcl 4.1; sub a { if (a) { ", "vcl 4.1; sub a { } "];
    for shape in shapes {
        vcl_text::run(shape.repeat(2_000).as_bytes());
    }
}

/// Programs, and what becomes one; the seeds of `vcl_text` are run too.
#[test]
fn vcl_program_keeps_its_laws() {
    for (corpus, run_min) in [("vcl_program", 15), ("vcl_text", 3)] {
        let folder = format!("{}/../../fuzz/corpus/{corpus}", env!("CARGO_MANIFEST_DIR"));
        let files = std::fs::read_dir(&folder).expect("the corpus is part of the repository");
        let mut count = 0;
        for file in files {
            let seed = std::fs::read(file.expect("a readable folder").path()).expect("a readable file");
            println!("{}", seed.escape_ascii()); // shown when the test fails
            count += usize::from(vcl_program::run(&seed));
        }
        assert!(count >= run_min, "of {folder} only {count} are programs");
    }
}
