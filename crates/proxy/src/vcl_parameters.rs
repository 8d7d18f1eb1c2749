//! What Varnish calls parameters, as far as a loaded VCL makes something of them, with the defaults that its files rely
//! on. They bear Varnish's own names, because that is what operators type.
//!
//! Parameters that bound or time something that larder bounds anyway (`timeout_idle`, `http_req_size` …) are fields of
//! `limits::Limits` and not here. The built-in policy reads none of these: it is RFC 9111's.

use std::time::Duration;

use rules::lifetimes::Defaults;

/// How ESI is read: the bits `esi_…` of Varnish's parameter `feature`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EsiFeatures {
    /// Not `esi_disable_xml_check`: what does not begin with `<` is not looked through.
    pub wants_xml: bool,
    /// `esi_ignore_other_elements`.
    pub ignores_others: bool,
    /// `esi_remove_bom`.
    pub removes_bom: bool,
    /// `esi_ignore_https`: it is asked for as `http://` is.
    pub takes_https: bool,
    /// `esi_include_onerror`.
    pub heeds_onerror: bool,
}

impl Default for EsiFeatures {
    fn default() -> EsiFeatures {
        EsiFeatures {
            wants_xml: true,
            ignores_others: false,
            removes_bom: false,
            takes_https: false,
            heeds_onerror: false,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct VclParameters {
    /// For how long an answer is fresh that does not say so itself.
    pub default_ttl: Duration,
    /// For how long after that it may be served stale while a new one is fetched.
    pub default_grace: Duration,
    /// For how long after that it is kept to be validated.
    pub default_keep: Duration,
    /// For how long builtin.vcl remembers that an answer cannot be cached.
    pub uncacheable_ttl: Duration,
    pub max_restarts: u32,
    pub max_retries: u32,
    /// How far the origin's clock may be wrong before its Date is not believed.
    pub clock_skew: Duration,
    pub http_range_support: bool,
    /// Programs have bodies gzipped and gunzipped, and what a client takes of codings is gzip or nothing.
    pub http_gzip_support: bool,
    /// From 0 (not smaller) to 9 (as small as can be).
    pub gzip_level: u8,
    pub esi: EsiFeatures,
    /// For backends with `.max_connections` that say nothing themselves: who may wait for a connection, and for how long.
    pub backend_wait_limit: u32,
    pub backend_wait_timeout: Duration,
    /// A loaded program that is neither active nor labelled stops probing its backends after so long.
    pub vcl_cooldown: Duration,
}

impl VclParameters {
    /// What an answer lives by that does not say so itself.
    pub(crate) fn lifetimes(&self) -> Defaults {
        let ms = |of: Duration| of.as_millis() as u64;
        Defaults {
            ttl_ms: ms(self.default_ttl),
            grace_ms: ms(self.default_grace),
            keep_ms: ms(self.default_keep),
            clock_skew_s: self.clock_skew.as_secs(),
        }
    }
}

impl Default for VclParameters {
    fn default() -> VclParameters {
        VclParameters {
            default_ttl: Duration::from_secs(120),
            default_grace: Duration::from_secs(10),
            default_keep: Duration::ZERO,
            uncacheable_ttl: Duration::from_secs(120),
            max_restarts: 4,
            max_retries: 4,
            clock_skew: Duration::from_secs(10),
            http_range_support: true,
            http_gzip_support: true,
            gzip_level: 6,
            esi: EsiFeatures::default(),
            backend_wait_limit: 0,
            backend_wait_timeout: Duration::ZERO,
            vcl_cooldown: Duration::from_secs(600),
        }
    }
}
