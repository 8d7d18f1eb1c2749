//! The origins that a forward proxy makes for what is asked of it: one for each host and port, with its connections,
//! names and health, made when it is asked for first and gone when nobody asks any more.

use std::collections::HashMap;
use std::sync::Arc;

use cache::Failure;
use message::{Authority, Scheme};
use parking_lot::Mutex;

use crate::forward::target_gate::TargetGate;
use crate::limits::{
    EJECTION_FAILURES_DEFAULT, EJECTION_TIME_DEFAULT, FORWARD_QUEUE_MAX, FORWARD_QUEUE_TIMEOUT, Limits,
};
use crate::origin::{Origin, Origins};
use crate::settings::{
    BalanceSettings, ForwardSettings, Greeting, OriginSettings, OriginTimeouts, OriginUrl, RetrySettings,
};

/// When there is no room, so large a part of those that rest makes some, so that not every request has to look.
const LEAVING_SHARE: usize = 16;

/// All targets of a configuration.
pub(crate) struct Targets {
    settings: Arc<ForwardSettings>,
    origins: Arc<Origins>,
    targets_max: usize,
    connections_max: usize,
    idle_ms: u64,
    /// Hashed with a random key: clients choose the names.
    table: Mutex<HashMap<HostPort, Target>>,
}

/// Host in its normal form, and port.
type HostPort = (Box<[u8]>, u16);

#[derive(Clone)]
struct Target {
    origin: Arc<Origin>,
    used_ms: u64,
}

impl Target {
    /// Nobody has it but the table: no fetch, no tunnel.
    fn rests(&self) -> bool {
        Arc::strong_count(&self.origin) == 1
    }
}

impl Targets {
    pub(crate) fn new(
        settings: &Arc<ForwardSettings>,
        limits: &Limits,
        origins: &Arc<Origins>,
        inherited: Option<&Targets>,
    ) -> Targets {
        let same = inherited.filter(|former| former.connections_max == limits.forward_target_connections_max);
        Targets {
            settings: Arc::clone(settings),
            origins: Arc::clone(origins),
            targets_max: limits.forward_targets_max,
            connections_max: limits.forward_target_connections_max,
            idle_ms: limits.forward_target_idle.as_millis() as u64,
            table: Mutex::new(same.map(|former| former.table.lock().clone()).unwrap_or_default()),
        }
    }

    /// The origin of this authority.
    pub(crate) fn of(&self, authority: &Authority<'_>, scheme: Scheme, now_ms: u64) -> Result<Arc<Origin>, Failure> {
        let port = authority.port.unwrap_or(scheme.default_port());
        let name = (Box::from(&*authority.host), port);
        let mut table = self.table.lock();
        if let Some(target) = table.get_mut(&name) {
            target.used_ms = now_ms;
            return Ok(Arc::clone(&target.origin));
        }
        if table.len() >= self.targets_max && !make_room(&mut table, self.targets_max) {
            return Err(self.too_many());
        }
        let origin = self.make(&name);
        table.insert(name, Target { origin: Arc::clone(&origin), used_ms: now_ms });
        Ok(origin)
    }

    fn make(&self, (host, port): &HostPort) -> Arc<Origin> {
        let host_text = String::from_utf8_lossy(host).into_owned();
        let name = format!("{host_text}:{port}");
        let origin = origin_settings(name, OriginUrl::Tcp { host: host_text, port: *port }, self.connections_max);
        let gate = TargetGate { settings: Arc::clone(&self.settings), host: host.clone(), port: *port };
        self.origins.of_target(&origin, Arc::new(gate))
    }

    #[cold]
    fn too_many(&self) -> Failure {
        let text = format!("{} destinations are in use (limits.forward_targets_max)", self.targets_max).into();
        Failure { status: 503, token: "forward-targets-too-many", text, remember_ms: 0 }
    }

    /// For the tick of each core: idle connections, names, and on the first core those that nobody asked for in a while.
    pub(crate) fn sweep(&self, core: usize, now_ms: u64) {
        let mut table = self.table.lock();
        if table.is_empty() {
            return;
        }
        if core == 0 {
            table.retain(|_, target| !target.rests() || now_ms < target.used_ms.saturating_add(self.idle_ms));
        }
        let origins: Vec<Arc<Origin>> = table.values().map(|target| Arc::clone(&target.origin)).collect();
        drop(table);
        origins.iter().for_each(|origin| origin.sweep(core, now_ms));
    }

