//! A larder of the fleet: its configuration, its link to the log, its lives, and who asks it over a connection that is kept.

use std::fs;
use std::io::{self, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use super::broken_link::BrokenLink;
use crate::plain_exchange::{Message, Unframed};
use crate::{process_signal, started_larder};

/// Longer than anything that is stopped or frozen.
const PATIENCE: Duration = Duration::from_secs(30);

/// The same on all nodes.
const SECRET: &str = "0123456789abcdef0123456789abcdef\n";

/// What all nodes of a round have in common.
pub struct FleetPlan {
    pub program: PathBuf,
    pub origin_port: u16,
    pub lease: String,
    /// The nodes share what they fetch, in the Redis that keeps the log.
    pub has_tier: bool,
}

pub struct JudgedNode {
    pub name: String,
    pub has_disk: bool,
    pub link: BrokenLink,
    program: PathBuf,
    folder: PathBuf,
    process: Mutex<Option<Child>>,
    /// How often it was started or killed: no connection outlives that.
    lives: AtomicU64,
}

/// One connection to one of a node's two addresses, made anew when it is lost.
pub struct NodeClient<'a> {
    node: &'a JudgedNode,
    socket: &'static str,
    connection: Option<(u64, BufReader<UnixStream>)>,
}

impl JudgedNode {
    pub fn new(
        plan: &FleetPlan,
        folder: &Path,
        name: &str,
        has_disk: bool,
        link: BrokenLink,
    ) -> Result<JudgedNode, String> {
        let folder = folder.join(name);
        let config = config(plan, name, has_disk, link.port);
        let written = fs::create_dir_all(&folder)
            .and_then(|()| fs::write(folder.join("larder.toml"), config))
            .and_then(|()| fs::write(folder.join("secret"), SECRET));
        written.map_err(|error| format!("{}: {error}", folder.display()))?;
        let (name, program) = (name.to_owned(), plan.program.clone());
        Ok(JudgedNode { name, has_disk, link, program, folder, process: Mutex::default(), lives: AtomicU64::new(0) })
    }

    /// Returns when it listens; at once if it runs: two faults may begin it anew.
    pub fn start(&self) -> Result<(), String> {
        let mut process = self.process.lock().expect("nobody panicked");
        if process.as_mut().is_some_and(|process| process.try_wait().is_ok_and(|ended| ended.is_none())) {
            return Ok(());
        }
        let lives = self.lives.fetch_add(1, SeqCst);
        // What it wrote in an earlier life is kept for who looks into a finding.
        let _ = fs::rename(self.folder.join("larder.log"), self.folder.join(format!("larder.log.{lives}")));
        let wanted = ["--workers", "1", "--config", "larder.toml"];
        let child = started_larder::start_program(Command::new(&self.program), &self.folder, &wanted)?;
        *process = Some(child);
        Ok(())
    }

    /// With -9, and waits until it is gone.
    pub fn kill(&self) {
        self.lives.fetch_add(1, SeqCst);
        if let Some(mut process) = self.process.lock().expect("nobody panicked").take() {
            let _ = process.kill().and_then(|()| process.wait());
        }
    }

    pub fn signal(&self, word: &str) {
        if let Some(process) = self.process.lock().expect("nobody panicked").as_ref() {
            process_signal::send(word, &process.id().to_string());
        }
    }

    /// As a visitor of the site.
    pub fn visitor(&self) -> NodeClient<'_> {
        NodeClient { node: self, socket: "l.sock", connection: None }
    }

    /// As who orders purges.
    pub fn operator(&self) -> NodeClient<'_> {
        NodeClient { node: self, socket: "a.sock", connection: None }
    }
}

impl Drop for JudgedNode {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The origin's times are not what is judged: a process that was stopped finds all of them over.
fn config(plan: &FleetPlan, name: &str, has_disk: bool, link_port: u16) -> String {
    let FleetPlan { origin_port, lease, .. } = plan;
    let tier = match plan.has_tier {
        true => format!("secret_file = \"secret\"\n[shared]\nurl = \"redis://127.0.0.1:{link_port}/1\"\n"),
        false => String::new(),
    };
    let disk = if has_disk { "[[disk]]\npath = \"store\"\nsize = \"32MiB\"\n" } else { "" };
    format!(
        "[origin.site]\nurls = [\"http://127.0.0.1:{origin_port}\"]\n\
         timeouts = {{ connect = \"30s\", first_byte = \"30s\", between_bytes = \"30s\" }}\n\
         [memory]\nsize = \"32MiB\"\n{disk}\
         [fleet]\nname = \"{name}\"\nlog = \"redis://127.0.0.1:{link_port}/0\"\nlease = \"{lease}\"\n\
         acknowledge = \"logged\"\nunsafe_methods = true\n{tier}"
    )
}

impl NodeClient<'_> {
    /// A kept connection that ends before a byte of the answer was closed as idle, perhaps: then the question is put once more.
    pub fn ask(&mut self, question: &str) -> io::Result<Message> {
        let lives = self.node.lives.load(SeqCst);
        if let Some((_, kept)) = self.connection.take().filter(|(of, _)| *of == lives)
            && let Some(answer) = self.exchange(lives, kept, question).or_else(none_if_closed)?
        {
            return Ok(answer);
        }
        let socket = UnixStream::connect(self.node.folder.join(self.socket))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        self.exchange(lives, BufReader::new(socket), question)?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    fn exchange(
        &mut self,
        lives: u64,
        mut connection: BufReader<UnixStream>,
        question: &str,
    ) -> io::Result<Option<Message>> {
        connection.get_mut().write_all(question.as_bytes())?;
        let answer = Message::read(&mut connection, Unframed::UntilEnd, true)?;
        let method = question.split(' ').next().unwrap_or_default();
        if answer.as_ref().is_some_and(|answer| !answer.ends_connection(method)) {
            self.connection = Some((lives, connection));
        }
        Ok(answer)
    }
}

fn none_if_closed(error: io::Error) -> io::Result<Option<Message>> {
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Ok(None),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_told_its_fleet_in_toml() {
        let plan = FleetPlan { program: PathBuf::new(), origin_port: 81, lease: "2s".to_owned(), has_tier: true };
        for has_disk in [false, true] {
            let text = config(&plan, "a", has_disk, 82);
            let table: toml::Table = toml::from_str(&text).expect("it is TOML");
            assert_eq!(table["fleet"]["log"].as_str(), Some("redis://127.0.0.1:82/0"));
            assert_eq!(table["fleet"]["lease"].as_str(), Some("2s"));
            assert_eq!(table["shared"]["url"].as_str(), Some("redis://127.0.0.1:82/1"));
            assert_eq!(table.contains_key("disk"), has_disk);
        }
    }
}
