//! The names of fields that larder itself reads, as one byte each.
//!
//! `classify` is on the hot path (a browser sends a dozen fields): it looks at the length and the first letter
//! and then compares once or twice. A name that nobody here reads is `Other` and is told apart by its text.

/// A field name, compared without case (RFC 9110 §5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FieldName {
    Host,
    Connection,
    KeepAlive,
    ProxyConnection,
    TransferEncoding,
    Te,
    Trailer,
    Upgrade,
    ContentLength,
    ContentType,
    ContentEncoding,
    ContentRange,
    ContentLocation,
    ContentLanguage,
    ContentMd5,
    ContentDigest,
    CacheControl,
    CdnCacheControl,
    SurrogateControl,
    Pragma,
    Expires,
    Date,
    Age,
    LastModified,
    Etag,
    Vary,
    SetCookie,
    Cookie,
    Authorization,
    ProxyAuthorization,
    ProxyAuthenticate,
    ProxyAuthenticationInfo,
    Expect,
    Range,
    IfRange,
    IfMatch,
    IfNoneMatch,
    IfModifiedSince,
    IfUnmodifiedSince,
    Accept,
    AcceptEncoding,
    AcceptLanguage,
    AcceptRanges,
    UserAgent,
    Referer,
    Via,
    Forwarded,
    XForwardedFor,
    XForwardedProto,
    XForwardedHost,
    XForwardedPort,
    XRealIp,
    XOriginalUrl,
    XRewriteUrl,
    XHttpMethodOverride,
    CacheStatus,
    Location,
    MaxForwards,
    Server,
    Warning,
    Allow,
    RetryAfter,
    CacheGroups,
    CacheGroupInvalidation,
    NoVarySearch,
    Http2Settings,
    /// Any other name.
    Other,
}

