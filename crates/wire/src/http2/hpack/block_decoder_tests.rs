//! Header blocks: the examples of RFC 7541, and what no encoder writes.

use super::*;

const WIDE: ListLimits = ListLimits { list_bytes_max: 1 << 20, lines_max: 1000 };

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn lines_of(decoder: &mut BlockDecoder, block: &[u8], limits: ListLimits) -> (String, Option<Excess>) {
    let (mut text, mut lines) = (Vec::new(), String::new());
    let excess = decoder.decode(block, limits, &mut text, |line, text| {
        let (name, value) = (&text[line.at..line.value_at()], &text[line.value_at()..line.end()]);
        lines += &format!("{}: {}\n", String::from_utf8_lossy(name), String::from_utf8_lossy(value));
        true
    });
    (lines, excess.expect("a valid block"))
}

/// Blocks of one connection, and what they say.
fn check(rows: &[(&str, &str)]) {
    let mut decoder = BlockDecoder::new();
    for (hex, lines) in rows {
        assert_eq!(lines_of(&mut decoder, &bytes(hex), WIDE), (lines.to_string(), None), "{hex}");
    }
}

fn check_fault(hex: &str, expect: CompressionFault) {
    let got = BlockDecoder::new().decode(&bytes(hex), WIDE, &mut Vec::new(), |_, _| true);
    assert_eq!(got, Err(expect), "{hex}");
}

const FIRST: &str = ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\n";

/// RFC 7541, appendix C.2.
#[test]
fn lines_of_each_kind() {
    check(&[("400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572", "custom-key: custom-header\n")]);
    check(&[("040c 2f73 616d 706c 652f 7061 7468", ":path: /sample/path\n"), ("", "")]);
    check(&[("1008 7061 7373 776f 7264 0673 6563 7265 74", "password: secret\n")]);
    check(&[("82", ":method: GET\n")]);
}

/// RFC 7541, appendix C.3 and C.4.
#[test]
fn requests_of_one_connection() {
    let third =
        ":method: GET\n:scheme: https\n:path: /index.html\n:authority: www.example.com\ncustom-key: custom-value\n";
    let second = format!("{FIRST}cache-control: no-cache\n");
    check(&[
        ("8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", FIRST),
        ("8286 84be 5808 6e6f 2d63 6163 6865", &second),
        ("8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65", third),
    ]);
    check(&[
        ("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", FIRST),
        ("8286 84be 5886 a8eb 1064 9cbf", &second),
        ("8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", third),
    ]);
}

/// RFC 7541, appendix C.6: a table of 256 bytes, of which lines are evicted.
#[test]
fn responses_of_one_connection() {
    let rest = "cache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT\nlocation: https://www.example.com\n";
    let third = ":status: 200\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:22 GMT\n\
        location: https://www.example.com\ncontent-encoding: gzip\n\
        set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1\n";
    check(&[
        (
            "3fe1 01 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e \
             919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
            &format!(":status: 302\n{rest}"),
        ),
        ("4883 640e ffc1 c0bf", &format!(":status: 307\n{rest}")),
        (
            "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 \
             e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
            third,
        ),
    ]);
}

/// bad-inputs G15.
#[test]
fn what_breaks_the_table_is_a_fault() {
    for (hex, expect) in [
        ("80", INDEX),
        ("be", INDEX),
        ("c1", INDEX),
        ("ff00", INDEX),
        ("7e 01 61", INDEX),
        ("3fe2 1f", SIZE_UPDATE),      // 4097
        ("82 20", SIZE_UPDATE),        // behind a line
        ("20 20 20 82", SIZE_UPDATE),  // three of them
        ("0001 6184 ffff ffff", CODE), // EOS
        ("0001 6182 1fff", CODE),      // eleven bits of padding
        ("0001 6181 00", CODE),        // padding of zeros
        ("ff ffff ffff ffff ffff ffff", INTEGER),
        ("82 ff 80", INTEGER),
        ("40", CUT_OFF),
        ("4003 6162", CUT_OFF),
        ("4001 61", CUT_OFF),
        ("4001 6105 61", CUT_OFF),
    ] {
        check_fault(hex, expect);
    }
    check(&[("3fe1 1f 82", ":method: GET\n"), ("20 3fe1 1f 82", ":method: GET\n")]);
}

/// bad-inputs G31, G33: the table is filled once and then named over and over.
#[test]
fn a_bomb_is_cut_at_its_limit_and_the_table_stays_right() {
    let mut decoder = BlockDecoder::new();
    let mut block = bytes("40 01 61 7f 80 1e"); // "a", and a value of 3,967 bytes
    block.resize(block.len() + 127 + 0x1e * 128, b'v');
    assert_eq!(lines_of(&mut decoder, &block, WIDE).1, None);
    let limits = ListLimits { list_bytes_max: 32 << 10, lines_max: 100 };
    let mut bomb = vec![0xbe; 16_000];
    bomb.extend(bytes("4001 6201 63")); // b: c
    let mut text = Vec::new();
    let mut count = 0;
    let excess = decoder.decode(&bomb, limits, &mut text, |_, _| {
        count += 1;
        true
    });
    assert_eq!((excess, count), (Ok(Some(Excess::ListBytes)), 8));
    assert!(text.len() < 32 << 10 && text.capacity() < 80 << 10, "{}", text.capacity());
    assert_eq!(lines_of(&mut decoder, &[0xbe], WIDE).0, "b: c\n");
}

#[test]
fn lines_are_counted_before_they_are_kept() {
    let limits = ListLimits { list_bytes_max: 1 << 20, lines_max: 100 };
    let (lines, excess) = lines_of(&mut BlockDecoder::new(), &[0x82; 101], limits);
    assert_eq!((lines.lines().count(), excess), (100, Some(Excess::Lines)));
    assert_eq!(lines_of(&mut BlockDecoder::new(), &[0x82; 100], limits).1, None);
}

#[test]
fn what_is_not_taken_leaves_no_text() {
    let mut text = b"kept".to_vec();
    let excess =
        BlockDecoder::new().decode(&[0x82, 0x84], WIDE, &mut text, |line, _| line.facts.name == LineName::Path);
    assert_eq!((excess, text), (Ok(None), b"kept:path/".to_vec()));
}
