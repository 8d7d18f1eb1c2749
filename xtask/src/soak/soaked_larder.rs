//! A larder of a soak as an operator has it: with its supervisor and its sandbox, a disk, an access log, TLS, HTTP/2, a forward proxy, files and memcached; one decides by its own rules, the
//! other by a VCL. What is done to it is in `soak_events.rs`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::Duration;

use super::soak_books::BY_PROGRAM;
use super::soak_trust::SoakTrust;
use crate::project::Stopwatch;
use crate::{ports, process_signal};

/// For whatever is waited for: the machine may have much else to do.
pub const PATIENCE_S: f64 = 60.0;
const LOOK_EVERY: Duration = Duration::from_millis(5);
pub const MEMORY: &str = "48MiB";
const DISK: &str = "128MiB";

/// What both larders of a soak stand in front of.
#[derive(Clone, Copy)]
pub struct SoakSurroundings {
    pub origin_port: u16,
    pub echo_port: u16,
    pub memcached_port: u16,
}

pub struct SoakedLarder {
    pub number: usize,
    pub folder: PathBuf,
    pub port: u16,
    pub tls_port: u16,
    pub forward_port: u16,
    /// It decides by a VCL.
    pub has_program: bool,
    program: PathBuf,
    surroundings: SoakSurroundings,
    process: Child,
    /// What its answers say of how often it was told something new.
    pub round: AtomicU64,
}

impl Drop for SoakedLarder {
    fn drop(&mut self) {
        let _ = self.process.kill().and_then(|()| self.process.wait());
    }
}

