//! `[acme]`: the authority that certificates are ordered from; and `acme` of a `[listen.tls]`, for which names.

use acme::{Directory, NameSet};
use toml::de::DeValue;

use super::choices::CHALLENGES;
use super::complaint::Complaint;
use super::section::{Node, Section, choice, duration, file, parsed, switch, text};
use crate::acme_plan::{AcmeSettings, AcmeWords, TERMS, is_email};

/// What it says, and the warning where nobody uses it is its caller's.
pub fn read(mut section: Section<'_>) -> Option<AcmeSettings> {
    let mut words = AcmeWords::default();
    let is_agreed = section.read("terms_agreed", switch).unwrap_or(false);
    if let Some(directory) = section.read("directory", directory) {
        words.directory = directory;
    }
    words.email = section.read("email", |node| {
        parsed(node, "e-mail address", "such as \"admin@example.org\"", |written| {
            is_email(written).then(|| written.to_owned())
        })
    });
    let complaints = section.complaints();
    let file = |node| file(node, complaints);
    words.authorities = section.read("ca", file);
    words.folder = section.read("folder", file);
    words.profile = section.read("profile", |node| text(node).map(str::to_owned));
    words.challenge = section.read("challenge", |node| choice(node, &CHALLENGES));
    words.pause_first = section.read("retry", |node| {
        let pause = duration(node)?;
        let (least, most) = (acme::limits::PAUSE_MIN, acme::limits::PAUSE_MAX);
        match (least..=most).contains(&pause) {
            true => Ok(pause),
            false => Err(Complaint::new(node.span(), "`retry` is out of range", "must be 1s to 6h")),
        }
    });
    let span = section.span();
    if !is_agreed {
        let complaint = Complaint::new(span.clone(), "the authority's terms are not agreed to", TERMS);
        let complaint = complaint.following_from(&["terms_agreed"]);
        complaints.add(complaint.suggest("read them, and write terms_agreed = true"));
    }
    section.end();
    words
        .settings()
        .map_err(|why| complaints.add(Complaint::new(span, why, "nobody can be believed to be the authority")))
        .ok()
}

fn directory(node: Node<'_>) -> Result<Directory, Complaint> {
    let written = text(node)?;
    Directory::parse(written)
        .map_err(|why| Complaint::new(node.span(), format!("`{written}` cannot be an authority's directory"), why))
}

/// A list of names is one certificate, a list of such lists several.
pub fn name_sets(tls: &mut Section<'_>) -> Option<Vec<NameSet>> {
    tls.read("acme", |node| {
        let DeValue::Array(items) = node.get_ref() else { return Ok(vec![name_set(node, &[node])?]) };
        let nodes: Vec<Node<'_>> = items.iter().collect();
        let is_nested = nodes.first().is_some_and(|first| matches!(first.get_ref(), DeValue::Array(_)));
        if !is_nested {
            return Ok(vec![name_set(node, &nodes)?]);
        }
        let inner = |node: Node<'_>| match node.get_ref() {
            DeValue::Array(items) => name_set(node, &items.iter().collect::<Vec<_>>()),
            _ => name_set(node, &[node]),
        };
        nodes.into_iter().map(inner).collect()
    })
}

fn name_set(node: Node<'_>, names: &[Node<'_>]) -> Result<NameSet, Complaint> {
    let names = names.iter().map(|node| text(node)).collect::<Result<Vec<_>, _>>()?;
    NameSet::new(names).map_err(|why| Complaint::new(node.span(), why, "no certificate can be ordered for this"))
}

#[cfg(test)]
mod tests {
    use crate::config::{FaultyFile, read};
    use crate::plan::Plan;

    /// With these lines in `[listen.tls]` and these in `[acme]`, and no listener without TLS where `others` has none.
    fn config(of_tls: &str, of_acme: &str, others: &str) -> Result<Plan, String> {
        let text = format!(
            "[[listen]]\naddress = \"127.0.0.1:443\"\n[listen.tls]\n{of_tls}\n{others}\n{of_acme}\n[origin.a]\nurls = \"http://a.test\"\n"
        );
        read(&text).map_err(|complaints| {
            FaultyFile { name: "larder.toml".to_owned(), text: text.clone(), complaints }.draw(false)
        })
    }

