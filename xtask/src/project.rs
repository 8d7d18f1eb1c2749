//! Where things are: the repository, cargo's target folder, the files that are or will be committed, and the
//! program under test. Every task starts from here.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::Value;

/// The workspace as cargo and git see it.
pub struct Project {
    pub root: PathBuf,
    pub target: PathBuf,
    /// `cargo metadata`, dependencies included.
    pub metadata: Value,
}

/// One file of integration tests, with the features that it cannot do without.
pub struct IntegrationTest {
    pub package: String,
    pub name: String,
    pub features: String,
    /// It starts programs that no toolchain brings: `[package.metadata.tests] start_programs` of its Cargo.toml names it.
    pub starts_programs: bool,
}

impl Project {
    pub fn locate() -> Result<Project, String> {
        let output = Command::new(cargo())
            .args(["metadata", "--format-version", "1"])
            .stderr(Stdio::inherit())
            .output()
            .map_err(|e| format!("cargo metadata: {e}"))?;
        let metadata: Value = match output.status.success() {
            true => serde_json::from_slice(&output.stdout).map_err(|e| format!("cargo metadata: {e}"))?,
            false => return Err("cargo metadata failed".to_string()),
        };
        let path = |key: &str| metadata[key].as_str().map(PathBuf::from).ok_or(format!("cargo metadata has no {key}"));
        Ok(Project { root: path("workspace_root")?, target: path("target_directory")?, metadata })
    }

    pub fn larder(&self) -> PathBuf {
        self.target.join("release/larder")
    }

    /// A folder for what a run leaves behind: logs, edge counts, configurations.
    pub fn scratch(&self, name: &str) -> Result<PathBuf, String> {
        let folder = self.target.join("test").join(name);
        std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok(folder)
    }

    pub fn edges_folder(&self) -> PathBuf {
        self.target.join("test").join("edges")
    }

    /// Files that are committed, or would be by `git add .`; relative, sorted.
    pub fn files(&self) -> Result<Vec<PathBuf>, String> {
        let output = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(&self.root)
            .output()
            .map_err(|e| format!("git ls-files: {e}"))?;
        if !output.status.success() {
            return Err("git ls-files failed: is this a git checkout?".to_string());
        }
        let mut files: Vec<PathBuf> = String::from_utf8_lossy(&output.stdout)
            .split('\0')
            .filter(|name| !name.is_empty())
            .map(PathBuf::from)
            .filter(|path| self.root.join(path).is_file())
            .collect();
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// The workspace's files of integration tests.
    pub fn integration_tests(&self) -> Vec<IntegrationTest> {
        let items = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
        let members = items(&self.metadata["workspace_members"]);
        let mut tests = Vec::new();
        for package in items(&self.metadata["packages"]).iter().filter(|package| members.contains(&package["id"])) {
            let with_programs = items(&package["metadata"]["tests"]["start_programs"]);
            for target in items(&package["targets"]).iter().filter(|target| items(&target["kind"]) == ["test"]) {
                let features: Vec<String> = items(&target["required-features"]).iter().map(text).collect();
                let (name, package) = (text(&target["name"]), text(&package["name"]));
                let starts_programs = with_programs.contains(&target["name"]);
                tests.push(IntegrationTest { package, name, features: features.join(","), starts_programs });
            }
        }
        tests
    }

    /// All that is compiled in, for whatever purpose and platform, a line each.
    pub fn tree(&self, format: &str) -> Result<String, String> {
        let arguments = ["tree", "--workspace", "--target", "all", "--edges", "normal,build,dev", "--prefix", "none"];
        let output =
            self.cargo(&arguments).args(["--format", format]).output().map_err(|e| format!("cargo tree: {e}"))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(format!("cargo tree failed: {}", String::from_utf8_lossy(&output.stderr))),
        }
    }

    pub fn read(&self, path: impl AsRef<Path>) -> Result<String, String> {
        let path = self.root.join(path);
        std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// Brings the program up to date, for a task that runs it.
    pub fn build_larder(&self) -> Result<(), String> {
        let status = self.cargo(&["build", "--release", "--package", "larder"]).status();
        if status.is_ok_and(|status| status.success()) { Ok(()) } else { Err("larder does not build".to_string()) }
    }

    /// `cargo` with these arguments, in the repository.
    pub fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(cargo());
        command.args(arguments).current_dir(&self.root);
        command
    }
}

fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_string())
}

/// What `time` would say. The clock ban of clippy.toml protects the program; a task may look at its watch.
pub struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "times of tasks, not of the program")]
    pub fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    pub fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}
