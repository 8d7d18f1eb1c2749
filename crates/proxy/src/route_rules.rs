//! What an operator says of a route beside who answers it: who may ask and how often, what is answered at once, what of a request makes a
//! difference, how long responses live, which fields answers have.
//!
//! A request meets these words before the policy does, whoever that is (`route_verdict.rs`), and an answer meets them last (`answer_fields.rs`): a
//! route is around the built-in policy and a program alike. Only how responses are stored (`caching_rules.rs`) is the built-in policy's, which
//! has it from here; a program says that itself.

use std::path::PathBuf;

use message::Field;

use crate::client_identity::ClientIdentity;
use crate::network::Network;
use crate::settings::RouteTimeouts;

pub(crate) mod answer_editing;
pub(crate) mod answer_fields;
pub(crate) mod auth_request;
pub(crate) mod bandwidth;
pub(crate) mod caching_rules;
pub(crate) mod cookie_rules;
pub(crate) mod cross_origin;
pub(crate) mod field_edits;
pub(crate) mod field_template;
pub(crate) mod guards;
pub(crate) mod heeds;
pub(crate) mod known_names;
pub(crate) mod mirror_settings;
pub(crate) mod name_patterns;
pub(crate) mod nominated_fields;
pub(crate) mod own_answer;
pub(crate) mod query_rules;
pub(crate) mod rate_table;
pub(crate) mod rewritten_request;
pub(crate) mod route_conditions;
pub(crate) mod route_verdict;
pub(crate) mod target_rewrite;
pub(crate) mod under_way;
pub(crate) mod word_sources;

use self::answer_fields::AnswerFields;
use self::auth_request::AuthRequest;
use self::bandwidth::Bandwidth;
use self::caching_rules::CachingRules;
use self::cookie_rules::CookieRules;
use self::field_edits::FieldEdits;
use self::field_template::FieldTemplate;
use self::mirror_settings::MirrorSettings;
use self::own_answer::OwnAnswer;
use self::query_rules::QueryRules;
use self::rate_table::Rate;
use self::target_rewrite::TargetRewrite;
use self::under_way::{ConnectionLimit, CountedBy};
use self::word_sources::WordSources;

/// What an operator says of a route.
#[derive(Clone, Debug, Default)]
pub struct RouteRules {
    pub access: RouteAccess,
    pub rate_limits: Vec<RateLimit>,
    pub connection_limits: Vec<ConnectionLimit>,
    /// How fast each answer goes out, at most.
    pub bandwidth: Option<Bandwidth>,
    /// A larger body of a request is refused.
    pub request_body_bytes_max: Option<u64>,
    /// Nobody else answers.
    pub answer: Option<OwnAnswer>,
    pub target: TargetRewrite,
    pub timeouts: RouteTimeouts,
    /// Who is asked the same, for nothing.
    pub mirror: Option<MirrorSettings>,
    pub query: QueryRules,
    pub cookies: CookieRules,
    pub request_fields: FieldEdits,
    pub caching: CachingRules,
    pub answer_fields: AnswerFields,
    /// Who said what sends requests past the store.
    pub sources: WordSources,
}

/// Who may ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteAccess {
    /// Nobody else. `None`: everybody.
    pub allowed: Option<Vec<Network>>,
    /// Not these, whoever is allowed.
    pub denied: Vec<Network>,
    /// Users with a name and a password.
    pub login: Option<Login>,
    /// Whom this service admits.
    pub service: Option<AuthRequest>,
}

/// Users by name and password (RFC 7617).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// As `htpasswd -B` writes it.
    pub file: PathBuf,
    /// What they are told that they are asked for.
    pub realm: String,
}

/// How often somebody may ask.
#[derive(Clone, Debug)]
pub struct RateLimit {
    pub rate: Rate,
    /// Who it is that asks too often. `None`: the client's address, or its network where that is of IPv6.
    pub by: Option<FieldTemplate>,
    /// What the refusal is.
    pub status: u16,
    /// Tells it from the limits of other routes.
    pub zone: String,
}

