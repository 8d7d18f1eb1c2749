//! The flags of `larder purge`, `refresh`, `warm` and `tags`, and the orders that they stand for.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use fleet::Acknowledge;
use serde_json::{Value, json};

use super::Follow;
use crate::admin_client::RemoteFlags;
use crate::limits::{PURGE_SAMPLES_MAX, REFRESH_RATE, REFRESH_RATE_MAX, TAGS_LISTED, TAGS_LISTED_MAX};
use crate::quantities::parse_duration;

/// What is meant.
#[derive(Clone, Debug, Default, Args)]
#[group(id = "selector", required = true, multiple = false)]
pub struct SelectorFlags {
    /// URLs, with all their variants, as a client asks for them: http:// or https://, with the host
    #[arg(value_name = "URL")]
    pub urls: Vec<String>,

    /// Everything whose URL begins so: HOST/PATH, or /PATH for any host
    #[arg(long, value_name = "PREFIX")]
    pub prefix: Option<String>,

    /// Everything of a host: NAME, or NAME:PORT
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,

    /// Everything whose URL is like this: HOST/PATH, or /PATH, in which * stands for any text
    #[arg(long, value_name = "PATTERN")]
    pub glob: Option<String>,

    /// Everything whose HOST/PATH?QUERY matches this regular expression
    #[arg(long, value_name = "REGEX")]
    pub regex: Option<String>,

    /// Everything that meets these conditions, as `larder ban` takes them
    #[arg(long, value_name = "EXPRESSION")]
    pub ban: Option<String>,

    /// Everything that carries this tag (Surrogate-Key, Cache-Tag, xkey); repeatable: any of them
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
}

#[derive(Clone, Debug, Default, Args)]
pub struct PurgeFlags {
    #[command(flatten)]
    pub selector: SelectorFlags,

    /// Everything of a cache group (Cache-Groups of the responses) of --origin
    #[arg(long, value_name = "NAME", requires = "origin", group = "selector")]
    pub group: Option<String>,

    /// The site whose group it is, as http://NAME
    #[arg(long, value_name = "URL", requires = "group")]
    pub origin: Option<String>,

    /// Everything
    #[arg(long, group = "selector")]
    pub all: bool,

    /// Only make it stale: it may be served while it is fetched again, as its grace allows
    #[arg(long, conflicts_with = "group")]
    pub soft: bool,

    /// With --soft: for so long at most, such as 1h
    #[arg(long, value_name = "TIME", requires = "soft", value_parser = parse_duration)]
    pub grace: Option<Duration>,

    /// Do nothing: say how many would go, and show some
    #[arg(long)]
    pub dry_run: bool,

    /// Show so many of them [default: 10 in a dry run, else none]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=PURGE_SAMPLES_MAX as u64))]
    pub samples: Option<u64>,

    /// In a fleet: say that it is done when this node has done it, when it is in the log, too, or when every node has applied it
    /// [default: as [fleet] acknowledge says]
    #[arg(long, value_name = "WHEN", value_parser = Acknowledge::ALL.map(Acknowledge::word))]
    pub acknowledge: Option<String>,

    /// As --acknowledge applied
    #[arg(long, conflicts_with = "acknowledge")]
    pub applied: bool,

    #[command(flatten)]
    pub remote: RemoteFlags,
}

#[derive(Clone, Debug, Default, Args)]
pub struct RefreshFlags {
    #[command(flatten)]
    pub selector: SelectorFlags,

    /// Ask for so many a second
    #[arg(long, value_name = "N", default_value_t = REFRESH_RATE,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(REFRESH_RATE_MAX)))]
    pub rate: u32,

    /// Do nothing: say how many would be fetched, and show some
    #[arg(long)]
    pub dry_run: bool,

    /// Begin it, and do not wait for its end
    #[arg(long)]
    pub no_wait: bool,

    #[command(flatten)]
    pub remote: RemoteFlags,
}

#[derive(Clone, Debug, Default, Args)]
#[group(id = "list", required = true, multiple = false, args = ["urls", "sitemap"])]
pub struct WarmFlags {
    /// A file with a URL a line, or - for standard input
    #[arg(long, value_name = "FILE")]
    pub urls: Option<PathBuf>,

