//! The flags of `larder init`, each of which stands for an answer to one of its questions.

use std::path::PathBuf;

use clap::Args;
use proxy::settings::{ListenAddress, OriginUrl};

use crate::acme_plan::is_email;
use crate::addresses::{parse_fastcgi, parse_listen, parse_origin};
use crate::config::{self, presets};
use crate::flag_settings::default_address;

#[derive(Clone, Debug, Default, Args)]
pub struct InitFlags {
    /// The web server to stand in front of: http://HOST[:PORT], https:// or unix:/PATH; several share the load
    #[arg(long = "origin", value_name = "URL", value_parser = parse_origin)]
    pub origins: Vec<OriginUrl>,

    /// Serve the files of this directory
    #[arg(long, value_name = "DIR", conflicts_with = "origins")]
    pub root: Option<PathBuf>,

    /// Have its scripts run by the php-fpm that listens here: unix:/PATH or HOST:PORT
    #[arg(long, value_name = "ADDRESS", requires = "root", conflicts_with = "origins", value_parser = parse_fastcgi)]
    pub fastcgi: Option<OriginUrl>,

    /// Cache as sites of this kind need it (larder config preset NAME shows how) [default: as answers say themselves]
    #[arg(long, value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(presets::names()))]
    pub preset: Option<String>,

    /// Answer for this host name alone; repeatable, or several with commas [default: any]
    #[arg(long = "host", value_name = "NAME", value_delimiter = ',', value_parser = parse_host)]
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

impl InitFlags {
    /// Where it listens, as is said or as is usual.
    pub fn listen_address(&self) -> ListenAddress {
        let is_https = self.acme_email.is_some() || self.cert.is_some();
        let usual = || {
            if is_https { parse_listen("*:443").ok() } else { parse_listen(default_address().trim_matches('"')).ok() }
        };
        self.listen.clone().or_else(usual).unwrap_or_else(|| crate::plan::listener_by_default().address)
    }
}

/// A name as a certificate may have it and a route may be for.
pub fn parse_host(written: &str) -> Result<String, String> {
    let written = written.trim();
    if written.contains(char::is_whitespace) {
        return Err("several names have commas between them, or a --host each".to_owned());
    }
    // Names of this machine alone are good names; that none can be certified is said where one is ordered.
    config::route_host(&written.to_ascii_lowercase())
        .ok_or_else(|| "a name such as www.example.org, *.example.org or localhost, without a port".to_owned())
}

fn parse_email(written: &str) -> Result<String, String> {
    if is_email(written) { Ok(written.to_owned()) } else { Err("must be such as admin@example.org".to_owned()) }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::flags::{Command, Flags};

    fn hosts(written: &str) -> Result<Vec<String>, String> {
        let typed = ["larder", "init", "--origin", "http://a:1", "--host", written];
        match Flags::try_parse_from(typed).map_err(|wrong| wrong.to_string())?.command {
            Command::Init(flags) => Ok(flags.hosts),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_machine_of_ones_own_has_a_name() {
        assert_eq!(
            hosts("localhost,127.0.0.1,*.a.test"),
            Ok(["localhost", "127.0.0.1", "*.a.test"].map(str::to_owned).to_vec())
        );
        for wrong in ["a.test:80", "http://a.test", "a_b/", "*"] {
            assert!(hosts(wrong).unwrap_err().contains("a name such as"), "{wrong}");
        }
    }

    #[test]
    fn names_have_commas_between_them_and_perhaps_blanks() {
        assert_eq!(
            hosts("a.test, www.A.test ,b.test"),
            Ok(["a.test", "www.a.test", "b.test"].map(str::to_owned).to_vec())
        );
        assert!(hosts("a.test b.test").unwrap_err().contains("several names have commas between them"));
    }
}
