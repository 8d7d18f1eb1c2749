//! What the words of a route look at: asked once, when the routes are read, so that a request which no word concerns is not asked by each of them.

use crate::route_rules::RouteRules;

/// What of a request or its answer the words of a route look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heeds {
    /// Every request, whatever it has.
    pub(crate) requests: bool,
    /// Some route of the table is for some methods: others than GET may be led elsewhere.
    pub(crate) methods: bool,
    /// The query, where there is one.
    pub(crate) queries: bool,
    /// Cookies, where there are some.
    pub(crate) cookies: bool,
    /// The fields of answers.
    pub(crate) answers: bool,
}

impl Heeds {
    pub(crate) fn of(rules: &RouteRules) -> Heeds {
        Heeds {
            requests: rules.access.guards()
                || rules.limits_requests()
                || rules.bandwidth.is_some()
                || rules.answer.is_some()
                || rules.request_fields.acts()
                || rules.caching.acts_on_requests()
                || rules.answer_fields.cross_origin.is_some(),
            methods: false,
            queries: rules.query.acts(),
            cookies: rules.cookies.acts(),
            answers: rules.answer_fields.acts(),
        }
    }
}
