//! `larder init`: three questions, or flags, and a short larder.toml of the answers. What it writes is read before it is written.

use std::fs::{OpenOptions, Permissions};
use std::io::{self, BufRead, IsTerminal, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use proxy::limits::CERTIFICATES_BYTES_MAX;
use proxy::settings::OriginUrl;

use crate::acme_plan::{TERMS_OF_LETSENCRYPT, is_email};
use crate::addresses::{parse_fastcgi, parse_listen, parse_origin};
use crate::bounded_file;
use crate::config::{self, FaultyFile, presets};
use crate::init_flags::{InitFlags, parse_host};
use crate::init_text;
use crate::kernel_random;
use crate::machine_check::{self, MachineFinding};
use crate::root_contents;
use crate::say::say;

/// Of the token.
const TOKEN_BYTES: usize = 16;
/// The rights of a file that has one.
const FOR_ITS_OWNER: u32 = 0o600;

/// As clap says it of flags that are missing.
const WRONG_FLAGS: u8 = 2;

pub fn init(flags: &InitFlags) -> ExitCode {
    let mut answers = flags.clone();
    answers.root = answers.root.as_deref().map(at_home);
    if answers.origins.is_empty() && answers.root.is_none() {
        if !io::stdin().is_terminal() {
            say!(
                "error: say what is behind larder, --origin URL or --root DIR; there is no terminal to ask at (larder init --help)"
            );
            return ExitCode::from(WRONG_FLAGS);
        }
        if let Err(why) = ask(&mut answers, &mut io::stdin().lock(), &mut io::stderr()) {
            say!("error: {why}");
            return ExitCode::FAILURE;
        }
    }
    match write(&answers) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            say!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Asks for what no flag says. An answer that cannot be is asked for again.
fn ask(answers: &mut InitFlags, from: &mut impl BufRead, to: &mut impl Write) -> Result<(), String> {
    let behind = "1. What is behind larder? An address, such as http://127.0.0.1:3000, or a folder of files: ";
    question(from, to, behind, |written| {
        match Behind::parse(written)? {
            Behind::Origin(url) => answers.origins = vec![url],
            Behind::Root(folder) => answers.root = Some(folder),
        }
        Ok(())
    })?;
    of_what_kind(answers, from, to)?;
    if answers.hosts.is_empty() {
        let hosts = "2. Which host names does it have? With blanks or commas between them; nothing for any: ";
        answers.hosts = question(from, to, hosts, |written| {
            let names = written.split(|c: char| c == ',' || c.is_whitespace()).filter(|name| !name.is_empty());
            names.map(parse_host).collect()
        })?;
        if !answers.hosts.is_empty() && answers.cert.is_none() && answers.acme_email.is_none() {
            let https = format!(
                "   HTTPS? An e-mail address has certificates ordered from Let's Encrypt, and you agree to its terms by that\n   \
                 ({TERMS_OF_LETSENCRYPT}); the path of a certificate in PEM shows that one; nothing for none: "
            );
            question(from, to, &https, |written| certificates(written, answers))?;
            the_key(answers, from, to)?;
        }
    }
    if answers.listen.is_none() {
        let usual = init_text::written(&answers.listen_address());
        let listen = format!("3. Where does it listen? Nothing for {usual}: ");
        answers.listen = question(from, to, &listen, |written| match written {
            "" => Ok(None),
            written => parse_listen(written).map(Some),
        })?;
    }
    Ok(())
}

/// Scripts want somebody who runs them, and the pages of well-known applications have words of their own.
fn of_what_kind(answers: &mut InitFlags, from: &mut impl BufRead, to: &mut impl Write) -> Result<(), String> {
    let has_scripts = answers.root.as_ref().is_some_and(|folder| folder.join("index.php").exists());
    if has_scripts && answers.fastcgi.is_none() {
        let php = "   It has an index.php. Where does php-fpm listen, such as unix:/run/php/php-fpm.sock? Nothing for nowhere: ";
        answers.fastcgi = question(from, to, php, |written| match written {
            "" => Ok(None),
            written => parse_fastcgi(written).map(Some),
        })?;
    }
    if answers.preset.is_none() {
        let names: Vec<&str> = presets::names().collect();
        let guess = answers.root.as_deref().and_then(guessed_preset);
        let kind = match guess {
            Some(guess) => {
                format!("   It looks like {guess}. Is it? Nothing for yes, no, or one of {}: ", names.join(", "))
            }
            None => format!("   Is it one of {}? Nothing for none: ", names.join(", ")),
        };
        answers.preset = question(from, to, &kind, |written| match written.to_ascii_lowercase().as_str() {
            "" | "yes" | "y" if guess.is_some() => Ok(guess.map(str::to_owned)),
            "" | "no" | "n" | "none" => Ok(None),
            written if names.contains(&written) => Ok(Some(written.to_owned())),
            _ => Err("that is none of them".to_owned()),
        })?;
    }
    Ok(())
}

/// What a folder is, by a file that such applications have.
fn guessed_preset(folder: &Path) -> Option<&'static str> {
    const KNOWN_BY: [(&str, &str); 3] =
        [("wordpress", "wp-login.php"), ("mediawiki", "includes/WebStart.php"), ("drupal", "core/lib/Drupal.php")];
    KNOWN_BY.into_iter().find(|(_, file)| folder.join(file).is_file()).map(|(preset, _)| preset)
}

/// Of a certificate whose file has none.
fn the_key(answers: &mut InitFlags, from: &mut impl BufRead, to: &mut impl Write) -> Result<(), String> {
    let Some(cert) = answers.cert.as_deref().filter(|_| answers.key.is_none()) else { return Ok(()) };
    if has_key(cert) {
        return Ok(());
    }
    let key = format!("   There is no key in {}. The path of its key: ", cert.display());
    answers.key = question(from, to, &key, |written| match at_home(Path::new(written)) {
        file if has_key(&file) => Ok(Some(file)),
        file => Err(format!("{} is no file that has a key in PEM, or this user may not read it", file.display())),
    })?;
    Ok(())
}

fn has_key(file: &Path) -> bool {
    bounded_file::read_text(file, CERTIFICATES_BYTES_MAX).is_ok_and(|text| text.contains("PRIVATE KEY-----"))
}

fn certificates(written: &str, answers: &mut InitFlags) -> Result<(), String> {
    match written {
        "" => {}
        address if is_email(address) => answers.acme_email = Some(address.to_owned()),
        file if at_home(Path::new(file)).is_file() => answers.cert = Some(at_home(Path::new(file))),
        _ => return Err("that is neither an e-mail address nor a file".to_owned()),
    }
    Ok(())
}

fn question<T>(
    from: &mut impl BufRead,
    to: &mut impl Write,
    asked: &str,
    mut read: impl FnMut(&str) -> Result<T, String>,
) -> Result<T, String> {
    loop {
        write!(to, "{asked}").and_then(|()| to.flush()).map_err(|error| error.to_string())?;
        let mut line = String::new();
        match from.read_line(&mut line) {
            Ok(0) => return Err("the answers ended before the questions".to_owned()),
            Ok(_) => {}
            Err(error) => return Err(error.to_string()),
        }
        match read(line.trim()) {
            Ok(answer) => return Ok(answer),
            Err(why) => writeln!(to, "   {why}").map_err(|error| error.to_string())?,
        }
    }
}

/// Who answers.
#[derive(Debug, PartialEq)]
enum Behind {
    Origin(OriginUrl),
    Root(PathBuf),
}

impl Behind {
    /// A URL, a port of this machine, a host with a port, or a folder that is there.
    fn parse(written: &str) -> Result<Behind, String> {
        if written.is_empty() {
            return Err("something has to be there".to_owned());
        }
        if written.contains("://") || written.starts_with("unix:") {
            return parse_origin(written).map(Behind::Origin);
        }
        if written.len() == 1 && written.bytes().all(|byte| byte.is_ascii_digit()) {
            // Who answers the number of the question, or chooses the first of what it names.
            return Err(format!(
                "an address is wanted, or a folder, and no choice; of port {written} write 127.0.0.1:{written}"
            ));
        }
        if let Ok(port) = written.parse::<u16>() {
            return parse_origin(&format!("http://127.0.0.1:{port}")).map(Behind::Origin);
        }
        let folder = at_home(Path::new(written));
        if folder.is_dir() {
            return Ok(Behind::Root(folder));
        }
        if written.starts_with(['/', '.', '~']) {
            return Err(format!("{written} is no directory"));
        }
        // A folder that is not there, or a word that answers another question.
        if !written.contains(['.', ':', ' ']) && written != "localhost" {
            return Err(format!("no folder here is called {written}; of a host write http://{written}"));
        }
        parse_origin(&format!("http://{written}")).map(Behind::Origin)
    }
}

/// No shell has written `~/` out where it stands behind a question, or in quotes.
fn at_home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), std::env::var_os("HOME")) {
        (Ok(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => path.to_owned(),
    }
}

/// What of the answers is not there.
fn absent(answers: &InitFlags) -> Option<String> {
    let root = answers.root.as_deref()?;
    if !root.is_dir() {
        return Some(format!("nothing is written: {} is no directory (--root)", root.display()));
    }
    let is_unrun = answers.fastcgi.is_none() && init_text::has_scripts(answers);
    let preset = answers.preset.as_deref().filter(|_| is_unrun)?;
    Some(format!(
        "nothing is written: a site of --preset {preset} has scripts, passwords in some of them, and nobody runs them: --fastcgi \
         unix:/run/php/php-fpm.sock, or HOST:PORT, says where php-fpm listens"
    ))
}

fn write(answers: &InitFlags) -> Result<(), String> {
    if let Some(why) = absent(answers) {
        return Err(why);
    }
    let text = init_text::text(answers, &kernel_random::text::<TOKEN_BYTES>());
    let plan = match config::read(&text) {
        Ok(plan) => plan,
        Err(complaints) => {
            let name = answers.output.display().to_string();
            let drawn = FaultyFile { name, text, complaints }.draw(false);
            return Err(format!("nothing is written, for it would be wrong:\n{drawn}"));
        }
    };
    let path = &answers.output;
    let warn = |findings: Vec<MachineFinding>| findings.iter().for_each(|found| say!("{}", found.show().trim_end()));
    if path == Path::new("-") {
        warn(machine_check::uncovered_hosts(&plan));
        return io::stdout().write_all(text.as_bytes()).map_err(|error| error.to_string());
    }
    let shown = path.display();
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).create_new(!answers.force).mode(FOR_ITS_OWNER);
    let written = options.open(path).and_then(|mut file| {
        // One that was there may have been for everybody. A device's rights are not ours to change.
        if file.metadata()?.is_file() {
            file.set_permissions(Permissions::from_mode(FOR_ITS_OWNER))?;
        }
        file.write_all(text.as_bytes())
    });
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            format!("{shown} is there already: --force writes over it, --output FILE another one")
        }
        _ => format!("{shown}: {error}"),
    })?;
    say!(
        "{shown} is written, for its owner alone to read: the token of its commands is in it. larder check {shown} looks whether it is good here, larder serve --config {shown} runs it"
    );
    let of_roots = root_contents::findings(&plan);
    warn([machine_check::own_files(path, &plan), machine_check::uncovered_hosts(&plan), of_roots].concat());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_behind_may_be_said_shortly() {
        let origin = |url: &str| Ok(Behind::Origin(parse_origin(url).unwrap()));
        assert_eq!(Behind::parse("3000"), origin("http://127.0.0.1:3000"));
        assert_eq!(Behind::parse("app.internal:81"), origin("http://app.internal:81"));
        assert_eq!(Behind::parse("https://a.test"), origin("https://a.test"));
        assert_eq!(Behind::parse("unix:/run/a.sock"), origin("unix:/run/a.sock"));
        assert_eq!(Behind::parse("/"), Ok(Behind::Root("/".into())));
        assert_eq!(Behind::parse("/nowhere/at/all"), Err("/nowhere/at/all is no directory".to_owned()));
        assert!(Behind::parse("ftp://a").unwrap_err().contains("no scheme larder speaks"));
        assert!(Behind::parse("1").unwrap_err().contains("of port 1 write 127.0.0.1:1"));
        assert_eq!(Behind::parse("127.0.0.1:1"), origin("http://127.0.0.1:1"));
        assert!(Behind::parse("yes").unwrap_err().contains("of a host write http://yes"));
        assert_eq!(
            (Behind::parse("http://app"), Behind::parse("localhost")),
            (origin("http://app"), origin("http://localhost"))
        );
        assert!(Behind::parse("").is_err() && Behind::parse("a b").is_err());
    }

    #[test]
    fn names_may_have_commas_between_them_and_a_home_is_found() {
        let hosts = |written: &str| answered(&format!("3000\n\n{written}\n\n\n")).0.unwrap().hosts;
        assert_eq!(hosts("a.test, www.a.test,b.test"), ["a.test", "www.a.test", "b.test"]);
        assert_eq!(hosts("a.test www.a.test"), ["a.test", "www.a.test"]);
        let home = std::env::var_os("HOME").map(PathBuf::from);
        assert_eq!(at_home(Path::new("~/")), home.clone().unwrap_or_else(|| "~/".into()));
        assert_eq!(at_home(Path::new("~/a/b")), home.map_or("~/a/b".into(), |home| home.join("a/b")));
        assert_eq!(at_home(Path::new("/a/~/b")), PathBuf::from("/a/~/b"));
        let absent_root = InitFlags { root: Some("/nowhere/at/all".into()), ..InitFlags::default() };
        assert!(write(&absent_root).unwrap_err().contains("/nowhere/at/all is no directory"));
    }

    /// With these lines as answers.
    fn answered(lines: &str) -> (Result<InitFlags, String>, String) {
        let (mut answers, mut said) = (InitFlags::default(), Vec::new());
        let asked = ask(&mut answers, &mut lines.as_bytes(), &mut said);
        (asked.map(|()| answers), String::from_utf8(said).unwrap())
    }

    #[test]
    fn an_answer_that_cannot_be_is_asked_for_again() {
        let (answers, said) = answered(
            "ftp://a\n3000\nwordpres\n\nb.test:80\na.test www.a.test\nnobody\nme@a.test\n80\n127.0.0.1:8443\n",
        );
        let answers = answers.unwrap();
        assert_eq!((answers.origins.len(), answers.hosts.len()), (1, 2));
        assert_eq!(
            (answers.acme_email.as_deref(), answers.listen),
            (Some("me@a.test"), parse_listen("127.0.0.1:8443").ok())
        );
        assert_eq!(
            said.matches("1. What").count() + said.matches("2. Which").count() + said.matches("3. Where").count(),
            6
        );
        assert!(
            said.contains("that is none of them")
                && said.contains("neither an e-mail address nor a file")
                && said.contains("Nothing for ")
                && said.contains(":443"),
            "{said}"
        );
        let (answers, said) = answered("3000\n\n\n\n");
        assert!(answers.unwrap().listen.is_none() && said.contains("Nothing for 127.0.0.1:8080"), "{said}");
        let (answers, said) = answered("3000\nmediawiki\n\n\n");
        assert_eq!(answers.unwrap().preset.as_deref(), Some("mediawiki"), "{said}");
        assert!(said.contains("Is it one of wordpress, drupal") && !said.contains("index.php"), "{said}");
        assert_eq!(answered("3000\n").0.unwrap_err(), "the answers ended before the questions");
    }

    #[test]
    fn a_key_apart_is_asked_for_and_an_application_is_known() {
        let folder = std::env::temp_dir().join(format!("larder-init-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for (name, text) in [
            ("site.pem", "-----BEGIN CERTIFICATE-----"),
            ("site.key", "-----BEGIN PRIVATE KEY-----"),
            ("wp-login.php", ""),
        ] {
            std::fs::write(folder.join(name), text).unwrap();
        }
        let (pem, key) = (folder.join("site.pem"), folder.join("site.key"));
        let lines = format!("3000\n\na.test\n{}\n/nowhere\n{}\n\n", pem.display(), key.display());
        let (answers, said) = answered(&lines);
        let answers = answers.unwrap();
        assert_eq!((answers.cert, answers.key), (Some(pem), Some(key)), "{said}");
        assert!(
            said.contains("/nowhere is no file that has a key in PEM") && said.contains("Nothing for *:443: "),
            "{said}"
        );
        assert!(!said.contains("who agrees to its terms (of"), "{said}");
        for (line, expect) in [("", Some("wordpress")), ("no", None), ("Drupal", Some("drupal"))] {
            let (answers, said) = answered(&format!("{}\n{line}\n\n\n", folder.display()));
            assert_eq!(answers.unwrap().preset.as_deref(), expect, "{said}");
            assert!(said.contains("It looks like wordpress."), "{said}");
        }
        assert_eq!(answered("3000\nWordPress\n\n\n").0.unwrap().preset.as_deref(), Some("wordpress"));
        let unrun =
            InitFlags { root: Some(folder.clone()), preset: Some("wordpress".to_owned()), ..InitFlags::default() };
        let why = write(&unrun).unwrap_err();
        assert!(why.contains("--fastcgi unix:") && !why.contains("larder.toml"), "{why}");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// Where port 80 leads to https://, no application can purge there.
    #[test]
    fn an_application_that_purges_has_a_place_for_it() {
        let text = |preset: Option<&str>, cert: Option<&str>| {
            let flags = InitFlags {
                origins: vec![parse_origin("http://a:1").unwrap()],
                preset: preset.map(str::to_owned),
                cert: cert.map(PathBuf::from),
                ..InitFlags::default()
            };
            init_text::text(&flags, "0123456789abcdef")
        };
        let place = "\n[[listen]]\naddress = \"127.0.0.1:6081\"\n";
        assert!(text(Some("wordpress"), Some("a.pem")).contains(place));
        for (preset, cert) in [(Some("wordpress"), None), (Some("static"), Some("a.pem")), (None, Some("a.pem"))] {
            assert!(!text(preset, cert).contains("6081"), "{preset:?} {cert:?}");
        }
    }

    #[test]
    fn what_is_written_is_what_was_answered() {
        let read = |flags: InitFlags| {
            let text = init_text::text(&flags, "0123456789abcdef");
            assert!(text.lines().count() < 60, "{text}");
            let plan = config::read(&text).unwrap_or_else(|complaints| panic!("{complaints:?}\n{text}"));
            assert_eq!(plan.admin.token.as_deref(), Some("0123456789abcdef"));
            plan.settings
        };
        let origins = vec![parse_origin("http://a:1").unwrap(), parse_origin("unix:/x").unwrap()];
        let hosts = vec!["a.test".to_owned(), "*.a.test".to_owned()];
        let settings = read(InitFlags { origins: origins.clone(), hosts: hosts.clone(), ..InitFlags::default() });
        assert_eq!((settings.origins[0].urls.clone(), settings.routes.len()), (origins.clone(), 2));
        assert_eq!(settings.listeners, crate::plan::Plan::default().settings.listeners);
        let settings = read(InitFlags { root: Some("/srv".into()), ..InitFlags::default() });
        assert_eq!(settings.roots[0].directory, PathBuf::from("/srv"));
        let php = InitFlags {
            root: Some("/srv".into()),
            fastcgi: parse_fastcgi("unix:/run/php.sock").ok(),
            preset: Some("wordpress".to_owned()),
            ..InitFlags::default()
        };
        let settings = read(php);
        assert_eq!(settings.roots[0].scripts.as_ref().map(|scripts| scripts.origin), Some(0));
        assert!(
            settings.routes[0].closed.as_ref().is_some_and(|closed| closed.close(b"/blog/wp-content/uploads/a.PHP/b"))
        );
        assert!(!settings.policy.honour_client_cache_control, "a reload in a browser is not for PHP to answer");
        assert!(settings.routes.len() > 1 && settings.routes[0].rules.caching.grant.gives_lifetimes());
        let relative = InitFlags {
            origins: vec![parse_origin("unix:app.sock").unwrap()],
            listen: parse_listen("unix:l.sock").ok(),
            ..InitFlags::default()
        };
        let text = init_text::text(&relative, "0123456789abcdef");
        let here = std::env::current_dir().unwrap().display().to_string();
        assert!(text.contains(&format!("urls = [\"unix:{here}/app.sock\"]")), "{text}");
        assert!(text.contains(&format!("address = \"unix:{here}/l.sock\"")), "{text}");
        let scripts = InitFlags { root: Some("/srv".into()), fastcgi: parse_fastcgi("unix:fpm.sock").ok(), ..relative };
        let text = init_text::text(&scripts, "0123456789abcdef");
        assert!(text.contains(&format!("fastcgi = \"unix:{here}/fpm.sock\"")), "{text}");
        let secure = InitFlags { root: Some("/srv".into()), cert: Some("a.pem".into()), ..InitFlags::default() };
        assert!(init_text::text(&secure, "0123456789abcdef").contains("address = \"*:443\""), "on any machine");
        let acme = InitFlags {
            origins,
            hosts: vec!["a.test".to_owned()],
            acme_email: Some("a@a.test".to_owned()),
            ..InitFlags::default()
        };
        let settings = read(acme);
        assert!(settings.listeners[0].tls.is_some() && settings.listeners.len() == 2);
        // Who comes without TLS is led there on the same address.
        let led = |listen: &str| {
            let (listen, cert) = (parse_listen(listen).ok(), Some("a.pem".into()));
            init_text::text(
                &InitFlags { root: Some("/srv".into()), cert, listen, ..InitFlags::default() },
                "0123456789abcdef",
            )
        };
        assert!(led("192.0.2.1:443").contains("\n[[listen]]\naddress = \"192.0.2.1:80\"\nmode = \"redirect\""));
        assert!(led("*:443").contains("\n[[listen]]\naddress = \"*:80\"\nmode = \"redirect\""));
        assert!(led("127.0.0.1:8443").contains("#[[listen]]\n#address = \"127.0.0.1:80\"\n#mode = \"redirect\""));
        assert!(!led("unix:l.sock").contains("redirect"));
    }
}
