//! Origins as other sections name them.

use proxy::settings::OriginSettings;
use toml::de::DeValue;

use super::complaint::Complaint;
use super::literal;
use super::nearest::nearest;
use super::section::{Node, text};
use crate::addresses::{meant_origin, show_origin};

/// The place of the origin of this name.
pub fn named(node: Node<'_>, origins: &[OriginSettings]) -> Result<usize, Complaint> {
    let written = text(node).map_err(|complaint| match several(node, origins) {
        Some(write) => complaint.suggest(write),
        None => complaint,
    })?;
    origins.iter().position(|origin| origin.name == written).ok_or_else(|| {
        let complaint = Complaint::new(node.span(), format!("there is no origin `{written}`"), "not defined")
            .following_from(&["origin"]);
        match nearest(written, origins.iter().map(|o| o.name.as_str())) {
            Some(meant) => complaint.suggest(format!("did you mean `{meant}`?")),
            None => complaint.suggest(match meant_origin(written) {
                // A name of one label is as good a name of an origin.
                Some(url) if written.contains([':', '.']) || written.parse::<u16>().is_ok() => {
                    format!("write \"site\" here, and add [origin.site] with urls = [\"{url}\"]")
                }
                // Scripts are run at a socket, mostly.
                _ if written.starts_with("unix:") || written.starts_with('/') => {
                    let socket = literal::text(&format!("unix:{}", written.trim_start_matches("unix:")));
                    format!(
                        "write \"site\" here, and add [origin.site] with urls = [{socket}], or with fastcgi = {socket} where php-fpm listens there"
                    )
                }
                _ => format!("add [origin.{}] with urls = [\"http://HOST:PORT\"]", literal::key(written)),
            }),
        }
    })
}

/// What shares the load is one origin with several addresses.
fn several(node: Node<'_>, origins: &[OriginSettings]) -> Option<String> {
    let DeValue::Array(items) = node.get_ref() else { return None };
    let names: Vec<&str> = items.iter().filter_map(|item| text(item).ok()).collect();
    match names[..] {
        [] => None,
        [one] => Some(format!("write {}, without brackets", literal::text(one))),
        [first, ..] => {
            let urls_of = |name: &&str| origins.iter().find(|origin| origin.name == **name).map(|origin| &origin.urls);
            let urls: Vec<String> = names.iter().filter_map(urls_of).flatten().map(show_origin).collect();
            let urls = if urls.len() < names.len() { "\"URL\", \"URL\"".to_owned() } else { texts(&urls) };
            let name = literal::key(first);
            Some(format!(
                "write origin = {}, and the addresses of all of them as urls = [{urls}] of [origin.{name}], which share the load then",
                literal::text(first)
            ))
        }
    }
}

fn texts(all: &[String]) -> String {
    all.iter().map(|one| literal::text(one)).collect::<Vec<_>>().join(", ")
}

/// The same of one that requests are copied to, or that is asked about them: there are no scripts.
pub fn asked_over_http(node: Node<'_>, origins: &[OriginSettings]) -> Result<usize, Complaint> {
    let at = named(node, origins)?;
    match &origins[at].fastcgi {
        None => Ok(at),
        Some(_) => {
            let what = format!("the origin `{}` speaks FastCGI, and is asked for scripts alone", origins[at].name);
            Err(Complaint::new(node.span(), what, "none is asked for here"))
        }
    }
}
