//! The modules that ask about the connection: unix, proxy, tls and h2. What larder does not have they deny.

use super::functions;
use crate::evaluation::evaluator::Run;
use crate::host::{Host, LogKind, ProxyField};
use crate::plain_values::{Fault, Plain};
use crate::variables::VariableId;

functions! {
    UnixFunction {
        User "user",
        Group "group",
        Uid "uid",
        Gid "gid",
    }
}

functions! {
    ProxyFunction {
        Alpn "alpn",
        Authority "authority",
        IsSsl "is_ssl",
        ClientHasCertSess "client_has_cert_sess",
        ClientHasCertConn "client_has_cert_conn",
        SslVerifyResult "ssl_verify_result",
        SslVersion "ssl_version",
        ClientCertCn "client_cert_cn",
        SslCipher "ssl_cipher",
        CertSign "cert_sign",
        CertKey "cert_key",
    }
}

functions! {
    TlsFunction {
        IsTls "is_tls",
        Version "version",
        Ja3 "ja3",
        Cipher "cipher",
        Authority "authority",
        Alpn "alpn",
        CertSign "cert_sign",
        CertKey "cert_key",
    }
}

functions! {
    H2Function {
        Is "is",
        RapidReset "rapid_reset",
        RapidResetLimit "rapid_reset_limit",
        RapidResetPeriod "rapid_reset_period",
        RapidResetBudget "rapid_reset_budget",
    }
}

/// How many requests a connection may take back in a period, as `wire` has it.
const RAPID_RESETS: i64 = 200;
/// In seconds.
const RAPID_RESET_PERIOD: f64 = 60.0;

pub fn unix<'a, H: Host<'a>>(run: &Run<'a, '_, H>, function: UnixFunction) -> Result<Plain<'a>, Fault> {
    let Some(peer) = run.host.unix_peer() else {
        run.host.log(LogKind::Error, b"vmod unix was asked about a connection that is none over a UNIX socket");
        return Ok(match function {
            UnixFunction::User | UnixFunction::Group => Plain::Text(None),
            UnixFunction::Uid | UnixFunction::Gid => Plain::Int(-1),
        });
    };
    let named = |name: Option<String>| {
        let name = name.map(|name| run.arena.copy(name.as_bytes())).transpose()?;
        Ok(Plain::Text(name))
    };
    match function {
        UnixFunction::User => named(run.host.world().user_name(peer.user)),
        UnixFunction::Group => named(run.host.world().group_name(peer.group)),
        UnixFunction::Uid => Ok(Plain::Int(i64::from(peer.user))),
        UnixFunction::Gid => Ok(Plain::Int(i64::from(peer.group))),
    }
}

pub fn proxy<'a, H: Host<'a>>(run: &Run<'a, '_, H>, function: ProxyFunction) -> Plain<'a> {
    use ProxyFunction as F;
    let truth = |field| Plain::Bool(run.host.proxy_field(field).truth());
    let text = |field| Plain::Text(run.host.proxy_field(field).text());
    match function {
        F::Alpn => text(ProxyField::Alpn),
        F::Authority => text(ProxyField::Authority),
        F::IsSsl => truth(ProxyField::IsTls),
        F::ClientHasCertSess => truth(ProxyField::HasCertificateInSession),
        F::ClientHasCertConn => truth(ProxyField::HasCertificateInConnection),
        F::SslVerifyResult => Plain::Int(run.host.proxy_field(ProxyField::VerifyResult).int()),
        F::SslVersion => text(ProxyField::TlsVersion),
        F::ClientCertCn => text(ProxyField::CertificateName),
        F::SslCipher => text(ProxyField::Cipher),
        F::CertSign => text(ProxyField::CertificateSignature),
        F::CertKey => text(ProxyField::CertificateKey),
    }
}

/// TLS of larder's own there is none yet, so what the PROXY protocol says is all that is known.
pub fn tls<'a, H: Host<'a>>(run: &Run<'a, '_, H>, function: TlsFunction) -> Plain<'a> {
    use TlsFunction as F;
    proxy(
        run,
        match function {
            F::IsTls => ProxyFunction::IsSsl,
            F::Version => ProxyFunction::SslVersion,
            F::Cipher => ProxyFunction::SslCipher,
            F::Authority => ProxyFunction::Authority,
            F::Alpn => ProxyFunction::Alpn,
            F::CertSign => ProxyFunction::CertSign,
            F::CertKey => ProxyFunction::CertKey,
            F::Ja3 => return Plain::Text(None),
        },
    )
}

/// Outside of HTTP/2 all is -1. What is set is taken and without effect: the budget is that of all floods, and no program sees
/// what is left of it.
pub fn h2<'a, H: Host<'a>>(run: &Run<'a, '_, H>, function: H2Function) -> Plain<'a> {
    let is_http2 = run.host.variable(VariableId::REQ_TRANSPORT).text() == Some(b"HTTP/2");
    let or_none = |value: f64| if is_http2 { value } else { -1.0 };
    match function {
        H2Function::Is => Plain::Bool(is_http2),
        // However late one comes, it counts as long as the request is not answered.
        H2Function::RapidReset | H2Function::RapidResetPeriod => Plain::Duration(or_none(RAPID_RESET_PERIOD)),
        H2Function::RapidResetLimit => Plain::Int(if is_http2 { RAPID_RESETS } else { -1 }),
        H2Function::RapidResetBudget => Plain::Real(or_none(RAPID_RESETS as f64)),
    }
}
