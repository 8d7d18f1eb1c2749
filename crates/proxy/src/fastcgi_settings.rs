//! What an operator says of FastCGI: of an application that speaks it, and of a root whose scripts it runs.

/// How an application is asked that speaks FastCGI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FastCgiSettings {
    /// Where the application finds its scripts. `None`: where the root of the route lies.
    pub document_root: Option<String>,
    /// The script that answers all that is asked of it where no root says which there are. A path beneath the document root.
    pub index: String,
    /// How names of scripts end, in lower case and with their dot.
    pub endings: Vec<String>,
    /// Variables of the operator's, in place of those of the same name.
    pub params: Vec<(String, String)>,
    /// Which connections are kept for the next request.
    pub keep_alive: FastCgiKeepAlive,
}

/// Which connections to an application are kept. Each keeps one of its processes from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastCgiKeepAlive {
    /// None.
    Never,
    /// Those that end while no request of ours may be waiting for a process: how many there are, nobody has said.
    WhileNobodyWaits,
    /// And all of them where no more than these are open: the application has at least so many processes.
    UpTo(u32),
}

impl Default for FastCgiSettings {
    fn default() -> FastCgiSettings {
        FastCgiSettings {
            document_root: None,
            index: "index.php".to_owned(),
            endings: vec![".php".to_owned()],
            params: Vec::new(),
            keep_alive: FastCgiKeepAlive::Never,
        }
    }
}

/// Files of a root that are scripts: they are run, and never shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootScripts {
    /// Index into `Settings::origins`, of one that speaks FastCGI.
    pub origin: usize,
    /// See [`FastCgiSettings::endings`].
    pub endings: Vec<String>,
}
