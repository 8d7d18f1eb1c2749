//! MediaWiki from Debian's package: a sysop and a user with names and addresses that only their preferences show, and what
//! readers do there.

use std::process::Command;

use crate::dice::Dice;
use crate::plain_exchange::Message;
use crate::sites::php_site::{self, PhpSite};
use crate::sites::private_judge::{Site, mark};
use crate::sites::site_play::{Application, Play, as_it_is};
use crate::sites::site_policy::{Reached, SiteWords};
use crate::sites::site_promise::{Change, Promise};
use crate::sites::visitor::{Request, Visitor};

const PACKAGE: &str = "/usr/share/mediawiki";
const USERS: [&str; 2] = ["ann", "ben"];
const SESSION: &str = "UserID";
const PAGES: [&str; 4] = ["One", "Two", "Three", "Four"];
const SETTINGS: &str = "docs/LocalSettings.php";
const LOCATIONS: &str = "location /wiki/ { rewrite ^/wiki/(.*)$ /index.php?title=$1 last; }\n\
    location / { try_files $uri $uri/ /index.php?$args; }";

/// Only for the making of the database.
const PASSWORD_END: &str = "-has-a-long-password";

const OWN_SEEN: &str = "a user's own name in their preferences";
const EDIT_SEEN: &str = "an edited page, at the stranger";
const OWN_EDIT_SEEN: &str = "an edited page, at a user";

pub const APPLICATION: Application = Application {
    name: "mediawiki",
    words: SiteWords {
        preset: "mediawiki",
        vcl: include_str!("../../sites/mediawiki/site.vcl"),
        origin: "",
        root: "closed_paths = ['^/(?:cache|includes|languages|maintenance|serialized|vendor)/', '^/LocalSettings[.]php', '^/images/.*[.]php', '^/images/deleted/']",
    },
    set_up,
    plays: &[
        Play::of_site("MediaWiki as it is installed", as_it_is),
        Play::of_site("MediaWiki with lives for pages", say_how_long),
    ],
    preset_plays: &[
        Play {
            what: "MediaWiki with lives for pages, with the preset",
            prepare: say_how_long,
            reached: Reached::ByHttp,
            on_top: "",
            promise: Promise { changes_seen_after_s: Some(3.5), own_pages_alone: true, second_is_hit: true },
        },
        Play {
            what: "MediaWiki that purges what has changed, with the preset",
            prepare: say_what_changed,
            reached: Reached::ByHttp,
            on_top: "",
            promise: Promise { changes_seen_after_s: Some(1.0), own_pages_alone: true, second_is_hit: true },
        },
        Play {
            what: "the same without nginx, over FastCGI",
            prepare: as_it_is,
            reached: Reached::ByFastCgi,
            on_top: "",
            promise: Promise { changes_seen_after_s: Some(1.0), own_pages_alone: true, second_is_hit: true },
        },
    ],
};

