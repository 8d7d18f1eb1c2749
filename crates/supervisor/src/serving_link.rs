//! The serving process's end of the link to its supervisor.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use crate::crash_reports::CrashReports;
use crate::kept_sockets::KeptSockets;
use crate::limits::SOCKETS_PER_WORD_MAX;
use crate::link_socket::LinkSocket;
use crate::link_word::{ServingWord, SupervisorWord, VERSION};

/// See the module.
#[derive(Debug)]
pub struct ServingLink(LinkSocket);

/// What a serving process begins with.
#[derive(Debug)]
pub struct Beginning {
    pub link: ServingLink,
    /// Sockets that processes before it have bound.
    pub kept: KeptSockets,
    /// The way to the process that still serves.
    pub former: Option<OwnedFd>,
    /// Others still answer clients, until [`Said::Alone`].
    pub beside: bool,
    /// So many serving processes have died before their time since the supervisor was started.
    pub deaths: u64,
    /// What they have said of their defects, and what was seen of their ends: the last lines.
    pub reports: CrashReports,
}

/// What a supervisor says while its process serves.
#[derive(Debug)]
pub enum Said {
    /// Somebody is about to take over: the way to it.
    Heir(OwnedFd),
    /// Nobody does after all, and why.
    Verdict(String),
    /// This process serves in the place of the one that hears it.
    Succeeded { process: i32 },
    /// No former process answers clients any more.
    Alone,
    /// The supervisor is gone.
    Gone,
}

/// Takes the link from the standard input, and waits until the supervisor has said all that there is at the beginning.
pub fn begin() -> io::Result<Beginning> {
    let link = LinkSocket::on(std::io::stdin().as_fd().try_clone_to_owned()?)?;
    rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
    let (mut kept, mut reports) = (KeptSockets::default(), CrashReports::default());
    loop {
        let gone = || io::Error::new(io::ErrorKind::UnexpectedEof, "the supervisor is gone");
        match SupervisorWord::read(link.receive()?.ok_or_else(gone)?) {
            Some(SupervisorWord::Have { name, sockets }) => {
                kept.keep(&name, sockets);
            }
            Some(SupervisorWord::Reported(line)) => reports.keep(&line),
            Some(SupervisorWord::Begin { version: VERSION, deaths, beside, former }) => {
                return Ok(Beginning { link: ServingLink::on(link), kept, former, beside, deaths, reports });
            }
            Some(SupervisorWord::Begin { version, .. }) => {
                let why = format!(
                    "the supervisor speaks version {version} of what this larder speaks {VERSION} of: restart larder"
                );
                return Err(io::Error::new(io::ErrorKind::Unsupported, why));
            }
            // A later version has more to tell than is needed here.
            None => {}
            Some(_) => return Err(io::Error::new(io::ErrorKind::InvalidData, "the supervisor said something else")),
        }
    }
}

impl ServingLink {
    /// On an end of a link.
    pub fn on(link: LinkSocket) -> ServingLink {
        ServingLink(link)
    }

    /// Has copies of sockets kept under a name.
    pub fn keep(&self, name: &str, sockets: &[&OwnedFd]) -> io::Result<()> {
        for portion in sockets.chunks(SOCKETS_PER_WORD_MAX) {
            let sockets = portion.iter().map(|socket| socket.try_clone()).collect::<io::Result<Vec<_>>>()?;
            self.say(ServingWord::Keep { name: name.to_owned(), sockets })?;
        }
        Ok(())
    }

    pub fn release(&self, name: &str) -> io::Result<()> {
        self.say(ServingWord::Release(name.to_owned()))
    }

    /// Nobody is let in here any more, and what is under way has so long.
    pub fn leaving(&self, grace: Duration) -> io::Result<()> {
        self.say(ServingWord::Leaving { grace })
    }

    pub fn ready(&self) -> io::Result<()> {
        self.say(ServingWord::Ready { version: VERSION })
    }

    /// For so long nothing need be heard of this process.
    pub fn alive(&self, patience: Duration) -> io::Result<()> {
        self.say(ServingWord::Alive { patience })
    }

    /// Has a datagram sent to the service manager.
    pub fn notify(&self, datagram: &str) -> io::Result<()> {
        self.say(ServingWord::Notify(datagram.to_owned()))
    }

    /// Has a line about a defect kept beyond this process. Nobody waits for a supervisor that takes nothing: what has no room is lost.
    pub fn report(&self, line: &str) -> io::Result<()> {
        self.0.send_now(&ServingWord::Report(line.to_owned()).datagram())
    }

    /// Has the program as it lies there now take over.
    pub fn upgrade(&self) -> io::Result<()> {
        self.say(ServingWord::Upgrade)
    }

    fn say(&self, word: ServingWord) -> io::Result<()> {
        self.0.send(&word.datagram())
    }

    /// Waits for what the supervisor says next.
    pub fn hear(&self) -> Said {
        loop {
            match self.0.receive().map(|datagram| datagram.and_then(SupervisorWord::read)) {
                Ok(Some(SupervisorWord::Heir(heir))) => return Said::Heir(heir),
                Ok(Some(SupervisorWord::Verdict(why))) => return Said::Verdict(why),
                Ok(Some(SupervisorWord::Succeeded { process })) => return Said::Succeeded { process },
                Ok(Some(SupervisorWord::Alone)) => return Said::Alone,
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return Said::Gone,
            }
        }
    }
}
