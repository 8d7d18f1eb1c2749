//! docs/larder.toml, the sample that operators copy from: it has every key that the parser reads and no other, and what it
//! shows as a default is one.
//!
//! "# " begins an explanation there, "#" alone a setting that is switched off; behind it may stand `# example` or
//! `# required`.

use toml::de::DeTable;

use super::super::section::{Complaints, Section};
use super::super::{read, read_top, sample as sample_text};
use crate::plan::{LISTEN_DEFAULT, Plan};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/larder.toml");

/// They read a file of certificates, which this machine may not have.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";
const OF_TLS: [&str; 3] = ["tls", "ca", "tls_name"];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mark {
    Header,
    Required,
    Example,
    Default,
}

/// A line that is, or would be, more than a comment.
#[derive(Clone, Copy, Debug)]
struct Setting<'a> {
    /// Switched on, without what stands behind it.
    text: &'a str,
    key: &'a str,
    mark: Mark,
    is_on: bool,
    /// Which table it belongs to; 0 is the top level.
    table: usize,
}

fn sample() -> String {
    std::fs::read_to_string(SAMPLE).expect("the sample is part of the repository")
}

fn settings(sample: &str) -> Vec<Setting<'_>> {
    let mut table = 0;
    let lines = sample.lines().filter(|line| !line.is_empty() && !line.starts_with("# ") && *line != "#");
    let setting = |line| {
        let (line, is_on) = str::strip_prefix(line, '#').map_or((line, true), |line| (line, false));
        let marked = |mark: &str| line.strip_suffix(mark).map(str::trim_end);
        let (text, mark) = match (line.starts_with('['), marked("# required"), marked("# example")) {
            (true, ..) => (line, Mark::Header),
            (_, Some(text), _) => (text, Mark::Required),
            (_, _, Some(text)) => (text, Mark::Example),
            _ => (line, Mark::Default),
        };
        table += usize::from(mark == Mark::Header);
        let key = text.split(" = ").next().unwrap_or_default();
        Setting { text, key, mark, is_on, table }
    };
    lines.map(setting).collect()
}

