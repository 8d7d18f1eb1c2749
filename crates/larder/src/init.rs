//! `larder init`: three questions, or flags, and a short larder.toml of the answers. What it writes is read before it is written.

use std::fs::OpenOptions;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use acme::NameSet;
use clap::Args;
use proxy::settings::{ListenAddress, OriginUrl};

use crate::acme_plan::{TERMS, is_email};
use crate::addresses::{parse_listen, parse_origin, show_listen, show_origin};
use crate::config::{self, FaultyFile, literal};
use crate::flag_settings::default_address;
use crate::say::say;

#[derive(Clone, Debug, Default, Args)]
pub struct InitFlags {
    /// The web server to stand in front of: http://HOST[:PORT], https:// or unix:/PATH; several share the load
    #[arg(long = "origin", value_name = "URL", value_parser = parse_origin)]
    pub origins: Vec<OriginUrl>,

    /// Serve the files of this directory
    #[arg(long, value_name = "DIR", conflicts_with = "origins")]
    pub root: Option<PathBuf>,

    /// Answer for this host name alone; repeatable [default: any]
    #[arg(long = "host", value_name = "NAME", value_parser = parse_host)]
    pub hosts: Vec<String>,

    /// Speak HTTPS, with certificates for --host from Let's Encrypt, to whose terms you agree by this; it may write to this address
    #[arg(long, value_name = "ADDRESS", requires = "hosts", conflicts_with = "cert", value_parser = parse_email)]
    pub acme_email: Option<String>,

    /// Speak HTTPS with this certificate and those that lead to its authority, in PEM
    #[arg(long, value_name = "FILE")]
    pub cert: Option<PathBuf>,

    /// The key of --cert [default: in the file of the certificate]
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,

    /// Where to listen: IP:PORT, *:PORT or unix:PATH [default: 127.0.0.1:8080, with HTTPS *:443]
    #[arg(long, value_name = "ADDRESS", value_parser = parse_listen)]
    pub listen: Option<ListenAddress>,

    /// The file to write; - is standard output
    #[arg(short, long, value_name = "FILE", default_value = "larder.toml")]
    pub output: PathBuf,

    /// Write over a file that is there
    #[arg(long)]
    pub force: bool,
}

/// As clap says it of flags that are missing.
const WRONG_FLAGS: u8 = 2;

pub fn init(flags: &InitFlags) -> ExitCode {
    let mut answers = flags.clone();
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
    if answers.hosts.is_empty() {
        let hosts = "2. Which host names does it have? With blanks between them; nothing for any: ";
        answers.hosts = question(from, to, hosts, |written| written.split_whitespace().map(parse_host).collect())?;
        if !answers.hosts.is_empty() && answers.cert.is_none() && answers.acme_email.is_none() {
            let https = format!(
                "   HTTPS? An e-mail address has certificates ordered from Let's Encrypt, to whose terms you agree\n   \
                 ({TERMS}); the path of a certificate in PEM, with its key, shows that one; nothing for none: "
            );
            question(from, to, &https, |written| certificates(written, answers))?;
        }
    }
    if answers.listen.is_none() {
        let usual = show_listen(&listen_address(answers));
        let listen = format!("3. Where does it listen? Nothing for {usual}: ");
        answers.listen = question(from, to, &listen, |written| match written {
            "" => Ok(None),
            written => parse_listen(written).map(Some),
        })?;
    }
    Ok(())
}

fn certificates(written: &str, answers: &mut InitFlags) -> Result<(), String> {
    match written {
        "" => {}
        address if is_email(address) => answers.acme_email = Some(address.to_owned()),
        file if Path::new(file).is_file() => answers.cert = Some(file.into()),
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
        if let Ok(port) = written.parse::<u16>() {
            return parse_origin(&format!("http://127.0.0.1:{port}")).map(Behind::Origin);
        }
        if Path::new(written).is_dir() {
            return Ok(Behind::Root(written.into()));
        }
        if written.starts_with(['/', '.', '~']) {
            return Err(format!("{written} is no directory"));
        }
        parse_origin(&format!("http://{written}")).map(Behind::Origin)
    }
}

