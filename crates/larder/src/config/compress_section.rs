//! `[compress]`, and what a route says of it.

use std::sync::Arc;

use proxy::settings::{CompressSettings, ContentCoding, DictionaryPaths, RouteCompression};

use super::choices::CODINGS;
use super::complaint::Complaint;
use super::section::{Node, Section, choice, parsed, size, switch, text};

const TYPE_FORM: &str = "a media type such as text/html, text/* or application/*+json";

pub fn read(mut section: Section<'_>, compress: &mut CompressSettings) {
    if let Some(on) = section.read("enabled", switch) {
        compress.is_on = on;
    }
    if let Some(types) = section.read_list("types", |node| parsed(node, "media type", TYPE_FORM, media_type)) {
        compress.types = types;
    }
    for (key, slot) in [("size_min", &mut compress.bytes_min), ("size_max", &mut compress.bytes_max)] {
        if let Some(bytes) = section.read(key, size) {
            *slot = bytes;
        }
    }
    for (key, slot) in [("codings", &mut compress.codings), ("ask_origins", &mut compress.asked_of_origins)] {
        if let Some(codings) = section.read_list(key, |node| choice(node, &CODINGS)) {
            *slot = without_repeats(codings);
        }
    }
    if let Some(on) = section.read("dictionaries", switch) {
        compress.dictionaries = on;
    }
    section.end();
}

/// `dictionary_paths` of a route.
pub fn dictionary_paths(section: &mut Section<'_>) -> Arc<[DictionaryPaths]> {
    let read = |node: Node<'_>| {
        let written = text(node)?;
        DictionaryPaths::parse(written).map_err(|flaw| {
            let complaint =
                Complaint::new(node.span(), format!("`{written}` is no pattern of paths"), flaw.to_string());
            complaint.suggest("write the path with a * for what differs from version to version: \"/static/app.*.js\"")
        })
    };
    section.read_list("dictionary_paths", read).unwrap_or_default().into()
}

/// `compress` of a route.
pub fn of_route(section: &mut Section<'_>) -> RouteCompression {
    let read = |node: Node<'_>| match switch(node) {
        Ok(true) => Ok(RouteCompression::Usual),
        Ok(false) => Ok(RouteCompression::Off),
        Err(_) => choice(node, &[("always", RouteCompression::Always)])
            .map_err(|complaint| complaint.suggest("write true, false or \"always\"")),
    };
    section.read("compress", read).unwrap_or_default()
}

fn media_type(written: &str) -> Option<String> {
    let (kind, sub) = written.split_once('/')?;
    let is_token =
        |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&b));
    let sub_is_valid = match sub.strip_prefix('*') {
        Some(end) => end.is_empty() || is_token(end),
        None => is_token(sub),
    };
    (is_token(kind) && sub_is_valid).then(|| written.to_ascii_lowercase())
}

fn without_repeats(codings: Vec<ContentCoding>) -> Vec<ContentCoding> {
    let mut once: Vec<ContentCoding> = Vec::new();
    codings.into_iter().for_each(|coding| {
        if !once.contains(&coding) {
            once.push(coding);
        }
    });
    once
}

#[cfg(test)]
mod tests {
    use super::super::{FaultyFile, read};
    use super::*;

    fn compress(text: &str) -> CompressSettings {
        read(text).unwrap().settings.compress
    }

    fn complaint(text: &str) -> String {
        let complaints = read(text).err().unwrap();
        FaultyFile { name: "larder.toml".to_owned(), text: text.to_owned(), complaints }.draw(false)
    }

    #[test]
    fn all_of_it_is_read() {
        let read = compress(
            "[compress]\nenabled = false\ntypes = [\"text/*\", \"Application/*+JSON\"]\nsize_min = 10\nsize_max = \"1MiB\"\n\
             codings = [\"zstd\", \"gzip\", \"zstd\"]\nask_origins = []\ndictionaries = true\n",
        );
        let expect = CompressSettings {
            is_on: false,
            types: vec!["text/*".to_owned(), "application/*+json".to_owned()],
            bytes_min: 10,
            bytes_max: 1 << 20,
            codings: vec![ContentCoding::Zstd, ContentCoding::Gzip],
            asked_of_origins: vec![],
            dictionaries: true,
        };
        assert_eq!(read, expect);
        assert_eq!(compress(""), CompressSettings::default());
    }

    #[test]
    fn what_is_no_type_and_no_coding_is_said() {
        assert!(complaint("[compress]\ntypes = [\"text\"]\n").contains("`text` is no media type"));
        assert!(complaint("[compress]\ncodings = [\"deflate\"]\n").contains("`deflate` is not among the choices"));
        assert!(complaint("[compress]\ntype = [\"text/html\"]\n").contains("did you mean `types`?"));
    }

    #[test]
    fn a_route_says_whether_and_how_much() {
        let of = |word: &str| {
            let text = format!("[origin.a]\nurls = [\"http://127.0.0.1:1\"]\n[[route]]\norigin = \"a\"\n{word}");
            read(&text).map(|plan| plan.settings.routes[0].compression).map_err(|_| ())
        };
        assert_eq!(of(""), Ok(RouteCompression::Usual));
        assert_eq!(of("compress = true"), Ok(RouteCompression::Usual));
        assert_eq!(of("compress = false"), Ok(RouteCompression::Off));
        assert_eq!(of("compress = \"always\""), Ok(RouteCompression::Always));
        assert_eq!(of("compress = \"gzip\""), Err(()));
    }

    #[test]
    fn paths_whose_answers_are_dictionaries_are_patterns() {
        const ORIGIN: &str = "[origin.a]\nurls = [\"http://127.0.0.1:1\"]\n[[route]]\norigin = \"a\"\n";
        let of = |line: &str| read(&format!("{ORIGIN}{line}\n")).unwrap().settings.routes[0].clone();
        assert!(of("").dictionary_paths.is_empty());
        assert_eq!(of("dictionary_paths = [\"/a.*.js\", \"/b*\"]").dictionary_paths.len(), 2);
        for (written, why) in [
            ("/:name.js", "`*` alone is understood here"),
            ("/(\\\\d+)", "`*` alone is understood here"),
            ("app.js", "it begins with /"),
            ("/a b", "it begins with /"),
            ("/**", "`*` alone is understood here"),
        ] {
            let said = complaint(&format!("{ORIGIN}dictionary_paths = [\"{written}\"]\n"));
            assert!(said.contains("is no pattern of paths") && said.contains(why), "{said}");
        }
        let said = complaint("[[route]]\nroot = \"/srv\"\ndictionary_paths = [\"/a*\"]\n");
        assert!(said.contains("`dictionary_paths` is for routes with an origin"), "{said}");
    }
}
