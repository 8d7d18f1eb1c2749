//! Why something is not stored, or not answered from the store: each reason once, with the word by which Cache-Status and the access log tell
//! it, what that means, and what changes it.
//!
//! Errors and refusals are none of these: their answers say themselves what failed. docs/what-is-cached.md has the list, written from here.

use cache::WhyUncacheable;
use rules::WhyNotStored;

/// What is said of a reason.
struct ReasonText {
    token: &'static str,
    means: &'static str,
    /// What changes it; empty where nothing should.
    way_out: &'static str,
    /// The page of docs/ that has more.
    page: &'static str,
}

macro_rules! reasons {
    ($($name:ident: $token:expr, $means:literal, $way_out:literal, $page:literal;)*) => {
        /// Why something is not stored, or not answered from the store.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Reason {
            $(#[doc = $means] $name,)*
        }

        impl Reason {
            /// In the order of the page.
            pub const ALL: &'static [Reason] = &[$(Reason::$name,)*];

            const fn text(self) -> ReasonText {
                match self {
                    $(Reason::$name => {
                        ReasonText { token: $token, means: $means, way_out: $way_out, page: $page }
                    })*
                }
            }
        }
    };
}

reasons! {
    NothingStored: "uri-miss",
        "Nothing is stored under this URL.",
        "Ask for it once: what may be stored then is.", "what-is-cached.md";
    OtherVariant: "vary-miss",
        "Something is stored under this URL, and its Vary selects it for other requests.",
        "Name in Vary only what the answer depends on (not User-Agent, not Cookie); or take the field out of requests by `request_headers` of the route.", "routes.md";
    Stale: "stale",
        "What is stored is not fresh, and has to be confirmed by the origin.",
        "A longer `max-age` or `s-maxage` of the origin, `ttl` of the route, or `stale-while-revalidate`.", "routes.md";
    AlwaysConfirmed: "no-cache",
        "What is stored says `no-cache`: the origin is asked each time whether it still holds.",
        "Leave `no-cache` out of what may be served without asking.", "what-is-cached.md";
    RequestWantsIt: "request",
        "What is stored is fresh, and the client wants it anew: `Cache-Control: no-cache` or `max-age=0`, as browsers send them for a reload.",
        "`honour_client_cache_control = false` in `[policy]`.", "config.md";
    NoStore: WhyNotStored::NoStore.token(),
        "The response says `no-store` in Cache-Control; or, where the route has a `ttl`, `X-Accel-Expires: 0`, or `Pragma: no-cache` and no Cache-Control.",
        "The application; or `ttl` with `ignore_origin` of the route, if its pages are everybody's.", "routes.md";
    Private: WhyNotStored::Private.token(),
        "The response says `private` in Cache-Control.",
        "The application; or `ttl` with `ignore_origin` of the route, if its pages are everybody's.", "routes.md";
    Cookie: WhyNotStored::Cookie.token(),
        "The request has a Cookie, or the response sets one, and the response does not say that others may have it. As `fwd=bypass`: a cookie that `cookies = { bypass = […] }` of the route names; or the route has a `ttl`, and no word of which cookies matter.",
        "Send `Cache-Control: public`, or `max-age` (where `share_by_max_age` lets it count), with what is everybody's; `cookies = { strip = […] }` or `keep` for cookies that make no difference.", "routes.md";
    Authorization: WhyNotStored::Authorization.token(),
        "The request has an Authorization, or shows a client's certificate, and the response does not say that others may have it.",
        "Send `Cache-Control: public` or `s-maxage` with what is everybody's.", "what-is-cached.md";
    Credentials: WhyNotStored::Credentials.token(),
        "The request has another field that names a client, and the response does not say that others may have it. As `fwd=bypass`: the route has a `ttl`, or a service whose word is for one user.",
        "Send `Cache-Control: public`, or `max-age`, with what is everybody's; `request_headers = { remove = […] }` for fields that make no difference.", "routes.md";
    NeverReusable: WhyNotStored::NeverReusable.token(),
        "It would be stale at once, and has neither ETag nor Last-Modified to be confirmed by.",
        "Send `max-age`, or a validator; or write `ttl` in the route.", "routes.md";
    NotCacheable: WhyNotStored::NotCacheable.token(),
        "It says nothing of how long it is fresh, and no lifetime may be guessed for its status.",
        "Send `max-age`; or write `ttl` in the route.", "routes.md";
    TooLarge: "too-large",
        "Its body is larger than one that is kept, and does not lie in slices. `larder explain` alone says so.",
        "`[limits] object_bytes_max`, `[memory] size`, or an origin that answers ranges.", "large-objects.md";
    Status: WhyNotStored::Status.token(),
        "Its status is 205, 304, 412, 416 or above 599.",
        "", "what-is-cached.md";
    Method: WhyNotStored::Method.token(),
        "The request's method is none whose answer is stored.",
        "", "what-is-cached.md";
    NotUnderstood: WhyNotStored::NotUnderstood.token(),
        "The response says that only who knows its status may store it, and larder does not.",
        "", "what-is-cached.md";
    VaryAny: WhyNotStored::VaryAny.token(),
        "`Vary: *`: every request is another one.",
        "The application.", "what-is-cached.md";
    VaryTooMany: WhyNotStored::VaryTooMany.token(),
        "Vary has more names than 16.",
        "The application.", "what-is-cached.md";
    TooManyGroups: WhyNotStored::TooManyGroups.token(),
        "Cache-Groups has more names than larder keeps.",
        "The application.", "invalidation.md";
    TooManyTags: WhyNotStored::TooManyTags.token(),
        "Surrogate-Key, Cache-Tag and xkey have more tags than larder keeps of one response (1,024).",
        "The application.", "invalidation.md";
    HiddenDictionary: WhyNotStored::HiddenDictionary.token(),
        "It is coded by a dictionary, and its Vary does not name Available-Dictionary.",
        "The application.", "compression.md";
    RequestNoStore: WhyNotStored::RequestNoStore.token(),
        "The request says `no-store`.",
        "`honour_client_cache_control = false` in `[policy]`.", "config.md";
    Partial: WhyNotStored::Partial.token(),
        "A 206 that was not asked for as one.",
        "The origin's ranges.", "large-objects.md";
    ContentRange: WhyNotStored::ContentRange.token(),
        "A 206 whose Content-Range cannot be read, or does not have the length of its body.",
        "The origin's ranges.", "large-objects.md";
    PartValidator: WhyNotStored::PartValidator.token(),
        "A 206 without a strong ETag: nothing says of what it is a part.",
        "A strong ETag of the origin.", "large-objects.md";
    PartFields: WhyNotStored::PartFields.token(),
        "A 206 that leaves fields out which its client is known to have.",
        "The origin's ranges.", "large-objects.md";
    HitForMiss: "hit-for-miss",
        "The last answer was none to be stored, so nobody waits for another's fetch, for as long as `policy.uncacheable` says.",
        "What that answer's word was about.", "what-is-cached.md";
    HitForPass: "hit-for-pass",
        "By the word of a VCL the last answer was none to be stored, and requests like it go past the store for a time.",
        "The VCL.", "vcl.md";
    Route: "route",
        "The route has `cache = false`, or the query has a parameter that `query = { bypass = […] }` names, or by its method the request belongs to another route than a GET.",
        "The route.", "routes.md";
    RequestBody: "request-body",
        "A GET or HEAD with a body.",
        "The client.", "what-is-cached.md";
    NoHost: "no-host",
        "The request names no host (HTTP/1.0). The origin is asked by its own name, and its answer is kept for nobody: under that name another route, with another origin or a password, may answer, and of several servers each has its own.",
        "The client.", "what-is-cached.md";
    Head: "head",
        "A HEAD brings no body that could be stored: it asks the origin for itself. In the log alone.",
        "A GET of the same URL; a HEAD is answered from what that stores.", "what-is-cached.md";
    RangeAhead: "range-ahead",
        "A range that begins far into what is not stored is fetched by itself.",
        "", "large-objects.md";
    SlicesMissing: "slices-missing",
        "Of a hit on a large body some slices had to be fetched.",
        "`[memory] size`, or a `[[disk]]`.", "large-objects.md";
    OnlyIfCached: "only-if-cached",
        "The client wanted a stored response or none, and there is none: 504.",
        "", "what-is-cached.md";
    FromDisk: "disk",
        "A hit for which a disk was asked first.",
        "`[memory] size`, if it is too slow.", "disk.md";
}

