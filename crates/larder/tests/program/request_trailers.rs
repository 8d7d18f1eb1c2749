//! What a client says behind its body, by the real program and on the wire: to origins it goes on only where it can be taken for no word of the
//! route.

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use crate::configured_larder::ConfiguredLarder;

    const ASKED: &str = "POST / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n\
                         4\r\nbody\r\n0\r\nX-User: root\r\n\r\n";

    /// What an origin is told, head to trailers, of a request to a route with these words.
    fn told(name: &str, words: &str) -> String {
        let folder = std::env::temp_dir().join(format!("larder-trailers-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = listener.local_addr().unwrap();
        let text = format!("[origin.app]\nurls = [\"http://{origin}\"]\n[[route]]\norigin = \"app\"\n{words}");
        let larder = ConfiguredLarder::start(&folder, "larder", &text);
        let reads = std::thread::spawn(move || {
            let (mut client, mut told) = (listener.accept().unwrap().0, Vec::new());
            let mut byte = [0];
            // The end of the head, and that of the trailers.
            while String::from_utf8_lossy(&told).matches("\r\n\r\n").count() < 2 {
                client.read_exact(&mut byte).unwrap();
                told.push(byte[0]);
            }
            client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").unwrap();
            String::from_utf8_lossy(&told).into_owned()
        });
        let mut client = TcpStream::connect(larder.address).unwrap();
        client.write_all(ASKED.as_bytes()).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        let _ = std::fs::remove_dir_all(&folder);
        reads.join().unwrap()
    }

    #[test]
    fn trailers_go_on_where_the_route_says_nothing_of_requests() {
        assert!(told("plain", "").ends_with("4\r\nbody\r\n0\r\nX-User: root\r\n\r\n"));
        let set = told("set", "request_headers = { set = { X-User = \"$remote_addr\" } }");
        assert!(set.contains("\r\nX-User: 127.0.0.1\r\n") && set.ends_with("4\r\nbody\r\n0\r\n\r\n"), "{set}");
    }
}
