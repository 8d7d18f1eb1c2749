//! WordPress from Debian's package: an administrator and an author with private posts and drafts, a post behind a password,
//! comments that wait for somebody to look at them, pictures, a cart as shops have it, and what visitors do there.

use std::collections::BTreeMap;

use crate::dice::Dice;
use crate::plain_exchange::Message;
use crate::sites::php_site::{self, PhpSite};
use crate::sites::private_judge::{Site, mark};
use crate::sites::site_play::{Application, Play, as_it_is};
use crate::sites::site_policy::{Reached, SiteWords};
use crate::sites::site_promise::{Change, Promise};
use crate::sites::visitor::{Request, Visitor};

const PACKAGE: &str = "/usr/share/wordpress";
/// What the package has none of by itself.
const THEME: &str = "/usr/share/wordpress/wp-content/themes/twentytwentyone";
const USERS: [&str; 2] = ["ann", "ben"];
const SESSION: &str = "wordpress_logged_in";
const LOCKED: &str = "behind-the-password.";
const LOCATIONS: &str = "location / { try_files $uri $uri/ /index.php?$args; }\n\
    location ~* \\.(?:css|js|png|svg)$ { expires 1d; }";

/// What a page that was changed shows, and where.
const SHOWN_AT: [&str; 2] = ["/", "/feed/"];
const CART_COOKIE: &str = "wp_woocommerce_session_1";
/// The least that is a picture, and all of it letters of ASCII.
const PICTURE: &str = "GIF89a\x01\x00\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;";

const COMMENT_SEEN: &str = "a comment that waits for moderation, at its author";
const LOCKED_SEEN: &str = "the post behind the password, once it was typed";
const PRIVATE_SEEN: &str = "a private post, at its author";
const DRAFT_SEEN: &str = "the preview of a draft, at its author";
const EDIT_SEEN: &str = "an edited post, at the stranger";
const PICTURE_SEEN: &str = "an uploaded picture, at the stranger";
const CART_SEEN: &str = "a cart, at whoever filled it";
const NONCE_SEEN: &str = "private posts by REST with a nonce";

pub const APPLICATION: Application = Application {
    name: "wordpress",
    words: SiteWords {
        preset: "wordpress",
        vcl: include_str!("../../sites/wordpress/site.vcl"),
        origin: "params = { SERVER_SOFTWARE = \"nginx\" }",
        root: "closed_paths = ['^/wp-content/uploads/.*[.]php', '^/wp-config[.]php']",
    },
    set_up,
    plays: &[
        Play::of_site("WordPress as it is installed", as_it_is),
        Play::of_site("WordPress with lives for pages", say_how_long),
    ],
    preset_plays: &[
        // Its minutes are too long to wait for.
        Play {
            what: "WordPress as it is installed, with the preset and shorter lives",
            prepare: as_it_is,
            reached: Reached::ByHttp,
            on_top: "ttl = \"6s\"\nstale_while_revalidate = \"2s\"",
            // Two more for a page that was being made when it changed.
            promise: Promise { changes_seen_after_s: Some(10.0), own_pages_alone: true, second_is_hit: true },
        },
        Play {
            what: "WordPress that purges what has changed, with the preset",
            prepare: say_what_changed,
            reached: Reached::ByHttp,
            on_top: "",
            promise: Promise { changes_seen_after_s: Some(0.0), own_pages_alone: true, second_is_hit: true },
        },
        Play {
            what: "the same without nginx, over FastCGI",
            prepare: as_it_is,
            reached: Reached::ByFastCgi,
            on_top: "",
            promise: Promise { changes_seen_after_s: Some(0.0), own_pages_alone: true, second_is_hit: true },
        },
    ],
};

