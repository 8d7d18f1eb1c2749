//! Files of certificates by which servers are known: those that a section names, and the one that this system has.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use proxy::limits::CERTIFICATES_BYTES_MAX;
use tls::Authorities;

use crate::bounded_file;

/// Whom this system trusts. Read once: an update of the system's file is seen by the next start.
pub fn of_system() -> Result<Arc<Authorities>, String> {
    static READ: OnceLock<Result<Arc<Authorities>, String>> = OnceLock::new();
    let found = || match Authorities::OF_SYSTEM.map(Path::new).into_iter().find(|file| file.exists()) {
        Some(file) => in_file(file),
        None => Err("this system has no file of certificate authorities where larder looks for one".to_owned()),
    };
    READ.get_or_init(found).clone()
}

/// Of a file in PEM. A part of a bundle would be other authorities than were meant, so one that is too long is refused.
pub fn in_file(path: &Path) -> Result<Arc<Authorities>, String> {
    let pem = bounded_file::read(path, CERTIFICATES_BYTES_MAX);
    let read = pem.and_then(|pem| Authorities::read(&pem).map_err(str::to_owned));
    read.map(Arc::new).map_err(|why| format!("{}: {why}", path.display()))
}
