//! A directory's entries as a page: HTML for people, JSON for programs. Pure. A name is bytes that anybody may have
//! chosen: nothing of it reaches a page but escaped.

use crate::static_files::directory_entries::Entry;

/// What a listing is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListingForm {
    Html,
    Json,
}

impl ListingForm {
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            ListingForm::Html => "text/html; charset=utf-8",
            ListingForm::Json => "application/json",
        }
    }

    /// The directory's path is decoded and without slashes around it; empty: the root.
    pub(crate) fn page(self, relative: &[u8], entries: &[Entry]) -> Vec<u8> {
        match self {
            ListingForm::Html => html(relative, entries).into_bytes(),
            ListingForm::Json => json(entries).into_bytes(),
        }
    }
}

fn html(relative: &[u8], entries: &[Entry]) -> String {
    let mut title = String::from("/");
    write_html_text(&mut title, relative);
    if !relative.is_empty() {
        title.push('/');
    }
    let mut out = format!(
        "<!DOCTYPE html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>body{{font:16px/1.5 sans-serif;margin:2em}}td{{padding-right:2em}}td+td{{text-align:right}}\
         </style>\n</head>\n<body>\n<h1>{title}</h1>\n<table>\n"
    );
    if !relative.is_empty() {
        out.push_str("<tr><td><a href=\"../\">../</a></td><td></td><td></td></tr>\n");
    }
    for entry in entries {
        let slash = if entry.is_directory() { "/" } else { "" };
        out.push_str("<tr><td><a href=\"");
        write_reference(&mut out, entry);
        out.push_str("\">");
        write_html_text(&mut out, &entry.name);
        out.push_str(slash);
        out.push_str("</a></td><td>");
        if !entry.is_directory() {
            out.push_str(&entry.length.to_string());
        }
        out.push_str("</td><td>");
        out.push_str(&date(entry));
        out.push_str("</td></tr>\n");
    }
    out.push_str("</table>\n</body>\n</html>\n");
    out
}

/// The keys are those of nginx's listings, and `href`, by which names that are no text can be asked for too.
fn json(entries: &[Entry]) -> String {
    let mut out = String::from("[");
    for (at, entry) in entries.iter().enumerate() {
        out.push_str(if at > 0 { ",\n{ \"name\":\"" } else { "\n{ \"name\":\"" });
        write_json_text(&mut out, &entry.name);
        let kind = if entry.is_directory() { "directory" } else { "file" };
        out.push_str(&format!("\", \"type\":\"{kind}\", \"mtime\":\"{}\"", date(entry)));
        if !entry.is_directory() {
            out.push_str(&format!(", \"size\":{}", entry.length));
        }
        out.push_str(", \"href\":\"");
        write_reference(&mut out, entry);
        out.push_str("\" }");
    }
    out.push_str("\n]\n");
    out
}

fn date(entry: &Entry) -> String {
    rules::date::write_date(entry.modified_s).into_iter().map(char::from).collect()
}

/// Relative, and such that no name is taken for a scheme, a host or a query.
fn write_reference(out: &mut String, entry: &Entry) {
    out.push_str("./");
    for &byte in &entry.name {
        match byte {
            b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    if entry.is_directory() {
        out.push('/');
    }
}

fn write_html_text(out: &mut String, text: &[u8]) {
    for c in String::from_utf8_lossy(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if is_unsafe(c) => out.push(char::REPLACEMENT_CHARACTER),
            c => out.push(c),
        }
    }
}

fn write_json_text(out: &mut String, text: &[u8]) {
    for c in String::from_utf8_lossy(text).chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            // A page that takes it for HTML finds no tag in it.
            '<' | '>' | '&' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c if c.is_control() || is_unsafe(c) => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
}

/// Control characters, line ends, and what turns the direction of text, by which a name would look like another.
fn is_unsafe(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;
    use crate::settings::RootSettings;
    use crate::static_files::directory_entries;
    use crate::static_files::finding::tests::TestFolder;

    fn settings(folder: &TestFolder) -> RootSettings {
        RootSettings { dotfiles: true, ..RootSettings::of(folder.path("")) }
    }

    /// What a page says of one file of this name.
    fn check(name: &[u8], in_html: &str, in_json: &str) {
        let folder = TestFolder::new("listing-page");
        let path = folder.path("").join(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(name));
        std::fs::write(path, "12345").unwrap();
        let entries = directory_entries::read(folder.open().as_fd(), &settings(&folder), b"", 10).unwrap();
        let page = |form: ListingForm| String::from_utf8(form.page(b"", &entries)).unwrap();
        let (html, json) = (page(ListingForm::Html), page(ListingForm::Json));
        assert!(html.contains(&format!("<td><a href=\"./{in_html}</a></td><td>5</td>")), "{html}");
        assert!(json.starts_with(&format!("[\n{{ \"name\":\"{in_json}\", \"type\":\"file\", \"mtime\":\"")), "{json}");
        assert!(json.contains("\", \"size\":5, \"href\":\"./"), "{json}");
        assert!(!html[..html.len() - 1].bytes().any(|b| b < b' ' && b != b'\n'), "{html}");
    }

    #[test]
    fn names_are_escaped_and_can_be_asked_for() {
        check(b"a.txt", "a.txt\">a.txt", "a.txt");
        check(b"a:b?c#d", "a%3Ab%3Fc%23d\">a:b?c#d", "a:b?c#d");
        check(
            b"<script>'\"&",
            "%3Cscript%3E%27%22%26\">&lt;script&gt;&#39;&quot;&amp;",
            "\\u003cscript\\u003e'\\\"\\u0026",
        );
        check(b"a\r\nb\x1b", "a%0D%0Ab%1B\">a\u{fffd}\u{fffd}b\u{fffd}", "a\\u000d\\u000ab\\u001b");
        check(b"\xff\\x", "%FF%5Cx\">\u{fffd}\\x", "\u{fffd}\\\\x");
        check("\u{202e}txt".as_bytes(), "%E2%80%AEtxt\">\u{fffd}txt", "\\u202etxt");
        check("日本".as_bytes(), "%E6%97%A5%E6%9C%AC\">日本", "日本");
    }

    #[test]
    fn directories_lead_on_and_back() {
        let folder = TestFolder::new("listing-folders");
        folder.write("a/b c/d", "");
        let entries = directory_entries::read(folder.open().as_fd(), &settings(&folder), b"a", 10).unwrap();
        let html = String::from_utf8(ListingForm::Html.page(b"a/<b>", &entries)).unwrap();
        assert!(html.contains("<title>/a/&lt;b&gt;/</title>") && html.contains("<a href=\"../\">"), "{html}");
        assert!(html.contains("<a href=\"./b%20c/\">b c/</a></td><td></td>"), "{html}");
        let top = String::from_utf8(ListingForm::Html.page(b"", &[])).unwrap();
        assert!(top.contains("<title>/</title>") && !top.contains("../"), "{top}");
        assert_eq!(ListingForm::Json.page(b"", &[]), b"[\n]\n");
    }
}
