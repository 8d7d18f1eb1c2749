//! One mistake, one message, at the line where it was made: each line of the sample is spoilt in each of the ways in which people
//! spoil lines. And what is said to somebody who knows another program.

use super::super::{Complaint, FaultyFile, read, sample as sample_text};
use super::check;

/// The sample with its defaults and what its sections cannot do without, but for those that need files.
fn whole() -> String {
    let mut out = String::new();
    let mut is_left_out = false;
    for line in sample_text().lines().filter(|line| !line.is_empty() && !line.starts_with("# ") && *line != "#") {
        let line = line.strip_prefix('#').unwrap_or(line);
        if line.starts_with('[') {
            is_left_out = matches!(line, "[listen.tls]" | "[acme]");
        }
        // An example that tells two routes apart.
        let is_example = line.ends_with("# example")
            && !["host = [", "path = ", "origin = "].iter().any(|key| line.starts_with(key));
        if !is_left_out && !is_example {
            let text = line.trim_end_matches("# example").trim_end_matches("# required").trim_end();
            out.push_str(&format!("{text}\n"));
        }
    }
    // Without a VCL these change nothing, and a relative path is as good as another.
    out
}

/// In which ways a line is spoilt.
fn spoilt(line: &str) -> Vec<(&'static str, String)> {
    if line.starts_with('[') {
        return spoilt_header(line);
    }
    let (key, value) = line.split_once(" = ").expect("a setting has a value");
    let mut all = vec![
        ("key misspelt", format!("{} = {value}", misspelt(key))),
        ("no equals sign", format!("{key} {value}")),
        ("no value", format!("{key} =")),
        ("another type", format!("{key} = 1979-05-27")),
        ("said twice", format!("{line}\n{line}")),
        ("as in nginx", format!("{key} {};", value.replace('"', ""))),
        ("something behind it", format!("{line} x")),
    ];
    if let Some(open) = value.strip_suffix('"') {
        all.push(("quote open", format!("{key} = {open}")));
    }
    if let Some(open) = value.strip_suffix(']') {
        all.push(("bracket open", format!("{key} = {open}")));
    }
    all
}

fn spoilt_header(line: &str) -> Vec<(&'static str, String)> {
    let name = line.trim_matches(['[', ']']);
    let (first, rest) = name.split_once('.').map_or((name, String::new()), |(first, rest)| (first, format!(".{rest}")));
    let (open, close) = if line.starts_with("[[") { ("[[", "]]") } else { ("[", "]") };
    let other = if open == "[" { format!("[[{name}]]") } else { format!("[{name}]") };
    let plural = if first.ends_with('s') { first.trim_end_matches('s').to_owned() } else { format!("{first}s") };
    vec![
        ("section misspelt", format!("{open}{}{rest}{close}", misspelt(first))),
        ("singular and plural", format!("{open}{plural}{rest}{close}")),
        ("bracket of a header open", line[..line.len() - 1].to_owned()),
        ("one bracket for two", other),
    ]
}

/// Two letters have changed their places.
fn misspelt(word: &str) -> String {
    let letters: Vec<char> = word.chars().collect();
    let at = (1..letters.len()).find(|&at| letters[at] != letters[at - 1] && letters[at].is_alphabetic());
    let Some(at) = at.filter(|_| letters.len() > 3) else { return format!("{word}x") };
    let mut letters = letters;
    letters.swap(at - 1, at);
    letters.into_iter().collect()
}

#[test]
fn one_mistake_is_one_message_at_its_line() {
    let whole = whole();
    if let Err(complaints) = read(&whole) {
        panic!("{}", FaultyFile { name: "whole".to_owned(), text: whole, complaints }.draw(false));
    }
    let lines: Vec<&str> = whole.lines().collect();
    let (mut tried, mut wrong) = (0, Vec::new());
    for (at, line) in lines.iter().enumerate() {
        for (how, instead) in spoilt(line) {
            let text: String = lines[..at]
                .iter()
                .chain([&instead.as_str()])
                .chain(&lines[at + 1..])
                .map(|line| format!("{line}\n"))
                .collect();
            tried += 1;
            let complaints = read(&text).err().unwrap_or_default();
            let found: Vec<usize> =
                complaints.iter().map(|complaint| text[..complaint.span.start].matches('\n').count()).collect();
            let place = at + usize::from(how == "said twice");
            if found != [place] && !(how == "said twice" && found == [at]) {
                let drawn = FaultyFile { name: "x".to_owned(), text, complaints }.draw(false);
                wrong.push(format!("{how}: line {}: {instead}\n{drawn}", at + 1));
            }
        }
    }
    let count = wrong.len();
    wrong.truncate(12);
    assert!(wrong.is_empty(), "{count} of {tried}:\n{}", wrong.join("\n"));
    assert!(tried > 1_000, "{tried}");
}