    const AGREED: &str = "[acme]\nterms_agreed = true\nfolder = \"/state\"";
    const NAMED: &str = "acme = [\"a.test\", \"www.a.test\"]";
    const PLAIN: &str = "[[listen]]\naddress = \"127.0.0.1:80\"";

    #[test]
    fn names_become_certificates_and_files_that_may_come_later() {
        let plan = config(NAMED, AGREED, PLAIN).unwrap();
        let acme = plan.acme.unwrap();
        assert_eq!((acme.sets.len(), acme.sets[0].names().len()), (1, 2));
        assert_eq!(acme.settings.authority.challenges.len(), 2);
        assert!(acme.settings.authority.directory.url().contains("acme-v02.api.letsencrypt.org"));
        let file = plan.tls_files[0].1.ordered[0].display().to_string();
        assert!(
            file.starts_with("/state/acme-v02.api.letsencrypt.org-directory/a.test-") && file.ends_with(".pem"),
            "{file}"
        );
        assert_eq!(plan.warnings, Vec::<String>::new());
        let nested = config("acme = [[\"a.test\"], [\"b.test\", \"c.test\"], [\"a.test\"]]", AGREED, PLAIN).unwrap();
        assert_eq!(nested.acme.unwrap().sets.len(), 2, "the same twice is one");
        let one = config("acme = \"a.test\"", AGREED, PLAIN).unwrap();
        assert_eq!(one.acme.unwrap().sets[0].first(), "a.test");
    }

    #[test]
    fn without_a_listener_in_the_clear_the_authority_comes_by_tls() {
        let challenges = |plan: &Plan| format!("{:?}", plan.acme.as_ref().unwrap().settings.authority.challenges);
        assert_eq!(challenges(&config(NAMED, AGREED, "").unwrap()), "[Alpn]");
        let plan = config(NAMED, &format!("{AGREED}\nchallenge = \"http-01\""), "").unwrap();
        assert_eq!(challenges(&plan), "[Http]", "whatever stands in front may know better");
        assert!(plan.warnings[0].contains("http-01 needs a listener without TLS"), "{:?}", plan.warnings);
        let idle = config("cert = \"/dev/null\"", AGREED, "").unwrap_err();
        assert!(idle.contains("/dev/null: there is no certificate in it"), "{idle}");
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_to_write() {
        for (of_tls, of_acme, expect) in [
            (NAMED, "", "add a section [acme] with terms_agreed = true"),
            (NAMED, "[acme]\nemail = \"a@a.test\"", "read them, and write terms_agreed = true"),
            (NAMED, "[acme]\nterms_agreed = false", "letsencrypt.org/repository"),
            ("acme = [\"*.a.test\"]", AGREED, "`*.a.test` is a wildcard"),
            ("acme = []", AGREED, "one name at least"),
            ("acme = [\"10.0.0.1\"]", AGREED, "`10.0.0.1` is an address"),
            ("acme = true", AGREED, "expected a string"),
            ("", AGREED, "or acme = [\"NAME\"]"),
            (NAMED, &format!("{AGREED}\nemail = \"admin\""), "`admin` is no e-mail address"),
            (NAMED, &format!("{AGREED}\ndirectory = \"http://ca.test/dir\""), "cannot be an authority's directory"),
            (NAMED, &format!("{AGREED}\nca = \"/nowhere/ca.pem\""), "/nowhere/ca.pem: No such file"),
            (NAMED, &format!("{AGREED}\nchallenge = \"dns-01\""), "\"tls-alpn-01\" or \"http-01\""),
            (NAMED, &format!("{AGREED}\nretry = \"1ms\""), "must be 1s to 6h"),
            (NAMED, &format!("{AGREED}\nemial = \"a@a.test\""), "did you mean `email`?"),
        ] {
            let said = config(of_tls, of_acme, "").map(|_| ()).unwrap_err();
            assert!(said.contains(expect), "{of_tls} {of_acme}: {said}");
        }
    }
}
