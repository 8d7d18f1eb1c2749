//! Certificates made for one test by an authority of its own, and an nginx that shows one of them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};

use crate::bench_command::Nginx;
use crate::peer_process::free_address;

/// Signs what it is given. Only who is told believes it.
pub struct TestAuthority {
    issuer: Issuer<'static, KeyPair>,
    pub pem: String,
}

/// In PEM.
pub struct TestCertificate {
    pub chain: String,
    pub key: String,
}

impl TestAuthority {
    pub fn new() -> TestAuthority {
        let mut params = CertificateParams::new(Vec::new()).expect("no names are good names");
        params.distinguished_name.push(DnType::CommonName, "authority of one test");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("there is randomness");
        let pem = params.self_signed(&key).expect("the parameters are good").pem();
        TestAuthority { issuer: Issuer::new(params, key), pem }
    }

    /// A name or an address; until the end of a year.
    pub fn certificate(&self, name: &str, year: i32) -> TestCertificate {
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a good name");
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(year, 12, 31);
        let key = KeyPair::generate().expect("there is randomness");
        let chain = params.signed_by(&key, &self.issuer).expect("the parameters are good").pem();
        TestCertificate { chain, key: key.serialize_pem() }
    }
}

/// nginx with one page and a certificate.
pub struct SecureSite {
    pub address: SocketAddr,
    /// The authority's file.
    pub cacert: String,
    place: PathBuf,
    nginx: Nginx,
}

impl SecureSite {
    /// `words`: behind nginx's `listen`; `settings`: of its server.
    pub fn start(name: &str, host: &str, year: i32, words: &str, settings: &str) -> SecureSite {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tls-{name}-{}", std::process::id()));
        std::fs::create_dir_all(place.join("root")).expect("the target folder can be written");
        let authority = TestAuthority::new();
        let certificate = authority.certificate(host, year);
        let write = |file: &str, text: &str| {
            std::fs::write(place.join(file), text).expect("the target folder can be written");
            place.join(file).display().to_string()
        };
        let cacert = write("authority.pem", &authority.pem);
        let (chain, key) = (write("chain.pem", &certificate.chain), write("key.pem", &certificate.key));
        for number in 0..PAGES {
            write(&format!("root/{number}.txt"), &format!("{number}\n").repeat(1 + 700 * number));
        }
        let address = free_address();
        // Without a word about it this nginx speaks TLS 1.2 and older.
        let protocols = if settings.contains("ssl_protocols") { "" } else { "ssl_protocols TLSv1.2 TLSv1.3;" };
        let settings = format!("ssl_certificate {chain}; ssl_certificate_key {key}; {protocols} {settings}");
        let nginx = Nginx::start_with(&place, address, words, &settings);
        SecureSite { address, cacert, place, nginx }
    }

    /// A file with the paths of all pages.
    pub fn urls(&self) -> String {
        let path = self.place.join("urls");
        let list: String = (0..PAGES).map(|number| format!("/{number}.txt\n")).collect();
        std::fs::write(&path, list).expect("the target folder can be written");
        path.display().to_string()
    }

    /// Stops nginx; a line for each request that it has answered: bytes, protocol, `r` for a resumed session, method, status.
    pub fn log(mut self) -> Vec<String> {
        self.nginx.stop();
        let log = std::fs::read_to_string(self.place.join("access.log")).expect("nginx has written its log");
        log.lines().map(str::to_owned).collect()
    }
}

impl Drop for SecureSite {
    fn drop(&mut self) {
        self.nginx.stop();
        let _ = std::fs::remove_dir_all(&self.place);
    }
}

/// The last ones are longer than a record of TLS, and than a frame of HTTP/2.
const PAGES: usize = 50;
