//! The fuzz target of this crate as a plain test: it runs over the seeds, and whatever else, in `fuzz/corpus`.
//!
//! What it asserts is written in `fuzz/src`, which stands outside the workspace because only the fuzzer's build has its
//! dependencies.

#[path = "../../../fuzz/src/vcl_text.rs"]
mod vcl_text;

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

/// The shapes that make careless readers quadratic, at two sizes: ten times the text may take ten times as long, and
/// for the noise of a busy machine three times that again.
#[test]
fn time_is_linear_in_the_text() {
    let shapes: [(&str, &str, &str); 8] = [
        ("", "{\"", ""),
        ("vcl 4.1; ", "/* ", ""),
        ("vcl 4.1; sub a { ", "set x = (", ""),
        ("vcl 4.1; sub a { ", "if (a) { ", ""),
        ("vcl 4.1; sub a { set x = a", " + a", "; }"),
        ("vcl 4.1; ", "acl x {\"a ", ""),
        ("vcl 4.1; sub a { ", "set req.http.x = \"y\" + req.url; ", "}"),
        ("vcl 4.1; ", "sub a { } ", ""),
    ];
    for (start, repeated, end) in shapes {
        let time = |count: usize| {
            let text = format!("{start}{}{end}", repeated.repeat(count));
            let took = |_| time_taken(|| vcl_text::run(text.as_bytes()));
            (0..3).map(took).min().unwrap_or_default()
        };
        let (short, long) = (time(2_000), time(20_000));
        println!("{repeated}: {short:?} then {long:?}");
        assert!(long < 30 * short.max(std::time::Duration::from_millis(2)), "{repeated}: {short:?} then {long:?}");
    }
}

/// Time is measured here and nowhere else in this crate.
#[allow(clippy::disallowed_methods)]
fn time_taken(run: impl FnOnce()) -> std::time::Duration {
    let start = std::time::Instant::now();
    run();
    start.elapsed()
}
