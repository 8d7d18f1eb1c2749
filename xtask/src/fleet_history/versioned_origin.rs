//! The origin of the fleet: a small site whose pages have a version each, which somebody raises. Only a purge brings a new version to a
//! cache in time, for the origin says that each page is fresh for an hour.
//!
//! A page has the version that it had when it was asked for, however long its answer takes: so fetches are under way while purges happen.

use std::io::{self, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::dice::Dice;
use crate::plain_exchange::{Message, Unframed};

pub const URLS: usize = 120;
pub const HOST: &str = "site.test";
/// URLs that lie beneath one folder.
const FOLDER_URLS: usize = 8;
/// How many tags there are of the kind that many pages carry, and of the one that few carry.
const TAGS_WIDE: usize = 12;
const TAGS_NARROW: usize = 40;

pub struct VersionedSite {
    versions: [AtomicU64; URLS],
    dice: Mutex<Dice>,
    /// Now and then an answer takes so long.
    late: Duration,
    pub asked: AtomicU64,
    /// By 304.
    pub confirmed: AtomicU64,
}

/// What a purge may mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgedPages {
    Url(usize),
    WideTag(usize),
    NarrowTag(usize),
    Folder(usize),
}

impl VersionedSite {
    /// Serves it on a port of the loopback, until the process ends.
    pub fn serve(seed: u64, late: Duration) -> io::Result<(Arc<VersionedSite>, u16)> {
        let site = Arc::new(VersionedSite {
            versions: std::array::from_fn(|_| AtomicU64::new(1)),
            dice: Mutex::new(Dice::of(seed)),
            late,
            asked: AtomicU64::new(0),
            confirmed: AtomicU64::new(0),
        });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let served = Arc::clone(&site);
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let site = Arc::clone(&served);
                thread::spawn(move || site.answer_all(socket));
            }
        });
        Ok((site, port))
    }

    /// Raises all of these pages, and says which versions they have now at least.
    pub fn raise(&self, pages: PurgedPages) -> Vec<(usize, u64)> {
        let meant = (0..URLS).filter(|&url| pages.mean(url));
        meant.map(|url| (url, self.versions[url].fetch_add(1, SeqCst) + 1)).collect()
    }

    fn answer_all(&self, mut socket: TcpStream) -> io::Result<()> {
        let mut from = BufReader::new(socket.try_clone()?);
        while let Some(request) = Message::read(&mut from, Unframed::Empty, true)? {
            let url = url_of(request.second_word()).ok_or_else(|| io::Error::other("there is no such page"))?;
            if request.start.starts_with("POST ") {
                // The writer has raised it before.
                thread::sleep(self.delay());
                socket.write_all(b"HTTP/1.1 204 No Content\r\n\r\n")?;
                continue;
            }
            let version = self.versions[url].load(SeqCst);
            let tag = format!("\"{version}\"");
            let is_confirmed = request.field("if-none-match") == Some(tag.as_str());
            self.asked.fetch_add(1, SeqCst);
            self.confirmed.fetch_add(u64::from(is_confirmed), SeqCst);
            thread::sleep(self.delay());
            let common = format!(
                "ETag: {tag}\r\nCache-Control: max-age=3600\r\nCache-Tag: w{}, n{}\r\n",
                url % TAGS_WIDE,
                url % TAGS_NARROW
            );
            let body = page(url, version);
            let answer = match is_confirmed {
                true => format!("HTTP/1.1 304 Not Modified\r\n{common}\r\n"),
                false => format!("HTTP/1.1 200 OK\r\n{common}Content-Length: {}\r\n\r\n{body}", body.len()),
            };
            socket.write_all(answer.as_bytes())?;
        }
        Ok(())
    }

    fn delay(&self) -> Duration {
        let mut dice = self.dice.lock().expect("nobody panicked");
        match dice.below(1_000) {
            0 => self.late,
            1..=20 => Duration::from_millis(dice.below(300)),
            21..=250 => Duration::from_millis(dice.below(40)),
            _ => Duration::ZERO,
        }
    }
}