    #[cfg(test)]
    fn count(&self) -> usize {
        self.table.lock().len()
    }
}

/// How a forward proxy asks somebody: a target, or a parent.
pub(super) fn origin_settings(name: String, url: OriginUrl, connections_max: usize) -> OriginSettings {
    OriginSettings {
        name,
        urls: vec![url],
        connections_max,
        queue_max: FORWARD_QUEUE_MAX,
        queue_timeout: FORWARD_QUEUE_TIMEOUT,
        ejection_failures: EJECTION_FAILURES_DEFAULT,
        ejection_time: EJECTION_TIME_DEFAULT,
        balance: BalanceSettings::default(),
        probe: None,
        retries: RetrySettings::default(),
        host: None,
        timeouts: OriginTimeouts::default(),
        greeting: Greeting::default(),
        tls: crate::settings::OriginTls::default(),
        http2: false,
        fastcgi: None,
    }
}

/// Takes out those that were asked for longest ago and rest. False when none does.
fn make_room(table: &mut HashMap<HostPort, Target>, targets_max: usize) -> bool {
    let mut resting: Vec<u64> = table.values().filter(|target| target.rests()).map(|target| target.used_ms).collect();
    if resting.is_empty() {
        return false;
    }
    let leaving = (targets_max / LEAVING_SHARE).clamp(1, resting.len());
    let (_, &mut youngest, _) = resting.select_nth_unstable(leaving - 1);
    let mut left = leaving;
    table.retain(|_, target| {
        let leaves = left > 0 && target.used_ms <= youngest && target.rests();
        left -= usize::from(leaves);
        !leaves
    });
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::tests::settings as settings_of;

    fn targets(targets_max: usize) -> Targets {
        let limits = Limits { forward_targets_max: targets_max, ..Limits::default() };
        let origins = Origins::new(&settings_of(Vec::new()), None);
        Targets::new(&Arc::default(), &limits, &origins, None)
    }

    fn of(targets: &Targets, host: &str, now_ms: u64) -> Result<Arc<Origin>, Failure> {
        targets.of(&Authority::parse(host.as_bytes(), Scheme::Http).unwrap(), Scheme::Http, now_ms)
    }

    #[test]
    fn each_host_and_port_has_one_origin() {
        let targets = targets(10);
        let first = of(&targets, "a.test", 0).unwrap();
        assert!(Arc::ptr_eq(&first, &of(&targets, "A.test.:80", 1).unwrap()));
        assert!(!Arc::ptr_eq(&first, &of(&targets, "a.test:81", 1).unwrap()));
        assert_eq!((&*first.name, targets.count()), ("a.test:80", 2));
    }

    #[test]
    fn one_that_rests_makes_room_for_another() {
        let targets = targets(2);
        let busy = of(&targets, "busy.test", 0).unwrap();
        of(&targets, "idle.test", 1).unwrap();
        let third = of(&targets, "third.test", 2).unwrap();
        assert_eq!(targets.count(), 2);
        assert_eq!(
            of(&targets, "fourth.test", 3).map_err(|failure| failure.token).unwrap_err(),
            "forward-targets-too-many"
        );
        assert!(Arc::ptr_eq(&busy, &of(&targets, "busy.test", 4).unwrap()));
        drop(third);
        assert!(of(&targets, "fourth.test", 5).is_ok());
    }

    #[test]
    fn what_nobody_asks_for_leaves() {
        let targets = targets(10);
        let idle_ms = crate::limits::FORWARD_TARGET_IDLE_DEFAULT.as_millis() as u64;
        let busy = of(&targets, "busy.test", 0).unwrap();
        of(&targets, "idle.test", 0).unwrap();
        targets.sweep(1, idle_ms);
        assert_eq!(targets.count(), 2);
        targets.sweep(0, idle_ms - 1);
        assert_eq!(targets.count(), 2);
        targets.sweep(0, idle_ms);
        assert_eq!(targets.count(), 1);
        assert!(Arc::ptr_eq(&busy, &of(&targets, "busy.test", idle_ms).unwrap()));
    }
}
