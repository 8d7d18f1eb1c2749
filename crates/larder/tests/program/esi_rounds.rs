//! How many parts of a page an origin hears of before it has answered the first: a page of many missing parts takes as long as a few
//! rounds of that, and not as all of them one after the other.
//!
//! The origin answers none of a round before all of it has been asked for, and then takes its time: nothing is measured here.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

const PARTS: usize = 20;
const PART_TAKES: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(30);

/// What an origin has heard.
#[derive(Clone, Copy, Default)]
struct Heard {
    asked: usize,
    answered: usize,
    /// The most that were asked for and not answered, at any time.
    waiting_most: usize,
}

struct RoundsOrigin {
    address: SocketAddr,
    heard: Arc<(Mutex<Heard>, Condvar)>,
}

impl RoundsOrigin {
    /// It answers no part before so many were asked for.
    fn start(round: usize) -> RoundsOrigin {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port is free");
        let address = listener.local_addr().expect("it is bound");
        let heard: Arc<(Mutex<Heard>, Condvar)> = Arc::default();
        let for_all = Arc::clone(&heard);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let heard = Arc::clone(&for_all);
                std::thread::spawn(move || drop(serve(stream, &heard, round)));
            }
        });
        RoundsOrigin { address, heard }
    }

    fn heard(&self) -> Heard {
        *self.heard.0.lock().expect("no thread panics with it")
    }
}

fn serve(stream: TcpStream, (heard, has_changed): &(Mutex<Heard>, Condvar), round: usize) -> std::io::Result<()> {
    let mut from = BufReader::new(stream.try_clone()?);
    let mut to = stream;
    loop {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let target = line.split(' ').nth(1).unwrap_or_default().to_owned();
        while line.trim() != "" {
            line.clear();
            from.read_line(&mut line)?;
        }
        if target == "/page" {
            let page: String = (0..PARTS).map(|nth| format!("<esi:include src=\"/{nth}\"/>")).collect();
            let surrogate = "Surrogate-Control: content=\"ESI/1.0\"";
            write!(to, "HTTP/1.1 200 OK\r\n{surrogate}\r\nContent-Length: {}\r\n\r\n{page}", page.len())?;
            continue;
        }
        let mut now = heard.lock().expect("no thread panics with it");
        now.asked += 1;
        now.waiting_most = now.waiting_most.max(now.asked - now.answered);
        has_changed.notify_all();
        let (now, late) =
            has_changed.wait_timeout_while(now, PATIENCE, |now| now.asked < round).expect("no thread panics with it");
        drop(now);
        std::thread::sleep(PART_TAKES);
        heard.lock().expect("no thread panics with it").answered += 1;
        let status = if late.timed_out() { "503 Too Few" } else { "200 OK" };
        write!(to, "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{target}", target.len())?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::{Kind, Setup, Subject};

    /// The page, and what its origin has heard until it was whole.
    fn page(limits: &str, round: usize) -> (String, Heard) {
        let origin = RoundsOrigin::start(round);
        let setup =
            Setup { limits: limits.to_owned(), extra: "[esi]\npages = \"surrogate\"\n".to_owned(), ..Setup::default() };
        let subject = Subject::start(Kind::Larder, origin.address, &setup);
        let mut client = TcpStream::connect(subject.address).expect("it listens");
        client.set_read_timeout(Some(2 * PATIENCE)).expect("a socket has time-outs");
        client.write_all(b"GET /page HTTP/1.0\r\nHost: t.test\r\n\r\n").expect("it is sent");
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("it ends");
        (answer.split_once("\r\n\r\n").expect("a head").1.to_owned(), origin.heard())
    }

    fn whole() -> String {
        (0..PARTS).map(|nth| format!("/{nth}")).collect()
    }

    #[test]
    fn twenty_missing_parts_are_asked_for_in_one_round() {
        let (body, heard) = page("", PARTS);
        assert_eq!((body, heard.asked, heard.waiting_most), (whole(), PARTS, PARTS));
    }

    #[test]
    fn no_more_are_asked_for_at_a_time_than_may_be() {
        let (body, heard) = page("esi_ahead_max = 5\n", 5);
        assert_eq!((body, heard.asked, heard.waiting_most), (whole(), PARTS, 5));
    }
}
