//! What a page and all that is included in it share: how much may be asked for, and what was left out, for the page's line in the log.

use std::cell::{Cell, OnceCell};
use std::rc::Rc;

use crate::route_table::RouteAt;
use crate::traces::exchange_trace::ExchangeTrace;

/// Where a request stands among pages that include it.
#[derive(Default)]
pub(crate) struct PlaceInPage {
    /// How deep it lies in them; 0 for what a client asked itself.
    pub(crate) level: u32,
    budget: OnceCell<Rc<PageBudget>>,
    page: Option<Rc<IncludingPage>>,
}

/// The page that includes it: its client has come in there.
pub(crate) struct IncludingPage {
    pub(crate) route: Option<RouteAt>,
    /// Who its client is, where that has been found out.
    pub(crate) user: Option<Box<[u8]>>,
    pub(crate) trace: Option<Rc<ExchangeTrace>>,
}

impl PlaceInPage {
    /// One level beneath a page.
    pub(crate) fn beneath(level: u32, budget: Rc<PageBudget>, page: Rc<IncludingPage>) -> PlaceInPage {
        PlaceInPage { level: level + 1, budget: OnceCell::from(budget), page: Some(page) }
    }

    /// The page that includes it, if one does.
    pub(crate) fn page(&self) -> Option<&Rc<IncludingPage>> {
        self.page.as_ref()
    }

    /// That of the page that the client asked for.
    pub(crate) fn budget(&self) -> &Rc<PageBudget> {
        self.budget.get_or_init(Rc::default)
    }

    /// What the log says of the page, if something was left out of it.
    pub(crate) fn mark(&self) -> Option<&'static str> {
        self.budget.get()?.mark.get()
    }
}

/// Of one page, with all that is included in what it includes.
#[derive(Default)]
pub(crate) struct PageBudget {
    parts_count: Cell<u32>,
    mark: Cell<Option<&'static str>>,
}

impl PageBudget {
    /// One part more. False: there are so many already.
    pub(crate) fn take_part(&self, parts_max: u32) -> bool {
        let count = self.parts_count.get();
        self.parts_count.set(count.saturating_add(u32::from(count < parts_max)));
        count < parts_max
    }

    /// Something was left out. The log says the first.
    pub(crate) fn note(&self, token: &'static str) {
        self.mark.set(self.mark.get().or(Some(token)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_and_its_parts_share_one_budget() {
        let page = PlaceInPage::default();
        assert_eq!((page.level, page.mark()), (0, None));
        let including = Rc::new(IncludingPage { route: None, user: None, trace: None });
        let part = PlaceInPage::beneath(page.level, Rc::clone(page.budget()), including);
        assert_eq!(part.level, 1);
        assert!(page.budget().take_part(2) && part.budget().take_part(2));
        assert!(!page.budget().take_part(2) && !part.budget().take_part(2));
        assert!(part.budget().take_part(3), "what was refused was not counted");
        part.budget().note("first");
        part.budget().note("second");
        assert_eq!(page.mark(), Some("first"));
    }
}
