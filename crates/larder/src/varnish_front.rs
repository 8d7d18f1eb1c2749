//! `larder varnishd`, and larder invoked by a symlink of the name `varnishd`: what Varnish's users type, done by larder.
//!
//! The crate `varnishd` reads the command line and speaks the management protocol; here it is given a larder to speak for,
//! sockets to speak through, and a folder to leave notes in.

mod fetch_tally;
mod front_counters;
mod front_daemon;
mod front_doors;
mod front_figures;
mod front_jail;
mod front_log;
mod front_plan;
mod front_service;
mod front_showing;
mod front_workdir;
mod kept_vcls;
mod log_choice;
mod log_tally;

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use tokio::sync::oneshot;
use varnishd::{CommandLine, Front, ParameterBook, Secret, Served, Task, VclState, VclText};

use crate::check_vcl::{self, Beside};
use crate::say::say;
use crate::signals::{Signals, Told};
use front_doors::Doors;
use front_jail::Jail;
use front_log::FrontLog;
use front_plan::FrontPlan;
use front_service::{FrontService, sentence};
use front_showing::Showing;
use front_workdir::Workdir;

const FAILED: u8 = 2;

/// The words behind `varnishd`, if this is such an invocation.
pub fn words_of(typed: &[OsString]) -> Option<Vec<OsString>> {
    let (program, behind) = typed.split_first()?;
    if Path::new(program).file_name().is_some_and(|name| name == "varnishd") {
        return Some(behind.to_vec());
    }
    let (command, behind) = behind.split_first()?;
    (command == "varnishd").then(|| behind.to_vec())
}

pub fn run(typed: Vec<OsString>) -> ExitCode {
    let words: Result<Vec<String>, OsString> = typed.into_iter().map(OsString::into_string).collect();
    let Ok(words) = words else { return fail("an argument is no UTF-8") };
    let line = match CommandLine::parse(words.clone()) {
        Ok(line) => line,
        Err(misused) => {
            let behind = if misused.shows_usage { usage() } else { "(-? gives usage)\n".to_owned() };
            let _ = write!(std::io::stderr(), "Error: {}\n{behind}", misused.sentence);
            return ExitCode::from(FAILED);
        }
    };
    match &line.task {
        Task::Usage => print(&usage()),
        Task::Version => print(&format!(
            "varnishd (varnish-7.1.1 revision larder-{0})\nlarder {0}: no Varnish, but it does what Varnish 7.1 does with this \
             command line (docs/varnish.md says what not)\n",
            env!("CARGO_PKG_VERSION")
        )),
        Task::Document(what) => document(what),
        Task::Check => check(&line),
        Task::Serve if line.is_debug || line.is_foreground || line.tells_when_ready => match serve(&line, &words) {
            Ok(code) => code,
            Err(sentence) => fail(&sentence),
        },
        Task::Serve => front_daemon::begin(&words).unwrap_or_else(|sentence| fail(&sentence)),
    }
}

fn fail(sentence: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "Error: {sentence}");
    ExitCode::from(FAILED)
}

