//! The pages that the servers of a matrix serve: which bytes each must have, and the same as files for servers of
//! files.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use crate::answer_coding::{ContentCoding, SaidCoding};
use crate::catalogue_size;
use crate::coded_body::decode;
use crate::constructed_body::{append_constructed, body_rule, parts_of};
use crate::limits::GATE_URLS_MAX;
use crate::matrix::direct_asking::Asking;
use crate::matrix::plain_fetch::{Fetched, fetch};
use crate::matrix::planned_rows::{GATEWAY_PATH, Pages, PlannedRow};
use crate::results::Gate;

/// Of an error's list in a gate.
const BAD_SHOWN_MAX: usize = 5;

/// The body that belongs to a path; the query does not change it. A page with parts is put together. Of a memcached's item it is the key that it belongs to.
fn body_of(path: &str, size: u64) -> Vec<u8> {
    let named = path.split('?').next().unwrap_or(path);
    let named = path.strip_prefix(GATEWAY_PATH).and_then(|query| query.strip_prefix("?key=")).unwrap_or(named);
    if let Some(parts) = parts_of(named) {
        return parts.put_together();
    }
    let mut body = Vec::with_capacity(size as usize);
    append_constructed(&mut body, body_rule(named), 0, size);
    body
}

fn size_of(pages: Pages, index: usize) -> u64 {
    match pages {
        Pages::One(size) => size,
        Pages::WithParts(parts) => parts.put_together().len() as u64,
        Pages::Many { mean_bytes, .. } => catalogue_size(index as u64, mean_bytes),
        Pages::Items { items, .. } => items.value_bytes as u64,
    }
}

/// Writes what is not there yet of the row's pages.
pub(crate) fn write_files(row: &PlannedRow, docroot: &Path) -> Result<(), String> {
    let complain = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    fs::create_dir_all(docroot.join("u")).map_err(|error| complain(docroot, error))?;
    for (index, path) in row.paths().iter().enumerate() {
        let path = path.split('?').next().unwrap_or(path);
        let (file, size) = (docroot.join(&path[1..]), size_of(row.pages, index));
        if fs::metadata(&file).is_ok_and(|meta| meta.len() == size) {
            continue;
        }
        fs::write(&file, body_of(path, size)).map_err(|error| complain(&file, error))?;
    }
    Ok(())
}

/// Length and CRC-32 of each page, in the order of the list.
pub(crate) fn known_bodies(row: &PlannedRow) -> Arc<[(u64, u32)]> {
    let known = |(index, path): (usize, &String)| {
        let size = size_of(row.pages, index);
        (size, crc32fast::hash(&body_of(path, size)))
    };
    row.paths().iter().enumerate().map(known).collect()
}

/// Asks for each page once, up to a limit, and compares every byte with the rule that makes it.
/// A forward proxy is asked for the pages of the origin.
pub(crate) fn gate(row: &PlannedRow, asking: &Asking, origin: Option<SocketAddr>, stop: &dyn Fn() -> bool) -> Gate {
    let site = origin.filter(|_| row.forward).map_or(String::new(), |origin| format!("http://{origin}"));
    let mut gate = Gate::default();
    for (index, path) in row.paths().iter().enumerate().take(GATE_URLS_MAX) {
        if stop() {
            break;
        }
        let wanted = body_of(path, size_of(row.pages, index));
        let what = match fetch(asking, &format!("{site}{path}"), &row.fields) {
            Ok(got) if got.status != 200 => Some(format!("{path}: status {}", got.status)),
            Ok(got) => {
                gate.bytes += got.body.len() as u64;
                difference_in(row.encoding, &got, &wanted).map(|what| format!("{path}: {what}"))
            }
            Err(error) => Some(format!("{path}: {error}")),
        };
        gate.urls += 1;
        gate.bad.extend(what.filter(|_| gate.bad.len() < BAD_SHOWN_MAX));
    }
    gate
}

/// In the coding that was asked for, and in none if none was.
fn difference_in(encoding: Option<ContentCoding>, got: &Fetched, wanted: &[u8]) -> Option<String> {
    match (encoding, got.coding) {
        (None, SaidCoding::None) => difference(&got.body, wanted),
        (Some(coding), SaidCoding::One(said)) if said == coding => {
            decode(coding, &got.body, wanted.len() as u64).map_or_else(Some, |text| difference(&text, wanted))
        }
        (_, said) => Some(said.in_words().to_owned()),
    }
}

fn difference(got: &[u8], wanted: &[u8]) -> Option<String> {
    if got.len() != wanted.len() {
        return Some(format!("{} bytes instead of {}", got.len(), wanted.len()));
    }
    let at = got.iter().zip(wanted).position(|(a, b)| a != b)?;
    Some(format!("a wrong byte at {at}"))
}

/// What users ask for, a path on each line.
pub(crate) fn url_list(row: &PlannedRow) -> String {
    row.paths().iter().map(|path| format!("{path}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::planned_rows::asked_of_a_gateway;
    use crate::memcached_catalogue::MemcachedItems;

    #[test]
    fn a_gateway_has_the_values_that_were_set() {
        let items = MemcachedItems { keys: 3, key_bytes: 20, value_bytes: 70 };
        let catalogue = items.catalogue().unwrap();
        for number in 0..3 {
            let path = asked_of_a_gateway(&items.key(number));
            assert_eq!(Some(&body_of(&path, 70)[..]), catalogue.value(number), "{path}");
        }
    }

    #[test]
    fn a_wrong_byte_is_found() {
        let body = body_of("/f10.html?c=0", 10);
        assert_eq!(body, body_of("/f10.html", 10));
        assert_eq!(difference(&body, &body), None);
        assert_eq!(difference(&body[..9], &body).unwrap(), "9 bytes instead of 10");
        let mut wrong = body.clone();
        wrong[4] ^= 1;
        assert_eq!(difference(&wrong, &body).unwrap(), "a wrong byte at 4");
    }
}
