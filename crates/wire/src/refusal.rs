//! Why bytes were not accepted: a status to answer with, a token for the log, and the setting that would change it.
//!
//! Tokens are stable: operators filter logs by them. Every refusal that this crate can give is in the list below.

/// A message that is not accepted. The connection it came on must be closed after the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What to answer the client with; 502 when an origin's message is refused.
    pub status: u16,
    pub token: &'static str,
    /// The setting that allows more, when there is one.
    pub limit: Option<&'static str>,
}

macro_rules! refusals {
    ($($name:ident = $status:literal $token:literal $(by $limit:literal)?;)*) => {
        /// The closed list.
        pub mod refusals {
            use super::Refusal;
            $(pub const $name: Refusal =
                Refusal { status: $status, token: $token, limit: refusals!(@limit $($limit)?) };)*
            pub const ALL: &[Refusal] = &[$($name),*];
        }
    };
    (@limit) => { None };
    (@limit $limit:literal) => { Some($limit) };
}

refusals! {
    // The lines of a head.
    EMPTY_LINES = 400 "empty-lines";
    REQUEST_LINE_INVALID = 400 "request-line-invalid";
    METHOD_TOO_LONG = 501 "method-too-long";
    VERSION_INVALID = 400 "version-invalid";
    VERSION_UNSUPPORTED = 505 "version-unsupported";
    LINE_END_INVALID = 400 "line-end-invalid";
    FIELD_NAME_INVALID = 400 "field-name-invalid";
    FIELD_VALUE_INVALID = 400 "field-value-invalid";
    FIELD_REPEATED = 400 "field-repeated";
    REQUEST_HEAD_TOO_LARGE = 431 "request-head-too-large" by "limits.request_head_bytes_max";
    REQUEST_FIELDS_TOO_MANY = 431 "request-fields-too-many" by "limits.request_fields_max";
    REQUEST_FIELD_TOO_LARGE = 431 "request-field-too-large" by "limits.request_field_bytes_max";
    CONNECTION_INVALID = 400 "connection-invalid";
    CONNECTION_OPTIONS_TOO_MANY = 431 "connection-options-too-many";
    CONNECTION_NAMES_FRAMING = 400 "connection-names-framing";
    EXPECTATION_UNKNOWN = 417 "expectation-unknown";

    // The request target and Host.
    TARGET_TOO_LONG = 414 "target-too-long" by "limits.request_target_bytes_max";
    TARGET_INVALID = 400 "target-invalid";
    TARGET_FRAGMENT = 400 "target-fragment";
    TARGET_FORM = 400 "target-form";
    TARGET_USERINFO = 400 "target-userinfo";
    TARGET_AUTHORITY_INVALID = 400 "target-authority-invalid";
    TARGET_SCHEME_UNSUPPORTED = 400 "target-scheme-unsupported";
    TARGET_SCHEME_MISMATCH = 400 "target-scheme-mismatch";
    HOST_MISSING = 400 "host-missing";
    HOST_REPEATED = 400 "host-repeated";
    HOST_INVALID = 400 "host-invalid";

    // Framing.
    CONTENT_LENGTH_MISSING = 400 "content-length-missing";
    CONTENT_LENGTH_INVALID = 400 "content-length-invalid";
    CONTENT_LENGTH_REPEATED = 400 "content-length-repeated";
    TRANSFER_ENCODING_INVALID = 400 "transfer-encoding-invalid";
    TRANSFER_ENCODING_REPEATED = 400 "transfer-encoding-repeated";
    TRANSFER_ENCODING_UNSUPPORTED = 501 "transfer-encoding-unsupported";
    TRANSFER_ENCODING_IN_HTTP10 = 400 "transfer-encoding-in-http10";
    LENGTH_AND_TRANSFER_ENCODING = 400 "length-and-transfer-encoding";
    CONNECT_WITH_BODY = 400 "connect-with-body";

    // Chunked bodies.
    CHUNK_SIZE_INVALID = 400 "chunk-size-invalid";
    CHUNK_SIZE_TOO_LARGE = 400 "chunk-size-too-large";
    CHUNK_EXTENSION_INVALID = 400 "chunk-extension-invalid";
    CHUNK_EXTENSIONS_TOO_LARGE = 413 "chunk-extensions-too-large" by "limits.chunk_extension_bytes_max";
    CHUNK_OVERHEAD_TOO_LARGE = 413 "chunk-overhead-too-large" by "limits.chunk_overhead_bytes_free";
    CHUNK_END_INVALID = 400 "chunk-end-invalid";
    TRAILER_INVALID = 400 "trailer-invalid";
    TRAILERS_TOO_LARGE = 431 "trailers-too-large" by "limits.trailer_bytes_max";
    TRAILERS_TOO_MANY = 431 "trailers-too-many" by "limits.trailer_fields_max";

    // HTTP/2.
    PSEUDO_FIELD_MISSING = 400 "pseudo-field-missing";
    PSEUDO_FIELD_REPEATED = 400 "pseudo-field-repeated";
    PSEUDO_FIELD_UNKNOWN = 400 "pseudo-field-unknown";
    PSEUDO_FIELD_LATE = 400 "pseudo-field-late";
    METHOD_INVALID = 400 "method-invalid";
    CONNECTION_FIELD_IN_HTTP2 = 400 "connection-field-in-http2";
    HOST_DIFFERS = 400 "host-differs-from-authority";
    CONTENT_LENGTH_UNTRUE = 400 "content-length-untrue";
    EXTENDED_CONNECT_INVALID = 400 "extended-connect-invalid";

    // Only from origins.
    STATUS_LINE_INVALID = 502 "status-line-invalid";
    REASON_TOO_LONG = 502 "reason-too-long" by "limits.response_target_bytes_max";
    RESPONSE_HEAD_TOO_LARGE = 502 "response-head-too-large" by "limits.response_head_bytes_max";
    RESPONSE_FIELDS_TOO_MANY = 502 "response-fields-too-many" by "limits.response_fields_max";
    RESPONSE_FIELD_TOO_LARGE = 502 "response-field-too-large" by "limits.response_field_bytes_max";
    SWITCHING_UNASKED = 502 "switching-unasked";

    // Only where FastCGI is spoken with an origin: the body of a request, the records of an answer, and the heads that programs write.
    FASTCGI_VERSION_WRONG = 502 "fastcgi-version-wrong";
    FASTCGI_ID_WRONG = 502 "fastcgi-id-wrong";
    FASTCGI_RECORD_UNEXPECTED = 502 "fastcgi-record-unexpected";
    FASTCGI_END_INVALID = 502 "fastcgi-end-invalid";
    FASTCGI_BEHIND_END = 502 "fastcgi-behind-end";
    FASTCGI_STREAM_GOES_ON = 502 "fastcgi-stream-goes-on";
    FASTCGI_RECORDS_IDLE = 502 "fastcgi-records-idle";
    FASTCGI_ROLE_UNKNOWN = 502 "fastcgi-role-unknown";
    CGI_BODY_TOO_LARGE = 413 "cgi-body-too-large" by "limits.fastcgi_chunked_body_bytes_max";
    CGI_HEAD_MISSING = 502 "cgi-head-missing";
    CGI_STATUS_INVALID = 502 "cgi-status-invalid";
    CGI_STATUS_REPEATED = 502 "cgi-status-repeated";
    CGI_TRANSFER_ENCODING = 502 "cgi-transfer-encoding";

    // The PROXY protocol.
    PROXY_HEADER_MISSING = 400 "proxy-header-missing";
    PROXY_HEADER_INVALID = 400 "proxy-header-invalid";
    PROXY_HEADER_TOO_LARGE = 400 "proxy-header-too-large";
}

impl Refusal {
    /// The same reason, when it was the origin that sent the bytes.
    pub const fn of_origin(self) -> Refusal {
        Refusal { status: 502, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::refusals::ALL;

    #[test]
    fn tokens_are_unique_and_plain() {
        for (n, refusal) in ALL.iter().enumerate() {
            assert!(refusal.token.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'));
            assert!(!ALL[..n].iter().any(|other| other.token == refusal.token), "{}", refusal.token);
        }
    }
}