#[derive(Default)]
struct MediaWiki {
    edits: u64,
    /// What is being sent: the page, and what it gets.
    edited: Option<(&'static str, String)>,
    changed: Vec<Change>,
}

fn set_up() -> Result<(PhpSite, Box<dyn Site>), String> {
    let of_php =
        ["mysql", "mbstring", "xml", "curl"].map(|name| (format!("/usr/share/doc/php-{name}"), format!("php-{name}")));
    let of_php: Vec<_> = of_php.iter().map(|(path, name)| (path.as_str(), name.as_str())).collect();
    php_site::check_packages(&[&[(PACKAGE, "mediawiki")], &of_php[..]].concat())?;
    let mut site = PhpSite::set_up("mediawiki", PACKAGE)?;
    let folder = site.processes.folder.clone();
    let _ = std::fs::remove_file(folder.join(SETTINGS));
    let server = format!("--dbserver=localhost:{}", folder.join("db.sock").display());
    let confpath = format!("--confpath={}", folder.join("docs").display());
    let pass = format!("--pass=ann{PASSWORD_END}");
    site.php(&[
        "docs/maintenance/install.php",
        "--dbtype=mysql",
        &server,
        "--dbname=site",
        "--installdbuser=root",
        "--dbuser=root",
        "--dbpass=",
        "--server=http://site.test",
        "--scriptpath=",
        &confpath,
        &pass,
        "A site",
        "Ann",
    ])?;
    site.php(&["docs/maintenance/createAndPromote.php", "Ben", &format!("ben{PASSWORD_END}")])?;
    for page in PAGES {
        let file = site.processes.write(format!("{page}.txt"), &format!("The words of {page}."))?;
        site.php(&["docs/maintenance/importTextFiles.php", "--user=Ann", &file.display().to_string()])?;
    }
    let own = format!(
        "$c = new mysqli('localhost', 'root', '', 'site', 0, '{}');\n\
         $c->query(\"UPDATE user SET user_real_name = CONCAT('private-of-', LOWER(CONVERT(user_name USING utf8mb4)), '.')\");",
        folder.join("db.sock").display()
    );
    site.php(&["-r", &own])?;
    append_settings(&site, include_str!("../../sites/mediawiki/marks.php"))?;
    site.serve(LOCATIONS)?;
    Ok((site, Box::new(MediaWiki::default())))
}

/// From now on pages for whoever has no session say that a cache may have them.
fn say_how_long(site: &PhpSite) -> Result<(), String> {
    append_settings(site, include_str!("../../sites/mediawiki/cache_headers.php"))
}

/// From now on pages live as long as MediaWiki has them live, and it purges what has changed.
fn say_what_changed(site: &PhpSite) -> Result<(), String> {
    let text = include_str!("../../sites/mediawiki/purges.php").replace("PORT", &site.purge_port.to_string());
    append_settings(site, &text)
}

fn append_settings(site: &PhpSite, more: &str) -> Result<(), String> {
    let path = site.processes.folder.join(SETTINGS);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    site.processes.write(SETTINGS, &format!("{text}{more}"))?;
    // What PHP has compiled it has for two seconds.
    site.processes.run(Command::new("sleep").arg("3")).map(|_| ())
}

impl MediaWiki {
    /// What anybody may ask for.
    fn page(dice: &mut Dice) -> Request {
        let page = PAGES[dice.below(4) as usize];
        let special = |class, name: &str| Request::get(class, format!("/wiki/Special:{name}"));
        let of_index = |class, rest: &str| Request::get(class, format!("/index.php?title={page}&{rest}"));
        match dice.below(28) {
            0..=7 => Request::get("page", format!("/wiki/{page}")),
            8 => of_index("history", "action=history"),
            9 => of_index("edit", "action=edit"),
            10 => of_index("raw", "action=raw"),
            11 => Request::get("front page", "/wiki/Main_Page"),
            12 => special("recent changes", "RecentChanges"),
            13 => Request::get("feed", "/index.php?title=Special:RecentChanges&feed=atom"),
            14 => special("own", "Watchlist"),
            15..=16 => special("own", "Preferences"),
            17 => special("own", ["MyPage", "MyTalk", "MyContributions"][dice.below(3) as usize]),
            18 => special("contributions", ["Contributions/Ann", "Contributions/Ben"][dice.below(2) as usize]),
            19 => Request::get("search", "/index.php?title=Special:Search&search=words&fulltext=1"),
            20 => Request::get("script", "/load.php?lang=en&modules=startup&only=scripts&raw=1&skin=vector"),
            21 => Request::get("script", "/load.php?lang=en&modules=site.styles&only=styles&skin=vector"),
            22 => Request::get("API", "/api.php?action=query&meta=userinfo&uiprop=realname&format=json"),
            23 => Request::get(
                "API",
                format!("/api.php?action=query&prop=info&titles={page}&format=json&maxage=5&smaxage=5"),
            ),
            24 => Request::get("REST", format!("/rest.php/v1/page/{page}")),
            25 => Request::get("login page", "/index.php?title=Special:UserLogin"),
            26 => Request::get("absent", "/wiki/No_such_page"),
            _ => Request::get("user page", ["/wiki/User:Ann", "/wiki/User:Ben"][dice.below(2) as usize]),
        }
    }