impl SoakedLarder {
    /// In a folder in which `disk` and `log` are there, perhaps as mounts.
    pub fn start(
        program: &Path,
        (number, folder): (usize, &Path),
        surroundings: SoakSurroundings,
        trust: &SoakTrust,
    ) -> Result<SoakedLarder, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        for name in ["tls", "files/files", "disk", "log"] {
            fs::create_dir_all(folder.join(name)).map_err(failed)?;
        }
        trust.make(folder)?;
        let (port, tls_port, forward_port) = (ports::free()?, ports::free()?, ports::free()?);
        let has_program = number == BY_PROGRAM;
        let (config, vcl) = text(has_program, [port, tls_port, forward_port], surroundings, 0);
        fs::write(folder.join("larder.toml"), config).map_err(failed)?;
        fs::write(folder.join("site.vcl"), vcl).map_err(failed)?;
        let said = File::create(folder.join("larder.log")).map_err(failed)?;
        let mut command = Command::new(program);
        command.args(["serve", "--config", "larder.toml"]).current_dir(folder).stdin(Stdio::null());
        let mut process = command.stdout(Stdio::null()).stderr(said).spawn().map_err(failed)?;
        let is_up = ports::wait(port, PATIENCE_S, || process.try_wait().is_ok_and(|ended| ended.is_none()));
        let larder = SoakedLarder {
            number,
            folder: folder.to_owned(),
            port,
            tls_port,
            forward_port,
            has_program,
            program: program.to_owned(),
            surroundings,
            process,
            round: AtomicU64::new(0),
        };
        is_up.map_err(|why| format!("{why}: {}", larder.folder.join("larder.log").display()))?;
        larder.wait_for("its admin address", || larder.command(&["stat", "--once"]).status.success())?;
        Ok(larder)
    }

    pub fn command(&self, words: &[&str]) -> Output {
        let mut command = Command::new(&self.program);
        command.args(words).args(["--config", "larder.toml"]).current_dir(&self.folder).stdin(Stdio::null());
        command.output().expect("larder was started before")
    }

    pub fn admin(&self) -> PathBuf {
        self.folder.join("a.sock")
    }

    /// All that it has said.
    pub fn said(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.folder.join("larder.log")).unwrap_or_default()).into_owned()
    }

    /// Writes its config and its VCL anew, with a round in them and `more` behind them.
    pub fn write(&self, round: u64, more: &str) -> Result<(), String> {
        let ports = [self.port, self.tls_port, self.forward_port];
        let (config, vcl) = text(self.has_program, ports, self.surroundings, round);
        // What is broken is the VCL, where there is one.
        let (config, vcl) = if self.has_program { (config, vcl + more) } else { (config + more, vcl) };
        for (name, text) in [("larder.toml", config), ("site.vcl", vcl)] {
            let (path, next) = (self.folder.join(name), self.folder.join(format!("{name}.next")));
            let written = fs::write(&next, text).and_then(|()| fs::rename(&next, &path));
            written.map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(())
    }

    pub fn supervisor(&self) -> u32 {
        self.process.id()
    }

    /// The processes below the supervisor, oldest first.
    pub fn serving(&self) -> Vec<u32> {
        let supervisor = self.supervisor();
        let children = fs::read_to_string(format!("/proc/{supervisor}/task/{supervisor}/children"));
        children.unwrap_or_default().split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    }

    /// Of the newest.
    pub fn signal(&self, word: &str) -> Result<u32, String> {
        let process = self.serving().pop().ok_or_else(|| format!("larder {} has no serving process", self.number))?;
        process_signal::send(word, &process.to_string());
        Ok(process)
    }

    pub fn wait_for(&self, what: &str, mut is_so: impl FnMut() -> bool) -> Result<(), String> {
        let begun = Stopwatch::start();
        while !is_so() {
            if begun.seconds() > PATIENCE_S {
                let log = self.folder.join("larder.log");
                return Err(format!("{what}: not within {PATIENCE_S} s; {}", log.display()));
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }
}

/// larder.toml and site.vcl. All but the round is the same in each.
fn text(has_program: bool, ports: [u16; 3], surroundings: SoakSurroundings, round: u64) -> (String, String) {
    let [port, tls_port, forward_port] = ports;
    let SoakSurroundings { origin_port, echo_port, memcached_port } = surroundings;
    // Under a VCL the program says it.
    let (policy, edit) = match has_program {
        true => ("[policy]\nvcl = \"site.vcl\"\n", String::new()),
        false => {
            ("[esi]\npages = \"surrogate\"\n", format!("response_headers = {{ set = {{ X-Round = \"{round}\" }} }}\n"))
        }
    };
    let config = format!(
        "workers = 2\n\
         [[listen]]\naddress = \"127.0.0.1:{port}\"\nh2c = true\n\
         [[listen]]\naddress = \"127.0.0.1:{tls_port}\"\n[listen.tls]\ncert = \"tls/site.pem\"\nkey = \"tls/site.key\"\n\
         [[listen]]\naddress = \"127.0.0.1:{forward_port}\"\nmode = \"forward\"\n\
         [forward]\nallow_destinations = [\"127.0.0.0/8\"]\nconnect_ports = [{echo_port}]\n\
         [origin.site]\nurls = [\"http://127.0.0.1:{origin_port}\"]\n\
         [origin.sockets]\nurls = [\"http://127.0.0.1:{echo_port}\"]\n\
         [[route]]\norigin = \"site\"\n{edit}\
         [[route]]\npath = \"/socket\"\norigin = \"sockets\"\n\
         [[route]]\npath = \"/files\"\nroot = \"files\"\n\
         [[route]]\npath = \"/mc\"\nmemcached = [\"127.0.0.1:{memcached_port}\"]\ncommands = [\"get\", \"set\", \"delete\"]\n\
         [memory]\nsize = \"{MEMORY}\"\n\
         [[disk]]\npath = \"disk/store\"\nsize = \"{DISK}\"\n\
         [log]\npath = \"log/access.log\"\n\
         [admin]\naddress = \"unix:a.sock\"\n\
         [limits]\nobject_bytes_max = \"256KiB\"\nslice_bytes = \"128KiB\"\nupgrade_grace = \"30s\"\n\
         {policy}"
    );
    // builtin.vcl answers 503, as Varnish does, where what is being validated is purged meanwhile: it is asked for anew here.
    let vcl = format!(
        "vcl 4.1;\n\
         sub vcl_recv {{\n    if (req.method == \"PURGE\") {{ return (purge); }}\n    if (req.http.Upgrade) {{ set req.backend_hint = sockets; return (pipe); }}\n    set req.backend_hint = site;\n}}\n\
         sub vcl_pipe {{ set bereq.http.Upgrade = req.http.Upgrade; set bereq.http.Connection = req.http.Connection; }}\n\
         sub vcl_backend_response {{\n    if (beresp.http.Surrogate-Control) {{ set beresp.do_esi = true; }}\n\
         \x20   if (beresp.http.Content-Type ~ \"^text/\") {{ set beresp.do_gzip = true; }}\n}}\n\
         sub vcl_backend_refresh {{\n    if (!obj_stale.is_valid) {{\n        unset bereq.http.If-None-Match;\n\
         \x20       unset bereq.http.If-Modified-Since;\n        return (retry);\n    }}\n}}\n\
         sub vcl_deliver {{ set resp.http.X-Round = \"{round}\"; }}\n"
    );
    (config, vcl)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_larders_are_told_in_toml_and_one_has_a_program() {
        for has_program in [false, true] {
            let surroundings = SoakSurroundings { origin_port: 81, echo_port: 82, memcached_port: 83 };
            let (config, vcl) = text(has_program, [1, 2, 3], surroundings, 7);
            let table: toml::Table = toml::from_str(&config).expect("it is TOML");
            assert_eq!(table.contains_key("policy"), has_program);
            assert_eq!(table["listen"].as_array().map(Vec::len), Some(3));
            assert!(if has_program { vcl } else { config }.contains("X-Round = \"7\""));
        }
    }
}
