//! How the addresses of an `[origin.NAME]` share what it is asked: `urls` with what each weighs, `balance` and what belongs to it, `probe`,
//! and where else a request goes that one of them failed. A setting that could do nothing is refused.

use std::time::Duration;

use proxy::settings::{
    BalanceKind, BalanceSettings, HashKey, OriginUrl, ProbeSettings, RetrySettings, StickyCookie, UrlShare,
};

use toml::de::DeValue;

use super::choices::{RETRY_CAUSES, RETRY_METHODS, RetryCause};
use super::complaint::Complaint;
use super::section::{Node, Section, choice, count, duration, is_text, parsed, text};
use crate::addresses::{meant_origin, parse_origin};
use crate::limits::{ORIGIN_RETRIES_MAX, ORIGIN_WEIGHT_MAX};

/// A URL, and behind it ` weight=N` or ` backup`.
pub fn url(node: Node<'_>) -> Result<(OriginUrl, UrlShare), Complaint> {
    let written = text(node).map_err(|complaint| match node.get_ref() {
        DeValue::Integer(port) => complaint.suggest(match meant_origin(port.as_str()) {
            Some(url) => format!("write \"{url}\""),
            None => "write \"http://127.0.0.1:PORT\": a port is 1 to 65535".to_owned(),
        }),
        _ => complaint,
    })?;
    url_of(node, written)
}

/// The same of what is written there in other words.
pub fn url_of(node: Node<'_>, written: &str) -> Result<(OriginUrl, UrlShare), Complaint> {
    let (mut rest, mut share) = (written.trim_end(), UrlShare::default());
    while let Some((before, word)) = rest.rsplit_once(' ') {
        match word.strip_prefix("weight=") {
            Some(number) => {
                let weight = number.parse().ok().filter(|weight| *weight <= ORIGIN_WEIGHT_MAX);
                share.weight = weight.ok_or_else(|| {
                    let why = format!("weight=N is 0 to {ORIGIN_WEIGHT_MAX}");
                    Complaint::new(node.span(), format!("`{word}` is no weight"), why)
                })?;
            }
            None if word == "backup" => share.is_backup = true,
            None => break,
        }
        rest = before.trim_end();
    }
    let url = parse_origin(rest)
        .map_err(|why| Complaint::new(node.span(), format!("`{written}` cannot be an origin"), why))?;
    Ok((url, share))
}

pub fn balance(origin: &mut Section<'_>, shares: Vec<UrlShare>) -> BalanceSettings {
    let words = BalanceKind::WORDS.map(|word| (word, word));
    let word = origin.read("balance", |node| choice(node, &words));
    let key = origin.read("hash", hash_key);
    let kind = match word {
        Some("least-conn") => BalanceKind::LeastConn,
        Some("two-choices") => BalanceKind::TwoChoices,
        Some("hash") => BalanceKind::Hash(key.clone().unwrap_or(HashKey::Url)),
        Some("first") => BalanceKind::First,
        _ => BalanceKind::RoundRobin,
    };
    if word != Some("hash") {
        needs(origin, "hash", "`hash` says by what is balanced by hash", "write balance = \"hash\"");
    }
    if !shares.is_empty() && shares.iter().all(|share| share.is_backup || share.weight == 0) {
        let span = origin.get("urls").map_or(origin.span(), |node| node.span());
        let what = "no URL is asked unless the others are out";
        origin.complaints().add(Complaint::new(span, what, "each is a backup or weighs nothing"));
    }
    let slow_start = origin.read("slow_start", duration).unwrap_or(Duration::ZERO);
    let breaks_circuit = origin.read("circuit_breaker", super::section::switch).unwrap_or(false);
    // As where nothing is said of any.
    let says_nothing = shares.iter().all(|share| *share == UrlShare::default());
    let shares = if says_nothing { Vec::new() } else { shares };
    BalanceSettings { kind, shares, slow_start, breaks_circuit, sticky_cookie: sticky_cookie(origin) }
}

