//! `larder import httpd.conf`: the hosts of an Apache in, a larder.toml out that answers the same requests by the same files and origins, and
//! a list of what could not be carried over. It is closed by construction: there is a list of words that are understood, and of some that
//! change nothing of who may read what; any other closes the container in which it stands, or the whole host.
//!
//! Files are read by `apache_conf.rs`; what one host says is in `apache_scope.rs`, with its sections in `apache_sections.rs`; its routes are
//! made by `apache_regions.rs`. Here is which hosts are carried over, and who is answered by which.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use crate::import::apache_conf::{self, ApacheConf, is_undecided, name_of};
use crate::import::apache_listens::{HostAddress, is_covered, names, only_listens, server_name};
use crate::import::apache_paths::UNUSUAL;
use crate::import::apache_regions::HostRegions;
use crate::import::apache_scope::{ApacheScope, ScopeReading};
use crate::import::import_findings::{self, Findings, literal, quoted};
use crate::import::import_flags::ImportFlags;
use crate::import::imported_toml::{ImportedToml, Route};
use crate::import::nginx_conf::{Directive, Place};
use crate::import::nginx_order::Matcher;
use crate::import::nginx_upstream::Origins;

pub fn import(flags: &ImportFlags) -> ExitCode {
    let done = apache_conf::read(&flags.file, flags.prefix.as_deref()).and_then(|conf| {
        let mut import = ApacheImport::default();
        import.carry(&conf, &flags.file)?;
        let text = import.made.text(&import.origins, &flags.file);
        Ok((import.findings, text))
    });
    import_findings::finish(flags, done)
}

#[derive(Default)]
struct ApacheImport {
    findings: Findings,
    made: ImportedToml,
    origins: Origins,
}

/// A `<VirtualHost>`, or all of a file that has none.
struct ReadHost {
    at: Directive,
    /// `None`: one of them is a name.
    addresses: Option<Vec<HostAddress>>,
    scope: ApacheScope,
}

impl ReadHost {
    fn is_at(&self, port: u16) -> bool {
        self.addresses.as_ref().is_none_or(|all| all.iter().any(|address| address.port.is_none_or(|own| own == port)))
    }

    fn ports(&self) -> Vec<u16> {
        self.addresses.iter().flatten().filter_map(|address| address.port).collect()
    }
}

/// Where larder listens for the hosts that are carried over.
struct ServedPort {
    port: u16,
    at: Vec<HostAddress>,
    is_tls: bool,
    /// One of them is for some addresses alone: nobody can tell who is asked.
    is_unclear: bool,
}

impl ApacheImport {
    fn carry(&mut self, conf: &ApacheConf, file: &Path) -> Result<(), String> {
        let of_file = Directive {
            name: file.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            arguments: Vec::new(),
            block: None,
            place: Place { file: file.to_owned(), line: 1 },
        };
        let (mut listens, mut hosts, mut others) = (Vec::new(), Vec::new(), Vec::new());
        let mut says_where = false;
        for directive in &conf.directives {
            match name_of(directive).as_str() {
                "listen" => {
                    says_where = true;
                    listens.push(directive.clone());
                }
                "<virtualhost" => hosts.push(directive.clone()),
                _ if is_undecided(directive) && only_listens(directive) => {
                    says_where = true;
                    self.findings.note(directive, "nobody listens there: nobody knows here whether this holds");
                }
                _ => others.push(directive.clone()),
            }
        }
        let mut all = ScopeReading::new(false, &conf.home, &mut self.findings).read(&of_file, &others);
        for absent in &conf.absent {
            self.findings.leave(absent, "closed: there is no such file here, and it may say who may read what");
            all.is_closed = true;
        }
        if !conf.is_whole {
            self.findings.note(
                &of_file,
                "it loads no module: what another file says around it is not known here, and holds no longer",
            );
        }
        let hosts = self.hosts(&hosts, &mut all, &of_file, conf);
        let written = listens;
        let listens = self.listens(&written);
        // Hosts say at which address they are meant, and not that somebody listens there.
        if says_where && listens.is_empty() {
            return Err("none of its Listen lines says an address at which larder could listen".to_owned());
        }
        let served =
            self.served(&listens, &hosts).ok_or("no Listen and no <VirtualHost ADDRESS:PORT> says where to listen")?;
        for listen in &written {
            let port = HostAddress::of_listen(listen).and_then(|address| address.port);
            if port.is_some_and(|port| port != served.port && !(served.is_tls && port == 80)) {
                self.findings.leave(
                    listen,
                    "nobody listens: hosts of another port are carried over, and routes know no listeners",
                );
            }
        }
        let kept: Vec<&ReadHost> = hosts.iter().filter(|host| host.is_at(served.port)).collect();
        for host in hosts.iter().filter(|host| !host.is_at(served.port)) {
            let is_led = served.is_tls && !host.scope.has_tls && host.is_at(80);
            let why = match is_led {
                true => "left out: in the clear all are led to https://",
                false => "left out: it listens elsewhere than the others, and routes know no listeners",
            };
            match is_led && host.scope.leads_to_tls {
                true => self.findings.note(&host.at, why),
                false => self.findings.leave(&host.at, why),
            }
        }
        self.listeners(&served, &kept, &listens, &hosts)?;
        let is_closed = all.is_closed || served.is_unclear;
        self.answer(&all, &kept, is_closed);
        Ok(())
    }

