//! `larder vcl explain FILE --request 'GET /x Host: a'`: what a program does with a request, step by step.

use std::io::{IsTerminal, Read, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use proxy::dry_runner::MockedAnswer;

use crate::limits::REQUEST_FILE_BYTES_MAX;
use crate::varnish_parameters;
use crate::vcl_command::dry_run_heads::{Asked, FieldLine, parse_answer, parse_field};
use crate::vcl_command::dry_running::{CLIENT_DEFAULT, Cached, Company, play, scene};
use crate::vcl_command::explained::{Explained, Style};

#[derive(Clone, Debug, Args)]
pub struct ExplainFlags {
    /// A VCL file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// The request: METHOD URL, then fields; a word that ends with a colon begins a field
    #[arg(long, value_name = "'GET /x Host: a'", value_parser = Asked::parse, required_unless_present = "request_file")]
    pub request: Option<Asked>,

    /// A file with the request as it goes over the wire, with its body if there is one; - reads standard input
    #[arg(long, value_name = "FILE", conflicts_with = "request")]
    pub request_file: Option<PathBuf>,

    /// One more field of the request; repeatable
    #[arg(long, short = 'H', value_name = "'Name: value'", value_parser = parse_field)]
    pub header: Vec<FieldLine>,

    /// What the backend answers, or `fails`; repeatable: one answer for each try [default: 200]
    #[arg(long, value_name = "'200 Name: value'", value_parser = parse_answer)]
    pub origin: Vec<MockedAnswer>,

    /// What the cache holds: miss (nothing), hit, stale, or what the same request left there a TIME ago
    #[arg(long, value_name = "miss|hit|stale|TIME", default_value = "miss", value_parser = Cached::parse)]
    pub cached: Cached,

    /// The client's address
    #[arg(long, value_name = "IP", default_value_t = CLIENT_DEFAULT)]
    pub client: IpAddr,

    /// A backend that is sick; repeatable
    #[arg(long, value_name = "NAME")]
    pub sick: Vec<String>,

    /// The VCL file behind return (vcl(NAME)); repeatable
    #[arg(long, value_name = "NAME=FILE", value_parser = parse_label)]
    pub label: Vec<(String, PathBuf)>,

    /// Set a parameter by the name that Varnish has for it, such as default_ttl=1h; repeatable
    #[arg(short = 'p', value_name = "NAME=VALUE", value_parser = varnish_parameters::parse_flag)]
    pub parameters: Vec<(String, String)>,

    /// Search this directory for included VCL files; repeatable [default: /etc/varnish and /usr/share/varnish/vcl]
    #[arg(long, value_name = "DIR")]
    pub vcl_path: Vec<PathBuf>,

    /// Show the statements of builtin.vcl that change nothing, too
    #[arg(long)]
    pub all: bool,

    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

pub fn explain(flags: &ExplainFlags) -> ExitCode {
    match explained(flags) {
        // A closed pipe must not end this with a panic.
        Ok(text) => {
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(why) => {
            let _ = std::io::stderr().write_all(why.as_bytes());
            ExitCode::FAILURE
        }
    }
}

fn explained(flags: &ExplainFlags) -> Result<String, String> {
    let line = |why: String| format!("error: {why}\n");
    let mut asked = match (&flags.request, &flags.request_file) {
        (Some(asked), _) => asked.clone(),
        (None, Some(path)) => from_file(path).map_err(|why| line(format!("{}: {why}", path.display())))?,
        (None, None) => return Err(line("there is no request: give --request or --request-file".to_owned())),
    };
    asked.fields.extend(flags.header.iter().cloned());
    let company = Company {
        vcl: flags.file.clone(),
        vcl_path: flags.vcl_path.clone(),
        labels: flags.label.clone(),
        parameters: flags.parameters.clone(),
        sick: flags.sick.clone(),
    };
    let mut runner = company.runner()?;
    let scene = scene(&asked, flags.client, &flags.origin);
    let (outcome, note) = play(&mut runner, &scene, flags.cached, &flags.sick).map_err(line)?;
    let explained = Explained::of(&outcome, note);
    Ok(match flags.json {
        true => format!("{}\n", explained.row()),
        false => explained.show(Style { colour: std::io::stdout().is_terminal(), all: flags.all }),
    })
}

fn from_file(path: &Path) -> Result<Asked, String> {
    let mut bytes = Vec::new();
    let source: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(std::io::stdin()),
        false => Box::new(std::fs::File::open(path).map_err(|e| e.to_string())?),
    };
    source.take(REQUEST_FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    if bytes.len() as u64 > REQUEST_FILE_BYTES_MAX {
        return Err(format!("longer than {REQUEST_FILE_BYTES_MAX} bytes (REQUEST_FILE_BYTES_MAX)"));
    }
    Asked::parse_wire(&bytes)
}

fn parse_label(text: &str) -> Result<(String, PathBuf), String> {
    let (name, file) = text.split_once('=').ok_or_else(|| format!("`{text}` is no NAME=FILE"))?;
    Ok((name.to_owned(), PathBuf::from(file)))
}
