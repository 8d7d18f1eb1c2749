//! Where a run's servers are started: their binaries, directories, ports and processors, and the origin behind them.
//!
//! Every start is a cold one: the server's directory is emptied and its configuration written again.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::answer_coding::ContentCoding;
use crate::limits::PORTS_RESTED_MAX;
use crate::matrix::MatrixOrder;
use crate::matrix::direct_asking::Asking;
use crate::matrix::group_keeper::GroupKeeper;
use crate::matrix::lab_file::OriginChoice;
use crate::matrix::matrix_plan::Plan;
use crate::matrix::plain_fetch::fetch;
use crate::matrix::planned_rows::PlannedRow;
use crate::matrix::planned_servers::PlannedServer;
use crate::matrix::process_tree::{CpuAccount, processes_of};
use crate::matrix::profiles::{LAB_ORIGIN, NGINX_ORIGIN, profile};
use crate::matrix::row_protocol::Spoken;
use crate::matrix::run_certificate::RunCertificate;
use crate::matrix::server_process::{ServerProcess, Start, free_port, run_tool};
use crate::matrix::server_profile::{Frontend, Launch, Profile, Role, Site, open_directory};
use crate::results::{MethodUsed, NamedText, RowKind, ServerUsed};

/// One that may take part.
pub(crate) struct Contestant {
    pub(crate) planned: PlannedServer,
    /// None: it is skipped.
    pub(crate) binary: Option<PathBuf>,
    pub(crate) used: ServerUsed,
}

pub(crate) struct Stage {
    pub(crate) method: MethodUsed,
    pub(crate) docroot: PathBuf,
    work: PathBuf,
    open_files: u64,
    dice: fastrand::Rng,
    ports: Vec<u16>,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) origin: Option<Origin>,
    /// What servers show over TLS; there when a row speaks it.
    pub(crate) certificate: Option<RunCertificate>,
    /// What stands behind the gateways: all of a run have the same one.
    memcached: Option<ServerProcess>,
    ours: PathBuf,
    search: Vec<PathBuf>,
    /// Last, because every server that still runs is ended before it.
    keeper: Arc<GroupKeeper>,
}

/// What stands behind the caches, and how many requests it has seen.
pub(crate) struct Origin {
    process: ServerProcess,
    account: CpuAccount,
    choice: OriginChoice,
    mean_bytes: Option<u64>,
    pub(crate) used: ServerUsed,
    /// How often we have asked it for its count.
    looks: u64,
}

const ORIGIN_PATIENCE: Duration = Duration::from_secs(5);

impl Stage {
    pub(crate) fn new(
        work: PathBuf,
        plan: &Plan,
        order: &MatrixOrder,
        open_files: u64,
        stop: &Arc<AtomicBool>,
    ) -> Result<Stage, String> {
        let docroot = work.join("docroot");
        for directory in [&work, &docroot] {
            open_directory(directory)?;
        }
        let speaks_tls = plan.rows.iter().any(|row| row.used.tls);
        Ok(Stage {
            certificate: speaks_tls.then(|| RunCertificate::make(&work)).transpose()?,
            method: plan.method.clone(),
            docroot,
            work,
            open_files,
            dice: fastrand::Rng::with_seed(plan.method.seed ^ u64::from(std::process::id())),
            ports: Vec::new(),
            stop: Arc::clone(stop),
            origin: None,
            memcached: None,
            ours: order.larder.clone(),
            search: order.search.clone(),
            keeper: Arc::new(GroupKeeper::start(&order.larder)?),
        })
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sees that an origin runs whose catalogue has this mean size.
    pub(crate) fn see_to_origin(&mut self, choice: OriginChoice, mean_bytes: Option<u64>) -> Result<(), String> {
        let fits = |origin: &Origin| mean_bytes.is_none() || origin.mean_bytes == mean_bytes;
        if self.origin.as_ref().is_some_and(fits) {
            return Ok(());
        }
        self.origin = None;
        let profile: &'static Profile = match choice {
            OriginChoice::Lab => &LAB_ORIGIN,
            OriginChoice::Nginx => &NGINX_ORIGIN,
        };
        let mut planned = PlannedServer::plain("origin", profile);
        if let (OriginChoice::Lab, Some(mean)) = (choice, mean_bytes) {
            planned.args = vec!["--mean-bytes".to_owned(), mean.to_string()];
        }
        let binary = planned.find_binary(&self.ours, &self.search).map_err(|why| format!("the origin: {why}"))?;
        let used = planned.used(&binary, &self.work);
        let mut origin = Contestant { used, binary: Some(binary), planned };
        let cpus = self.method.client_cpus.clone();
        let process = self.start_on(&mut origin, StartFor::UNMEASURED, &cpus)?;
        self.origin =
            Some(Origin { process, account: CpuAccount::default(), choice, mean_bytes, used: origin.used, looks: 0 });
        Ok(())
    }