impl Reason {
    /// The stable word.
    pub const fn token(self) -> &'static str {
        self.text().token
    }

    /// A sentence or two for operators.
    pub const fn means(self) -> &'static str {
        self.text().means
    }

    /// Which word of the origin, or which setting, changes it. `None`: nothing should.
    pub const fn way_out(self) -> Option<&'static str> {
        let way_out = self.text().way_out;
        if way_out.is_empty() { None } else { Some(way_out) }
    }

    /// The page of docs/ that has more.
    pub const fn page(self) -> &'static str {
        self.text().page
    }

    /// Does Cache-Status say it by `fwd=…`, and not by a detail?
    pub(crate) const fn is_forward_word(self) -> bool {
        matches!(
            self,
            Reason::NothingStored
                | Reason::OtherVariant
                | Reason::Stale
                | Reason::AlwaysConfirmed
                | Reason::RequestWantsIt
        )
    }

    /// The rows of the page's table of words.
    pub fn page_rows() -> String {
        let row = |reason: &Reason| {
            let ReasonText { token, means, way_out, page } = reason.text();
            let more = if page == "what-is-cached.md" { String::new() } else { format!(" ([{page}]({page}))") };
            let way_out = if way_out.is_empty() { "—" } else { way_out };
            format!("| `{token}` | {means} | {way_out}{more} |\n")
        };
        Reason::ALL.iter().filter(|reason| !reason.is_forward_word()).map(row).collect()
    }
}