fn print(text: &str) -> ExitCode {
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

fn usage() -> String {
    "Usage: varnishd [options], as Varnish 7.1 has them (docs/varnish.md)\n\
     \n  -a [NAME=]ADDRESS[:PORT][,HTTP|PROXY|HTTPS]  where clients come in; or a path [,user=U][,group=G][,mode=M]\n  \
     -b ADDRESS[:PORT]|PATH|none            the backend, without a VCL\n  \
     -f FILE                                the VCL; several are loaded as boot0 …, the last one as boot\n  \
     -s [NAME=]malloc,SIZE | file,PATH,SIZE the memory, and files beneath it\n  \
     -T ADDRESS:PORT | none                 the management port\n  \
     -M ADDRESS:PORT                        call there and be managed from there\n  \
     -S FILE | none                         the secret of the management port\n  \
     -n DIR                                 the working directory, which varnishadm -n finds\n  \
     -p NAME=VALUE, -r NAME,…               parameters, and those that may not be changed\n  \
     -t TTL                                 the same as -p default_ttl=TTL\n  \
     -F, -d                                 in the foreground; with the management protocol on standard input\n  \
     -j unix[,user=U] | none                the user that serves\n  \
     -P FILE, -i NAME, -I FILE              pid file, identity, commands to begin with\n  \
     -C, -V, -x WORD, -?                    check the VCL; the version; documentation; this\n\
     \nlarder's own:\n  \
     --admin ADDRESS|off                    the dashboard, /status and /metrics [default: off]\n  \
     --log PATH|-                           an access log [default: off]\n  \
     --cert FILE, --key FILE                what -a with HTTPS shows; repeatable\n"
        .to_owned()
}

fn document(what: &str) -> ExitCode {
    match what {
        "optstring" => print(&format!("{}\n", varnishd::command_line::OPTION_LETTERS)),
        "builtin" => print(vcl::BUILTIN),
        _ => fail(&format!(
            "larder has no documentation of `{what}` built in: docs/varnish.md, docs/vcl.md (-x builtin)"
        )),
    }
}

/// `-C`: there is no C, but there is an answer to whether the VCL is good.
fn check(line: &CommandLine) -> ExitCode {
    let vcl_path: Vec<PathBuf> = line
        .parameters
        .iter()
        .filter(|(name, _)| name == "vcl_path")
        .flat_map(|(_, path)| path.split(':').map(PathBuf::from).collect::<Vec<_>>())
        .collect();
    let result = match (&line.backend, line.vcl_files.last()) {
        (Some(backend), _) => {
            check_vcl::check_text("<-b>", front_plan::vcl_of_backend(backend).into_bytes(), Beside::alone(&vcl_path))
        }
        (None, file) => {
            let found = kept_vcls::found(file.map_or("", String::as_str), &vcl_path);
            check_vcl::load(&found, Beside::alone(&vcl_path))
        }
    };
    let _ = write!(std::io::stderr(), "{}", result.show(std::io::stderr().is_terminal()));
    match result.summary() {
        Some(summary) => print(&format!("/* The VCL is good, and larder makes no C of it: {summary} */\n")),
        None => ExitCode::from(FAILED),
    }
}

/// Serves until somebody ends it. The error is a sentence.
fn serve(line: &CommandLine, words: &[String]) -> Result<ExitCode, String> {
    if line.tells_when_ready && !line.is_jailed {
        front_daemon::leave_session()?;
    }
    let book = ParameterBook::new(&line.parameters, &line.read_only)?;
    let log_bytes = book.bytes_of("vsl_space")?;
    let FrontPlan { plan, listen, storages, notes } = front_plan::plan(line, &book)?;
    let mut workdir = Workdir::make(line.workdir.as_deref())?;
    let secret = secret(line, &workdir)?;
    let written = line.pid_file.as_ref().filter(|_| !line.is_jailed);
    let pid_file = written.map(|path| PidFile::write(path)).transpose()?;
    if let Some(jail) = Jail::of(line)? {
        workdir.folder().map_or(Ok(()), |folder| jail.own(folder))?;
        return Err(jail.enter(words, line, secret.as_ref()));
    }
    line.notes.iter().chain(&notes).for_each(|note| say!("warning: {note}"));
    let mut signals = Signals::listen().map_err(|error| format!("cannot listen for signals: {error}"))?;
    let (finish, mut finished) = oneshot::channel();
    let log = workdir.folder().map(|_| FrontLog::new(&storages, &book)).transpose()?.map(Arc::new);
    let service = Arc::new(FrontService::new(plan, listen, storages, finish, log.clone()));
    if let Some(name) = &line.identity {
        proxy::set_server_identity(name);
    }
    let front = Arc::new(Front::new(Arc::clone(&service) as Arc<dyn Served>, book));
    load(line, &service)?;
    if let Some(file) = &line.cli_file {
        obey_file(file, &front)?;
    }
    workdir.take()?;
    let doors = Doors::open(line, secret)?;
    workdir.publish(doors.management_addresses(), line.secret.as_deref(), line.identity.as_deref())?;
    if !line.is_debug {
        service.begin()?;
    }
    doors.serve(line, front, service.finisher()).map_err(|error| format!("the management port: {error}"))?;
    service.listeners().iter().for_each(|row| match row.port {
        Some(port) if row.host.contains(':') => say!("listening on [{}]:{port} ({})", row.host, row.name),
        Some(port) => say!("listening on {}:{port} ({})", row.host, row.name),
        None => say!("listening on {} ({})", row.host, row.name),
    });
    let shown = workdir.shared_sets().zip(log);
    let figures = shown.map(|(sets, log)| Showing::begin(sets, Arc::clone(&service), (log, log_bytes))).transpose()?;
    if line.tells_when_ready {
        front_daemon::tell_ready()?;
    }
    let code = obey(&mut signals, &mut finished, &service);
    drop(pid_file);
    drop(figures);
    drop(workdir);
    Ok(code)
}

/// What signals ask for, until nothing is left to do.
fn obey(signals: &mut Signals, finished: &mut oneshot::Receiver<()>, service: &FrontService) -> ExitCode {
    let is_told_to_finish = loop {
        match signals.wait(finished, service.looks_every()) {
            // Varnish takes no notice of it either, but for its log.
            Told::Reload => service.reopen_log(),
            Told::Nothing => service.look_around(),
            Told::Ended if service.has_died() => {
                return fail("all workers have ended, and nobody asked for it; the lines above may say why");
            }
            Told::End => break true,
            // The console is gone.
            Told::Ended => break false,
        }
    };
    let Some(mut ended) = service.drain() else { return ExitCode::SUCCESS };
    if !is_told_to_finish {
        service.drain_now();
    }
    let mut signals_heard = 0;
    loop {
        match signals.wait(&mut ended, None) {
            Told::Ended => {
                service.finish();
                return ExitCode::SUCCESS;
            }
            Told::End => {
                signals_heard += 1;
                if signals_heard == 1 {
                    say!("ending at once");
                }
                service.drain_now();
            }
            Told::Reload | Told::Nothing => {}
        }
    }
}

/// The secret of the management port. `None`: nobody is asked for one.
fn secret(line: &CommandLine, workdir: &Workdir) -> Result<Option<Secret>, String> {
    match line.secret.as_deref() {
        Some("none") => Ok(None),
        None if line.management == [None] && line.callers.is_empty() => Ok(None),
        _ if line.is_jailed => front_jail::handed_secret().map(Some),
        Some(path) => front_workdir::read_secret(Path::new(path)).map(Some),
        None => workdir.make_secret().map(Some),
    }
}

fn load(line: &CommandLine, service: &FrontService) -> Result<(), String> {
    let load = |name: &str, text: VclText<'_>| {
        let warnings = service.load(name, text, VclState::Auto).map_err(sentence)?;
        let _ = std::io::stderr().write_all(warnings.as_bytes());
        Ok::<(), String>(())
    };
    if let Some(backend) = &line.backend {
        load("boot", VclText::Inline(front_plan::vcl_of_backend(backend).as_bytes()))?;
        return service.use_vcl("boot").map_err(sentence);
    }
    let files: Vec<&String> = line.vcl_files.iter().filter(|file| !file.is_empty()).collect();
    for (at, file) in files.iter().enumerate() {
        let is_last = at + 1 == files.len();
        let name = if is_last { "boot".to_owned() } else { format!("boot{at}") };
        load(&name, VclText::File(file)).map_err(|why| format!("-f {file}: {why}"))?;
        if is_last {
            service.use_vcl(&name).map_err(sentence)?;
        }
    }
    Ok(())
}

