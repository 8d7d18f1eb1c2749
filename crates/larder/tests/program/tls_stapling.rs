//! What an authority says of a certificate (OCSP), shown beside it: openssl signs it, and openssl reads what larder shows.

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};

    use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SerialNumber};

    use crate::peer_process::wait_for;
    use crate::tls_site::{NAME, TlsSite, ask};

    /// An authority that has signed two certificates, of which the first is shown; and what it says of each.
    struct Authority {
        folder: PathBuf,
    }

    impl Authority {
        fn new(name: &str) -> Authority {
            let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("stapling-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            let authority = Authority { folder };
            let mut params = CertificateParams::new(Vec::new()).unwrap();
            params.distinguished_name.push(DnType::CommonName, "authority of one test");
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let key = KeyPair::generate().unwrap();
            let own = params.self_signed(&key).unwrap().pem();
            authority.write("ca.pem", &own);
            authority.write("ca.key", &key.serialize_pem());
            let issuer = Issuer::new(params, key);
            for (file, serial) in [("site", 0x1234_u64), ("other", 0x5678)] {
                let key = KeyPair::generate().unwrap();
                let mut params = CertificateParams::new(vec![NAME.to_owned()]).unwrap();
                params.serial_number = Some(SerialNumber::from(serial));
                let signed = params.signed_by(&key, &issuer).unwrap().pem();
                authority.write(&format!("{file}.pem"), &signed);
                authority.write(&format!("{file}.chain"), &format!("{signed}{own}"));
                authority.write(&format!("{file}.key"), &key.serialize_pem());
            }
            authority
                .write("index", "V\t300101000000Z\t\t1234\tunknown\t/CN=a\nV\t300101000000Z\t\t5678\tunknown\t/CN=b\n");
            authority
        }

        fn path(&self, file: &str) -> String {
            self.folder.join(file).display().to_string()
        }

        fn write(&self, file: &str, text: &str) {
            std::fs::write(self.folder.join(file), text).unwrap();
        }

        /// What it says of a certificate, in DER.
        fn says_of(&self, certificate: &str) -> Vec<u8> {
            let mut command = Command::new("openssl");
            command.args(["ocsp", "-index", &self.path("index"), "-CA", &self.path("ca.pem"), "-ndays", "3"]);
            command.args(["-rsigner", &self.path("ca.pem"), "-rkey", &self.path("ca.key")]);
            command.args(["-issuer", &self.path("ca.pem"), "-cert", &self.path(certificate)]);
            command.args(["-respout", &self.path("response"), "-noverify"]);
            let done = command.output().expect("openssl is installed");
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            std::fs::read(self.folder.join("response")).unwrap()
        }

        /// Puts this into the file that is watched, as a renewal does.
        fn staples(&self, response: &[u8]) {
            std::fs::write(self.folder.join("fresh"), response).unwrap();
            std::fs::rename(self.folder.join("fresh"), self.folder.join("site.ocsp")).unwrap();
        }

        fn serves(&self) -> TlsSite {
            let mut site = TlsSite::start("", "");
            let own = format!("{}/site.", site.directory.display());
            let line = format!("[listen.tls]\nocsp = \"{}\"", self.path("site.ocsp"));
            let (chain, key) = (self.path("site.chain"), self.path("site.key"));
            site.change(|config| {
                config
                    .replace(&format!("{own}pem"), &chain)
                    .replace(&format!("{own}key"), &key)
                    .replace("[listen.tls]", &line)
            });
            site
        }
    }

    impl Drop for Authority {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }

    /// What openssl reads of the handshake.
    fn status(site: &TlsSite, version: &str) -> String {
        let mut client = Command::new("openssl");
        client.args(["s_client", "-connect", &site.tls.to_string(), "-servername", NAME, "-status", version]);
        let output = client.stdin(Stdio::null()).output().expect("openssl is installed");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    #[test]
    fn a_response_from_a_file_is_shown_by_both_versions_and_renewed_by_itself() {
        let authority = Authority::new("good");
        authority.staples(&authority.says_of("site.pem"));
        let site = authority.serves();
        for version in ["-tls1_2", "-tls1_3"] {
            let said = status(&site, version);
            assert!(said.contains("OCSP Response Status: successful") && said.contains("Cert Status: good"), "{said}");
            assert!(said.contains("Serial Number: 1234"), "{said}");
        }
        // A second later it is another one.
        let produced = |said: &str| said.lines().find(|line| line.contains("Produced At")).map(str::to_owned);
        let before = produced(&status(&site, "-tls1_3"));
        assert!(before.is_some());
        wait_for("the renewed response is shown", || {
            authority.staples(&authority.says_of("site.pem"));
            let now = produced(&status(&site, "-tls1_3"));
            now.is_some() && now != before
        });
    }

    #[test]
    fn what_cannot_be_shown_is_said_and_the_certificate_goes_without_it() {
        let authority = Authority::new("bad");
        let good = authority.says_of("site.pem");
        authority.staples(b"hello");
        let site = authority.serves();
        let file = authority.path("site.ocsp");
        site.wait_for_word(&format!("warning: {file}: it is no OCSP response in DER; the certificate "));
        for (response, why) in [
            (&good, None),
            (&authority.says_of("other.pem"), Some("it is not about this certificate; the certificate ")),
            (&good, None),
            (&good[..good.len() / 2].to_vec(), Some("it is no OCSP response in DER; the certificate ")),
        ] {
            authority.staples(response);
            let is_shown = why.is_none();
            wait_for("it is seen", || status(&site, "-tls1_3").contains("Cert Status: good") == is_shown);
            if let Some(why) = why {
                let said = status(&site, "-tls1_2");
                assert!(said.contains("OCSP response: no response sent"), "{said}");
                site.wait_for_word(&format!("warning: {file}: {why}"));
            }
        }
        std::fs::copy(authority.folder.join("ca.pem"), site.directory.join("ca.pem")).unwrap();
        assert!(ask(&mut site.connect(&site.trusts("ca.pem")).unwrap(), "/bytes/1").is_ok());
    }
}
