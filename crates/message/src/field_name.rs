//! The names of fields that larder itself reads, as one byte each.
//!
//! `classify` is on the hot path (a browser sends a dozen fields): it looks at the length and the first letter
//! and then compares a word at a time. A name that nobody here reads is `Other` and is told apart by its text.

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
    StrictTransportSecurity,
    UseAsDictionary,
    AvailableDictionary,
    DictionaryId,
    /// Any other name.
    Other,
}

impl FieldName {
    /// The field whose `as u16` this is; `Other` for any number beyond.
    #[inline]
    pub fn by_number(number: u16) -> FieldName {
        ALL.get(usize::from(number)).copied().unwrap_or(FieldName::Other)
    }

    /// All but `Other`.
    pub const fn known() -> &'static [FieldName] {
        ALL
    }

    /// Which known field this is.
    #[inline]
    pub fn classify(name: &[u8]) -> FieldName {
        use FieldName::*;
        let Some(&first) = name.first() else { return Other };
        match (name.len(), first | 0x20) {
            (2, b't') if same(name, b"te") => Te,
            (3, b'a') if same(name, b"age") => Age,
            (3, b'v') if same(name, b"via") => Via,
            (4, b'd') if same(name, b"date") => Date,
            (4, b'e') if same(name, b"etag") => Etag,
            (4, b'h') if same(name, b"host") => Host,
            (4, b'v') if same(name, b"vary") => Vary,
            (5, b'a') if same(name, b"allow") => Allow,
            (5, b'r') if same(name, b"range") => Range,
            (6, b'a') if same(name, b"accept") => Accept,
            (6, b'c') if same(name, b"cookie") => Cookie,
            (6, b'e') if same(name, b"expect") => Expect,
            (6, b'p') if same(name, b"pragma") => Pragma,
            (6, b's') if same(name, b"server") => Server,
            (7, b'e') if same(name, b"expires") => Expires,
            (7, b'r') if same(name, b"referer") => Referer,
            (7, b't') if same(name, b"trailer") => Trailer,
            (7, b'u') if same(name, b"upgrade") => Upgrade,
            (7, b'w') if same(name, b"warning") => Warning,
            (8, b'i') if same(name, b"if-range") => IfRange,
            (8, b'i') if same(name, b"if-match") => IfMatch,
            (8, b'l') if same(name, b"location") => Location,
            (9, b'f') if same(name, b"forwarded") => Forwarded,
            (9, b'x') if same(name, b"x-real-ip") => XRealIp,
            (10, b'c') if same(name, b"connection") => Connection,
            (10, b'k') if same(name, b"keep-alive") => KeepAlive,
            (10, b's') if same(name, b"set-cookie") => SetCookie,
            (10, b'u') if same(name, b"user-agent") => UserAgent,
            (11, b'c') if same(name, b"content-md5") => ContentMd5,
            (11, b'r') if same(name, b"retry-after") => RetryAfter,
            (12, b'c') if same(name, b"content-type") => ContentType,
            (12, b'c') if same(name, b"cache-status") => CacheStatus,
            (12, b'c') if same(name, b"cache-groups") => CacheGroups,
            (12, b'm') if same(name, b"max-forwards") => MaxForwards,
            (13, b'a') if same(name, b"authorization") => Authorization,
            (13, b'a') if same(name, b"accept-ranges") => AcceptRanges,
            (13, b'c') if same(name, b"content-range") => ContentRange,
            (13, b'c') if same(name, b"cache-control") => CacheControl,
            (13, b'i') if same(name, b"if-none-match") => IfNoneMatch,
            (13, b'l') if same(name, b"last-modified") => LastModified,
            (13, b'x') if same(name, b"x-rewrite-url") => XRewriteUrl,
            (13, b'd') if same(name, b"dictionary-id") => DictionaryId,
            (14, b'c') if same(name, b"content-length") => ContentLength,
            (14, b'c') if same(name, b"content-digest") => ContentDigest,
            (14, b'h') if same(name, b"http2-settings") => Http2Settings,
            (14, b'n') if same(name, b"no-vary-search") => NoVarySearch,
            (14, b'x') if same(name, b"x-original-url") => XOriginalUrl,
            (15, b'a') if same(name, b"accept-encoding") => AcceptEncoding,
            (15, b'a') if same(name, b"accept-language") => AcceptLanguage,
            (15, b'x') if same(name, b"x-forwarded-for") => XForwardedFor,
            (16, b'c') if same(name, b"content-encoding") => ContentEncoding,
            (16, b'c') if same(name, b"content-location") => ContentLocation,
            (16, b'c') if same(name, b"content-language") => ContentLanguage,
            (16, b'p') if same(name, b"proxy-connection") => ProxyConnection,
            (16, b'x') if same(name, b"x-forwarded-host") => XForwardedHost,
            (16, b'x') if same(name, b"x-forwarded-port") => XForwardedPort,
            (17, b'c') if same(name, b"cdn-cache-control") => CdnCacheControl,
            (17, b'i') if same(name, b"if-modified-since") => IfModifiedSince,
            (17, b's') if same(name, b"surrogate-control") => SurrogateControl,
            (17, b't') if same(name, b"transfer-encoding") => TransferEncoding,
            (17, b'u') if same(name, b"use-as-dictionary") => UseAsDictionary,
            (17, b'x') if same(name, b"x-forwarded-proto") => XForwardedProto,
            (18, b'p') if same(name, b"proxy-authenticate") => ProxyAuthenticate,
            (19, b'i') if same(name, b"if-unmodified-since") => IfUnmodifiedSince,
            (19, b'p') if same(name, b"proxy-authorization") => ProxyAuthorization,
            (20, b'a') if same(name, b"available-dictionary") => AvailableDictionary,
            (22, b'x') if same(name, b"x-http-method-override") => XHttpMethodOverride,
            (24, b'c') if same(name, b"cache-group-invalidation") => CacheGroupInvalidation,
            (25, b's') if same(name, b"strict-transport-security") => StrictTransportSecurity,
            (25, b'p') if same(name, b"proxy-authentication-info") => ProxyAuthenticationInfo,
            _ => Other,
        }
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
            StrictTransportSecurity => "Strict-Transport-Security",
            UseAsDictionary => "Use-As-Dictionary",
            AvailableDictionary => "Available-Dictionary",
            DictionaryId => "Dictionary-ID",
            Other => "",
        }
    }
}

