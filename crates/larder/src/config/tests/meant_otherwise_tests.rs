//! What was accepted once though something else was meant: each is refused, with what to write.

use super::mistake_tests::{leads, says};

/// A `[[route]]` with this line.
fn root(line: &str) -> String {
    format!("[[route]]\nroot = \"/srv\"\n{line}\n")
}

#[test]
fn a_list_is_no_text_with_blanks() {
    let names = "index = [\"index.php\", \"index.html\"]";
    for together in ["index.php index.html", "index.php, index.html", "index.php,index.html"] {
        leads(&root(&format!("index = \"{together}\"")), &format!("write {names}"), &root(names));
    }
    leads(&root("index = [\"a.php b.php\"]"), "write \"a.php\", \"b.php\"", &root("index = [\"a.php\", \"b.php\"]"));
    for (line, expect) in [
        ("allow = \"10.0.0.0/8 ::1\"", "write allow = [\"10.0.0.0/8\", \"::1\"]"),
        ("method = \"GET POST\"", "write method = [\"GET\", \"POST\"]"),
        ("path = \"/a, /b\"", "write path = [\"/a\", \"/b\"]"),
        ("vary_by = \"device header:Accept-Language\"", "write vary_by = [\"device\", \"header:Accept-Language\"]"),
    ] {
        says(&root(line), expect);
    }
    says("[policy]\ncookies = { keep = \"a, b\" }\n", "write keep = [\"a\", \"b\"]");
    let two = "urls = [\"http://a:1\", \"http://b:1\"]";
    let origin = |urls: &str| format!("[origin.b]\n{urls}\n[[route]]\norigin = \"b\"\n");
    leads(&origin("urls = \"http://a:1 http://b:1\""), two, &origin(two));
}

#[test]
fn an_address_with_a_prefix_is_one_or_the_other() {
    let hint = "write \"10.0.0.0/8\" for the network, or \"10.0.0.1\" for the address";
    for (section, key) in [
        ("", "trusted_proxies"),
        ("[[route]]\norigin = \"a\"\n", "allow"),
        ("[[route]]\norigin = \"a\"\n", "deny"),
        ("[[route]]\norigin = \"a\"\n", "purge_from"),
        ("[policy]\n", "purge_from"),
        ("[forward]\n", "allow_clients"),
        ("[forward]\n", "deny_destinations"),
        ("[admin]\naddress = \"127.0.0.1:8081\"\n", "details_to"),
    ] {
        let line = |network: &str| format!("{section}{key} = \"{network}\"\n");
        leads(&line("10.0.0.1/8"), hint, &line("10.0.0.0/8"));
        leads(&line("10.0.0.1/8"), hint, &line("10.0.0.1"));
    }
    says("trusted_proxies = [\"2001:db8::7/32\"]\n", "write \"2001:db8::/32\" for the network, or \"2001:db8::7\"");
    says(
        "[forward]\ndeny_destinations = \"10.0.0.1/8:25\"\n",
        "write \"10.0.0.0/8:25\" for the network, or \"10.0.0.1:25\"",
    );
    says(
        "[forward]\ndeny_destinations = \"[fd00::1/8]:25\"\n",
        "write \"[fd00::/8]:25\" for the network, or \"[fd00::1]:25\"",
    );
}

#[test]
fn less_than_a_second_is_no_lifetime() {
    for key in ["ttl", "stale_while_revalidate", "stale_if_error"] {
        let line = |time: &str| format!("[policy]\n{key} = \"{time}\"\n");
        leads(&line("500ms"), "write \"1s\"", &line("1s"));
        leads(&line("2500ms"), "write \"3s\"", &line("3000ms"));
    }
    says("[policy]\nttl = { 404 = \"10ms\" }\n", "write \"1s\"");
}

#[test]
fn a_backspace_is_no_part_of_a_pattern() {
    let hint = "write '^/\\bnew'";
    leads(&root("closed_paths = \"^/\\bnew\""), hint, &root("closed_paths = '^/\\bnew'"));
    says(&root("path_pattern = \"\\t\""), "write '\\t'");
}
