//! Files: which file beneath a root answers the request, unless it is known already, or which script of the root's is to answer it. Looking
//! is done in a thread for blocking calls, so that a slow disk or a dead network mount holds up nobody but who asked for it; only a
//! script that the kernel knows without asking the disk is found here.

use std::rc::Rc;
use std::sync::Arc;

use message::{Method, Request};
use rules::media_range;
use wire::ReceivedRequest;

use crate::access_log::CacheVerdict;
use crate::answer_plan::AnswerPlan;
use crate::client_identity::ClientIdentity;
use crate::parsed_request;
use crate::route_rules::guards::WhyRefused;
use crate::route_rules::route_verdict::{self, MeantRoute, RouteQuestion};
use crate::settings::{Listing, RootSettings, RouteTarget};
use crate::site::{Routed, Site};
use crate::static_files::file_path::{FilePath, NoPath};
use crate::static_files::finding::{self, Found, NotShown, Terms};
use crate::static_files::leading_link;
use crate::static_files::listing_page::ListingForm;
use crate::static_files::open_file::OpenFile;
use crate::static_files::open_file_table::KnownFile;
use crate::static_files::script_path::{self, AtHand, ScriptPath};
use crate::transaction::deliver::{self, Answer};
use crate::transaction::synth::Synth;
use crate::transaction::{Step, Transaction, admit, error_page};

/// The step. `known` is what the table said of the path as it was sent; `is_lookup`: what a script answers may be stored.
pub(crate) async fn run(tx: &mut Transaction, root: usize, known: KnownFile, is_lookup: bool) -> Step {
    let found = find(tx, root, known).await;
    if let Ok(Sought::Script(script)) = found {
        return run_script(tx, script, is_lookup);
    }
    tx.outcome.verdict = CacheVerdict::File;
    match found {
        Ok(Sought::File(file)) => method_refused(tx.head.method).map_or_else(|| show(tx, file), Step::Synth),
        Ok(Sought::Script(_)) => unreachable!("it has been run"),
        Err(synth) => Step::Synth(synth),
    }
}

/// What answers.
enum Sought {
    File(Arc<OpenFile>),
    Script(Arc<ScriptPath>),
}

/// The origin of the root is to be asked. What guards a script holds whatever stands behind it, and for a directory that it answers for.
fn run_script(tx: &mut Transaction, script: Arc<ScriptPath>, is_lookup: bool) -> Step {
    let path = path_of(&script);
    if let Some(refused) = script_refused(&tx.site, tx.routed, &tx.client, &tx.head.request(), &script) {
        return Step::Synth(refused);
    }
    let is_front = is_front(&tx.site, tx.routed, &path);
    if !is_front && let Err(limited) = limits_of_script(tx, &path) {
        return limited;
    }
    tx.script = Some(script);
    if is_lookup { Step::Lookup } else { Step::Pass }
}

/// By which it is asked for.
fn path_of(script: &ScriptPath) -> Vec<u8> {
    FilePath { relative: script.relative.clone(), is_directory: false }.canonical()
}

/// The script that answers for what is no file is asked for everywhere.
fn is_front(site: &Site, routed: Routed, path: &[u8]) -> bool {
    site.route_of(routed).is_some_and(|route| match route.target {
        RouteTarget::Root(root) => site.files.roots[root].fallback.as_deref().is_some_and(|it| it.as_bytes() == path),
        _ => false,
    })
}

/// What is answered in place of a script that may not be run for this client.
pub(crate) fn script_refused(
    site: &Site,
    routed: Routed,
    client: &ClientIdentity,
    request: &Request<'_>,
    script: &ScriptPath,
) -> Option<Synth> {
    let path = path_of(script);
    let why = match is_front(site, routed, &path) {
        true => site.closes(request, &path).then_some(WhyRefused::Closed),
        false => site.why_script_refused(request, client, (routed.route, &path)),
    };
    why.map(|why| why.synth(client))
}

/// Those of the route that the script's own path belongs to, where another one was asked for: a directory, or what stands behind the script.
fn limits_of_script(tx: &mut Transaction, path: &[u8]) -> Result<(), Step> {
    let head = Rc::clone(&tx.head);
    let request = head.request();
    let script_s = tx.site.routes.find_path(&request, path).filter(|_| tx.site.has_limits);
    let Some(at) = script_s.filter(|at| Some(*at) != tx.routed.route) else { return Ok(()) };
    let received = ReceivedRequest { body: tx.body, ..parsed_request::without_body(request) };
    let page = tx.place_in_page.page().cloned();
    let (seen, client, moment) = (tx.seen, &tx.client, tx.started);
    let asked = RouteQuestion { received: &received, seen, client, moment, page: page.as_deref() };
    let meant = MeantRoute { at, path: path.into() };
    match route_verdict::of_meant(&tx.core, &tx.site, &asked, &meant) {
        Some(synth) => Err(Step::Synth(synth)),
        None => admit::count_for(tx, &meant),
    }
}

