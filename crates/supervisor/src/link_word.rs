//! What a supervisor and a serving process say to one another: a word a datagram, some with sockets.
//!
//! | who | word | with | means |
//! |---|---|---|---|
//! | supervisor | `have NAME` | sockets | they are kept under this name; several words of a name add up |
//! | | `begin VERSION DEATHS`, `begin VERSION DEATHS beside` | one end of the way to the former process, if there is one that still serves | all that is kept has been said: start. `DEATHS`: so many serving processes have died before their time; `beside`: others still answer clients |
//! | | `reported LINE` | | what was known of a defect or a death before you; before `begin` |
//! | | `alone` | | none of them does any more |
//! | | `succeeded PROCESS` | | that one serves in your place from here on |
//! | | `heir` | the other end of that way | somebody is about to take over |
//! | | `verdict TEXT` | | nobody takes over after all, and why |
//! | serving | `keep NAME` | sockets | keep these beyond my end |
//! | | `release NAME` | | keep them no longer |
//! | | `leaving SECONDS` | | I accept nothing any more: who comes after me does. So long I may have still |
//! | | `ready VERSION` | | I serve |
//! | | `alive SECONDS` | | I go round; worry if I say nothing for so long |
//! | | `notify DATAGRAM` | | for the service manager |
//! | | `report LINE` | | a defect was met: keep this for who comes after me |
//! | | `upgrade` | | start who comes after me |

use std::os::fd::OwnedFd;
use std::time::Duration;

/// What these words are. A supervisor and a serving process of two versions speak with each other for as long as an upgrade takes.
pub const VERSION: u32 = 1;

/// Behind a version.
const BESIDE: &str = " beside";

/// Said by the supervisor.
#[derive(Debug)]
pub enum SupervisorWord {
    Have { name: String, sockets: Vec<OwnedFd> },
    Reported(String),
    Begin { version: u32, deaths: u64, beside: bool, former: Option<OwnedFd> },
    Alone,
    Heir(OwnedFd),
    Succeeded { process: i32 },
    Verdict(String),
}

/// Said by a serving process.
#[derive(Debug)]
pub enum ServingWord {
    Keep { name: String, sockets: Vec<OwnedFd> },
    Release(String),
    Leaving { grace: Duration },
    Ready { version: u32 },
    Alive { patience: Duration },
    Notify(String),
    Report(String),
    Upgrade,
}

/// A word as it goes over the link.
#[derive(Debug)]
pub struct Datagram {
    pub text: String,
    pub sockets: Vec<OwnedFd>,
}

impl Datagram {
    fn of(text: String, sockets: Vec<OwnedFd>) -> Datagram {
        Datagram { text, sockets }
    }
}

impl SupervisorWord {
    pub fn datagram(self) -> Datagram {
        match self {
            SupervisorWord::Have { name, sockets } => Datagram::of(format!("have {name}"), sockets),
            SupervisorWord::Reported(line) => Datagram::of(format!("reported {line}"), Vec::new()),
            SupervisorWord::Begin { version, deaths, beside, former } => {
                let beside = if beside { BESIDE } else { "" };
                Datagram::of(format!("begin {version} {deaths}{beside}"), former.into_iter().collect())
            }
            SupervisorWord::Alone => Datagram::of("alone".to_owned(), Vec::new()),
            SupervisorWord::Succeeded { process } => Datagram::of(format!("succeeded {process}"), Vec::new()),
            SupervisorWord::Heir(end) => Datagram::of("heir".to_owned(), vec![end]),
            SupervisorWord::Verdict(text) => Datagram::of(format!("verdict {text}"), Vec::new()),
        }
    }

    /// `None`: no word of this version.
    pub fn read(Datagram { text, sockets }: Datagram) -> Option<SupervisorWord> {
        let mut sockets = sockets.into_iter();
        Some(match split(&text) {
            ("have", name) => SupervisorWord::Have { name: name.to_owned(), sockets: sockets.collect() },
            ("reported", line) => SupervisorWord::Reported(line.to_owned()),
            ("begin", text) => {
                let (numbers, beside) = text.strip_suffix(BESIDE).map_or((text, false), |numbers| (numbers, true));
                let (version, deaths) = numbers.split_once(' ')?;
                let (version, deaths) = (version.parse().ok()?, deaths.parse().ok()?);
                SupervisorWord::Begin { version, deaths, beside, former: sockets.next() }
            }
            ("alone", "") => SupervisorWord::Alone,
            ("succeeded", process) => SupervisorWord::Succeeded { process: process.parse().ok()? },
            ("heir", "") => SupervisorWord::Heir(sockets.next()?),
            ("verdict", text) => SupervisorWord::Verdict(text.to_owned()),
            _ => return None,
        })
    }
}

