//! Looks names up: the operator's fixed answers, then the hosts file, then name servers. It has one thread with a
//! runtime of its own, made when the first name is asked for: origins given by address never need it, and no core's
//! runtime carries another's sockets. It remembers nothing; time to live is the asker's business.

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::RData;
use tokio::sync::mpsc;

use super::limits::{
    HOSTS_FILE_BYTES_MAX, HOSTS_FILE_TTL_MS, QUESTION_ROUNDS_MAX, QUESTION_TIMEOUT, SERVICE_RECORDS_MAX, TTL_MAX_MS,
};
use super::origin_names::NameAnswer;
use super::service_name::{self, FoundAddress, ServicePart};
use crate::clock::Moment;
use crate::settings::ResolverSettings;
use crate::vital::vital_thread;

const HOSTS_FILE: &str = "/etc/hosts";

/// The answer, and how many milliseconds it took.
pub type OnNameAnswer = Box<dyn FnOnce(Result<NameAnswer, Arc<str>>, u64) + Send>;

#[derive(Debug)]
pub struct Resolver {
    settings: ResolverSettings,
    asker: OnceLock<Option<mpsc::UnboundedSender<NameQuery>>>,
}

struct NameQuery {
    host: Arc<str>,
    reply: OnNameAnswer,
}

impl std::fmt::Debug for NameQuery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NameQuery").field("host", &self.host).finish_non_exhaustive()
    }
}

impl Resolver {
    pub fn new(settings: ResolverSettings) -> Resolver {
        Resolver { settings, asker: OnceLock::new() }
    }

    /// Asks for a host's addresses. The reply is called once, on the resolver's thread. What waits here is bounded by
    /// the askers: each name of each origin has at most one question open.
    pub fn ask(&self, host: Arc<str>, reply: OnNameAnswer) {
        let asker = self.asker.get_or_init(|| start(self.settings.clone()));
        let asked = NameQuery { host, reply };
        let refused = match asker {
            Some(asker) => asker.send(asked).err().map(|refused| refused.0),
            None => Some(asked),
        };
        if let Some(asked) = refused {
            (asked.reply)(Err("the resolver's thread did not start".into()), 0);
        }
    }
}

fn start(settings: ResolverSettings) -> Option<mpsc::UnboundedSender<NameQuery>> {
    let (asker, asked) = mpsc::unbounded_channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let answer = move || runtime.block_on(answer_all(settings, asked));
    vital_thread("larder-resolver", "what looks up names", answer).ok()?;
    Some(asker)
}

/// Ends when the last asker is gone, that is, after a reload.
async fn answer_all(settings: ResolverSettings, mut asked: mpsc::UnboundedReceiver<NameQuery>) {
    let settings = Arc::new(settings);
    let mut servers = None;
    while let Some(NameQuery { host, reply }) = asked.recv().await {
        let began = Moment::now();
        let took_ms = move || began.micros_until(Moment::now()) / 1_000;
        let is_service = service_name::domain_of(&host).is_some();
        if !is_service && let Some(answer) = answer_locally(&settings, &host, Path::new(HOSTS_FILE)) {
            reply(Ok(answer), took_ms());
            continue;
        }
        let built = match &servers {
            Some(built) => Ok(TokioResolver::clone(built)),
            None => name_servers(&settings),
        };
        match built {
            Err(why) => reply(Err(why), took_ms()),
            Ok(built) => {
                servers = Some(built.clone());
                let settings = Arc::clone(&settings);
                tokio::spawn(async move {
                    let answer = match is_service {
                        true => answer_of_service(&settings, &built, &host).await,
                        false => answer_from_servers(&built, &host).await,
                    };
                    reply(answer, took_ms());
                });
            }
        }
    }
}

/// What needs no name server: the settings, the hosts file, and `localhost` (RFC 6761 §6.3).
fn answer_locally(settings: &ResolverSettings, host: &str, hosts_file: &Path) -> Option<NameAnswer> {
    let host = host.strip_suffix('.').unwrap_or(host);
    if let Some((_, addresses)) = settings.hosts.iter().find(|(name, _)| name.eq_ignore_ascii_case(host)) {
        return Some(NameAnswer { addresses: found(addresses), ttl_ms: TTL_MAX_MS });
    }
    let addresses = addresses_in_hosts_file(hosts_file, host);
    if !addresses.is_empty() {
        return Some(NameAnswer { addresses: found(&addresses), ttl_ms: HOSTS_FILE_TTL_MS });
    }
    let last_label = host.rsplit('.').next().unwrap_or(host);
    last_label.eq_ignore_ascii_case("localhost").then(|| NameAnswer {
        addresses: found(&[Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]),
        ttl_ms: HOSTS_FILE_TTL_MS,
    })
}

/// hosts(5): an address, then its names; `#` begins a comment. Read anew each time, so an edit needs no reload.
fn addresses_in_hosts_file(path: &Path, host: &str) -> Vec<IpAddr> {
    let mut text = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(HOSTS_FILE_BYTES_MAX).read_to_end(&mut text));
    if read.is_err() {
        return Vec::new();
    }
    let text = String::from_utf8_lossy(&text);
    let address_of = |line: &str| {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_ascii_whitespace();
        let address = words.next()?.parse::<IpAddr>().ok()?;
        words.any(|name| name.eq_ignore_ascii_case(host)).then_some(address)
    };
    text.lines().filter_map(address_of).collect()
}

