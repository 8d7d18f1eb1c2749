//! Configurations of nginx that nobody wrote: servers, locations, guards, handlers and rules of rewriting as sites have them, put together
//! at random. They follow from a seed.

use std::collections::BTreeSet;

use crate::dice::Dice;
use crate::import_corpus::directive_text::{Directive, parsed};

/// Of one server. Most bugs need two or three.
const LOCATIONS_MAX: u64 = 6;
const LINES_MAX: u64 = 3;

const PHP: &str = "fastcgi_pass php; fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;";

/// Each of them is a port here.
const LISTENS: [&str; 5] = ["80", "80", "80", "80 default_server", "8080"];
const NAMES: [&str; 5] = ["a.test", "a.test b.test", "*.a.test", ".a.test", "_"];

/// Locations by their beginnings, and by a regex.
const BEGINNINGS: [&str; 16] = [
    "/",
    "/",
    "/",
    "/config",
    "/config/",
    "/data/",
    "/uploads/",
    "/admin",
    "/private/",
    "/b/",
    "/api",
    "/api/",
    "/static/",
    "/wp-admin/",
    "/apps/x/",
    "/sub/",
];
const EXACT: [&str; 7] = ["/", "/index.php", "/a.html", "/b/", "/config", "/robots.txt", "/api"];
const REGEXES: [&str; 14] = [
    r"\.php$",
    r"\.php(/|$)",
    r"^(.+\.php)(/.*)?$",
    r"/\.",
    r"^/\.",
    r"\.(sql|bak|inc|ini|log)$",
    r"\.(css|js|jpg|png|gif)$",
    r"^/(config|data)(/|$)",
    r"^/api/(.*)$",
    r"^/private",
    r"\.html$",
    r"/$",
    r"^/uploads/.*\.php$",
    r"index",
];

const GUARDS: [&str; 15] = [
    "deny all;",
    "allow 127.0.0.1; deny all;",
    "deny 127.0.0.1;",
    "allow 10.0.0.0/8; deny all;",
    "auth_basic x; auth_basic_user_file users;",
    "auth_basic x; auth_basic_user_file users;",
    "auth_basic off;",
    "auth_request /auth;",
    "satisfy any; allow 10.0.0.1; deny all; auth_basic x; auth_basic_user_file users;",
    "internal;",
    "limit_except GET { deny all; }",
    "limit_except GET POST { allow 10.0.0.1; deny all; }",
    "allow all;",
    "auth_request off;",
    "valid_referers none blocked a.test; if ($invalid_referer) { return 403; }",
];

const CONDITIONS: [&str; 23] = [
    "$request_method = POST",
    "$request_method !~ ^(GET|HEAD)$",
    r"$uri ~ \.(php|inc)$",
    "$uri ~ ^/(config|data)",
    "$request_uri ~ private",
    r"$request_uri ~* \.html",
    "$uri !~ ^/api",
    "!-f $request_filename",
    "!-e $request_filename",
    "-f $request_filename",
    "-d $request_filename",
    "$host = a.test",
    "$host != a.test",
    "$http_x_key != k",
    "$http_user_agent ~ bot",
    "$http_user_agent ~* (wget|firefox)",
    "$http_user_agent = ''",
    "$http_x_key = k",
    "$http_x_key",
    "$http_x_key !~ ^k$",
    "$robot",
    "$args ~ page",
    "$blocked",
];

const ACTS: [&str; 10] = [
    "return 403;",
    "return 404;",
    "return 301 /a.html;",
    "return 301 https://$host$request_uri;",
    "return 200 no;",
    "rewrite ^ /index.php last;",
    "rewrite ^(.*)$ /index.php$1 last;",
    "rewrite ^/(.*)$ /config/$1 break;",
    "set $x 1;",
    "break;",
];

const REWRITES: [&str; 9] = [
    "rewrite ^/old/(.*)$ /config/$1 last;",
    "rewrite ^/api/(.*)$ /$1 break;",
    "rewrite ^ /index.php last;",
    r"rewrite ^/(.*)\.html$ /$1.txt permanent;",
    r"rewrite ^(.*)\.php$ $1.inc break;",
    "rewrite ^/uploads/(.*)$ /data/$1;",
    "rewrite ^/x$ /a.html redirect;",
    r"rewrite ^/config/ /denied last;",
    "rewrite ^/(.+)$ /index.php?q=$1 last;",
];

const TRIES: [&str; 15] = [
    "$uri $uri/ =404",
    "$uri =404",
    "$uri =403",
    "$uri $uri/ /index.php?$args",
    "$uri $uri/ /index.php$is_args$args",
    "$uri /index.php",
    "$uri /a.html",
    "$uri $uri/ /b/index.html",
    "$uri @app",
    "$uri $uri/ @php",
    "$uri.html $uri =404",
    "/config$uri =404",
    "$uri $uri/ /data/secret.txt",
    "$uri/index.html $uri =404",
    "/a.html =404",
];

