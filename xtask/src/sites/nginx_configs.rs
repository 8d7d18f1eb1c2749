//! `cargo xtask sites nginx FOLDER`: published nginx files, imported by larder, beside the real nginx with the same files,
//! stub applications, and a site with something to hide. No path may be open in larder that is closed in nginx. The
//! files themselves are others' and lie outside of the repository: docs/sites.md says where each comes from.

use std::io::{BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::plain_exchange::{Message, Unframed};
use crate::ports;
use crate::project::Project;
use crate::sites::site_processes::SiteProcesses;
use crate::sites::{nginx_program, published_conf, spelled_paths};

const START_SECONDS_MAX: f64 = 10.0;
const PATIENCE: Duration = Duration::from_secs(10);
/// So many are printed of what should not be open.
const SHOWN_MAX: usize = 20;

/// One published file.
struct Published {
    name: &'static str,
    /// Beneath the folder that the user names.
    file: &'static str,
    /// Where its includes begin.
    includes: &'static str,
    host: &'static str,
    /// What stands in front of it in another file of the same publication.
    before: &'static str,
}

const PUBLISHED: &[Published] = &[
    Published { name: "nextcloud", file: "nextcloud.conf", includes: ".", host: "cloud.example.com", before: "" },
    Published { name: "mastodon", file: "mastodon.conf", includes: ".", host: "example.com", before: "" },
    Published { name: "gitlab", file: "gitlab.conf", includes: ".", host: "YOUR_SERVER_FQDN", before: "" },
    Published {
        name: "discourse",
        file: "discourse.conf",
        includes: ".",
        host: "enter.your.web.hostname.here",
        before: "",
    },
    Published {
        name: "h5bp",
        file: "h5bp/conf.d/templates/no-ssl.example.com.conf",
        includes: "h5bp",
        host: "example.com",
        before: "map $sent_http_content_type $x_frame_options { ~*text/html DENY; }\n\
            map $sent_http_content_type $content_security_policy { default \"\"; }\n\
            map $sent_http_content_type $referrer_policy { default \"\"; }\n\
            map $sent_http_content_type $cors { default \"\"; }\n\
            map $sent_http_content_type $permissions_policy { default \"\"; }\n",
    },
];

/// What came of one of them.
#[derive(Debug, Default)]
struct Compared {
    paths: usize,
    open_in_both: usize,
    open_in_nginx: usize,
    /// Paths that are open in larder alone, or show another file there.
    wrong: Vec<String>,
}

pub fn task(project: &Project, folder: &str) -> Result<(), String> {
    let folder = Path::new(folder);
    let origin = serve_application().map_err(|error| format!("the application: {error}"))?;
    let (mut wrong, mut compared_any) = (0, false);
    for published in PUBLISHED {
        let file = folder.join(published.file);
        let Ok(text) = std::fs::read_to_string(&file) else {
            println!("{}: there is no {}: left out", published.name, file.display());
            continue;
        };
        let text = published_conf::with_includes(&text, &folder.join(published.includes), 0);
        let compared = compare(project, published, &format!("{}{text}", published.before), origin)?;
        println!(
            "{}: {} paths, open in both {}, in nginx alone {}, in larder alone {}",
            published.name,
            compared.paths,
            compared.open_in_both,
            compared.open_in_nginx,
            compared.wrong.len()
        );
        compared.wrong.iter().take(SHOWN_MAX).for_each(|line| println!("    {line}"));
        compared_any = true;
        wrong += compared.wrong.len();
    }
    match (compared_any, wrong) {
        (false, _) => {
            Err(format!("{} holds none of the files: docs/sites.md says where they are from", folder.display()))
        }
        (true, 0) => Ok(()),
        (true, wrong) => Err(format!("{wrong} paths are open in larder and closed in nginx")),
    }
}

fn compare(project: &Project, published: &Published, text: &str, origin: u16) -> Result<Compared, String> {
    let mut site = SiteProcesses::set_up(&format!("nginx-{}", published.name))?;
    let root = site.folder.join("docs");
    spelled_paths::write_files(&root)?;
    let text = published_conf::with_places(text, &root, origin);
    let theirs = start_nginx(&mut site, &text)?;
    let ours = start_larder(project, &mut site, &text)?;
    let mut compared = Compared::default();
    for path in spelled_paths::all() {
        let ask = |port| ask(port, &path, published.host).map_err(|error| format!("{path}: {error}"));
        let (nginx, larder) = (ask(theirs)?, ask(ours)?);
        compared.paths += 1;
        match (nginx.shown(), larder.shown()) {
            (None, None) => {}
            (Some(_), None) => compared.open_in_nginx += 1,
            (Some(theirs), Some(ours)) if theirs == ours || !ours.starts_with("FILE") => compared.open_in_both += 1,
            (_, Some(ours)) => compared.wrong.push(format!("{path}: nginx says {}, larder '{ours}'", nginx.status)),
        }
    }
    match site.is_up() {
        true => Ok(compared),
        false => Err(format!("{}: a server ended on its way", published.name)),
    }
}

fn start_nginx(site: &mut SiteProcesses, text: &str) -> Result<u16, String> {
    let (text, port) = published_conf::for_nginx(text, &mut ports::free)?;
    for name in ["mime.types", "fastcgi_params"] {
        let there = PathBuf::from("/etc/nginx").join(name);
        std::fs::copy(&there, site.folder.join(name)).map_err(|error| format!("{}: {error}", there.display()))?;
    }
    site.write("nginx.conf", &nginx_program::conf(&text))?;
    site.start("nginx", nginx_program::command(&site.folder))?;
    ports::wait(port, START_SECONDS_MAX, || site.is_up())
        .map_err(|why| format!("{why}: {}", site.last_words("nginx")))?;
    Ok(port)
}

fn start_larder(project: &Project, site: &mut SiteProcesses, text: &str) -> Result<u16, String> {
    let conf = site.write("site.conf", text)?;
    let made = site.folder.join("made.toml");
    let mut import = Command::new(project.larder());
    import.arg("import").arg(&conf).arg("-o").arg(&made);
    let output = import.output().map_err(|error| format!("larder import: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = std::fs::read_to_string(&made).map_err(|_| format!("nothing was imported: {said}"))?;
    let said_count = said.lines().count();
    println!("    larder import says {said_count} things");
    site.write("larder.toml", &without_listeners(&text))?;
    let port = ports::free()?;
    let mut larder = Command::new(project.larder());
    larder.args(["serve", "--config", "larder.toml", "--admin", "off", "--workers", "1"]);
    larder.args(["--listen", &format!("127.0.0.1:{port}")]);
    site.start("larder", larder)?;
    ports::wait(port, START_SECONDS_MAX, || site.is_up())
        .map_err(|why| format!("{why}: {}", site.last_words("larder")))?;
    Ok(port)
}

/// The ports of the published file may be others' here.
fn without_listeners(text: &str) -> String {
    text.split("\n[[").filter(|section| !section.starts_with("listen]]")).collect::<Vec<_>>().join("\n[[")
}

struct Answer {
    status: String,
    body: String,
}

impl Answer {
    /// The file or the application that answered, if one did.
    fn shown(&self) -> Option<&str> {
        let is_one = self.body.starts_with("FILE ") || self.body.starts_with("APP ");
        (self.status == "200" && is_one).then_some(&self.body)
    }
}

fn ask(port: u16, path: &str, host: &str) -> std::io::Result<Answer> {
    let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    write!(socket, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let answer = Message::read(&mut BufReader::new(socket), Unframed::UntilEnd, true)?;
    let answer = answer.ok_or(std::io::ErrorKind::UnexpectedEof)?;
    Ok(Answer { status: answer.second_word().to_owned(), body: String::from_utf8_lossy(&answer.body).into_owned() })
}

/// An application that knows every path.
fn serve_application() -> std::io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            // Whoever hangs up has what it wanted.
            thread::spawn(move || drop(answer_all(socket)));
        }
    });
    Ok(port)
}

fn answer_all(mut socket: TcpStream) -> std::io::Result<()> {
    let mut from = BufReader::new(socket.try_clone()?);
    while let Some(request) = Message::read(&mut from, Unframed::Empty, true)? {
        let body = format!("APP {}", request.second_word());
        let head = format!("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: {}\r\n\r\n", body.len());
        socket.write_all(format!("{head}{body}").as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larder_listens_where_it_is_told_alone() {
        let text = "# Made\n\n[[listen]]\naddress = \"*:80\"\n\n[[route]]\npath = \"/\"\n";
        assert_eq!(without_listeners(text), "# Made\n\n[[route]]\npath = \"/\"\n");
    }
}
