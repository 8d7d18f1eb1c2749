//! The places that are left to this process once it has fenced itself in: what lies outside, and the sentence for an operator who names it
//! later. The kernel refuses without a reason; whoever is refused asks here whether the fence was it.
//!
//! There is one for the process, for that is what the kernel fences in. It does not know how the places were found.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::OnceLock;

/// What is done with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    Read,
    Write,
}

/// Everything beneath a folder, or one file, as the kernel knows it: by its device and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    device: u64,
    inode: u64,
    reach: Reach,
}

impl Place {
    /// What lies there now. `None`: nothing.
    pub fn at(path: &Path, reach: Reach) -> Option<Place> {
        let found = std::fs::metadata(path).ok()?;
        Some(Place { device: found.dev(), inode: found.ino(), reach })
    }
}

static PLACES: OnceLock<Vec<Place>> = OnceLock::new();

/// From here on nothing else is open. It is said once, for the fence is not opened again.
pub fn close(places: Vec<Place>) {
    // A second fence lies within the first.
    let _ = PLACES.set(places);
}

/// Is a file, or where it would be made, outside of the fence? Where there is none, nothing is.
pub fn is_outside(path: &Path, reach: Reach) -> bool {
    PLACES.get().is_some_and(|places| lies_outside(places, path, reach))
}

fn lies_outside(places: &[Place], path: &Path, reach: Reach) -> bool {
    let Ok(path) = std::path::absolute(path) else { return false };
    // A pipe or a socket without a name is where it leads to, and nowhere beneath a folder.
    let itself = Place::at(&path, reach);
    let is_open_itself = itself.is_some_and(|here| {
        places.iter().any(|it| (it.device, it.inode) == (here.device, here.inode) && it.reach >= reach)
    });
    if is_open_itself {
        return false;
    }
    let Some(real) = path.ancestors().find_map(|above| above.canonicalize().ok()) else { return false };
    let is_open = |above: &Path| {
        let here = Place::at(above, reach);
        here.is_some_and(|here| {
            let is_it = |place: &Place| (place.device, place.inode) == (here.device, here.inode);
            places.iter().any(|place| is_it(place) && place.reach >= reach)
        })
    };
    !real.ancestors().any(is_open)
}

/// What an operator is told of such a file.
pub fn sentence(reach: Reach) -> String {
    let (what, key) = match reach {
        Reach::Read => ("read", "sandbox_reads"),
        Reach::Write => ("write", "sandbox_writes"),
    };
    format!(
        "larder fenced itself in at its start, and may not {what} there ([process] sandbox): a restart with this config lets it, or \
         {key} in [process] has it open from the start"
    )
}

/// The same, where the kernel has refused to read a file and the fence is why.
pub fn reason(path: &Path) -> Option<String> {
    is_outside(path, Reach::Read).then(|| sentence(Reach::Read))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_lies_beneath_an_open_folder_is_inside_whatever_leads_there() {
        let folder = std::env::temp_dir().join(format!("larder-fence-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder); // it may not be there
        for made in ["site/deep", "logs", "else"] {
            std::fs::create_dir_all(folder.join(made)).unwrap();
        }
        symlink("site", folder.join("link")).unwrap();
        symlink("../else", folder.join("site/out")).unwrap();
        let place = |name: &str, reach| Place::at(&folder.join(name), reach).unwrap();
        let places = [place("site", Reach::Read), place("logs", Reach::Write)];
        let outside = |name: &str, reach| lies_outside(&places, &folder.join(name), reach);
        assert!(!outside("site", Reach::Read) && !outside("link/deep", Reach::Read));
        assert!(!outside("site/deep/new.html", Reach::Read), "what is not there yet will be beneath it");
        assert!(outside("site/deep", Reach::Write), "it is open for reading alone");
        assert!(!outside("logs/a.log", Reach::Write) && !outside("logs/a.log", Reach::Read));
        assert!(outside("else", Reach::Read) && outside("site/out", Reach::Read) && outside("none/at", Reach::Read));
        assert!(!is_outside(&folder.join("else"), Reach::Read), "there is no fence in this process");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