    fn hosts(
        &mut self,
        hosts: &[Directive],
        all: &mut ApacheScope,
        of_file: &Directive,
        conf: &ApacheConf,
    ) -> Vec<ReadHost> {
        if hosts.is_empty() {
            // What is said for all is said for one.
            let is_closed = all.is_closed;
            let scope = std::mem::take(all);
            all.is_closed = is_closed;
            let any = HostAddress { host: None, port: None };
            return vec![ReadHost { at: of_file.clone(), addresses: Some(vec![any]), scope }];
        }
        let mut read = Vec::new();
        for at in hosts {
            let head = Directive { block: None, ..at.clone() };
            let addresses = at.arguments.iter().map(|written| HostAddress::read(written)).collect::<Option<Vec<_>>>();
            let addresses = addresses.filter(|addresses| !addresses.is_empty());
            let scope = ScopeReading::new(true, &conf.home, &mut self.findings).read(&head, at.children());
            if scope.is_closed {
                self.findings.leave(&head, "closed, for all paths of its names");
            }
            read.push(ReadHost { at: head, addresses, scope });
        }
        read
    }

    fn listens(&mut self, listens: &[Directive]) -> Vec<HostAddress> {
        let mut all = Vec::new();
        for listen in listens {
            match HostAddress::of_listen(listen) {
                Some(address) => all.push(address),
                None => self.findings.leave(listen, "nobody listens: larder listens at IP:PORT or *:PORT"),
            }
        }
        all
    }

    /// The port whose hosts are carried over: that of TLS, if there is one.
    fn served(&mut self, listens: &[HostAddress], hosts: &[ReadHost]) -> Option<ServedPort> {
        let is_listened = |port: &u16| listens.is_empty() || listens.iter().any(|address| address.port == Some(*port));
        let is_tls = hosts.iter().any(|host| host.scope.has_tls && host.ports().iter().any(is_listened));
        let usual = if is_tls { 443 } else { 80 };
        let of_kind: Vec<&ReadHost> = hosts.iter().filter(|host| host.scope.has_tls == is_tls).collect();
        let named: Vec<u16> = of_kind.iter().flat_map(|host| host.ports()).filter(is_listened).collect();
        let any: Vec<u16> = listens.iter().filter_map(|address| address.port).collect();
        let ports = if named.is_empty() { any } else { named };
        let port = ports.iter().find(|port| **port == usual).or(ports.first()).copied()?;
        let is_its = |address: &&HostAddress| address.port.is_none_or(|own| own == port);
        let kept: Vec<&ReadHost> = hosts.iter().filter(|host| host.is_at(port)).collect();
        let places: BTreeSet<Option<std::net::IpAddr>> = kept
            .iter()
            .flat_map(|host| host.addresses.iter().flatten().filter(is_its))
            .map(|address| address.host)
            .collect();
        let has_names = hosts.iter().any(|host| host.addresses.is_none());
        let is_mixed = kept.iter().any(|host| host.scope.has_tls != is_tls);
        // One that names the port comes before those that name none.
        let mut kinds = kept.iter().flat_map(|host| host.addresses.iter().flatten().filter(is_its));
        let names_port = kinds.next().map(|address| address.port.is_some());
        let is_uneven = kinds.any(|address| Some(address.port.is_some()) != names_port);
        let is_unclear = is_uneven || places.len() > 1 || has_names || is_mixed;
        if is_unclear {
            for host in &kept {
                self.findings.leave(
                    &host.at,
                    "closed: hosts of one port at several addresses, by name, with and without the port, or with TLS and without",
                );
            }
        }
        let mut at: Vec<HostAddress> = listens.iter().filter(|address| address.port == Some(port)).cloned().collect();
        if at.is_empty() {
            at = places.iter().map(|host| HostAddress { host: *host, port: Some(port) }).collect();
        }
        // What listens at all addresses answers at the one alone that has hosts.
        if let (1, Some(Some(host))) = (places.len(), places.first()) {
            let is_heard = at.iter().any(|address| address.host.is_none_or(|own| own == *host));
            at = if is_heard { vec![HostAddress { host: Some(*host), port: Some(port) }] } else { Vec::new() };
        }
        Some(ServedPort { port, at, is_tls, is_unclear })
    }