/// Are they the same without case? `lower` is in lower case. Words that overlap cover any length from four up.
#[inline(always)]
fn same<const N: usize>(name: &[u8], lower: &[u8; N]) -> bool {
    let Ok(name) = <&[u8; N]>::try_from(name) else { return false };
    if N < 4 {
        return name.eq_ignore_ascii_case(lower);
    }
    if N < 8 {
        return difference(four(name, 0), four(lower, 0)) | difference(four(name, N - 4), four(lower, N - 4)) == 0;
    }
    let mut differences = difference(eight(name, N - 8), eight(lower, N - 8));
    let mut at = 0;
    while at + 8 < N {
        differences |= difference(eight(name, at), eight(lower, at));
        at += 8;
    }
    differences == 0
}

/// Zero when the word is `lower` in any case: bytes from `@` up, letters among them, get the bit that makes a letter small.
#[inline(always)]
fn difference(word: u64, lower: u64) -> u64 {
    (word | ((word & 0x4040_4040_4040_4040) >> 1)) ^ lower
}

#[inline(always)]
fn four(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]))
}

#[inline(always)]
fn eight(bytes: &[u8], at: usize) -> u64 {
    four(bytes, at) | four(bytes, at + 4) << 32
}

/// In the order of their numbers, without `Other`.
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
        StrictTransportSecurity,
        UseAsDictionary,
        AvailableDictionary,
        DictionaryId,
    ]
};

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
        for name in
            ["", "Hos", "Hosts", "Content_Length", "content-lengtH ", "\x08ost", "content\rlength", "`ost", "v1a"]
        {
            assert_eq!(FieldName::classify(name.as_bytes()), FieldName::Other, "{name:?}");
        }
    }
}
