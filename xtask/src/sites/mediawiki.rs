//! MediaWiki from Debian's package: a sysop and a user with names and addresses that only their preferences show, and what
//! readers do there.

use std::process::Command;

use crate::dice::Dice;
use crate::plain_exchange::Message;
use crate::sites::php_site::{self, PhpSite};
use crate::sites::private_judge::{Site, mark};
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

#[derive(Default)]
pub struct MediaWiki {
    edits: u64,
}

/// Installs it in a folder, starts it, and says what the judge must know.
pub fn set_up() -> Result<(PhpSite, MediaWiki), String> {
    let of_php = [("/usr/share/doc/php-mysql", "php-mysql"), ("/usr/share/doc/php-mbstring", "php-mbstring")];
    php_site::check_packages(
        &[&[(PACKAGE, "mediawiki"), ("/usr/share/doc/php-xml", "php-xml")], &of_php[..]].concat(),
    )?;
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
    Ok((site, MediaWiki::default()))
}

/// From now on pages for whoever has no session say that a cache may have them.
pub fn say_how_long(site: &PhpSite) -> Result<(), String> {
    append_settings(site, include_str!("../../sites/mediawiki/cache_headers.php"))
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

    fn marks(&self, user: &str) -> Vec<String> {
        let (first, rest) = user.split_at(1);
        // The second one is in the cookies of a session.
        vec![mark(user), format!("UserName={}{rest}", first.to_uppercase())]
    }

    fn secrets(&self) -> Vec<String> {
        USERS.iter().map(|user| format!("private-of-{user}.")).collect()
    }

    fn draw(&mut self, dice: &mut Dice, visitor: &mut Visitor) -> Request {
        let Some(name) = visitor.name else {
            return match dice.below(24) {
                0 => {
                    visitor.cookies.clear();
                    MediaWiki::page(dice)
                }
                1 => self.edit("+\\"),
                _ => MediaWiki::page(dice),
            };
        };
        let token =
            |kind: &str| Request::get("API", format!("/api.php?action=query&meta=tokens&type={kind}&format=json"));
        if !visitor.has_cookie(SESSION) && dice.below(2) == 0 {
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
        match (dice.below(20), visitor.kept.get("csrf").cloned()) {
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
        for (kind, name) in [("login", "\"logintoken\":\""), ("csrf", "\"csrftoken\":\"")] {
            let token = body.split_once(name).and_then(|(_, rest)| rest.split_once('"'));
            if let Some((token, _)) = token.filter(|(token, _)| token.len() > 8) {
                visitor.kept.insert(kind, token.replace("\\\\", "\\"));
            }
        }
    }
}