fn name_servers(settings: &ResolverSettings) -> Result<TokioResolver, Arc<str>> {
    let mut builder = if settings.servers.is_empty() {
        TokioResolver::builder_tokio().map_err(|e| Arc::from(format!("no name servers: {e}")))?
    } else {
        let server = |address: &std::net::SocketAddr| {
            let mut server = NameServerConfig::udp_and_tcp(address.ip());
            server.connections.iter_mut().for_each(|connection| connection.port = address.port());
            server
        };
        let servers = settings.servers.iter().map(server).collect();
        let config = ResolverConfig::from_parts(None, Vec::new(), servers);
        TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
    };
    let options = builder.options_mut();
    options.cache_size = 0;
    options.use_hosts_file = ResolveHosts::Never;
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    options.timeout = QUESTION_TIMEOUT;
    options.attempts = QUESTION_ROUNDS_MAX;
    builder.build().map_err(|e| Arc::from(e.to_string()))
}

async fn answer_from_servers(servers: &TokioResolver, host: &str) -> Result<NameAnswer, Arc<str>> {
    match servers.lookup_ip(host).await {
        Ok(found) => {
            let ttl_s = found.as_lookup().answers().iter().map(|record| record.ttl).min().unwrap_or(0);
            Ok(NameAnswer {
                addresses: found.iter().map(FoundAddress::from).collect(),
                ttl_ms: u64::from(ttl_s) * 1_000,
            })
        }
        Err(e) => Err(unanswered(&e)),
    }
}

fn unanswered(error: &NetError) -> Arc<str> {
    if error.is_nx_domain() { "no such name".into() } else { error.to_string().into() }
}

fn found(addresses: &[IpAddr]) -> Vec<FoundAddress> {
    addresses.iter().copied().map(FoundAddress::from).collect()
}

/// RFC 2782: the records of the service, then the addresses of each of their targets, from wherever names of hosts are known. One that is not
/// known is left out, unless none is.
async fn answer_of_service(
    settings: &ResolverSettings,
    servers: &TokioResolver,
    service: &str,
) -> Result<NameAnswer, Arc<str>> {
    let lookup = servers.srv_lookup(service).await.map_err(|e| unanswered(&e))?;
    let records = lookup.answers().iter().filter_map(|record| match &record.data {
        RData::SRV(srv) => Some((srv, record.ttl)),
        _ => None,
    });
    let mut records: Vec<_> = records.collect();
    records.sort_by_key(|(srv, _)| srv.priority);
    records.truncate(SERVICE_RECORDS_MAX);
    let best = records.first().map(|(srv, _)| srv.priority);
    let (mut answer, mut why) = (NameAnswer { addresses: Vec::new(), ttl_ms: u64::MAX }, "it has no server".into());
    for (srv, ttl_s) in records {
        let target = srv.target.to_string();
        // RFC 2782: "." says that there is no such service here.
        if target == "." {
            continue;
        }
        let known = match answer_locally(settings, &target, Path::new(HOSTS_FILE)) {
            Some(known) => Ok(known),
            None => answer_from_servers(servers, &target).await,
        };
        match known {
            Ok(known) => {
                let part = ServicePart { port: srv.port, weight: srv.weight, is_backup: Some(srv.priority) != best };
                let with_part = |found: FoundAddress| FoundAddress { service: Some(part), ..found };
                answer.addresses.extend(known.addresses.into_iter().map(with_part));
                answer.ttl_ms = answer.ttl_ms.min(known.ttl_ms).min(u64::from(ttl_s) * 1_000);
            }
            Err(of_target) => why = of_target,
        }
    }
    if answer.addresses.is_empty() { Err(why) } else { Ok(answer) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTS: &str = "127.0.0.1 localhost\n# 10.9.9.9 shop.test\n10.0.0.1\tshop.test  SHOP # first\nnonsense shop.test\n\
                         fd00::1 shop.test\n10.0.0.2 shop.test.example\n";

    fn check(host: &str, expect: &[&str]) {
        let settings = ResolverSettings {
            servers: Vec::new(),
            hosts: vec![("fixed.test".into(), vec!["10.1.1.1".parse().unwrap()])],
        };
        let file = std::env::temp_dir().join(format!("larder-hosts-{}-{host}", std::process::id()));
        std::fs::write(&file, HOSTS).unwrap();
        let answer = answer_locally(&settings, host, &file);
        std::fs::remove_file(&file).unwrap();
        let addresses =
            answer.map(|answer| answer.addresses.iter().map(|found| found.ip.to_string()).collect::<Vec<_>>());
        assert_eq!(addresses.unwrap_or_default(), expect, "{host}");
    }

    #[test]
    fn settings_come_before_the_hosts_file_and_that_before_servers() {
        check("fixed.test", &["10.1.1.1"]);
        check("FIXED.test.", &["10.1.1.1"]);
        check("shop.test", &["10.0.0.1", "fd00::1"]);
        check("shop", &["10.0.0.1"]);
        check("localhost", &["127.0.0.1"]);
        check("a.localhost", &["127.0.0.1", "::1"]);
        check("nobody.test", &[]);
    }
}
