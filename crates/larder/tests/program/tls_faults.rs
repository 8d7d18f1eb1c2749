//! Handshakes that go wrong (I08): in pieces, broken, repeated. Each costs its own connection and no other.

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpStream};
    use std::process::{Command, Stdio};
    use std::sync::Arc;
    use std::time::Duration;

    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, ClientConnection, StreamOwned};

    use crate::peer_process::wait_for;
    use crate::tls_site::{NAME, TlsSite, ask, pattern};

    /// Writes one byte at a time.
    struct Dripping(TcpStream);

    impl Write for Dripping {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.write(&bytes[..bytes.len().min(1)])
        }

        fn flush(&mut self) -> std::io::Result<()> {
            self.0.flush()
        }
    }

    impl Read for Dripping {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            self.0.read(into)
        }
    }

    fn session(config: &Arc<ClientConfig>) -> ClientConnection {
        ClientConnection::new(Arc::clone(config), ServerName::try_from(NAME).unwrap()).unwrap()
    }

    fn stream(site: &TlsSite) -> TcpStream {
        let stream = TcpStream::connect(site.tls).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    #[test]
    fn a_hello_in_single_bytes_is_understood() {
        let site = TlsSite::start("", "");
        let config = site.trusts("site.pem");
        let mut client = StreamOwned::new(session(&config), Dripping(stream(&site)));
        write!(client, "GET /bytes/9 HTTP/1.1\r\nHost: {NAME}\r\n\r\n").unwrap();
        let (head, body) = crate::tls_site::answer(&mut client).unwrap();
        assert!(head.starts_with("HTTP/1.1 200 ") && body == pattern(9), "{head}");
    }

    /// A ClientHello as it goes out, its record's head in front.
    fn hello(config: &Arc<ClientConfig>) -> Vec<u8> {
        let mut bytes = Vec::new();
        while session(config).write_tls(&mut bytes).unwrap() == 0 {}
        bytes
    }

    /// What larder says to this, and to the end of what is written: nothing, an alert, or a ServerHello.
    fn first_byte_of_answer(site: &TlsSite, bytes: &[u8]) -> Option<u8> {
        let mut stream = stream(site);
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        // A reset ends it as well.
        let _ = stream.read_to_end(&mut answer);
        answer.first().copied()
    }

    #[test]
    fn hellos_that_are_broken_end_their_own_connection_alone() {
        const ALERT: u8 = 0x15;
        let site = TlsSite::start("", "");
        let config = site.trusts("site.pem");
        let good = hello(&config);
        let mut inputs: Vec<Vec<u8>> = Vec::new();
        // Cut off, and with each byte of what is not random or a key changed.
        inputs.extend((0..good.len()).step_by(good.len() / 40).map(|length| good[..length].to_vec()));
        for at in (0..200).chain(good.len() - 60..good.len()) {
            let mut changed = good.clone();
            changed[at] ^= 0xff;
            inputs.push(changed);
        }
        for bytes in &inputs {
            let first = first_byte_of_answer(&site, bytes);
            assert!(matches!(first, None | Some(ALERT | 0x16 | b'H')), "{first:?} to {bytes:x?}");
        }
        // 16 KiB of protocols, none of them ours.
        let mut crowded = ClientConfig::clone(&config);
        crowded.alpn_protocols = (0..64).map(|number| vec![number; 250]).collect();
        let refused = site.connect(&Arc::new(crowded));
        assert!(refused.is_err_and(|why| why.to_string().contains("NoApplicationProtocol")));
        let heartbeat = [0x18, 3, 3, 0, 3, 1, 0x40, 0];
        let nothing = [0x16, 3, 1, 0, 0].repeat(5_000);
        let too_long = [[0x16, 3, 1, 0xff, 0xff].as_slice(), &[0; 70_000]].concat();
        let unending = [0x16, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff].into_iter().chain([3; 16_379]).collect::<Vec<u8>>();
        for (what, bytes) in [
            ("a heartbeat", heartbeat.to_vec()),
            ("records of nothing", nothing),
            ("a record over the limit", too_long),
            ("a hello of 16 MiB", unending.repeat(20)),
            ("data before a handshake", [0x17, 3, 3, 0, 1, 0].to_vec()),
            ("SSL 2", [0x80, 0x2e, 1, 0, 2, 0, 0x15, 0, 0, 0, 0x10].to_vec()),
        ] {
            let first = first_byte_of_answer(&site, &bytes);
            assert!(matches!(first, None | Some(ALERT | b'H')), "{what}: {first:?}");
        }
        assert_eq!(site.metric("larder_panics_total"), 0);
        let mut client = site.connect(&config).unwrap();
        assert_eq!(ask(&mut client, "/bytes/9").unwrap().1, pattern(9));
        drop(client);
        wait_for("all are gone", || site.metric("larder_connections_active") == 0);
    }

    #[test]
    fn nobody_negotiates_twice() {
        let site = TlsSite::start("", "");
        let at = site.tls.to_string();
        let mut openssl = Command::new("openssl")
            .args(["s_client", "-connect", &at, "-servername", NAME, "-tls1_2", "-legacy_renegotiation"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("openssl is installed");
        let mut stdin = openssl.stdin.take().unwrap();
        // A line with an R alone asks for it.
        stdin.write_all(b"R\n").unwrap();
        let output = openssl.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("RENEGOTIATING") && !output.status.success(), "{said}");
        drop(stdin);
        let mut client = site.connect(&site.trusts("site.pem")).unwrap();
        assert_eq!(ask(&mut client, "/bytes/9").unwrap().1, pattern(9));
    }
}
