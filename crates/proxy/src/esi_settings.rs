//! What an operator decides about pages with parts (ESI), where no program does.

use message::Authority;

/// Which answers of origins are looked through for what is to be included in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EsiPages {
    /// None. Origins are not told that they could say otherwise: an origin that hears of ESI may send other pages.
    #[default]
    None,
    /// Those that ask for it: `Surrogate-Control: content="ESI/1.0"`.
    Surrogate,
    /// These, and all text and XML beside them: whoever can write into a page decides what is asked for.
    All,
}

/// `[esi]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EsiSettings {
    /// Of requests whose route does not say it.
    pub pages: EsiPages,
    /// Hosts of which parts may be asked beside the page's own, in lower case; `*.example.org` is every name below.
    pub hosts: Vec<String>,
    /// Parts of the page's own host are asked for with its Cookie …
    pub passes_cookies: bool,
    /// … and its Authorization.
    pub passes_authorization: bool,
    /// What the request for a page says may stand in it, and choose what does: `vars`, `choose`.
    pub has_variables: bool,
}

impl EsiSettings {
    /// May a part be asked of another host than the page's?
    pub(crate) fn allows(&self, host: &Authority<'_>) -> bool {
        let is_named = |pattern: &String| match pattern.strip_prefix('*') {
            Some(ending) => host.host.len() > ending.len() && host.host.ends_with(ending.as_bytes()),
            None => *host.host == *pattern.as_bytes(),
        };
        host.port.is_none() && self.hosts.iter().any(is_named)
    }
}

#[cfg(test)]
mod tests {
    use message::Scheme;

    use super::*;

    #[test]
    fn a_host_is_allowed_by_its_name_or_one_above_it() {
        let hosts = ["a.test", "*.b.test"].map(str::to_owned).to_vec();
        let settings = EsiSettings { hosts, ..EsiSettings::default() };
        let check = |host: &str, expect: bool| {
            let authority = Authority::parse(host.as_bytes(), Scheme::Http).expect("it is a host");
            assert_eq!(settings.allows(&authority), expect, "{host}");
        };
        check("a.test", true);
        check("A.TEST.", true);
        check("a.test:80", true);
        check("a.test:8080", false);
        check("x.a.test", false);
        check("x.b.test", true);
        check("b.test", false);
        check("xb.test", false);
        check("169.254.169.254", false);
    }
}
