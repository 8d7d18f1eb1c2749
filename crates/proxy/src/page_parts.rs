//! What a page includes: a request of its own for each part, made of the one for the page, which goes through the whole story and gives its
//! answer to the page.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use coding::Coding;
use esi::{Target, VariableName, Variables};
use message::{Authority, FieldName, Fields, Method, RequestHead, TargetForm, Version};

use crate::assembly::{Includer, PageBounds};
use crate::client_identity::ClientIdentity;
use crate::core::Core;
use crate::included::{self, Fragment, PageForm, PieceMaking};
use crate::page_budget::{IncludingPage, PageBudget, PlaceInPage};
use crate::page_variables;
use crate::part_maker::PartMaker;
use crate::records::RecordKind;
use crate::site::Site;
use crate::subrequest_fields::is_of_one_answer;
use crate::transaction::{BeginIncluded, Step, Transaction};

/// What the requests for a page's parts are made of.
pub(crate) struct PageParts {
    core: Rc<Core>,
    site: Arc<Site>,
    client: ClientIdentity,
    maker: PartMaker,
    /// The request for the page, as its client sent it.
    original: Rc<RequestHead>,
    /// Where the page is, for addresses that begin there.
    base: Vec<u8>,
    level: u32,
    budget: Rc<PageBudget>,
    /// What their clients have come in by.
    page: Rc<IncludingPage>,
    /// What the page takes of them.
    form: PageForm,
    begin: BeginIncluded,
}

/// Why a part is not asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeftOut {
    Depth(u32),
    Count(u32),
    Address,
    Host,
    /// Its route does not answer this client.
    Route,
}

impl LeftOut {
    /// For the page's line in the log.
    const fn token(self) -> &'static str {
        match self {
            LeftOut::Depth(_) => "esi-depth",
            LeftOut::Count(_) => "esi-count",
            LeftOut::Address => "esi-address",
            LeftOut::Host => "esi-host",
            LeftOut::Route => "esi-route",
        }
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LeftOut::Depth(depth_max) => write!(f, "ESI depth limit reach (param max_esi_depth = {depth_max})"),
            LeftOut::Count(parts_max) => write!(f, "ESI: a page includes no more than {parts_max} others"),
            LeftOut::Address => f.write_str("ESI 1.0 <esi:include> invalid src= URL"),
            LeftOut::Host => f.write_str("ESI: parts of this host may not be asked for"),
            LeftOut::Route => f.write_str("ESI: the route of a part does not answer this client"),
        }
    }
}

impl PageParts {
    /// `in_gzip`: the page is joined of pieces of gzips. `begin`: how each of them is begun.
    pub(crate) fn of(tx: &Transaction, in_gzip: bool, begin: BeginIncluded) -> PageParts {
        let (maker, original) = PartMaker::of(tx);
        let (threads, counters) = (Arc::clone(&tx.core.shared.coding_threads), Arc::clone(&tx.core.counters));
        let form = if in_gzip { PageForm::Gzip(PieceMaking { threads, counters }) } else { PageForm::Text };
        PageParts {
            core: Rc::clone(&tx.core),
            site: Arc::clone(&tx.site),
            client: tx.client,
            maker,
            original,
            base: tx.head.request().path.to_vec(),
            level: tx.place_in_page.level,
            budget: Rc::clone(tx.place_in_page.budget()),
            page: Rc::new(IncludingPage { route: tx.routed.route, user: tx.user.clone(), trace: tx.trace.clone() }),
            form,
            begin,
        }
    }

    /// What is asked for, if it may be.
    fn request(&self, src: &[u8]) -> Result<RequestHead, LeftOut> {
        let limits = &self.site.settings.limits;
        if self.level >= limits.esi_depth_max {
            return Err(LeftOut::Depth(limits.esi_depth_max));
        }
        let target = Target::of(src, &self.base).map_err(|_| LeftOut::Address)?;
        let original = self.original.request();
        let named = target.host.as_deref().map(|host| (host, Authority::parse(host, original.scheme)));
        let is_own = named.as_ref().is_none_or(|(_, host)| host.as_ref() == Some(&original.authority));
        let settings = &self.site.settings.esi;
        if let Some((_, host)) = named.as_ref().filter(|_| !is_own)
            && !self.maker.allows(settings, host.as_ref())
        {
            return Err(LeftOut::Host);
        }
        if !self.budget.take_part(limits.esi_parts_max) {
            return Err(LeftOut::Count(limits.esi_parts_max));
        }
        let behind = self.page.route.map(|at| &*self.site.routes.at(at).rules);
        let mut fields = Fields::default();
        for field in original.fields.iter().filter(|field| !is_of_one_answer(field.name)) {
            let is_replaced = named.is_some() && field.name == FieldName::Host;
            if !is_replaced && self.maker.hands_on(settings, original.fields, &field, (is_own, behind)) {
                fields.push_named(field.name_text, field.value);
            }
        }
        if let Some((host, _)) = &named {
            fields.push(FieldName::Host, host);
        }
        if matches!(self.form, PageForm::Gzip(_)) {
            fields.push(FieldName::AcceptEncoding, Coding::Gzip.name());
        }
        let (path, query) = match target.path.iter().position(|byte| *byte == b'?') {
            Some(at) => (&target.path[..at], Some(&target.path[at + 1..])),
            None => (&target.path[..], None),
        };
        let authority = named.and_then(|(_, host)| host).unwrap_or_else(|| original.authority.clone());
        let (method, method_text, version) = (Method::Get, &b"GET"[..], Version::Http11);
        let form = TargetForm::Origin;
        let part = message::Request { method, method_text, version, form, authority, path, query, ..original };
        let part = message::Request { fields: fields.view(), ..part };
        // Under the built-in policy its words are heard where it is received.
        let route = self.site.routes.find(&part);
        let rules = route.map(|route| &self.site.routes.at(route).rules);
        let is_another_s =
            || rules.is_some_and(|rules| rules.access.wants_known_clients() || rules.answers(&self.client));
        let is_refused = || self.site.why_refused(&part, &self.client, route).is_some() || is_another_s();
        if self.site.program.is_some() && is_refused() {
            return Err(LeftOut::Route);
        }
        Ok(part.to_head())
    }
}

impl Variables for PageParts {
    fn value(&self, name: VariableName, key: Option<&[u8]>) -> Option<Vec<u8>> {
        page_variables::value(&self.original.request(), name, key)
    }
}

impl Includer for PageParts {
    fn begin(&self, src: &[u8]) -> Option<Fragment> {
        let head = match self.request(src) {
            Ok(head) => head,
            Err(left_out) => {
                self.budget.note(left_out.token());
                if let Some(records) = self.maker.records() {
                    records.write(RecordKind::VclError, format_args!("{left_out}"));
                }
                return None;
            }
        };
        self.core.counters.esi_requests.add(1);
        let place = PlaceInPage::beneath(self.level, Rc::clone(&self.budget), Rc::clone(&self.page));
        let policy = self.maker.policy((&self.core, &self.site), &head, place.level);
        let tx = Transaction::included((&self.core, &self.site), policy, head, self.client, place);
        let (client, fragment) = included::pair(self.form.clone());
        (self.begin)(tx, client, Step::Receive);
        Some(fragment)
    }

    fn bounds(&self) -> PageBounds {
        let limits = &self.site.settings.limits;
        PageBounds {
            ahead_max: limits.esi_ahead_max,
            bytes_max: limits.esi_page_bytes_max,
            wait_max: limits.esi_wait_max,
        }
    }

    fn judges(&self) -> bool {
        self.maker.judges(&self.site)
    }
}
