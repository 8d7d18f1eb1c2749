//! The judge of a site: two users and a stranger do what people do, in random order with a seed, and no answer may bring one
//! of them what is another's; in front of a preset, what it promises has to hold, too. It knows of a site only what a [`Site`] says.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::dice::Dice;
use crate::plain_exchange::Message;
use crate::project::Stopwatch;
use crate::sites::site_promise::{Change, ChangeWatch, Promise};
use crate::sites::site_report::{FIRST_LOOK, Report, SECOND_LOOK};
use crate::sites::visitor::{Request, Visitor};

/// So many of the steps that led to a violation are shown.
const STEPS_SHOWN_MAX: usize = 8;
/// Longer than what the pages of a site live. The clock of larder alone cannot be moved: the site's `Date` would be of another time.
const PAUSE_MS_MAX: u64 = 4_000;

/// What the judge must know of a site.
pub trait Site {
    /// Two users.
    fn users(&self) -> [&'static str; 2];
    /// A part of the names of the cookies that a session has.
    fn session_cookie(&self) -> &'static str;
    /// Parts of the names of all cookies whose owners are answered by the site alone, where it has a preset.
    fn own_cookies(&self) -> &'static [&'static str];
    /// Classes of requests for pages that anybody may have.
    fn public_classes(&self) -> &'static [&'static str];
    /// Some of these pages.
    fn public_pages(&self) -> Vec<String>;
    /// What has to be seen at least once, or little was tested.
    fn sights(&self) -> &'static [&'static str];
    /// Which of these somebody sees in an answer, whose head and body are this text.
    fn seen(&self, visitor: &Visitor, request: &Request, text: &str) -> Vec<&'static str>;
    /// Pages that were changed since this was asked before.
    fn changed(&mut self) -> Vec<Change>;
    /// Words of pages that were taken back since this was asked before: who has no session reads them no more.
    fn withdrawn(&mut self) -> Vec<String> {
        Vec::new()
    }
    /// What only answers to this user have in them: [`mark`], and what a session's cookies begin with.
    fn marks(&self, user: &str) -> Vec<String>;
    /// Words in private pages: who has not been given one by a page of their own must not see it.
    fn secrets(&self) -> Vec<String>;
    /// What a visitor does next.
    fn draw(&mut self, dice: &mut Dice, visitor: &mut Visitor) -> Request;
    /// What an answer tells a visitor for later.
    fn learn(&mut self, visitor: &mut Visitor, request: &Request, answer: &Message);
}

/// In every page that was made for this user.
pub fn mark(user: &str) -> String {
    format!("asked-by-{user}.")
}

struct Judge<'a> {
    site: &'a mut dyn Site,
    folder: &'a Path,
    visitors: Vec<Visitor>,
    /// By target: what was asked for it, and what came of it.
    history: BTreeMap<String, VecDeque<String>>,
    /// Validators that anybody was given, by target.
    validators: BTreeMap<String, (String, String)>,
    changes: ChangeWatch,
    watch: Stopwatch,
    report: Report,
    steps: u64,
}

/// What came of a request, and when it was sent.
struct Sent {
    at_s: f64,
    answer: io::Result<Message>,
}

/// Plays a number of steps in front of a larder that listens in this folder.
pub fn run(site: &mut dyn Site, folder: &Path, promise: Promise, (steps, seed): (u64, u64)) -> Report {
    let mut dice = Dice::of(seed);
    let mut judge = Judge::of(site, folder, promise);
    while judge.steps < steps {
        judge.steps += 1;
        match dice.below(12) {
            0 if dice.below(2) == 0 => thread::sleep(Duration::from_millis(dice.below(PAUSE_MS_MAX))),
            0 => {}
            1 => judge.all_at_once(&mut dice),
            // The stranger asks as often as both others: what is private would reach them.
            2..=6 => judge.one(&mut dice, 2),
            _ => {
                let user = dice.below(2) as usize;
                judge.one(&mut dice, user);
            }
        }
    }
    judge.look_twice();
    judge.report.changes_looked_at = judge.changes.looked_at;
    judge.report
}

