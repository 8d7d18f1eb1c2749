//! What nginx would say of a file's type, as keys of a `[[route]]`: only what larder would not say by itself.

use std::collections::{BTreeMap, BTreeSet};

use proxy::file_types::{UNKNOWN, is_text, shipped_extensions, shipped_type};

use crate::import::import_findings::quoted;
use crate::import::nginx_conf::Directive;

/// Without a `types` block.
const BUILTIN: [(&str, &str); 3] = [("html", "text/html"), ("gif", "image/gif"), ("jpg", "image/jpeg")];
const DEFAULT_TYPE: &str = "text/plain";
/// What gets the charset unless `charset_types` says otherwise.
const CHARSET_TYPES: [&str; 6] =
    ["text/html", "text/xml", "text/plain", "text/vnd.wap.wml", "application/javascript", "application/rss+xml"];

/// What is said of types at one level of a configuration; levels inside inherit what they do not say.
#[derive(Clone, Debug, Default)]
pub struct Types {
    by_extension: Option<BTreeMap<String, String>>,
    default_type: Option<String>,
    charset: Option<String>,
    charset_types: Option<BTreeSet<String>>,
}

impl Types {
    /// Takes a directive in, if it is one of these.
    pub fn take(&mut self, directive: &Directive) -> bool {
        match directive.name.as_str() {
            "types" => {
                let mut types = BTreeMap::new();
                for kind in directive.children() {
                    types.extend(kind.arguments.iter().map(|end| (end.to_lowercase(), kind.name.clone())));
                }
                self.by_extension.get_or_insert_default().extend(types);
            }
            "default_type" => self.default_type = Some(directive.argument(0).to_owned()),
            "charset" => self.charset = Some(directive.argument(0).to_owned()),
            "charset_types" => {
                self.charset_types =
                    Some(directive.arguments.iter().cloned().chain(["text/html".to_owned()]).collect());
            }
            _ => return false,
        }
        true
    }

    /// The same with what the level around says where this one is silent.
    pub fn within(self, outer: &Types) -> Types {
        Types {
            by_extension: self.by_extension.or_else(|| outer.by_extension.clone()),
            default_type: self.default_type.or_else(|| outer.default_type.clone()),
            charset: self.charset.or_else(|| outer.charset.clone()),
            charset_types: self.charset_types.or_else(|| outer.charset_types.clone()),
        }
    }

    /// The whole of larder's own types is used, where the file with nginx's is not there.
    pub fn trust_larder(&mut self) {
        let types = shipped_extensions().filter_map(|end| Some((end.to_owned(), shipped_type(end)?.to_owned())));
        self.by_extension = Some(types.collect());
    }

    /// Of a text that is answered with.
    pub fn default_type(&self) -> &str {
        self.default_type.as_deref().unwrap_or(DEFAULT_TYPE)
    }

    fn charset(&self) -> Option<&str> {
        self.charset.as_deref().filter(|name| *name != "off" && !name.contains('$'))
    }

    fn with_charset(&self, kind: &str) -> String {
        let has_charset = match &self.charset_types {
            Some(types) => types.contains(kind) || types.contains("*"),
            None => CHARSET_TYPES.contains(&kind),
        };
        match self.charset() {
            Some(charset) if has_charset => format!("{kind}; charset={charset}"),
            _ => kind.to_owned(),
        }
    }

    /// The lines of a route; of one that is about a single file, what concerns that.
    pub fn lines(&self, only: Option<&str>) -> Vec<String> {
        let builtin = || BUILTIN.map(|(end, kind)| (end.to_owned(), kind.to_owned())).into();
        let nginx: BTreeMap<String, String> = self.by_extension.clone().unwrap_or_else(builtin);
        let default_type = self.with_charset(self.default_type.as_deref().unwrap_or(DEFAULT_TYPE));
        let mut lines = Vec::new();
        if let Some(charset) = self.charset() {
            lines.push(format!("charset = {}", quoted(charset)));
        }
        if default_type != UNKNOWN {
            lines.push(format!("default_type = {}", quoted(&default_type)));
        }
        let mut ends: BTreeSet<&str> = nginx.keys().map(String::as_str).collect();
        for end in shipped_extensions() {
            ends.insert(end);
        }
        let mut different = Vec::new();
        let is_asked = |end: &&str| !end.contains('.') && only.is_none_or(|only| only.eq_ignore_ascii_case(end));
        for end in ends.into_iter().filter(is_asked) {
            let theirs = nginx.get(end).map_or_else(|| default_type.clone(), |kind| self.with_charset(kind));
            let ours = match (shipped_type(end), self.charset()) {
                (Some(kind), Some(charset)) if is_text(kind) => format!("{kind}; charset={charset}"),
                (Some(kind), _) => kind.to_owned(),
                (None, _) => default_type.clone(),
            };
            if ours != theirs {
                different.push(format!("{} = {}", quoted(end), quoted(&theirs)));
            }
        }
        if !different.is_empty() {
            lines.push("# Where nginx's types are not larder's.".to_owned());
            lines.push(format!("types = {{ {} }}", different.join(", ")));
        }
        lines
    }
}
