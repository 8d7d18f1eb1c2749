//! `larder check FILE…`: says whether a config or a VCL file is good, and if not, everything that is wrong with it; of a config also
//! what of it would fail on this machine.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use proxy::settings::{ListenMode, RouteSettings};
use serde_json::{Value, json};

use crate::check_vcl::{self, Beside, VclResult};
use crate::config::{self, ConfigError};
use crate::flags::CheckFlags;
use crate::machine_check::{self, MachineFinding};
use crate::plan::Plan;
use crate::quantities::{counted, show_size};

/// What came of one file.
enum Checked {
    Config(Box<CheckedConfig>),
    Vcl(VclResult),
}

/// A config, the VCL that it names, and what of it this machine does not have.
struct CheckedConfig {
    plan: Result<Plan, ConfigError>,
    program: Option<(PathBuf, VclResult)>,
    machine: Vec<MachineFinding>,
}

/// The files are good, and `larder serve` would not start.
const NOT_HERE: u8 = 3;
const NOT_HERE_SAID: &str = "the file is right, but larder would not start here";

/// A closed pipe must not end the check with a panic, so write errors are ignored: the exit code still tells.
pub fn check(flags: &CheckFlags) -> ExitCode {
    let results: Vec<_> = flags.all_files().map(|path| (path, Checked::of(path, flags))).collect();
    if flags.json {
        let files: Vec<Value> = results.iter().map(|(path, result)| result.row(path)).collect();
        let _ = writeln!(std::io::stdout(), "{}", json!({ "files": files }));
    } else {
        for (path, result) in &results {
            let _ = write!(std::io::stderr(), "{}", result.show(std::io::stderr().is_terminal()));
            if let Some(summary) = result.summary() {
                let verdict = if result.cannot_serve() { NOT_HERE_SAID } else { "ok" };
                let _ = writeln!(std::io::stdout(), "{}: {verdict}: {summary}", path.display());
            }
        }
    }
    match results.iter().all(|(_, result)| result.is_good()) {
        false => ExitCode::FAILURE,
        true if results.iter().any(|(_, result)| result.cannot_serve()) => ExitCode::from(NOT_HERE),
        true => ExitCode::SUCCESS,
    }
}

impl Checked {
    fn of(path: &Path, flags: &CheckFlags) -> Checked {
        if check_vcl::is_vcl(path) {
            Checked::Vcl(check_vcl::load(path, Beside::alone(&flags.vcl_path)))
        } else {
            Checked::Config(Box::new(CheckedConfig::of(path, flags)))
        }
    }

    fn is_good(&self) -> bool {
        match self {
            Checked::Config(config) => {
                config.plan.is_ok() && config.program.as_ref().is_none_or(|(_, program)| program.is_good())
            }
            Checked::Vcl(result) => result.is_good(),
        }
    }

    fn cannot_serve(&self) -> bool {
        matches!(self, Checked::Config(config) if config.machine.iter().any(|finding| finding.is_fatal))
    }

    /// Everything that is wrong, or deserves a look.
    fn show(&self, colour: bool) -> String {
        match self {
            Checked::Config(config) => config.show(colour),
            Checked::Vcl(result) => result.show(colour),
        }
    }

    /// A good file in one line.
    fn summary(&self) -> Option<String> {
        match self {
            Checked::Config(config) if self.is_good() => config.plan.as_ref().ok().map(summary),
            Checked::Config(_) => None,
            Checked::Vcl(result) => result.summary(),
        }
    }

    fn row(&self, path: &Path) -> Value {
        match self {
            Checked::Config(config) => config.row(path),
            Checked::Vcl(result) => result.row(path),
        }
    }
}

impl CheckedConfig {
    fn of(path: &Path, flags: &CheckFlags) -> CheckedConfig {
        let plan = config::load(path).and_then(|plan| match plan.contradiction() {
            Some(why) => Err(ConfigError::Unreadable(format!("{}: error: {why}", path.display()))),
            None => Ok(plan),
        });
        let program = plan.as_ref().ok().and_then(|plan| {
            let file = plan.vcl_file.clone()?;
            let folders = if flags.vcl_path.is_empty() { &plan.vcl_path } else { &flags.vcl_path };
            let origins = plan.settings.origins_for_programs();
            let result = check_vcl::load(&file, Beside { vcl_path: folders, origins: &origins });
            Some((file, result))
        });
        let on_machine = |plan: &Plan| {
            let of_file = machine_check::config_file(path, plan);
            of_file
                .into_iter()
                .chain(machine_check::own_files(path, plan))
                .chain(machine_check::findings(path, plan))
                .collect()
        };
        let machine = plan.as_ref().ok().filter(|_| !flags.file_only).map(on_machine).unwrap_or_default();
        CheckedConfig { plan, program, machine }
    }