impl<'a> Judge<'a> {
    fn of(site: &'a mut dyn Site, folder: &'a Path, promise: Promise) -> Judge<'a> {
        let names = site.users().map(Some).into_iter().chain([None]);
        let visitors = names.map(|name| Visitor { name, ..Visitor::default() }).collect();
        let sights = site.sights().iter().map(|sight| (*sight, 0)).collect();
        let report = Report { promise, sights, ..Report::default() };
        let (history, validators, changes) = (BTreeMap::new(), BTreeMap::new(), ChangeWatch::default());
        Judge { site, folder, visitors, history, validators, changes, watch: Stopwatch::start(), report, steps: 0 }
    }

    fn one(&mut self, dice: &mut Dice, who: usize) {
        let request = match self.visitors[who].next.pop() {
            Some(request) => request,
            None => self.site.draw(dice, &mut self.visitors[who]),
        };
        let request = self.varied(dice, request);
        self.send(who, &request);
    }

    /// The same page for everybody in the same moment: who waits behind another's fetch must not get what is theirs.
    fn all_at_once(&mut self, dice: &mut Dice) {
        let request = self.site.draw(dice, &mut self.visitors[2]);
        if request.method != "GET" {
            return self.send(2, &request);
        }
        let at_s = self.watch.seconds();
        let asked: Vec<_> = (0..self.visitors.len())
            .map(|who| {
                let (request, cookies) = (request.clone(), self.visitors[who].cookie_line());
                let folder = self.folder.to_owned();
                thread::spawn(move || request.send(&cookies, &folder))
            })
            .collect();
        for (who, asked) in asked.into_iter().enumerate() {
            let answer = asked.join().unwrap_or_else(|_| Err(io::Error::other("it panicked")));
            self.take(who, &request, Sent { at_s, answer });
        }
    }

    fn send(&mut self, who: usize, request: &Request) {
        let at_s = self.watch.seconds();
        let answer = request.send(&self.visitors[who].cookie_line(), self.folder);
        self.take(who, request, Sent { at_s, answer });
    }

    /// Somebody without cookies asks for each page that anybody may have, and at once again.
    fn look_twice(&mut self) {
        for target in self.site.public_pages() {
            for class in [FIRST_LOOK, SECOND_LOOK] {
                self.visitors[2].forget();
                self.send(2, &Request::get(class, target.as_str()));
            }
        }
    }

    /// The request as browsers, crawlers and operators vary it.
    fn varied(&self, dice: &mut Dice, request: Request) -> Request {
        if request.method != "GET" {
            return request;
        }
        let known = self.validators.get(&request.target);
        match (dice.below(20), known) {
            (0, _) => Request { method: "HEAD", ..request },
            (1, _) => request.with("Range", "bytes=0-199"),
            (2, _) => request.with("Cache-Control", "no-cache"),
            (3, _) => Request { class: "purge", method: "PURGE", ..request },
            (4, _) => request.with("Accept-Encoding", "gzip"),
            (5..=7, Some((tag, _))) if !tag.is_empty() => request.with("If-None-Match", tag),
            (8..=9, Some((_, date))) if !date.is_empty() => request.with("If-Modified-Since", date),
            _ => request,
        }
    }

    fn take(&mut self, who: usize, request: &Request, sent: Sent) {
        let Ok(answer) = sent.answer else {
            self.report.unanswered += 1;
            return;
        };
        self.report.answers += 1;
        let status = answer.field("cache-status").unwrap_or_default().to_owned();
        let line = format!(
            "step {}: {} {} {}{} -> {} [{status}]",
            self.steps,
            self.visitors[who].shown_name(),
            request.method,
            request.target,
            request.fields.iter().map(|(name, _)| format!(" {name}")).collect::<String>(),
            answer.second_word(),
        );
        let (text, is_hit) = (text_of(&answer), status.contains("; hit"));
        self.count(who, request, &answer, (&text, is_hit));
        let mut wrong = self.leaks_in(who, request, &text);
        wrong.extend(self.promises_broken(who, request, &answer, (&text, is_hit, sent.at_s)));
        self.remember(&request.target, line, &wrong);
        self.learn(who, request, &answer);
    }

    /// What was asked for a page, and what came of it: a violation is printed with what led to it.
    fn remember(&mut self, target: &str, line: String, wrong: &[String]) {
        let before = self.history.entry(target.to_owned()).or_default();
        if !wrong.is_empty() {
            let led: String = before.iter().map(|line| format!("\n        {line}")).collect();
            self.report.violations.push(format!("  {}:{led}\n        {line}", wrong.join("; ")));
        }
        before.push_back(line);
        if before.len() > STEPS_SHOWN_MAX {
            before.pop_front();
        }
    }

    fn learn(&mut self, who: usize, request: &Request, answer: &Message) {
        let field = |name: &str| answer.field(name).unwrap_or_default().to_owned();
        if answer.second_word() == "200" {
            self.validators.insert(request.target.clone(), (field("etag"), field("last-modified")));
        }
        let (visitor, session) = (&mut self.visitors[who], self.site.session_cookie());
        let was_in = visitor.has_cookie(session);
        visitor.take_cookies(answer);
        let is_in = visitor.has_cookie(session);
        visitor.has_been_in |= is_in;
        self.report.logouts += usize::from(was_in && !is_in);
        self.site.learn(visitor, request, answer);
        let now_s = self.watch.seconds();
        self.site.changed().into_iter().for_each(|change| self.changes.note(change, now_s));
        self.site.withdrawn().into_iter().for_each(|word| self.changes.withdraw(word, now_s));
    }

    /// Whose page an answer may be.
    fn speaks_as(&self, who: usize, request: &Request) -> Option<&'static str> {
        let visitor = &self.visitors[who];
        let has_session = visitor.has_cookie(self.site.session_cookie());
        visitor.name.filter(|_| has_session || request.has_password)
    }

    fn leaks_in(&self, who: usize, request: &Request, text: &str) -> Vec<String> {
        let (visitor, own) = (&self.visitors[who], self.speaks_as(who, request));
        let name = visitor.shown_name();
        let mut wrong = Vec::new();
        for user in self.site.users().into_iter().filter(|user| own != Some(*user)) {
            if self.site.marks(user).iter().any(|mark| text.contains(mark.as_str())) {
                wrong.push(format!("{name} got a page of {user}'s"));
            }
        }
        let is_own = own.is_some_and(|user| text.contains(&mark(user)));
        for secret in self.site.secrets().iter().filter(|secret| !is_own && !visitor.knows.contains(*secret)) {
            if text.contains(secret.as_str()) {
                wrong.push(format!("{name} read '{secret}' in a page that is not theirs"));
            }
        }
        wrong
    }

    /// Has somebody cookies whose owners are answered by the site alone?
    fn has_own_cookies(&self, who: usize) -> bool {
        self.site.own_cookies().iter().any(|part| self.visitors[who].has_cookie(part))
    }

    fn promises_broken(
        &mut self,
        who: usize,
        request: &Request,
        answer: &Message,
        (text, is_hit, asked_s): (&str, bool, f64),
    ) -> Vec<String> {
        let promise = self.report.promise;
        let mut broken = Vec::new();
        if promise.own_pages_alone && is_hit && self.has_own_cookies(who) && text.contains(&mark("nobody")) {
            broken.push(format!("{} has cookies of their own and got a stored page", self.visitors[who].shown_name()));
        }
        let is_whole = request.method == "GET" && answer.second_word() == "200" && !is_coded(answer);
        if let (Some(promised_s), true) = (promise.changes_seen_after_s, is_whole)
            && let Some(word) = self.changes.missing_in(&request.target, asked_s, promised_s, text)
        {
            broken.push(format!("'{word}' should be in this page"));
        }
        if let (Some(promised_s), None) = (promise.changes_seen_after_s, self.speaks_as(who, request))
            && let Some(word) = self.changes.still_in(asked_s, promised_s, text)
        {
            broken.push(format!("'{word}' was taken back and is in this page"));
        }
        broken
    }

    fn count(&mut self, who: usize, request: &Request, answer: &Message, (text, is_hit): (&str, bool)) {
        let visitor = &self.visitors[who];
        let (has_session, has_own) = (visitor.has_cookie(self.site.session_cookie()), self.has_own_cookies(who));
        let speaks_as = self.speaks_as(who, request);
        let report = &mut self.report;
        match visitor.name {
            None => report.by_class.entry(request.class).or_default().add(is_hit),
            Some(_) => report.users.add(is_hit),
        }
        let wants_fresh = request.fields.iter().any(|(name, _)| name == "Cache-Control");
        // What is not there for everybody is no public page.
        let is_page = matches!(answer.second_word(), "200" | "206" | "304");
        if is_page && !has_own && !wants_fresh && self.site.public_classes().contains(&request.class) {
            report.public.add(is_hit);
        }
        if visitor.has_been_in && !has_session && text.contains(&mark("nobody")) {
            report.hits_after_logout += usize::from(is_hit);
        }
        if let Some(user) = speaks_as {
            report.pages_of_users += usize::from(text.contains(&mark(user)));
            report.strangers_pages += usize::from(is_hit && text.contains(&mark("nobody")));
        }
        for sight in self.site.seen(visitor, request, text) {
            *report.sights.entry(sight).or_default() += 1;
        }
    }
}

