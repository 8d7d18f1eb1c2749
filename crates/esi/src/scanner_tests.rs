//! The scanner, by what goes out of a text: whole, and in pieces of every length. Beside a slow scanner that is easy to believe it runs in
//! `tests/esi_corpus.rs`.

use proptest::prelude::*;

use crate::limits::{NESTED_MAX, PIECES_MAX, TAG_BYTES_MAX};
use crate::{Document, Include, Options, Piece, Scanner, When};

const VARNISH: Options =
    Options { wants_xml: true, ignores_others: false, removes_bom: false, takes_https: false, has_variables: false };

fn scan(options: Options, text: &[u8], piece: usize) -> Document {
    let mut scanner = Scanner::new(options);
    text.chunks(piece.max(1)).for_each(|piece| scanner.push(piece));
    scanner.finish()
}

/// What goes out, with each include as `{src}` or `{src|alt}`, with `?` where it goes on, and `(attempt:except)`.
fn shown(text: &[u8], pieces: &[Piece]) -> String {
    let mut out = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(range) => {
                out += &String::from_utf8_lossy(&text[range.start as usize..range.end as usize]);
            }
            Piece::Include(Include { src, alt, goes_on, .. }) => {
                let alt = alt.as_ref().map(|alt| format!("|{}", String::from_utf8_lossy(alt))).unwrap_or_default();
                out += &format!("{{{}{alt}{}}}", String::from_utf8_lossy(src), if *goes_on { "?" } else { "" });
            }
            Piece::Variable(variable) => out += &format!("[{:?}]", variable.name),
            Piece::Choose { whens, otherwise } => {
                let when =
                    |when: &When| format!("{}?{}:", String::from_utf8_lossy(&when.test), shown(text, &when.pieces));
                out += &format!("({}{})", whens.iter().map(when).collect::<String>(), shown(text, otherwise));
            }
            Piece::Try { attempt, except } => {
                out += &format!("({}:{})", shown(text, attempt), shown(text, except));
            }
        }
    }
    out
}

/// The same in whatever pieces the text comes. Returns what was complained of.
fn check(options: Options, text: &str, expect: &str) -> Vec<&'static str> {
    let whole = scan(options, text.as_bytes(), usize::MAX);
    assert_eq!(shown(text.as_bytes(), &whole.pieces), expect, "{text}");
    for piece in 1..text.len() {
        assert_eq!(scan(options, text.as_bytes(), piece), whole, "{text} by {piece}");
    }
    whole.complaints.iter().map(|complaint| complaint.text).collect()
}

fn check_well(text: &str, expect: &str) {
    assert_eq!(check(VARNISH, text, expect), [""; 0], "{text}");
}

fn check_wrong(text: &str, expect: &str, why: &str) {
    let complaints = check(VARNISH, text, expect);
    assert!(complaints.len() == 1 && complaints[0].contains(why), "{text}: {complaints:?}");
}

#[test]
fn includes_are_found_and_the_rest_goes_by() {
    check_well("<p>a<esi:include src=\"/x\"/>b</p>", "<p>a{/x}b</p>");
    check_well("<esi:include src='/x' onerror=\"continue\"/>", "{/x?}");
    check_well("<esi:include alt=\"/y\" src=\"/x\" />", "{/x|/y}");
    check_well("\n <a href=\"<esi:include src='/x'/>\">", "\n <a href=\"<esi:include src='/x'/>\">");
    let ignoring = Options { ignores_others: true, ..VARNISH };
    assert!(check(ignoring, "<a href=\"<esi:include src='/x'/>\">", "<a href=\"{/x}\">").is_empty());
}

#[test]
fn what_is_removed_or_said_to_esi_alone() {
    check_well("<p><esi:remove>a<b>c</esi:remove>d", "<p>d");
    check_well("<p><esi:comment text=\"a\"/>b", "<p>b");
    check_well("<p><!--esi a<esi:include src=\"/x\"/>--->b-->", "<p> a{/x}-b-->");
    check_well("<p><!--esi a - -- b-->c", "<p> a - -- b c".replace(" c", "c").as_str());
}