const ORIGINS: [&str; 7] = [
    "proxy_pass http://app;",
    "proxy_pass http://app/;",
    "proxy_pass http://app/x/;",
    "proxy_pass http://app/config;",
    "proxy_pass http://other:8080;",
    "proxy_pass http://app; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;",
    "proxy_pass http://group;",
];

const RETURNS: [&str; 8] = [
    "return 403;",
    "return 404;",
    "return 200 hello;",
    "return 301 /a.html;",
    "return 302 https://b.test$request_uri;",
    "return 444;",
    "return 204;",
    "return 503;",
];

const FILES: [&str; 9] = [
    "root /srv/b;",
    "root /srv/a/sub;",
    "alias /srv/b/;",
    "alias /srv/a/data/;",
    "autoindex on;",
    "index a.html;",
    "index none.html index.php;",
    "index index.php index.html;",
    "disable_symlinks on;",
];

const PLAIN: [&str; 16] = [
    "add_header X-Frame-Options DENY;",
    "expires 1h;",
    "error_page 404 /404.html;",
    "error_page 403 /a.html;",
    "error_page 403 404 = /index.php;",
    "error_page 404 = @app;",
    "error_page 403 =200 /a.html;",
    "error_page 401 = @app;",
    "client_max_body_size 1m;",
    "absolute_redirect off;",
    "proxy_set_header Host $host;",
    "default_type text/html;",
    "types { text/plain php; }",
    "proxy_intercept_errors on;",
    "gzip on;",
    "fastcgi_split_path_info ^(.+\\.php)(/.+)$;",
];

/// What may stand in a block more than once.
const REPEATED: [&str; 9] =
    ["allow", "deny", "if", "rewrite", "error_page", "add_header", "proxy_set_header", "server", "listen"];

/// The one with this number of those of a seed.
pub fn made(seed: u64, number: u64) -> Result<Vec<Directive>, String> {
    let mut making = Making { dice: Dice::of(seed.rotate_left(32) ^ number), out: String::new() };
    making.http();
    let mut all = parsed(&making.out)?;
    leave_doubles(&mut all);
    Ok(all)
}

/// nginx takes no location twice, and of most directives one.
fn leave_doubles(all: &mut Vec<Directive>) {
    let mut known = BTreeSet::new();
    all.retain(|directive| {
        let key = match directive.name() {
            name if REPEATED.contains(&name) => return true,
            "location" => directive.words.iter().filter(|word| *word != "^~").cloned().collect::<Vec<_>>().join(" "),
            "alias" => "root".to_owned(),
            name => name.to_owned(),
        };
        known.insert(key)
    });
    all.iter_mut().filter_map(|directive| directive.block.as_mut()).for_each(leave_doubles);
}

struct Making {
    dice: Dice,
    out: String,
}

impl Making {
    fn one_in(&mut self, count: u64) -> bool {
        self.dice.below(count) == 0
    }