/// Complains about a key that does nothing as things are.
fn needs(section: &mut Section<'_>, key: &'static str, what: &str, suggestion: &str) {
    if let Some(node) = section.get(key) {
        section.complaints().add(Complaint::new(node.span(), what, "does nothing here").suggest(suggestion));
    }
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

fn hash_key(node: Node<'_>) -> Result<HashKey, Complaint> {
    parsed(node, "key", "\"url\", \"client\", \"cookie:NAME\" or \"header:NAME\"", |written| {
        let named = |prefix| written.strip_prefix(prefix).filter(|name| is_token(name)).map(str::to_owned);
        match written {
            "url" => Some(HashKey::Url),
            "client" => Some(HashKey::Client),
            _ => named("cookie:").map(HashKey::Cookie).or_else(|| named("header:").map(HashKey::Header)),
        }
    })
}

fn sticky_cookie(origin: &mut Section<'_>) -> Option<StickyCookie> {
    let name = origin.read("sticky_cookie", |node| {
        parsed(node, "name of a cookie", "letters, digits and -_. ", |name| is_token(name).then(|| name.to_owned()))
    });
    let secret = origin.read("sticky_secret", |node| {
        parsed(node, "secret", "16 characters or more", |text| (text.len() >= 16).then(|| text.to_owned()))
    });
    if name.is_none() {
        needs(origin, "sticky_secret", "`sticky_secret` is for a sticky cookie", "add sticky_cookie = \"NAME\"");
    }
    name.map(|name| StickyCookie { name, secret: secret.unwrap_or_default() })
}

/// `probe`, and what it asks for where the origin does not say.
pub fn probe(origin: &mut Section<'_>, host: Option<&str>, urls: &[OriginUrl]) -> Option<ProbeSettings> {
    let mut section = origin.section("probe")?;
    let span = section.span();
    let speaks_http1 =
        |url: &OriginUrl| matches!(url, OriginUrl::Tcp { .. } | OriginUrl::Tls { .. } | OriginUrl::Unix(_));
    if !urls.iter().all(speaks_http1) {
        let complaint = Complaint::new(span, "`probe` asks over HTTP/1", "this origin has URLs that speak otherwise");
        section.complaints().add(complaint.suggest("leave `probe` out: ejection_failures leaves out who fails"));
    }
    let path = section.read("path", |node| {
        parsed(node, "path", "it begins with a slash, and has no space", |path| {
            let is_one = path.starts_with('/') && path.bytes().all(|b| b.is_ascii_graphic() && b != b'#');
            is_one.then(|| path.to_owned())
        })
    });
    let own_host = section.read("host", super::section::host_field);
    let interval = section.read("interval", at_least_10ms).unwrap_or(Duration::from_secs(5));
    let timeout = section.read("timeout", at_least_10ms).unwrap_or(Duration::from_secs(2));
    let window = section.read("window", |node| within(node, 1, 64)).unwrap_or(8);
    let threshold = section.read("threshold", |node| within(node, 1, 64)).unwrap_or(3.min(window));
    let initial = section.read("initial", |node| within(node, 0, 64)).unwrap_or(threshold - 1);
    if threshold > window {
        let what = format!("{threshold} of {window} probes cannot be good");
        section.complaints().add(Complaint::new(section.span(), what, "`threshold` is at most `window`"));
    }
    let expected = section.read_list("expected", |node| status(node, 100, 599)).unwrap_or_else(|| vec![200]);
    section.end();
    Some(ProbeSettings {
        path: path.unwrap_or_else(|| "/".to_owned()),
        host: own_host.or_else(|| host.map(str::to_owned)).unwrap_or_else(|| OriginUrl::name_of_all(urls)),
        interval,
        timeout,
        window,
        threshold,
        initial,
        expected,
    })
}

fn at_least_10ms(node: Node<'_>) -> Result<Duration, Complaint> {
    let time = duration(node)?;
    match time >= Duration::from_millis(10) {
        true => Ok(time),
        false => Err(Complaint::new(node.span(), "this is too short", "must be at least 10ms")),
    }
}

fn within(node: Node<'_>, least: u32, most: u32) -> Result<u32, Complaint> {
    let number = count(node)?;
    u32::try_from(number).ok().filter(|number| (least..=most).contains(number)).ok_or_else(|| {
        Complaint::new(node.span(), format!("{number} is out of range"), format!("must be {least} to {most}"))
    })
}

fn status(node: Node<'_>, least: u16, most: u16) -> Result<u16, Complaint> {
    within(node, least.into(), most.into()).map(|status| status as u16)
}

enum RetryOn {
    Cause(RetryCause),
    Status(u16),
}

pub fn retries(origin: &mut Section<'_>) -> RetrySettings {
    let mut retries = RetrySettings::default();
    if let Some(others) = origin.read("retries", |node| within(node, 0, ORIGIN_RETRIES_MAX)) {
        retries.others_max = others as usize;
    }
    if let Some(causes) = origin.read_list("retry_on", retry_on) {
        retries.on_connect = false;
        for cause in causes {
            match cause {
                RetryOn::Cause(RetryCause::Connect) => retries.on_connect = true,
                RetryOn::Cause(RetryCause::Timeout) => retries.on_timeout = true,
                RetryOn::Cause(RetryCause::Closed) => retries.on_closed = true,
                RetryOn::Status(status) => retries.statuses.push(status),
            }
        }
    }
    if let Some(named) = origin.read_list("retry_methods", |node| choice(node, &RETRY_METHODS)) {
        retries.methods = named;
    }
    retries
}

fn retry_on(node: Node<'_>) -> Result<RetryOn, Complaint> {
    match is_text(node) {
        true => choice(node, &RETRY_CAUSES).map(RetryOn::Cause),
        false => status(node, 400, 599).map(RetryOn::Status),
    }
}

#[cfg(test)]
mod tests {
    use message::Method;
    use proxy::settings::OriginSettings;

    use super::super::read as read_config;
    use super::*;

    fn origin(lines: &str) -> OriginSettings {
        let text = format!("[origin.web]\n{lines}\n");
        let plan = read_config(&text).unwrap_or_else(|complaints| panic!("{text}: {complaints:?}"));
        plan.settings.origins.into_iter().next().unwrap()
    }

    fn check(lines: &str, expect: &[&str]) {
        let wrong = read_config(&format!("[origin.web]\n{lines}\n")).expect_err(lines);
        assert_eq!(wrong.iter().map(|complaint| complaint.what.as_str()).collect::<Vec<_>>(), expect, "{lines}");
    }

    #[test]
    fn a_url_says_what_it_weighs_and_for_whom_it_stands_in() {
        let web = origin(
            "urls = [\"http://10.0.0.1 weight=3\", \"http://10.0.0.2\", \"unix:/run/a b.sock backup weight=2\", \
             \"http://10.0.0.3 weight=0 backup\"]",
        );
        let share = |weight, is_backup| UrlShare { weight, is_backup };
        assert_eq!(web.balance.shares, [share(3, false), share(1, false), share(2, true), share(0, true)]);
        assert_eq!(web.urls[2], OriginUrl::Unix("/run/a b.sock".into()));
        check("urls = \"http://a weight=1001\"", &["`weight=1001` is no weight"]);
        check("urls = \"http://a weight=x\"", &["`weight=x` is no weight"]);
        check("urls = \"http://a wait=3\"", &["`http://a wait=3` cannot be an origin"]);
        check("urls = [\"http://a backup\", \"http://b weight=0\"]", &["no URL is asked unless the others are out"]);
    }

    #[test]
    fn a_balance_is_one_of_a_few_and_has_what_belongs_to_it() {
        let kind = |lines: &str| origin(&format!("urls = \"http://a\"\n{lines}")).balance.kind;
        assert_eq!(kind(""), BalanceKind::RoundRobin);
        assert_eq!(kind("balance = \"least-conn\""), BalanceKind::LeastConn);
        assert_eq!(kind("balance = \"two-choices\""), BalanceKind::TwoChoices);
        assert_eq!(kind("balance = \"first\""), BalanceKind::First);
        assert_eq!(kind("balance = \"hash\""), BalanceKind::Hash(HashKey::Url));
        let by = |key: &str| kind(&format!("balance = \"hash\"\nhash = \"{key}\""));
        assert_eq!(by("client"), BalanceKind::Hash(HashKey::Client));
        assert_eq!(by("cookie:sid"), BalanceKind::Hash(HashKey::Cookie("sid".to_owned())));
        assert_eq!(by("header:X-Tenant"), BalanceKind::Hash(HashKey::Header("X-Tenant".to_owned())));
        let urls = "urls = \"http://a\"\n";
        check(&format!("{urls}balance = \"leastconn\""), &["`leastconn` is not among the choices"]);
        check(&format!("{urls}balance = \"hash\"\nhash = \"cookie:\""), &["`cookie:` is no key"]);
        check(&format!("{urls}hash = \"url\""), &["`hash` says by what is balanced by hash"]);
        check(&format!("{urls}sticky_secret = \"0123456789abcdef\""), &["`sticky_secret` is for a sticky cookie"]);
        check(&format!("{urls}sticky_cookie = \"a;b\""), &["`a;b` is no name of a cookie"]);
    }

    #[test]
    fn a_probe_has_good_values_and_asks_for_what_the_origin_is_called() {
        let urls = "urls = [\"unix:/run/a.sock\", \"http://a.test:81\"]\n";
        let probe = origin(&format!("{urls}probe = {{ }}")).probe.unwrap();
        assert_eq!((probe.path.as_str(), probe.host.as_str()), ("/", "a.test:81"));
        assert_eq!((probe.interval.as_secs(), probe.timeout.as_secs()), (5, 2));
        assert_eq!((probe.window, probe.threshold, probe.initial, &probe.expected[..]), (8, 3, 2, &[200][..]));
        let host = |lines: &str| origin(&format!("{urls}{lines}")).probe.unwrap().host;
        assert_eq!(host("host = \"b.test\"\nprobe = { path = \"/x\" }"), "b.test");
        assert_eq!(host("host = \"b.test\"\nprobe = { host = \"c.test\" }"), "c.test");
        let wrong = |probe: &str, expect: &str| check(&format!("{urls}probe = {{ {probe} }}"), &[expect]);
        wrong("path = \"health\"", "`health` is no path");
        wrong("window = 65", "65 is out of range");
        wrong("window = 4, threshold = 5", "5 of 4 probes cannot be good");
        wrong("interval = \"1ms\"", "this is too short");
        wrong("expected = [99]", "99 is out of range");
        check("urls = \"h2://a\"\nprobe = { }", &["`probe` asks over HTTP/1"]);
    }

    #[test]
    fn retries_are_by_cause_and_method() {
        let retries = |lines: &str| origin(&format!("urls = \"http://a\"\n{lines}")).retries;
        assert_eq!(retries(""), RetrySettings::default());
        let some = retries("retries = 4\nretry_on = [\"timeout\", 502, 503]\nretry_methods = [\"GET\", \"POST\"]");
        let expect = RetrySettings {
            others_max: 4,
            on_connect: false,
            on_timeout: true,
            on_closed: false,
            statuses: vec![502, 503],
            methods: vec![Method::Get, Method::Post],
        };
        assert_eq!(some, expect);
        check("urls = \"http://a\"\nretries = 11", &["11 is out of range"]);
        check(
            "urls = \"http://a\"\nretry_on = [\"connects\", 200]",
            &["`connects` is not among the choices", "200 is out of range"],
        );
        check("urls = \"http://a\"\nretry_methods = [\"GETS\"]", &["`GETS` is not among the choices"]);
    }
}
