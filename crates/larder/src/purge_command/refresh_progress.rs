//! How far a run of the refresher is, looked at until it is over.

use std::io::{IsTerminal, Write};

use serde_json::Value;

use crate::admin_client::{AdminFlags, exchange_json};
use crate::limits::REFRESH_LOOKS_PAUSE;

/// The last that is said of it.
pub fn wait(larder: &AdminFlags) -> Result<Value, String> {
    let is_watched = std::io::stderr().is_terminal();
    loop {
        let (status, progress) = exchange_json(larder, "GET", "/refresh", None)?;
        if status != 200 {
            return Err(progress["error"].as_str().unwrap_or("the admin address refused it").to_owned());
        }
        let is_over = progress["running"] != true;
        if is_watched {
            let end = if is_over {
                "\r\x1b[K".to_owned()
            } else {
                format!("\r{} of {}", progress["done"], progress["queued"])
            };
            // Nobody needs it.
            let _ = std::io::stderr().write_all(end.as_bytes());
        }
        if is_over {
            return Ok(progress);
        }
        std::thread::sleep(REFRESH_LOOKS_PAUSE);
    }
}
