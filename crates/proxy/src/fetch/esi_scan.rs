//! A body that has come whole is looked through for what is to be included in it.

use std::sync::Arc;

use bytes::Bytes;
use cache::{EsiPage, PagePiece};
use coding::{Coding, Flaw, PieceEncoder};
use esi::{Document, Options, Scanner};

use crate::core::Core;
use crate::filter_chain::FilterKind;
use crate::filter_turn::{FilterTurn, instructions_per_byte};
use crate::records::RecordKind;
use crate::records::task_records::TaskRecords;
use crate::vcl_parameters::EsiFeatures;

/// Instructions for each byte that is looked at.
const SCAN_INSTRUCTIONS: u64 = 4;

/// A body is to be looked through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EsiWish {
    pub(crate) reads: EsiFeatures,
    pub(crate) has_variables: bool,
    /// Who takes gzip is to get it in gzip.
    pub(crate) is_gzipped: bool,
}

/// What became of a body.
pub(super) struct Scanned {
    /// What is to be included in it, if anything is.
    pub(super) page: Option<Arc<EsiPage>>,
    /// As it is stored.
    pub(super) body: Bytes,
    pub(super) is_gzipped: bool,
}

/// Looks a body through, and packs it where that is wished for: on a coding thread, if it is long. Complaints are counted, and recorded
/// where somebody wants that.
pub(super) async fn scan(
    (core, records): (&Core, Option<&TaskRecords>),
    body: Bytes,
    wish: EsiWish,
    gzip_level: u8,
) -> Scanned {
    let pack = FilterKind::Encode(Coding::Gzip, gzip_level);
    let cost = if wish.is_gzipped { SCAN_INSTRUCTIONS + instructions_per_byte(pack) } else { SCAN_INSTRUCTIONS };
    let bytes = body.len();
    let kept = body.clone();
    let work = move || scan_and_pack(&body, wish, gzip_level);
    let (document, packed) = match FilterTurn::of_core().allows(cost * bytes as u64) {
        true => work(),
        false => match core.shared.coding_threads.now(bytes, work) {
            Ok(job) => job.await.unwrap_or_else(|_| scan_and_pack(&kept, wish, gzip_level)),
            Err(work) => work(),
        },
    };
    complain(core, records, &document);
    let (body, is_gzipped, in_gzip) = match packed {
        Some((gzip, pieces)) => {
            core.counters.bodies_encoded.add(1);
            (gzip, true, Some(pieces))
        }
        None => (kept, false, None),
    };
    let page = document.has_esi.then(|| Arc::new(EsiPage { document, in_gzip }));
    Scanned { page, body, is_gzipped }
}

type Packed = (Bytes, Vec<PagePiece>);

fn scan_and_pack(body: &Bytes, wish: EsiWish, gzip_level: u8) -> (Document, Option<Packed>) {
    let EsiFeatures { wants_xml, ignores_others, removes_bom, takes_https, .. } = wish.reads;
    let has_variables = wish.has_variables;
    let mut scanner = Scanner::new(Options { wants_xml, ignores_others, removes_bom, takes_https, has_variables });
    scanner.push(body);
    let document = scanner.finish();
    let packed = wish.is_gzipped.then(|| pack(body, &document, gzip_level).ok()).flatten();
    (document, packed)
}

/// The whole text as one gzip, of which what goes out between includes can be taken by itself.
fn pack(body: &Bytes, document: &Document, level: u8) -> Result<Packed, Flaw> {
    let whole = 0..body.len() as u64;
    let texts = if document.has_esi { document.texts() } else { std::iter::once(whole).collect() };
    let (mut encoder, mut out, mut pieces, mut at) = (PieceEncoder::new(level), Vec::new(), Vec::new(), 0);
    for text in texts {
        encoder.between(&body[at..text.start as usize], &mut out)?;
        at = text.end as usize;
        pieces.push(PagePiece { text_at: text.start, gzip: encoder.piece(&body[text.start as usize..at], &mut out)? });
    }
    encoder.between(&body[at..], &mut out)?;
    encoder.finish(&mut out)?;
    Ok((Bytes::from(out), pieces))
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