async fn find(tx: &Transaction, root: usize, known: KnownFile) -> Result<Sought, Synth> {
    let files = &tx.site.files;
    let settings = Arc::clone(&files.roots[root]);
    let request = tx.head.request();
    let now = tx.core.now();
    if let Some(script) = files.scripts.get(root, request.path, now.mono_ms) {
        return Ok(Sought::Script(script));
    }
    let path = match FilePath::read(request.path, settings.dotfiles) {
        Ok(path) => path,
        Err(NoPath::Malformed) => return Err(Synth::path_malformed()),
        // No file is shown by that name, and none is run. What it means to a program is that program's to say.
        Err(NoPath::Hidden) => return fallback(tx, root, &settings).await.filter(Sought::is_script).ok_or_else(absent),
    };
    let canonical = path.canonical();
    if is_way_round(&tx.site, &request, root, &canonical) {
        return Err(absent());
    }
    let known = match known {
        KnownFile::Nothing if canonical != request.path => files.table.get(root, &canonical, now.mono_ms),
        known => known,
    };
    if let (Some(_), KnownFile::Nothing) = (&settings.scripts, &known) {
        match script_path::at_hand(&settings, &path) {
            AtHand::Script(script) => return Ok(Sought::Script(known_script(tx, root, &canonical, script))),
            AtHand::Absent => return fallback(tx, root, &settings).await.ok_or_else(absent),
            AtHand::Unknown => {}
        }
    }
    match look(tx, root, path, known).await {
        Ok(file) => Ok(Sought::File(file)),
        Err(NotFound::Script(script)) => Ok(Sought::Script(known_script(tx, root, &canonical, script))),
        Err(NotFound::Why(NotShown::Absent)) => fallback(tx, root, &settings).await.ok_or_else(absent),
        Err(NotFound::Directory(directory)) => Err(Synth::moved(directory.canonical(), request.query)),
        Err(NotFound::Why(NotShown::LeadsOut)) => Err(outside(&settings, request.path).await),
        Err(NotFound::Why(why)) => Err(refused(why)),
    }
}

/// The operator is told which link it is.
async fn outside(settings: &Arc<RootSettings>, path: &[u8]) -> Synth {
    let Ok(path) = FilePath::read(path, settings.dotfiles) else { return refused(NotShown::LeadsOut) };
    let settings = Arc::clone(settings);
    let looking = tokio::task::spawn_blocking(move || leading_link::of(&settings, &path));
    leads_out(looking.await.ok().flatten())
}

/// By this link, if it was found.
pub(crate) fn leads_out(link: Option<String>) -> Synth {
    link.map_or_else(|| refused(NotShown::LeadsOut), Synth::file_outside)
}

/// Found, and known for the next who asks by the same path.
fn known_script(tx: &Transaction, root: usize, path: &[u8], script: ScriptPath) -> Arc<ScriptPath> {
    let script = Arc::new(script);
    tx.site.files.scripts.keep(root, path, &script, tx.core.now().mono_ms);
    script
}

/// What answers where there is no file. It is kept under its own path alone: whoever asks for a thousand names that nobody has fills no table.
async fn fallback(tx: &Transaction, root: usize, settings: &RootSettings) -> Option<Sought> {
    let fallback = settings.fallback.as_ref()?.as_bytes();
    if let Some(script) = tx.site.files.scripts.get(root, fallback, tx.core.now().mono_ms) {
        return Some(Sought::Script(script));
    }
    let path = FilePath::read(fallback, settings.dotfiles).ok()?;
    let known = tx.site.files.table.get(root, &path.canonical(), tx.core.now().mono_ms);
    match look(tx, root, path, known).await {
        Ok(file) => Some(Sought::File(file)),
        Err(NotFound::Script(script)) => Some(Sought::Script(known_script(tx, root, fallback, script))),
        Err(_) => None,
    }
}

impl Sought {
    fn is_script(&self) -> bool {
        matches!(self, Sought::Script(_))
    }
}

/// No file, for now.
pub(crate) enum NotFound {
    /// It is a directory, which has this path.
    Directory(FilePath),
    /// It is a script, which is run and not shown.
    Script(ScriptPath),
    Why(NotShown),
}