/// Where it listens, as is said or as is usual.
fn listen_address(answers: &InitFlags) -> ListenAddress {
    let is_https = answers.acme_email.is_some() || answers.cert.is_some();
    let usual =
        || if is_https { parse_listen("*:443").ok() } else { parse_listen(default_address().trim_matches('"')).ok() };
    answers.listen.clone().or_else(usual).unwrap_or_else(|| crate::plan::listener_by_default().address)
}

fn write(answers: &InitFlags) -> Result<(), String> {
    let text = text(answers);
    if let Err(complaints) = config::read(&text) {
        let name = answers.output.display().to_string();
        let drawn = FaultyFile { name, text, complaints }.draw(false);
        return Err(format!("nothing is written, for it would be wrong:\n{drawn}"));
    }
    let path = &answers.output;
    if path == Path::new("-") {
        return io::stdout().write_all(text.as_bytes()).map_err(|error| error.to_string());
    }
    let shown = path.display();
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).create_new(!answers.force);
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            format!("{shown} is there already: --force writes over it, --output FILE another one")
        }
        _ => format!("{shown}: {error}"),
    })?;
    say!(
        "{shown} is written. larder check {shown} looks whether it is good here, larder serve --config {shown} runs it"
    );
    Ok(())
}

/// The file.
fn text(answers: &InitFlags) -> String {
    let path = answers.output.display();
    let name = if answers.output == Path::new("-") { "larder.toml".to_owned() } else { path.to_string() };
    let mut out = format!(
        "# Made by `larder init`. `larder check {name}` looks whether it is good, `larder serve --config {name}` runs it,\n\
         # and kill -HUP has it read again. `larder config sample` prints every key there is.\n"
    );
    listeners(answers, &mut out);
    let hosts = literal::texts(answers.hosts.iter().map(String::as_str));
    let of_hosts = if answers.hosts.is_empty() { String::new() } else { format!("host = {hosts}\n") };
    match &answers.root {
        Some(folder) => {
            out.push_str("\n# The files of this directory answer; nothing above it is ever shown.\n[[route]]\n");
            out.push_str(&format!("{of_hosts}root = {}\n", absolute(folder)));
            out.push_str("# A directory without an index.html: \"off\" (403) or \"html\".\n#listing = \"html\"\n");
        }
        None => {
            let urls = literal::list(answers.origins.iter().map(|url| literal::text(&show_origin(url))));
            out.push_str("\n# The web server behind larder. Several addresses take turns.\n[origin.site]\n");
            out.push_str(&format!("urls = {urls}\n\n# It answers everything that is asked here.\n[[route]]\n"));
            out.push_str(&format!("{of_hosts}origin = \"site\"\n"));
        }
    }
    out.push_str(
        "\n# What the process may take of the machine's memory.\n[memory]\nsize = \"256MiB\"\n\n\
         # What is stored outlives a restart.\n#[[disk]]\n#path = \"/var/cache/larder\"\n#size = \"10GiB\"\n\n\
         # A line for each request.\n#[log]\n#path = \"/var/log/larder/access.log\"\n",
    );
    out
}