#[derive(Default)]
struct WordPress {
    /// Of posts by name, and the passwords of applications.
    told: BTreeMap<String, String>,
    comments: u64,
    edits: u64,
    /// What is being sent: the post, and the word that it gets.
    edited: Option<(&'static str, String)>,
    /// Where uploaded pictures are.
    pictures: Vec<String>,
    /// Words of carts.
    carts: Vec<String>,
    changed: Vec<Change>,
    /// What is being published or taken back.
    passing_sent: Option<Passing>,
    /// A post that is public for a while.
    passing: Option<Passing>,
    passings: u64,
    withdrawn: Vec<String>,
}

/// A post that comes and goes.
#[derive(Clone, Debug)]
struct Passing {
    /// Once WordPress has said it.
    id: String,
    word: String,
    name: String,
}

fn set_up() -> Result<(PhpSite, Box<dyn Site>), String> {
    php_site::check_packages(&[
        (PACKAGE, "wordpress"),
        ("/usr/share/doc/php-mysql", "php-mysql"),
        (THEME, "wordpress-theme-twentytwentyone"),
    ])?;
    let mut site = PhpSite::set_up("wordpress", PACKAGE)?;
    site.make_database("site")?;
    site.processes.write("docs/wp-config.php", include_str!("../../sites/wordpress/wp-config.php"))?;
    for (name, text) in [
        ("install.php", include_str!("../../sites/wordpress/install.php")),
        ("content.php", include_str!("../../sites/wordpress/content.php")),
    ] {
        site.processes.write(name, text)?;
    }
    site.php(&["install.php"])?;
    let told = site.php(&["content.php"])?;
    let told = told.lines().filter_map(|line| line.split_once(' '));
    let told: BTreeMap<String, String> = told.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    if !told.contains_key("locked") {
        return Err(format!("WordPress was not installed: {told:?}"));
    }
    for (name, text) in [
        ("marks.php", include_str!("../../sites/wordpress/marks.php")),
        ("cart.php", include_str!("../../sites/wordpress/cart.php")),
    ] {
        site.processes.write(format!("docs/wp-content/mu-plugins/{name}"), text)?;
    }
    site.serve(LOCATIONS)?;
    Ok((site, Box::new(WordPress { told, ..WordPress::default() })))
}

/// From now on pages for whoever has no session say that they are fresh for a while, as plugins make them.
fn say_how_long(site: &PhpSite) -> Result<(), String> {
    let text = include_str!("../../sites/wordpress/cache_headers.php");
    site.processes.write("docs/wp-content/mu-plugins/cache_headers.php", text).map(|_| ())
}

/// From now on what is changed is purged, by the plugin that larder comes with.
fn say_what_changed(site: &PhpSite) -> Result<(), String> {
    let at = format!("<?php define('LARDER_PURGE_AT', '127.0.0.1:{}');\n", site.purge_port);
    site.processes.write("docs/wp-content/mu-plugins/larder-purge-at.php", &at)?;
    let text = include_str!("../../../dist/wordpress-larder-purge.php");
    site.processes.write("docs/wp-content/mu-plugins/wordpress-larder-purge.php", text).map(|_| ())
}

impl WordPress {
    fn id(&self, name: &str) -> &str {
        self.told.get(name).map_or("0", String::as_str)
    }

    fn log_in(name: &str) -> Request {
        let password = format!("{name}-password");
        let pairs =
            [("log", name), ("pwd", &password), ("testcookie", "1"), ("redirect_to", "http://site.test/wp-admin/")];
        Request::form("login", "/wp-login.php", &pairs).with_password()
    }

    fn comment(&mut self, visitor: &mut Visitor, dice: &mut Dice) -> Request {
        self.comments += 1;
        // The comment of a user appears at once: an administrator's, and that of a post's author.
        let kind = if visitor.has_cookie(SESSION) { "said" } else { "pending" };
        let word = format!("{kind}-{}.", self.comments);
        visitor.knows.insert(word.clone());
        // WordPress shows what waits to whoever has the same address.
        let (author, email) = (format!("visitor {}", self.comments), format!("visitor-{}@example.test", self.comments));
        let pairs = [
            ("comment", word.as_str()),
            ("author", author.as_str()),
            ("email", email.as_str()),
            ("comment_post_ID", self.id("one")),
            ("comment_parent", "0"),
            ("wp-comment-cookies-consent", "yes"),
        ];
        // Who does not agree to cookies is shown the comment by a link of their own.
        let agreed = if dice.below(3) == 0 { pairs.len() - 1 } else { pairs.len() };
        Request::form("comment", "/wp-comments-post.php", &pairs[..agreed])
    }