#[test]
fn comments_and_cdata_are_text_to_their_ends() {
    check_well("<!-- <esi:include src=\"/x\"/> -->a", "<!-- <esi:include src=\"/x\"/> -->a");
    check_well("<!----><esi:include src=\"/x\"/>", "<!---->{/x}");
    check_well("<![CDATA[ <esi:include src=\"/x\"/> ]]]>a", "<![CDATA[ <esi:include src=\"/x\"/> ]]]>a");
    check_well("<!- a><!--- b --->c", "<!- a><!--- b --->c");
}

#[test]
fn the_second_way_is_kept_for_when_the_first_fails() {
    check_well(
        "<p><esi:try>\n<esi:attempt>a<esi:include src=\"/x\"/></esi:attempt> <esi:except>b</esi:except>\n</esi:try>c",
        "<p>(a{/x}:b)c",
    );
    let deep = "<esi:try><esi:attempt>".repeat(NESTED_MAX + 1);
    let complaints = scan(VARNISH, deep.as_bytes(), 7).complaints;
    assert!(complaints.iter().any(|complaint| complaint.text.contains("nested too deep")), "{complaints:?}");
}

#[test]
fn what_the_request_says_may_stand_in_a_page_and_choose_where_that_is_switched_on() {
    let on = Options { has_variables: true, ..VARNISH };
    let check_on = |text: &str, expect: &str| assert_eq!(check(on, text, expect), [""; 0], "{text}");
    check_on(
        "<p>$(HTTP_HOST)<esi:vars>a$(HTTP_HOST)b$ $(X) $</esi:vars>$(HTTP_HOST)",
        "<p>$(HTTP_HOST)a[Host]b$ $(X) $$(HTTP_HOST)",
    );
    check_on(
        "<esi:choose>x<esi:when test=\"$(HTTP_HOST)=='a'\">a<esi:include src=\"/x\"/></esi:when>y<esi:when test=\"2&gt;1\">b</esi:when>\
         <esi:otherwise>c</esi:otherwise>z</esi:choose>d",
        "($(HTTP_HOST)=='a'?a{/x}:2>1?b:c)d",
    );
    check_on(
        "<esi:choose><esi:when test=\"1\"><esi:try><esi:attempt>a</esi:attempt><esi:except>b</esi:except></esi:try></esi:when></esi:choose>",
        "(1?(a:b):)",
    );
    let include = scan(on, b"<esi:include src=\"/x?$(QUERY_STRING{q})\"/>", 7);
    assert!(matches!(&include.pieces[..], [Piece::Include(Include { has_variables: true, .. })]), "{include:?}");
    let off = check(VARNISH, "<p><esi:vars>$(HTTP_HOST)</esi:vars>", "<p>$(HTTP_HOST)");
    assert!(off.len() == 2 && off[0].contains("switched off"), "{off:?}");
}

#[test]
fn branches_in_the_wrong_place_are_left_out() {
    let on = Options { has_variables: true, ..VARNISH };
    for (text, expect, why) in [
        ("<p><esi:when test=\"1\">a</esi:when>", "<p>a", "not open"),
        ("<p><esi:choose><esi:attempt>a</esi:attempt></esi:choose>b", "<p>()b", "not open"),
        ("<p><esi:choose><esi:when>a</esi:when></esi:choose>b", "<p>()b", "lacks test attr"),
        ("<p><esi:choose><esi:when test=\"'a\">a</esi:when></esi:choose>b", "<p>()b", "lacks an operand"),
        ("<p><esi:choose><esi:otherwise>a", "<p>(a)", "no end"),
    ] {
        let complaints = check(on, text, expect);
        assert!(complaints.first().is_some_and(|first| first.contains(why)), "{text}: {complaints:?}");
    }
}