impl ServingWord {
    pub fn datagram(self) -> Datagram {
        match self {
            ServingWord::Keep { name, sockets } => Datagram::of(format!("keep {name}"), sockets),
            ServingWord::Release(name) => Datagram::of(format!("release {name}"), Vec::new()),
            ServingWord::Leaving { grace } => Datagram::of(format!("leaving {}", grace.as_secs()), Vec::new()),
            ServingWord::Ready { version } => Datagram::of(format!("ready {version}"), Vec::new()),
            ServingWord::Alive { patience } => Datagram::of(format!("alive {}", patience.as_secs()), Vec::new()),
            ServingWord::Notify(datagram) => Datagram::of(format!("notify {datagram}"), Vec::new()),
            ServingWord::Report(line) => Datagram::of(format!("report {line}"), Vec::new()),
            ServingWord::Upgrade => Datagram::of("upgrade".to_owned(), Vec::new()),
        }
    }

    /// `None`: no word of this version.
    pub fn read(Datagram { text, sockets }: Datagram) -> Option<ServingWord> {
        Some(match split(&text) {
            ("keep", name) => ServingWord::Keep { name: name.to_owned(), sockets },
            ("release", name) => ServingWord::Release(name.to_owned()),
            ("leaving", seconds) => ServingWord::Leaving { grace: Duration::from_secs(seconds.parse().ok()?) },
            ("ready", version) => ServingWord::Ready { version: version.parse().ok()? },
            ("alive", seconds) => ServingWord::Alive { patience: Duration::from_secs(seconds.parse().ok()?) },
            ("notify", datagram) => ServingWord::Notify(datagram.to_owned()),
            ("report", line) => ServingWord::Report(line.to_owned()),
            ("upgrade", "") => ServingWord::Upgrade,
            _ => return None,
        })
    }
}

/// The first word, and what stands behind it.
fn split(text: &str) -> (&str, &str) {
    text.split_once(' ').unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn socket() -> OwnedFd {
        UnixStream::pair().expect("a pair").0.into()
    }

    #[test]
    fn each_word_is_read_as_it_was_said() {
        let said = |word: ServingWord| format!("{:?}", ServingWord::read(word.datagram()));
        assert!(
            said(ServingWord::Keep { name: "tcp 127.0.0.1:80".into(), sockets: vec![socket(), socket()] })
                .starts_with("Some(Keep { name: \"tcp 127.0.0.1:80\", sockets: [OwnedFd")
        );
        for (word, expect) in [
            (ServingWord::Release("unix /a b".into()), "Some(Release(\"unix /a b\"))"),
            (ServingWord::Leaving { grace: Duration::from_secs(9) }, "Some(Leaving { grace: 9s })"),
            (ServingWord::Ready { version: 7 }, "Some(Ready { version: 7 })"),
            (ServingWord::Alive { patience: Duration::from_secs(30) }, "Some(Alive { patience: 30s })"),
            (ServingWord::Notify("READY=1\nSTATUS=a b".into()), "Some(Notify(\"READY=1\\nSTATUS=a b\"))"),
            (ServingWord::Report("a panic at x: y".into()), "Some(Report(\"a panic at x: y\"))"),
            (ServingWord::Upgrade, "Some(Upgrade)"),
        ] {
            assert_eq!(said(word), expect);
        }
        let said = |word: SupervisorWord| format!("{:?}", SupervisorWord::read(word.datagram()));
        assert!(said(SupervisorWord::Have { name: "x".into(), sockets: vec![socket()] }).starts_with("Some(Have"));
        for beside in [true, false] {
            let expect = format!("Some(Begin {{ version: 1, deaths: 3, beside: {beside}, former: None }})");
            assert_eq!(said(SupervisorWord::Begin { version: 1, deaths: 3, beside, former: None }), expect);
        }
        assert_eq!(said(SupervisorWord::Reported("a b".into())), "Some(Reported(\"a b\"))");
        assert_eq!(said(SupervisorWord::Alone), "Some(Alone)");
        assert_eq!(said(SupervisorWord::Succeeded { process: 12 }), "Some(Succeeded { process: 12 })");
        assert!(said(SupervisorWord::Heir(socket())).starts_with("Some(Heir(OwnedFd"));
        assert_eq!(said(SupervisorWord::Verdict("no".into())), "Some(Verdict(\"no\"))");
    }

    #[test]
    fn what_is_no_word_is_none() {
        let bare = |text: &str| Datagram { text: text.to_owned(), sockets: Vec::new() };
        for text in ["", "ready", "ready soon", "alive -1", "leaving", "leaving now", "upgrade 2", "keeper x"] {
            assert!(ServingWord::read(bare(text)).is_none(), "{text}");
        }
        for text in
            ["", "begin", "begin x", "begin 1", "begin 1 2 aside", "alone 1", "succeeded", "heir", "heir 1", "verdicts"]
        {
            assert!(SupervisorWord::read(bare(text)).is_none(), "{text}");
        }
    }
}
