//! Real redis-servers: over TLS, behind a user with a password, and behind a sentinel while the one that leads is lost.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use engines::EnginePlace;
use redis::{AsyncConnectionConfig, Cmd};

/// A process that ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn redis_server(port: u16, words: &[&str]) -> Process {
    let child = Command::new("redis-server")
        .args(words)
        .args(["--bind", "127.0.0.1"])
        .stdout(Stdio::null())
        .spawn()
        .expect("redis-server is installed by ./setup");
    until("it listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    Process(child)
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..3_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it never came to be that {what}");
}

fn folder(test: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("engines").join(test);
    let _ = std::fs::remove_dir_all(&folder); // it may not be there
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// What one command is answered over a new connection.
fn answer(place: &EnginePlace, words: &[&str]) -> Result<String, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let within = Some(Duration::from_secs(5));
        let config = AsyncConnectionConfig::new().set_connection_timeout(within).set_response_timeout(within);
        let mut connection = place.connection(&config).await?;
        let mut command = Cmd::new();
        words.iter().for_each(|word| {
            command.arg(word);
        });
        command.query_async(&mut connection).await.map_err(|why| engines::sentence(&why))
    })
}

fn openssl(folder: &Path, words: &str) {
    let done = Command::new("openssl").args(words.split(' ')).current_dir(folder).stderr(Stdio::null()).status();
    assert!(done.expect("openssl is installed").success(), "openssl {words}");
}

/// An authority, and a certificate for localhost that it has signed.
fn certificates(folder: &Path) {
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
    for authority in ["ca", "other"] {
        openssl(folder, &format!("req -x509 {key} -keyout {authority}.key -out {authority}.pem -subj /CN={authority}"));
    }
    openssl(
        folder,
        "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout redis.key -out redis.csr -subj /CN=localhost -addext subjectAltName=DNS:localhost",
    );
    openssl(
        folder,
        "x509 -req -in redis.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -copy_extensions copy -out redis.pem",
    );
}

#[test]
fn an_engine_is_spoken_to_over_tls_and_known_by_who_signed_for_it() {
    let folder = folder("tls");
    certificates(&folder);
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (port, pem, key, ca) = (free_port(), file("redis.pem"), file("redis.key"), file("ca.pem"));
    let text = port.to_string();
    let words = [
        "--port",
        "0",
        "--tls-port",
        &text,
        "--tls-cert-file",
        &pem,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &ca,
        "--tls-auth-clients",
        "no",
        "--save",
        "",
    ];
    let _redis = redis_server(port, &words);
    let place = |host: &str, authority: Option<&str>| {
        let authority = authority.map(|name| std::fs::read(folder.join(name)).unwrap());
        EnginePlace::new(&format!("rediss://{host}:{port}"), authority).unwrap()
    };
    assert_eq!(answer(&place("localhost", Some("ca.pem")), &["PING"]), Ok("PONG".to_owned()));
    for (host, authority) in [("localhost", Some("other.pem")), ("localhost", None), ("127.0.0.1", Some("ca.pem"))] {
        assert!(answer(&place(host, authority), &["PING"]).is_err(), "{host} {authority:?}");
    }
    let plain = EnginePlace::new(&format!("redis://localhost:{port}"), None).unwrap();
    assert!(answer(&plain, &["PING"]).is_err(), "nothing is said in the clear");
}

#[test]
fn a_user_with_a_password_may_do_what_the_engine_lets_it() {
    let port = free_port();
    let text = port.to_string();
    let fleet = "fleet on >s3cret ~{larder}:* +@scripting +@stream +get +set +incr";
    let mut words = vec!["--port", &text, "--save", "", "--user"];
    words.extend(fleet.split(' '));
    words.extend(["--user", "default", "off"]);
    let _redis = redis_server(port, &words);
    let place = |login: &str| EnginePlace::new(&format!("redis://{login}127.0.0.1:{port}"), None).unwrap();
    let user = place("fleet:s3cret@");
    assert!(user.has_password() && !place("").has_password());
    assert_eq!(answer(&user, &["SET", "{larder}:epoch", "e"]), Ok("OK".to_owned()));
    assert!(answer(&user, &["SET", "other", "e"]).is_err());
    for login in ["fleet:wrong-s3cret@", ""] {
        let why = answer(&place(login), &["GET", "{larder}:epoch"]).unwrap_err();
        assert!(!why.contains("s3cret"), "{why}");
    }
}

#[test]
fn sentinels_lead_to_the_one_that_leads_now() {
    let folder = folder("sentinel");
    let (first, second, sentinel) = (free_port(), free_port(), free_port());
    let login = ["--requirepass", "s3cret", "--masterauth", "s3cret", "--save", ""];
    let (one, two) = (first.to_string(), second.to_string());
    let leader = redis_server(first, &[&["--port", &one][..], &login].concat());
    let _replica = redis_server(second, &[&["--port", &two, "--replicaof", "127.0.0.1", &one][..], &login].concat());
    let text = format!(
        "port {sentinel}\ndir {0}\nsentinel monitor shop 127.0.0.1 {first} 1\nsentinel auth-pass shop s3cret\n\
         sentinel down-after-milliseconds shop 500\nsentinel failover-timeout shop 3000\n",
        folder.display()
    );
    std::fs::write(folder.join("sentinel.conf"), text).unwrap();
    let _sentinel = redis_server(sentinel, &[folder.join("sentinel.conf").to_str().unwrap(), "--sentinel"]);
    // The first of them is not there.
    let nobody = free_port();
    let hosts = format!("127.0.0.1:{nobody},127.0.0.1:{sentinel}");
    let place = EnginePlace::new(&format!("redis+sentinel://:s3cret@{hosts}/shop/1"), None).unwrap();
    assert_eq!(answer(&place, &["SET", "who", "first"]), Ok("OK".to_owned()));
    let replica = EnginePlace::new(&format!("redis://:s3cret@127.0.0.1:{second}/1"), None).unwrap();
    until("the replica has it", || answer(&replica, &["GET", "who"]).as_deref() == Ok("first"));
    let sentinels = EnginePlace::new(&format!("redis://127.0.0.1:{sentinel}"), None).unwrap();
    until("the sentinel knows of the replica", || {
        answer(&sentinels, &["SENTINEL", "CKQUORUM", "shop"]).is_ok()
            && Command::new("redis-cli")
                .args(["-p", &sentinel.to_string(), "SENTINEL", "REPLICAS", "shop"])
                .output()
                .is_ok_and(|said| String::from_utf8_lossy(&said.stdout).contains(&two))
    });
    drop(leader);
    until("the replica leads", || answer(&place, &["SET", "who", "second"]).is_ok());
    assert_eq!(answer(&replica, &["GET", "who"]).as_deref(), Ok("second"));
    let unknown = EnginePlace::new(&format!("redis+sentinel://127.0.0.1:{sentinel}/nobody"), None).unwrap();
    assert!(answer(&unknown, &["PING"]).unwrap_err().contains("it knows of no nobody"));
}