    fn one_of<'w>(&mut self, words: &[&'w str]) -> &'w str {
        words[self.dice.below(words.len() as u64) as usize]
    }

    fn add(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn http(&mut self) {
        self.add("map $request_uri $blocked { default 0; ~*secret 1; }");
        self.add("map $http_user_agent $robot { default 0; ~*firefox 0; ~*(bot|mozilla) 1; '' 1; }");
        self.add("upstream group { server one:1; server two:2 backup; }");
        for _ in 0..=u64::from(self.one_in(3)) {
            self.server();
        }
    }

    fn server(&mut self) {
        self.add("server {");
        for _ in 0..=u64::from(self.one_in(4)) {
            let listen = self.one_of(&LISTENS);
            self.add(&format!("listen {listen};"));
        }
        let names = self.one_of(&NAMES);
        self.add(&format!("server_name {names};"));
        let root = if self.one_in(8) { "/srv/b" } else { "/srv/a" };
        self.add(&format!("root {root};"));
        if self.one_in(2) {
            self.add("index index.php index.html;");
        }
        for _ in 0..self.dice.below(LINES_MAX) {
            self.line_of_server();
        }
        for _ in 0..=self.dice.below(LOCATIONS_MAX) {
            self.location(None);
        }
        if self.one_in(2) {
            self.add(&format!("location ~ \\.php$ {{ {PHP} }}"));
        }
        self.named("@app", "proxy_pass http://app;");
        self.named("@php", PHP);
        self.add("location = /auth { internal; proxy_pass http://auth/; }");
        self.add("}");
    }

    fn named(&mut self, name: &str, handler: &str) {
        let guard = if self.one_in(6) { self.one_of(&GUARDS) } else { "" };
        self.add(&format!("location {name} {{ {guard} {handler} }}"));
    }

    fn line_of_server(&mut self) {
        match self.dice.below(12) {
            0 => self.guard(),
            1..=3 => self.condition(),
            4..=5 => {
                let rewrite = self.one_of(&REWRITES);
                self.add(rewrite);
            }
            6 => self.tries(),
            7 => {
                let files = self.one_of(&FILES).replace("alias", "root");
                self.add(&files);
            }
            _ => {
                let plain = self.one_of(&PLAIN);
                self.add(plain);
            }
        }
    }

    fn guard(&mut self) {
        let guard = self.one_of(&GUARDS);
        self.add(guard);
    }

    fn condition(&mut self) {
        let (condition, act) = (self.one_of(&CONDITIONS), self.one_of(&ACTS));
        self.add(&format!("if ({condition}) {{ {act} }}"));
    }

    fn tries(&mut self) {
        let tries = self.one_of(&TRIES);
        self.add(&format!("try_files {tries};"));
    }

    /// `within`: the path of the location around it, if that has one, or a regex.
    fn location(&mut self, within: Option<&Head>) {
        let head = self.head(within);
        self.add(&format!("location {} {{", head.written()));
        if self.one_in(3) {
            self.guard();
        }
        if self.one_in(6) {
            self.condition();
        }
        if self.one_in(8) {
            let rewrite = self.one_of(&REWRITES);
            self.add(rewrite);
        }
        if self.one_in(4) {
            let plain = self.one_of(&PLAIN);
            self.add(plain);
        }
        self.handler(&head);
        if !matches!(head, Head::Exact(_)) && within.is_none() && self.one_in(4) {
            self.location(Some(&head));
        }
        self.add("}");
    }

    fn head(&mut self, within: Option<&Head>) -> Head {
        let beneath = match within {
            None => String::new(),
            Some(Head::Beginning(path) | Head::BeforeRegexes(path)) => path.trim_end_matches('/').to_owned(),
            Some(Head::Exact(_) | Head::Regex(_)) => return Head::Regex(format!("~ {}", self.one_of(&REGEXES))),
        };
        match self.dice.below(12) {
            0..=4 => Head::Beginning(beneath + self.one_of(&BEGINNINGS)),
            5..=6 => Head::BeforeRegexes(beneath + self.one_of(&BEGINNINGS)),
            7..=8 => Head::Exact(beneath + self.one_of(&EXACT)),
            9 => Head::Regex(format!("~* {}", self.one_of(&REGEXES))),
            _ => Head::Regex(format!("~ {}", self.one_of(&REGEXES))),
        }
    }

    fn handler(&mut self, head: &Head) {
        match self.dice.below(10) {
            0..=1 => {
                let origin = self.one_of(&ORIGINS);
                // Of a regex nobody knows what to put the path of an origin in place of.
                let is_sayable = !matches!(head, Head::Regex(_)) || !origin.contains("app/");
                self.add(if is_sayable { origin } else { ORIGINS[0] });
            }
            2..=3 => {
                if self.one_in(3) {
                    self.add("try_files $uri =404;");
                }
                self.add(PHP);
            }
            4 => {
                let says = self.one_of(&RETURNS);
                self.add(says);
            }
            5..=6 => self.tries(),
            7..=8 => {
                let files = self.one_of(&FILES);
                self.add(files);
            }
            _ => {}
        }
    }
}

/// What a location is for.
enum Head {
    Beginning(String),
    BeforeRegexes(String),
    Exact(String),
    /// With its sign.
    Regex(String),
}

impl Head {
    fn written(&self) -> String {
        match self {
            Head::Beginning(path) => path.clone(),
            Head::BeforeRegexes(path) => format!("^~ {path}"),
            Head::Exact(path) => format!("= {path}"),
            Head::Regex(regex) => regex.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import_corpus::directive_text::write;

    #[test]
    fn a_seed_gives_the_same_configuration_again_and_each_number_another_one() {
        let text = |seed, number| write(&mut made(seed, number).expect("blocks"));
        let texts: Vec<String> = (0..50).map(|number| text(1, number)).collect();
        assert_eq!(text(1, 7), texts[7]);
        assert!(texts[7] != texts[8] && text(2, 7) != texts[7]);
        assert!(texts.iter().all(|text| text.contains("server {\n") && text.contains("location ")));
    }

    #[test]
    fn nothing_stands_twice_where_nginx_takes_one() {
        let mut all =
            parsed("s { root a; alias b; allow a; allow b; location /a { } location ^~ /a { } location = /a { } }")
                .expect("blocks");
        leave_doubles(&mut all);
        let names: Vec<String> = all[0].children().iter().map(|child| child.words.join(" ")).collect();
        assert_eq!(names, ["root a", "allow a", "allow b", "location /a", "location = /a"]);
    }
}
