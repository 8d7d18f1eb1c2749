//! larder.toml: text in, a checked [`Plan`] out, or everything that is wrong with it.
//!
//! What each section may say stands in `config/sections.rs` and `config/limits_section.rs`; this file knows the top
//! level and how the parts refer to each other. Nothing is opened or resolved here: `larder check` runs the same code.

mod acme_section;
mod admin_section;
mod advice;
mod beside_presets;
mod choices;
mod closed_words;
mod complaint;
mod compress_section;
mod definition;
mod esi_section;
mod fastcgi_section;
mod file_table;
mod flag_words;
mod fleet_log_words;
mod fleet_section;
mod foreign_words;
mod forward_section;
mod guard_gaps;
mod keys;
mod limits_section;
mod listen_tls;
pub mod literal;
mod login_loops;
mod meant_words;
mod memcached_route;
mod memcached_tls;
mod nearest;
mod origin_balance;
mod origin_protocol;
mod origin_tls;
mod origins_by_name;
mod paths_beside;
pub mod presets;
mod process_section;
mod quoting;
mod reference_page;
mod route_access;
mod route_answers;
mod route_fields;
mod route_match;
mod route_mirror;
mod route_pace;
mod route_service;
mod route_words;
mod routes;
mod said_twice;
mod sample;
mod schema;
mod secrets;
mod section;
mod sections;
mod shared_section;
mod show;
mod static_root;
mod timeout_words;
mod toml_mistakes;
mod traces_section;
mod unclosed;
mod unknown_users;
mod unrun_sources;
mod values;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use toml::de::{DeTable, DeValue};

use complaint::Complaint;
pub use complaint::FaultyFile;
pub use definition::{KeyDefinition, SectionDefinition};
pub use flag_words::FlagWords;
pub use keys::SECTIONS;
pub use nearest::nearest;
#[cfg(test)]
pub use paths_beside::tests as every_path;
pub use reference_page::{kind as shown_kind, text as reference};
pub use route_fields::{SENT_BY_US, may_be_set_in_answers, may_be_set_in_requests, says_client_address};
pub use route_match::shown as shown_route;
pub use routes::route_host;
pub use sample::text as sample;
pub use schema::schema;
use section::{Complaints, Section, count, parsed, text};
pub use show::Shown;
pub use static_root::is_index_name;

use crate::bounded_file;
use crate::hsts::{HSTS_FORM, parse_hsts};
use crate::limits;
use crate::plan::{AdminPlan, Plan};
use crate::quantities;

/// Why there is no plan.
#[derive(Debug)]
pub enum ConfigError {
    Unreadable(String),
    Faulty(Box<FaultyFile>),
}

impl ConfigError {
    pub fn show(&self, colour: bool) -> String {
        match self {
            ConfigError::Unreadable(why) => format!("{why}\n"),
            ConfigError::Faulty(file) => file.draw(colour),
        }
    }

    /// Where the mistakes are, without a word of the file.
    pub fn place(&self) -> String {
        match self {
            ConfigError::Unreadable(why) => why.clone(),
            ConfigError::Faulty(file) => file.places(),
        }
    }
}

/// Reads and checks a file.
pub fn load(path: &Path) -> Result<Plan, ConfigError> {
    let mut plan = load_by(path, read_top)?;
    let logins = forward_section::read_logins(&mut plan.settings.forward, &mut plan.warnings);
    logins.map_err(|why| unreadable(path, why))?;
    Ok(plan)
}

/// Reads address and token of `[admin]` and nothing else: a command to the larder that runs is obeyed whatever mistake was made in the rest since.
/// That may be a mistake in the text itself, as long as it is elsewhere.
pub fn load_admin(path: &Path) -> Result<AdminPlan, ConfigError> {
    let read = |mut top: Section<'_>| {
        let mut plan = Plan::default();
        if let Some(mut section) = top.section("admin") {
            admin_section::read_way_in(&mut section, &mut plan.admin);
        }
        plan
    };
    let plan = load_text(path, |text, folder| match toml_mistakes::beside_mistakes(text, "admin") {
        Some(rest) => read_in(&rest, folder, read),
        None => read_in(text, folder, read),
    })?;
    Ok(plan.admin)
}

