//! What an operator says of a route beside who answers it: who may ask and how often, what is answered at once, what of a request makes a
//! difference, how long responses live, which fields answers have.
//!
//! A request meets these words before the policy does, whoever that is (`route_verdict.rs`), and an answer meets them last (`answer_fields.rs`): a
//! route is around the built-in policy and a program alike. Only how responses are stored (`caching_rules.rs`) is the built-in policy's, which
//! has it from here; a program says that itself.

use std::path::PathBuf;

use crate::network::Network;

mod answer_editing;
pub(crate) mod answer_fields;
pub(crate) mod caching_rules;
pub(crate) mod cookie_rules;
pub(crate) mod cross_origin;
pub(crate) mod field_edits;
pub(crate) mod field_template;
pub(crate) mod guards;
pub(crate) mod heeds;
pub(crate) mod known_names;
pub(crate) mod name_patterns;
pub(crate) mod own_answer;
pub(crate) mod query_rules;
pub(crate) mod rate_table;
pub(crate) mod rewritten_request;
pub(crate) mod route_conditions;
pub(crate) mod route_verdict;
pub(crate) mod target_rewrite;

use self::answer_fields::AnswerFields;
use self::caching_rules::CachingRules;
use self::cookie_rules::CookieRules;
use self::field_edits::FieldEdits;
use self::field_template::FieldTemplate;
use self::own_answer::OwnAnswer;
use self::query_rules::QueryRules;
use self::rate_table::Rate;
use self::target_rewrite::TargetRewrite;

/// What an operator says of a route.
#[derive(Clone, Debug, Default)]
pub struct RouteRules {
    pub access: RouteAccess,
    pub rate_limits: Vec<RateLimit>,
    /// A larger body of a request is refused.
    pub request_body_bytes_max: Option<u64>,
    /// Nobody else answers.
    pub answer: Option<OwnAnswer>,
    pub target: TargetRewrite,
    pub query: QueryRules,
    pub cookies: CookieRules,
    pub request_fields: FieldEdits,
    pub caching: CachingRules,
    pub answer_fields: AnswerFields,
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
        !self.rate_limits.is_empty() || self.request_body_bytes_max.is_some()
    }

    /// Is the path's pattern asked for its groups?
    fn names_groups(&self) -> bool {
        let answer = self.answer.iter().flat_map(|answer| [&answer.location, &answer.body]).flatten();
        let lines = self.request_fields.set.iter().chain(&self.request_fields.added).map(|line| line.value());
        let keys = self.rate_limits.iter().filter_map(|limit| limit.by.as_ref());
        answer.chain(lines).chain(keys).any(FieldTemplate::has_groups)
    }

    /// By what a response is selected beside what it says itself.
    pub(crate) fn selects(&self) -> bool {
        self.cookies.select() || !self.caching.selected_by.is_empty()
    }
}

impl RouteAccess {
    pub(crate) fn guards(&self) -> bool {
        self.allowed.is_some() || !self.denied.is_empty() || self.login.is_some()
    }
}
