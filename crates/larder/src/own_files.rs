//! The files that larder itself opens: no root shows them, whatever lies beneath it. A newcomer's `larder init` in the folder of a site
//! makes a larder.toml there, with a token in it.

use std::path::{Path, PathBuf};

use acme::StateFolder;
use proxy::settings::KeptBack;

use crate::plan::{LogTarget, Plan};

/// All that this plan names, and the file that it was read from.
pub fn of(plan: &Plan, config: Option<&Path>) -> Vec<PathBuf> {
    let settings = &plan.settings;
    let of_tls = plan.tls_files.iter().flat_map(|(_, files)| {
        let pairs = files.certificates.iter().flat_map(|pair| [&pair.certificate, &pair.key]);
        pairs.chain(&files.ordered).chain(&files.ticket_secret).cloned().collect::<Vec<_>>()
    });
    let logins = settings.routes.iter().filter_map(|route| route.rules.access.login.as_ref());
    let log = plan.log.iter().filter_map(|log| if let LogTarget::File(path) = log { Some(path.clone()) } else { None });
    let mut all: Vec<PathBuf> = config.map(Path::to_owned).into_iter().chain(of_tls).collect();
    all.extend(plan.files_read.iter().cloned());
    all.extend(logins.map(|login| login.file.clone()));
    all.extend(settings.forward.password_file.clone());
    all.extend(settings.forward.parents.iter().filter_map(|parent| parent.login_file.clone()));
    all.extend(plan.admin.token_file.clone());
    all.extend(plan.vcl_file.clone());
    all.extend(log.chain(plan.history_file()));
    // What is in a folder is named besides, for it may be the root itself.
    all.extend(plan.disks.iter().flat_map(|disk| [disk.path.clone(), cache::disk_file(&disk.path)]));
    all.extend(plan.acme.iter().flat_map(|acme| {
        let settings = &acme.settings;
        let of_authority = StateFolder::new(&settings.folder, &settings.authority.directory);
        [settings.folder.clone(), of_authority.path().to_owned()]
    }));
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

#[cfg(test)]
mod tests {
    use cache::DiskFile;
    use proxy::settings::{ListenAddress, OriginUrl, ParentSettings};

    use super::*;
    use crate::plan::HistoryPlace;
    use crate::tls_files::{CertificateFiles, TlsFiles};

    #[test]
    fn all_that_is_opened_is_larders_own() {
        let mut plan = Plan { log: Some(LogTarget::File("a.log".into())), ..Plan::default() };
        plan.vcl_file = Some("site.vcl".into());
        plan.disks = vec![DiskFile { path: "disk".into(), bytes: 1 }];
        plan.files_read = vec!["client.key".into()];
        plan.admin.token_file = Some("token".into());
        plan.settings.forward.password_file = Some("users".into());
        let url = OriginUrl::Tcp { host: "proxy.test".to_owned(), port: 3128 };
        plan.settings.forward.parents =
            vec![ParentSettings { url, weight: 1, login_file: Some("login".into()), login: None }];
        let (certificate, key) = ("site.pem".into(), "site.key".into());
        let files = TlsFiles {
            certificates: vec![CertificateFiles { certificate, key, ocsp: None }],
            ticket_secret: Some("tickets".into()),
            ..TlsFiles::default()
        };
        plan.tls_files = vec![(ListenAddress::Tcp(([127, 0, 0, 1], 443).into()), files)];
        let names = |plan: &Plan| -> Vec<String> {
            of(plan, Some(Path::new("larder.toml"))).iter().map(|path| path.display().to_string()).collect()
        };
        let beside = [
            "a.log",
            "client.key",
            "disk",
            "disk.history",
            "larder.toml",
            "login",
            "site.key",
            "site.pem",
            "site.vcl",
            "tickets",
            "token",
            "users",
        ];
        assert_eq!(names(&plan), beside);
        plan.admin.history = HistoryPlace::At("history".into());
        assert!(names(&plan).contains(&"history".to_owned()));
    }
}
