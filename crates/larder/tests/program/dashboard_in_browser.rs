//! The dashboard in a real browser: Chromium, driven by playwright-core, opens every page in light, in dark and on a phone, and axe-core judges each. The
//! site has visitors meanwhile, some of them with hostile names. `spec/dashboard/` has what is done; `./setup all` installs what it is done with.

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use crate::answering_origin::{self, target_of};
    use crate::http2_site::Site;

    const TOKEN: &str = "0123456789abcdef";
    /// Markup, an escape of terminals' in the form that a request may have, and a mark that turns the direction.
    const HOSTILE: &str = "<img src=x onerror=alert(1)><script>alert(2)</script>\u{202e}live \u{2066}";

    fn repository() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    fn node(script: &str) -> Command {
        let mut command = Command::new("node");
        command.arg(repository().join("spec/dashboard").join(script)).stdin(Stdio::null());
        command
    }

    fn origin() -> SocketAddr {
        answering_origin::start(|head| {
            let life = if target_of(head).starts_with("/kept") { "max-age=600" } else { "private" };
            Some(format!(
                "HTTP/1.1 200 OK\r\nCache-Control: {life}\r\nVary: Accept-Encoding\r\nETag: \"<b>1</b>\"\r\nContent-Length: 5\r\n\r\nhello"
            ))
        })
    }

    /// Asks for a few things again and again, until it is told to end.
    fn visitors(site: SocketAddr) -> Arc<AtomicBool> {
        let ends = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&ends);
        std::thread::spawn(move || {
            for at in 0u64.. {
                if told.load(Ordering::Relaxed) {
                    return;
                }
                let path = ["/kept", "/kept/%3Cscript%3E", "/own?x='y'", "/kept"][at as usize % 4];
                let agent = if at.is_multiple_of(3) { HOSTILE } else { "curl/8.5.0" };
                let request = format!(
                    "GET {path} HTTP/1.1\r\nHost: site.test\r\nUser-Agent: {agent}\r\nConnection: close\r\n\r\n"
                );
                if let Ok(mut client) = TcpStream::connect(site) {
                    let _ = client.write_all(request.as_bytes());
                    let _ = client.read_to_end(&mut Vec::new());
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        ends
    }

    #[test]
    fn every_page_is_right_for_eyes_keyboards_and_readers() {
        let tools = repository().join("target/tools/dashboard");
        assert!(tools.join("node_modules/axe-core").is_dir(), "playwright-core and axe-core are missing: ./setup all");
        let site = Site::start_with_admin(&format!("http://{}", origin()), &format!("token = \"{TOKEN}\""), "");
        let ends = visitors(site.address);
        let done = node("visit.mjs")
            .env("DASHBOARD", format!("http://{}/", site.admin))
            .env("TOKEN", TOKEN)
            .env("TOOLS", tools)
            .env("EXPLAINED", "http://site.test/kept")
            .env("ORIGIN", "site")
            .output()
            .expect("node starts");
        ends.store(true, Ordering::Relaxed);
        let (said, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success() && said.contains("3 modes, 6 pages, 0 wrong"), "{said}\n{errors}");
    }

    #[test]
    fn its_parts_hold_without_a_page() {
        let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/admin/dashboard");
        let done = node("units.mjs").arg(modules).output().expect("node starts");
        let errors = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success() && done.stdout == b"all hold\n", "{errors}");
    }
}
