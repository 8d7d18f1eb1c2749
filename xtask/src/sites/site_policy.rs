//! Who decides what is cached of a site, and the larder.toml that says so.

use std::path::Path;
use std::process::Command;

use crate::sites::php_site::PhpSite;

/// Caches everything for everybody.
const EVERYTHING: &str = include_str!("../../sites/everything.vcl");

/// Who decides what is cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// larder without a VCL and without a word about the site.
    Builtin,
    /// A VCL as such sites have it.
    Usual,
    /// One that gives everything to everybody: the judge must notice.
    Everything,
    /// The preset for such sites.
    Preset,
    /// The same, cut so that nobody passes the store for their cookies: the judge must notice.
    CutPreset,
}

/// How larder reaches the site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// By HTTP, at an nginx.
    ByHttp,
    /// By FastCGI, at php-fpm: larder serves the files itself.
    ByFastCgi,
}

/// What such sites have.
#[derive(Clone, Copy, Debug)]
pub struct SiteWords {
    /// The name of their preset.
    pub preset: &'static str,
    /// Their VCL.
    pub vcl: &'static str,
    /// What an origin of PHP and a root say beside the preset.
    pub origin: &'static str,
    pub root: &'static str,
}

impl Policy {
    /// Is it wrong on purpose?
    pub fn leaks(self) -> bool {
        matches!(self, Policy::Everything | Policy::CutPreset)
    }

    /// Writes `larder.toml`. `on_top` is said over the preset's words.
    pub fn write(
        self,
        program: &Path,
        php: &PhpSite,
        words: &SiteWords,
        (reached, on_top): (Reached, &str),
    ) -> Result<(), String> {
        let port = php.port;
        let mut config = format!("[memory]\nsize = \"64MiB\"\n{}\n", origin(php, words, reached));
        match self {
            Policy::Builtin => {}
            Policy::Usual | Policy::Everything => {
                let vcl = if self == Policy::Usual { words.vcl } else { EVERYTHING };
                php.processes.write("site.vcl", &vcl.replace("PORT", &port.to_string()))?;
                config = "[memory]\nsize = \"64MiB\"\n[policy]\nvcl = \"site.vcl\"\n".to_owned();
            }
            Policy::Preset => {
                let root = match reached {
                    Reached::ByHttp => String::new(),
                    Reached::ByFastCgi => format!("root = \"docs\"\norigin = \"site\"\n{}\n", words.root),
                };
                config.push_str(&format!("[[route]]\npreset = \"{}\"\n{root}{on_top}\n", words.preset));
            }
            Policy::CutPreset => {
                let text = php.processes.run(Command::new(program).args(["config", "preset", words.preset]))?;
                config.push_str(&without_bypass(&text)?);
            }
        }
        php.processes.write("larder.toml", &config).map(|_| ())
    }
}

fn origin(php: &PhpSite, words: &SiteWords, reached: Reached) -> String {
    match reached {
        Reached::ByHttp => format!("[origin.site]\nurls = [\"http://127.0.0.1:{}\"]", php.port),
        Reached::ByFastCgi => {
            let socket = php.processes.folder.join("php.sock");
            format!("[origin.site]\nfastcgi = \"unix:{}\"\n{}", socket.display(), words.origin)
        }
    }
}

/// A preset as it would be if somebody forgot that sessions have pages of their own.
fn without_bypass(preset: &str) -> Result<String, String> {
    let line = preset.lines().find(|line| line.starts_with("cookies = {") && line.contains("bypass"));
    let line = line.ok_or("the preset says of no cookie that it passes the store")?;
    Ok(preset.replace(line, "cookies = \"strip\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preset_is_cut_where_it_sends_sessions_past_the_store() {
        let whole =
            "[[route]]\nttl = \"5m\"\ncookies = { keep = [], bypass = [\"a_*\"] }\n\n[[route]]\npath = \"/b\"\n";
        let cut = "[[route]]\nttl = \"5m\"\ncookies = \"strip\"\n\n[[route]]\npath = \"/b\"\n";
        assert_eq!(without_bypass(whole), Ok(cut.to_owned()));
        assert!(without_bypass(cut).is_err());
    }
}