pub(super) fn says(text: &str, expect: &str) {
    let complaints = read(text).err().unwrap_or_default();
    assert_eq!(complaints.len(), 1, "{text}: {complaints:?}");
    let drawn = FaultyFile { name: "larder.toml".to_owned(), text: text.to_owned(), complaints }.draw(false);
    assert!(drawn.contains(expect), "{text} says\n{drawn}and not {expect}");
}

#[test]
fn who_answers_a_route_may_be_named_by_what_is_there() {
    const TWO: &str = "[origin.a]\nurls = \"http://a\"\n[origin.b]\nurls = \"http://b\"\n[[route]]\npath = \"/\"\n";
    says(TWO, "write origin = \"a\" or \"b\", root = \"DIR\"");
    let php = "[origin.php]\nurls = \"unix:/run/php.sock\"\n[[route]]\nroot = \"/srv\"\norigin = \"php\"\n";
    says(php, "fastcgi in place of urls in [origin.php]");
}

#[test]
fn a_path_with_a_star_is_met_with_what_was_meant() {
    let path = |path: &str| format!("[origin.web]\nurls = \"http://a\"\n[[route]]\npath = \"{path}\"\n");
    says(&path("/wp-admin/*"), "write \"/wp-admin\", or path_pattern = '^/wp-admin'");
    says(&path("/a*/b"), "write \"/a\", or path_pattern = '^/a'");
    says(&path("/*"), "write \"/\", or leave path out");
    says(&path("*.php"), "write path_pattern = '[.]php$' for names that end so");
}

#[test]
fn a_key_of_another_section_is_shown_the_way_home() {
    const ROUTE: &str = "[origin.web]\nurls = \"http://a\"\n[[route]]\norigin = \"web\"\n";
    says("urls = \"http://a\"\n", "`urls` belongs in [origin.NAME]");
    says("root = \"/srv\"\n", "`root` belongs in [[route]]");
    says("ttl = \"5m\"\n", "`ttl` belongs in [[route]], or for all routes in [policy]");
    says("origin = \"http://a\"\n", "write [origin.site] on a line of its own, and below it urls = [\"http://a\"]");
    says("listen = \"*:80\"\n", "write [[listen]] on a line of its own, and below it address = \"*:80\"");
    says("[memory]\nsize = \"1G\"\nnothing = 1\n", "the keys here are size, eviction\n");
    says("[policy]\nobject_bytes_max = \"1G\"\n", "`object_bytes_max` belongs in [limits]");
    says("[memory]\nworkers = 2\n", "`workers` belongs above all sections");
    says("cert = \"a.pem\"\n", "`cert` belongs in [listen.tls] or [origin.NAME.tls]");
    says("[tls]\ncert = \"a.pem\"\n", "write [listen.tls] below its [[listen]]");
    says("[limits.memory]\nsize = \"1G\"\n", "[memory] is a section of its own");
    says("[parent]\naddress = \"a:1\"\n", "write [[forward.parent]]");
    says(&format!("{ROUTE}queue_max = 3\n"), "`queue_max` belongs in [origin.NAME]");
    says("[[memory]]\nsize = \"1G\"\n", "write [memory] with one bracket");
    says("[route]\nroot = \"/srv\"\n", "write [[route]] with two brackets");
    says("[[route]]\nroot = \"/srv\"\n[route]\nroot = \"/b\"\n", "write [[route]] with two brackets");
    says("[limits]\nidle-timeout = \"1s\"\n", "did you mean `idle_timeout`?");
    says("[origins.web]\nurls = \"http://a\"\n", "did you mean `origin`?");
}

