//! Fetches URLs through larder itself, so many a second: what is stored and to be fetched again, or what is to be there before anybody
//! asks. One run at a time. It ends when origins answer with errors: whoever is down is not helped by more requests.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use proxy::{Proxy, PurgeOrder, PurgeSelector, Softness};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::asked_within::{self, Asking};
use super::looking::looking;
use super::purge_body::head_for;
use super::refresh_verdict::{Verdict, Way, judged};
use super::sitemap;
use crate::limits::{
    REFRESH_AT_ONCE, REFRESH_FAILURES_MAX, REFRESH_STALE_LOOKS_MAX, REFRESH_STALE_PAUSE, SITEMAP_BYTES_MAX,
    SITEMAPS_MAX, WARM_URLS_MAX,
};

/// What is fetched.
pub struct Run {
    urls: Vec<String>,
    /// What is stored of these is to be confirmed by the origin, or replaced.
    refreshes: Option<PurgeSelector>,
    sitemap: Option<String>,
    rate: u32,
}

impl Run {
    pub fn refresh(urls: Vec<String>, selector: PurgeSelector, rate: u32) -> Run {
        Run { urls, refreshes: Some(selector), sitemap: None, rate }
    }

    pub fn warm(urls: Vec<String>, rate: u32) -> Run {
        Run { urls, refreshes: None, sitemap: None, rate }
    }

    pub fn sitemap(url: String, rate: u32) -> Run {
        Run { urls: Vec::new(), refreshes: None, sitemap: Some(url), rate }
    }
}

/// How far the run has come, and the last one when there is none.
#[derive(Default)]
pub struct Refresher(Mutex<Progress>);

#[derive(Clone, Debug, Default)]
struct Progress {
    is_running: bool,
    is_to_end: bool,
    what: Option<&'static str>,
    queued: usize,
    done: usize,
    failed: usize,
    failed_in_a_row: usize,
    rate: u32,
    /// Why it ended before all was asked for.
    stopped: Option<String>,
    last_failure: Option<String>,
    /// Sentences for people.
    notes: Vec<String>,
}

/// What asking for a URL came to. The error says why it failed.
type Fetched = Result<(), String>;

/// Ends the run, however it ends.
struct EndsRun(Arc<Refresher>);

impl Drop for EndsRun {
    fn drop(&mut self) {
        let mut progress = self.0.0.lock();
        progress.is_running = false;
        if std::thread::panicking() {
            progress.stopped = Some("it ended in a panic, which stderr has".to_owned());
        }
    }
}

impl Refresher {
    /// False if one runs.
    pub fn begin(refresher: &Arc<Refresher>, proxy: &Proxy, run: Run) -> bool {
        let mut progress = refresher.0.lock();
        if progress.is_running {
            return false;
        }
        *progress = Progress {
            is_running: true,
            what: Some(if run.refreshes.is_some() { "refresh" } else { "warm" }),
            queued: run.urls.len(),
            rate: run.rate,
            ..Progress::default()
        };
        drop(progress);
        let (refresher, proxy) = (Arc::clone(refresher), proxy.clone());
        tokio::spawn(async move {
            let _ends_run = EndsRun(Arc::clone(&refresher));
            let ended = refresher.go(&proxy, run).await;
            refresher.0.lock().stopped = ended.err();
        });
        true
    }

    pub fn end(&self) {
        self.0.lock().is_to_end = true;
    }

    pub fn progress_json(&self) -> Value {
        let progress = self.0.lock();
        json!({
            "running": progress.is_running,
            "what": progress.what,
            "queued": progress.queued,
            "done": progress.done,
            "failed": progress.failed,
            "rate": progress.rate,
            "stopped": progress.stopped,
            "last_failure": progress.last_failure,
            "notes": progress.notes,
        })
    }

    /// The error is why it ended early.
    async fn go(&self, proxy: &Proxy, run: Run) -> Result<(), String> {
        let urls = match run.sitemap {
            None => run.urls,
            Some(url) => {
                let listed = self.listed(proxy, url).await?;
                self.0.lock().queued = listed.len();
                listed
            }
        };
        let way = match run.refreshes {
            None => Way::Warm,
            Some(_) if proxy.is_under_program() => Way::Miss,
            Some(_) if proxy.heeds_no_cache() => Way::NoCache,
            Some(selector) => {
                make_stale(proxy, selector).await?;
                Way::MadeStale
            }
        };
        let mut turns = tokio::time::interval(Duration::from_secs(1) / run.rate);
        turns.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut under_way = JoinSet::new();
        for url in urls {
            turns.tick().await;
            while under_way.len() >= REFRESH_AT_ONCE {
                self.note_next(&mut under_way).await;
            }
            self.may_go_on()?;
            let proxy = proxy.clone();
            under_way.spawn(async move { fetch(&proxy, &url, way).await });
            while let Some(fetched) = under_way.try_join_next() {
                self.note(fetched.unwrap_or_else(|why| Err(why.to_string())));
            }
        }
        while !under_way.is_empty() {
            self.note_next(&mut under_way).await;
        }
        self.may_go_on()
    }

    async fn note_next(&self, under_way: &mut JoinSet<Fetched>) {
        if let Some(fetched) = under_way.join_next().await {
            self.note(fetched.unwrap_or_else(|why| Err(why.to_string())));
        }
    }

    fn note(&self, fetched: Fetched) {
        let mut progress = self.0.lock();
        progress.done += 1;
        match fetched {
            Ok(()) => progress.failed_in_a_row = 0,
            Err(why) => progress.note_failure(why),
        }
    }