impl FieldName {
    /// Which known field this is.
    #[inline]
    pub fn classify(name: &[u8]) -> FieldName {
        use FieldName::*;
        let Some(&first) = name.first() else { return Other };
        let candidates: &[(FieldName, &str)] = match (name.len(), first | 0x20) {
            (2, b't') => &[(Te, "TE")],
            (3, b'a') => &[(Age, "Age")],
            (3, b'v') => &[(Via, "Via")],
            (4, b'd') => &[(Date, "Date")],
            (4, b'e') => &[(Etag, "ETag")],
            (4, b'h') => &[(Host, "Host")],
            (4, b'v') => &[(Vary, "Vary")],
            (5, b'a') => &[(Allow, "Allow")],
            (5, b'r') => &[(Range, "Range")],
            (6, b'a') => &[(Accept, "Accept")],
            (6, b'c') => &[(Cookie, "Cookie")],
            (6, b'e') => &[(Expect, "Expect")],
            (6, b'p') => &[(Pragma, "Pragma")],
            (6, b's') => &[(Server, "Server")],
            (7, b'e') => &[(Expires, "Expires")],
            (7, b'r') => &[(Referer, "Referer")],
            (7, b't') => &[(Trailer, "Trailer")],
            (7, b'u') => &[(Upgrade, "Upgrade")],
            (7, b'w') => &[(Warning, "Warning")],
            (8, b'i') => &[(IfRange, "If-Range"), (IfMatch, "If-Match")],
            (8, b'l') => &[(Location, "Location")],
            (9, b'f') => &[(Forwarded, "Forwarded")],
            (9, b'x') => &[(XRealIp, "X-Real-IP")],
            (10, b'c') => &[(Connection, "Connection")],
            (10, b'k') => &[(KeepAlive, "Keep-Alive")],
            (10, b's') => &[(SetCookie, "Set-Cookie")],
            (10, b'u') => &[(UserAgent, "User-Agent")],
            (11, b'c') => &[(ContentMd5, "Content-MD5")],
            (11, b'r') => &[(RetryAfter, "Retry-After")],
            (12, b'c') => {
                &[(ContentType, "Content-Type"), (CacheStatus, "Cache-Status"), (CacheGroups, "Cache-Groups")]
            }
            (12, b'm') => &[(MaxForwards, "Max-Forwards")],
            (13, b'a') => &[(Authorization, "Authorization"), (AcceptRanges, "Accept-Ranges")],
            (13, b'c') => &[(ContentRange, "Content-Range"), (CacheControl, "Cache-Control")],
            (13, b'i') => &[(IfNoneMatch, "If-None-Match")],
            (13, b'l') => &[(LastModified, "Last-Modified")],
            (13, b'x') => &[(XRewriteUrl, "X-Rewrite-URL")],
            (14, b'c') => &[(ContentLength, "Content-Length"), (ContentDigest, "Content-Digest")],
            (14, b'h') => &[(Http2Settings, "HTTP2-Settings")],
            (14, b'n') => &[(NoVarySearch, "No-Vary-Search")],
            (14, b'x') => &[(XOriginalUrl, "X-Original-URL")],
            (15, b'a') => &[(AcceptEncoding, "Accept-Encoding"), (AcceptLanguage, "Accept-Language")],
            (15, b'x') => &[(XForwardedFor, "X-Forwarded-For")],
            (16, b'c') => &[
                (ContentEncoding, "Content-Encoding"),
                (ContentLocation, "Content-Location"),
                (ContentLanguage, "Content-Language"),
            ],
            (16, b'p') => &[(ProxyConnection, "Proxy-Connection")],
            (16, b'x') => &[(XForwardedHost, "X-Forwarded-Host"), (XForwardedPort, "X-Forwarded-Port")],
            (17, b'c') => &[(CdnCacheControl, "CDN-Cache-Control")],
            (17, b'i') => &[(IfModifiedSince, "If-Modified-Since")],
            (17, b's') => &[(SurrogateControl, "Surrogate-Control")],
            (17, b't') => &[(TransferEncoding, "Transfer-Encoding")],
            (17, b'x') => &[(XForwardedProto, "X-Forwarded-Proto")],
            (18, b'p') => &[(ProxyAuthenticate, "Proxy-Authenticate")],
            (19, b'i') => &[(IfUnmodifiedSince, "If-Unmodified-Since")],
            (19, b'p') => &[(ProxyAuthorization, "Proxy-Authorization")],
            (22, b'x') => &[(XHttpMethodOverride, "X-HTTP-Method-Override")],
            (24, b'c') => &[(CacheGroupInvalidation, "Cache-Group-Invalidation")],
            (25, b'p') => &[(ProxyAuthenticationInfo, "Proxy-Authentication-Info")],
            _ => return Other,
        };
        for (known, text) in candidates {
            if name.eq_ignore_ascii_case(text.as_bytes()) {
                return *known;
            }
        }
        Other
    }