    /// A sitemap, or an index of sitemaps, of a site that larder serves; larder itself is asked for it
    #[arg(long, value_name = "URL")]
    pub sitemap: Option<String>,

    /// Ask for so many a second
    #[arg(long, value_name = "N", default_value_t = REFRESH_RATE,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(REFRESH_RATE_MAX)))]
    pub rate: u32,

    /// Begin it, and do not wait for its end
    #[arg(long)]
    pub no_wait: bool,

    #[command(flatten)]
    pub remote: RemoteFlags,
}

#[derive(Clone, Debug, Default, Args)]
pub struct TagsFlags {
    /// Only those that begin so
    #[arg(long, value_name = "PREFIX", default_value = "", hide_default_value = true)]
    pub prefix: String,

    /// So many at most, those that most responses carry first
    #[arg(long, value_name = "N", default_value_t = TAGS_LISTED as u64,
          value_parser = clap::value_parser!(u64).range(1..=TAGS_LISTED_MAX as u64))]
    pub limit: u64,

    #[command(flatten)]
    pub remote: RemoteFlags,
}

impl SelectorFlags {
    /// An order each URL, or one for all else.
    fn orders(&self) -> Vec<Value> {
        let texts = [
            ("prefix", &self.prefix),
            ("host", &self.host),
            ("glob", &self.glob),
            ("regex", &self.regex),
            ("ban", &self.ban),
        ];
        let given = texts.into_iter().find_map(|(word, text)| Some(json!({ word: text.as_ref()? })));
        match given {
            Some(order) => vec![order],
            None if !self.tags.is_empty() => vec![json!({ "tags": self.tags })],
            None => self.urls.iter().map(|url| json!({ "url": url })).collect(),
        }
    }
}

impl PurgeFlags {
    /// What is sent. The error is a sentence.
    pub(super) fn orders(&self) -> Result<Vec<Value>, String> {
        let mut orders = match (&self.group, self.all) {
            (Some(group), _) => vec![json!({ "group": group, "origin": self.origin })],
            (None, true) => vec![json!({ "all": true })],
            (None, false) => self.selector.orders(),
        };
        for order in &mut orders {
            for (word, is_set) in [("soft", self.soft), ("dry_run", self.dry_run)] {
                if is_set {
                    order[word] = true.into();
                }
            }
            if let Some(grace) = self.grace {
                order["grace_s"] = grace.as_secs().into();
            }
            if let Some(samples) = self.samples {
                order["samples"] = samples.into();
            }
            let applied = self.applied.then(|| Acknowledge::Applied.word());
            if let Some(acknowledge) = self.acknowledge.as_deref().or(applied) {
                order["acknowledge"] = acknowledge.into();
            }
        }
        nothing_is_wrong(orders)
    }
}

impl RefreshFlags {
    pub(super) fn orders(&self) -> Result<Vec<Value>, String> {
        // One run at a time: several URLs are one.
        let mut orders = match self.selector.urls.len() {
            0 | 1 => self.selector.orders(),
            _ => vec![json!({ "urls": self.selector.urls })],
        };
        for order in &mut orders {
            order["rate"] = self.rate.into();
            if self.dry_run {
                order["dry_run"] = true.into();
            }
        }
        nothing_is_wrong(orders)
    }

    pub(super) fn follow(&self) -> Follow<'_> {
        Follow { larder: &self.remote.larder, json: self.remote.json, no_wait: self.no_wait }
    }
}

impl WarmFlags {
    pub(super) fn follow(&self) -> Follow<'_> {
        Follow { larder: &self.remote.larder, json: self.remote.json, no_wait: self.no_wait }
    }
}

fn nothing_is_wrong(orders: Vec<Value>) -> Result<Vec<Value>, String> {
    match orders.is_empty() {
        true => Err("say what is meant: a URL, --prefix, --host, --glob, --regex, --ban or --tag".to_owned()),
        false => Ok(orders),
    }
}

