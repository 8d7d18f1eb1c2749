//! The larder.toml that `larder init` writes, with a word about each thing that somebody may want to change.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use proxy::settings::{ListenAddress, OriginUrl};

use crate::acme_plan::TERMS;
use crate::addresses::{every_address, show_fastcgi, show_listen, show_origin};
use crate::config::{literal, presets};
use crate::init_flags::InitFlags;

/// The file, with this token for its commands.
pub fn text(answers: &InitFlags, token: &str) -> String {
    let path = answers.output.display();
    let name = if answers.output == Path::new("-") { "larder.toml".to_owned() } else { path.to_string() };
    let mut out = format!(
        "# Made by `larder init`. `larder check {name}` looks whether it is good, `larder serve --config {name}` runs it,\n\
         # and `larder reload --config {name}` has it read again. `larder config sample` prints every key there is.\n"
    );
    // First, or what somebody appends to the file would be a key of it: it ends in a route, where most words belong.
    out.push_str(&format!(
        "\n# What commands show that change something, or tell what is stored: `larder purge --config {name} URL` reads it here.\n\
         # Whoever may read this file may do as much.\n[admin]\ntoken = {}\n",
        literal::text(token)
    ));
    listeners(answers, &mut out);
    out.push_str(
        "\n# What is stored may take so much memory, connections and buffers with it, beside some 32 MiB of larder itself.\n[memory]\nsize = \"256MiB\"\n\n\
         # What is stored outlives a restart.\n#[[disk]]\n#path = \"/var/cache/larder\"\n#size = \"10GiB\"\n\n\
         # A line for each request, on standard output or in a file (path = \"/var/log/larder/access.log\"). The number that the page of an error\n\
         # shows stands in it as id=…, with what failed; without a log it is found nowhere.\n[log]\npath = \"-\"\n",
    );
    if has_scripts(answers) {
        out.push_str(
            "\n# A visitor who reloads a page is answered from the store like others, and nobody has the application work by saying no-cache.\n\
             [policy]\nhonour_client_cache_control = false\n",
        );
    }
    answerers(answers, &mut out);
    out
}

/// Who answers, and the route that leads there.
fn answerers(answers: &InitFlags, out: &mut String) {
    let hosts = literal::texts(answers.hosts.iter().map(String::as_str));
    let of_hosts = if answers.hosts.is_empty() { String::new() } else { format!("host = {hosts}\n") };
    match (&answers.root, &answers.fastcgi) {
        (Some(folder), Some(fastcgi)) => scripts(answers, (folder, fastcgi), &of_hosts, out),
        (Some(folder), None) => {
            out.push_str("\n# The files of this directory answer; nothing above it is ever shown.\n[[route]]\n");
            out.push_str(&format!("{of_hosts}root = {}\n", absolute(folder)));
            if folder.join("index.php").exists() {
                out.push_str(
                    "# Nobody runs its scripts (--fastcgi), so nobody is shown them.\nclosed_paths = ['[.]php']\n",
                );
            }
            if answers.preset.as_deref() == Some("spa") {
                out.push_str(
                    "# The page that starts the application answers for what is no file: its pages have paths of their own.\nfallback = \"/index.html\"\n",
                );
            }
            match folder.join(NOT_FOUND).is_file() {
                true => out.push_str(&format!(
                    "# Pages of this folder in place of what larder would say.\nerror_pages = {{ 404 = \"/{NOT_FOUND}\" }}\n"
                )),
                false => out.push_str(&format!(
                    "# A page of this folder in place of what larder would say.\n#error_pages = {{ 404 = \"/{NOT_FOUND}\" }}\n"
                )),
            }
            out.push_str(
                "# How long browsers may show a file without asking again. Without it they ask each time, or guess.\n\
                 #cache_control = \"public, max-age=300\"\n\
                 # A directory without an index.html: \"off\" (403) or \"html\".\n#listing = \"html\"\n",
            );
        }
        (None, _) => {
            let urls = literal::list(answers.origins.iter().map(|url| literal::text(&show_origin(&wherever(url)))));
            out.push_str("\n# The web server behind larder. Several addresses take turns.\n[origin.site]\n");
            out.push_str(&format!("urls = {urls}\n\n# It answers everything that is asked here.\n[[route]]\n"));
            out.push_str(&format!("{of_hosts}origin = \"site\"\n"));
        }
    }
    match &answers.preset {
        Some(preset) => out.push_str(&format!(
            "# What is stored for whom, and for how long: `larder config preset {preset}` prints it. Whatever is written here\n\
             # comes over it, such as ttl = \"10m\".\npreset = {}\n",
            literal::text(preset)
        )),
        None if answers.root.is_none() || answers.fastcgi.is_some() => {
            out.push_str("# Pages that do not say how long they live are asked for each time. ttl gives them a life.\n#ttl = \"5m\"\n");
        }
        None => {}
    }
}

