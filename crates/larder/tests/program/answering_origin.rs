//! The plain part of an origin on loopback: connections that stay, and a head at a time. What is answered is its user's affair.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

/// Answers each head by what `answer` makes of it; `None` closes the connection without a word.
pub fn start(answer: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> SocketAddr {
    start_with(move |stream, head| answer(head).is_some_and(|text| stream.write_all(text.as_bytes()).is_ok()))
}

/// The same, where the answer is no text, or no whole one: `answer` writes it, and says whether the connection may be used again.
pub fn start_with(answer: impl Fn(&mut TcpStream, &str) -> bool + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port is free");
    let address = listener.local_addr().expect("a bound listener has an address");
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            std::thread::spawn(move || serve(stream, &*answer));
        }
    });
    address
}

fn serve(mut stream: TcpStream, answer: &dyn Fn(&mut TcpStream, &str) -> bool) {
    let _ = stream.set_nodelay(true);
    let (mut received, mut part) = (Vec::new(), [0; 16 << 10]);
    loop {
        match stream.read(&mut part) {
            Ok(0) | Err(_) => return,
            Ok(n) => received.extend_from_slice(&part[..n]),
        }
        while let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&received[..end]).into_owned();
            received.drain(..end + 4);
            if !answer(&mut stream, &head) {
                return;
            }
        }
    }
}

/// The second word of a request's head.
pub fn target_of(head: &str) -> &str {
    head.split(' ').nth(1).unwrap_or_default()
}