impl PurgedPages {
    pub fn drawn(dice: &mut Dice) -> PurgedPages {
        match dice.below(20) {
            0..=11 => PurgedPages::Url(drawn_url(dice)),
            12..=13 => PurgedPages::WideTag(dice.below(TAGS_WIDE as u64) as usize),
            14..=16 => PurgedPages::NarrowTag(dice.below(TAGS_NARROW as u64) as usize),
            _ => PurgedPages::Folder(dice.below((URLS / FOLDER_URLS) as u64) as usize),
        }
    }

    fn mean(self, url: usize) -> bool {
        match self {
            PurgedPages::Url(meant) => url == meant,
            PurgedPages::WideTag(tag) => url % TAGS_WIDE == tag,
            PurgedPages::NarrowTag(tag) => url % TAGS_NARROW == tag,
            PurgedPages::Folder(folder) => url / FOLDER_URLS == folder,
        }
    }

    /// The word of an order by which they are selected, and what stands behind it.
    pub fn selector(self) -> (&'static str, serde_json::Value) {
        match self {
            PurgedPages::Url(url) => ("url", format!("http://{HOST}{}", path_of(url)).into()),
            PurgedPages::WideTag(tag) => ("tags", vec![format!("w{tag}")].into()),
            PurgedPages::NarrowTag(tag) => ("tags", vec![format!("n{tag}")].into()),
            PurgedPages::Folder(folder) => ("prefix", format!("{HOST}/f{folder}/").into()),
        }
    }
}

/// In every second draw one of few.
pub fn drawn_url(dice: &mut Dice) -> usize {
    match dice.below(2) {
        0 => dice.often_small(URLS as u64) as usize,
        _ => dice.below(URLS as u64) as usize,
    }
}

pub fn path_of(url: usize) -> String {
    format!("/f{}/p{url}", url / FOLDER_URLS)
}

fn url_of(path: &str) -> Option<usize> {
    let url = path.rsplit_once("/p")?.1.parse().ok()?;
    (url < URLS && path == path_of(url)).then_some(url)
}

fn page(url: usize, version: u64) -> String {
    format!("version {version} of {}\n", path_of(url))
}

/// The version that a body of this page's says.
pub fn version_in(body: &[u8], url: usize) -> Option<u64> {
    let text = std::str::from_utf8(body).ok()?;
    let version = text.strip_prefix("version ")?.split(' ').next()?.parse().ok()?;
    (text == page(url, version)).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_found_by_its_path_and_known_by_its_body() {
        for url in 0..URLS {
            assert_eq!(url_of(&path_of(url)), Some(url));
            assert_eq!(version_in(page(url, 30).as_bytes(), url), Some(30));
            assert_eq!(version_in(page(url, 30).as_bytes(), url + 1), None);
        }
        assert_eq!(url_of("/f0/p8"), None);
        assert_eq!(url_of("/f15/p120"), None);
        assert_eq!(version_in(b"version 3 of /f0/p7\nand more", 7), None);
    }

    fn check(pages: PurgedPages, expect: &[usize], selector: &str) {
        let meant: Vec<usize> = (0..URLS).filter(|&url| pages.mean(url)).collect();
        assert_eq!(meant, expect);
        let (word, value) = pages.selector();
        assert_eq!(format!("{word} {value}"), selector);
    }

    #[test]
    fn an_order_means_the_pages_that_are_raised() {
        check(PurgedPages::Url(9), &[9], r#"url "http://site.test/f1/p9""#);
        check(PurgedPages::NarrowTag(3), &[3, 43, 83], r#"tags ["n3"]"#);
        check(PurgedPages::WideTag(5), &[5, 17, 29, 41, 53, 65, 77, 89, 101, 113], r#"tags ["w5"]"#);
        check(PurgedPages::Folder(1), &[8, 9, 10, 11, 12, 13, 14, 15], r#"prefix "site.test/f1/""#);
    }
}