    fn edit(&mut self, token: &str) -> Request {
        self.edits += 1;
        let text = format!("Edit {}.", self.edits);
        let title = PAGES[(self.edits % 4) as usize];
        self.edited = Some((title, text.clone()));
        let pairs = [("action", "edit"), ("title", title), ("appendtext", &text), ("token", token), ("format", "json")];
        Request::form("edit", "/api.php", &pairs)
    }
}

impl Site for MediaWiki {
    fn users(&self) -> [&'static str; 2] {
        USERS
    }

    fn session_cookie(&self) -> &'static str {
        SESSION
    }

    fn own_cookies(&self) -> &'static [&'static str] {
        &["_session", SESSION, "Token"]
    }

    fn public_classes(&self) -> &'static [&'static str] {
        &["page", "front page"]
    }

    fn public_pages(&self) -> Vec<String> {
        PAGES.iter().chain(&["Main_Page"]).map(|page| format!("/wiki/{page}")).collect()
    }

    fn sights(&self) -> &'static [&'static str] {
        &[OWN_SEEN, EDIT_SEEN, OWN_EDIT_SEEN]
    }

    fn seen(&self, visitor: &Visitor, request: &Request, text: &str) -> Vec<&'static str> {
        let shows_edit = request.class == "page" && text.contains("Edit ");
        let all = [
            (OWN_SEEN, visitor.name.is_some_and(|name| text.contains(&format!("private-of-{name}.")))),
            (EDIT_SEEN, shows_edit && visitor.name.is_none()),
            (OWN_EDIT_SEEN, shows_edit && visitor.name.is_some_and(|name| text.contains(&mark(name)))),
        ];
        all.into_iter().filter(|(_, is_seen)| *is_seen).map(|(sight, _)| sight).collect()
    }

    fn changed(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changed)
    }

    fn marks(&self, user: &str) -> Vec<String> {
        let (first, rest) = user.split_at(1);
        // The second one is in the cookies of a session.
        vec![mark(user), format!("UserName={}{rest}", first.to_uppercase())]
    }

    fn secrets(&self) -> Vec<String> {
        USERS.iter().map(|user| format!("private-of-{user}.")).collect()
    }

    fn draw(&mut self, dice: &mut Dice, visitor: &mut Visitor) -> Request {
        if !visitor.has_cookie(SESSION) && !visitor.kept.contains_key("login") && dice.below(4) == 0 {
            visitor.forget();
        }
        let Some(name) = visitor.name else {
            return if dice.below(24) == 0 { self.edit("+\\") } else { MediaWiki::page(dice) };
        };
        let token =
            |kind: &str| Request::get("API", format!("/api.php?action=query&meta=tokens&type={kind}&format=json"));
        let is_out = !visitor.has_cookie(SESSION);
        // Who has begun to log in goes on.
        if is_out && (visitor.kept.contains_key("login") || dice.below(4) == 0) {
            let Some(token) = visitor.kept.remove("login") else { return token("login") };
            let password = format!("{name}{PASSWORD_END}");
            let pairs = [
                ("action", "login"),
                ("lgname", name),
                ("lgpassword", &password),
                ("lgtoken", &token),
                ("format", "json"),
            ];
            return Request::form("login", "/api.php", &pairs).with_password();
        }
        match (dice.below(16), visitor.kept.get("csrf").cloned()) {
            (0, Some(csrf)) => {
                visitor.kept.remove("csrf");
                Request::form("logout", "/api.php", &[("action", "logout"), ("token", &csrf), ("format", "json")])
            }
            (1, Some(csrf)) => self.edit(&csrf),
            (0..=2, _) => token("csrf"),
            _ => MediaWiki::page(dice),
        }
    }

    fn learn(&mut self, visitor: &mut Visitor, _request: &Request, answer: &Message) {
        let body = String::from_utf8_lossy(&answer.body);
        if let Some((page, word)) = self.edited.take()
            && body.contains("\"result\":\"Success\"")
        {
            self.changed.push(Change { target: format!("/wiki/{page}"), word });
        }
        for (kind, name) in [("login", "\"logintoken\":\""), ("csrf", "\"csrftoken\":\"")] {
            let token = body.split_once(name).and_then(|(_, rest)| rest.split_once('"'));
            if let Some((token, _)) = token.filter(|(token, _)| token.len() > 8) {
                visitor.kept.insert(kind, token.replace("\\\\", "\\"));
            }
        }
    }
}
