//! The look before a load that asks for a content coding: each page once as it is, and once in the coding.
//!
//! What the pages are is learned from the first round; the second one undoes each and compares it, so that no page is coded for
//! the first time while its load is measured. Both are loads of the same kind as the one that follows.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::answer_coding::{ContentCoding, identity_field};
use crate::catalogue::{Catalogue, Order};
use crate::coded_pages::CodedPages;
use crate::error_kind::ErrorKind;
use crate::learned::Learned;
use crate::run::{Outcome, Round, StartError, load};
use crate::verdict::Awaited;
use crate::workload::{Checks, Length, Load, Workload};

/// The pages, as they are to be judged by; or which look failed.
pub(crate) fn look(
    workload: &Workload,
    catalogue: &Arc<Catalogue>,
    coding: ContentCoding,
    stop: &Arc<AtomicBool>,
) -> Result<Arc<CodedPages>, StartError> {
    let workload = Workload {
        load: Load::Closed,
        length: Length::Requests(catalogue.len() as u64),
        order: Order::InTurn,
        checks: Checks { status: workload.checks.status, ..Checks::ALL },
        ramp: Duration::ZERO,
        think: Duration::ZERO,
        ..workload.clone()
    };
    let plain = Arc::new(catalogue.with_field_replaced(&coding.field(), &identity_field()));
    let learned = Arc::new(Learned::new(catalogue.len()));
    let round = |catalogue: &Arc<Catalogue>, learned: &Arc<Learned>, awaited: Awaited| {
        let round = Round { catalogue: Arc::clone(catalogue), learned: Arc::clone(learned), awaited };
        load(workload.clone(), round, stop, &mut |_, _| {})
    };
    let outcome = round(&plain, &learned, Awaited::Identity)?;
    complain(&outcome, catalogue.len(), "as they are (Accept-Encoding: identity)")?;
    let pages = Arc::new(CodedPages::new(coding, &learned.bodies()));
    let outcome = round(catalogue, &learned, Awaited::Coded(Arc::clone(&pages)))?;
    complain(&outcome, catalogue.len(), &format!("in {}", coding.name()))?;
    Ok(pages)
}

fn complain(outcome: &Outcome, asked: usize, how: &str) -> Result<(), StartError> {
    let tally = &outcome.tally;
    if tally.good == asked as u64 {
        return Ok(());
    }
    let first = ErrorKind::ALL.iter().map(|&kind| (kind, tally.error(kind))).find(|(_, record)| record.count > 0);
    let why = first.map_or_else(String::new, |(kind, record)| format!("; {}: {}", kind.name(), record.sample));
    let good = tally.good;
    Err(StartError::BadLook(format!("before the load the pages are looked at {how}: {good} of {asked} were good{why}")))
}
