//! Under which name the exchanges of a route are counted. A route keeps its place over reloads, so that its counts never go back and are
//! never another's; those for which there is no place share one.

use std::collections::HashMap;
use std::sync::Arc;

use crate::limits::{ROUTE_NAME_CHARS_MAX, ROUTES_COUNTED_MAX};
use crate::route_table::{RouteAt, RouteTable};
use crate::settings::RouteSettings;

/// A place among the counts of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RouteSlot(u16);

/// Places of their own, and one each for no route and for all others.
pub(crate) const ROUTE_SLOTS: usize = ROUTES_COUNTED_MAX + 2;

impl RouteSlot {
    /// What belongs to no route: bytes that are no request, the forward proxy, a program without routes.
    pub(crate) const NONE: RouteSlot = RouteSlot(0);
    const OTHER: RouteSlot = RouteSlot(1);

    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0.into()
    }
}

/// The names of all routes that were ever counted, and the places of those of one configuration.
#[derive(Clone, Debug)]
pub(crate) struct CountedRoutes {
    /// By place.
    names: Arc<[Arc<str>]>,
    /// By route. The second of a name is `NAME (2)`.
    slots: Vec<RouteSlot>,
}

impl CountedRoutes {
    pub(crate) fn new(routes: &RouteTable, former: Option<&CountedRoutes>) -> CountedRoutes {
        let mut names: Vec<Arc<str>> = match former {
            Some(former) => former.names.to_vec(),
            None => vec!["none".into(), "other".into()],
        };
        let mut places: HashMap<Arc<str>, usize> = names.iter().cloned().zip(0..).collect();
        let mut counts: HashMap<String, usize> = HashMap::new();
        let mut slots = Vec::new();
        for route in routes.iter() {
            let name = name_of(route);
            let count = counts.entry(name.clone()).or_insert(0);
            *count += 1;
            let name = if *count == 1 { name } else { format!("{name} ({count})") };
            slots.push(slot_of(&name, (&mut names, &mut places)));
        }
        CountedRoutes { names: names.into(), slots }
    }

    #[inline]
    pub(crate) fn slot(&self, route: Option<RouteAt>) -> RouteSlot {
        route.map_or(RouteSlot::NONE, |route| self.slots[route.index()])
    }

    /// The name that is counted under.
    #[inline]
    pub(crate) fn name(&self, slot: RouteSlot) -> &str {
        self.names.get(slot.index()).map_or("other", |name| name)
    }

    /// By place.
    pub(crate) fn names(&self) -> Vec<Arc<str>> {
        self.names.to_vec()
    }
}

/// The place of a name, which it has already, or gets if there is one left.
fn slot_of(name: &str, (names, places): (&mut Vec<Arc<str>>, &mut HashMap<Arc<str>, usize>)) -> RouteSlot {
    // `none` and `other` are no routes: these have a slash in their names.
    match places.get(name) {
        Some(known) => RouteSlot(*known as u16),
        None if names.len() < ROUTE_SLOTS => {
            let name: Arc<str> = name.into();
            places.insert(Arc::clone(&name), names.len());
            names.push(name);
            RouteSlot(names.len() as u16 - 1)
        }
        None => RouteSlot::OTHER,
    }
}

/// As the file has it: methods, host, and path or pattern; of the fields that it asks for the names.
pub fn name_of(route: &RouteSettings) -> String {
    let methods = if route.methods.is_empty() { String::new() } else { format!("{} ", route.methods.join("|")) };
    let host = route.host.as_deref().unwrap_or("");
    let path = match &route.path_pattern {
        Some(pattern) => format!("/~{}", pattern.text()),
        None => route.path_prefix.clone(),
    };
    let fields: String = route.fields.iter().map(|field| format!(" [{}]", field.name())).collect();
    format!("{methods}{host}{path}{fields}").chars().take(ROUTE_NAME_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::RouteTarget;

    fn table(paths: &[&str]) -> RouteTable {
        let route = |path: &&str| RouteSettings {
            path_prefix: (*path).to_owned(),
            ..RouteSettings::to(RouteTarget::Origin(0))
        };
        RouteTable::new(paths.iter().map(route).collect())
    }

    fn slots(counted: &CountedRoutes) -> Vec<usize> {
        counted.slots.iter().map(|slot| slot.index()).collect()
    }

    #[test]
    fn a_route_keeps_its_place_over_a_reload() {
        let first = CountedRoutes::new(&table(&["/a", "/b"]), None);
        let second = CountedRoutes::new(&table(&["/b", "/c", "/a"]), Some(&first));
        assert_eq!((slots(&first), slots(&second)), (vec![2, 3], vec![3, 4, 2]));
        assert_eq!(second.names().join(" "), "none other /a /b /c");
    }

    #[test]
    fn routes_of_one_path_are_told_apart() {
        let of_shop = RouteSettings {
            host: Some("shop.example".to_owned()),
            methods: vec!["GET".into(), "HEAD".into()],
            ..RouteSettings::to(RouteTarget::Origin(0))
        };
        let routes = [of_shop.clone(), of_shop, RouteSettings::to(RouteTarget::Origin(0))];
        let counted = CountedRoutes::new(&RouteTable::new(routes.to_vec()), None);
        assert_eq!(counted.names()[2..].join(", "), "GET|HEAD shop.example/, GET|HEAD shop.example/ (2), /");
    }

    #[test]
    fn those_without_a_place_share_one() {
        let paths: Vec<String> = (0..ROUTES_COUNTED_MAX + 3).map(|at| format!("/{at}")).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let counted = CountedRoutes::new(&table(&paths), None);
        let others = slots(&counted).iter().filter(|slot| **slot == RouteSlot::OTHER.index()).count();
        assert_eq!((others, counted.names.len()), (3, ROUTE_SLOTS));
    }
}
