//! `http2` of an `[origin.NAME]`, and what its URLs say of HTTP/2: a setting that could do nothing is refused.

use proxy::settings::OriginUrl;

use super::complaint::Complaint;
use super::section::{Section, switch};

pub fn read(origin: &mut Section<'_>, urls: &[OriginUrl]) -> bool {
    let of_http2 = urls.iter().filter(|url| matches!(url, OriginUrl::Http2 { .. })).count();
    let speaks_tls = urls.iter().any(|url| matches!(url, OriginUrl::Tls { .. }));
    if of_http2 > 0 && of_http2 < urls.len() {
        let span = origin.get("urls").map_or(origin.span(), |node| node.span());
        let complaint =
            Complaint::new(span, "h2:// and other URLs of one origin", "what needs HTTP/1 would have half of them");
        origin.complaints().add(complaint.suggest("write two origins, with a [[route]] each"));
    }
    let wanted = origin.read("http2", switch);
    let (Some(wanted), Some(node)) = (wanted, origin.get("http2")) else { return false };
    let complaint = match (speaks_tls, of_http2 > 0) {
        (true, _) => return wanted,
        (false, true) => {
            Complaint::new(node.span(), "`http2` is for https:// URLs", "h2:// URLs are asked over HTTP/2 always")
        }
        (false, false) => Complaint::new(node.span(), "`http2` is for https:// URLs", "this origin has none")
            .suggest("write h2://HOST:PORT to speak HTTP/2 without TLS"),
    };
    origin.complaints().add(complaint);
    false
}