    fn show(&self, colour: bool) -> String {
        let plan = match &self.plan {
            Err(error) => return error.show(colour),
            Ok(plan) => plan,
        };
        let warnings = plan.warnings().into_iter().map(|warning| format!("warning: {warning}\n"));
        let program = self.program.iter().map(|(_, program)| program.show(colour));
        let notes = notes(plan).into_iter().map(|note| format!("note: {note}\n"));
        warnings.chain(program).chain(self.machine.iter().map(MachineFinding::show)).chain(notes).collect()
    }

    fn row(&self, path: &Path) -> Value {
        let file = path.display().to_string();
        let plan = match &self.plan {
            Err(ConfigError::Faulty(faulty)) => return json!({ "file": file, "ok": false, "errors": faulty.rows() }),
            Err(ConfigError::Unreadable(why)) => {
                return json!({ "file": file, "ok": false, "errors": [{ "message": why }] });
            }
            Ok(plan) => plan,
        };
        let mut row = json!({
            "file": file, "ok": true, "summary": summary(plan), "errors": [], "warnings": plan.warnings(),
            "machine": self.machine, "notes": notes(plan),
        });
        if let Some((file, program)) = &self.program {
            row["ok"] = program.is_good().into();
            row["vcl"] = program.row(file);
        }
        row
    }
}

/// A name that looks like a site's, where nginx would have it. Of a site with routes by host it is the name of none or one of them.
fn named_like_a_site(plan: &Plan) -> Option<String> {
    let name = plan.settings.server_name.as_str();
    let mut hosts = plan.settings.routes.iter().filter_map(|route| route.host.as_deref());
    let is_a_host = hosts.clone().any(|host| host.eq_ignore_ascii_case(name));
    // A name of one label is one of a machine. With hosts of its own the file shows that somebody knows the word for them.
    let has_dots = name.contains('.') && name.parse::<std::net::IpAddr>().is_err();
    (is_a_host || has_dots && hosts.next().is_none()).then(|| {
        format!(
            "server_name = \"{name}\" is what larder calls itself in Via and Cache-Status, and chooses no requests; host = [\"{name}\"] in [[route]] does"
        )
    })
}

/// What is good, and may be meant otherwise.
fn notes(plan: &Plan) -> Vec<String> {
    named_like_a_site(plan).into_iter().chain(led_elsewhere(plan)).chain(unanswered_roots(plan)).collect()
}

/// Clients are led to https://, and nobody here speaks it.
fn led_elsewhere(plan: &Plan) -> Option<String> {
    let listeners = &plan.settings.listeners;
    let port = listeners.iter().find_map(|listener| match listener.mode {
        ListenMode::Redirect { https_port } => Some(https_port),
        _ => None,
    })?;
    listeners.iter().all(|listener| listener.tls.is_none()).then(|| {
        format!(
            "mode = \"redirect\" leads everybody to https://, port {port}, and no [[listen]] here has tls: somebody else has to listen there, \
             or clients find nobody"
        )
    })
}