    fn call(&self, name: &str) -> Request {
        let value = |text: &str| format!("<param><value><string>{text}</string></value></param>");
        let password = format!("{name}-password");
        let body = format!(
            "<?xml version=\"1.0\"?><methodCall><methodName>wp.getPosts</methodName><params>{}{}{}</params></methodCall>",
            value("1"),
            value(name),
            value(&password)
        );
        Request::post("xmlrpc", "/xmlrpc.php", "text/xml", body).with_password()
    }

    /// What an application asks for with a password of its own.
    fn application(&self, name: &str, target: &str) -> Request {
        let pair = format!("{name}:{}", self.id(&format!("password-{name}")));
        Request::get("REST", target).with("Authorization", format!("Basic {}", base64(pair.as_bytes()))).with_password()
    }

    /// What the editor of the browser sends: a user's own post with other words. An administrator's are all.
    fn edit(&mut self, dice: &mut Dice, name: &str, nonce: &str) -> Request {
        self.edits += 1;
        let all = ["one", "two", "three", "four"];
        let post = if name == "ann" { all[dice.below(4) as usize] } else { all[2 * dice.below(2) as usize] };
        let word = format!("edit-{}.", self.edits);
        let body = format!("{{\"content\":\"The words of {post}, {word}\"}}");
        self.edited = Some((post, word));
        let target = format!("/wp-json/wp/v2/posts/{}", self.id(post));
        Request::post("edit", target, "application/json", body).with("X-WP-Nonce", nonce)
    }

    /// A new post, or the end of the one that is there, in one of the ways in which posts end.
    fn publish_or_withdraw(&mut self, dice: &mut Dice, nonce: &str) -> Request {
        let json = |class, target: String, body: String| {
            Request::post(class, target, "application/json", body).with("X-WP-Nonce", nonce)
        };
        let posts = "/wp-json/wp/v2/posts";
        let Some(passing) = self.passing.clone() else {
            self.passings += 1;
            let name = format!("passing-{}", self.passings);
            let word = format!("{name}.");
            self.passing_sent = Some(Passing { id: String::new(), word: word.clone(), name: name.clone() });
            let body = format!(
                "{{\"title\":\"comes and goes\",\"slug\":\"{name}\",\"content\":\"The words of {word}\",\"status\":\"publish\"}}"
            );
            return json("publish", posts.to_owned(), body);
        };
        let target = format!("{posts}/{}", passing.id);
        self.passing_sent = Some(passing);
        match dice.below(5) {
            0 => json("withdraw", target, "{\"status\":\"draft\"}".to_owned()),
            1 => json("withdraw", target, "{\"status\":\"private\"}".to_owned()),
            2 => json("withdraw", target, "{\"password\":\"another-sesame\"}".to_owned()),
            3 => json("withdraw", format!("{target}?_method=DELETE"), String::new()),
            _ => json("withdraw", format!("{target}?_method=DELETE&force=true"), String::new()),
        }
    }

    fn upload(&mut self, nonce: &str) -> Request {
        let file = format!("attachment; filename=\"picture-{}.gif\"", self.pictures.len() + 1);
        let request = Request::post("upload", "/wp-json/wp/v2/media", "image/gif", PICTURE);
        request.with("Content-Disposition", file).with("X-WP-Nonce", nonce)
    }

    fn picture(&self, dice: &mut Dice) -> Request {
        match self.pictures.len() {
            0 => Request::get("file", "/wp-includes/images/w-logo-blue.png"),
            count => Request::get("picture", self.pictures[dice.below(count as u64) as usize].as_str()),
        }
    }

