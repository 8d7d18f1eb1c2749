//! How much work reading a text was, counted: words that were looked at, and bytes that were searched.
//!
//! Only in tests. A count says the same on every machine, so that reading is linear can be asserted without a clock.

use std::cell::Cell;

thread_local! {
    static SPENT: Cell<u64> = const { Cell::new(0) };
}

pub(crate) fn spend(units: usize) {
    SPENT.set(SPENT.get() + units as u64);
}

/// What this thread spends on it.
fn spent_by(run: impl FnOnce()) -> u64 {
    let before = SPENT.get();
    run();
    SPENT.get() - before
}

/// The shapes that make careless readers quadratic: ten times the text is about ten times the work.
#[test]
fn work_is_linear_in_the_text() {
    let shapes: [(&str, &str, &str); 9] = [
        ("", "{\"", ""),
        ("vcl 4.1; ", "/* ", ""),
        ("vcl 4.1; sub a { ", "set x = (", ""),
        ("vcl 4.1; sub a { ", "if (a) { ", ""),
        ("vcl 4.1; sub a { set x = a", " + a", "; }"),
        ("vcl 4.1; ", "acl x {\"a ", ""),
        ("vcl 4.1; sub a { ", "set req.http.x = \"y\" + req.url; ", "}"),
        ("vcl 4.1; ", "sub a { } ", ""),
        // Words that begin definitions, all in one line, behind a mistake.
        ("vcl 4.1; backend ( ", "{ sub ", ""),
    ];
    let work = |text: String| {
        let first = crate::Included { name: "t.vcl".to_owned(), bytes: text.into_bytes() };
        spent_by(|| drop(crate::check(first, &crate::NoIncludes)))
    };
    let mut all = 0;
    for (start, repeated, end) in shapes {
        let of = |count: usize| work(format!("{start}{}{end}", repeated.repeat(count)));
        let (short, long) = (of(2_000), of(20_000));
        // Some are given up at their first words.
        assert!(long <= 12 * short.max(100), "{start}{repeated}: {short} then {long}");
        all += long;
    }
    assert!(all > 100_000, "next to nothing was counted: {all}");
}