/// Hosts that have routes, and none for what no other one is for.
fn unanswered_roots(plan: &Plan) -> Vec<String> {
    const NOTES_MAX: usize = 5;
    let routes = &plan.settings.routes;
    let mut hosts: Vec<Option<&str>> = routes.iter().map(|route| route.host.as_deref()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let is_unanswered = |host: &Option<&str>| {
        let name = host.unwrap_or_default().replace('*', "any");
        RouteSettings::among(routes, name.as_bytes(), b"/").is_none()
    };
    let unanswered = hosts.into_iter().filter(|host| plan.vcl_file.is_none() && is_unanswered(host));
    let note = |host: Option<&str>| {
        let (of_host, line) = match host {
            Some(host) => (format!(" of {host}"), format!(" with host = \"{host}\"")),
            None => (String::new(), String::new()),
        };
        format!(
            "no [[route]] is for /{of_host}: what no route is for is 404. A [[route]]{line} and no path answers all the rest"
        )
    };
    unanswered.map(note).take(NOTES_MAX).collect()
}

/// The plan in one line.
fn summary(plan: &Plan) -> String {
    let settings = &plan.settings;
    let mut roots: Vec<&Path> = settings.roots.iter().map(|root| &*root.directory).collect();
    roots.sort_unstable();
    roots.dedup();
    let answerers =
        [(settings.origins.len(), "origin"), (roots.len(), "root"), (settings.memcached.len(), "route to memcached")];
    let forwards = settings.listeners.iter().any(|listener| listener.mode == ListenMode::Forward);
    let answerers: Vec<String> = answerers
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|&(n, one)| counted(n as u64, one))
        .chain(forwards.then(|| "a forward proxy".to_owned()))
        .collect();
    let origins = match (answerers.is_empty(), settings.routes.is_empty()) {
        (true, true) => "no origin (give --origin or --root to serve)".to_owned(),
        (true, false) => "no origin".to_owned(),
        (false, _) => answerers.join(", "),
    };
    let of_presets = settings.routes.iter().filter(|route| route.yields_to_paths).count();
    let routes = counted((settings.routes.len() - of_presets) as u64, "route");
    let routes = match of_presets {
        0 => routes,
        more => format!("{routes} and {more} of presets"),
    };
    format!(
        "{}, {routes}, {origins}, {} of memory",
        counted(settings.listeners.len() as u64, "listener"),
        show_size(settings.memory_bytes_max as u64)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_route_is_for_is_noted() {
        const SITE: &str = "[origin.a]\nurls = \"http://a\"\n";
        let check = |routes: &str, expect: &[&str]| {
            let notes = unanswered_roots(&config::read(&format!("{SITE}{routes}")).unwrap());
            let fits = notes.len() == expect.len() && notes.iter().zip(expect).all(|(note, part)| note.contains(part));
            assert!(fits, "{routes}: {notes:?}");
        };
        check("", &[]);
        check("[[route]]\npath = \"/search\"\n", &["no [[route]] is for /: what"]);
        check("[[route]]\npath = \"/search\"\n[[route]]\n", &[]);
        check("[[route]]\nhost = \"a.test\"\n", &[]);
        check("[[route]]\nhost = [\"a.test\", \"*.b.test\"]\npath = \"/x\"\n", &["/ of *.b.test:", "/ of a.test:"]);
        check("[[route]]\nhost = \"a.test\"\npath = \"/x\"\n[[route]]\n", &[]);
        check("[[route]]\npath_pattern = '^/'\n", &[]);
    }

    #[test]
    fn who_leads_to_nobody_is_noted() {
        let noted = |mode: &str| {
            let text =
                format!("[[listen]]\naddress = \"127.0.0.1:0\"\nmode = \"{mode}\"\n[[route]]\nroot = \"/srv\"\n");
            led_elsewhere(&config::read(&text).unwrap())
        };
        assert!(noted("redirect").is_some_and(|note| note.contains("port 443, and no [[listen]] here has tls")));
        assert_eq!(noted("accelerate"), None);
    }

    #[test]
    fn a_name_like_a_sites_is_noted() {
        const SITE: &str = "[origin.a]\nurls = \"http://a\"\n";
        for (top, routes, is_noted) in [
            ("server_name = \"www.a.test\"", "", true),
            ("server_name = \"www.a.test\"", "[[route]]\npath = \"/\"\n", true),
            ("server_name = \"a.test\"", "[[route]]\nhost = \"A.test\"\n", true),
            ("server_name = \"edge.a.test\"", "[[route]]\nhost = \"a.test\"\n", false),
            ("server_name = \"edge-1\"", "", false),
            ("", "", false),
        ] {
            let plan = config::read(&format!("{top}\n{SITE}{routes}")).unwrap();
            assert_eq!(named_like_a_site(&plan).is_some(), is_noted, "{top} {routes}");
        }
    }

    #[test]
    fn a_good_config_is_summed_up() {
        let plan = config::read("[origin.web]\nurls = \"http://127.0.0.1:3000\"\n[memory]\nsize = \"64MiB\"").unwrap();
        assert_eq!(summary(&plan), "1 listener, 1 route, 1 origin, 64 MiB of memory");
        let files = "[[route]]\nroot = \"/srv\"\npreset = \"static\"\n[[route]]\nhost = \"a.test\"\nroot = \"/srv\"";
        let plan = config::read(files).unwrap();
        let of_presets = plan.settings.routes.len() - 2;
        assert!(of_presets > 0 && plan.settings.roots.len() > 2);
        let expect = format!("1 listener, 2 routes and {of_presets} of presets, 1 root, 256 MiB of memory");
        assert_eq!(summary(&plan), expect);
        assert!(summary(&Plan::default()).contains("no origin (give") && !Plan::default().serves_something());
        let plan = config::read("[[route]]\nredirect = \"https://$host$request_uri\"").unwrap();
        assert_eq!(summary(&plan), "1 listener, 1 route, no origin, 256 MiB of memory");
        assert!(plan.serves_something());
        let plan = config::read("[[listen]]\naddress = \"127.0.0.1:3128\"\nmode = \"forward\"").unwrap();
        assert_eq!(summary(&plan), "1 listener, 0 routes, a forward proxy, 256 MiB of memory");
    }
}
