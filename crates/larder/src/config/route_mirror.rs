//! `mirror`: copies of a route's requests for another origin.

use proxy::settings::{MirrorSettings, OriginSettings, RouteTarget};
use toml::de::DeValue;

use super::complaint::Complaint;
use super::origins_by_name;
use super::section::{Node, Section, as_switch, is_text, wrong_type};

/// `mirror = "NAME"`, or `{ origin, share }`. `false`: none, whatever holds for all routes.
pub fn read(section: &mut Section<'_>, origins: &[OriginSettings]) -> Option<Option<MirrorSettings>> {
    let node = section.get("mirror")?;
    if as_switch(node) == Some(false) {
        return Some(None);
    }
    if is_text(node) {
        let origin = section.read("mirror", |node| origins_by_name::asked_over_http(node, origins))?;
        return Some(Some(MirrorSettings { origin, millionths: MirrorSettings::WHOLE }));
    }
    let mut table = section.section("mirror")?;
    table.require("origin", "write origin = \"NAME\", where [origin.NAME] says where the copies go");
    let origin = table.read("origin", |node| origins_by_name::asked_over_http(node, origins));
    let millionths = table.read("share", share).unwrap_or(MirrorSettings::WHOLE);
    table.end();
    Some(Some(MirrorSettings { origin: origin?, millionths }))
}

/// A part of one, in millionths.
fn share(node: Node<'_>) -> Result<u64, Complaint> {
    let share = match node.get_ref() {
        DeValue::Float(share) => share.as_str().parse::<f64>().ok(),
        DeValue::Integer(share) => share.as_str().parse::<f64>().ok(),
        _ => return Err(wrong_type(node, "a share, such as 0.1")),
    };
    let share = share.filter(|share| *share > 0.0 && *share <= 1.0);
    let millionths = share.map(|share| (share * MirrorSettings::WHOLE as f64).round() as u64);
    millionths.filter(|millionths| *millionths > 0).ok_or_else(|| {
        Complaint::new(node.span(), "the share is out of range", "must be above 0, and at most 1: 0.1 is every tenth")
    })
}

/// Complains about copies for who is asked anyway, and about copies of what no origin is asked.
pub fn check(section: &mut Section<'_>, target: Option<RouteTarget>, mirror: Option<Option<MirrorSettings>>) {
    let (Some(Some(mirror)), Some(node)) = (mirror, section.get("mirror")) else { return };
    let complaint = |what: &str, mark: &str| Complaint::new(node.span(), what, mark);
    match target {
        Some(RouteTarget::Origin(origin)) if origin == mirror.origin => {
            section.complaints().add(complaint("copies would go where the requests go", "the route's own origin"));
        }
        Some(RouteTarget::Origin(_) | RouteTarget::Root(_) | RouteTarget::Memcached(_)) | None => {}
        Some(RouteTarget::StatusPage(_) | RouteTarget::Itself | RouteTarget::Closed) => {
            section.complaints().add(complaint("`mirror` is for routes with an origin", "no origin is asked here"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::read as read_config;

    const SITE: &str =
        "[origin.web]\nurls = \"http://a\"\n[origin.next]\nurls = \"http://b\"\n[[route]]\norigin = \"web\"\n";

    fn mirror(word: &str) -> Option<(usize, u64)> {
        let plan = read_config(&format!("{SITE}{word}\n")).unwrap_or_else(|wrong| panic!("{wrong:?}"));
        plan.settings.routes[0].rules.mirror.map(|mirror| (mirror.origin, mirror.millionths))
    }

    #[test]
    fn all_or_a_share_of_the_requests_is_copied() {
        assert_eq!(mirror("mirror = \"next\""), Some((1, 1_000_000)));
        assert_eq!(mirror("mirror = { origin = \"next\", share = 0.1 }"), Some((1, 100_000)));
        assert_eq!(mirror("mirror = { origin = \"next\", share = 1 }"), Some((1, 1_000_000)));
        assert_eq!(mirror("mirror = false\n[policy]\nmirror = \"next\""), None);
    }

    fn check(word: &str, expect: &str) {
        let wrong = read_config(&format!("{SITE}{word}\n")).expect_err("it is taken for good");
        assert_eq!(wrong.iter().map(|complaint| complaint.what.as_str()).collect::<Vec<_>>(), [expect], "{word}");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        check("mirror = \"nxt\"", "there is no origin `nxt`");
        check("mirror = \"web\"", "copies would go where the requests go");
        check("mirror = { share = 0.5 }", "`origin` is missing");
        for share in ["0", "0.0", "1.5", "-0.1", "1e-9"] {
            check(&format!("mirror = {{ origin = \"next\", share = {share} }}"), "the share is out of range");
        }
        check("mirror = { origin = \"next\", share = \"10%\" }", "expected a share, such as 0.1, found a string");
        check(
            "[[route]]\npath = \"/gone\"\nrespond = \"gone\"\nmirror = \"next\"",
            "`mirror` is for routes with an origin",
        );
    }
}
