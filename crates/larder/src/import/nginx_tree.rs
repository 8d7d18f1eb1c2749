//! The locations of one server: by whom each of them is answered, with which words, and what is closed because it cannot be carried
//! over. In which order they are asked is known by `nginx_order.rs`; routes are made of them in `nginx_routes.rs`.

use std::collections::BTreeMap;
use std::path::Path;

use crate::import::import_findings::{Findings, quoted};
use crate::import::nginx_conf::Directive;
use crate::import::nginx_found::{AnsweredBy, FoundLocation};
use crate::import::nginx_guards;
use crate::import::nginx_level::Level;
use crate::import::nginx_limits::LimitZones;
use crate::import::nginx_listens::InTheClear;
use crate::import::nginx_maps::{self, Maps};
use crate::import::nginx_memcached::{Pass, Upstreams};
use crate::import::nginx_order::{Kind, LocationOrder, Spot};
use crate::import::nginx_rulings::{self, Ruling, RulingScope, Rulings};
use crate::import::nginx_scripts::Runs;
use crate::import::nginx_service::{self, Question};
use crate::import::nginx_substitute::Substitute;
use crate::import::nginx_timeouts::AskedBy;
use crate::import::nginx_upstream::{AskedOrigin, HandedUpgrades, Origins};

/// What is known before the locations of a server are read.
pub struct Tree<'a> {
    pub findings: &'a mut Findings,
    pub origins: &'a mut Origins,
    pub upstreams: &'a Upstreams,
    pub zones: &'a LimitZones,
    pub maps: &'a Maps,
    pub clear: InTheClear,
    /// Where names of files begin, and where those of the configuration itself do.
    pub prefix: &'a Path,
    pub folder: &'a Path,
    /// What the locations inherit.
    pub level: Level,
    pub server: &'a Directive,
    pub server_name: &'a str,
    /// Somewhere in the configuration responses are stored.
    pub others_store: bool,
}

/// What is said of `try_files` beside who is asked for all.
const CLOSED_BY_TRIES: &str = "closed: who asks for a file is answered otherwise than who does not";

/// What is said of an origin that larder would ask for more than nginx does, or for something else.
const ASKED_OTHERWISE: &str = "closed: the origin would hear another method, body or fields than nginx tells it";

/// What is known of who answers a location.
#[derive(Default)]
struct AskedAs {
    /// Lines of who may come in.
    access: Vec<String>,
    /// Of a location with a name that is asked for all of it: its words hold, and not those of the location that leads to it.
    named: Option<NamedLocation>,
}

/// A location with a name, by what it says itself.
struct NamedLocation {
    level: Level,
    only_methods: Option<Vec<String>>,
}

/// The key of a route that asks this origin.
pub fn origin_line(name: &str) -> String {
    format!("origin = {}", quoted(name))
}

