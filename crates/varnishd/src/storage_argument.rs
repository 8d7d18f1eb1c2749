//! What stands behind `-s`: `[NAME=]KIND[,OPTION …]`.

use crate::name_pattern::illegal_in_name;

/// One `-s`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageArgument {
    /// In order, `s0`, `s1` …, unless it was named.
    pub name: String,
    pub kind: StorageKind,
}

/// Sizes in the letters that were typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorageKind {
    Memory {
        /// `None`: as much as there is.
        size: Option<String>,
    },
    File {
        path: String,
        /// `None`: as large as the file is.
        size: Option<String>,
    },
}

impl StorageArgument {
    pub fn parse(written: &str, index: usize) -> Result<StorageArgument, String> {
        let (name, rest) = match written.split_once('=') {
            Some((name, rest)) if !name.contains(',') => (checked_name(name, written)?, rest),
            _ => (format!("s{index}"), written),
        };
        let mut parts = rest.split(',').map(|part| Some(part.to_owned()).filter(|part| !part.is_empty()));
        let mut next = || parts.next().flatten();
        if rest.is_empty() {
            return Err(format!("Empty named -s argument \"{written}\""));
        }
        let kind = match next().as_deref() {
            Some("malloc" | "default" | "umem") => StorageKind::Memory { size: next() },
            // Of Varnish's own tests: memory that gives more or less than it is asked for.
            Some("debug") => StorageKind::Memory { size: None },
            Some("file") => {
                let path = next().ok_or_else(|| format!("-s {written}: (-sfile) path is mandatory"))?;
                StorageKind::File { path, size: next() }
            }
            Some("persistent" | "deprecated_persistent") => {
                return Err(format!(
                    "-s {written}: larder has no such store; file,PATH,SIZE keeps what is stored beyond a restart"
                ));
            }
            kind => return Err(format!("-s {written}: Unknown storage method \"{}\"", kind.unwrap_or_default())),
        };
        Ok(StorageArgument { name, kind })
    }
}

/// Programs and counters name a store: `storage.NAME`, `SMA.NAME`.
fn checked_name(name: &str, written: &str) -> Result<String, String> {
    match name.is_empty() || illegal_in_name(name).is_some() {
        true => Err(format!("invalid -s name \"{name}\"=[...] (-s {written})")),
        false => Ok(name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_those_of_unit_files() {
        let check = |written: &str, name: &str, kind: StorageKind| {
            assert_eq!(
                StorageArgument::parse(written, 1),
                Ok(StorageArgument { name: name.to_owned(), kind }),
                "{written}"
            );
        };
        let size = |text: &str| Some(text.to_owned());
        check("malloc,256m", "s1", StorageKind::Memory { size: size("256m") });
        check("default", "s1", StorageKind::Memory { size: None });
        check("malloc,", "s1", StorageKind::Memory { size: None });
        check("debug,lessspace", "s1", StorageKind::Memory { size: None });
        check("big=malloc,1G", "big", StorageKind::Memory { size: size("1G") });
        let file = |size: Option<String>| StorageKind::File { path: "/var/c".to_owned(), size };
        check("file,/var/c,10G,4k,random", "s1", file(size("10G")));
        check("d=file,/var/c", "d", file(None));
        let refused = |written: &str, part: &str| {
            let why = StorageArgument::parse(written, 0).unwrap_err();
            assert!(why.contains(part), "{why}");
        };
        check("a.b_c-2=malloc", "a.b_c-2", StorageKind::Memory { size: None });
        refused("///=default", "invalid -s name \"///\"");
        refused("2=default", "invalid -s name \"2\"");
        refused("=default", "invalid -s name \"\"");
        refused("foo=", "Empty named -s argument \"foo=\"");
        refused("file", "path is mandatory");
        refused("foo", "Unknown storage method \"foo\"");
        refused("persistent,/a,1G", "no such store");
    }
}
