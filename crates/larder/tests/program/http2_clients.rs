//! HTTP/2 to clients: curl over TLS, and the client of the crate `h2` by prior knowledge, which shares no code with larder's.

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::process::Command;
    use std::sync::mpsc;
    use std::time::Duration;

    use bytes::Bytes;
    use h2::client::{self, SendRequest};
    use http::{HeaderMap, Request, Response};

    use crate::peer_process::wait_for;
    use crate::tls_site::{NAME, TlsSite, pattern};

    const H2C: &str = "[[listen]]\naddress = \"127.0.0.1:0\"\nh2c = true";

    /// A connection by prior knowledge, whose windows begin with so many bytes.
    async fn connect(site: &TlsSite, window: u32) -> SendRequest<Bytes> {
        let socket = tokio::net::TcpStream::connect(site.second()).await.unwrap();
        let mut builder = client::Builder::new();
        builder.initial_window_size(window).initial_connection_window_size(1 << 20);
        let (client, connection) = builder.handshake(socket).await.unwrap();
        tokio::spawn(async move {
            let _ = connection.await;
        });
        client.ready().await.unwrap()
    }

    fn request(method: &str, path: &str) -> Request<()> {
        Request::builder().method(method).uri(format!("http://{NAME}{path}")).body(()).unwrap()
    }

    /// Takes a body with its trailers, and gives windows back as it comes.
    async fn whole(response: Response<h2::RecvStream>) -> Result<(u16, Vec<u8>, Option<HeaderMap>), h2::Error> {
        let status = response.status().as_u16();
        let (mut body, mut all) = (response.into_body(), Vec::new());
        while let Some(piece) = body.data().await {
            let piece = piece?;
            body.flow_control().release_capacity(piece.len())?;
            all.extend_from_slice(&piece);
        }
        Ok((status, all, body.trailers().await?))
    }

    async fn get(client: &SendRequest<Bytes>, path: &str) -> Result<(u16, Vec<u8>), h2::Error> {
        let mut client = client.clone().ready().await?;
        let (response, _) = client.send_request(request("GET", path), true)?;
        whole(response.await?).await.map(|(status, body, _)| (status, body))
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
    }

    fn curl(site: &TlsSite, words: &[&str]) -> String {
        let at = format!("{NAME}:{}:127.0.0.1", site.tls.port());
        let authority = site.directory.join("site.pem");
        let mut command = Command::new("curl");
        command.args(["-sS", "--http2", "--max-time", "20", "--resolve", &at, "--cacert"]).arg(authority).args(words);
        let output = command.output().expect("curl is installed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    #[test]
    fn curl_agrees_upon_it_and_is_served_from_the_store() {
        let site = TlsSite::start("", "");
        let url = |path: &str| format!("https://{NAME}:{}{path}", site.tls.port());
        let body = site.directory.join("body");
        let into = ["-o", body.to_str().unwrap(), "-D", "-"];
        for expect in ["fwd=uri-miss; stored", "hit; ttl="] {
            let head = curl(&site, &[&into[..], &[&url("/bytes/6221")]].concat());
            assert!(head.starts_with("HTTP/2 200") && head.contains(expect), "{head}");
            assert!(std::fs::read(&body).unwrap() == pattern(6221));
        }
        let head = curl(&site, &["-I", &url("/bytes/6221")]);
        assert!(head.starts_with("HTTP/2 200") && head.contains("content-length: 6221"), "{head}");
        let head = curl(&site, &[&into[..], &["-r", "10-19", &url("/bytes/6221")]].concat());
        assert!(head.starts_with("HTTP/2 206") && std::fs::read(&body).unwrap() == pattern(6221)[10..20], "{head}");
        let sent = site.directory.join("sent");
        std::fs::write(&sent, pattern(3 << 20)).unwrap();
        let upload = format!("@{}", sent.display());
        curl(&site, &[&into[..], &["--data-binary", &upload, &url("/echo")]].concat());
        assert!(std::fs::read(&body).unwrap() == pattern(3 << 20), "an upload comes back whole");
        let metric = site.metric("larder_http2_connections_total");
        assert!(metric >= 5, "{metric}");
    }

    #[test]
    fn many_streams_are_answered_side_by_side_whatever_their_windows() {
        let site = TlsSite::start("", H2C);
        runtime().block_on(async {
            for window in [1_000, 65_535, 1 << 20] {
                let client = connect(&site, window).await;
                let lengths = [0, 1, 6221, 16_375, 16_376, 123_784, 2 << 20];
                let tasks: Vec<_> = (0..70)
                    .map(|n| {
                        let (client, length) = (client.clone(), lengths[n % lengths.len()]);
                        tokio::spawn(async move {
                            let (status, body) = get(&client, &format!("/bytes/{length}")).await.unwrap();
                            assert!(status == 200 && body == pattern(length), "{length} by {window}");
                        })
                    })
                    .collect();
                for task in tasks {
                    task.await.unwrap();
                }
            }
        });
    }

    #[test]
    fn an_upload_of_unknown_length_with_trailers_arrives() {
        let site = TlsSite::start("", H2C);
        runtime().block_on(async {
            let mut client = connect(&site, 65_535).await.ready().await.unwrap();
            let asked = request("POST", "/echo");
            let (response, mut body) = client.send_request(asked, false).unwrap();
            body.send_data(Bytes::from(pattern(40_000)), false).unwrap();
            let mut trailers = HeaderMap::new();
            trailers.insert("x-sum", "1".parse().unwrap());
            body.send_trailers(trailers).unwrap();
            let (status, answer, _) = whole(response.await.unwrap()).await.unwrap();
            assert!(status == 200 && answer == pattern(40_000), "{status}");
            assert_eq!(get(&client, "/bytes/5").await.unwrap(), (200, pattern(5)));
        });
    }

    #[test]
    fn a_stream_that_is_given_up_is_in_nobodys_way() {
        let site = TlsSite::start("", H2C);
        runtime().block_on(async {
            let client = connect(&site, 65_535).await;
            for round in 0..20 {
                let mut given_up = client.clone().ready().await.unwrap();
                let (response, mut asked) = given_up.send_request(request("GET", "/bytes/20000000"), true).unwrap();
                if round % 2 == 0 {
                    let mut body = response.await.unwrap().into_body();
                    assert!(body.data().await.unwrap().is_ok());
                }
                asked.send_reset(h2::Reason::CANCEL);
                assert_eq!(get(&client, "/bytes/6221").await.unwrap(), (200, pattern(6221)));
            }
        });
    }

    #[test]
    fn an_answer_that_is_cut_ends_by_a_reset() {
        let site = TlsSite::start("", H2C);
        runtime().block_on(async {
            let client = connect(&site, 65_535).await;
            let mut asking = client.clone().ready().await.unwrap();
            let (response, _) = asking.send_request(request("GET", "/cut"), true).unwrap();
            let cut = whole(response.await.unwrap()).await.unwrap_err();
            assert_eq!(cut.reason(), Some(h2::Reason::INTERNAL_ERROR));
            assert_eq!(get(&client, "/bytes/5").await.unwrap(), (200, pattern(5)));
        });
    }

    #[test]
    fn a_request_over_a_limit_is_refused_alone() {
        let site =
            TlsSite::start("", &format!("{H2C}\n[limits]\nrequest_body_bytes_max = \"1KB\"\nrequest_fields_max = 20"));
        runtime().block_on(async {
            let client = connect(&site, 65_535).await;
            let mut asking = client.clone().ready().await.unwrap();
            let mut many = request("GET", "/bytes/1");
            (0..30).for_each(|n| assert_eq!(many.headers_mut().append("x-many", n.into()), n > 0));
            let (response, _) = asking.send_request(many, true).unwrap();
            assert_eq!(whole(response.await.unwrap()).await.unwrap().0, 431);
            let mut asking = client.clone().ready().await.unwrap();
            let mut large = request("POST", "/echo");
            large.headers_mut().insert("content-length", 5_000.into());
            let (response, mut body) = asking.send_request(large, false).unwrap();
            // The refusal needs the head alone: it may have closed the stream before the body is given to it.
            let _ = body.send_data(Bytes::from(pattern(5_000)), true);
            assert_eq!(whole(response.await.unwrap()).await.unwrap().0, 413);
            assert_eq!(get(&client, "/bytes/5").await.unwrap(), (200, pattern(5)));
        });
    }

    #[test]
    fn a_client_that_opens_no_window_is_given_up_and_in_nobodys_way() {
        let limits = format!("{H2C}\n[limits]\nsend_timeout = \"1s\"");
        let site = TlsSite::start("", &limits);
        runtime().block_on(async {
            let stalled = connect(&site, 0).await;
            let tasks: Vec<_> = (0..90)
                .map(|_| {
                    let client = stalled.clone();
                    tokio::spawn(async move { get(&client, "/bytes/123784").await })
                })
                .collect();
            let good = connect(&site, 65_535).await;
            for _ in 0..20 {
                assert_eq!(get(&good, "/bytes/6221").await.unwrap(), (200, pattern(6221)));
            }
            for task in tasks {
                assert!(task.await.unwrap().is_err(), "it is reset");
            }
        });
    }

    #[test]
    fn a_drain_lets_streams_finish_and_opens_no_more() {
        let site = TlsSite::start("", H2C);
        runtime().block_on(async {
            let client = connect(&site, 65_535).await;
            let mut asking = client.clone().ready().await.unwrap();
            let (response, _) = asking.send_request(request("GET", "/bytes/20000000"), true).unwrap();
            let response = response.await.unwrap();
            site.signal("TERM");
            tokio::time::sleep(Duration::from_millis(300)).await;
            let (_, body, _) = whole(response).await.unwrap();
            assert!(body == pattern(20_000_000), "what was under way comes whole");
            let refused = loop {
                match get(&client, "/bytes/5").await {
                    Ok((200, _)) => tokio::time::sleep(Duration::from_millis(50)).await,
                    other => break other,
                }
            };
            assert!(refused.is_err(), "{refused:?}");
        });
    }

    #[test]
    fn what_is_no_frame_ends_the_connection_with_a_word() {
        let site = TlsSite::start("", H2C);
        let mut client = TcpStream::connect(site.second()).unwrap();
        client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nGET / HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer);
        assert!(answer.windows(16).any(|word| word == b"settings-missing"), "{answer:?}");
        wait_for("it is counted", || site.metric("larder_http2_failed_total") == 1);
    }

    #[test]
    fn who_speaks_http1_there_is_served_as_ever() {
        let site = TlsSite::start("", H2C);
        let answer = crate::subject::get(site.second(), "/bytes/5").unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }

    fn echo_in_capitals(stream: &mut TcpStream) {
        let mut piece = [0; 8 << 10];
        loop {
            let length = stream.read(&mut piece).unwrap_or(0);
            let is_over = length == 0 || piece[length - 1] == b'.';
            if stream.write_all(&piece[..length].to_ascii_uppercase()).is_err() || is_over {
                return;
            }
        }
    }

    /// An origin that switches protocols for `/socket` and sends back what it hears in capitals, until it hears a full stop; that answers
    /// 200 in place of it for `/stays`, and 403 else. What it was asked comes through the channel.
    fn switching_origin() -> (SocketAddr, mpsc::Receiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, (asked, heard)) = (listener.local_addr().unwrap(), mpsc::channel());
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (mut head, mut byte) = (Vec::new(), [0]);
                while !head.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).is_ok() {
                    head.push(byte[0]);
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                asked.send(head).unwrap();
                let answer = match path.as_str() {
                    "/socket" => {
                        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                         Sec-WebSocket-Accept: x\r\nSec-WebSocket-Protocol: chat\r\n\r\nHELLO"
                    }
                    "/stays" => "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage",
                    _ => "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno",
                };
                stream.write_all(answer.as_bytes()).unwrap();
                if path == "/socket" {
                    echo_in_capitals(&mut stream);
                }
            }
        });
        (address, heard)
    }

    fn extended_connect(path: &str, protocol: &'static str) -> Request<()> {
        let mut request = request("CONNECT", path);
        request.headers_mut().insert("sec-websocket-version", "13".parse().unwrap());
        request.extensions_mut().insert(h2::ext::Protocol::from_static(protocol));
        request
    }

    #[test]
    fn a_websocket_goes_through_a_stream_beside_others() {
        let (origin, heard) = switching_origin();
        let mut site = TlsSite::start("", H2C);
        let echo = site.origin.to_string();
        site.change(|config| config.replace(&echo, &origin.to_string()));
        runtime().block_on(async {
            let client = connect(&site, 1 << 16).await;
            // Behind an answer the client has read the settings.
            assert_eq!(get(&client, "/other").await.unwrap().0, 403);
            heard.recv().unwrap();
            assert!(client.is_extended_connect_protocol_enabled());
            let open = |path: &'static str, protocol| {
                let client = client.clone();
                async move {
                    let (response, stream) =
                        client.ready().await.unwrap().send_request(extended_connect(path, protocol), false).unwrap();
                    (response.await.unwrap(), stream)
                }
            };
            let (response, mut up) = open("/socket", "websocket").await;
            assert_eq!(response.status(), 200);
            assert_eq!(response.headers().get("sec-websocket-protocol").unwrap(), "chat");
            assert!(response.headers().get("sec-websocket-accept").is_none(), "of a key that the client did not send");
            let asked = heard.recv().unwrap().to_ascii_lowercase();
            for line in
                ["get /socket http/1.1", "connection: upgrade", "upgrade: websocket", "sec-websocket-version: 13"]
            {
                assert!(asked.contains(&format!("{line}\r\n")), "{asked}");
            }
            let key = asked.lines().find_map(|line| line.strip_prefix("sec-websocket-key: ")).expect("a key");
            assert_eq!(key.len(), 24, "sixteen bytes");

            // More than any window, in both directions at once; then the origin's end, which is a stream's end.
            let said = Bytes::from(vec![b'a'; 300_000]);
            let sends = async {
                let mut rest = said.clone();
                while !rest.is_empty() {
                    up.reserve_capacity(rest.len());
                    let room = std::future::poll_fn(|cx| up.poll_capacity(cx)).await.unwrap().unwrap();
                    up.send_data(rest.split_to(room.min(rest.len())), false).unwrap();
                }
                up.send_data(Bytes::from_static(b"."), false).unwrap();
            };
            let (_, came) = tokio::join!(sends, whole(response));
            let (_, came, _) = came.unwrap();
            assert_eq!(came.len(), 5 + 300_000 + 1);
            assert!(came.starts_with(b"HELLOAAAA") && came.ends_with(b"AAA."));

            // An origin that does not switch: its success would say that the tunnel is there.
            let (response, _up) = open("/stays", "websocket").await;
            assert_eq!(response.status(), 502);
            let (response, _up) = open("/other", "websocket").await;
            assert_eq!(whole(response).await.unwrap().1, b"no");
            let (response, _up) = open("/socket", "other").await;
            assert_eq!(response.status(), 501);
        });
        assert_eq!(site.metric("larder_pipes_total"), 1);
    }

    #[test]
    fn a_websocket_ends_with_its_client_and_with_its_time() {
        let (origin, heard) = switching_origin();
        let mut site = TlsSite::start("", &format!("{H2C}\n[limits]\ntunnel_idle_timeout = \"1s\""));
        let echo = site.origin.to_string();
        site.change(|config| config.replace(&echo, &origin.to_string()));
        runtime().block_on(async {
            let client = connect(&site, 1 << 16).await;
            for leaves in [true, false] {
                let mut client = client.clone().ready().await.unwrap();
                let (response, mut up) = client.send_request(extended_connect("/socket", "websocket"), false).unwrap();
                let response = response.await.unwrap();
                heard.recv().unwrap();
                if leaves {
                    up.send_reset(h2::Reason::CANCEL);
                } else {
                    assert!(whole(response).await.is_err(), "it was not ended by either side");
                }
                wait_for("the tunnel is closed", || site.metric("larder_tunnels_open") == 0);
            }
        });
    }

    #[test]
    fn no_success_of_a_program_passes_for_a_tunnel() {
        let vcl = std::env::temp_dir().join(format!("larder-tunnel-{}.vcl", std::process::id()));
        std::fs::write(&vcl, "vcl 4.1; backend default none; sub vcl_recv { return (synth(200)); }").unwrap();
        let log = vcl.with_extension("log");
        let kept = format!("[log]\npath = \"{}\"", log.display());
        let site = TlsSite::start("", &format!("{H2C}\n[policy]\nvcl = \"{}\"\n{kept}", vcl.display()));
        runtime().block_on(async {
            let client = connect(&site, 1 << 16).await;
            assert_eq!(get(&client, "/").await.unwrap().0, 200);
            let mut client = client.ready().await.unwrap();
            let (response, _up) = client.send_request(extended_connect("/", "websocket"), false).unwrap();
            let (status, body, _) = whole(response.await.unwrap()).await.unwrap();
            assert_eq!((status, body.len()), (502, 0));
        });
        wait_for("the log says what was sent", || {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            text.lines().any(|line| line.contains(" 502 0 ") && line.ends_with(" no-tunnel"))
        });
        std::fs::remove_file(&vcl).and_then(|()| std::fs::remove_file(&log)).unwrap();
    }

    #[test]
    fn who_ended_the_clients_tls_says_so_and_strangers_do_not() {
        for (trusted, is_believed) in [("", false), ("trusted_proxies = [\"127.0.0.1\"]\n", true)] {
            let mut site = TlsSite::start("", H2C);
            site.change(|config| format!("{trusted}{config}"));
            runtime().block_on(async {
                let mut client = connect(&site, 1 << 16).await.ready().await.unwrap();
                let request = Request::builder().uri(format!("https://{NAME}/fields")).body(()).unwrap();
                let (response, _) = client.send_request(request, true).unwrap();
                match response.await {
                    Err(refused) => assert!(!is_believed && refused.reason() == Some(h2::Reason::PROTOCOL_ERROR)),
                    Ok(answer) => {
                        let (_, asked, _) = whole(answer).await.unwrap();
                        let asked = String::from_utf8_lossy(&asked).into_owned();
                        assert!(is_believed && asked.contains("X-Forwarded-Proto: https"), "{asked}");
                    }
                }
            });
        }
    }
}
