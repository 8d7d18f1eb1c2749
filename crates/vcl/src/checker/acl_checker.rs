//! ACLs: their flags, and each entry as an address or a name.

use std::collections::HashMap;
use std::net::IpAddr;

use super::Checker;
use crate::acl_entries::{AclEntry, Network, Refused, network, wider};
use crate::codes::Code;
use crate::diagnostics::Diagnostic;
use crate::foreign;
use crate::near_names::nearest;
use crate::source_files::Span;
use crate::syntax;

const FLAGS: [&str; 4] = ["log", "table", "pedantic", "fold"];

impl Checker<'_> {
    pub(super) fn acl(&mut self, index: usize, acl: &syntax::Acl) {
        let (mut log, mut is_pedantic) = (false, false);
        for (on, flag) in &acl.flags {
            match flag.text.as_str() {
                "log" => log = *on,
                "pedantic" => is_pedantic = *on,
                known if FLAGS.contains(&known) => {} // how Varnish compiles it
                unknown => {
                    let report =
                        Diagnostic::new(Code::UnknownAttribute, flag.span, format!("an ACL has no flag `{unknown}`"))
                            .note(format!("there are {}", FLAGS.join(", ")))
                            .in_varnish("Unknown ACL flag:")
                            .did_you_mean(nearest(unknown, FLAGS));
                    self.report(report);
                }
            }
        }
        let mut entries = Vec::new();
        let mut seen = HashMap::new();
        for written in &acl.entries {
            if let Some(entry) = self.acl_entry(written, is_pedantic) {
                if let Network::Prefix { address, bits } = entry.network
                    && let Some((negated, first)) = seen.insert((address, bits), (entry.negated, written.span))
                {
                    self.twice(negated == entry.negated, written.span, first);
                }
                entries.push(entry);
            }
        }
        self.entries_in_vain(&seen);
        self.program.acls[index].log = log;
        self.program.acls[index].entries = entries;
    }

    fn acl_entry(&mut self, written: &syntax::AclEntry, is_pedantic: bool) -> Option<AclEntry> {
        let span = written.span;
        if foreign::has_placeholder(written.address.as_bytes()) {
            let report = Diagnostic::new(Code::Template, span, "this file is a template")
                .label("to be filled in by the program that the file belongs to")
                .way_out("check the file that the template makes");
            self.report(report);
            return None;
        }
        let (network, cleared) = match network(&written.address, written.mask.map(|(bits, _)| bits)) {
            Ok(network) => network,
            // What will not resolve is passed over, as it asks for.
            Err(Refused::BadName) if written.optional => {
                let name = written.address.split('/').next().unwrap_or_default().to_owned();
                (Network::Name { name, bits: None }, false)
            }
            Err(why) => {
                self.report(refusal(why, &written.address, span));
                return None;
            }
        };
        if let (true, Network::Prefix { address, bits }) = (cleared, &network) {
            self.report(host_bits(is_pedantic, *address, *bits, span));
        }
        let shown = shown(written, &network, cleared);
        Some(AclEntry { negated: written.negated, optional: written.optional, network, shown })
    }

    /// The most exact entry decides; one that says what the next wider one says decides nothing.
    fn entries_in_vain(&mut self, entries: &HashMap<(IpAddr, u8), (bool, Span)>) {
        let mut in_order: Vec<_> = entries.iter().collect();
        in_order.sort_by_key(|(_, (_, span))| (span.file, span.start));
        for ((address, bits), (negated, span)) in in_order {
            let next = wider(*address, *bits).find_map(|network| Some((network, entries.get(&network)?)));
            let report = match next {
                Some(((address, bits), (same, first))) if same == negated => {
                    Diagnostic::new(Code::NeverMatches, *span, "this entry decides nothing")
                        .label(format!("{address}/{bits} says the same"))
                        .note_at(*first, "it is here")
                }
                _ if address.is_unspecified() && *bits >= 32 => {
                    Diagnostic::new(Code::NeverMatches, *span, "no client has this address, but one on a Unix socket")
                        .way_out(format!("all addresses are \"{address}\"/0"))
                }
                _ => continue,
            };
            self.report(report);
        }
    }

    /// The same addresses twice: either the entries contradict each other, or one of them is in vain.
    fn twice(&mut self, agree: bool, span: Span, first: Span) {
        let report = if agree {
            Diagnostic::new(Code::NeverMatches, span, "this entry is there already")
        } else {
            Diagnostic::new(Code::BadAclEntry, span, "this entry contradicts another of the same addresses")
                .in_varnish("Conflicting ACL entries:")
        };
        self.report(report.note_at(first, "the first is here"));
    }
}

fn refusal(why: Refused, address: &str, span: Span) -> Diagnostic {
    let bad = |what: String| Diagnostic::new(Code::BadAclEntry, span, what);
    match why {
        Refused::MaskNotNumeric => {
            bad("the mask is no number of bits".to_owned()).in_varnish(".../mask is not numeric.")
        }
        Refused::MaskTwice => {
            bad("a mask within the quotes and one outside".to_owned()).in_varnish("/mask only allowed once")
        }
        Refused::MaskTooLong { bits, bits_max } => {
            let version = if bits_max == 32 { 4 } else { 6 };
            bad(format!("an address of this kind has {bits_max} bits"))
                .in_varnish(format!("Too wide mask (/{bits}) for IPv{version} address"))
        }
        Refused::BadName => bad(format!("`{address}` is no address and no name"))
            .in_varnish(format!("DNS lookup({address}): not a name")),
    }
}

/// Refused where the ACL asks for that by `+pedantic`, as Varnish does without being asked.
fn host_bits(is_pedantic: bool, address: IpAddr, bits: u8, span: Span) -> Diagnostic {
    const WHAT: &str = "the address has bits set behind its mask";
    if is_pedantic {
        return Diagnostic::new(Code::BadAclEntry, span, WHAT)
            .in_varnish("Non-zero bits in masked part")
            .way_out(format!("write {address}/{bits}, or take `+pedantic` off the ACL"));
    }
    Diagnostic::new(Code::HostBits, span, WHAT)
        .label(format!("read as {address}/{bits}"))
        .note("Varnish refuses this since 7.0, unless the ACL is `-pedantic`")
}

/// An address as it is written, for the log, and what it was read as where that is another. A name is shown by its addresses.
fn shown(written: &syntax::AclEntry, network: &Network, cleared: bool) -> Option<String> {
    let Network::Prefix { address, bits } = network else { return None };
    let sign = if written.negated { "!" } else { "" };
    let mask = written.mask.map(|(bits, _)| format!("/{bits}")).unwrap_or_default();
    let fixed = if cleared { format!(" fixed: {address}/{bits}") } else { String::new() };
    Some(format!("{sign}\"{}\"{mask}{fixed}", written.address))
}
