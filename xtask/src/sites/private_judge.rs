//! The judge of a site: two users and a stranger do what people do, in random order with a seed, and no answer may bring one
//! of them what is another's. It knows of a site only what a [`Site`] says.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::dice::Dice;
use crate::plain_exchange::Message;
use crate::sites::visitor::{Request, Visitor};

/// So many of the steps that led to a violation are shown.
const STEPS_SHOWN_MAX: usize = 8;
/// So many violations are printed; all are counted.
const SHOWN_MAX: usize = 12;
/// Answers that nobody finished are no judgement; more than one in so many make the run worth nothing.
const UNANSWERED_ONE_IN: usize = 10;
/// Longer than what the pages of a site live. The clock of larder alone cannot be moved: the site's `Date` would be of another time.
const PAUSE_MS_MAX: u64 = 4_000;

/// What the judge must know of a site.
pub trait Site {
    /// Two users.
    fn users(&self) -> [&'static str; 2];
    /// A part of the names of the cookies that a session has.
    fn session_cookie(&self) -> &'static str;
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

/// Asked for, hits, and answers that were made for nobody.
#[derive(Default)]
struct Counts {
    asked: usize,
    hits: usize,
}

#[derive(Default)]
pub struct Report {
    pub violations: Vec<String>,
    pub answers: usize,
    pub unanswered: usize,
    /// Of the stranger, by class.
    by_class: BTreeMap<&'static str, Counts>,
    /// Answers to users.
    users: Counts,
    /// Pages made for nobody that a user with a session got from the store.
    strangers_pages: usize,
    pages_of_users: usize,
}

impl Report {
    /// Has it tested anything?
    pub fn is_worth_something(&self) -> bool {
        self.answers > 0 && self.unanswered * UNANSWERED_ONE_IN <= self.answers && self.pages_of_users > 0
    }

    pub fn lines(&self) -> Vec<String> {
        let (mut asked, mut hits) = (0, 0);
        let mut lines = Vec::new();
        for (class, counts) in &self.by_class {
            (asked, hits) = (asked + counts.asked, hits + counts.hits);
            lines.push(format!("    {class}: {} of {} hits", counts.hits, counts.asked));
        }
        let shown = format!(
            "{} answers, {} without one; {} were made for a user; the stranger had {hits} hits of {asked}, users {} of {}, \
             {} of these made for nobody; {} private to somebody else",
            self.answers,
            self.unanswered,
            self.pages_of_users,
            self.users.hits,
            self.users.asked,
            self.strangers_pages,
            self.violations.len()
        );
        lines.insert(0, shown);
        lines.extend(self.violations.iter().take(SHOWN_MAX).cloned());
        lines
    }
}

struct Judge<'a> {
    site: &'a mut dyn Site,
    folder: &'a Path,
    visitors: Vec<Visitor>,
    /// By target: what was asked for it, and what came of it.
    history: BTreeMap<String, VecDeque<String>>,
    /// Validators that anybody was given, by target.
    validators: BTreeMap<String, (String, String)>,
    report: Report,
    steps: u64,
}

/// Plays a number of steps in front of a larder that listens in this folder.
pub fn run(site: &mut dyn Site, folder: &Path, steps: u64, seed: u64) -> Report {
    let mut dice = Dice::of(seed);
    let names = site.users().map(Some).into_iter().chain([None]);
    let visitors = names.map(|name| Visitor { name, ..Visitor::default() }).collect();
    let (history, validators) = (BTreeMap::new(), BTreeMap::new());
    let mut judge = Judge { site, folder, visitors, history, validators, report: Report::default(), steps: 0 };
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
    judge.report
}

impl Judge<'_> {
    fn one(&mut self, dice: &mut Dice, who: usize) {
        let request = match self.visitors[who].next.pop() {
            Some(request) => request,
            None => self.site.draw(dice, &mut self.visitors[who]),
        };
        let request = self.varied(dice, request);
        let sent = request.send(&self.visitors[who].cookie_line(), self.folder);
        self.take(who, &request, sent);
    }