pub const PURGE_EXAMPLES: &str = "\
Examples:
  larder purge http://www.example.org/news/1 --config larder.toml     one page, with all its variants
  larder purge --tag product-7 --tag menu --config larder.toml        what carries one of these tags
  larder purge --prefix www.example.org/news/ --dry-run --config larder.toml
  larder purge --glob '/*/print?*' --soft --config larder.toml        stale from now on, fetched again when asked for
  larder purge --regex '^(www\\.)?example\\.org/(de|fr)/' --config larder.toml
  larder purge --host www.example.org --admin unix:/run/larder-admin.sock
  larder purge --ban 'obj.http.content-type ~ ^image/ && obj.age > 1h' --config larder.toml
  larder purge --group news --origin http://www.example.org --config larder.toml
  larder purge --all --config larder.toml
  larder purge --tag product-7 --applied --config larder.toml         in a fleet: when every node has applied it

What is purged is not served again, by any core, from memory or from a disk, before or after a restart: that holds when the command ends.
docs/purge.md says which way is for what, and docs/invalidation.md what each reaches and costs.

Exit codes: 0 done, whether anything was stored or not; 1 refused, a disk does not acknowledge it, or no larder answers; 2 wrong flags.";

pub const REFRESH_EXAMPLES: &str = "\
Examples:
  larder refresh http://www.example.org/ --config larder.toml
  larder refresh --tag menu --rate 50 --config larder.toml
  larder refresh --prefix www.example.org/news/ --no-wait --config larder.toml

What is stored is served on until its origin has answered. It ends early when ten in a row have failed. The run goes on when this command is
ended.

Exit codes: 0 all are fetched; 1 one failed, it ended early, was refused, or no larder answers; 2 wrong flags.";

pub const WARM_EXAMPLES: &str = "\
Examples:
  larder warm --urls urls.txt --config larder.toml
  larder warm --sitemap https://www.example.org/sitemap.xml --rate 20 --config larder.toml

larder asks itself for each URL as a client would, so that what may be stored is there before anybody asks. It ends early when ten in a row
have failed. The run goes on when this command is ended.

Exit codes: 0 all are fetched; 1 one failed, it ended early, was refused, or no larder answers; 2 wrong flags.";

pub const TAGS_EXAMPLES: &str = "\
Examples:
  larder tags --config larder.toml
  larder tags --prefix product- --limit 20 --config larder.toml

Tags are the words of Surrogate-Key, Cache-Tag and xkey. Counted is what lies in memory.

Exit codes: 0 listed; 1 refused, or no larder answers; 2 wrong flags.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_become_orders() {
        let one = |word: &str| Some(word.to_owned());
        let check = |flags: PurgeFlags, expect: Value| assert_eq!(json!(flags.orders().unwrap()), expect);
        let of = |selector: SelectorFlags| PurgeFlags { selector, ..PurgeFlags::default() };
        let urls = ["http://a/", "http://b/"].map(str::to_owned).to_vec();
        check(of(SelectorFlags { urls, ..Default::default() }), json!([{"url": "http://a/"}, {"url": "http://b/"}]));
        let tags = ["x", "y"].map(str::to_owned).to_vec();
        check(of(SelectorFlags { tags, ..Default::default() }), json!([{"tags": ["x", "y"]}]));
        let soft = PurgeFlags {
            soft: true,
            grace: Some(Duration::from_secs(60)),
            samples: Some(3),
            ..of(SelectorFlags { prefix: one("a/b"), ..Default::default() })
        };
        check(soft, json!([{"prefix": "a/b", "soft": true, "grace_s": 60, "samples": 3}]));
        let group = PurgeFlags { group: one("g"), origin: one("http://a"), dry_run: true, ..PurgeFlags::default() };
        check(group, json!([{"group": "g", "origin": "http://a", "dry_run": true}]));
        check(PurgeFlags { all: true, ..PurgeFlags::default() }, json!([{"all": true}]));
        assert!(PurgeFlags::default().orders().is_err());
        let refresh = RefreshFlags {
            selector: SelectorFlags { ban: one("c"), ..Default::default() },
            rate: 7,
            ..Default::default()
        };
        assert_eq!(json!(refresh.orders().unwrap()), json!([{"ban": "c", "rate": 7}]));
        let urls = ["http://a/", "http://b/"].map(str::to_owned).to_vec();
        let of_several =
            RefreshFlags { selector: SelectorFlags { urls, ..Default::default() }, rate: 7, ..Default::default() };
        assert_eq!(json!(of_several.orders().unwrap()), json!([{"urls": ["http://a/", "http://b/"], "rate": 7}]));
    }
}