    /// What anybody may ask for.
    fn page(&self, dice: &mut Dice) -> Request {
        let names = ["one", "two", "three", "four", "private-ann", "private-ben", "locked"];
        let name = names[dice.below(names.len() as u64) as usize];
        let drafts = ["draft-ann", "draft-ben", "private-ann", "private-ben"];
        let hidden = self.id(drafts[dice.below(4) as usize]);
        let rest = |path: &str| Request::get("REST", format!("/wp-json/wp/v2/{path}"));
        match dice.below(34) {
            0..=3 => Request::get("front page", "/"),
            4..=8 => Request::get("single", format!("/{name}/")),
            9 => Request::get("page", "/about/"),
            10..=11 => Request::get("feed", "/feed/"),
            12 => Request::get("feed", "/comments/feed/"),
            13 => Request::get("feed", format!("/{name}/feed/")),
            14 => Request::get("search", ["/?s=private", "/?s=words", "/?s=draft"][dice.below(3) as usize]),
            15 => Request::get("by id", format!("/?p={hidden}")),
            16 => Request::get("preview", format!("/?p={hidden}&preview=true")),
            17 => rest("posts"),
            18 => rest(&format!("posts/{hidden}")),
            19 => rest(["users/me", "comments", "posts?search=private"][dice.below(3) as usize]),
            20 => Request::get("author", ["/author/ann/", "/author/ben/", "/?author=1"][dice.below(3) as usize]),
            21 => Request::get("file", "/wp-includes/css/dashicons.min.css"),
            22 => Request::get("login page", "/wp-login.php"),
            23 => Request::get("cron", "/wp-cron.php?doing_wp_cron"),
            24 => Request::get("sitemap", ["/wp-sitemap.xml", "/robots.txt"][dice.below(2) as usize]),
            25 => Request::get("absent", "/no-such-page/"),
            26 => Request::get("ajax", "/wp-admin/admin-ajax.php?action=rest-nonce"),
            27..=28 => self.picture(dice),
            30..=31 => {
                let name = self.passing.as_ref().map_or("two", |passing| passing.name.as_str());
                Request::get("single", format!("/{name}/{}", ["", "feed/"][dice.below(2) as usize]))
            }
            32 => Request::get("archive", "/category/uncategorized/"),
            29 => Request::get("cart", "/?add-to-cart=7"),
            _ => Request::get("admin", "/wp-admin/"),
        }
    }
}

impl Site for WordPress {
    fn users(&self) -> [&'static str; 2] {
        USERS
    }

    fn session_cookie(&self) -> &'static str {
        SESSION
    }