impl RouteRules {
    /// May a request be refused for how many or how large they are?
    pub(crate) fn limits_requests(&self) -> bool {
        !self.rate_limits.is_empty() || !self.connection_limits.is_empty() || self.request_body_bytes_max.is_some()
    }

    /// May what a client says behind its body come to origins? Who reads that with the head would take it for what the route says there.
    pub(crate) fn hands_on_trailers(&self) -> bool {
        self.access.service.is_none() && !self.request_fields.acts()
    }

    /// Does the route itself answer this client?
    pub(crate) fn answers(&self, client: &ClientIdentity) -> bool {
        self.answer.as_ref().is_some_and(|answer| !client.is_among(&answer.but_for))
    }

    /// Does it keep clients out by what it answers, a refusal (403) or maintenance (503)? Another spelling is no way round that; a page or a
    /// redirect is about its path alone.
    pub(crate) fn answers_by_refusal(&self) -> bool {
        self.answer.as_ref().is_some_and(|answer| matches!(answer.status, 403 | 503))
    }

    /// Does it keep anybody out?
    pub(crate) fn guards(&self) -> bool {
        self.access != RouteAccess::default() || self.answers_by_refusal()
    }

    pub(crate) fn keeps_out(&self, client: &ClientIdentity) -> bool {
        self.answers_by_refusal() && self.answers(client)
    }

    /// Does it say this field to origins, in which who its client is may be told?
    pub(crate) fn says_of_clients(&self, field: &Field<'_>) -> bool {
        let mut lines = self.request_fields.set.iter().chain(&self.request_fields.added);
        self.access.says(field.name_text) || self.access.wants_known_clients() && lines.any(|line| line.is_named(field))
    }

    /// Is no request answered at once, because it has to be admitted first, or because its answer takes its time?
    pub(crate) fn takes_time(&self) -> bool {
        self.access.service.is_some() || !self.connection_limits.is_empty() || self.bandwidth.is_some()
    }

    /// Is the path's pattern asked for its groups?
    pub(crate) fn names_groups(&self) -> bool {
        let answer = self.answer.iter().flat_map(|answer| [&answer.location, &answer.body]).flatten();
        let lines = self.request_fields.set.iter().chain(&self.request_fields.added).map(|line| line.value());
        let counted = self.connection_limits.iter().filter_map(|limit| match &limit.by {
            CountedBy::Key(key) => Some(key),
            CountedBy::Client | CountedBy::Route => None,
        });
        let keys = self.rate_limits.iter().filter_map(|limit| limit.by.as_ref()).chain(counted);
        answer.chain(lines).chain(keys).any(FieldTemplate::has_groups)
    }

    /// Is a field of a request the route's own word, whatever the client has sent?
    pub(crate) fn puts(&self, field: &Field<'_>) -> bool {
        self.request_fields.set.iter().any(|line| line.is_named(field))
            || self.access.service.as_ref().is_some_and(|service| service.copies(field.name_text))
    }

    /// By what a response is selected beside what it says itself.
    pub(crate) fn selects(&self) -> bool {
        self.cookies.select() || !self.caching.selected_by.is_empty()
    }
}

impl RouteAccess {
    pub(crate) fn guards(&self) -> bool {
        self.allowed.is_some() || !self.denied.is_empty() || self.wants_known_clients()
    }

    /// Is a field of this name the word of the service?
    pub(crate) fn says(&self, name: &[u8]) -> bool {
        self.service.as_ref().is_some_and(|service| service.copies(name))
    }

    /// Must clients show who they are?
    pub(crate) fn wants_known_clients(&self) -> bool {
        self.login.is_some() || self.service.is_some()
    }

    /// Is whoever has come in by the word of another route in here, too?
    pub(crate) fn is_met_by(&self, other: Option<&RouteAccess>) -> bool {
        let login = other.and_then(|other| other.login.as_ref());
        let service = other.and_then(|other| other.service.as_ref());
        (self.login.is_none() || self.login.as_ref() == login)
            && (self.service.is_none() || self.service.as_ref() == service)
    }
}
