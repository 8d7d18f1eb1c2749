//! WordPress from Debian's package: an administrator and an author with private posts and drafts, a post behind a password,
//! comments that wait for somebody to look at them, and what visitors do there.

use std::collections::BTreeMap;

use crate::dice::Dice;
use crate::plain_exchange::Message;
use crate::sites::php_site::{self, PhpSite};
use crate::sites::private_judge::{Site, mark};
use crate::sites::visitor::{Request, Visitor};

const PACKAGE: &str = "/usr/share/wordpress";
/// What the package has none of by itself.
const THEME: &str = "/usr/share/wordpress/wp-content/themes/twentytwentyone";
const USERS: [&str; 2] = ["ann", "ben"];
const SESSION: &str = "wordpress_logged_in";
const LOCKED: &str = "behind-the-password.";
const LOCATIONS: &str = "location / { try_files $uri $uri/ /index.php?$args; }\n\
    location ~* \\.(?:css|js|png|svg)$ { expires 1d; }";

pub struct WordPress {
    /// Of posts by name, and the passwords of applications.
    told: BTreeMap<String, String>,
    comments: u64,
}

/// Installs it in a folder, starts it, and says what the judge must know.
pub fn set_up() -> Result<(PhpSite, WordPress), String> {
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
    site.processes.write("docs/wp-content/mu-plugins/marks.php", include_str!("../../sites/wordpress/marks.php"))?;
    site.serve(LOCATIONS)?;
    Ok((site, WordPress { told, comments: 0 }))
}

/// From now on pages for whoever has no session say that they are fresh for a while, as plugins make them.
pub fn say_how_long(site: &PhpSite) -> Result<(), String> {
    let text = include_str!("../../sites/wordpress/cache_headers.php");
    site.processes.write("docs/wp-content/mu-plugins/cache_headers.php", text).map(|_| ())
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

    fn comment(&mut self, visitor: &mut Visitor) -> Request {
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
            ("wp-comment-cookies-consent", "yes"),
            ("comment_post_ID", self.id("one")),
            ("comment_parent", "0"),
        ];
        Request::form("comment", "/wp-comments-post.php", &pairs)
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
        let request = Request::form("xmlrpc", "/xmlrpc.php", &[]).with_password();
        let fields = vec![("Content-Type".to_owned(), "text/xml".to_owned())];
        Request { body: Some(body), fields, ..request }
    }

    /// What an application asks for with a password of its own.
    fn application(&self, name: &str, target: &str) -> Request {
        let pair = format!("{name}:{}", self.id(&format!("password-{name}")));
        Request::get("REST", target).with("Authorization", format!("Basic {}", base64(pair.as_bytes()))).with_password()
    }

    /// What anybody may ask for.
    fn page(&self, dice: &mut Dice) -> Request {
        let names = ["one", "two", "three", "four", "private-ann", "private-ben", "locked"];
        let name = names[dice.below(names.len() as u64) as usize];
        let drafts = ["draft-ann", "draft-ben", "private-ann", "private-ben"];
        let hidden = self.id(drafts[dice.below(4) as usize]);
        let rest = |path: &str| Request::get("REST", format!("/wp-json/wp/v2/{path}"));
        match dice.below(28) {
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

    fn marks(&self, user: &str) -> Vec<String> {
        // The second one is in the cookies of a session.
        vec![mark(user), format!("{user}%7C")]
    }

    fn secrets(&self) -> Vec<String> {
        let of_users = USERS.iter().flat_map(|user| ["private-of-", "draft-of-"].map(|kind| format!("{kind}{user}.")));
        let pending = (1..=self.comments).map(|number| format!("pending-{number}."));
        of_users.chain(pending).chain([LOCKED.to_owned()]).collect()
    }

    fn draw(&mut self, dice: &mut Dice, visitor: &mut Visitor) -> Request {
        if dice.below(16) == 0 {
            return self.comment(visitor);
        }
        if dice.below(20) == 0 {
            visitor.knows.insert(LOCKED.to_owned());
            let pairs = [("post_password", "open-sesame"), ("redirect_to", "http://site.test/locked/")];
            return Request::form("password", "/wp-login.php?action=postpass", &pairs);
        }
        let Some(name) = visitor.name else {
            // The cookies of a page's statistics are nobody's secret.
            match dice.below(6) {
                0 => drop(visitor.cookies.insert("_ga".to_owned(), format!("GA1.{}", dice.below(9)))),
                1 => visitor.cookies.clear(),
                _ => {}
            }
            return self.page(dice);
        };
        if !visitor.has_cookie(SESSION) && dice.below(2) == 0 {
            return WordPress::log_in(name);
        }
        match dice.below(24) {
            0 => match visitor.kept.remove("logout") {
                Some(link) => Request::get("logout", link),
                None => Request::get("admin", "/wp-admin/profile.php"),
            },
            1 => Request::get("admin", "/wp-admin/edit.php"),
            2 => Request::get("admin", "/wp-admin/edit-comments.php"),
            3 => self.call(name),
            4 => self.application(name, "/wp-json/wp/v2/posts?status=private"),
            5 => self.application(name, "/wp-json/wp/v2/users/me"),
            6..=8 => match visitor.kept.get("nonce").cloned() {
                Some(nonce) => {
                    Request::get("REST", "/wp-json/wp/v2/posts?status=private,draft,publish").with("X-WP-Nonce", nonce)
                }
                None => Request::get("ajax", "/wp-admin/admin-ajax.php?action=rest-nonce"),
            },
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
            visitor.kept.insert("logout", format!("/wp-login.php?action=logout{}", end.replace("&amp;", "&")));
        }
        let location = answer.field("location").and_then(|location| location.strip_prefix("http://site.test"));
        if let Some(target) = location.filter(|target| target.starts_with('/') && visitor.next.is_empty()) {
            let (target, _) = target.split_once('#').unwrap_or((target, ""));
            visitor.next.push(Request::get("redirected", target));
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
