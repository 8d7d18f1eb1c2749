//! Many small articles for tasks that measure what storing them costs: an origin of them, and whoever asks a cache for each of them once.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::memory_line::{Line, end_of_head};

/// Of every article.
pub const BODY: [u8; 300] = [b'x'; 300];
/// So many are asked for at a time, each over a connection of its own.
const LINES: usize = 16;
pub const PATIENCE: Duration = Duration::from_secs(30);

/// An origin; nothing ends it but the end of the task. `head_of`: the head of its answer to this request.
pub fn serve(path: &Path, head_of: fn(&[u8]) -> String) -> io::Result<()> {
    let listener = UnixListener::bind(path)?;
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            // Whoever hangs up has what it wanted.
            thread::spawn(move || drop(answer_all(socket, head_of)));
        }
    });
    Ok(())
}

fn answer_all(mut socket: UnixStream, head_of: fn(&[u8]) -> String) -> io::Result<()> {
    let (mut asked, mut had) = (vec![0; 8 << 10], 0);
    loop {
        match end_of_head(&asked[..had]) {
            Some(end) => {
                let answer = [head_of(&asked[..end]).as_bytes(), &BODY].concat();
                asked.copy_within(end..had, 0);
                had -= end;
                socket.write_all(&answer)?;
            }
            None => match socket.read(&mut asked[had..])? {
                0 => return Ok(()),
                read => had += read,
            },
        }
    }
}

/// Each once, over a few connections at a time.
pub fn ask_for_all(socket: &Path, objects: u64) -> io::Result<()> {
    let mut lines = Vec::new();
    for _ in 0..LINES {
        let socket = UnixStream::connect(socket)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        lines.push(Line::new(socket));
    }
    let mut number = 0;
    while number < objects {
        let round = LINES.min((objects - number) as usize);
        for line in &mut lines[..round] {
            write!(line.socket, "GET /articles/{number:08} HTTP/1.1\r\nHost: o.test\r\n\r\n")?;
            number += 1;
        }
        for line in &mut lines[..round] {
            let (status, length) = line.head()?;
            if status != 200 || !line.body_is(length, &BODY)? {
                return Err(io::Error::other(format!("an answer of {status} that is not the origin's")));
            }
        }
    }
    Ok(())
}
