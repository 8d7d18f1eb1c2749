//! The management port of Varnish, which larder speaks too: a command, and what is said to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A C compiler may be at work behind it.
const PATIENCE: Duration = Duration::from_secs(60);
const DONE: &str = "200";

pub struct ManagementPort {
    from: BufReader<TcpStream>,
    to: TcpStream,
}

impl ManagementPort {
    pub fn connect(port: u16) -> Result<ManagementPort, String> {
        let said = |error: std::io::Error| format!("the management port: {error}");
        let to = TcpStream::connect(("127.0.0.1", port)).map_err(said)?;
        to.set_read_timeout(Some(PATIENCE)).map_err(said)?;
        let mut connected = ManagementPort { from: BufReader::new(to.try_clone().map_err(said)?), to };
        connected.read().map_err(said)?;
        Ok(connected)
    }

    /// Whether it was done, and what was said of it.
    pub fn say(&mut self, command: &str) -> Result<(bool, String), String> {
        let said = |error: std::io::Error| format!("the management port: {error}");
        self.to.write_all(format!("{command}\n").as_bytes()).map_err(said)?;
        self.read().map_err(said)
    }

    pub fn must(&mut self, command: &str) -> Result<(), String> {
        match self.say(command)? {
            (true, _) => Ok(()),
            (false, text) => Err(format!("'{command}' is refused: {text}")),
        }
    }

    /// A line of status and length, and so much text and the end of a line.
    fn read(&mut self) -> std::io::Result<(bool, String)> {
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        let mut words = line.split_whitespace();
        let status = words.next().unwrap_or_default().to_string();
        let length: usize = words
            .next()
            .and_then(|word| word.parse().ok())
            .ok_or_else(|| std::io::Error::other(format!("'{}' is no line of status", line.trim_end())))?;
        let mut text = vec![0; length + 1];
        self.from.read_exact(&mut text)?;
        text.pop();
        Ok((status == DONE, String::from_utf8_lossy(&text).into_owned()))
    }
}
