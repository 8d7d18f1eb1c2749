//! Which file or script beneath a root a request means at this moment, as the step `transaction/files.rs` finds it. The disk is asked each time,
//! whatever is known of the path; nothing is read of a file, and nothing is remembered.

use message::Request;

use crate::client_identity::ClientIdentity;
use crate::counted_routes::name_of;
use crate::settings::RootSettings;
use crate::site::{Routed, Site};
use crate::static_files::file_path::{FilePath, NoPath};
use crate::static_files::finding::{self, MeantFile, NotShown};
use crate::static_files::leading_link;
use crate::transaction::files;
use crate::transaction::synth::Synth;

/// What answers.
pub(super) enum FileAnswering {
    /// A file or a listing: which.
    File(String),
    /// The origin, by a script: which.
    Script(String),
    Answered(Synth),
    /// Nobody: what is not there.
    Absent(String),
}

/// What a path beneath a root means.
pub(super) fn of(
    site: &Site,
    (root, routed): (usize, Routed),
    client: &ClientIdentity,
    request: &Request<'_>,
) -> FileAnswering {
    let settings = &site.files.roots[root];
    let found = match FilePath::read(request.path, settings.dotfiles) {
        Err(NoPath::Malformed) => return FileAnswering::Answered(Synth::path_malformed()),
        Err(NoPath::Hidden) => fallback(settings).filter(|meant| matches!(meant, MeantFile::Script(_))),
        Ok(path) if files::is_way_round(site, request, root, &path.canonical()) => {
            return FileAnswering::Absent(way_round(site, request, &path.canonical()));
        }
        Ok(path) => match finding::meant(settings, &path) {
            Ok(MeantFile::Directory) => {
                let directory = FilePath { is_directory: true, ..path };
                return FileAnswering::Answered(Synth::moved(directory.canonical(), request.query));
            }
            Ok(meant) => Some(meant),
            Err(NotShown::Absent) => fallback(settings),
            Err(NotShown::LeadsOut) => {
                return FileAnswering::Answered(files::leads_out(leading_link::of(settings, &path)));
            }
            Err(why) => return FileAnswering::Answered(files::refused(why)),
        },
    };
    let Some(meant) = found else {
        return FileAnswering::Absent(format!("there is no file {}", shown(settings, request.path)));
    };
    let refused = match &meant {
        MeantFile::Script(script) => files::script_refused(site, routed, client, request, script),
        _ => files::method_refused(request.method),
    };
    match (refused, meant) {
        (Some(refused), _) => FileAnswering::Answered(refused),
        (None, MeantFile::Script(script)) => {
            FileAnswering::Script(format!("the script {}", shown(settings, &script.relative)))
        }
        (None, MeantFile::File(relative)) => FileAnswering::File(format!("the file {}", shown(settings, &relative))),
        (None, MeantFile::Directory | MeantFile::Listing) => {
            FileAnswering::File(format!("the listing of {}", shown(settings, request.path)))
        }
    }
}

/// Why a path is answered as one of a file that is not there, whether it is or not.
fn way_round(site: &Site, request: &Request<'_>, canonical: &[u8]) -> String {
    let of = site.routes.find_path(request, canonical).map(|at| name_of(site.routes.at(at)));
    let of = of.map_or_else(|| "no route is for".to_owned(), |name| format!("the route {name} is for"));
    let path = String::from_utf8_lossy(canonical);
    format!(
        "whether there is a file is not looked at: {of} {path}, which this path is another spelling of, and no spelling is a way round the routes"
    )
}

/// What answers where there is no file.
fn fallback(settings: &RootSettings) -> Option<MeantFile> {
    let path = FilePath::read(settings.fallback.as_ref()?.as_bytes(), settings.dotfiles).ok()?;
    finding::meant(settings, &path).ok().filter(|meant| matches!(meant, MeantFile::File(_) | MeantFile::Script(_)))
}

/// As an operator would look for it.
fn shown(settings: &RootSettings, relative: &[u8]) -> String {
    let relative = String::from_utf8_lossy(relative);
    settings.directory.join(relative.trim_start_matches('/')).display().to_string()
}
