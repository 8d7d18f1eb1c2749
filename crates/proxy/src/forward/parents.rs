//! Proxies that are asked in place of the destinations themselves: whose turn it is, who sits out, and when a destination
//! is asked directly after all.
//!
//! What is sent to them is the fetch's business; that one cannot be connected to is heard from its origin.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use message::Request;
use smallvec::SmallVec;

use crate::forward::destinations::is_named;
use crate::forward::targets::origin_settings;
use crate::limits::Limits;
use crate::origin::{Origin, Origins};
use crate::rendezvous;
use crate::settings::{ForwardSettings, OriginSettings, ParentBalance};

/// All parents of a configuration.
pub(crate) struct Parents {
    settings: Arc<ForwardSettings>,
    pub(crate) origins: Arc<Origins>,
    /// Counts requests, for the round robin.
    turn: AtomicUsize,
}

/// Whom a request may be sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Parent(usize),
    /// To whom it names.
    Direct,
}

/// The next one last.
pub(crate) type Ways = SmallVec<[Way; 4]>;

impl Parents {
    pub(crate) fn new(
        settings: &Arc<ForwardSettings>,
        limits: &Limits,
        origins: &Origins,
        previous: Option<&Parents>,
    ) -> Parents {
        let connections_max = limits.forward_target_connections_max;
        let parent = |(index, parent): (usize, &crate::settings::ParentSettings)| {
            origin_settings(format!("parent {}", index + 1), parent.url.clone(), connections_max)
        };
        let parents: Vec<OriginSettings> = settings.parents.iter().enumerate().map(parent).collect();
        let origins = origins.of_parents(&parents, previous.map(|former| &*former.origins));
        Parents { settings: Arc::clone(settings), origins, turn: AtomicUsize::new(0) }
    }

    pub(crate) fn origin(&self, index: usize) -> &Arc<Origin> {
        self.origins.get(index)
    }

    /// The ways of a request, in the order in which they are to be tried.
    pub(crate) fn ways(&self, request: &Request<'_>, now_ms: u64) -> Ways {
        let settings = &self.settings;
        let port = request.authority.port.unwrap_or(request.scheme.default_port());
        if settings.parents.is_empty() || is_named(&settings.always_direct, &request.authority.host, port) {
            return [Way::Direct].into_iter().collect();
        }
        let order = match settings.balance {
            ParentBalance::RoundRobin => self.in_turn(self.turn.fetch_add(1, Ordering::Relaxed)),
            ParentBalance::Hash => self.by_score(request),
        };
        let sits_out = |&index: &usize| self.origin(index).sits_out(now_ms);
        let mut ways: Ways = order.iter().copied().filter(|index| !sits_out(index)).map(Way::Parent).collect();
        match settings.never_direct {
            // Better one that failed a moment ago than nobody.
            true => ways.extend(order.into_iter().filter(sits_out).map(Way::Parent)),
            false => ways.push(Way::Direct),
        }
        ways.reverse();
        ways
    }

    /// Each as often as its weight says, the one whose turn it is first.
    fn in_turn(&self, turn: usize) -> Vec<usize> {
        let parents = &self.settings.parents;
        let weights: usize = parents.iter().map(|parent| parent.weight as usize).sum();
        let mut at = turn % weights.max(1);
        let first = parents.iter().position(|parent| match at.checked_sub(parent.weight as usize) {
            Some(rest) => {
                at = rest;
                false
            }
            None => true,
        });
        let first = first.unwrap_or(0);
        (first..parents.len()).chain(0..first).collect()
    }

