//! Where a run's servers are started: their binaries, directories, ports and processors, and the origin behind them.
//!
//! Every start is a cold one: the server's directory is emptied and its configuration written again.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::limits::PORTS_RESTED_MAX;
use crate::matrix::MatrixOrder;
use crate::matrix::group_keeper::GroupKeeper;
use crate::matrix::lab_file::OriginChoice;
use crate::matrix::matrix_plan::Plan;
use crate::matrix::plain_fetch::fetch;
use crate::matrix::planned_rows::PlannedRow;
use crate::matrix::planned_servers::PlannedServer;
use crate::matrix::process_tree::{CpuAccount, processes_of};
use crate::matrix::profiles::{LAB_ORIGIN, NGINX_ORIGIN, Profile, Role, Site, open_directory, profile};
use crate::matrix::server_process::{ServerProcess, Start, free_port, run_tool};
use crate::results::{MethodUsed, RowKind, ServerUsed};

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
        Ok(Stage {
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
        let process = self.start_on(&mut origin, None, &cpus)?;
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
        let started = self.start_on(&mut behind, None, &cpus)?;
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
        self.start_on(contestant, Some(row), &cpus)
    }

    /// A server that nobody has named: the ceiling.
    pub(crate) fn null(&self) -> Contestant {
        let planned = PlannedServer::plain("ceiling", profile("null").expect("it is among the profiles"));
        Contestant { used: planned.skipped(None), binary: Some(self.ours.clone()), planned }
    }

    fn start_on(
        &mut self,
        contestant: &mut Contestant,
        row: Option<&PlannedRow>,
        cpus: &[usize],
    ) -> Result<ServerProcess, String> {
        let planned = &contestant.planned;
        let name = planned.name.as_str();
        let binary = contestant.binary.as_ref().ok_or_else(|| format!("{name} is skipped"))?;
        let dir = self.work.join(name);
        if dir.exists() {
            fs::remove_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        }
        open_directory(&dir)?;
        let port = match planned.port {
            Some(port) => port,
            None => free_port(&mut self.dice, &self.ports)?,
        };
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
        let origin = match planned.profile.role {
            Role::Gateway => self.memcached.as_ref().map(|behind| behind.address),
            _ => self.origin.as_ref().map(|origin| origin.process.address),
        };
        let origin = origin.unwrap_or(nowhere);
        let site = Site {
            dir: &dir,
            docroot: &self.docroot,
            port,
            origin,
            workers: planned.workers.unwrap_or(cpus.len()),
            open_files: self.open_files,
            passes: row.is_some_and(|row| row.used.kind == RowKind::Pass),
            size_bytes: row.and_then(|row| row.used.size_bytes.or(row.mean_bytes())),
            options: &planned.options,
            defaults: planned.profile.options,
        };
        let launch = (planned.profile.launch)(&site).map_err(|what| format!("{name}: {what}"))?;
        for tool in &launch.before {
            run_tool(tool, &dir).map_err(|what| format!("{name}: {what}"))?;
        }
        let mut command = vec![binary.to_string_lossy().into_owned()];
        command.extend(launch.arguments);
        command.extend(planned.args.iter().map(|argument| site.filled_in(argument)));
        // As a shell would be told.
        let words = planned.environment.iter().map(|(name, value)| format!("{name}={value}")).chain(command.clone());
        contestant.used.command = words.collect();
        contestant.used.configs = launch.configs;
        self.ports.retain(|used| *used != port);
        self.ports.push(port);
        if self.ports.len() > PORTS_RESTED_MAX {
            self.ports.remove(0);
        }
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
        ServerProcess::start(&start)
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
        let got = fetch(self.process.address, "/lab-requests", &[], ORIGIN_PATIENCE).ok()?;
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
        self.account.read(&processes_of(self.process.pid()))
    }
}

impl Contestant {
    pub(crate) fn is_cache(&self) -> bool {
        matches!(self.planned.profile.role, Role::Cache | Role::Forward)
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
