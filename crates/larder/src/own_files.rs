//! The files that larder itself opens: no root shows them, whatever lies beneath it. A newcomer's `larder init` in the folder of a site
//! makes a larder.toml there, with a token in it.

use std::path::{Path, PathBuf};

use proxy::settings::KeptBack;

use crate::plan::{HistoryPlace, LogTarget, Plan};

/// All that this plan names, and the file that it was read from.
pub fn of(plan: &Plan, config: Option<&Path>) -> Vec<PathBuf> {
    let settings = &plan.settings;
    let of_tls = plan.tls_files.iter().flat_map(|(_, files)| {
        let pairs = files.certificates.iter().flat_map(|pair| [&pair.certificate, &pair.key]);
        pairs.chain(&files.ordered).chain(&files.ticket_secret).cloned().collect::<Vec<_>>()
    });
    let logins = settings.routes.iter().filter_map(|route| route.rules.access.login.as_ref());
    let log = plan.log.iter().filter_map(|log| if let LogTarget::File(path) = log { Some(path.clone()) } else { None });
    let history = if let HistoryPlace::At(path) = &plan.admin.history { Some(path.clone()) } else { None };
    let mut all: Vec<PathBuf> = config.map(Path::to_owned).into_iter().chain(of_tls).collect();
    all.extend(logins.map(|login| login.file.clone()));
    all.extend(settings.forward.password_file.clone());
    all.extend(plan.admin.token_file.clone());
    all.extend(plan.vcl_file.clone());
    all.extend(log.chain(history));
    all.extend(plan.disks.iter().map(|disk| disk.path.clone()));
    all.extend(plan.acme.iter().map(|acme| acme.settings.folder.clone()));
    all.sort_unstable();
    all.dedup();
    all
}

/// Has no root show them.
pub fn keep_back(plan: &mut Plan, config: Option<&Path>) {
    let own = of(plan, config);
    for root in &mut plan.settings.roots {
        root.kept_back = KeptBack::beneath(&root.directory, &own);
    }
}
