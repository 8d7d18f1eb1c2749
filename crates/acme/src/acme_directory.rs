//! Where an authority is: a name that is known, or a URL.

use instant_acme::LetsEncrypt;

/// The URL from which everything else of an authority follows (RFC 8555 §7.1.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory(String);

impl Directory {
    /// Those that are known by a name.
    pub const NAMES: [&str; 2] = ["letsencrypt", "letsencrypt-staging"];

    pub fn parse(written: &str) -> Result<Directory, String> {
        let url = match written {
            "letsencrypt" => LetsEncrypt::Production.url(),
            "letsencrypt-staging" => LetsEncrypt::Staging.url(),
            url => url,
        };
        let is_url = url.parse::<http::Uri>().is_ok_and(|uri| {
            uri.scheme() == Some(&http::uri::Scheme::HTTPS) && uri.host().is_some_and(|host| !host.is_empty())
        });
        match is_url {
            true => Ok(Directory(url.to_owned())),
            false => Err(format!("must be {}, or the https:// URL of an ACME directory", Directory::NAMES.join(", "))),
        }
    }

    pub fn url(&self) -> &str {
        &self.0
    }

    /// As a folder is called.
    pub(crate) fn folder_name(&self) -> String {
        let rest = self.0.trim_start_matches("https://");
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
        let name: String = rest.chars().map(plain).collect();
        name.trim_matches(['-', '.']).to_owned()
    }
}

impl Default for Directory {
    fn default() -> Directory {
        Directory(LetsEncrypt::Production.url().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_a_name_or_a_url_that_can_be_trusted() {
        for (written, expect) in [
            ("letsencrypt-staging", Some("acme-staging-v02.api.letsencrypt.org-directory")),
            ("https://localhost:14000/dir", Some("localhost-14000-dir")),
            ("https://ca.example/../..", Some("ca.example-..-")),
            ("http://ca.example/dir", None),
            ("https://", None),
            ("lets encrypt", None),
            ("", None),
        ] {
            let folder = Directory::parse(written).ok().map(|directory| directory.folder_name());
            assert_eq!(folder.as_deref(), expect.map(|name| name.trim_matches(['-', '.'])), "{written}");
        }
    }
}
