//! Files of a site with something to hide, beneath every root of a configuration. Each says its own place.

use std::path::{Path, PathBuf};

/// How such files begin.
pub const FILE: &str = "FILE ";

/// What applications have beneath their roots: pages, sources, settings, backups, what editors leave.
const FILES: &str = "\
index.html index.php config/config.php config/x.json data/secret.txt data/a.jpg lib/a.txt build/b.js occ.txt console.php \
db_structure.xml remote.php status.php robots.txt core/img/a.svg .htaccess .htpasswd .user.ini .env .git/config \
.well-known/acme-challenge/t sub/.env sub/x.bak sub/x.sql x.sql x.sw~ a.conf a.log a.inc a.ini a.sh composer.json \
backups/b.tar.gz uploads/a.txt uploads/a.php assets/a.js plugins/p.js favicon.ico downloads/x 500.html 50x.html 404.html \
a.html a.png b/index.html wp-config.php wp-config.php.bak wp-login.php wp-admin/index.php wp-content/uploads/a.php \
wp-content/debug.log wp-includes/a.php sites/default/settings.php sites/default/files/a.jpg modules/a/a.module \
vendor/autoload.php storage/logs/laravel.log apps/x/a.php apps/x/a.PHP apps/x/a.php5 apps/x/b.phtml static/a.css \
media/a.jpg js/a.js css/a.css images/a.gif admin/a.html private/a.html";

/// What most sites show, or hide: asked for in all spellings.
const SPELLED: [&str; 12] = [
    "index.php",
    "config/config.php",
    "data/secret.txt",
    ".htaccess",
    ".env",
    ".git/config",
    "sub/x.sql",
    "a.inc",
    "assets/a.js",
    "a.html",
    "uploads/a.php",
    "wp-config.php.bak",
];

/// Names of directories, of nothing, and of what lies above.
const OTHERS: [&str; 17] = [
    "/",
    "/config/",
    "/data/",
    "/lib",
    "/b/",
    "/b",
    "/x",
    "/index.php/x",
    "/a.png/x.php",
    "/config/../config/config.php",
    "/%2e%2e/x",
    "/a/..%2fconfig/config.php",
    "/assets/none.js",
    "/none.php",
    "/?page=1",
    "/index.php?page=1",
    "/.well-known/x",
];

/// Writes the files beneath a root, and what belongs to its locations.
pub fn write(folder: &Path, root: &str, locations: &[Vec<String>]) -> Result<(), String> {
    for name in FILES.split_whitespace() {
        put(folder, root, name)?;
    }
    for words in locations {
        let Some(path) = words.last().filter(|path| path.starts_with('/') && !path.contains(['\\', '(', '$', '*']))
        else {
            continue;
        };
        let path = path.trim_matches('/');
        let is_file = words.first().is_some_and(|word| word == "=")
            || path.rsplit('/').next().is_some_and(|name| name[1.min(name.len())..].contains('.'));
        match is_file {
            true => put(folder, root, path)?,
            false => ["a.txt", "a.php", ".env", "a.sql", "sub/a.html"]
                .iter()
                .try_for_each(|name| put(folder, root, &format!("{path}/{name}")))?,
        }
    }
    Ok(())
}

/// What is in the way stays.
fn put(folder: &Path, root: &str, name: &str) -> Result<(), String> {
    let place = PathBuf::from(root).join(name);
    let path = folder.join(&place);
    let is_plain = place.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    if !is_plain
        || name.is_empty()
        || path.exists()
        || std::fs::create_dir_all(path.parent().unwrap_or(folder)).is_err()
    {
        return Ok(());
    }
    std::fs::write(&path, format!("{FILE}{}", place.display())).map_err(|error| format!("{}: {error}", path.display()))
}

/// Paths that every server is asked for.
pub fn paths() -> Vec<String> {
    let plain = FILES.split_whitespace().map(|name| format!("/{name}"));
    plain.chain(SPELLED.iter().flat_map(|name| spellings(name))).chain(OTHERS.map(str::to_owned)).collect()
}

/// Other ways to say the same, and paths beside it.
pub fn spellings(name: &str) -> Vec<String> {
    let Some(first) = name.chars().next().filter(char::is_ascii) else { return Vec::new() };
    let rest = &name[1..];
    let mut spelled = vec![
        format!("/%{:02X}{rest}", first as u8),
        format!("//{name}"),
        format!("/x/../{name}"),
        format!("/./{name}"),
        format!("/{name}/"),
        format!("/{name}/x"),
        format!("/{name}/y.php"),
        format!("/{name}."),
        format!("/{name}~"),
        format!("/{}", name.to_uppercase()),
    ];
    if name.contains('/') {
        spelled.push(format!("/{}", name.replacen('/', "//", 1)));
        spelled.push(format!("/{}", name.replacen('/', "%2F", 1)));
        spelled.push(format!("/{}", name.replacen('/', "/./", 1)));
    }
    if name.contains('.') {
        spelled.push(format!("/{}", name.replace('.', "%2e")));
    }
    spelled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_say_their_places_and_have_many_spellings() {
        let folder = std::env::temp_dir().join(format!("larder-probes-{}", std::process::id()));
        let location = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let locations = [location(&["/api/"]), location(&["=", "/one"]), location(&["~", "/x.*"])];
        write(&folder, "roots/srv", &locations).expect("files");
        let read = |name: &str| std::fs::read_to_string(folder.join("roots/srv").join(name));
        assert_eq!(read("sub/.env").expect("a file"), "FILE roots/srv/sub/.env");
        assert_eq!(read("one").expect("a file"), "FILE roots/srv/one");
        assert!(read("api/a.php").is_ok());
        std::fs::remove_dir_all(&folder).expect("it is there");
        assert!(spellings("a/b.c").contains(&"/a%2Fb.c".to_owned()) && spellings("é").is_empty());
    }
}
