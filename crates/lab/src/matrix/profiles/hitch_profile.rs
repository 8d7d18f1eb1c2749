//! hitch, which ends TLS, with Varnish behind it: what those have who need HTTPS before Varnish. Both are counted.

use super::varnish_profile::VARNISH;
use crate::answer_coding::ContentCoding;
use crate::matrix::row_protocol::Spoken;
use crate::matrix::server_profile::{Launch, Profile, Role, Site, Speaks, is_root, words};

pub(super) const HITCH_VARNISH: Profile = Profile {
    name: "hitch-varnish",
    binary: Some("hitch"),
    install: "apt-get install hitch varnish",
    version_argument: "--version",
    role: Role::Cache,
    speaks: Speaks {
        all: &[Spoken::TLS, Spoken::H2],
        no_more: "ends TLS: what comes in the clear is asked of varnish",
    },
    codings: &[ContentCoding::Gzip],
    behind: Some(&VARNISH),
    options: &[("extra", "")],
    keeps_children: true,
    launch: hitch,
};

fn hitch(site: &Site<'_>) -> Result<Launch, String> {
    let certificate = site.front.tls.ok_or("hitch is asked over TLS only")?;
    let (address, behind) = (site.address(), site.origin);
    let protocols = if site.front.http2 { "h2,http/1.1" } else { "http/1.1" };
    let user = if is_root() { "user = \"nobody\"\n" } else { "" };
    let config = format!(
        "frontend = \"[{}]:{}\"
backend = \"[{}]:{}\"
pem-file = \"{}\"
workers = {}
backlog = 4096
daemon = off
{user}tls-protos = TLSv1.2 TLSv1.3
alpn-protos = \"{protocols}\"
{}
",
        address.ip(),
        address.port(),
        behind.ip(),
        behind.port(),
        certificate.both.display(),
        site.workers,
        site.option("extra"),
    );
    let arguments = words([&format!("--config={}", site.path("hitch.conf"))]);
    Ok(Launch { arguments, configs: vec![site.write("hitch.conf", config)?], ..Launch::default() })
}
