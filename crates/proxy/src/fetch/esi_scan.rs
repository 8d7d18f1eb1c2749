//! A body that has come whole is looked through for what is to be included in it.

use std::sync::Arc;

use bytes::Bytes;
use cache::EsiPage;
use coding::{Coding, Encoder, Flaw};
use esi::{Document, Options, Scanner};

use crate::core::Core;
use crate::records::RecordKind;
use crate::records::task_records::TaskRecords;
use crate::vcl_parameters::EsiFeatures;

/// A body is to be looked through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EsiWish {
    pub(crate) reads: EsiFeatures,
    pub(crate) has_variables: bool,
    /// Who takes gzip is to get it in gzip.
    pub(crate) is_gzipped: bool,
}

/// What is found in it. Complaints are counted, and recorded where somebody wants that.
pub(super) fn scan(core: &Core, records: Option<&TaskRecords>, body: &Bytes, wish: EsiWish) -> Option<Arc<EsiPage>> {
    let EsiFeatures { wants_xml, ignores_others, removes_bom, takes_https, .. } = wish.reads;
    let has_variables = wish.has_variables;
    let mut scanner = Scanner::new(Options { wants_xml, ignores_others, removes_bom, takes_https, has_variables });
    scanner.push(body);
    let document = scanner.finish();
    complain(core, records, &document);
    let is_gzipped = wish.is_gzipped;
    document.has_esi.then(|| Arc::new(EsiPage { document, is_gzipped }))
}

fn complain(core: &Core, records: Option<&TaskRecords>, document: &Document) {
    for complaint in &document.complaints {
        let is_about_all = complaint.text.starts_with("No ESI");
        match (is_about_all, complaint.is_error) {
            (true, _) => {}
            (false, true) => core.counters.esi_errors.add(1),
            (false, false) => core.counters.esi_warnings.add(1),
        }
        let Some(records) = records else { continue };
        let (after, text) = (complaint.after, complaint.text);
        match (is_about_all, complaint.is_error) {
            (true, _) => records.put(RecordKind::EsiXmlError, &[text.as_bytes()]),
            (false, true) => records.write(RecordKind::EsiXmlError, format_args!("ERR after {after} {text}")),
            (false, false) => records.write(RecordKind::EsiXmlError, format_args!("WARN after {after} {text}")),
        }
    }
}

/// The text in gzip, where nothing is to be included in it after all.
pub(super) fn gzipped(core: &Core, level: u8, body: &Bytes) -> Result<Bytes, Flaw> {
    let mut encoder = Encoder::new(Coding::Gzip, level)?;
    let mut out = Vec::new();
    encoder.encode(body, &mut out)?;
    encoder.finish(&mut out)?;
    core.counters.bodies_encoded.add(1);
    Ok(Bytes::from(out))
}
