//! larder with a configuration of a test's own, on a port that the kernel gives it.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::peer_process::{Running, wait_for};

pub struct ConfiguredLarder {
    pub address: SocketAddr,
    _child: Running,
}

impl ConfiguredLarder {
    /// `text`: of its larder.toml, all but a listener and the admin address. `name`: of its files in the folder.
    pub fn start(folder: &Path, name: &str, text: &str) -> ConfiguredLarder {
        let text = format!("{text}\n[[listen]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"off\"\n");
        let (config, ports) = (folder.join(format!("{name}.toml")), folder.join(format!("{name}.ports")));
        std::fs::write(&config, text).unwrap();
        let errors = std::fs::File::create(folder.join(format!("{name}.stderr"))).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
        command.args(["serve", "--no-supervisor", "--config"]).arg(&config).arg("--ports-file").arg(&ports);
        let child = Running(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn().unwrap());
        let mut address = None;
        wait_for("larder names its port", || {
            let text = std::fs::read_to_string(&ports).unwrap_or_default();
            address = text.lines().find_map(|line| line.strip_prefix("listen ")?.trim().parse().ok());
            address.is_some()
        });
        ConfiguredLarder { address: address.unwrap(), _child: child }
    }
}