    /// An error: nobody would listen, and larder would where it does by itself.
    fn listeners(
        &mut self,
        served: &ServedPort,
        kept: &[&ReadHost],
        listens: &[HostAddress],
        hosts: &[ReadHost],
    ) -> Result<(), String> {
        let addresses: BTreeSet<String> = served.at.iter().map(|address| address.text(served.port)).collect();
        if served.is_tls {
            let plain: BTreeSet<String> = match listens.is_empty() {
                true => {
                    let plain = hosts.iter().filter(|host| !host.scope.has_tls);
                    plain.flat_map(|host| host.addresses.iter().flatten()).map(|address| address.text(80)).collect()
                }
                false => {
                    listens.iter().filter(|address| address.port == Some(80)).map(|address| address.text(80)).collect()
                }
            };
            // One for all addresses is enough.
            let all = "*:80".to_owned();
            let plain = if plain.contains(&all) { [all].into() } else { plain };
            self.made
                .listeners
                .extend(plain.iter().map(|address| format!("address = {}\nmode = \"redirect\"", quoted(address))));
            self.tls_listeners(&addresses, kept);
        } else {
            self.made.listeners.extend(addresses.iter().map(|address| format!("address = {}", quoted(address))));
        }
        match self.made.listeners.is_empty() {
            true => {
                Err("nobody would listen: its certificates are not here, or no host is at an address of Listen"
                    .to_owned())
            }
            false => Ok(()),
        }
    }

    fn tls_listeners(&mut self, addresses: &BTreeSet<String>, kept: &[&ReadHost]) {
        let (mut files, mut keys) = (Vec::new(), Vec::new());
        for host in kept {
            let Some(file) = &host.scope.certificate else {
                self.findings.leave(&host.at, "no SSLCertificateFile: nobody is shown a certificate of its names");
                continue;
            };
            let key = host.scope.key.as_ref().unwrap_or(file);
            if std::fs::File::open(file).is_err() || std::fs::File::open(key).is_err() {
                self.findings.leave(&host.at, "its certificate is not here: write tls = { cert, key } of [[listen]]");
                continue;
            }
            let (file, key) = (quoted(&file.display().to_string()), quoted(&key.display().to_string()));
            if !files.contains(&file) {
                files.push(file);
                keys.push(key);
            }
        }
        if !files.is_empty() {
            let tls = format!("tls = {{ cert = [{}], key = [{}] }}", files.join(", "), keys.join(", "));
            self.made.listeners.extend(addresses.iter().map(|address| format!("address = {}\n{tls}", quoted(address))));
        }
    }

    /// The routes of all hosts. The first of Apache's that has a name answers for it; one that no name is of, the first of all.
    fn answer(&mut self, all: &ApacheScope, kept: &[&ReadHost], is_closed: bool) {
        let (mut known, mut closes_rest): (Vec<String>, bool) = (Vec::new(), false);
        let mut of_all = None;
        for (at, host) in kept.iter().enumerate() {
            let own = host.scope.name.as_deref().or(all.name.as_deref());
            let (mut its, has_others) =
                names(own.map(server_name).into_iter().chain(host.scope.aliases_of_host.iter().map(String::as_str)));
            if has_others {
                self.findings
                    .leave(&host.at, "closed, with all hosts behind it: a name with wildcards that larder has not");
            }
            closes_rest |= has_others;
            let count = its.len();
            its.retain(|name| !known.iter().any(|known| is_covered(name, known)));
            if its.len() < count {
                self.findings.leave(&host.at, "a host before it has the same name, and answers for it");
            }
            if own.is_none() && its.is_empty() && at > 0 {
                self.findings.leave(&host.at, "left out: without ServerName only the machine's own name leads to it");
            }
            let is_closed = is_closed || host.scope.is_closed || closes_rest;
            let routes = match is_closed {
                true => vec![Route::closed(Matcher::Path("/".to_owned()))],
                false if its.is_empty() && at > 0 => Vec::new(),
                false => self.routes(all, host),
            };
            if !its.is_empty() {
                for mut route in routes.iter().cloned() {
                    route.hosts.clone_from(&its);
                    self.made.add(route);
                }
            }
            if at == 0 {
                of_all = Some(routes);
            }
            known.extend(its);
        }
        // Who is asked by another name may be one of those that cannot be told.
        let closed = || vec![Route::closed(Matcher::Path("/".to_owned()))];
        let of_all = if closes_rest { closed() } else { of_all.unwrap_or_else(closed) };
        of_all.into_iter().for_each(|route| self.made.add(route));
    }

    fn routes(&mut self, all: &ApacheScope, host: &ReadHost) -> Vec<Route> {
        if host.scope.leads_to_tls {
            let line = "redirect = { to = \"https://$host$request_uri\", status = 301 }".to_owned();
            let closed = format!("closed_paths = [{}]", literal(UNUSUAL));
            return vec![Route::new(Matcher::Path("/".to_owned()), vec![line, closed])];
        }
        HostRegions::new(all, &host.scope, &host.at).routes(&mut self.origins, &mut self.findings)
    }
}
