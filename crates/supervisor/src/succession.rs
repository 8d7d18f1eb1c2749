//! A supervisor that becomes another version of itself: the same process (a service manager knows it by its number) runs the new program,
//! which finds in its standard input what the old one knew.
//!
//! Sockets on their way through a pair of sockets outlive the program that sent them, so nothing has to be left open under a number
//! that the next program would have to believe.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::process::Pid;

use crate::child::{Child, Part};
use crate::link_socket::LinkSocket;
use crate::link_word::Datagram;
use crate::processes::Processes;
use crate::signal_pipes;
use crate::supervised_program::{Program, SUCCEEDING_FLAG};

/// All that is handed over lies in the sockets' buffer while nobody reads.
const BUFFER_BYTES: usize = 8 << 20;

/// Becomes the new version. Returns only if that fails, and then everything is as before.
pub fn hand_over(
    program: &Program,
    processes: &Processes,
    now: Duration,
    is_signalled: impl FnOnce() -> bool,
) -> Result<(), String> {
    let failed = |what: &str, error: io::Error| format!("{what}: {error}");
    let (old, new) = LinkSocket::pair().map_err(|error| failed("a pair of sockets", error))?;
    // As much as the kernel allows.
    let _ = set_socket_send_buffer_size(old.as_fd(), BUFFER_BYTES);
    for datagram in told(processes, now).map_err(|error| failed("sockets cannot be copied", error))? {
        old.send(&datagram).map_err(|error| failed("what is known cannot be handed over", error))?;
    }
    drop(old);
    let former_input =
        std::io::stdin().as_fd().try_clone_to_owned().map_err(|error| failed("standard input", error))?;
    rustix::stdio::dup2_stdin(&new).map_err(|error| failed("standard input", error.into()))?;
    // Else one would end the next program before it listens. Of those that have come already none is left to it.
    signal_pipes::heard_later().map_err(|error| failed("signals", error))?;
    if is_signalled() {
        signal_pipes::heard_again().map_err(|error| failed("signals", error))?;
        rustix::stdio::dup2_stdin(&former_input).map_err(|error| failed("standard input", error.into()))?;
        return Err("a signal has come meanwhile".to_owned());
    }
    let mut command = Command::new(&program.path);
    command.arg0("larder").args(&program.arguments).arg(SUCCEEDING_FLAG);
    let error = command.exec();
    signal_pipes::heard_again().map_err(|error| failed("signals", error))?;
    rustix::stdio::dup2_stdin(&former_input).map_err(|error| failed("standard input", error.into()))?;
    Err(failed(&program.path.display().to_string(), error))
}

/// What there is to know: how many have died, what was reported, a line for each child, with its link, and one for each name that is kept.
fn told(processes: &Processes, now: Duration) -> io::Result<Vec<Datagram>> {
    let mut told = vec![Datagram { text: format!("deaths {}", processes.deaths), sockets: Vec::new() }];
    let reports = processes.reports.lines();
    told.extend(reports.map(|line| Datagram { text: format!("reported {line}"), sockets: Vec::new() }));
    for child in &processes.children {
        let part = if child.part == Part::Serving { "serving" } else { "leaving" };
        let link = child.link.iter().map(|link| link.as_fd().try_clone_to_owned()).collect::<io::Result<Vec<_>>>()?;
        let left = child.killed_at.map_or(Duration::ZERO, |at| at.saturating_sub(now));
        let text = format!("child {} {part} {}", child.pid.as_raw_pid(), left.as_millis());
        told.push(Datagram { text, sockets: link });
    }
    for (name, sockets) in processes.kept.copies()? {
        told.push(Datagram { text: format!("kept {name}"), sockets });
    }
    Ok(told)
}

/// What the former version has left in the standard input.
pub fn take_over(now: Duration) -> io::Result<Processes> {
    let mut processes = Processes::default();
    let link = LinkSocket::on(std::io::stdin().as_fd().try_clone_to_owned()?)?;
    // What was read is not to stay open, nor to be taken for an input.
    rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
    while let Some(Datagram { text, sockets }) = link.receive()? {
        let words: Vec<&str> = text.splitn(2, ' ').collect();
        match words[..] {
            ["child", facts] => processes.children.extend(child(facts, sockets, now)?),
            ["deaths", count] => processes.deaths = count.parse().unwrap_or_default(),
            ["reported", line] => processes.reports.keep(line),
            ["kept", name] => {
                processes.kept.keep(name, sockets);
            }
            // Another version has more to tell than is needed here.
            _ => {}
        }
    }
    Ok(processes)
}

/// `None`: it has ended meanwhile, and was waited for by nobody: there is nothing of it to know.
fn child(facts: &str, sockets: Vec<OwnedFd>, now: Duration) -> io::Result<Option<Child>> {
    let unknown =
        || io::Error::new(io::ErrorKind::InvalidData, "the former supervisor said something unknown of a process");
    let words: Vec<&str> = facts.split(' ').collect();
    let [pid, part, left_ms] = words[..] else { return Err(unknown()) };
    let pid = pid.parse().ok().and_then(Pid::from_raw).ok_or_else(unknown)?;
    let left = Duration::from_millis(left_ms.parse().map_err(|_| unknown())?);
    let part = if part == "serving" { Part::Serving } else { Part::Leaving };
    let link = sockets.into_iter().next().map(LinkSocket::on).transpose()?;
    let Ok(mut child) = Child::of(pid, link, part, now) else { return Ok(None) };
    child.has_served = true;
    child.killed_at = (part == Part::Leaving).then_some(now + left);
    Ok(Some(child))
}