/// `-I`: a command a line; one behind a `-` may fail.
fn obey_file(file: &str, front: &Front) -> Result<(), String> {
    let text = front_workdir::read_limited(Path::new(file), varnishd::limits::CLI_FILE_BYTES_MAX)
        .map_err(|why| format!("-I {file}: {why}"))?;
    for line in text.split(|byte| *byte == b'\n') {
        let (may_fail, command) = match line.trim_ascii_start().strip_prefix(b"-") {
            Some(command) => (true, command),
            None => (false, line),
        };
        let shown = String::from_utf8_lossy(command);
        let words = varnishd::words(command).map_err(|why| format!("-I {file}: {shown}: {why}"))?;
        if words.is_empty() || words[0].starts_with(b"#") {
            continue;
        }
        let answer = front.answer(&words);
        if !answer.is_good() && !may_fail {
            let said = String::from_utf8_lossy(&answer.body);
            return Err(format!("-I {file}: {shown}: {} {}", answer.status, said.trim_end()));
        }
    }
    Ok(())
}

/// `-P`: our number, for as long as we are there.
struct PidFile(PathBuf);

impl PidFile {
    fn write(path: &str) -> Result<PidFile, String> {
        let written = lab::write_whole(Path::new(path), format!("{}\n", std::process::id()).as_bytes());
        written.map_err(|error| format!("-P {path}: {error}"))?;
        Ok(PidFile(PathBuf::from(path)))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = std::fs::remove_file(&self.0);
    }
}