    pub(crate) fn origin_address(&self) -> Option<SocketAddr> {
        self.origin.as_ref().map(|origin| origin.process.address)
    }

    /// Of the memcached behind the gateways, which is started when the first of them asks. It shares their processors:
    /// it is a part of what they answer with, as it is all of what a native client is answered with.
    pub(crate) fn memcached_address(&mut self) -> Result<SocketAddr, String> {
        if let Some(running) = self.memcached.as_mut() {
            // Another one would have another port, which no gateway that runs knows of.
            let is_gone = running.has_died(true);
            return if is_gone {
                Err("the memcached behind the gateways has ended".to_owned())
            } else {
                Ok(running.address)
            };
        }
        let profile = profile("memcached").expect("it is among the profiles");
        let planned = PlannedServer::plain("memcached-behind", profile);
        let binary = planned.find_binary(&self.ours, &self.search).map_err(|why| format!("behind it: {why}"))?;
        let mut behind = Contestant { used: planned.skipped(None), binary: Some(binary), planned };
        let cpus = self.method.server_cpus.clone();
        let started = self.start_on(&mut behind, StartFor::UNMEASURED, &cpus)?;
        Ok(self.memcached.insert(started).address)
    }

    pub(crate) fn origin_used(&self) -> Option<ServerUsed> {
        self.origin.as_ref().map(|origin| origin.used.clone())
    }

    /// Starts a server for a row, in an empty directory.
    pub(crate) fn start(&mut self, contestant: &mut Contestant, row: &PlannedRow) -> Result<ServerProcess, String> {
        let cpus = self.method.server_cpus.clone();
        if contestant.planned.profile.role == Role::Gateway {
            self.memcached_address()?;
        }
        self.start_on(contestant, StartFor::of(row), &cpus)
    }

    /// A server that nobody has named: the ceiling.
    pub(crate) fn null(&self) -> Contestant {
        let planned = PlannedServer::plain("ceiling", profile("null").expect("it is among the profiles"));
        Contestant { used: planned.skipped(None), binary: Some(self.ours.clone()), planned }
    }

    fn start_on(
        &mut self,
        contestant: &mut Contestant,
        turn: StartFor<'_>,
        cpus: &[usize],
    ) -> Result<ServerProcess, String> {
        let behind = self.start_behind(contestant, turn, cpus)?;
        let planned = &contestant.planned;
        let name = planned.name.as_str();
        let binary = contestant.binary.as_ref().ok_or_else(|| format!("{name} is skipped"))?;
        let dir = self.work.join(name);
        if dir.exists() {
            fs::remove_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        }
        open_directory(&dir)?;
        let port = self.port_for(planned)?;
        let origin = behind.as_ref().map_or_else(|| self.origin_of(planned.profile.role), |behind| behind.address);
        let row = turn.row;
        let site = Site {
            dir: &dir,
            docroot: &self.docroot,
            port,
            origin,
            front: Frontend {
                tls: self.certificate.as_ref().filter(|_| turn.spoken.tls).map(|made| &made.files),
                http2: turn.spoken.http2,
            },
            workers: planned.workers.unwrap_or(cpus.len()),
            open_files: self.open_files,
            passes: row.is_some_and(|row| row.used.kind == RowKind::Pass),
            size_bytes: row.and_then(|row| row.used.size_bytes.or(row.mean_bytes())),
            encoding: row.and_then(|row| row.encoding),
            options: &planned.options,
            defaults: planned.profile.options,
        };
        let launch = (planned.profile.launch)(&site).map_err(|what| format!("{name}: {what}"))?;
        for tool in &launch.before {
            run_tool(tool, &dir).map_err(|what| format!("{name}: {what}"))?;
        }
        let mut command = vec![binary.to_string_lossy().into_owned()];
        command.extend(launch.arguments.clone());
        command.extend(planned.args.iter().map(|argument| site.filled_in(argument)));
        let start = Start {
            name,
            command: &command,
            environment: &planned.environment,
            address: site.address(),
            dir: &dir,
            logs: &launch.logs,
            cpus,
            stop: &self.stop,
            keeper: Some(&self.keeper),
        };
        let started = ServerProcess::start(&start);
        contestant.note_start(&command, launch, turn.manner());
        Ok(started?.standing_before(behind))
    }

    /// What stands behind a server and is a part of it: started first, and asked in the clear.
    fn start_behind(
        &mut self,
        front: &mut Contestant,
        turn: StartFor<'_>,
        cpus: &[usize],
    ) -> Result<Option<ServerProcess>, String> {
        let Some(planned) = front.planned.behind() else { return Ok(None) };
        let binary = planned.find_binary(&self.ours, &self.search)?;
        let used = front.used.behind.take().map_or_else(|| planned.used(&binary, &self.work), |used| *used);
        let mut behind = Contestant { used, binary: Some(binary), planned };
        let spoken = Spoken { tls: false, ..turn.spoken };
        let started = self.start_on(&mut behind, StartFor { spoken, ..turn }, cpus);
        front.used.behind = Some(Box::new(behind.used));
        started.map(Some)
    }