    /// The name as the RFCs spell it; empty for `Other`.
    pub const fn canonical(self) -> &'static str {
        use FieldName::*;
        match self {
            Host => "Host",
            Connection => "Connection",
            KeepAlive => "Keep-Alive",
            ProxyConnection => "Proxy-Connection",
            TransferEncoding => "Transfer-Encoding",
            Te => "TE",
            Trailer => "Trailer",
            Upgrade => "Upgrade",
            ContentLength => "Content-Length",
            ContentType => "Content-Type",
            ContentEncoding => "Content-Encoding",
            ContentRange => "Content-Range",
            ContentLocation => "Content-Location",
            ContentLanguage => "Content-Language",
            ContentMd5 => "Content-MD5",
            ContentDigest => "Content-Digest",
            CacheControl => "Cache-Control",
            CdnCacheControl => "CDN-Cache-Control",
            SurrogateControl => "Surrogate-Control",
            Pragma => "Pragma",
            Expires => "Expires",
            Date => "Date",
            Age => "Age",
            LastModified => "Last-Modified",
            Etag => "ETag",
            Vary => "Vary",
            SetCookie => "Set-Cookie",
            Cookie => "Cookie",
            Authorization => "Authorization",
            ProxyAuthorization => "Proxy-Authorization",
            ProxyAuthenticate => "Proxy-Authenticate",
            ProxyAuthenticationInfo => "Proxy-Authentication-Info",
            Expect => "Expect",
            Range => "Range",
            IfRange => "If-Range",
            IfMatch => "If-Match",
            IfNoneMatch => "If-None-Match",
            IfModifiedSince => "If-Modified-Since",
            IfUnmodifiedSince => "If-Unmodified-Since",
            Accept => "Accept",
            AcceptEncoding => "Accept-Encoding",
            AcceptLanguage => "Accept-Language",
            AcceptRanges => "Accept-Ranges",
            UserAgent => "User-Agent",
            Referer => "Referer",
            Via => "Via",
            Forwarded => "Forwarded",
            XForwardedFor => "X-Forwarded-For",
            XForwardedProto => "X-Forwarded-Proto",
            XForwardedHost => "X-Forwarded-Host",
            XForwardedPort => "X-Forwarded-Port",
            XRealIp => "X-Real-IP",
            XOriginalUrl => "X-Original-URL",
            XRewriteUrl => "X-Rewrite-URL",
            XHttpMethodOverride => "X-HTTP-Method-Override",
            CacheStatus => "Cache-Status",
            Location => "Location",
            MaxForwards => "Max-Forwards",
            Server => "Server",
            Warning => "Warning",
            Allow => "Allow",
            RetryAfter => "Retry-After",
            CacheGroups => "Cache-Groups",
            CacheGroupInvalidation => "Cache-Group-Invalidation",
            NoVarySearch => "No-Vary-Search",
            Http2Settings => "HTTP2-Settings",
            Other => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_name_classifies_to_itself_in_any_case() {
        for n in 0..FieldName::Other as u8 {
            let text = ALL[n as usize].canonical();
            assert_eq!(FieldName::classify(text.as_bytes()), ALL[n as usize]);
            assert_eq!(FieldName::classify(text.to_uppercase().as_bytes()), ALL[n as usize]);
            assert_eq!(FieldName::classify(text.to_lowercase().as_bytes()), ALL[n as usize]);
        }
    }

    #[test]
    fn a_near_miss_is_other() {
        for name in ["", "Hos", "Hosts", "Content_Length", "content-lengtH ", "\x08ost"] {
            assert_eq!(FieldName::classify(name.as_bytes()), FieldName::Other, "{name:?}");
        }
    }

    const ALL: &[FieldName] = {
        use FieldName::*;
        &[
            Host,
            Connection,
            KeepAlive,
            ProxyConnection,
            TransferEncoding,
            Te,
            Trailer,
            Upgrade,
            ContentLength,
            ContentType,
            ContentEncoding,
            ContentRange,
            ContentLocation,
            ContentLanguage,
            ContentMd5,
            ContentDigest,
            CacheControl,
            CdnCacheControl,
            SurrogateControl,
            Pragma,
            Expires,
            Date,
            Age,
            LastModified,
            Etag,
            Vary,
            SetCookie,
            Cookie,
            Authorization,
            ProxyAuthorization,
            ProxyAuthenticate,
            ProxyAuthenticationInfo,
            Expect,
            Range,
            IfRange,
            IfMatch,
            IfNoneMatch,
            IfModifiedSince,
            IfUnmodifiedSince,
            Accept,
            AcceptEncoding,
            AcceptLanguage,
            AcceptRanges,
            UserAgent,
            Referer,
            Via,
            Forwarded,
            XForwardedFor,
            XForwardedProto,
            XForwardedHost,
            XForwardedPort,
            XRealIp,
            XOriginalUrl,
            XRewriteUrl,
            XHttpMethodOverride,
            CacheStatus,
            Location,
            MaxForwards,
            Server,
            Warning,
            Allow,
            RetryAfter,
            CacheGroups,
            CacheGroupInvalidation,
            NoVarySearch,
            Http2Settings,
        ]
    };
}
