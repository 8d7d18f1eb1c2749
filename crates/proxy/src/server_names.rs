//! What programs are told about the machine that they run on: `server.hostname` and `server.identity`. A process has one of each.

use std::sync::OnceLock;

static IDENTITY: OnceLock<String> = OnceLock::new();

/// The name of the machine.
pub fn server_hostname() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| rustix::system::uname().nodename().to_string_lossy().into_owned())
}

/// What this server is called: Varnish's `-i`, or else the name of the machine.
pub fn server_identity() -> &'static str {
    IDENTITY.get().map_or_else(server_hostname, String::as_str)
}

/// Before any program is loaded; what was said first holds.
pub fn set_server_identity(name: &str) {
    let _ = IDENTITY.set(name.to_owned());
}
