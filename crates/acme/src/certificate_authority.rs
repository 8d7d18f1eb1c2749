//! What a renewer asks of an authority. The real one is a conversation over HTTPS; tests play it.

use crate::names::NameSet;
use crate::order_failure::Failure;
use crate::schedule::Window;

/// A certificate that was signed, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issued {
    /// With those that lead to the authority.
    pub chain: String,
    pub key: String,
}

/// What an authority says of a certificate's renewal (RFC 9773).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenewalInfo {
    pub window: Window,
    /// Where it says why.
    pub explanation: Option<String>,
    /// When it wants to be asked again, in seconds from now.
    pub again_s: u64,
}

/// The certificate that an order replaces, in PEM.
pub type Replaced<'a> = &'a str;

pub trait Authority {
    /// `None`: it does not say.
    fn renewal_info(&self, chain: &str) -> impl Future<Output = Result<Option<RenewalInfo>, Failure>>;

    /// Orders a certificate. `failures`: how often that failed since it last went well.
    fn issue(
        &self,
        names: &NameSet,
        replaced: Option<Replaced<'_>>,
        failures: u32,
        now_s: u64,
    ) -> impl Future<Output = Result<Issued, Failure>>;
}