#[test]
fn what_is_wrong_is_left_out_and_told() {
    check_wrong("<p><esi:include/>a", "<p>a", "lacks src attr");
    check_wrong("<p><esi:include src=\"/x\">a", "<p>{/x}a", "lacks final '/'");
    check_wrong("<p><esi:include src=\"/x\" src=\"/y\"/>a", "<p>a", "multiple src=");
    check_wrong("<p><esi:include src=\"/x y\"/>a", "<p>a", "whitespace in src=");
    check_wrong("<p><esi:include src=\"/x/>a", "<p>a", "Missing end attribute delimiter");
    check_wrong("<p><esi:include src=\"http://x\"/>a", "<p>a", "invalid src= URL");
    check_wrong("<p><esi:include src=\"https://x/\"/>a", "<p>a", "https:// ignored");
    let options = Options { takes_https: true, ..VARNISH };
    let complaints = check(options, "<p><esi:include src=\"https://x/\"/>a", "<p>{https://x/}a");
    assert_eq!(complaints, ["ESI 1.0 <esi:include> https:// treated as http://"]);
    check_wrong("<p><esi:bogus>a", "<p>a", "<esi:bogus>");
    check_wrong("<p></esi:include>a", "<p>a", "illegal end-tag");
    check_wrong("<p><esi:remove/>a", "<p>a", "not legal");
    check_wrong("<p></esi:remove>a", "<p>a", "not open");
    check_wrong("<esi:remove><esi:include src=\"/x\"/></esi:remove>", "", "nested in <esi:remove>");
    check_wrong("<p><esi:comment text=\"a\">b", "<p>b", "needs final '/'");
    check_wrong("<p></esi:try>a", "<p>a", "<esi:try> not open");
    check_wrong("<p><esi:incl", "<p>", "ended inside a tag");
    check_wrong("<p>a<b", "<p>a<b", "ended inside a tag");
}

#[test]
fn a_complaint_says_where_the_text_had_turned() {
    let text = b"\n<p>1</p>\n<esi:remove>a<esi:include src=\"/x\"/></esi:remove>b<esi:bogus/>";
    let after: Vec<u64> = scan(VARNISH, text, 3).complaints.iter().map(|complaint| complaint.after).collect();
    assert_eq!(after, [10, 60]);
}

#[test]
fn what_is_no_xml_goes_out_as_it_is() {
    check_wrong("{ <esi:include src=\"/x\"/> }", "{ <esi:include src=\"/x\"/> }", "first char not '<'.");
    assert!(check(Options::default(), "{ <esi:include src=\"/x\"/> }", "{ {/x} }").is_empty());
    let bom = "\u{feff}<esi:include src=\"/x\"/>";
    check_wrong(bom, bom, "but BOM");
    assert!(check(Options { removes_bom: true, ..VARNISH }, bom, "{/x}").is_empty());
    assert!(check(Options { removes_bom: true, ..VARNISH }, "<p>", "<p>").is_empty());
}

#[test]
fn a_text_without_esi_is_known_as_such() {
    let has_esi = |text: &str| scan(VARNISH, text.as_bytes(), 5).has_esi;
    assert!(!has_esi("") && !has_esi("<p>a</p>") && !has_esi("<!-- esi -->"));
    assert!(has_esi("<esi:remove></esi:remove>") && has_esi("<!--esi a-->"));
    assert!(!has_esi("<p><!--esi a"), "without its end it is none");
    check(VARNISH, "<p><!--esi a<b>", "<p><!--esi a<b>");
    check(VARNISH, "<p><!--esi a<esi:comment text=\"\"/>", "<p> a");
}

#[test]
fn bounds_hold() {
    let long = format!("<p><esi:include src=\"/{}\"/>a", "x".repeat(2 * TAG_BYTES_MAX));
    for piece in [1_000, usize::MAX] {
        let document = scan(VARNISH, long.as_bytes(), piece);
        assert_eq!(shown(long.as_bytes(), &document.pieces), "<p>a");
        assert!(document.complaints[0].text.contains("too long"));
    }
    let many = "<esi:include src=\"/x\"/>a".repeat(PIECES_MAX);
    let document = scan(VARNISH, many.as_bytes(), 4_096);
    assert!(document.pieces.len() <= PIECES_MAX + 1 && document.includes_count() <= PIECES_MAX);
    assert!(document.heap_bytes() < 100 * PIECES_MAX);
    assert!(shown(many.as_bytes(), &document.pieces).ends_with("<esi:include src=\"/x\"/>a"));
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic_and_pieces_make_no_difference(
        text in proptest::collection::vec(proptest::sample::select(b"<esi:includremov/>!-\"'= \n[CDAT]x\xff\0".to_vec()), 0..200),
        piece in 1_usize..40,
    ) {
        let whole = scan(VARNISH, &text, usize::MAX);
        prop_assert_eq!(scan(VARNISH, &text, piece), whole);
    }
}