fn load_by(path: &Path, read: impl FnOnce(Section<'_>) -> Plan) -> Result<Plan, ConfigError> {
    load_text(path, |text, folder| read_in(text, folder, read))
}

fn load_text(path: &Path, read: impl FnOnce(&str, &Path) -> Result<Plan, Vec<Complaint>>) -> Result<Plan, ConfigError> {
    if path.extension().is_some_and(|extension| extension == "vcl") {
        let why = "this is VCL, not a config: larder serve --vcl FILE, or vcl = \"FILE\" in [policy]";
        return Err(unreadable(path, why));
    }
    let text = bounded_file::read_text(path, limits::CONFIG_BYTES_MAX).map_err(|why| unreadable(path, why))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let faulty = |mut complaints: Vec<Complaint>| {
        complaints.truncate(limits::COMPLAINTS_MAX);
        ConfigError::Faulty(Box::new(FaultyFile { name: path.display().to_string(), text: text.clone(), complaints }))
    };
    let mut plan = read(&text, folder).map_err(faulty)?;
    paths_beside::apply(&mut plan, folder);
    admin_section::read_token_file(&mut plan.admin).map_err(|why| match line_of(&text, "token_file") {
        Some(place) => faulty(vec![Complaint::new(place, why, "no token comes of it")]),
        None => unreadable(path, why),
    })?;
    fleet_section::read_secret(&mut plan).map_err(|why| unreadable(path, why))?;
    admin_section::set_explain_field(&mut plan).map_err(|why| unreadable(path, why))?;
    Ok(plan)
}

/// The line that says a key which stands in one section alone.
fn line_of(text: &str, key: &str) -> Option<std::ops::Range<usize>> {
    let mut from = 0;
    text.split_inclusive('\n').find_map(|line| {
        let at = from + line.len() - line.trim_start().len();
        let end = from + line.trim_end().len();
        from += line.len();
        line.trim_start().starts_with(key).then_some(at..end)
    })
}

fn unreadable(path: &Path, why: impl std::fmt::Display) -> ConfigError {
    ConfigError::Unreadable(format!("{}: error: {why}", path.display()))
}

/// Checks a text, whose relative paths begin where larder was started.
pub fn read(text: &str) -> Result<Plan, Vec<Complaint>> {
    read_in(text, Path::new(""), read_top)
}

/// Checks the text of a file in this folder.
fn read_in(text: &str, folder: &Path, read: impl FnOnce(Section<'_>) -> Plan) -> Result<Plan, Vec<Complaint>> {
    let (document, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(toml_mistakes::complaints(text));
    }
    let complaints = Complaints::with_advice(advice::for_key, advice::for_table).in_folder(folder);
    let mut plan = read(Section::top(document.get_ref(), 0..text.len(), &complaints));
    plan.files_read = complaints.files_read();
    match complaints.into_sorted() {
        sorted if sorted.is_empty() => Ok(plan),
        sorted => Err(sorted),
    }
}

fn read_top(mut top: Section<'_>) -> Plan {
    let mut plan = Plan::default();
    if let Some(name) = top.read("server_name", server_name) {
        plan.settings.server_name = name;
    }
    if let Some(networks) = top.read_list("trusted_proxies", section::network) {
        plan.settings.trusted_proxies = networks;
    }
    plan.settings.odd_field_names = top.read("odd_field_names", section::switch).unwrap_or(false);
    plan.settings.hsts = top.read("hsts", hsts);
    plan.workers = top.read("workers", workers);
    plan.core_dumps = top.read("core_dumps", section::switch).unwrap_or(false);

    if let Some(section) = top.section("process") {
        process_section::read(section, &mut plan);
    }
    let acme = top.section("acme").and_then(acme_section::read);
    let listeners = sections::listeners(top.sections("listen"), acme.as_ref());
    plan.tls_files = listeners.tls_files;
    if !listeners.settings.is_empty() {
        plan.settings.listeners = listeners.settings;
    }
    plan.order(acme, listeners.ordered);
    plan.settings.origins = sections::origins(&mut top);
    let for_all = top.section("policy").map(|section| sections::policy(section, &mut plan)).unwrap_or_default();
    let routes = top.sections("route");
    let routes = routes::read(&top, routes, &plan.settings.origins, &for_all);
    plan.settings.routes = routes.routes;
    plan.warnings.extend(unknown_users::warnings(&plan.settings.routes));
    plan.warnings.extend(login_loops::warnings(&plan.settings.routes));
    plan.warnings.extend(guard_gaps::warnings(&plan.settings.routes));
    plan.settings.roots = routes.roots;
    unrun_sources::keep_back(&plan.settings.routes, &mut plan.settings.roots, &plan.settings.origins);
    plan.settings.status_pages = routes.status_pages;
    plan.settings.memcached = routes.memcached;
    if let Some(section) = top.section("memory") {
        sections::memory(section, &mut plan.settings);
    }
    plan.disks = sections::disks(top.sections("disk"));
    if let Some(section) = top.section("store") {
        sections::store(section, &mut plan);
    }
    if let Some(section) = top.section("compress") {
        if plan.vcl_file.is_some() {
            let what = "[compress] says nothing beside a VCL, which decides by itself what is compressed";
            let complaint = Complaint::new(section.span(), what, "does not act");
            top.complaints().add(complaint.suggest("write `set beresp.do_gzip = true;` in vcl_backend_response"));
        }
        compress_section::read(section, &mut plan.settings.compress);
    }
    if let Some(section) = top.section("esi") {
        esi_section::read(section, &mut plan.settings.esi);
    }
    if let Some(section) = top.section("limits") {
        plan.asks_for_connections = section.has("connections_max") || section.has("tunnels_max");
        limits_section::read(section, &mut plan.settings.limits);
    }
    if let Some(section) = top.section("forward") {
        forward_section::read(section, &mut plan.settings.forward);
    }
    let shared = top.section("shared").and_then(|section| shared_section::read(section, &mut plan));
    if let Some(section) = top.section("fleet") {
        fleet_section::read(section, &mut plan);
    }
    shared_section::check(shared, &plan, top.complaints());
    if let Some(section) = top.section("log") {
        sections::log(section, &mut plan);
    }
    if let Some(section) = top.section("traces") {
        traces_section::read(section, &mut plan);
    }
    read_admin(&mut top, &mut plan);
    if let Some(section) = top.section("resolver") {
        sections::resolver(section, &mut plan.settings.resolver);
    }
    top.end();
    plan
}

fn read_admin(top: &mut Section<'_>, plan: &mut Plan) {
    if let Some(section) = top.section("admin") {
        admin_section::read(section, plan);
    }
}

/// A token (RFC 9110 §5.6.2): it stands in Via as a pseudonym and in Cache-Status as a name.
pub fn is_server_name(name: &str) -> bool {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !name.is_empty() && name.len() <= 64 && name.bytes().all(is_token) && name.as_bytes()[0].is_ascii_alphabetic()
}

pub const SERVER_NAME_FORM: &str = "a letter, then letters, digits, dots and hyphens, at most 64";

fn server_name(node: section::Node<'_>) -> Result<String, Complaint> {
    let name = parsed(node, "server name", SERVER_NAME_FORM, |name| is_server_name(name).then(|| name.to_owned()));
    // nginx's word for something else.
    name.map_err(|complaint| {
        complaint.suggest(
            "it is larder's own name in Via and Cache-Status; the names of a site are host = [\"NAME\"] of its [[route]]",
        )
    })
}

fn hsts(node: section::Node<'_>) -> Result<Arc<str>, Complaint> {
    let value = parsed(node, "value of Strict-Transport-Security", HSTS_FORM, parse_hsts);
    value.map_err(|complaint| match node.get_ref() {
        DeValue::Boolean(false) => complaint.suggest("leave it out: no such field is sent then"),
        DeValue::Integer(seconds) => complaint.suggest(format!("write hsts = \"max-age={}\"", seconds.as_str())),
        DeValue::String(time) => match quantities::parse_duration(time).ok().or_else(|| meant_time(time)) {
            Some(time) => complaint.suggest(format!("write hsts = \"max-age={}\"", time.as_secs())),
            None => complaint,
        },
        _ => complaint.suggest("write hsts = \"max-age=31536000\": a year, for which browsers ask by https:// alone"),
    })
}

fn meant_time(written: &str) -> Option<Duration> {
    quantities::parse_duration(&quantities::meant_duration(written)?).ok()
}

fn workers(node: section::Node<'_>) -> Result<usize, Complaint> {
    if text(node).is_ok_and(|word| word == "auto") {
        return Ok(Plan::default().workers_count());
    }
    let max = limits::WORKERS_MAX;
    count(node)?.try_into().ok().filter(|n| (1..=max).contains(n)).ok_or_else(|| {
        Complaint::new(node.span(), "the number of workers is out of range", format!("must be 1 to {max}"))
            .suggest("leave `workers` out to have one for each core")
    })
}

#[cfg(test)]
mod tests;
