//! Files that change while they are asked for and sent. Each test stands for one row of spec/bad-input/k.toml.

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileExt, symlink};
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use crate::bad_input::start_lane;
    use crate::lane::Lane;
    use crate::raw_client::Client;
    use crate::site_folder::{self, SECRET};
    use crate::subject::{Kind, Setup};

    /// Larger than what all socket buffers of a connection take.
    const BIG_BYTES: u64 = 48 << 20;
    const SWAPS_COUNT: usize = 400;

    fn start(limits: &str) -> Lane {
        let setup = Setup { files: true, limits: limits.to_owned(), ..Setup::default() };
        start_lane(Kind::Larder, &setup)
    }

    fn ask(path: &str) -> String {
        format!("GET {path} HTTP/1.1¶Host: files.test¶¶")
    }

    /// K04: the link that a request goes through leads in and out by turns; no answer ever comes from outside.
    #[test]
    fn a_link_that_is_swapped_never_leads_out() {
        let mut lane = start("open_files_max = 0\n");
        let www = lane.subject.directory.join("www");
        let outside = lane.subject.directory.join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("x"), SECRET).unwrap();
        let done = AtomicBool::new(false);
        let statuses = std::thread::scope(|scope| {
            scope.spawn(|| {
                let next = www.join("next");
                while !done.load(Ordering::Relaxed) {
                    for to in [&outside, Path::new("real")] {
                        symlink(to, &next).unwrap();
                        std::fs::rename(&next, www.join("swapped")).unwrap();
                    }
                }
            });
            let mut statuses = std::collections::BTreeMap::new();
            for _ in 0..SWAPS_COUNT {
                let mut clients = vec![lane.connect(&ask("/swapped/x"))];
                let whole = |client: &Client| client.received.ends_with(b"inside") || client.received.ends_with(b".\n");
                lane.wait_until(&mut clients, crate::lane::PATIENCE_MS, |_, clients| whole(&clients[0]));
                let text = String::from_utf8_lossy(&clients[0].received).into_owned();
                assert!(!text.contains(SECRET), "{text}");
                *statuses.entry(text.split(' ').nth(1).unwrap_or("none").to_owned()).or_insert(0) += 1;
                clients[0].close();
            }
            done.store(true, Ordering::Relaxed);
            statuses
        });
        println!("{statuses:?}");
        assert!(statuses.contains_key("200") && statuses.keys().all(|s| s == "200" || s == "403"), "{statuses:?}");
    }

    /// Asks for a big file and takes nothing of it; returns when the program has sent what it can.
    fn begin_big(lane: &mut Lane) -> (std::fs::File, Vec<Client>) {
        let path = lane.subject.directory.join("www/big");
        let file = std::fs::File::options().create(true).truncate(true).read(true).write(true).open(path).unwrap();
        let piece = vec![b'a'; 1 << 20];
        (0..BIG_BYTES >> 20).for_each(|at| file.write_all_at(&piece, at << 20).unwrap());
        let mut client = lane.connect(&ask("/big"));
        client.deaf = true;
        let mut clients = vec![client];
        assert!(lane.settle(&mut clients));
        // The head is there: the file is open, and its length said.
        let (socket, _) = clients[0].watch().expect("it waits for an answer");
        let mut head = [PollFd::from_borrowed_fd(socket, PollFlags::IN)];
        poll(&mut head, Some(&Timespec { tv_sec: 10, tv_nsec: 0 })).expect("a poll");
        assert!(lane.settle(&mut clients));
        (file, clients)
    }

    fn body_of(client: &Client) -> &[u8] {
        let head = client.received.windows(4).position(|window| window == b"\r\n\r\n");
        head.map_or(&[], |head| &client.received[head + 4..])
    }

    /// K07: what was promised does not come, so the connection ends; what came was in the file.
    #[test]
    fn a_file_cut_short_while_it_is_sent_ends_the_connection() {
        let mut lane = start("");
        let (file, mut clients) = begin_big(&mut lane);
        file.set_len(1 << 20).unwrap();
        clients[0].deaf = false;
        lane.expect(&mut clients, "the end of the connection", |_, clients| clients[0].end.is_some());
        let body = body_of(&clients[0]);
        assert!((body.len() as u64) < BIG_BYTES && body.iter().all(|&b| b == b'a'), "{} bytes", body.len());
        lane.ask(&mut Vec::new(), &ask("/file.txt"), 200);
    }

    /// K07: one that grows is sent as long as it was, one that is replaced as it was.
    #[test]
    fn a_file_that_grows_or_is_replaced_is_sent_as_it_was() {
        let mut lane = start("");
        for replaces in [false, true] {
            let (file, mut clients) = begin_big(&mut lane);
            if replaces {
                let www = lane.subject.directory.join("www");
                std::fs::write(www.join("new"), vec![b'b'; BIG_BYTES as usize]).unwrap();
                std::fs::rename(www.join("new"), www.join("big")).unwrap();
            } else {
                file.write_all_at(&vec![b'b'; 1 << 20], BIG_BYTES).unwrap();
            }
            clients[0].deaf = false;
            lane.expect(&mut clients, "the whole file", |_, clients| {
                clients[0].end.is_some() || body_of(&clients[0]).len() as u64 >= BIG_BYTES
            });
            let body = body_of(&clients[0]);
            assert!(body.len() as u64 == BIG_BYTES && body.iter().all(|&b| b == b'a'), "{} bytes", body.len());
            assert!(clients[0].end.is_none());
            clients[0].close();
        }
    }

    /// K10: more entries than the limit are not listed, and what is read of the directory is bounded by it.
    #[test]
    fn a_directory_with_too_many_entries_is_not_listed() {
        let limit = site_folder::ENTRIES_MANY;
        for (limits, status) in [(limit, 200), (limit - 1, 403)] {
            let mut lane = start(&format!("listing_entries_max = {limits}\n"));
            lane.ask(&mut Vec::new(), &ask("/listed/many/"), status);
        }
    }
}