/// A word whose place is not where its name stands elsewhere, or that larder calls otherwise.
#[test]
fn a_word_leads_to_the_key_that_is_meant() {
    let route = |line: &str| format!("[origin.web]\nurls = \"http://a\"\n[[route]]\norigin = \"web\"\n{line}\n");
    for (text, expect) in [
        (route("host = \"a.test, b.test\""), "write host = [\"a.test\", \"b.test\"]"),
        (route("host = \"a.test b.test\""), "write host = [\"a.test\", \"b.test\"]"),
        ("grace = \"1m\"\n".to_owned(), "write stale_while_revalidate = \"1m\" in [[route]], or for all"),
        (route("grace = \"1m\""), "write stale_while_revalidate = \"1m\" in [[route]]"),
        ("max_body = \"1m\"\n".to_owned(), "write request_body_max = \"10MiB\" in [[route]]"),
        ("connect_timeout = \"5s\"\n".to_owned(), "write timeouts = { connect = \"5s\" } in [origin.NAME]"),
        (route("connect_timeout = \"5s\""), "write timeouts = { connect = \"5s\" } in [origin.NAME]"),
        ("max_connections = 5\n".to_owned(), "write max_connections = 100 in [origin.NAME]"),
        (route("max_connections = 5"), "write max_connections = 100 in [origin.NAME]"),
        ("[limits]\nmax_connections = 5\n".to_owned(), "write max_connections = 100 in [origin.NAME]"),
        ("[cache]\nttl = \"5m\"\n".to_owned(), "ttl = \"5m\" in [[route]], or for all routes in [policy]"),
        (
            "[cookies]\nbypass = [\"a\"]\n".to_owned(),
            "write cookies = { keep = [], bypass = [\"sessionid\"] } in [[route]]",
        ),
        (route("ttl = 1h"), "write ttl = \"1h\""),
        (route("root = /srv/www # all of it"), "write root = \"/srv/www\""),
        ("[[listen]]\naddress = 127.0.0.1:80\n".to_owned(), "write address = \"127.0.0.1:80\""),
        (route("cache = False"), "write cache = false, in small letters"),
        (route("host = [a.test]"), "write \"a.test\""),
        ("[[route]]\nredirect = \"https://a$uri_request\"\n".to_owned(), "did you mean $request_uri?"),
    ] {
        says(&text, expect);
    }
    // And what is advised is taken.
    leads(
        "grace = \"1m\"\n",
        "stale_while_revalidate",
        "[policy]\nstale_while_revalidate = \"1m\"\nstale_if_error = \"1d\"\n",
    );
    leads(
        "max_body = \"1m\"\n",
        "request_body_max",
        "[limits]\nobject_bytes_max = \"256MiB\"\n[policy]\nrequest_body_max = \"10MiB\"\n",
    );
    leads(
        "max_connections = 5\n",
        "connections_max = 10000",
        "[limits]\nconnections_max = 10000\nconnect_timeout = \"5s\"\n",
    );
    let origin = "[origin.b]\nurls = \"http://b\"\nmax_connections = 100\ntimeouts = { connect = \"5s\" }\n[[route]]\norigin = \"b\"\n";
    leads("connect_timeout = 5\n", "connect = \"5s\"", &format!("{origin}timeouts = {{ connect = \"5s\" }}\n"));
    leads("[cookies]\n", "bypass", "[policy]\ncookies = { keep = [], bypass = [\"sessionid\"] }\n");
    leads("[cache]\n", "size = \"1GiB\"", "[memory]\nsize = \"1GiB\"\n");
}

#[test]
fn words_of_other_programs_are_known() {
    says("listen 80;\n", "write [[listen]] with address = \"*:80\"");
    says("[[route]]\nproxy_pass http://127.0.0.1:3000;\n", "origin = \"NAME\" in [[route]]");
    says("proxy_pass = \"http://127.0.0.1:3000\"\n", "that is a word of nginx");
    says("backend default { .host = \"127.0.0.1\"; }\n", "`backend` is a word of VCL");
    says("[backend]\nhost = \"127.0.0.1\"\n", "write [origin.NAME] with urls");
    says("http_port 3128\n", "mode = \"forward\"");
    says("cache_dir ufs /var/spool/squid 100 16 256\n", "write [[disk]]");
    says("reverse_proxy localhost:3000\n", "`reverse_proxy` is a word of Caddy");
    says("[memory]\nmalloc = \"1G\"\n", "that is a word of Varnish");
    says("vcl 4.1;\n", "VCL stands in a file of its own");
    says("server_name a.test;\n", "write host = [\"NAME\"] in [[route]]");
}

/// What is wrong, what is said of it, and what somebody has then who did literally that.
pub(super) fn leads(wrong: &str, hint: &str, followed: &str) {
    const SITE: &str = "[origin.a]\nurls = \"http://127.0.0.1:3000\"\n";
    let complaints = read(&format!("{wrong}{SITE}")).expect_err(wrong);
    let said =
        |complaint: &Complaint| format!("{}; {}", complaint.label, complaint.suggestion.as_deref().unwrap_or(""));
    let all: Vec<String> = complaints.iter().map(said).collect();
    assert!(all.len() == 1 && all[0].contains(hint), "{wrong}: {all:?}");
    let left = read(&format!("{followed}{SITE}")).err().unwrap_or_default();
    assert!(left.is_empty(), "{followed}: {:?}", left.iter().map(said).collect::<Vec<_>>());
}

