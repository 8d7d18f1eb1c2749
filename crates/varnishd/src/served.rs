//! What the front asks of the program that it stands before. Every verb is one that larder has by itself; nothing here is
//! about Varnish but the names.

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// What was asked for is wrong in itself.
    Wrong(String),
    /// It is good, and cannot be now.
    Cannot(String),
}

/// When a program probes its backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VclState {
    Auto,
    Cold,
    Warm,
}

impl VclState {
    pub const WORDS: [(&'static str, VclState); 3] =
        [("auto", VclState::Auto), ("cold", VclState::Cold), ("warm", VclState::Warm)];

    pub(crate) fn word(self) -> &'static str {
        VclState::WORDS[self as usize].0
    }
}

/// Whether it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Temperature {
    Cold,
    Warm,
}

/// Where a program comes from.
#[derive(Clone, Copy, Debug)]
pub enum VclText<'a> {
    File(&'a str),
    Inline(&'a [u8]),
}

/// A loaded program, or a label.
#[derive(Clone, Debug, PartialEq)]
pub struct VclRow {
    pub name: String,
    pub is_active: bool,
    pub state: VclState,
    pub temperature: Temperature,
    /// Requests and fetches that have it. `None` while nothing runs.
    pub busy: Option<usize>,
    /// The labels that stand for it.
    pub labels: Vec<String>,
    /// It is a label itself, and stands for this one.
    pub label_of: Option<String>,
    /// Labels that it hands requests to.
    pub hands_to: Vec<String>,
}

/// A file of a program, or what stands in for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRow {
    pub name: String,
    pub text: Vec<u8>,
}

/// A ban in force.
#[derive(Clone, Debug, PartialEq)]
pub struct BanRow {
    pub at_s: f64,
    pub is_done: bool,
    pub expression: String,
}

/// An operator's word about a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Auto,
    Healthy,
    Sick,
}

impl Order {
    pub const WORDS: [(&'static str, Order); 3] =
        [("auto", Order::Auto), ("healthy", Order::Healthy), ("sick", Order::Sick)];
}

/// A backend of a loaded program.
#[derive(Clone, Debug, PartialEq)]
pub struct BackendRow {
    pub vcl: String,
    pub name: String,
    pub is_of_active: bool,
    pub ordered: Order,
    pub is_healthy: bool,
    pub changed_s: f64,
    pub probe: Option<ProbeRow>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ProbeRow {
    pub good: u32,
    pub threshold: u32,
    pub window: u32,
    /// How the last one ended.
    pub last: String,
}

/// Where clients are listened for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenRow {
    pub name: String,
    /// An address, or a path.
    pub host: String,
    /// `None` for a path.
    pub port: Option<u16>,
}

/// The program behind the front.
pub trait Served: Send + Sync {
    /// Seconds since 1970.
    fn now_s(&self) -> f64;
    /// Of the process that is asked, and of the one that serves while it does.
    fn pids(&self) -> (u32, Option<u32>);
    /// What it runs on, for the banner.
    fn platform(&self) -> String;
    fn is_running(&self) -> bool;
    fn start(&self) -> Result<(), Refusal>;
    fn stop(&self) -> Result<(), Refusal>;

    /// What was warned of, drawn; empty when nothing was.
    fn load(&self, name: &str, text: VclText<'_>, state: VclState) -> Result<String, Refusal>;
    /// A program or a label.
    fn use_vcl(&self, name: &str) -> Result<(), Refusal>;
    fn discard(&self, name: &str) -> Result<(), Refusal>;
    fn label(&self, label: &str, name: &str) -> Result<(), Refusal>;
    fn set_state(&self, name: &str, state: VclState) -> Result<(), Refusal>;
    /// In the order in which they were loaded.
    fn vcls(&self) -> Vec<VclRow>;
    /// The files of a program, its own first, builtin.vcl last.
    fn sources(&self, name: &str) -> Option<Vec<SourceRow>>;

    fn ban(&self, expression: &[u8]) -> Result<(), Refusal>;
    /// Newest first.
    fn bans(&self) -> Vec<BanRow>;
    fn backends(&self) -> Vec<BackendRow>;
    fn order_health(&self, vcl: &str, backend: &str, order: Order) -> Result<(), Refusal>;
    /// Name and kind.
    fn storages(&self) -> Vec<(String, String)>;
    fn listeners(&self) -> Vec<ListenRow>;

    /// A value in the form in which it is shown. It is taken over at once.
    fn set_parameter(&self, name: &str, value: &str) -> Result<(), Refusal>;
    /// Transactions are numbered from here on, by so many at a time on each worker.
    fn set_xids(&self, next: u32, block: u32);
    /// Why a parameter changes nothing here, if that is so.
    fn parameter_note(&self, name: &str) -> Option<&'static str>;
}
