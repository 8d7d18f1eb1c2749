//! A body that has come whole is looked through for what is to be included in it.

use std::sync::Arc;

use bytes::Bytes;
use cache::EsiPage;
use coding::{Coding, Encoder, Flaw};
use esi::{Document, Options, Scanner};

use crate::fetch::Fetch;
use crate::records::RecordKind;

/// A program wants a body looked through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EsiWish {
    /// Who takes gzip is to get it in gzip.
    pub(crate) is_gzipped: bool,
}

/// What is found in it.
pub(super) fn scan(fetch: &Fetch, body: &Bytes, wish: EsiWish) -> Option<Arc<EsiPage>> {
    let features = fetch.site.settings.vcl.esi;
    let mut scanner = Scanner::new(Options {
        wants_xml: features.wants_xml,
        ignores_others: features.ignores_others,
        removes_bom: features.removes_bom,
        takes_https: features.takes_https,
    });
    scanner.push(body);
    let document = scanner.finish();
    complain(fetch, &document);
    let is_gzipped = wish.is_gzipped;
    document.has_esi.then(|| Arc::new(EsiPage { document, is_gzipped }))
}

fn complain(fetch: &Fetch, document: &Document) {
    for complaint in &document.complaints {
        let is_about_all = complaint.text.starts_with("No ESI");
        let counters = &fetch.core.counters;
        match (is_about_all, complaint.is_error) {
            (true, _) => {}
            (false, true) => counters.esi_errors.add(1),
            (false, false) => counters.esi_warnings.add(1),
        }
        let Some(records) = fetch.records() else { continue };
        let (after, text) = (complaint.after, complaint.text);
        match (is_about_all, complaint.is_error) {
            (true, _) => records.put(RecordKind::EsiXmlError, &[text.as_bytes()]),
            (false, true) => records.write(RecordKind::EsiXmlError, format_args!("ERR after {after} {text}")),
            (false, false) => records.write(RecordKind::EsiXmlError, format_args!("WARN after {after} {text}")),
        }
    }
}

/// The text in gzip, where nothing is to be included in it after all.
pub(super) fn gzipped(fetch: &Fetch, body: &Bytes) -> Result<Bytes, Flaw> {
    let mut encoder = Encoder::new(Coding::Gzip, fetch.site.settings.vcl.gzip_level)?;
    let mut out = Vec::new();
    encoder.encode(body, &mut out)?;
    encoder.finish(&mut out)?;
    fetch.core.counters.bodies_gzipped.add(1);
    Ok(Bytes::from(out))
}
