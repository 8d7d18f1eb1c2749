//! The recipes of docs/recipes.md: each configuration as it stands there, but for where its origins and listeners are, before an origin that
//! shows what it was asked; and the lines that the page counts.

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    use crate::configured_larder::ConfiguredLarder;

    const PATIENCE: Duration = Duration::from_secs(20);
    /// `htpasswd -nbB -C 4 ann secret`.
    const USERS: &str = "ann:$2y$04$5NSSZIpLDFpBBYhR/Sbade1CozX8FF/a1rpjazVCxqeWISC5WrWKC\n";
    const ANN: &str = "Authorization: Basic YW5uOnNlY3JldA==";

    /// One recipe of the page.
    struct Recipe {
        number: usize,
        title: String,
        toml: String,
        caddyfile: Option<String>,
        nginx: Option<String>,
    }

    fn page() -> String {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/recipes.md");
        std::fs::read_to_string(page).expect("the page is part of the repository")
    }

    fn recipes(page: &str) -> Vec<Recipe> {
        let parts = page.split("\n## ").skip(1);
        let recipe = |part: &str| {
            let (heading, text) = part.split_once('\n').expect("a heading");
            let (number, title) = heading.split_once(". ").expect("a number");
            let block = |language: &str| {
                let behind = text.split_once(&format!("```{language}\n"))?.1;
                behind.split_once("```").map(|(block, _)| block.to_owned())
            };
            let toml = block("toml").expect("a configuration");
            let number = number.parse().expect("a number");
            Recipe { number, title: title.to_owned(), toml, caddyfile: block("caddyfile"), nginx: block("nginx") }
        };
        parts.map(recipe).collect()
    }

    /// larder by a recipe.
    struct Kitchen(ConfiguredLarder);

    impl Kitchen {
        fn of(number: usize) -> Kitchen {
            let recipe = recipes(&page()).into_iter().find(|recipe| recipe.number == number).expect("a recipe");
            let folder = folder(number);
            let (app, next) = (origin("app"), origin("next"));
            let text =
                recipe.toml.replace("127.0.0.1:3000", &app.to_string()).replace("127.0.0.1:4000", &next.to_string());
            Kitchen(ConfiguredLarder::start(&folder, "larder", &text))
        }

        /// Status, fields and body.
        fn ask(&self, line: &str, fields: &[&str]) -> Answer {
            let mut stream = TcpStream::connect(self.0.address).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let host = if fields.iter().any(|field| field.starts_with("Host:")) { "" } else { "Host: example.org\r\n" };
            let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
            let text = format!("{line} HTTP/1.1\r\n{host}{fields}Connection: close\r\n\r\n");
            stream.write_all(text.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
            Answer { head: head.to_owned(), body: body.to_owned() }
        }

        fn get(&self, path: &str, fields: &[&str]) -> Answer {
            self.ask(&format!("GET {path}"), fields)
        }
    }

    struct Answer {
        head: String,
        body: String,
    }

    impl Answer {
        fn status(&self) -> u16 {
            self.head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
        }

        fn field(&self, name: &str) -> Option<&str> {
            let lines = self.head.lines().filter_map(|line| line.split_once(": "));
            lines.filter(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
        }

        fn is_hit(&self) -> bool {
            self.field("cache-status").is_some_and(|status| status.contains("; hit"))
        }
    }

    fn folder(number: usize) -> PathBuf {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("recipe-{number}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder); // it may not be there
        std::fs::create_dir_all(folder.join("site/pictures")).unwrap();
        std::fs::write(folder.join("site/index.html"), "the application").unwrap();
        std::fs::write(folder.join("site/app-4f9a2b1c.js"), "app()").unwrap();
        std::fs::write(folder.join("site/pictures/a.txt"), "a picture").unwrap();
        std::fs::write(folder.join("users"), USERS).unwrap();
        folder
    }

    /// An origin that says its name, what it was asked for, how often it was asked before, and what cookies it saw; it never says how long
    /// that holds, and forbids every cache where the path says so.
    fn origin(name: &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let mut number = 0;
            for stream in listener.incoming().flatten() {
                number += 1;
                let _ = answer(stream, name, number);
            }
        });
        address
    }

    fn answer(stream: TcpStream, name: &str, number: u32) -> std::io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let (mut line, mut head) = (String::new(), String::new());
        while reader.read_line(&mut line)? > 2 {
            head.push_str(&line);
            line.clear();
        }
        let target = head.split(' ').nth(1).unwrap_or_default();
        let seen = |field: &str| head.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default().trim();
        let body = format!("{name} {target} no. {number} cookie={} device={}", seen("Cookie:"), seen("X-Device:"));
        let forbids =
            if target.contains("catalogue") { "Cache-Control: private, no-store\r\nSet-Cookie: id=7\r\n" } else { "" };
        let status = if target.contains("absent") { "404 Not Found" } else { "200 OK" };
        let length = body.len();
        let talks = "Server: Apache/2.4\r\nX-Powered-By: PHP/8\r\nContent-Type: text/html\r\n";
        let text =
            format!("HTTP/1.1 {status}\r\n{talks}{forbids}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}");
        (&stream).write_all(text.as_bytes())
    }

    #[test]
    fn the_page_counts_its_lines_right() {
        let page = page();
        let recipes = recipes(&page);
        assert_eq!(recipes.iter().map(|recipe| recipe.number).collect::<Vec<_>>(), (1..=16).collect::<Vec<_>>());
        let lines = |text: &str| text.lines().filter(|line| !line.trim().is_empty()).count().to_string();
        for recipe in recipes {
            let row = page.lines().find(|line| line.starts_with(&format!("| {} |", recipe.number))).expect("a row");
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            assert!(cells[2].starts_with(&format!("[{}]", recipe.title)), "{row}");
            assert_eq!(cells[3], lines(&recipe.toml), "larder.toml of {}", recipe.number);
            for (cell, text) in [(cells[4], &recipe.caddyfile), (cells[5], &recipe.nginx)] {
                match text {
                    Some(text) => assert_eq!(cell, lines(text), "of {}", recipe.number),
                    None => assert!(cell.parse::<u32>().is_err(), "{row} counts what is not there"),
                }
            }
        }
    }

    #[test]
    fn recipe_1_pages_that_say_nothing_are_stored() {
        let kitchen = Kitchen::of(1);
        assert!(!kitchen.get("/a?utm_source=x", &["Cookie: _ga=1"]).is_hit());
        let hit = kitchen.get("/a", &[]);
        assert_eq!((hit.is_hit(), &*hit.body), (true, "app /a no. 1 cookie= device="));
        assert!(!kitchen.get("/a", &["Cookie: own=1"]).is_hit());
    }

    #[test]
    fn recipe_2_who_is_logged_in_sees_what_is_theirs() {
        let kitchen = Kitchen::of(2);
        let ann = kitchen.get("/", &["Cookie: sessionid=ann; a=1"]);
        assert!(ann.body.contains("cookie=sessionid=ann; a=1"), "{}", ann.body);
        assert!(kitchen.get("/", &["Cookie: a=1"]).body.contains("no. 2 cookie= "));
        assert!(kitchen.get("/", &["Cookie: a=2"]).is_hit());
        assert!(!kitchen.get("/", &["Cookie: sessionid=ann"]).is_hit());
        let account = [kitchen.get("/account/x", &[]), kitchen.get("/account/x", &[])];
        assert!(account.iter().all(|answer| !answer.is_hit()));
    }

    #[test]
    fn recipe_3_only_what_is_asked_for_counts() {
        let kitchen = Kitchen::of(3);
        assert!(kitchen.get("/search?q=a&utm_source=x&page=2&debug=1", &[]).body.contains(" /search?page=2&q=a "));
        assert!(kitchen.get("/search?page=2&q=a&y=1", &[]).is_hit());
        assert!(kitchen.get("/other?y=1", &[]).body.contains(" /other?y=1 "), "all else goes on to the application");
    }

    #[test]
    fn every_recipe_answers_everything() {
        for recipe in recipes(&page()) {
            let file = folder(100 + recipe.number).join("larder.toml");
            std::fs::write(&file, &recipe.toml).unwrap();
            let output = std::process::Command::new(env!("CARGO_BIN_EXE_larder"));
            let output = { output }.args(["check", "--file-only"]).arg(&file).output().expect("larder can be started");
            let said = String::from_utf8_lossy(&[output.stderr, output.stdout].concat()).into_owned();
            assert!(output.status.success() && !said.contains("note:"), "recipe {}: {said}", recipe.number);
        }
    }

    #[test]
    fn recipe_4_old_addresses_lead_to_new_ones() {
        let kitchen = Kitchen::of(4);
        let www = kitchen.get("/x?y=z", &["Host: www.example.org"]);
        assert_eq!((www.status(), www.field("location")), (301, Some("https://example.org/x?y=z")));
        let old = kitchen.get("/blog/2024/hello-world.html", &[]);
        assert_eq!((old.status(), old.field("location")), (308, Some("/posts/2024-hello-world")));
        assert_eq!(kitchen.get("/posts/2024-hello-world", &[]).status(), 200);
    }

    #[test]
    fn recipe_5_an_application_in_the_browser() {
        let kitchen = Kitchen::of(5);
        let start = kitchen.get("/any/where", &[]);
        assert_eq!(
            (start.status(), &*start.body, start.field("cache-control")),
            (200, "the application", Some("no-cache"))
        );
        assert_eq!(start.field("x-content-type-options"), Some("nosniff"));
        let hashed = kitchen.get("/app-4f9a2b1c.js", &[]);
        assert_eq!(
            (&*hashed.body, hashed.field("cache-control")),
            ("app()", Some("public, max-age=31536000, immutable"))
        );
        // Of another release: whoever keeps the page in the name of the script has a broken application for a year.
        let gone = kitchen.get("/app-00000000.js", &[]);
        assert_eq!((gone.status(), gone.field("cache-control")), (404, Some("no-store")));
    }

    #[test]
    fn recipe_6_services_by_path() {
        let kitchen = Kitchen::of(6);
        assert!(kitchen.get("/api/v1/x?a=b", &[]).body.starts_with("next /v1/x?a=b "));
        assert!(kitchen.get("/apix", &[]).body.starts_with("app /apix "));
        assert_eq!(kitchen.get("/pictures/a.txt", &[]).body, "a picture");
    }

    #[test]
    fn recipe_7_a_password() {
        let kitchen = Kitchen::of(7);
        let asks = kitchen.get("/", &[]);
        assert_eq!(asks.status(), 401);
        assert_eq!(asks.field("www-authenticate"), Some("Basic realm=\"test site\", charset=\"UTF-8\""));
        assert_eq!(
            [kitchen.get("/", &[ANN]).status(), kitchen.get("/", &["Authorization: Basic eDp4"]).status()],
            [200, 401]
        );
    }

    #[test]
    fn recipe_8_the_office_alone() {
        let kitchen = Kitchen::of(8);
        for path in ["/admin", "/admin/x", "/%61dmin", "//admin", "/x/../admin"] {
            assert_eq!(kitchen.get(path, &[]).status(), 403, "{path}");
        }
        assert_eq!(kitchen.get("/", &[]).status(), 200);
    }

    #[test]
    fn recipe_9_no_more_than_so_often() {
        let kitchen = Kitchen::of(9);
        let statuses: Vec<u16> = (0..7).map(|_| kitchen.ask("POST /login", &["Content-Length: 0"]).status()).collect();
        assert_eq!(statuses, [200, 200, 200, 200, 200, 429, 429]);
        assert!(kitchen.ask("POST /login", &["Content-Length: 0"]).field("retry-after").is_some());
        assert_eq!(kitchen.get("/login", &[]).status(), 200);
    }

    #[test]
    fn recipe_10_fields_for_safety() {
        let kitchen = Kitchen::of(10);
        let answer = kitchen.get("/", &[]);
        for name in ["server", "x-powered-by", "via", "cache-status"] {
            assert_eq!(answer.field(name), None, "{name}");
        }
        let said = ["x-content-type-options", "x-frame-options", "permissions-policy"].map(|name| answer.field(name));
        assert_eq!(said, [Some("nosniff"), Some("SAMEORIGIN"), Some("geolocation=()")]);
    }

    #[test]
    fn recipe_11_scripts_of_other_sites() {
        let kitchen = Kitchen::of(11);
        let asks = ["Origin: https://app.example", "Access-Control-Request-Method: PUT"];
        let preflight = kitchen.ask("OPTIONS /x", &asks);
        assert_eq!(
            (preflight.status(), preflight.field("access-control-allow-origin")),
            (204, Some("https://app.example"))
        );
        assert_eq!(preflight.field("access-control-allow-headers"), Some("Authorization, Content-Type"));
        let other = kitchen.get("/x", &["Origin: https://evil.example"]);
        assert_eq!((other.field("access-control-allow-origin"), other.field("vary")), (None, Some("Origin")));
        assert_eq!(other.field("x-request-id").map(str::len), Some(16));
    }

    #[test]
    fn recipe_12_closed_for_repairs() {
        let answer = Kitchen::of(12).get("/", &[]);
        assert_eq!(
            (answer.status(), answer.field("retry-after"), &*answer.body),
            (503, Some("3600"), "Back at noon.\n")
        );
    }

    #[test]
    fn recipe_13_telephones_and_languages() {
        let kitchen = Kitchen::of(13);
        let phone = "User-Agent: Mozilla/5.0 (iPhone) Mobile/15E148";
        assert!(kitchen.get("/", &[phone, "Cookie: lang=de; x=1"]).body.contains("cookie=lang=de device=mobile"));
        assert!(kitchen.get("/", &[phone, "Cookie: x=2; lang=de"]).is_hit());
        assert!(!kitchen.get("/", &["Cookie: lang=de"]).is_hit());
        let english = kitchen.get("/", &[phone, "Cookie: lang=en"]);
        assert!(!english.is_hit() && english.body.contains("cookie=lang=en"));
    }

    #[test]
    fn recipe_14_wordpress() {
        let kitchen = Kitchen::of(14);
        assert!(!kitchen.get("/2026/hello/", &["Cookie: wp-settings-1=x"]).is_hit());
        assert!(kitchen.get("/2026/hello/", &[]).is_hit());
        let user = "Cookie: wordpress_logged_in_0f=ann";
        for path in ["/2026/hello/", "/wp-admin/", "/wp-login.php"] {
            let answers = [kitchen.get(path, &[user]), kitchen.get(path, &[user])];
            assert!(
                answers
                    .iter()
                    .all(|answer| !answer.is_hit() && answer.body.contains(user.trim_start_matches("Cookie: "))),
                "{path}"
            );
        }
        for path in [
            "/wp-json/x",
            "/?rest_route=/x",
            "/blog/wp-json/x",
            "/index.php/wp-json/x",
            "/blog/wp-admin/",
            "/2026/hello/?unapproved=3&moderation-hash=0f",
        ] {
            let answers = [kitchen.get(path, &[]), kitchen.get(path, &[])];
            assert!(answers.iter().all(|answer| !answer.is_hit()), "{path}");
        }
        assert!(kitchen.get("/2026/hello/", &[]).is_hit());
        assert!(!kitchen.get("/wp-content/a.css?ver=1", &[user]).is_hit());
        assert!(kitchen.get("/wp-content/a.css?ver=1", &["Cookie: x=1"]).is_hit());
    }

    #[test]
    fn recipe_15_whatever_the_origin_says() {
        let kitchen = Kitchen::of(15);
        assert_eq!(kitchen.get("/catalogue/1", &["Cookie: none=1"]).status(), 200);
        assert_eq!(kitchen.get("/catalogue/1", &[]).field("set-cookie"), Some("id=7"));
        let hit = kitchen.get("/catalogue/1", &[]);
        assert_eq!((hit.is_hit(), hit.field("set-cookie")), (true, None));
        assert_eq!(kitchen.get("/catalogue/absent", &[]).status(), 404);
        assert!(kitchen.get("/catalogue/absent", &[]).is_hit());
        assert!([kitchen.get("/", &[]), kitchen.get("/", &[])].iter().all(|answer| !answer.is_hit()));
    }

    #[test]
    fn recipe_16_a_part_of_the_visitors() {
        let kitchen = Kitchen::of(16);
        assert!(kitchen.get("/x", &[]).body.starts_with("app /x"));
        assert!(kitchen.get("/x", &["X-Beta: 1"]).body.starts_with("next /x"));
    }
}
