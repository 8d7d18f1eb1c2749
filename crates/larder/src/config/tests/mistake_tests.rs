//! One mistake, one message, at the line where it was made: each line of the sample is spoilt in each of the ways in which people
//! spoil lines. And what is said to somebody who knows another program.

use super::super::{FaultyFile, read, sample as sample_text};
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

fn says(text: &str, expect: &str) {
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
    says("listen = \"*:80\"\n", "write [[listen]] on a line of its own, with two brackets on each side");
    says("[memory]\nsize = \"1G\"\nnothing = 1\n", "the keys here are size, eviction\n");
    says("[policy]\nobject_bytes_max = \"1G\"\n", "`object_bytes_max` belongs in [limits]");
    says("[memory]\nworkers = 2\n", "`workers` belongs in the top level, above all sections");
    says("cert = \"a.pem\"\n", "`cert` belongs in [listen.tls] or [origin.NAME.tls]");
    says("[tls]\ncert = \"a.pem\"\n", "`tls` belongs in [[listen]]");
    says("[limits.memory]\nsize = \"1G\"\n", "[memory] is a section of its own");
    says("[parent]\naddress = \"a:1\"\n", "`parent` belongs in [forward]");
    says(&format!("{ROUTE}queue_max = 3\n"), "`queue_max` belongs in [origin.NAME]");
    says("[[memory]]\nsize = \"1G\"\n", "write [memory] with one bracket");
    says("[route]\nroot = \"/srv\"\n", "write [[route]] with two brackets");
    says("[[route]]\nroot = \"/srv\"\n[route]\nroot = \"/b\"\n", "write [[route]] with two brackets");
    says("[limits]\nidle-timeout = \"1s\"\n", "did you mean `idle_timeout`?");
    says("[origins.web]\nurls = \"http://a\"\n", "did you mean `origin`?");
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
