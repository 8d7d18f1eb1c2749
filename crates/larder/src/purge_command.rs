//! `larder purge`, `refresh`, `warm` and `tags`: what a running larder drops, makes stale, fetches again, or fetches before anybody asks,
//! and which tags what is stored carries.
//!
//! All of it is ordered at the admin address; what is meant, and what comes of it, is decided there.

mod invalidation_text;
mod purge_flags;
mod refresh_progress;

use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::admin_client::{AdminFlags, ask, ask_json, encoded, exchange_json, failed};
use crate::bounded_file;
use crate::limits::{WARM_BODY_BYTES_MAX, WARM_URLS_MAX};
pub use crate::purge_command::purge_flags::{
    PURGE_EXAMPLES, PurgeFlags, REFRESH_EXAMPLES, RefreshFlags, TAGS_EXAMPLES, TagsFlags, WARM_EXAMPLES, WarmFlags,
};

pub fn purge(flags: &PurgeFlags) -> ExitCode {
    match flags.orders() {
        Ok(orders) => {
            each(&orders, |order| ask_json(&flags.remote, "POST", "/purge", order, invalidation_text::purged))
        }
        Err(why) => failed(&why),
    }
}

pub fn tags(flags: &TagsFlags) -> ExitCode {
    let TagsFlags { prefix, limit, remote } = flags;
    let target = format!("/tags?prefix={}&limit={limit}", encoded(prefix));
    ask(remote, "GET", &target, b"", invalidation_text::tags)
}

pub fn refresh(flags: &RefreshFlags) -> ExitCode {
    match flags.orders() {
        Ok(orders) => each(&orders, |order| begin(flags.follow(), "/refresh", order)),
        Err(why) => failed(&why),
    }
}

pub fn warm(flags: &WarmFlags) -> ExitCode {
    let order = match (&flags.urls, &flags.sitemap) {
        (Some(file), _) => listed(file).map(|urls| json!({ "urls": urls, "rate": flags.rate })),
        (None, Some(url)) => Ok(json!({ "sitemap": url, "rate": flags.rate })),
        (None, None) => Err("say what is to be fetched: --urls FILE or --sitemap URL".to_owned()),
    };
    match order {
        Ok(order) => begin(flags.follow(), "/warm", &order),
        Err(why) => failed(&why),
    }
}

/// How a run that was begun is followed.
struct Follow<'a> {
    larder: &'a AdminFlags,
    json: bool,
    /// Only begun.
    no_wait: bool,
}

/// Begins a run, says so, and waits for its end.
fn begin(follow: Follow<'_>, target: &str, order: &Value) -> ExitCode {
    let Follow { larder, json, no_wait } = follow;
    let (status, answer) = match exchange_json(larder, "POST", target, Some(order)) {
        Ok(answered) => answered,
        Err(why) => return failed(&why),
    };
    if status >= 300 {
        return failed(answer["error"].as_str().unwrap_or("the admin address refused it"));
    }
    let ends_here = no_wait || answer["dry_run"] == true || answer["queued"] == 0;
    // A closed pipe must not end this with a panic; the exit code still tells.
    let mut out = std::io::stdout();
    match (json, ends_here) {
        (true, true) => drop(writeln!(out, "{answer}")),
        (true, false) => {}
        (false, _) => drop(out.write_all(invalidation_text::begun(&answer).as_bytes())),
    }
    if ends_here {
        return ExitCode::SUCCESS;
    }
    match refresh_progress::wait(larder) {
        Ok(progress) => {
            let text = if json { format!("{progress}\n") } else { invalidation_text::ended(&progress) };
            let _ = out.write_all(text.as_bytes());
            let is_good = progress["stopped"].is_null() && progress["failed"] == 0;
            if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(why) => failed(&why),
    }
}

/// One after another, up to the first that fails.
fn each(orders: &[Value], mut give: impl FnMut(&Value) -> ExitCode) -> ExitCode {
    let first_failure = orders.iter().map(&mut give).find(|code| *code != ExitCode::SUCCESS);
    first_failure.unwrap_or(ExitCode::SUCCESS)
}

/// A URL a line; empty lines and those that begin with # are none.
fn listed(file: &Path) -> Result<Vec<String>, String> {
    let text = match file.to_str() {
        Some("-") => {
            let mut text = String::new();
            let read = std::io::stdin().take(WARM_BODY_BYTES_MAX).read_to_string(&mut text);
            read.map(|_| text).map_err(|why| why.to_string())
        }
        _ => bounded_file::read_text(file, WARM_BODY_BYTES_MAX).map_err(|why| why.to_string()),
    };
    let text = text.map_err(|why| format!("{}: {why}", file.display()))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let urls: Vec<String> = lines.map(str::to_owned).collect();
    match urls.len() {
        0 => Err(format!("{}: there is no URL in it", file.display())),
        many if many > WARM_URLS_MAX => {
            Err(format!("{}: it has {many} URLs, and {WARM_URLS_MAX} are fetched at a time", file.display()))
        }
        _ => Ok(urls),
    }
}