#[test]
fn what_is_said_leads_out_of_the_mistake() {
    let listen = |line: &str| format!("[[listen]]\n{line}\n");
    let route = |line: &str| format!("[[route]]\norigin = \"a\"\n{line}\n");
    let alone = |line: &str| format!("[[route]]\n{line}\n");
    let ports = "write \"127.0.0.1:8080\" for this machine only, \"*:8080\" for all";
    leads(&listen("address = 8080"), ports, &listen("address = \"*:8080\""));
    leads("listen = 8080\n", "and below it address = \"127.0.0.1:8080\"", &listen("address = \"127.0.0.1:8080\""));
    leads("[admin]\naddress = 8080\n", ports, "[admin]\naddress = \"127.0.0.1:8080\"\n");
    let tls = "address = \"*:443\"\ntls = { acme = [\"a.test\"] }\n[acme]\nterms_agreed = true";
    leads(&listen("address = \"*:443\"\ntls = true"), "tls = { acme = [\"NAME\"] } and a section [acme]", &listen(tls));
    let to = "redirect = { to = \"https://www.example.org$request_uri\", status = 302 }";
    leads(&alone("redirect = 302"), to, &alone(to));
    leads(&alone("respond = 404"), "write respond = { status = 404 }", &alone("respond = { status = 404 }"));
    let body = "maintenance = { body = \"Back at noon.\", type = \"text/plain\", retry_after = \"1h\", allow = [\"192.0.2.0/24\"] }";
    leads(&route("maintenance = \"soon\""), body, &route(body));
    let hosts = "host = [\"a.test\", \"b.test\"]";
    leads(&route("server_name = \"a.test\""), "write host = [\"NAME\"] in [[route]]", &route(hosts));
    leads("server_name = \"a.test b.test\"\n", "host = [\"NAME\"] of its [[route]]", &route(hosts));
    leads("server_name = [\"a.test\", \"b.test\"]\n", "host = [\"NAME\"] of its [[route]]", &route(hosts));
    let set = "request_headers = { set = { X-Site = \"VALUE\" } }";
    leads(&route("request_headers = { X-Site = \"VALUE\" }"), set, &route(set));
    leads(
        "memory = \"512MiB\"\n",
        "write [memory] on a line of its own, and below it size = \"512MiB\"",
        "[memory]\nsize = \"512MiB\"\n",
    );
    leads(
        "log = \"/var/log/a\"\n",
        "write [log] on a line of its own, and below it path = ",
        "[log]\npath = \"/var/log/a\"\n",
    );
}

#[test]
fn an_origin_that_is_said_shortly_is_written_out() {
    let origin = |urls: &str| format!("[origin.b]\nurls = {urls}\n[[route]]\norigin = \"a\"\n");
    let url = "http://127.0.0.1:3000";
    leads(&origin("3000"), &format!("write \"{url}\""), &origin(&format!("\"{url}\"")));
    for short in ["3000", ":3000"] {
        leads(
            &origin(&format!("\"{short}\"")),
            &format!("write {url} for this machine"),
            &origin(&format!("\"{url}\"")),
        );
    }
    leads(&origin("\"localhost:3000\""), "write http://localhost:3000", &origin("\"http://localhost:3000\""));
    for named in ["http://127.0.0.1:3000", "127.0.0.1:3000", "3000"] {
        let hint = format!("write \"site\" here, and add [origin.site] with urls = [\"{url}\"]");
        let followed = format!("[[route]]\norigin = \"site\"\n[origin.site]\nurls = [\"{url}\"]\n");
        leads(&format!("[[route]]\norigin = \"{named}\"\n"), &hint, &followed);
    }
    says("origin = \"127.0.0.1:3000\"\n", "below it urls = [\"http://127.0.0.1:3000\"]");
    says("[origin]\nurls = \"http://127.0.0.1:3000\"\n", "write [origin.site], or another name, in place of [origin]");
}

#[test]
fn a_text_that_does_not_end_is_shown_where_it_begins() {
    check(
        "server_name = \"\"\"edge\nworkers = 2\n",
        r#"
larder.toml:1:15: error: this text is not closed
   |
 1 | server_name = """edge
   |               ^^^ it goes on to the end of the file
   = help: write """ behind it, or one quote on each side for a text on one line
"#,
    );
}
