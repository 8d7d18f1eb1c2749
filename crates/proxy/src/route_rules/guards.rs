//! Who is not answered on a route: paths that are closed, clients that may not come. A path may mean something else to who is asked than it says
//! (`closed_paths::meanings`): what guards any of its meanings holds for it, so that no spelling is a way round.

use message::Request;

use crate::client_identity::ClientIdentity;
use crate::closed_paths;
use crate::route_rules::RouteAccess;
use crate::route_table::RouteAt;
use crate::settings::{RouteSettings, RouteTarget};
use crate::site::Site;
use crate::transaction::synth::Synth;

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhyRefused {
    /// Nobody is answered for the path.
    Closed,
    /// The path means another one, which is not for everybody.
    OtherSpelling,
    /// The path cannot be decoded, or leads above the root.
    Meaningless,
    /// This client is not.
    NotAllowed,
}

impl WhyRefused {
    pub(crate) fn synth(self, client: &ClientIdentity) -> Synth {
        match self {
            WhyRefused::Closed => Synth::closed(),
            WhyRefused::OtherSpelling => Synth::other_spelling(),
            WhyRefused::Meaningless => Synth::path_malformed().refused_outright(),
            WhyRefused::NotAllowed => Synth::not_allowed(client),
        }
    }
}

impl RouteAccess {
    #[inline]
    fn refuses(&self, client: &ClientIdentity) -> bool {
        // Whom nobody vouches for may be anybody, those who are denied among them.
        (!self.denied.is_empty() && (client.is_hidden() || client.is_among(&self.denied)))
            || self.allowed.as_ref().is_some_and(|allowed| !client.is_among(allowed))
    }
}

impl RouteSettings {
    /// Is anybody or any path of it refused?
    pub(crate) fn guards(&self) -> bool {
        self.closed.is_some() || self.target == RouteTarget::Closed || self.rules.access.guards()
    }
}

impl Site {
    /// Why this request to this route is refused, if it is.
    #[inline]
    pub(crate) fn why_refused(
        &self,
        request: &Request<'_>,
        client: &ClientIdentity,
        route: Option<RouteAt>,
    ) -> Option<WhyRefused> {
        if self.has_guards { self.why_refused_here(request, client, route) } else { None }
    }

    fn why_refused_here(
        &self,
        request: &Request<'_>,
        client: &ClientIdentity,
        route: Option<RouteAt>,
    ) -> Option<WhyRefused> {
        if !self.routes.any_of_host(&request.authority.host, RouteSettings::guards) {
            return None;
        }
        let asked = route.map(|route| self.routes.at(route));
        if asked.is_some_and(|asked| asked.rules.access.refuses(client)) {
            return Some(WhyRefused::NotAllowed);
        }
        if closed_paths::means_itself(request.path) {
            return self.is_closed(asked, request.path).then_some(WhyRefused::Closed);
        }
        let Some(meanings) = closed_paths::meanings(request.path) else { return Some(WhyRefused::Meaningless) };
        meanings.iter().find_map(|meaning| self.why_meaning_refused(request, client, (asked, meaning)))
    }

    fn why_meaning_refused(
        &self,
        request: &Request<'_>,
        client: &ClientIdentity,
        (asked, meaning): (Option<&RouteSettings>, &[u8]),
    ) -> Option<WhyRefused> {
        // What belongs to another route is nothing for the one that would answer.
        let closed = asked.and_then(|asked| asked.closed.as_ref());
        let meant = self.routes.find_path(request, meaning).map(|route| self.routes.at(route));
        if closed.is_some_and(|closed| closed.match_as_it_is(meaning)) || self.is_closed(meant, meaning) {
            return Some(WhyRefused::Closed);
        }
        let meant = &meant?.rules.access;
        if meant.refuses(client) {
            return Some(WhyRefused::NotAllowed);
        }
        let access = asked.map(|asked| &asked.rules.access);
        (!meant.is_met_by(access)).then_some(WhyRefused::OtherSpelling)
    }

    /// The same of a script that is to answer, which may belong to another route than what was asked for.
    pub(crate) fn why_script_refused(
        &self,
        request: &Request<'_>,
        client: &ClientIdentity,
        (route, path): (Option<RouteAt>, &[u8]),
    ) -> Option<WhyRefused> {
        let asked = route.map(|route| self.routes.at(route));
        if self.has_guards { self.why_meaning_refused(request, client, (asked, path)) } else { None }
    }

    /// Is nobody answered for this path, which means one thing alone?
    pub(crate) fn closes(&self, request: &Request<'_>, path: &[u8]) -> bool {
        self.has_guards && self.is_closed(self.routes.find_path(request, path).map(|route| self.routes.at(route)), path)
    }

    /// A directory is closed with any file that may answer for it.
    fn is_closed(&self, route: Option<&RouteSettings>, path: &[u8]) -> bool {
        let Some(route) = route else { return false };
        let Some(closed) = &route.closed else { return route.target == RouteTarget::Closed };
        let is_index_closed = || match route.target {
            RouteTarget::Root(root) if path.ends_with(b"/") => {
                let index = &self.settings.roots[root].index;
                index.iter().any(|name| closed.match_as_it_is(&[path, name.as_bytes()].concat()))
            }
            _ => false,
        };
        route.target == RouteTarget::Closed || closed.match_as_it_is(path) || is_index_closed()
    }
}
