//! The names of one certificate.

use aws_lc_rs::digest::{SHA256, digest};

use crate::limits::NAMES_MAX;

/// At least one, in lower case; the first is the one that people know it by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameSet(Vec<String>);

impl NameSet {
    /// What is wrong with them is a sentence.
    pub fn new<'a>(written: impl IntoIterator<Item = &'a str>) -> Result<NameSet, String> {
        let mut names: Vec<String> = Vec::new();
        for name in written {
            let name = name.to_ascii_lowercase();
            check(&name)?;
            if !names.contains(&name) {
                names.push(name);
            }
        }
        match names.len() {
            0 => Err("a certificate is for one name at least".to_owned()),
            1..=NAMES_MAX => Ok(NameSet(names)),
            many => Err(format!("{many} names are too many for one certificate: at most {NAMES_MAX}")),
        }
    }

    pub fn names(&self) -> &[String] {
        &self.0
    }

    pub fn first(&self) -> &str {
        &self.0[0]
    }

    /// As a file is called; the same names in another order have the same.
    pub(crate) fn file_stem(&self) -> String {
        let mut sorted = self.0.clone();
        sorted.sort();
        let sum = digest(&SHA256, sorted.join(" ").as_bytes());
        let short: String = sum.as_ref()[..4].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{short}", sorted[0])
    }
}

impl std::fmt::Display for NameSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

/// Is it a name that an authority may be asked for by HTTP-01 or TLS-ALPN-01?
fn check(name: &str) -> Result<(), String> {
    let refuse = |why: &str| Err(format!("`{name}` {why}"));
    if name.starts_with("*.") {
        return refuse(
            "is a wildcard, for which authorities want an entry in DNS (DNS-01); name each host, or give --cert",
        );
    }
    let is_label = |label: &str| {
        let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        (1..=63).contains(&label.len()) && label.bytes().all(inner) && !label.starts_with('-') && !label.ends_with('-')
    };
    if name.parse::<std::net::IpAddr>().is_ok() {
        return refuse("is an address; a certificate by ACME is for names here");
    }
    if name.len() > 253 || !name.contains('.') || !name.split('.').all(is_label) {
        return refuse("is no name of a host, such as www.example.org (other scripts as xn--…)");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_before_anybody_is_asked() {
        for (names, why) in [
            (&["*.example.org"][..], "wildcard"),
            (&["127.0.0.1"], "address"),
            (&["localhost"], "no name of a host"),
            (&["a..example"], "no name of a host"),
            (&["-a.example"], "no name of a host"),
            (&["a.example/../b"], "no name of a host"),
            (&["exämple.org"], "no name of a host"),
            (&[""], "no name of a host"),
            (&[], "one name at least"),
        ] {
            let found = NameSet::new(names.iter().copied()).unwrap_err();
            assert!(found.contains(why), "{names:?}: {found}");
        }
        let many: Vec<String> = (0..101).map(|n| format!("{n}.example.org")).collect();
        assert!(NameSet::new(many.iter().map(String::as_str)).unwrap_err().contains("too many"));
    }

    #[test]
    fn the_same_names_in_another_order_are_one_certificate() {
        let set = |names: &[&str]| NameSet::new(names.iter().copied()).unwrap();
        let one = set(&["www.example.org", "EXAMPLE.org", "example.org"]);
        assert_eq!((one.names().len(), one.first()), (2, "www.example.org"));
        assert_eq!(one.file_stem(), set(&["example.org", "www.example.org"]).file_stem());
        assert!(one.file_stem().starts_with("example.org-"));
        assert_ne!(one.file_stem(), set(&["example.org"]).file_stem());
    }
}