impl<'a> Tree<'a> {
    /// What is known of all levels.
    fn ruling_scope(&self) -> RulingScope<'a> {
        RulingScope {
            has_groups: false,
            asks_origin: false,
            server_name: "",
            default_type: "",
            maps: self.maps,
            clear: self.clear,
        }
    }

    /// What a server's own rewriting makes of all requests.
    pub fn rulings(&mut self) -> Rulings {
        let level = self.level.clone();
        let (server_name, default_type) = (self.server_name, level.default_type());
        let scope = RulingScope { server_name, default_type, ..self.ruling_scope() };
        nginx_rulings::read(self.server, &scope, self.findings)
    }

    /// All locations in nginx's order. `None`: nobody can tell which they are.
    pub fn read(&mut self) -> Option<Vec<FoundLocation<'a>>> {
        let order = LocationOrder::of(self.server);
        for location in &order.never {
            self.findings.note(location, "no request comes here: its path has no slash in front");
        }
        if !order.unknown.is_empty() {
            for location in &order.unknown {
                self.findings
                    .leave(location, "the whole server is closed: PCRE2 does not take this, or nginx would not");
            }
            return None;
        }
        Some(order.spots.into_iter().map(|spot| self.found(spot)).collect())
    }

    fn found(&mut self, spot: Spot<'a>) -> FoundLocation<'a> {
        let mut level = self.level.clone();
        for block in &spot.blocks {
            let path = spot.path.as_deref().filter(|_| Some(block) == spot.blocks.last());
            level = self.level_of(block, path).within(&level);
        }
        let none = Directive { block: Some(Vec::new()), ..self.server.clone() };
        let block = spot.blocks.last().copied().unwrap_or(&none);
        let asks_origin = block.children().iter().any(|child| child.name == "proxy_pass");
        let scope_level = level.clone();
        let (has_groups, name) = (spot.has_own_groups(), self.server_name);
        let default_type = scope_level.default_type();
        let scope = RulingScope { has_groups, asks_origin, server_name: name, default_type, ..self.ruling_scope() };
        let mut rulings = nginx_rulings::read(block, &scope, self.findings);
        let mut asked = AskedAs::default();
        let answer = self.answer(&spot, block, &level, &rulings, &mut asked);
        let AskedAs { access, named } = asked;
        let words = match &named {
            Some(named) => {
                rulings.only_methods = named.only_methods.clone().or(rulings.only_methods);
                self.words_of(&answer, &named.level)
            }
            None => self.words_of(&answer, &level),
        };
        let is_internal = nginx_guards::hides_from_outside(&spot.blocks).is_some();
        let upgrades = self.handed_upgrades(block, &level).filter(|_| answer.asks_others());
        FoundLocation { spot, level, rulings, answer, access, words, is_internal, upgrades }
    }

    /// Which protocols whoever is asked over HTTP here, or by the location that `try_files` names, hears of. `None`: nobody is asked so.
    fn handed_upgrades(&mut self, block: &Directive, level: &Level) -> Option<HandedUpgrades> {
        let has = |block: &Directive, name: &str| block.children().iter().any(|child| child.name == name);
        if has(block, "proxy_pass") {
            return Some(level.proxy.handed_upgrades());
        }
        let is_named =
            |child: &&Directive| child.name == "location" && Some(child.argument(0)) == level.named.as_deref();
        let server = self.server;
        let named = server.children().iter().find(is_named).filter(|named| has(named, "proxy_pass"))?;
        Some(self.named_level(named).proxy.handed_upgrades())
    }

    /// What stands in a location beside who answers and what is rewritten.
    fn level_of(&mut self, block: &Directive, path: Option<&str>) -> Level {
        let mut level = Level::default();
        for directive in block.children() {
            match directive.name.as_str() {
                "location" | "proxy_pass" | "fastcgi_pass" | "memc_pass" | "memcached_pass" | "stub_status"
                | "internal" => {}
                // The question has no body.
                "proxy_pass_request_body" if path.is_some_and(|path| self.asks_a_service(path)) => {}
                "alias" => level.take_alias(directive, path, self.prefix, self.findings),
                _ if nginx_rulings::is_of_rewriting(directive) => {}
                _ if nginx_guards::is_guard(directive) => {
                    self.findings.leave(directive, "closed: larder has no such guard, or does not answer so");
                    level.close();
                }
                _ if level.take(directive, self.prefix, self.findings) => {}
                _ => self.findings.leave(directive, "larder has no setting that this becomes"),
            }
        }
        level
    }

    fn answer(
        &mut self,
        spot: &Spot<'_>,
        block: &Directive,
        level: &Level,
        rulings: &Rulings,
        asked: &mut AskedAs,
    ) -> AnsweredBy {
        if level.is_guarded() || spot.is_unsayable() {
            if spot.is_unsayable() {
                self.findings.leave(block, "closed: the path of a route cannot be this");
            }
            return AnsweredBy::Closed;
        }
        match &rulings.rest {
            Some(Ruling::Closed) => return AnsweredBy::Closed,
            Some(Ruling::Answered(lines)) => return AnsweredBy::Asks(lines.clone()),
            Some(Ruling::ToTls(line)) => return AnsweredBy::ToTls(line.clone()),
            Some(Ruling::Script(script)) => return AnsweredBy::Script(script.clone()),
            Some(Ruling::Rewritten(_)) | None => {}
        }
        let handler = |name: &str| block.children().iter().find(|child| child.name == name);
        // A script that nginx alone asks for answers in place of others.
        if let (Some(internal), None) = (nginx_guards::hides_from_outside(&spot.blocks), handler("fastcgi_pass")) {
            match spot.path.as_deref().is_some_and(|path| self.asks_a_service(path)) {
                true => self.findings.note(internal, "larder asks the service itself (auth_request), and nobody else"),
                false => self.findings.leave(internal, "closed: larder does not ask itself"),
            }
            return AnsweredBy::Closed;
        }
        let Some(lines) = self.guards(level) else { return AnsweredBy::Closed };
        asked.access = lines;
        if handler("stub_status").is_some_and(|status| status.argument(0) != "off") {
            let from: Vec<String> = level.access.admitted().iter().map(|network| quoted(network)).collect();
            return AnsweredBy::Asks(vec![
                "stub_status = true".to_owned(),
                format!("allow_from = [{}]", from.join(", ")),
            ]);
        }
        let asks_others = ["proxy_pass", "memc_pass", "memcached_pass"].iter().any(|name| handler(name).is_some());
        if let Some(tries) = handler("try_files").filter(|_| asks_others) {
            self.findings.leave(tries, CLOSED_BY_TRIES);
            return AnsweredBy::Closed;
        }
        if let Some(pass) = handler("proxy_pass") {
            return self.proxied(pass, spot, block, level, rulings);
        }
        if let Some(pass) = handler("fastcgi_pass") {
            let pass = self.with_constants(pass, block);
            return match level.scripts.runs(&pass, &level.root(self.prefix), self.origins, self.findings) {
                Some(Runs::OfRoot { .. }) if level.hides_files() => AnsweredBy::Closed,
                Some(Runs::OfRoot { origin }) => AnsweredBy::Scripts(origin),
                // One script for all that is a file, and 404 for the rest: larder would run it for the rest, too.
                Some(Runs::One { script, .. })
                    if handler("try_files").is_some()
                        && (spot.kind != Kind::Exact || spot.path != Some(format!("/{script}"))) =>
                {
                    self.findings.leave(handler("try_files").unwrap_or(block), CLOSED_BY_TRIES);
                    AnsweredBy::Closed
                }
                Some(Runs::One { origin, .. }) => AnsweredBy::Asks(vec![origin_line(&origin)]),
                None => AnsweredBy::Closed,
            };
        }
        if let Some(pass) = handler("memc_pass").or(handler("memcached_pass")).and_then(Pass::read) {
            let lines = level.memcached.lines(&pass, self.upstreams, self.findings);
            let lines = lines.map(|lines| lines.into_iter().chain(level.type_lines()).collect());
            return lines.map_or(AnsweredBy::Closed, AnsweredBy::Asks);
        }
        self.files(handler("try_files").unwrap_or(block), (level, rulings), asked)
    }

    /// The lines that say who may come in, and how often. `None`: nobody, for one of them cannot be said.
    fn guards(&mut self, level: &Level) -> Option<Vec<String>> {
        let mut lines = level.access.lines(self.folder, self.zones, self.findings)?;
        if let Some(asked) = level.service.asked() {
            let line = self.service_line(asked, level);
            if line.is_none() {
                self.findings.leave(asked, "closed: larder cannot ask this service as nginx does");
            }
            lines.push(line?);
        }
        Some(lines)
    }

    /// Is it this path that `auth_request` names somewhere in the server?
    fn asks_a_service(&self, path: &str) -> bool {
        fn names(block: &Directive, path: &str) -> bool {
            let is_it = |child: &Directive| child.name == "auth_request" && child.argument(0) == path;
            block.children().iter().any(|child| is_it(child) || names(child, path))
        }
        let of_server = self.level.service.asked().is_some_and(|asked| asked.argument(0) == path);
        of_server || names(self.server, path)
    }

    /// The service that says who may come in. `None`: it would be asked otherwise, or not by all.
    fn service_line(&mut self, asked: &Directive, level: &Level) -> Option<String> {
        let question = Question::of(self.server, asked).filter(|_| !level.access.is_satisfied_by_any())?;
        let of_server = self.rulings();
        let mut patterns = of_server.cases.iter().filter_map(|case| case.pattern.as_deref());
        if patterns.any(|pattern| question.is_met_by(pattern)) || !question.has_own_constants(self.server) {
            return None;
        }
        let mut own = self.level.clone();
        for block in &question.blocks {
            let path = question.beginning().filter(|_| Some(block) == question.blocks.last());
            own = self.level_of(block, path).within(&own);
        }
        if own.proxy.intercepts_errors() || own.service.is_asked_otherwise() || level.access.is_told_who_asks() {
            return None;
        }
        let written = question.pass()?;
        let hidden = nginx_service::hidden_from(&own.proxy, self.findings)?;
        let pass = self.with_constants(written, question.blocks.last()?);
        if pass.argument(0).ends_with("$request_uri") {
            return None;
        }
        let to = self.origins.of(&pass, &own.proxy, self.findings)?;
        let target = question.target(to.replaced_by.as_deref(), written.argument(0).contains('$'))?;
        let login = level.login_page.as_ref().and_then(|page| {
            let url = nginx_service::login_url(page, self.server)?;
            self.findings.note(page, "a 401 of the service leads there, its own answer to nobody");
            Some(url)
        });
        let of_service = (to.origin.as_str(), target.as_str());
        Some(nginx_service::line(of_service, login.as_deref(), hidden, &level.service.words(), &level.proxy))
    }

    fn proxied(
        &mut self,
        pass: &Directive,
        spot: &Spot<'_>,
        block: &Directive,
        level: &Level,
        rulings: &Rulings,
    ) -> AnsweredBy {
        let pass = self.with_constants(pass, block);
        if level.service.is_asked_otherwise() {
            self.findings.leave(&pass, ASKED_OTHERWISE);
            return AnsweredBy::Closed;
        }
        let Some(AskedOrigin { origin, replaced_by }) = self.origins.of(&pass, &level.proxy, self.findings) else {
            return AnsweredBy::Closed;
        };
        let mut lines = vec![origin_line(&origin)];
        if let Some(Ruling::Rewritten(target)) = &rulings.rest {
            lines.push(format!("rewrite = {}", quoted(target)));
            return AnsweredBy::Asks(lines);
        }
        let is_plain = |uri: &str| uri.starts_with('/') && !uri.contains(['$', '#', ' ']);
        match (replaced_by, &spot.path) {
            (None, _) => AnsweredBy::Asks(lines),
            (Some(uri), Some(path)) if uri == *path => AnsweredBy::Asks(lines),
            (Some(uri), Some(_)) if is_plain(&uri) => AnsweredBy::AsksElsewhere(uri, lines),
            _ => {
                self.findings.leave(&pass, "closed: larder cannot say what the origin is asked for");
                AnsweredBy::Closed
            }
        }
    }

    /// Files, or who is asked where there is none.
    fn files(&mut self, tries: &Directive, (level, rulings): (&Level, &Rulings), asked: &mut AskedAs) -> AnsweredBy {
        if let Some(named) = level.named.as_deref() {
            let block =
                self.server.children().iter().find(|child| child.name == "location" && child.argument(0) == named);
            if let Some(origin) = block.and_then(|block| self.named_origin(block, rulings, asked)) {
                let why = "larder asks the origin for all of it: files beneath the root are not looked for first";
                self.findings.leave(tries, why);
                return AnsweredBy::Asks(vec![origin_line(&origin)]);
            }
        }
        if level.hides_files() { AnsweredBy::Closed } else { AnsweredBy::Files }
    }

    /// What holds in a location with a name: what its server says, and nothing of the location that leads to it.
    fn named_level(&mut self, block: &Directive) -> Level {
        let of_server = self.level.clone();
        self.level_of(block, None).within(&of_server)
    }

    /// Whom a location with a name asks over HTTP, if it does that. What it says of who may come in is put beside what `asked` has, and
    /// `leading` are the rules of the location that leads to it.
    fn named_origin(&mut self, block: &Directive, leading: &Rulings, asked: &mut AskedAs) -> Option<String> {
        let pass = block.children().iter().find(|child| child.name == "proxy_pass")?;
        let own = self.named_level(block);
        let scope = RulingScope { asks_origin: true, ..self.ruling_scope() };
        let rulings = nginx_rulings::read(block, &scope, self.findings);
        if own.service.is_asked_otherwise() {
            self.findings.leave(pass, ASKED_OTHERWISE);
            return None;
        }
        if own.is_guarded() || rulings.rest.is_some() || !rulings.cases.is_empty() {
            return None;
        }
        // Both ask for the method, and a route does once.
        let only_methods = rulings.only_methods;
        if only_methods.is_some() && leading.only_methods.is_some() && only_methods != leading.only_methods {
            return None;
        }
        let guards = self.guards(&own)?;
        let all = nginx_guards::with_others(&asked.access, &guards);
        if !nginx_guards::are_guarded_like(&all, &guards) {
            return None;
        }
        let pass = self.with_constants(pass, block);
        let to = self.origins.of(&pass, &own.proxy, self.findings)?;
        if to.replaced_by.is_some() {
            return None;
        }
        asked.access = all;
        asked.named = Some(NamedLocation { level: own, only_methods });
        Some(to.origin)
    }

    /// The script that a location with a name runs, and the origin that does where that is not its root's. `access`: the lines of who may
    /// come in, which have to be its own, too.
    pub fn named_script(&mut self, level: &Level, access: &[String]) -> Option<(Substitute, Option<String>)> {
        let named = level.named.as_deref()?;
        let is_it = |child: &&Directive| child.name == "location" && child.argument(0) == named;
        let block = self.server.children().iter().find(is_it)?;
        let own = self.named_level(block);
        let scope = self.ruling_scope();
        let Rulings { cases, rest, only_methods, .. } = nginx_rulings::read(block, &scope, self.findings);
        if own.is_guarded() || only_methods.is_some() {
            return None;
        }
        let guards = self.guards(&own)?;
        if !nginx_guards::are_guarded_like(access, &guards) {
            return None;
        }
        if let Some(pass) = block.children().iter().find(|child| child.name == "fastcgi_pass") {
            let pass = self.with_constants(pass, block);
            return match own.scripts.runs(&pass, &own.root(self.prefix), self.origins, self.findings)? {
                Runs::One { origin, script } => Some((Substitute::whole(format!("/{script}")), Some(origin))),
                Runs::OfRoot { .. } => None,
            };
        }
        let script = |ruling| match ruling {
            Ruling::Script(script) => Some((script, None)),
            _ => None,
        };
        rest.and_then(script).or_else(|| cases.into_iter().find_map(|case| script(case.ruling)))
    }

    /// With what variables stand for that are set once, to a text without others.
    pub fn with_constants(&self, pass: &Directive, block: &Directive) -> Directive {
        let sets = self.server.children().iter().chain(block.children()).filter(|child| child.name == "set");
        let mut known: BTreeMap<&str, Option<&str>> = BTreeMap::new();
        for set in sets {
            let value =
                Some(set.argument(1)).filter(|value| !value.contains('$') && !known.contains_key(set.argument(0)));
            known.insert(set.argument(0), value);
        }
        let mut pass = pass.clone();
        for (name, text) in self.maps.constants() {
            pass.arguments.iter_mut().for_each(|word| *word = nginx_maps::with_value(word, name, text));
        }
        for word in &mut pass.arguments {
            // The longest name first: `$app_port` is not `$app` with more behind it.
            for (name, value) in known.iter().rev() {
                if let Some(value) = value {
                    let braced = format!("${{{}}}", name.trim_start_matches('$'));
                    *word = word.replace(&braced, value).replace(name, value);
                }
            }
        }
        pass
    }

    /// Where nginx stores nothing and tells clients to keep nothing, larder stores nothing either, whatever the origin says.
    fn storing(&mut self, level: &Level) -> Vec<String> {
        let is_kept_out = !level.caching.is_on() && level.fields.keeps_caches_out();
        level.caching.route_lines(self.others_store || is_kept_out, self.maps, self.findings)
    }

    /// What of a route holds beside who answers and who may ask.
    fn words_of(&mut self, answer: &AnsweredBy, level: &Level) -> Vec<String> {
        let mut words = Vec::new();
        match answer {
            AnsweredBy::Closed | AnsweredBy::ToTls(_) => return words,
            AnsweredBy::Asks(_) | AnsweredBy::AsksElsewhere(..) if answer.asks_others() => {
                words.extend(level.proxy.route_lines(&level.service.words(), self.findings));
                words.extend(self.storing(level));
                words.extend(level.timeouts.line(AskedBy::Proxy));
            }
            AnsweredBy::Scripts(_) | AnsweredBy::Script(_) => {
                words.extend(self.storing(level));
                words.extend(level.timeouts.line(AskedBy::FastCgi));
            }
            _ => {}
        }
        let is_files = matches!(answer, AnsweredBy::Files | AnsweredBy::Scripts(_));
        words.extend(level.fields.lines(is_files, self.findings));
        words
    }
}
