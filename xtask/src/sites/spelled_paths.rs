//! Files of a site with something to hide, and the many spellings in which each of them is asked for.

use std::path::Path;

/// Files that applications have beneath their roots: pages, sources, settings, backups, what editors leave.
const FILES: &str = "\
index.html index.php config/config.php config/x.json data/secret.txt data/a.jpg lib/a.txt lib/a.css build/b.js tests/t.html
templates/t.html 3rdparty/x.css occ occ.txt console.php console db_structure.xml autotest.sh issue.md indie.txt remote.php
remote/x.txt remotes.txt status.php robots.txt core/img/a.svg core/a.css core/doc.txt .htaccess .user.ini .git/config
.well-known/acme-challenge/t .well-known/x.txt sub/.env sub/x.bak sub/x.sql x.sw~ a.conf a.log a.inc a.ini a.sh
backups/b.tar.gz uploads/a.txt uploads/stylesheet-cache/x assets/a.js assets/a.ttf plugins/p.js favicon.ico favicon.icon
downloads/x message-bus/x stylesheets/a.css letter_avatar/x user_avatar1.txt srv/status admin/backups/x system/a.png
packs/a.js sw.js api/v1/streaming/x api/v1/streamings.txt 500.html 502.html 404.html a.html b/index.html c.html
updater/index.php ocs/v1.php apps/x/a.php apps/x/a.PHP apps/x/a.php5 apps/x/b.phtml";

/// Names of directories, of nothing, and of what lies above.
const OTHERS: &[&str] = &[
    "/",
    "/config/",
    "/data/",
    "/lib",
    "/config",
    "/remote",
    "/remote/x",
    "/backups",
    "/backups/",
    "/downloads/",
    "/uploads/",
    "/b/",
    "/b",
    "/c",
    "/a",
    "/apps/",
    "/sub/",
    "/.well-known/",
    "/x",
    "/index.php/x",
    "/config/../config/config.php",
    "/%2e%2e/x",
    "/a/..%2fconfig/config.php",
    "/assets/none.js",
    "/%61ssets/none.js",
    "/system/none",
    "/%73ystem/a.png/x",
];

pub fn files() -> impl Iterator<Item = &'static str> {
    FILES.split_whitespace()
}

/// Writes all files beneath a root. Each says its own name.
pub fn write_files(root: &Path) -> Result<(), String> {
    for name in files() {
        let path = root.join(name);
        let said = |error: std::io::Error| format!("{}: {error}", path.display());
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(said)?;
        }
        std::fs::write(&path, format!("FILE {name}")).map_err(said)?;
    }
    Ok(())
}

/// Every path that is asked for.
pub fn all() -> Vec<String> {
    files().flat_map(spellings).chain(OTHERS.iter().map(|path| path.to_string())).collect()
}

fn spellings(name: &str) -> Vec<String> {
    let (first, rest) = name.split_at(1);
    let mut spelled = vec![
        format!("/{name}"),
        format!("/%{:02X}{rest}", first.as_bytes()[0]),
        format!("//{name}"),
        format!("/x/../{name}"),
        format!("/./{name}"),
        format!("/{name}/"),
        format!("/{name}/x"),
    ];
    if name.contains('/') {
        spelled.push(format!("/{}", name.replacen('/', "//", 1)));
        spelled.push(format!("/{}", name.replacen('/', "%2F", 1)));
    }
    if name.contains('.') {
        spelled.push(format!("/{}", name.replace('.', "%2e")));
    }
    spelled
}
