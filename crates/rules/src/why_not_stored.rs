//! The reasons why a response is not stored, each with the word by which the log tells it.

/// Why a response is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WhyNotStored {
    /// The method's answer serves no later GET.
    Method,
    /// 1xx, or a status whose meaning hangs on the request: 304, 412, 416.
    Status,
    /// 206: not the whole; see [`may_store_part`](crate::storing::may_store_part).
    Partial,
    /// A 206 whose Content-Range is missing, unreadable or not one range.
    ContentRange,
    /// A 206 without an entity tag that is strong: nothing would say of which representation it is a part.
    PartValidator,
    /// A 206 that leaves out what its client is known to have.
    PartFields,
    RequestNoStore,
    NoStore,
    Private,
    /// `must-understand` with a status that we do not know.
    NotUnderstood,
    /// The request carried Authorization and the answer does not allow sharing.
    Authorization,
    /// A cookie on either side, and the answer does not say that it may be shared.
    Cookie,
    /// The request carried other credentials that we know, and the answer does not say that it may be shared.
    Credentials,
    /// `Vary: *`.
    VaryAny,
    /// More names in Vary than the limit.
    VaryTooMany,
    /// More cache groups than the limit (RFC 9875 §2).
    TooManyGroups,
    /// More tags than can be kept. Whoever stores says so; nothing here knows of tags.
    TooManyTags,
    /// It is coded by a dictionary, and does not say in Vary that who has another one cannot read it (RFC 9842 §6.2).
    HiddenDictionary,
    /// No freshness that was said, and a status whose freshness may not be guessed.
    NotCacheable,
    /// It would be stale at once, and nothing could validate it.
    NeverReusable,
}

impl WhyNotStored {
    /// Is it about who asked, and not about the response? Another client's answer from the same URL may be stored.
    pub const fn is_about_credentials(self) -> bool {
        matches!(self, WhyNotStored::Authorization | WhyNotStored::Cookie | WhyNotStored::Credentials)
    }

    /// The stable word for the log.
    pub const fn token(self) -> &'static str {
        match self {
            WhyNotStored::Method => "method",
            WhyNotStored::Status => "status",
            WhyNotStored::Partial => "partial",
            WhyNotStored::ContentRange => "content-range",
            WhyNotStored::PartValidator => "part-validator",
            WhyNotStored::PartFields => "part-fields",
            WhyNotStored::RequestNoStore => "request-no-store",
            WhyNotStored::NoStore => "no-store",
            WhyNotStored::Private => "private",
            WhyNotStored::NotUnderstood => "must-understand",
            WhyNotStored::Authorization => "authorization",
            WhyNotStored::Cookie => "cookie",
            WhyNotStored::Credentials => "credentials",
            WhyNotStored::VaryAny => "vary-any",
            WhyNotStored::VaryTooMany => "vary-too-many",
            WhyNotStored::TooManyGroups => "cache-groups-too-many",
            WhyNotStored::TooManyTags => "tags-too-many",
            WhyNotStored::HiddenDictionary => "hidden-dictionary",
            WhyNotStored::NotCacheable => "not-cacheable",
            WhyNotStored::NeverReusable => "never-reusable",
        }
    }
}
