//! ErrorPage: the operator's page in place of the sentence that we would say. It is looked for once, when an error is
//! known; where it is missing or may not be shown the sentence is said after all, so one error never becomes another.

use crate::settings::RouteTarget;
use crate::site::Backend;
use crate::static_files::file_path::FilePath;
use crate::transaction::deliver::Answer;
use crate::transaction::synth::Synth;
use crate::transaction::{Step, Transaction, files};

/// An error, and where its page would be.
pub(crate) struct ErrorPage {
    synth: Synth,
    root: usize,
    path: FilePath,
}

/// The error as the next step shall answer it: by a page if the route of the request has one for it.
pub(crate) fn answer(tx: &Transaction, synth: Synth) -> Step {
    match place(tx, &synth) {
        Some((root, path)) => Step::ErrorPage(Box::new(ErrorPage { synth, root, path })),
        None => Step::Deliver(Box::new(Answer::Synth(synth))),
    }
}

/// Has the route a page for this status?
pub(crate) fn is_there_for(tx: &Transaction, status: u16) -> bool {
    let route = tx.site.route_of(tx.routed);
    route.and_then(|route| route.error_pages.as_ref()).is_some_and(|pages| pages.page(status).is_some())
}

/// The page's path belongs to whatever route it would belong to if it were asked for on this host. Under a program there
/// are no routes, not even for what is refused before it is asked.
fn place(tx: &Transaction, synth: &Synth) -> Option<(usize, FilePath)> {
    // What a proxy is asked for has none either.
    if !tx.policy.has_routes() || tx.routed.backend == Some(Backend::Forward) {
        return None;
    }
    let mut request = tx.head.request();
    let page = tx.site.route_of(tx.routed)?.error_pages.as_ref()?.page(synth.status)?;
    request.path = page.as_bytes();
    let RouteTarget::Root(root) = tx.site.routes.at(tx.site.routes.find(&request)?).target else { return None };
    let path = FilePath::read(page.as_bytes(), tx.site.files.roots[root].dotfiles).ok()?;
    Some((root, path))
}

/// The step. It is one of the state Files.
pub(crate) async fn run(tx: &Transaction, page: ErrorPage) -> Step {
    let ErrorPage { synth, root, path } = page;
    let known = tx.site.files.table.get(root, &path.canonical(), tx.core.now().mono_ms);
    let answer = match files::look(tx, root, path, known).await {
        Ok(file) => Answer::ErrorPage { synth, file },
        Err(_) => Answer::Synth(synth),
    };
    Step::Deliver(Box::new(answer))
}
