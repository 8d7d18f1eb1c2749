//! Mistakes of who writes their first larder.toml: each is one complaint, which says what to write.

use super::*;

/// What is said of a text; none of it says what is not so.
#[track_caller]
fn says(text: &str, parts: &[&str], never: &[&str]) {
    let complaints = read(text).map(|_| ()).expect_err("the config is taken for good");
    let file = FaultyFile { name: "larder.toml".to_owned(), text: text.to_owned(), complaints };
    let said = file.draw(false);
    for part in parts {
        assert!(said.contains(part), "it does not say {part:?}:\n{said}");
    }
    for part in never {
        assert!(!said.contains(part), "it says {part:?}:\n{said}");
    }
}

const PHP: &str = "[origin.php]\nfastcgi = \"unix:/run/php.sock\"\n";

#[test]
fn an_origin_that_nobody_knows_is_one_mistake() {
    let text = format!("{PHP}[[route]]\nroot = \"/srv\"\norigin = \"pph\"\npreset = \"wordpress\"\n");
    says(&text, &["there is no origin `pph`", "did you mean `php`?"], &["exactly one of", "nobody runs them"]);
    says(
        "[[route]]\norigin = \"unix:/run/php.sock\"\n",
        &["write \"site\" here, and add [origin.site] with urls = [\"unix:/run/php.sock\"], or with fastcgi = "],
        &["[origin.\"unix:"],
    );
    let text = "[origin]\nurl = \"http://a\"\n";
    says(text, &["write [origin.site], or another name, in place of [origin]"], &["[origin.url]"]);
}

#[test]
fn words_that_mean_a_key_of_their_section_are_told_so() {
    let site = "[origin.a]\nurls = \"http://a\"\n";
    says(&format!("{site}[[route]]\ncookies = {{ pass = [\"x\"] }}\n"), &["write bypass = [\"NAME\"]"], &["[esi]"]);
    says(
        &format!("{site}[log]\nfile = \"/tmp/x\"\n"),
        &["write path = \"/var/log/larder/access.log\""],
        &["basic_auth", "`path` is missing"],
    );
    let tries = format!("{PHP}[[route]]\nroot = \"/srv\"\norigin = \"php\"\ntry_files = \"$uri\"\n");
    says(&tries, &["beside an origin with fastcgi nothing"], &[]);
}

#[test]
fn other_spellings_come_with_the_one_that_is_read() {
    let route = |line: &str| format!("[origin.a]\nurls = \"http://a\"\n[[route]]\n{line}\n");
    for (written, meant) in [("10r/s", "10/s"), ("5 per minute", "5/m"), ("100/sec", "100/s")] {
        says(&route(&format!("rate_limit = \"{written}\"")), &[&format!("write \"{meant}\"")], &[]);
    }
    says(&route("preset: wordpress"), &["write preset = \"wordpress\""], &[]);
    says(&route("path = \"/a\";"), &["write path = \"/a\", without the ; behind it"], &[]);
    says(&route("query = { ignore_args }"), &["within { } each key has a value"], &[]);
    let urls = "[origin.a]\nurls = [\"fastcgi://127.0.0.1:9000\"]\n";
    says(urls, &["fastcgi = \"127.0.0.1:9000\" in place of urls"], &["is no scheme"]);
    says("[origin.a]\nfastcgi = \"fastcgi://127.0.0.1:9000\"\n", &["write 127.0.0.1:9000, without fastcgi://"], &[]);
}

#[test]
fn what_is_wrong_with_a_file_is_said_at_the_line_that_names_it() {
    let folder = std::env::temp_dir().join(format!("larder-newcomer-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (pem, key) = (folder.join("site.pem"), folder.join("site.key"));
    std::fs::write(&pem, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    std::fs::write(&key, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n").unwrap();
    let listen = "[[route]]\nroot = \"/srv\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n[listen.tls]\n";
    let swapped = format!("{listen}cert = {key:?}\nkey = {pem:?}\n");
    says(&swapped, &["larder.toml:6:8: error", "are cert and key in each other's place?"], &[]);
    let missing = format!("{listen}cert = {pem:?}\nkey = \"/nowhere/site.key\"\n");
    says(&missing, &["larder.toml:7:7: error: /nowhere/site.key: No such file"], &[]);
    let config = folder.join("larder.toml");
    std::fs::write(&config, "[admin]\n# a file\ntoken_file = \"gone\"\n").unwrap();
    let said = load(&config).unwrap_err().show(false);
    assert!(
        said.contains("larder.toml:3:1: error: token_file of [admin]: ") && said.contains("gone: No such file"),
        "{said}"
    );
    std::fs::remove_dir_all(&folder).unwrap();
}