/// The settings that are wanted, as a file.
fn file(sample: &str, wanted: impl Fn(&Setting<'_>) -> bool) -> String {
    settings(sample).iter().filter(|setting| wanted(setting)).map(|setting| format!("{}\n", setting.text)).collect()
}

#[test]
fn the_sample_is_good_as_it_stands_and_serves_its_origin() {
    let sample = sample();
    let plan = read(&sample).unwrap();
    assert!(plan.accelerates_something() && plan.settings.origins.len() == 1);
    assert!(
        file(&sample, |setting| setting.is_on).lines().count() <= 3,
        "a sample changes nothing but where the origin is"
    );
}

/// The sample with every setting switched on, read.
pub fn read_everything() -> Complaints {
    let text = file(&sample_text(), |_| true).replace(CERTIFICATES, "/dev/null");
    let (document, errors) = DeTable::parse_recoverable(&text);
    assert!(errors.is_empty(), "{errors:?}");
    let complaints = Complaints::default();
    read_top(Section::top(document.get_ref(), 0..text.len(), &complaints));
    complaints
}

#[test]
fn the_sample_has_no_key_that_is_not_read() {
    // Words of routes that exclude one another, or say nothing beside a VCL, stand there all at once.
    let is_of_words = |what: &str| {
        ["a route has", "a preset is", "`strip_prefix`", "`rewrite`"].iter().any(|begin| what.starts_with(begin))
            || what.ends_with("says nothing beside a VCL, which decides by itself what is stored")
    };
    let wrong: Vec<_> = read_everything().into_sorted().into_iter().map(|complaint| complaint.what).collect();
    let wrong: Vec<_> = wrong.into_iter().filter(|what| !is_of_words(what)).collect();
    let no_site = "/etc/larder/site.pem: No such file or directory (os error 2)";
    let no_origins = no_site.replace("site", "origins");
    let (no_tls, no_us) = ("`tls` is for https:// URLs", no_site.replace("site", "us"));
    let no_engine = no_site.replace("site", "redis-ca");
    let no_redirect = "no such port can be redirected to";
    let (no_acme, no_ca) = ("`acme` needs [acme]", no_site.replace("site", "our-authority"));
    assert_eq!(
        wrong,
        [
            no_redirect,
            no_acme,
            "`early_data` leaves no use for ticket_secret",
            no_site,
            &no_ca,
            "`hash` says by what is balanced by hash",
            no_tls,
            &no_origins,
            &no_us,
            "`http2` is for https:// URLs",
            "`purge_from` says nothing beside a VCL, which decides by itself who may purge",
            "`timeouts` says nothing beside a VCL, which decides by itself what is asked for",
            "copies would go where the requests go",
            "`mirror` says nothing beside a VCL, which decides by itself what is asked for",
            "/dev/null: there is no certificate in it",
            "[compress] says nothing beside a VCL, which decides by itself what is compressed",
            &no_engine,
            no_tls,
            &no_origins,
            &no_us,
            "`http2` is for https:// URLs",
            &no_engine,
            "there is a token and a file with one"
        ]
    );
}

#[test]
fn what_the_sample_shows_as_a_default_is_one() {
    let sample = sample();
    // Of [acme] nothing is read where no [listen.tls] names it; what it shows comes from the constants that it is made with.
    let of_acme = settings(&sample).iter().find(|setting| setting.text == "[acme]").map(|header| header.table);
    let is_shown = |setting: &&Setting<'_>| setting.mark == Mark::Default && Some(setting.table) != of_acme;
    for tried in settings(&sample).iter().filter(is_shown) {
        let around = |with_examples: bool, instead: Option<&str>| {
            let in_table = |setting: &Setting<'_>| {
                let is_needed = matches!(setting.mark, Mark::Header | Mark::Required);
                let is_tried = setting.text == tried.text && instead.is_some();
                let is_example = setting.mark == Mark::Example && !OF_TLS.contains(&setting.key);
                setting.table == tried.table && (is_needed || is_tried || with_examples && is_example)
            };
            // An origin of another kind stands in place of the one that is on, and needs no route.
            let is_replaced = |setting: &Setting<'_>| {
                setting.table != tried.table && is_of_origin(&sample, setting) && is_of_origin(&sample, tried)
            };
            let text = file(&sample, |setting| setting.is_on && !is_replaced(setting) || in_table(setting));
            read(&instead.map_or(text.clone(), |instead| text.replace(tried.text, instead))).ok().map(shown)
        };
        // Some keys are only read beside another one, which the sample then has as an example.
        let other = others(tried.text);
        let changes_it = |with_examples: bool| {
            let before = around(with_examples, None);
            other.iter().any(|other| around(with_examples, Some(other)).is_some_and(|now| Some(now) != before))
        };
        let with_examples = !changes_it(false) && changes_it(true);
        let before = around(with_examples, None);
        assert!(before.is_some(), "what stands around `{}` is wrong", tried.text);
        assert!(around(with_examples, Some(tried.text)) == before, "`{}` is no default", tried.text);
        let is_read =
            other.iter().all(|other| around(with_examples, Some(other)).is_none()) || changes_it(with_examples);
        assert!(is_read, "`{}` is shown, and nothing changes with it", tried.text);
    }
}

fn is_of_origin(sample: &str, setting: &Setting<'_>) -> bool {
    let is_its_header = |other: &Setting<'_>| other.mark == Mark::Header && other.table == setting.table;
    settings(sample).iter().any(|other| is_its_header(other) && other.text.starts_with("[origin."))
}

/// Nothing listens elsewhere, and the only [[listen]] is what there is without any.
#[test]
fn the_sample_listens_where_larder_does() {
    let text = file(&sample(), |setting| {
        setting.is_on || setting.text == "[[listen]]" || setting.text.starts_with("address = \"127.0.0.1:8080\"")
    });
    let listeners = read(&text).unwrap().settings.listeners;
    assert_eq!(listeners, Plan::default().settings.listeners);
    assert!(text.contains(&format!(":{}\"", LISTEN_DEFAULT.1)));
}

/// All that a plan says, but for whether it was said.
fn shown(mut plan: Plan) -> String {
    plan.workers = Some(plan.workers_count());
    plan.admin.asked_for = false;
    plan.of_programs.clear();
    plan.asks_for_connections = false;
    format!("{plan:?}")
}

/// The same setting with other values, of which some may be wrong.
fn others(text: &str) -> Vec<String> {
    let (key, value) = text.split_once(" = ").expect("a setting has a value");
    let mut values = Vec::new();
    match value {
        "true" => values.push("false".to_owned()),
        "false" => values.push("true".to_owned()),
        _ => {}
    }
    if let Some(at) = value.find(|c: char| c.is_ascii_digit()) {
        let (front, rest) = value.split_at(at);
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number: u64 = rest[..end].parse().expect("digits are a number");
        let with = |number: u64| format!("{front}{number}{}", &rest[end..]);
        values.extend([with(number + 1), with(number.saturating_sub(1))]);
    }
    if let Some(at) = value.rfind('"') {
        values.push(format!("{}x{}", &value[..at], &value[at..]));
    }
    values.retain(|other| other != value);
    values.into_iter().map(|value| format!("{key} = {value}")).collect()
}
