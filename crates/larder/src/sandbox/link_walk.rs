//! The way of a path through the links in it. A rule for files holds of what a path leads to when it is made; a site whose root is a link that
//! each deploy sets anew needs the folder, too, in which the next target will lie.
//!
//! It knows paths, and nothing of what lies there.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use crate::limits::PATH_LINKS_MAX;

/// The folders in which the targets of the links of a path lie, each without a link in it, in the order of the way. What does not exist ends it.
pub fn folders_of_targets(path: &Path) -> Vec<PathBuf> {
    let Ok(path) = std::path::absolute(path) else { return Vec::new() };
    let mut left: VecDeque<OsString> = parts(&path);
    let (mut here, mut found) = (PathBuf::from("/"), Vec::new());
    while let Some(part) = left.pop_front() {
        if part == ".." {
            here.pop();
            continue;
        }
        let next = here.join(&part);
        let Ok(target) = next.read_link() else {
            here = next;
            continue;
        };
        if found.len() == PATH_LINKS_MAX {
            break;
        }
        let folder = here.join(&target).parent().and_then(|folder| folder.canonicalize().ok());
        found.extend(folder);
        if target.is_absolute() {
            here = PathBuf::from("/");
        }
        parts(&target).into_iter().rev().for_each(|part| left.push_front(part));
    }
    found
}

fn parts(path: &Path) -> VecDeque<OsString> {
    let part = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn each_link_on_the_way_tells_where_its_targets_lie() {
        let folder = std::env::temp_dir().join(format!("larder-links-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder); // it may not be there
        for made in ["app/releases/41/public", "shared/pem"] {
            std::fs::create_dir_all(folder.join(made)).unwrap();
        }
        let folder = folder.canonicalize().unwrap();
        symlink("releases/41", folder.join("app/current")).unwrap();
        symlink(folder.join("shared/pem"), folder.join("certificates")).unwrap();
        std::fs::write(folder.join("shared/pem/1.pem"), "").unwrap();
        symlink("1.pem", folder.join("shared/pem/site.pem")).unwrap();
        symlink("round", folder.join("round")).unwrap();
        let found = |path: &str| folders_of_targets(&folder.join(path));
        assert_eq!(found("app/current/public"), [folder.join("app/releases")]);
        assert_eq!(found("shared/../app/./current"), [folder.join("app/releases")]);
        assert_eq!(found("certificates/site.pem"), [folder.join("shared"), folder.join("shared/pem")]);
        assert!(found("app/releases/41").is_empty() && found("nowhere/at/all").is_empty());
        assert_eq!(found("round").len(), PATH_LINKS_MAX);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