/// Are its words to be read at all?
fn is_coded(answer: &Message) -> bool {
    answer.field("content-encoding").is_some()
}

/// Head and body as one text, in which marks and secrets are looked for.
fn text_of(answer: &Message) -> String {
    let fields = answer.fields.iter().map(|(name, value)| format!("{name}: {value}\n"));
    format!("{}{}", fields.collect::<String>(), String::from_utf8_lossy(&answer.body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plain_exchange::Unframed;

    struct Made;

    impl Site for Made {
        fn users(&self) -> [&'static str; 2] {
            ["ann", "ben"]
        }

        fn session_cookie(&self) -> &'static str {
            "session"
        }

        fn own_cookies(&self) -> &'static [&'static str] {
            &["session", "cart"]
        }

        fn public_classes(&self) -> &'static [&'static str] {
            &["page"]
        }

        fn public_pages(&self) -> Vec<String> {
            vec!["/".to_owned()]
        }

        fn sights(&self) -> &'static [&'static str] {
            &[]
        }

        fn seen(&self, _: &Visitor, _: &Request, _: &str) -> Vec<&'static str> {
            Vec::new()
        }

        fn changed(&mut self) -> Vec<Change> {
            Vec::new()
        }

        fn marks(&self, user: &str) -> Vec<String> {
            vec![mark(user)]
        }

        fn secrets(&self) -> Vec<String> {
            vec!["private-of-ann.".to_owned()]
        }

        fn draw(&mut self, _: &mut Dice, _: &mut Visitor) -> Request {
            Request::get("page", "/")
        }

        fn learn(&mut self, _: &mut Visitor, _: &Request, _: &Message) {}
    }

    /// The report of an answer to one of four: ann with a session, ben without one, a stranger, ann with a cart and no session any more.
    fn report_of(who: usize, request: &Request, (status, body): (&str, &str), promise: Promise) -> Report {
        let mut site = Made;
        let mut judge = Judge::of(&mut site, Path::new("."), promise);
        judge.visitors.push(Visitor { name: Some("ann"), has_been_in: true, ..Visitor::default() });
        judge.visitors[0].cookies.insert("a_session".to_owned(), "1".to_owned());
        judge.visitors[3].cookies.insert("cart".to_owned(), "1".to_owned());
        judge.changes.note(Change { target: "/".to_owned(), word: "changed.".to_owned() }, 0.0);
        let length = body.len();
        let text =
            format!("HTTP/1.1 200 OK\r\nCache-Status: larder; {status}\r\nContent-Length: {length}\r\n\r\n{body}");
        let answer = Message::read(&mut text.as_bytes(), Unframed::UntilEnd, true).map(|answer| answer.expect("one"));
        judge.take(who, request, Sent { at_s: 5.0, answer });
        judge.report
    }

    /// How many violations there are.
    fn check(who: usize, request: &Request, body: &str, expect: usize) {
        let report = report_of(who, request, ("hit", body), Promise::default());
        assert_eq!(report.violations.len(), expect, "{who} {body}: {:?}", report.violations);
    }

    #[test]
    fn what_is_private_is_its_owners_alone() {
        let page = Request::get("page", "/");
        let with_password = Request::get("page", "/").with_password();
        check(0, &page, "private-of-ann. asked-by-ann.", 0);
        check(0, &page, "private-of-ann. asked-by-nobody.", 1);
        check(0, &page, "asked-by-ben.", 1);
        check(1, &page, "asked-by-ben.", 1);
        check(1, &with_password, "asked-by-ben.", 0);
        check(1, &with_password, "private-of-ann. asked-by-ben.", 0);
        check(2, &page, "asked-by-nobody.", 0);
        check(2, &page, "asked-by-ann.", 1);
        check(2, &page, "private-of-ann.", 1);
    }

    #[test]
    fn in_front_of_a_preset_its_promise_has_to_hold() {
        let promised =
            |changes_seen_after_s| Promise { changes_seen_after_s, own_pages_alone: true, ..Promise::default() };
        let broken = |who, status, body: &str, promise| {
            report_of(who, &Request::get("page", "/"), (status, body), promise).violations.len()
        };
        // A stored page at who has a session, at who has a cart, and at a stranger.
        assert_eq!([0, 3, 2].map(|who| broken(who, "hit", "asked-by-nobody.", promised(None))), [1, 1, 0]);
        assert_eq!(broken(0, "fwd=bypass", "asked-by-nobody.", promised(None)), 0);
        // The page was changed five seconds before it was asked for.
        assert_eq!([6.0, 5.0].map(|after_s| broken(2, "hit", "old asked-by-nobody.", promised(Some(after_s)))), [0, 1]);
        assert_eq!(broken(2, "hit", "changed. asked-by-nobody.", promised(Some(5.0))), 0);
    }

    #[test]
    fn hits_are_counted_for_whoever_may_share_them() {
        let counted = |who, status| {
            let report = report_of(who, &Request::get("page", "/"), (status, "asked-by-nobody."), Promise::default());
            (report.public.asked, report.public.hits, report.hits_after_logout)
        };
        assert_eq!([0, 1, 2, 3].map(|who| counted(who, "hit")), [(0, 0, 0), (1, 1, 0), (1, 1, 0), (0, 0, 1)]);
        assert_eq!([2, 3].map(|who| counted(who, "fwd=uri-miss")), [(1, 0, 0), (0, 0, 0)]);
    }
}