    fn own_cookies(&self) -> &'static [&'static str] {
        &[SESSION, "wordpress_sec", "wp-postpass", "comment_author", "woocommerce_items_in_cart", CART_COOKIE]
    }

    fn public_classes(&self) -> &'static [&'static str] {
        &["front page", "single", "page", "feed", "search", "author", "sitemap"]
    }

    fn public_pages(&self) -> Vec<String> {
        let all = "/ /one/ /two/ /three/ /four/ /about/ /feed/ /comments/feed/ /author/ann/ /author/ben/ /?s=words /wp-sitemap.xml";
        all.split(' ').map(str::to_owned).collect()
    }

    fn sights(&self) -> &'static [&'static str] {
        &[COMMENT_SEEN, LOCKED_SEEN, PRIVATE_SEEN, DRAFT_SEEN, EDIT_SEEN, PICTURE_SEEN, CART_SEEN, NONCE_SEEN]
    }

    fn seen(&self, visitor: &Visitor, request: &Request, text: &str) -> Vec<&'static str> {
        let has =
            |words: &[String]| words.iter().any(|word| visitor.knows.contains(word) && text.contains(word.as_str()));
        let pending: Vec<String> = (1..=self.comments).map(|number| format!("pending-{number}.")).collect();
        let own = |kind: &str| visitor.name.is_some_and(|name| text.contains(&format!("{kind}-of-{name}.")));
        let is_stranger = visitor.name.is_none();
        let all = [
            (COMMENT_SEEN, has(&pending)),
            (LOCKED_SEEN, text.contains(LOCKED)),
            (PRIVATE_SEEN, request.class == "single" && own("private")),
            (DRAFT_SEEN, request.class == "preview" && own("draft")),
            (EDIT_SEEN, is_stranger && request.class == "single" && text.contains("edit-")),
            (PICTURE_SEEN, is_stranger && request.class == "picture" && text.contains("GIF89a")),
            (CART_SEEN, has(&self.carts)),
            (NONCE_SEEN, request.fields.iter().any(|(name, _)| name == "X-WP-Nonce") && own("private")),
        ];
        all.into_iter().filter(|(_, is_seen)| *is_seen).map(|(sight, _)| sight).collect()
    }

    fn changed(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changed)
    }

    fn withdrawn(&mut self) -> Vec<String> {
        std::mem::take(&mut self.withdrawn)
    }

    fn marks(&self, user: &str) -> Vec<String> {
        // The second one is in the cookies of a session.
        vec![mark(user), format!("{user}%7C")]
    }

    fn secrets(&self) -> Vec<String> {
        let of_users = USERS.iter().flat_map(|user| ["private-of-", "draft-of-"].map(|kind| format!("{kind}{user}.")));
        let pending = (1..=self.comments).map(|number| format!("pending-{number}."));
        of_users.chain(pending).chain(self.carts.iter().cloned()).chain([LOCKED.to_owned()]).collect()
    }

    fn draw(&mut self, dice: &mut Dice, visitor: &mut Visitor) -> Request {
        if dice.below(16) == 0 {
            return self.comment(visitor, dice);
        }
        if dice.below(20) == 0 {
            visitor.knows.insert(LOCKED.to_owned());
            let pairs = [("post_password", "open-sesame"), ("redirect_to", "http://site.test/locked/")];
            return Request::form("password", "/wp-login.php?action=postpass", &pairs);
        }
        if !visitor.has_cookie(SESSION) {
            match dice.below(6) {
                // The cookies of a page's statistics are nobody's secret.
                0 => drop(visitor.cookies.insert("_ga".to_owned(), format!("GA1.{}", dice.below(9)))),
                1..=2 => visitor.forget(),
                _ => {}
            }
        }
        let Some(name) = visitor.name else { return self.page(dice) };
        if !visitor.has_cookie(SESSION) {
            return if dice.below(6) == 0 { WordPress::log_in(name) } else { self.page(dice) };
        }
        let nonce = visitor.kept.get("nonce").cloned();
        match (dice.below(30), nonce) {
            (0..=1, _) => match visitor.kept.remove("logout") {
                Some(link) => Request::get("logout", link),
                None => Request::get("admin", "/wp-admin/profile.php"),
            },
            (2, _) => Request::get("admin", "/wp-admin/edit.php"),
            (3, _) => Request::get("admin", "/wp-admin/edit-comments.php"),
            (4, _) => self.call(name),
            (5, _) => self.application(name, "/wp-json/wp/v2/posts?status=private"),
            (6, _) => self.application(name, "/wp-json/wp/v2/users/me"),
            (7..=13, None) => Request::get("ajax", "/wp-admin/admin-ajax.php?action=rest-nonce"),
            (7..=8, Some(nonce)) => {
                Request::get("REST", "/wp-json/wp/v2/posts?status=private,draft,publish").with("X-WP-Nonce", nonce)
            }
            (9, Some(nonce)) if name == "ann" => self.publish_or_withdraw(dice, &nonce),
            (9..=11, Some(nonce)) => self.edit(dice, name, &nonce),
            (12..=13, Some(nonce)) => self.upload(&nonce),
            (14, _) => Request::get("single", format!("/private-{name}/")),
            (15, _) => Request::get("preview", format!("/?p={}&preview=true", self.id(&format!("draft-{name}")))),
            _ => self.page(dice),
        }
    }

    fn learn(&mut self, visitor: &mut Visitor, request: &Request, answer: &Message) {
        let body = String::from_utf8_lossy(&answer.body);
        if request.target.contains("action=rest-nonce") && answer.second_word() == "200" {
            let nonce: String = body.chars().take_while(char::is_ascii_hexdigit).collect();
            visitor.kept.insert("nonce", nonce);
        }
        if let Some((_, rest)) = body.split_once("/wp-login.php?action=logout")
            && let Some((end, _)) = rest.split_once(['"', '\''])
        {
            visitor.kept.insert(
                "logout",
                format!("/wp-login.php?action=logout{}", end.replace("&amp;", "&").replace("&#038;", "&")),
            );
        }
        let has_nonce = request.fields.iter().any(|(name, _)| name == "X-WP-Nonce");
        if has_nonce && answer.second_word() == "403" {
            // It was another session's.
            visitor.kept.remove("nonce");
        }
        if let Some(cart) = visitor.cookies.get(CART_COOKIE).map(|cart| format!("cart-of-{cart}."))
            && visitor.knows.insert(cart.clone())
        {
            self.carts.push(cart);
        }
        self.learn_changes(visitor, request, answer, &body);
        let location = answer.field("location").and_then(|location| location.strip_prefix("http://site.test"));
        if let Some(target) = location.filter(|target| target.starts_with('/') && visitor.next.is_empty()) {
            let (target, _) = target.split_once('#').unwrap_or((target, ""));
            visitor.next.push(Request::get("redirected", target));
        }
    }
}

