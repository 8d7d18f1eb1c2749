//! How requests are framed: groups C and D of the list of bad inputs.

use super::*;

#[test]
fn lengths_are_plain_decimal() {
    let good = |n: u64| format!("POST http://t.test /p 1.1 Length({n})");
    for value in ["+5", "-1", "-0", "-48", "0x5", "0o5", "1_0", "1 0", "5.0", "abc", "1Z", "5;", "\"5\"", "", " "] {
        check_post("C01 C02", &format!("Content-Length: {value}"), "400 content-length-invalid");
    }
    for value in ["99999999999999999999", "18446744073709551621", "9223372036854775808", "5, 10", "5, 5", "5,"] {
        check_post("C03 C04", &format!("Content-Length: {value}"), "400 content-length-invalid");
    }
    for value in ["005", "010", "00", "\u{85}5", "5\u{a0}"] {
        check_post("C07 C09", &format!("Content-Length: {value}"), "400 content-length-invalid");
    }
    for value in ["\u{b}5", "\u{c}5", "5\0"] {
        check_post("C09", &format!("Content-Length: {value}"), "400 field-value-invalid");
    }
    for (first, second) in [("5", "10"), ("0", "31"), ("5", "5")] {
        let lines = format!("Content-Length: {first}¶X: 1¶content-length: {second}");
        check_post("C04 C05", &lines, "400 content-length-repeated");
    }
    check_post("C06", "", "POST http://t.test /p 1.1 None");
    check("C06", "POST /p HTTP/1.1¶Host: t¶:¶Content-Length: 59¶¶", "400 field-name-invalid");
    check_post("C08", "Content-Length:\t5 ", &good(5));
    check_post("C08", "Content-Length:  5", &good(5));
    check_post("C10", "Content-Length: 999999999", &good(999_999_999));
    check_post("C03", "Content-Length: 9223372036854775807", &good(i64::MAX as u64));
    check_post("zero", "Content-Length: 0", &good(0));
    check_field("C13", "Content-Length: 5", "GET http://t.test /g 1.1 Length(5)");
    check("D17", "POST /p HTTP/1.0¶Host: t¶¶", "POST http://t /p 1.0 None close");
}

#[test]
fn only_chunked_alone_is_a_transfer_encoding() {
    let good = "POST http://t.test /p 1.1 Chunked";
    for value in ["chunked", "Chunked", "CHUNKED", "\tchunked", "chunked ", "  chunked\t"] {
        check_post("D11 D12", &format!("Transfer-Encoding:{value}"), good);
    }
    check_post("D01", "Content-Length: 5¶Transfer-Encoding: chunked", "400 length-and-transfer-encoding");
    check_post("D01", "Transfer-Encoding: chunked¶Content-Length: 5", "400 length-and-transfer-encoding");
    check_field("D02", "Content-Length: 0¶Transfer-Encoding: chunked", "400 length-and-transfer-encoding");
    for value in [
        "xchunked",
        "chunkedx",
        "chunk",
        "blegh",
        "gzip",
        "chunked, gzip",
        "chunked, identity",
        "chunked, chunked",
        "identity",
        "identity, chunked",
        "",
        ",",
        ",chunked",
        ", chunked",
        "chunked,",
        "gzip,,chunked",
        "\u{a0}chunked\u{a0}",
        "chunked;q=1",
        "chunked;ext=v",
        "\"chunked\"",
        "'chunked'",
        "chunked chunked",
        "\"a\", chunked",
        "\"a\", gzip, chunked",
        "chunked, gzip, chunked",
    ] {
        check_post("D03-D15", &format!("Transfer-Encoding: {value}"), "400 transfer-encoding-invalid");
    }
    for value in ["deflate, chunked", "gzip,chunked", "x-own , Chunked"] {
        check_post("D04", &format!("Transfer-Encoding: {value}"), "501 transfer-encoding-unsupported");
    }
    for value in ["\u{b}chunked", "\u{c}chunked", "chunked\0", "chunked\r"] {
        check_post("D13", &format!("Transfer-Encoding: {value}"), "400 field-value-invalid");
    }
    check_post("D06", "Transfer-Encoding: chunked¶Transfer-Encoding: chunked", "400 transfer-encoding-repeated");
    check_post("D07", "Transfer-Encoding: chunked¶Transfer-Encoding: identity", "400 transfer-encoding-repeated");
    check_post("D07", "Transfer-Encoding: identity¶Transfer-Encoding: chunked", "400 transfer-encoding-invalid");
    check_post("D08", "Transfer-Encoding: identity¶Content-Length: 5", "400 transfer-encoding-invalid");
    check_field("D20", "Transfer-Encoding: chunked", "GET http://t.test /g 1.1 Chunked");
    for lines in ["Transfer-Encoding: chunked", "Content-Length: 5¶Transfer-Encoding: chunked"] {
        check("D16", &format!("POST /p HTTP/1.0¶Host: t¶{lines}¶¶"), "400 transfer-encoding-in-http10");
    }
}
