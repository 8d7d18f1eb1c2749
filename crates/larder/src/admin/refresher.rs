//! Fetches URLs through larder itself, so many a second: what is stored and to be fetched again, or what is to be there before anybody
//! asks. One run at a time. It ends when origins answer with errors: whoever is down is not helped by more requests.

use std::sync::Arc;
use std::time::Duration;

use message::Scheme;
use parking_lot::Mutex;
use proxy::{Proxy, PurgeOrder, PurgeSelector, Softness};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::task::JoinSet;

use super::purge_body::head_for;
use super::sitemap;
use crate::limits::{
    REFRESH_AT_ONCE, REFRESH_FAILURES_MAX, REFRESH_PATIENCE, SITEMAP_BYTES_MAX, SITEMAPS_MAX, WARM_URLS_MAX,
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
}

/// What asking for a URL came to.
type Fetched = Result<u16, String>;

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
            let ended = refresher.go(&proxy, run).await;
            let mut progress = refresher.0.lock();
            progress.is_running = false;
            progress.stopped = ended.err();
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
        })
    }

    /// The error is why it ended early.
    async fn go(&self, proxy: &Proxy, run: Run) -> Result<(), String> {
        let urls = match run.sitemap {
            None => run.urls,
            Some(url) => {
                let listed = listed(proxy, &url).await?;
                self.0.lock().queued = listed.len();
                listed
            }
        };
        let asks_origin = run.refreshes.is_some() && proxy.heeds_no_cache();
        if let Some(selector) = run.refreshes.filter(|_| !asks_origin) {
            make_stale(proxy, selector).await?;
        }
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
            under_way.spawn(async move { fetch(&proxy, &url, asks_origin).await });
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
            Ok(status) if status < 500 => progress.failed_in_a_row = 0,
            Ok(status) => progress.note_failure(format!("status {status}")),
            Err(why) => progress.note_failure(why),
        }
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
        if self.failed_in_a_row == REFRESH_FAILURES_MAX {
            self.stopped = Some(format!("{REFRESH_FAILURES_MAX} URLs in a row failed, the last with {why}"));
        }
    }
}

/// All at once, where a request cannot have the origin asked by itself.
async fn make_stale(proxy: &Proxy, selector: PurgeSelector) -> Result<(), String> {
    let (soft, proxy) = (Some(Softness::default()), proxy.clone());
    let order = PurgeOrder { selector, soft, is_dry: false, samples_max: 0 };
    let purged = tokio::task::spawn_blocking(move || proxy.purge(&order)).await;
    purged.map_err(|why| why.to_string())?.map(drop)
}

/// Asks for a URL as a browser does, and reads all of what comes.
async fn fetch(proxy: &Proxy, url: &str, asks_origin: bool) -> Fetched {
    let mut lines =
        "Accept-Encoding: gzip, deflate, br, zstd\r\nUser-Agent: larder\r\nConnection: close\r\n".to_owned();
    if asks_origin {
        lines.push_str("Cache-Control: no-cache\r\n");
    }
    let (scheme, head) = head_for(url)?;
    within_time(async {
        let mut stream = asked(proxy, scheme, &head, &lines).await?;
        let (mut bytes, mut begins) = (vec![0; 16 << 10], Vec::new());
        loop {
            match stream.read(&mut bytes).await? {
                0 => return Ok(status_of(&begins)),
                read if begins.len() < STATUS_END => begins.extend_from_slice(&bytes[..read]),
                _ => {}
            }
        }
    })
    .await
}

/// `HTTP/1.1 200`
const STATUS_END: usize = 12;

/// What ends before it has begun is a failure of larder's own.
fn status_of(begins: &[u8]) -> u16 {
    let digits = begins.get(9..STATUS_END).and_then(|digits| std::str::from_utf8(digits).ok());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(599)
}

async fn asked(proxy: &Proxy, scheme: Scheme, head: &[u8], lines: &str) -> std::io::Result<UnixStream> {
    let mut stream = UnixStream::from_std(proxy.connect_within(scheme)?)?;
    let end = head.len().saturating_sub(2);
    stream.write_all(&[&head[..end], lines.as_bytes(), b"\r\n"].concat()).await?;
    Ok(stream)
}

async fn within_time<T>(asking: impl Future<Output = std::io::Result<T>>) -> Result<T, String> {
    match tokio::time::timeout(REFRESH_PATIENCE, asking).await {
        Ok(asked) => asked.map_err(|why| why.to_string()),
        Err(_) => Err(format!("no end of the answer in {} s", REFRESH_PATIENCE.as_secs())),
    }
}

/// The URLs of a sitemap, and of those that it names.
async fn listed(proxy: &Proxy, url: &str) -> Result<Vec<String>, String> {
    let (mut sitemaps, mut urls, mut read) = (vec![url.to_owned()], Vec::new(), 0);
    while let Some(url) = sitemaps.pop() {
        read += 1;
        let text = whole(proxy, &url).await.map_err(|why| format!("the sitemap {url}: {why}"))?;
        let page = sitemap::read(&text).ok_or_else(|| format!("{url} is no sitemap: it names no <loc>"))?;
        let room =
            if page.is_index { SITEMAPS_MAX.saturating_sub(read + sitemaps.len()) } else { WARM_URLS_MAX - urls.len() };
        let into = if page.is_index { &mut sitemaps } else { &mut urls };
        into.extend(page.urls.into_iter().filter(|url| head_for(url).is_ok()).take(room));
    }
    Ok(urls)
}

/// The body of a page that is not coded, and ends with its connection.
async fn whole(proxy: &Proxy, url: &str) -> Result<String, String> {
    let (scheme, head) = head_for(url)?;
    let at = head.windows(11).position(|bytes| bytes == b" HTTP/1.1\r\n").unwrap_or_default();
    let head = [&head[..at], b" HTTP/1.0\r\n", &head[at + 11..]].concat();
    let answer = within_time(async {
        let mut answer = Vec::new();
        let stream = asked(proxy, scheme, &head, "User-Agent: larder\r\n").await?;
        stream.take(SITEMAP_BYTES_MAX).read_to_end(&mut answer).await?;
        Ok(answer)
    })
    .await?;
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").ok_or("there is no answer")?;
    match status_of(&answer) {
        200 => Ok(String::from_utf8_lossy(&answer[end + 4..]).into_owned()),
        status => Err(format!("it is answered with {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_from_what_comes_first() {
        assert_eq!(status_of(b"HTTP/1.1 304 Not Modified\r\n"), 304);
        assert_eq!(status_of(b"HTTP/1.1 2"), 599);
        assert_eq!(status_of(b""), 599);
    }

    #[test]
    fn a_run_ends_when_so_many_fail_one_after_another() {
        let refresher = Refresher::default();
        let fails = |times: usize| (0..times).for_each(|_| refresher.note(Ok(503)));
        fails(REFRESH_FAILURES_MAX - 1);
        refresher.note(Ok(404));
        fails(REFRESH_FAILURES_MAX - 1);
        assert_eq!(refresher.may_go_on(), Ok(()));
        refresher.note(Err("cut off".to_owned()));
        assert!(refresher.may_go_on().unwrap_err().contains("cut off"));
        assert_eq!(refresher.progress_json()["failed"], 2 * REFRESH_FAILURES_MAX - 1);
    }
}