    /// That of the lab file, or a free one that nobody had for long.
    fn port_for(&mut self, planned: &PlannedServer) -> Result<u16, String> {
        let port = match planned.port {
            Some(port) => port,
            None => free_port(&mut self.dice, &self.ports)?,
        };
        self.ports.retain(|used| *used != port);
        self.ports.push(port);
        if self.ports.len() > PORTS_RESTED_MAX {
            self.ports.remove(0);
        }
        Ok(port)
    }

    fn origin_of(&self, role: Role) -> SocketAddr {
        let origin = match role {
            Role::Gateway => self.memcached.as_ref().map(|behind| behind.address),
            _ => self.origin.as_ref().map(|origin| origin.process.address),
        };
        origin.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 9)))
    }
}

/// For what a server is started.
#[derive(Clone, Copy)]
struct StartFor<'a> {
    /// None: it is not measured.
    row: Option<&'a PlannedRow>,
    spoken: Spoken,
}

impl<'a> StartFor<'a> {
    const UNMEASURED: StartFor<'static> = StartFor { row: None, spoken: Spoken::CLEAR };

    fn of(row: &'a PlannedRow) -> StartFor<'a> {
        StartFor { row: Some(row), spoken: Spoken::of(&row.used) }
    }

    /// What sets it apart from the plain start, as a name in brackets.
    fn manner(&self) -> Option<String> {
        let spoken = (self.spoken != Spoken::CLEAR).then(|| self.spoken.in_few_words());
        let coding = self.row.and_then(|row| row.encoding).map(ContentCoding::name);
        let words: Vec<&str> = spoken.into_iter().chain(coding).collect();
        (!words.is_empty()).then(|| words.join(", "))
    }
}

impl Site<'_> {
    /// `{dir}`, `{port}`, `{origin}` and `{docroot}` in an argument of the lab file.
    fn filled_in(&self, argument: &str) -> String {
        [
            ("{dir}", self.dir.to_string_lossy().into_owned()),
            ("{port}", self.port.to_string()),
            ("{origin}", self.origin.to_string()),
            ("{docroot}", self.docroot.to_string_lossy().into_owned()),
        ]
        .iter()
        .fold(argument.to_owned(), |text, (name, value)| text.replace(name, value))
    }
}

impl Origin {
    /// Requests of others that it has seen so far.
    pub(crate) fn requests(&mut self) -> Option<u64> {
        let got = fetch(&Asking::clear(self.process.address, ORIGIN_PATIENCE), "/lab-requests", &[]).ok()?;
        self.looks += 1;
        let text = String::from_utf8_lossy(&got.body).into_owned();
        match self.choice {
            OriginChoice::Lab => text.trim().parse().ok(),
            // Accepted, handled, requests; our own looks are among them.
            OriginChoice::Nginx => {
                let line = text.lines().nth(2)?;
                line.split_whitespace().nth(2)?.parse().ok().map(|all: u64| all.saturating_sub(self.looks))
            }
        }
    }

    /// Nanoseconds of processor time so far.
    pub(crate) fn cpu_nanos(&mut self) -> u64 {
        self.account.read(&processes_of(&self.process.roots()))
    }
}

impl Contestant {
    pub(crate) fn is_cache(&self) -> bool {
        matches!(self.planned.profile.role, Role::Cache | Role::Forward)
    }

    /// How it was started: the same again takes the place of the last time; what is spoken otherwise stands beside it.
    fn note_start(&mut self, command: &[String], launch: Launch, manner: Option<String>) {
        // As a shell would be told.
        let environment = self.planned.environment.iter().map(|(name, value)| format!("{name}={value}"));
        let words: Vec<String> = environment.chain(command.iter().cloned()).collect();
        let mut texts = launch.configs;
        if let Some(manner) = manner {
            texts.push(NamedText { name: "command".to_owned(), text: words.join(" ") });
            texts.iter_mut().for_each(|text| text.name = format!("{} ({manner})", text.name));
        } else {
            self.used.command.clone_from(&words);
        }
        if self.used.command.is_empty() {
            self.used.command = words;
        }
        for text in texts {
            match self.used.configs.iter_mut().find(|known| known.name == text.name) {
                Some(known) => *known = text,
                None => self.used.configs.push(text),
            }
        }
    }

    /// Why it does not take part in a row.
    pub(crate) fn absence(&self, row: &PlannedRow) -> Option<String> {
        // The second copy goes where the first one goes.
        let name = self.planned.twin_of.as_ref().unwrap_or(&self.planned.name);
        let is_asked = row.only.is_empty() || row.only.contains(name);
        match &self.used.skipped {
            Some(why) => Some(why.clone()),
            None if !is_asked => Some("not asked for in this row".to_owned()),
            None => self.planned.profile.refusal(row),
        }
    }
}