/// Looks for one file, unless what is known of it is young enough.
pub(crate) async fn look(
    tx: &Transaction,
    root: usize,
    path: FilePath,
    known: KnownFile,
) -> Result<Arc<OpenFile>, NotFound> {
    let files = &tx.site.files;
    let settings = Arc::clone(&files.roots[root]);
    let canonical = path.canonical();
    let now = tx.core.now();
    let form = if path.is_directory { listing_form(tx, &settings) } else { None };
    let listed = form.map(|form| listing_key(form, &canonical));
    let known = match (known, &listed) {
        (KnownFile::Nothing, Some(key)) => files.table.get(root, key, now.mono_ms),
        (known, _) => known,
    };
    let known = match known {
        KnownFile::Current(file) => return Ok(file),
        KnownFile::Due(file) => Some(file),
        KnownFile::Nothing => None,
    };
    let terms = Terms {
        memory_bytes_max: files.memory_bytes_max,
        wall_s: (now.wall_ms / 1_000) as i64,
        mono_ms: now.mono_ms,
        form,
        listing: files.listing,
    };
    let before = known.clone();
    let compress = tx.site.compression_of(tx.routed).and_then(|_| files.compress.clone());
    let looking =
        tokio::task::spawn_blocking(move || (finding::find(&settings, &path, known, terms, compress.as_deref()), path));
    let Ok((found, path)) = looking.await else { return Err(NotFound::Why(NotShown::Failed)) };
    let forget = |key: &[u8]| files.table.drop_path(root, key);
    match found {
        Ok(Found::File(file)) => {
            files.table.keep(root, &canonical, &file);
            listed.iter().for_each(|key| forget(key));
            Ok(file)
        }
        Ok(Found::Listing(page)) => {
            forget(&canonical);
            listed.iter().for_each(|key| files.table.keep(root, key, &page));
            Ok(page)
        }
        Ok(Found::Directory) => {
            forget(&canonical);
            Err(NotFound::Directory(FilePath { is_directory: true, ..path }))
        }
        Ok(Found::Script(script)) => {
            forget(&canonical);
            Err(NotFound::Script(script))
        }
        // Nothing was learnt of the file: what was known of it is better than nothing.
        Err(why @ (NotShown::Exhausted | NotShown::Failed)) => before.ok_or(NotFound::Why(why)),
        Err(why) => {
            listed.iter().chain([&canonical]).for_each(|key| forget(key));
            Err(NotFound::Why(why))
        }
    }
}

/// What a directory is to be listed in for this request.
fn listing_form(tx: &Transaction, settings: &RootSettings) -> Option<ListingForm> {
    match settings.listing {
        Listing::Off => None,
        Listing::Html => Some(ListingForm::Html),
        Listing::Json => Some(ListingForm::Json),
        Listing::Negotiated => {
            let wants_json = media_range::prefers(tx.head.fields(), "application/json", "text/html");
            Some(if wants_json { ListingForm::Json } else { ListingForm::Html })
        }
    }
}

/// Listings are kept under names that no request has, since which one answers is not decided by the path alone.
fn listing_key(form: ListingForm, canonical: &[u8]) -> Vec<u8> {
    let prefix = match form {
        ListingForm::Html => &b"html "[..],
        ListingForm::Json => b"json ",
    };
    [prefix, canonical].concat()
}

/// Does the one spelling of a path belong to another route than the one that was sent? Another spelling is no way round the routes.
pub(crate) fn is_way_round(site: &Site, request: &Request<'_>, root: usize, canonical: &[u8]) -> bool {
    let route_of_canonical = || site.routes.find_path(request, canonical).map(|route| site.routes.at(route).target);
    canonical != request.path && route_of_canonical() != Some(RouteTarget::Root(root))
}

fn show(tx: &Transaction, file: Arc<OpenFile>) -> Step {
    let request = tx.head.request();
    let file = Arc::clone(file.chosen(request.fields));
    match deliver::plan_file(tx, &file) {
        AnswerPlan::PreconditionFailed => {
            let text = "The file is not the one that the request's conditions are about.";
            return Step::Synth(Synth::file(412, "precondition-failed", text));
        }
        AnswerPlan::Unsatisfiable { length } if error_page::is_there_for(tx, 416) => {
            return Step::Synth(Synth::unsatisfied(length));
        }
        _ => {}
    }
    tx.core.counters.files.add(1);
    Step::Deliver(Box::new(Answer::File(file)))
}

pub(crate) fn absent() -> Synth {
    refused(NotShown::Absent)
}

/// What is said never tells what lies where: only an operator's own mistakes name a setting.
pub(crate) fn refused(why: NotShown) -> Synth {
    match why {
        NotShown::Absent => Synth::file(404, "file-absent", "There is no such file."),
        NotShown::Unreadable => Synth::file(403, "file-unreadable", "This file may not be read."),
        NotShown::LeadsOut => Synth::file_outside("This file may not be read.".to_owned()),
        NotShown::Source => Synth::file(403, "file-source", "This file may not be read."),
        NotShown::SourceNotRun => {
            let text = "The source of a program is shown only where the route says so (sources of its [[route]]).";
            Synth::file(404, "file-not-run", text)
        }
        NotShown::NoFile => Synth::file(403, "file-not-regular", "This is no file."),
        NotShown::NoIndex => {
            Synth::file(403, "index-absent", "This directory has no index file (index of its [[route]]).")
        }
        NotShown::TooMany => {
            let text = "This directory has more entries than are listed (limits.listing_entries_max).";
            Synth::file(403, "listing-too-long", text)
        }
        NotShown::NoRoot => {
            let text = "The directory of this route cannot be opened (root of its [[route]]).";
            Synth::file_error(500, "root-unreadable", text)
        }
        NotShown::Exhausted => {
            let text = "Too many files are open (limits.open_files_max, limits.connections_max).";
            Synth::file_error(503, "files-exhausted", text)
        }
        NotShown::Failed => Synth::file_error(500, "file-failed", "The file could not be read."),
    }
}

/// A request for a file by another method than these.
pub(crate) fn method_refused(method: Method) -> Option<Synth> {
    (!matches!(method, Method::Get | Method::Head)).then(Synth::only_reading)
}