/// What many sites call the page for what is not there.
const NOT_FOUND: &str = "404.html";

/// Files, and scripts that php-fpm runs.
fn scripts(answers: &InitFlags, (folder, fastcgi): (&Path, &OriginUrl), of_hosts: &str, out: &mut String) {
    let is_wordpress = answers.preset.as_deref() == Some("wordpress");
    let address = literal::text(&show_fastcgi(&wherever(fastcgi)));
    out.push_str(&format!("\n# Where php-fpm listens, which runs the scripts.\n[origin.php]\nfastcgi = {address}\n"));
    if is_wordpress {
        out.push_str("# Or WordPress writes /index.php/ into its links.\nparams = { SERVER_SOFTWARE = \"nginx\" }\n");
    }
    out.push_str(
        "\n# The files of this directory answer, and its scripts are run and never shown; nor is anything above it.\n",
    );
    out.push_str(&format!("[[route]]\n{of_hosts}root = {}\norigin = \"php\"\n", absolute(folder)));
}

fn listeners(answers: &InitFlags, out: &mut String) {
    let address = answers.listen_address();
    let shown = literal::text(&written(&address));
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
    if let ListenAddress::Tcp(at) = address {
        out.push_str(&redirect(at));
    }
    if has_scripts(answers) {
        out.push_str(&format!(
            "\n# The application says here, on this machine, which of its pages have changed (docs/sites.md): what comes on port 80 is led to https://.\n\
             [[listen]]\naddress = {}\n",
            literal::text(PURGE_ADDRESS)
        ));
    }
    if let Some(email) = &answers.acme_email {
        out.push_str(&format!(
            "\n[acme]\n# {TERMS}\nterms_agreed = true\nemail = {}\n# To try it first, with certificates that browsers do not trust:\n\
             #directory = \"letsencrypt-staging\"\n",
            literal::text(email)
        ));
    }
}

/// Who leads those to https:// that come without: on port 80 of the same address, where TLS has its own port. On another one nobody knows where
/// they come.
fn redirect(tls: SocketAddr) -> String {
    let plain = literal::text(&written(&ListenAddress::Tcp(SocketAddr::new(tls.ip(), HTTP_PORT))));
    let led = "Who comes by http:// is led to https://";
    match tls.port() {
        HTTPS_PORT => format!("\n# {led}.\n[[listen]]\naddress = {plain}\nmode = \"redirect\"\n"),
        port => format!(
            "\n# {led}, port {port}, where somebody listens for it.\n#[[listen]]\n#address = {plain}\n#mode = \"redirect\"\n"
        ),
    }
}

/// Is it an application in PHP? Somebody has to run its scripts, and it purges what it has changed.
pub fn has_scripts(answers: &InitFlags) -> bool {
    answers.preset.as_deref().and_then(presets::named).is_some_and(presets::Preset::has_scripts)
}

/// As dist/wordpress-larder-purge.php has it.
const PURGE_ADDRESS: &str = "127.0.0.1:6081";
const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;

/// So that it is the same wherever the file lies, and on a machine that speaks another IP.
pub fn written(address: &ListenAddress) -> String {
    match address {
        ListenAddress::Tcp(at) if at.ip() == every_address() => format!("*:{}", at.port()),
        ListenAddress::Unix(path) => show_listen(&ListenAddress::Unix(from_here(path))),
        address => show_listen(address),
    }
}

/// A socket is where it is from here, and in the file paths begin at the file's folder.
fn wherever(url: &OriginUrl) -> OriginUrl {
    match url {
        OriginUrl::Unix(path) => OriginUrl::Unix(from_here(path)),
        other => other.clone(),
    }
}

/// Wherever larder is started.
fn absolute(path: &Path) -> String {
    literal::text(&from_here(path).to_string_lossy())
}

fn from_here(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