    /// The same page for everybody in the same moment: who waits behind another's fetch must not get what is theirs.
    fn all_at_once(&mut self, dice: &mut Dice) {
        let request = self.site.draw(dice, &mut self.visitors[2]);
        if request.method != "GET" {
            return self.take_one(2, request);
        }
        let asked: Vec<_> = (0..self.visitors.len())
            .map(|who| {
                let (request, cookies) = (request.clone(), self.visitors[who].cookie_line());
                let folder = self.folder.to_owned();
                thread::spawn(move || request.send(&cookies, &folder))
            })
            .collect();
        for (who, asked) in asked.into_iter().enumerate() {
            let sent = asked.join().unwrap_or_else(|_| Err(std::io::Error::other("it panicked")));
            self.take(who, &request, sent);
        }
    }

    fn take_one(&mut self, who: usize, request: Request) {
        let sent = request.send(&self.visitors[who].cookie_line(), self.folder);
        self.take(who, &request, sent);
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

    fn take(&mut self, who: usize, request: &Request, sent: std::io::Result<Message>) {
        let Ok(answer) = sent else {
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
        let text = text_of(&answer);
        self.count(who, request, &text, &status);
        let wrong = self.violations_in(who, request, &text);
        let before = self.history.entry(request.target.clone()).or_default();
        if !wrong.is_empty() {
            let led: String = before.iter().map(|line| format!("\n        {line}")).collect();
            self.report.violations.push(format!("  {}:{led}\n        {line}", wrong.join("; ")));
        }
        before.push_back(line);
        if before.len() > STEPS_SHOWN_MAX {
            before.pop_front();
        }
        let field = |name: &str| answer.field(name).unwrap_or_default().to_owned();
        if answer.second_word() == "200" {
            self.validators.insert(request.target.clone(), (field("etag"), field("last-modified")));
        }
        self.visitors[who].take_cookies(&answer);
        self.site.learn(&mut self.visitors[who], request, &answer);
    }

    /// Whose page an answer may be.
    fn speaks_as(&self, who: usize, request: &Request) -> Option<&'static str> {
        let visitor = &self.visitors[who];
        let has_session = visitor.has_cookie(self.site.session_cookie());
        visitor.name.filter(|_| has_session || request.has_password)
    }

    fn violations_in(&self, who: usize, request: &Request, text: &str) -> Vec<String> {
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

    fn count(&mut self, who: usize, request: &Request, text: &str, status: &str) {
        let is_hit = status.contains("; hit");
        let counts = match self.visitors[who].name {
            None => self.report.by_class.entry(request.class).or_default(),
            Some(_) => &mut self.report.users,
        };
        counts.asked += 1;
        counts.hits += usize::from(is_hit);
        if let Some(user) = self.speaks_as(who, request) {
            self.report.pages_of_users += usize::from(text.contains(&mark(user)));
            self.report.strangers_pages += usize::from(is_hit && text.contains(&mark("nobody")));
        }
    }
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

    /// How many violations there are in an answer to one of three: ann with a session, ben without one, a stranger.
    fn check(who: usize, request: &Request, body: &str, expect: usize) {
        let ann = Visitor { name: Some("ann"), ..Visitor::default() };
        let mut visitors = vec![ann, Visitor { name: Some("ben"), ..Visitor::default() }, Visitor::default()];
        visitors[0].cookies.insert("a_session".to_owned(), "1".to_owned());
        let (history, validators, mut site) = (BTreeMap::new(), BTreeMap::new(), Made);
        let report = Report::default();
        let mut judge =
            Judge { site: &mut site, folder: Path::new("."), visitors, history, validators, report, steps: 1 };
        let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let answer = Message::read(&mut text.as_bytes(), Unframed::UntilEnd, true).map(|answer| answer.expect("one"));
        judge.take(who, request, answer);
        assert_eq!(judge.report.violations.len(), expect, "{who} {body}: {:?}", judge.report.violations);
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
}
