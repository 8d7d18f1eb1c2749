//! `larder explain`: what the running larder would do with a request, and what would have to change.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use crate::admin_client::{self, RemoteFlags, encoded, failed};
use crate::explain_text;
use crate::limits::ADMIN_HEAD_BYTES_MAX;
use crate::quantities::parse_duration;

/// What else stands in the head of the request to the admin address.
const HEAD_REST_BYTES: usize = 1 << 10;

#[derive(Clone, Debug, Args)]
pub struct ExplainUrlFlags {
    /// The URL as a client asks for it: http:// or https://, with the host that it names
    #[arg(value_name = "URL")]
    pub url: String,

    /// A header that the request has, as 'Name: value'; repeatable
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    pub headers: Vec<String>,

    /// The method
    #[arg(long, short = 'X', value_name = "METHOD", default_value = "GET")]
    pub method: String,

    /// The client's address, for routes that are not for everybody
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub client: std::net::IpAddr,

    /// As if it were asked later: now+1h, now+30s
    #[arg(long, value_name = "now+TIME", value_parser = parse_as_if)]
    pub as_if: Option<Duration>,

    #[command(flatten)]
    pub remote: RemoteFlags,
}

pub fn explain(flags: &ExplainUrlFlags) -> ExitCode {
    let target = target_of(flags);
    if target.len() + HEAD_REST_BYTES > ADMIN_HEAD_BYTES_MAX {
        return failed(&format!(
            "the request is too long to be explained: with its headers, percent-encoded, it has {} bytes, and the admin address takes {}",
            target.len(),
            ADMIN_HEAD_BYTES_MAX - HEAD_REST_BYTES
        ));
    }
    admin_client::ask(&flags.remote, "GET", &target, b"", explain_text::of)
}

fn target_of(flags: &ExplainUrlFlags) -> String {
    let ExplainUrlFlags { url, headers, method, client, as_if, .. } = flags;
    let mut target = format!("/explain?url={}&method={}&client={client}", encoded(url), encoded(method));
    headers.iter().for_each(|line| target.push_str(&format!("&header={}", encoded(line))));
    if let Some(later) = as_if {
        target.push_str(&format!("&as_if_ms={}", later.as_millis()));
    }
    target
}

fn parse_as_if(text: &str) -> Result<Duration, String> {
    match text.strip_prefix("now+") {
        Some(time) => parse_duration(time),
        None if text == "now" => Ok(Duration::ZERO),
        None => Err("write now+1h, now+30s or the like: the past is over".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(url: &str, headers: &[&str]) -> ExplainUrlFlags {
        ExplainUrlFlags {
            url: url.to_owned(),
            headers: headers.iter().map(|line| (*line).to_owned()).collect(),
            method: "GET".to_owned(),
            client: [127, 0, 0, 1].into(),
            as_if: parse_as_if("now+90s").ok(),
            remote: RemoteFlags::default(),
        }
    }

    #[test]
    fn nothing_that_was_typed_becomes_another_parameter_or_line() {
        let target = target_of(&flags("http://a.test/x?y=1&method=PURGE#z", &["Cookie: a=b&url=c\r\nX: y"]));
        assert_eq!(
            target,
            "/explain?url=http%3A//a.test/x%3Fy%3D1%26method%3DPURGE%23z&method=GET&client=127.0.0.1\
             &header=Cookie%3A%20a%3Db%26url%3Dc%0D%0AX%3A%20y&as_if_ms=90000"
        );
    }

    #[test]
    fn a_moment_is_now_and_later() {
        assert_eq!(parse_as_if("now"), Ok(Duration::ZERO));
        assert_eq!(parse_as_if("now+1h"), Ok(Duration::from_secs(3600)));
        for wrong in ["1h", "now-1h", "now+", "later"] {
            assert!(parse_as_if(wrong).is_err(), "{wrong}");
        }
    }
}