    /// A URL goes to the same parent as long as that one is there, and the URLs of one that is not to all others alike:
    /// each draws for it, and the highest draw has it (rendezvous hashing). Weights stretch the draws.
    fn by_score(&self, request: &Request<'_>) -> Vec<usize> {
        let drawn = |(index, parent): (usize, &crate::settings::ParentSettings)| {
            let mut url = format!("{:?}\n", parent.url).into_bytes();
            request.authority.write_to(&mut url);
            request.write_target(&mut url);
            (rendezvous::draw(parent.weight, rendezvous::seed(&url)), index)
        };
        let mut scores: Vec<(f64, usize)> = self.settings.parents.iter().enumerate().map(drawn).collect();
        scores.sort_by(|a, b| b.0.total_cmp(&a.0));
        scores.into_iter().map(|(_, index)| index).collect()
    }
}

#[cfg(test)]
mod tests {
    use message::{Authority, FieldsView, Method, Scheme, TargetForm, Version};

    use super::*;
    use crate::origin::tests::settings as settings_of;
    use crate::settings::{OriginUrl, ParentSettings};

    fn parents(weights: &[u32], change: impl FnOnce(&mut ForwardSettings)) -> Parents {
        let parent = |(n, &weight): (usize, &u32)| ParentSettings {
            url: OriginUrl::Tcp { host: "127.0.0.1".to_owned(), port: 1 + n as u16 },
            weight,
            login_file: None,
            login: None,
        };
        let mut settings =
            ForwardSettings { parents: weights.iter().enumerate().map(parent).collect(), ..ForwardSettings::default() };
        change(&mut settings);
        let origins = Origins::new(&settings_of(Vec::new()), None);
        Parents::new(&Arc::new(settings), &Limits::default(), &origins, None)
    }

    fn ways(parents: &Parents, host: &str, path: &str) -> Vec<Way> {
        let request = Request {
            method: Method::Get,
            method_text: b"GET",
            version: Version::Http11,
            form: TargetForm::Absolute,
            scheme: Scheme::Http,
            authority: Authority::parse(host.as_bytes(), Scheme::Http).unwrap(),
            path: path.as_bytes(),
            query: None,
            fields: FieldsView::default(),
        };
        parents.ways(&request, 0).into_iter().rev().collect()
    }

    #[test]
    fn parents_take_turns_by_their_weights() {
        let parents = parents(&[2, 1], |_| {});
        let first: Vec<Way> = (0..6).map(|_| ways(&parents, "a.test", "/")[0]).collect();
        assert_eq!(first, [0, 0, 1, 0, 0, 1].map(Way::Parent));
        assert_eq!(ways(&parents, "a.test", "/"), [Way::Parent(0), Way::Parent(1), Way::Direct]);
    }

    #[test]
    fn some_destinations_go_directly_and_others_never() {
        let plain = parents(&[], |_| {});
        assert_eq!(ways(&plain, "a.test", "/"), [Way::Direct]);
        let parents = parents(&[1], |settings| {
            settings.always_direct = vec![".here.test".parse().unwrap()];
            settings.never_direct = true;
        });
        assert_eq!(ways(&parents, "x.here.test", "/"), [Way::Direct]);
        assert_eq!(ways(&parents, "a.test", "/"), [Way::Parent(0)]);
    }

    #[test]
    fn a_url_stays_with_its_parent_and_weights_count() {
        let by_hash = |settings: &mut ForwardSettings| settings.balance = ParentBalance::Hash;
        let (three, two) = (parents(&[1, 1, 2], by_hash), parents(&[1, 1], by_hash));
        let mut counts = [0; 3];
        for n in 0..4_000 {
            let path = format!("/{n}");
            let order = ways(&three, "a.test", &path);
            assert_eq!(order, ways(&three, "a.test", &path));
            let Way::Parent(first) = order[0] else { panic!("{order:?}") };
            counts[first] += 1;
            // Without the third, only what it had moves.
            if first != 2 {
                assert_eq!(ways(&two, "a.test", &path)[0], order[0], "{path}");
            }
        }
        assert!((850..1_150).contains(&counts[0]) && (1_850..2_150).contains(&counts[2]), "{counts:?}");
    }
}