impl WordPress {
    /// What an answer to whoever changes something says of it.
    fn learn_changes(&mut self, visitor: &Visitor, request: &Request, answer: &Message, body: &str) {
        let edited = self.edited.take();
        let passing = self.passing_sent.take();
        match (request.class, answer.second_word(), passing) {
            ("publish", "201", Some(passing)) => {
                let id = body.split_once("\"id\":").map(|(_, rest)| rest.chars().take_while(char::is_ascii_digit));
                let id = id.map(|digits| digits.collect()).unwrap_or_default();
                let word = passing.word.clone();
                let shown_at = SHOWN_AT.map(str::to_owned).into_iter().chain([format!("/{}/", passing.name)]);
                self.changed.extend(shown_at.map(|target| Change { target, word: word.clone() }));
                self.passing = Some(Passing { id, ..passing });
            }
            ("withdraw", "200", Some(passing)) => {
                self.passing = None;
                // The latest change of the front page is no more.
                self.changed.extend(SHOWN_AT.map(|target| Change { target: target.to_owned(), word: String::new() }));
                self.withdrawn.push(passing.word);
            }
            _ => {}
        }
        match (request.class, answer.second_word(), edited) {
            ("edit", "200", Some((post, word))) => {
                let targets = SHOWN_AT.map(str::to_owned).into_iter().chain([format!("/{post}/")]);
                self.changed.extend(targets.map(|target| Change { target, word: word.clone() }));
            }
            ("upload", "201", _) => {
                let url = body.split_once("\"source_url\":\"").and_then(|(_, rest)| rest.split_once('"'));
                let url = url.map(|(url, _)| url.replace("\\/", "/"));
                self.pictures.extend(url.and_then(|url| Some(url.strip_prefix("http://site.test")?.to_owned())));
            }
            ("comment", "302", _) if visitor.has_cookie(SESSION) => {
                let said = request.body.as_deref().unwrap_or_default().split('&').next().unwrap_or_default();
                let word = said.trim_start_matches("comment=").to_owned();
                self.changed.push(Change { target: "/one/".to_owned(), word });
            }
            _ => {}
        }
    }
}

/// RFC 4648 §4.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let bits = (0..3).fold(0u32, |bits, at| bits << 8 | u32::from(chunk.get(at).copied().unwrap_or(0)));
        for at in 0..4 {
            let digit = ALPHABET[(bits >> (18 - 6 * at) & 63) as usize];
            out.push(if at <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_everybody() {
        for (text, expect) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(text.as_bytes()), expect);
        }
    }
}