    /// The URLs of a sitemap, and of those that it names, each once.
    async fn listed(&self, proxy: &Proxy, url: String) -> Result<Vec<String>, String> {
        let mut sitemaps = vec![url];
        let (mut known, mut known_urls): (HashSet<String>, HashSet<String>) = Default::default();
        let (mut urls, mut left_out) = (Vec::new(), 0);
        known.extend(sitemaps.iter().cloned());
        while let Some(url) = sitemaps.pop() {
            self.may_go_on()?;
            let text = page(proxy, &url).await.map_err(|why| format!("the sitemap {url}: {why}"))?;
            let listed = sitemap::read(&text).ok_or_else(|| format!("{url} is no sitemap: it names no <loc>"))?;
            for url in listed.urls.into_iter().filter(|url| head_for(url).is_ok()) {
                match listed.is_index {
                    true if known.contains(&url) => {}
                    true if known.len() >= SITEMAPS_MAX => left_out += 1,
                    true => {
                        known.insert(url.clone());
                        sitemaps.push(url);
                    }
                    false if urls.len() < WARM_URLS_MAX && known_urls.insert(url.clone()) => urls.push(url),
                    false => {}
                }
            }
        }
        let mut notes = Vec::new();
        if left_out > 0 {
            notes.push(format!("{SITEMAPS_MAX} sitemaps were read, and {left_out} more are named, which were not"));
        }
        if urls.len() == WARM_URLS_MAX {
            notes.push(format!("{WARM_URLS_MAX} URLs are one run: if more are listed they are not fetched"));
        }
        self.0.lock().notes = notes;
        Ok(urls)
    }

    fn may_go_on(&self) -> Result<(), String> {
        let progress = self.0.lock();
        match &progress.stopped {
            Some(why) if progress.failed_in_a_row >= REFRESH_FAILURES_MAX => Err(why.clone()),
            _ if progress.is_to_end => Err("it was ended".to_owned()),
            _ => Ok(()),
        }
    }
}

impl Progress {
    fn note_failure(&mut self, why: String) {
        self.failed += 1;
        self.failed_in_a_row += 1;
        self.last_failure = Some(why.clone());
        if self.failed_in_a_row == REFRESH_FAILURES_MAX {
            self.stopped = Some(format!("{REFRESH_FAILURES_MAX} URLs in a row failed, the last: {why}"));
        }
    }
}

/// All at once, where a request cannot have the origin asked by itself.
async fn make_stale(proxy: &Proxy, selector: PurgeSelector) -> Result<(), String> {
    let (soft, proxy) = (Some(Softness::default()), proxy.clone());
    let order = PurgeOrder { selector, soft, is_dry: false, samples_max: 0 };
    let purged = looking(move || proxy.purge(&order)).await;
    purged.map_err(|(_, why)| why)?.map(drop)
}

/// Asks for a URL as a browser does, and reads all of what comes.
async fn fetch(proxy: &Proxy, url: &str, way: Way) -> Fetched {
    let lines = match way {
        Way::NoCache => "Accept-Encoding: gzip, deflate, br, zstd\r\nCache-Control: no-cache\r\n",
        _ => "Accept-Encoding: gzip, deflate, br, zstd\r\n",
    };
    let asking = Asking { refreshes: way == Way::Miss, lines, body_bytes_max: 0 };
    let failed = |why: String| format!("{url}: {why}");
    for _ in 0..REFRESH_STALE_LOOKS_MAX {
        let answered = asked_within::ask(proxy, url, asking).await.map_err(failed)?;
        match judged(answered.status, answered.cache_status.as_deref(), way) {
            Verdict::Done => return Ok(()),
            Verdict::Failed(why) => return Err(failed(why)),
            Verdict::StillStale => tokio::time::sleep(REFRESH_STALE_PAUSE).await,
        }
    }
    let waited = REFRESH_STALE_PAUSE * REFRESH_STALE_LOOKS_MAX as u32;
    Err(failed(format!("its origin has brought nothing in {} s, and what is stale is served on", waited.as_secs())))
}

/// The text of a page that is not coded.
async fn page(proxy: &Proxy, url: &str) -> Result<String, String> {
    let asking = Asking { body_bytes_max: SITEMAP_BYTES_MAX, ..Asking::default() };
    let answered = asked_within::ask(proxy, url, asking).await?;
    match answered.status {
        200 => Ok(String::from_utf8_lossy(&answered.body).into_owned()),
        status => Err(format!("it is answered with {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_when_so_many_fail_one_after_another() {
        let refresher = Refresher::default();
        let fails = |times: usize| (0..times).for_each(|_| refresher.note(Err("status 503".to_owned())));
        fails(REFRESH_FAILURES_MAX - 1);
        refresher.note(Ok(()));
        fails(REFRESH_FAILURES_MAX - 1);
        assert_eq!(refresher.may_go_on(), Ok(()));
        refresher.note(Err("cut off".to_owned()));
        assert!(refresher.may_go_on().unwrap_err().contains("cut off"));
        assert_eq!(refresher.progress_json()["failed"], 2 * REFRESH_FAILURES_MAX - 1);
    }

    #[test]
    fn a_run_that_ends_in_a_panic_is_over() {
        let refresher = Arc::new(Refresher::default());
        refresher.0.lock().is_running = true;
        let its = Arc::clone(&refresher);
        let ended = std::thread::spawn(move || {
            let _ends_run = EndsRun(its);
            panic!("as a test wants it");
        });
        assert!(ended.join().is_err());
        let told = refresher.progress_json();
        assert!(told["running"] == false && told["stopped"].to_string().contains("panic"), "{told}");
    }
}
