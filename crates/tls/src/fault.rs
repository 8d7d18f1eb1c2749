//! Why a TLS session does not come about, or ends before its time.

use rustls::{AlertDescription, CertificateError, Error};

/// What went wrong between us and somebody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nobody of those signed its certificate who may.
    UnknownAuthority,
    /// Its certificate is for another name.
    OtherName,
    Expired,
    NotYetValid,
    /// Anything else about its certificate.
    Certificate,
    /// It shows no certificate, though it has to.
    NoCertificate,
    /// We have no certificate to show yet.
    NothingToShow,
    /// The other side ended it, and said why: the alert's name.
    Alert(&'static str),
    /// No version, suite, group or signature that both know.
    NothingInCommon,
    /// It does not speak TLS.
    NotTls,
    /// What came is more than [`crate::limits::HANDSHAKE_BYTES_MAX`].
    TooLarge,
    /// It ended in the middle of the handshake.
    Ended,
    /// It speaks TLS, but not by the rules.
    Protocol,
}

impl Fault {
    pub(crate) fn of(error: &Error) -> Fault {
        match error {
            Error::InvalidCertificate(why) => match why {
                // Somebody of the same name may have signed it.
                CertificateError::UnknownIssuer | CertificateError::BadSignature => Fault::UnknownAuthority,
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => Fault::OtherName,
                CertificateError::Expired | CertificateError::ExpiredContext { .. } => Fault::Expired,
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => Fault::NotYetValid,
                _ => Fault::Certificate,
            },
            Error::General(why) if why == NOTHING_TO_SHOW => Fault::NothingToShow,
            Error::NoCertificatesPresented => Fault::NoCertificate,
            Error::AlertReceived(alert) => Fault::Alert(alert_name(*alert)),
            Error::PeerIncompatible(_) | Error::NoApplicationProtocol => Fault::NothingInCommon,
            Error::InvalidMessage(
                rustls::InvalidMessage::InvalidContentType | rustls::InvalidMessage::UnknownProtocolVersion,
            ) => Fault::NotTls,
            _ => Fault::Protocol,
        }
    }
}

/// How rustls says it; `session_tests.rs` holds it against that.
const NOTHING_TO_SHOW: &str = "no server certificate chain resolved";

/// Those that tell somebody something (RFC 8446 §6).
fn alert_name(alert: AlertDescription) -> &'static str {
    match alert {
        AlertDescription::BadCertificate => "bad_certificate",
        AlertDescription::UnsupportedCertificate => "unsupported_certificate",
        AlertDescription::CertificateRevoked => "certificate_revoked",
        AlertDescription::CertificateExpired => "certificate_expired",
        AlertDescription::CertificateUnknown => "certificate_unknown",
        AlertDescription::UnknownCA => "unknown_ca",
        AlertDescription::CertificateRequired => "certificate_required",
        AlertDescription::AccessDenied => "access_denied",
        AlertDescription::HandshakeFailure => "handshake_failure",
        AlertDescription::ProtocolVersion => "protocol_version",
        AlertDescription::InsufficientSecurity => "insufficient_security",
        AlertDescription::UnrecognisedName => "unrecognized_name",
        AlertDescription::NoApplicationProtocol => "no_application_protocol",
        AlertDescription::UserCanceled => "user_canceled",
        AlertDescription::DecodeError => "decode_error",
        AlertDescription::DecryptError => "decrypt_error",
        AlertDescription::IllegalParameter => "illegal_parameter",
        AlertDescription::UnexpectedMessage => "unexpected_message",
        AlertDescription::InternalError => "internal_error",
        _ => "another",
    }
}