impl From<WhyNotStored> for Reason {
    fn from(why: WhyNotStored) -> Reason {
        match why {
            WhyNotStored::Method => Reason::Method,
            WhyNotStored::Status => Reason::Status,
            WhyNotStored::Partial => Reason::Partial,
            WhyNotStored::ContentRange => Reason::ContentRange,
            WhyNotStored::PartValidator => Reason::PartValidator,
            WhyNotStored::PartFields => Reason::PartFields,
            WhyNotStored::RequestNoStore => Reason::RequestNoStore,
            WhyNotStored::NoStore => Reason::NoStore,
            WhyNotStored::Private => Reason::Private,
            WhyNotStored::NotUnderstood => Reason::NotUnderstood,
            WhyNotStored::Authorization => Reason::Authorization,
            WhyNotStored::Cookie => Reason::Cookie,
            WhyNotStored::Credentials => Reason::Credentials,
            WhyNotStored::VaryAny => Reason::VaryAny,
            WhyNotStored::VaryTooMany => Reason::VaryTooMany,
            WhyNotStored::TooManyGroups => Reason::TooManyGroups,
            WhyNotStored::TooManyTags => Reason::TooManyTags,
            WhyNotStored::HiddenDictionary => Reason::HiddenDictionary,
            WhyNotStored::NotCacheable => Reason::NotCacheable,
            WhyNotStored::NeverReusable => Reason::NeverReusable,
        }
    }
}

impl From<WhyUncacheable> for Reason {
    fn from(why: WhyUncacheable) -> Reason {
        match why {
            WhyUncacheable::Rules(why) => Reason::from(why),
            WhyUncacheable::TooLarge => Reason::TooLarge,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What stands above the rows in docs/what-is-cached.md; they are its end.
    const HEAD: &str = "| word | what it means | what to change |\n|---|---|---|\n";

    #[test]
    fn each_has_a_word_a_sentence_and_a_page() {
        let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        for (at, reason) in Reason::ALL.iter().enumerate() {
            let (token, means) = (reason.token(), reason.means());
            assert!(token.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{token}");
            assert!(!Reason::ALL[..at].iter().any(|other| other.token() == token), "{token} stands twice");
            assert!(means.ends_with(['.', '4']) && means.len() > 20, "{token}: {means}");
            assert!(reason.way_out().is_none_or(|way_out| way_out.ends_with('.')), "{token}");
            assert!(docs.join(reason.page()).is_file(), "{token}: docs/{} is not there", reason.page());
        }
    }

    #[test]
    fn the_page_has_the_table() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/what-is-cached.md");
        let text = std::fs::read_to_string(&path).expect("the page is there");
        let (before, _) = text.split_once(HEAD).expect("the page has the head of the table");
        let expect = format!("{before}{HEAD}{}", Reason::page_rows());
        if std::env::var_os("UPDATE_DOCS").is_some() {
            return std::fs::write(&path, expect).expect("the page can be written");
        }
        assert_eq!(text, expect, "UPDATE_DOCS=1 cargo test --release -p proxy --lib reason writes it anew");
        for reason in Reason::ALL.iter().filter(|reason| reason.is_forward_word()) {
            assert!(text.contains(reason.token()), "{reason:?}");
        }
    }
}