fn listeners(answers: &InitFlags, out: &mut String) {
    let address = listen_address(answers);
    let shown = literal::text(&show_listen(&address));
    let tls = match (&answers.acme_email, &answers.cert) {
        (Some(_), _) => {
            let names = literal::texts(answers.hosts.iter().map(String::as_str));
            format!(
                "# Certificates for these names are ordered by [acme], and renewed.\n[listen.tls]\nacme = {names}\n"
            )
        }
        (None, Some(cert)) => {
            let key = answers.key.as_deref().map_or(String::new(), |key| format!("key = {}\n", absolute(key)));
            format!(
                "# A certificate that changes on disk is read again by itself.\n[listen.tls]\ncert = {}\n{key}",
                absolute(cert)
            )
        }
        (None, None) => {
            out.push_str(&format!(
                "\n# Where larder listens: *:80 would be port 80 of every address.\n[[listen]]\naddress = {shown}\n"
            ));
            return;
        }
    };
    out.push_str(&format!("\n[[listen]]\naddress = {shown}\n{tls}"));
    if matches!(address, ListenAddress::Tcp(at) if at.port() == 443) {
        out.push_str(
            "\n# Who comes by http:// is led to https://.\n[[listen]]\naddress = \"*:80\"\nmode = \"redirect\"\n",
        );
    }
    if let Some(email) = &answers.acme_email {
        out.push_str(&format!(
            "\n[acme]\n# {TERMS}\nterms_agreed = true\nemail = {}\n# To try it first, with certificates that browsers do not trust:\n\
             #directory = \"letsencrypt-staging\"\n",
            literal::text(email)
        ));
    }
}

/// Wherever larder is started.
fn absolute(path: &Path) -> String {
    literal::text(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).to_string_lossy())
}

/// A name as a certificate may have it and a route may be for.
fn parse_host(written: &str) -> Result<String, String> {
    let name = written.strip_prefix("*.").unwrap_or(written);
    NameSet::new([name]).map(|_| written.to_ascii_lowercase())
}

fn parse_email(written: &str) -> Result<String, String> {
    if is_email(written) { Ok(written.to_owned()) } else { Err("must be such as admin@example.org".to_owned()) }
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
        assert!(Behind::parse("").is_err() && Behind::parse("a b").is_err());
    }

    /// With these lines as answers.
    fn answered(lines: &str) -> (Result<InitFlags, String>, String) {
        let (mut answers, mut said) = (InitFlags::default(), Vec::new());
        let asked = ask(&mut answers, &mut lines.as_bytes(), &mut said);
        (asked.map(|()| answers), String::from_utf8(said).unwrap())
    }

    #[test]
    fn an_answer_that_cannot_be_is_asked_for_again() {
        let (answers, said) =
            answered("ftp://a\n3000\na_b.test\na.test www.a.test\nnobody\nme@a.test\n80\n127.0.0.1:8443\n");
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
            said.contains("neither an e-mail address nor a file") && said.contains("Nothing for 0.0.0.0:443"),
            "{said}"
        );
        let (answers, said) = answered("3000\n\n\n");
        assert!(answers.unwrap().listen.is_none() && said.contains("Nothing for 127.0.0.1:8080"), "{said}");
        assert_eq!(answered("3000\n").0.unwrap_err(), "the answers ended before the questions");
    }

    #[test]
    fn what_is_written_is_what_was_answered() {
        let read = |flags: InitFlags| {
            let text = text(&flags);
            assert!(text.lines().count() < 50, "{text}");
            config::read(&text).unwrap_or_else(|complaints| panic!("{complaints:?}\n{text}")).settings
        };
        let origins = vec![parse_origin("http://a:1").unwrap(), parse_origin("unix:/x").unwrap()];
        let hosts = vec!["a.test".to_owned(), "*.a.test".to_owned()];
        let settings = read(InitFlags { origins: origins.clone(), hosts: hosts.clone(), ..InitFlags::default() });
        assert_eq!((settings.origins[0].urls.clone(), settings.routes.len()), (origins.clone(), 2));
        assert_eq!(settings.listeners, crate::plan::Plan::default().settings.listeners);
        let settings = read(InitFlags { root: Some("/srv".into()), ..InitFlags::default() });
        assert_eq!(settings.roots[0].directory, PathBuf::from("/srv"));
        let acme = InitFlags {
            origins,
            hosts: vec!["a.test".to_owned()],
            acme_email: Some("a@a.test".to_owned()),
            ..InitFlags::default()
        };
        let settings = read(acme);
        assert!(settings.listeners[0].tls.is_some() && settings.listeners.len() == 2);
    }
}
