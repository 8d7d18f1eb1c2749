//! The site of `cargo xtask memory`: what a path means, and an origin that answers so. Both ends know the bytes, so that an
//! answer can be judged wherever it came from.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use crate::dice::Dice;
use crate::memory_line::end_of_head;

/// Every body is a stretch of these.
const NOISE_BYTES: usize = 16 << 20;
const SMALL_BYTES: (u64, u64) = (200, 2_000);
/// Powers of two, so that small ones are as likely as large ones: 32 KiB to 8 MiB.
const LARGE_SHIFT: (u64, u64) = (15, 23);

/// Pages that are all as long.
const EVEN_BYTES: usize = 2_000_000;

/// Of a request; a longer one is none of ours.
const HEAD_BYTES_MAX: usize = 8 << 10;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// A few hundred bytes.
    Small(u64),
    /// Up to 8 MiB.
    Large(u64),
    /// The same, and not to be stored.
    Private(u64),
    /// [`EVEN_BYTES`] each.
    Even(u64),
}

pub struct Site {
    noise: Vec<u8>,
}

impl Page {
    pub fn path(self) -> String {
        match self {
            Page::Small(number) => format!("/s/{number}"),
            Page::Large(number) => format!("/l/{number}"),
            Page::Private(number) => format!("/p/{number}"),
            Page::Even(number) => format!("/e/{number}"),
        }
    }

    fn of(path: &str) -> Option<Page> {
        let (kind, number) = path.split_at_checked(3)?;
        let number = number.parse().ok()?;
        match kind {
            "/s/" => Some(Page::Small(number)),
            "/l/" => Some(Page::Large(number)),
            "/p/" => Some(Page::Private(number)),
            "/e/" => Some(Page::Even(number)),
            _ => None,
        }
    }
}

impl Site {
    pub fn new() -> Arc<Site> {
        let mut dice = Dice::of(1);
        let noise = (0..NOISE_BYTES / 8).flat_map(|_| dice.next().to_le_bytes()).collect();
        Arc::new(Site { noise })
    }

    pub fn body(&self, page: Page) -> &[u8] {
        let (number, large) = match page {
            Page::Small(number) => (number, false),
            Page::Large(number) | Page::Private(number) => (number, true),
            Page::Even(number) => {
                let from = (number as usize).wrapping_mul(4_093) % (NOISE_BYTES - EVEN_BYTES);
                return &self.noise[from..from + EVEN_BYTES];
            }
        };
        let mut dice = Dice::of(number << 1 | u64::from(large));
        let length = if large {
            let power = 1 << (LARGE_SHIFT.0 + dice.below(LARGE_SHIFT.1 - LARGE_SHIFT.0));
            power + dice.below(power)
        } else {
            SMALL_BYTES.0 + dice.below(SMALL_BYTES.1 - SMALL_BYTES.0)
        };
        let from = dice.below(NOISE_BYTES as u64 - length) as usize;
        &self.noise[from..from + length as usize]
    }

    /// An origin at this path, which nothing ends but the end of the task.
    pub fn serve(self: &Arc<Site>, path: &Path) -> io::Result<()> {
        let listener = UnixListener::bind(path)?;
        let site = Arc::clone(self);
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let site = Arc::clone(&site);
                // Whoever hangs up has what it wanted.
                thread::spawn(move || drop(site.answer_all(socket)));
            }
        });
        Ok(())
    }

    fn answer_all(&self, mut socket: UnixStream) -> io::Result<()> {
        let (mut asked, mut had) = (vec![0; HEAD_BYTES_MAX], 0);
        let mut answer = Vec::new();
        loop {
            let Some(end) = end_of_head(&asked[..had]) else {
                match socket.read(&mut asked[had..])? {
                    0 => return Ok(()),
                    read => had += read,
                }
                continue;
            };
            let head = std::str::from_utf8(&asked[..end]).map_err(|_| io::ErrorKind::InvalidData)?;
            let page = head.split(' ').nth(1).and_then(Page::of).ok_or(io::ErrorKind::InvalidData)?;
            asked.copy_within(end..had, 0);
            had -= end;
            let body = self.body(page);
            let life = if matches!(page, Page::Private(_)) { "no-store" } else { "max-age=1000000" };
            answer.clear();
            write!(
                answer,
                "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nCache-Control: {life}\r\n\
                 Content-Length: {}\r\n\r\n",
                body.len()
            )?;
            let (with_head, rest) = body.split_at(body.len().min(SMALL_BYTES.1 as usize));
            answer.extend_from_slice(with_head);
            socket.write_all(&answer)?;
            socket.write_all(rest)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_known_by_its_path_and_has_one_body() {
        let site = Site::new();
        for page in [Page::Small(7), Page::Large(7), Page::Private(7), Page::Even(7)] {
            assert_eq!(Page::of(&page.path()), Some(page));
            assert_eq!(site.body(page).len(), site.body(page).len());
        }
        assert_eq!((Page::of("/x/1"), Page::of("/s/"), Page::of("/")), (None, None, None));
        let lengths: Vec<usize> = (0..200).map(|number| site.body(Page::Large(number)).len()).collect();
        assert!(lengths.iter().any(|&n| n < 64 << 10) && lengths.iter().any(|&n| n > 4 << 20), "{lengths:?}");
    }
}
