//! What is known of an exchange when it is over.

use std::net::IpAddr;

use message::{Scheme, Version};

use crate::access_log::CacheVerdict;
use crate::error_note::ErrorNote;
use crate::events::origin_try::OriginTry;
use crate::policy_columns::{Life, LoggedTexts};
use crate::tls_facts::TlsFacts;

/// An exchange that is over. All of it is borrowed from the story's end.
#[derive(Clone, Copy, Debug)]
pub struct ExchangeEvent<'a> {
    /// When it ended.
    pub wall_ms: u64,
    /// The client's address; one on a UNIX socket has loopback's.
    pub client: IpAddr,
    /// The name of who has shown a password, to the forward proxy or to a route, or of whom a route's service has said who it is.
    pub user: Option<&'a [u8]>,
    /// Empty when no request line could be read.
    pub method: &'a [u8],
    pub path: &'a [u8],
    pub query: Option<&'a [u8]>,
    pub version: Version,
    pub scheme: Scheme,
    pub host: Option<&'a [u8]>,
    pub referer: Option<&'a [u8]>,
    pub user_agent: Option<&'a [u8]>,
    /// The name that its route is counted under.
    pub route: &'a str,
    pub status: u16,
    /// Bytes of the body that went out.
    pub body_bytes: u64,
    pub verdict: CacheVerdict,
    /// Why an origin was asked, where one was: a reason of RFC 9211 §2.2.
    pub forwarded: Option<&'static str>,
    /// From the first byte of the request to the last of its answer.
    pub micros: u64,
    /// Until the answer began to go out, if one did.
    pub first_byte_micros: Option<u64>,
    /// Not all of its answer went out, and not for its client's sake.
    pub is_cut: bool,
    /// The token of a refusal, a failure or a reason not to store; empty when there is nothing to say.
    pub why: &'static str,
    /// Whom its fetch has asked, in order; empty where nobody read along when the fetch began.
    pub tries: &'a [OriginTry],
    /// The number of an error of ours, and what a stranger is not told of it.
    pub error: Option<&'a ErrorNote>,
    /// Where it came by TLS of ours.
    pub tls: Option<&'a TlsFacts>,
    /// Under a program: how long what was fetched for this lives, and what the program logged.
    pub life: Option<&'a Life>,
    pub logged: Option<&'a LoggedTexts>,
}

impl ExchangeEvent<'_> {
    /// Has somebody failed on our side, or behind us?
    pub(crate) fn is_error(&self) -> bool {
        self.status >= 500 || self.is_cut || self.verdict == CacheVerdict::Error
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A hit that a test changes as it needs.
    pub(crate) fn sample() -> ExchangeEvent<'static> {
        ExchangeEvent {
            wall_ms: 971_186_136_007,
            client: IpAddr::from([192, 0, 2, 7]),
            user: None,
            method: b"GET",
            path: b"/a",
            query: Some(b"b=1"),
            version: Version::Http11,
            scheme: Scheme::Http,
            host: Some(b"t.test"),
            referer: None,
            user_agent: Some(b"curl/8.14"),
            route: "/",
            status: 200,
            body_bytes: 6221,
            verdict: CacheVerdict::Hit,
            forwarded: None,
            micros: 17,
            first_byte_micros: Some(17),
            is_cut: false,
            why: "",
            tries: &[],
            error: None,
            tls: None,
            life: None,
            logged: None,
        }
    }
}
