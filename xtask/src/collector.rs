//! The OpenTelemetry Collector, the real one, gets spans and log records of larder's: does it understand each of them as what it is? It writes
//! down what it has understood, and that is held against what was asked.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::go_peer::{self, Started, start};
use crate::original_scenario::Answer;
use crate::ports;
use crate::process_signal;
use crate::project::{Project, Stopwatch};
use crate::scenario_origin::RecordingOrigin;

/// Its sources, with what they are made of pinned.
const SOURCES: &str = "spec/collector";
const PATIENCE_S: f64 = 30.0;
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Stands behind all that came at once.
const END: &str = "otelcol.signal";

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

pub fn task(project: &Project) -> Result<(), String> {
    project.build_larder()?;
    let program = go_peer::build(project, "collector", SOURCES, &["."])?;
    let folder = project.scratch("collector")?;
    let page = Answer { headers: vec!["Cache-Control: max-age=600".to_owned()], ..Answer::default() };
    let origin = RecordingOrigin::start(vec![page])?;
    let (collector, larder) = (ports::free()?, ports::free()?);
    let _collector = start_collector(&program, &folder, collector)?;
    let mut served = start_larder(project, &folder, [larder, origin.port, collector])?;
    let lines = format!("traceparent: 00-{TRACE}-{PARENT}-01\r\ntracestate: a=1,b=\"2\"\r\n");
    for (path, lines) in
        [("/page?sig=secret", &lines[..]), ("/page?sig=secret", ""), ("/down", "User-Agent: a\"\u{e9}\\\r\n")]
    {
        ask(larder, path, lines)?;
    }
    // What waits is sent at the end.
    process_signal::send("TERM", &served.0.id().to_string());
    served.0.wait().map_err(|error| format!("larder: {error}"))?;
    let spans = understood(&folder.join("collector.log"), "Span #", 5)?;
    let records = understood(&folder.join("collector.log"), "LogRecord #", 3)?;
    let faults = [faults_of_spans(&spans), faults_of_records(&records, &spans)].concat();
    println!("{} spans and {} log records understood by the OpenTelemetry Collector", spans.len(), records.len());
    faults.iter().for_each(|fault| println!("{fault}"));
    if faults.is_empty() { Ok(()) } else { Err(format!("{} faults", faults.len())) }
}

fn start_collector(program: &Path, folder: &Path, port: u16) -> Result<Started, String> {
    let config = format!(
        "yaml:{{receivers: {{otlp: {{protocols: {{http: {{endpoint: 127.0.0.1:{port}}}}}}}}}, exporters: {{debug: {{verbosity: detailed}}}}, \
         service: {{telemetry: {{metrics: {{level: none}}}}, pipelines: \
         {{traces: {{receivers: [otlp], exporters: [debug]}}, logs: {{receivers: [otlp], exporters: [debug]}}}}}}}}"
    );
    start(Command::new(program).args(["--config", &config]), &folder.join("collector.log"), port)
}

fn start_larder(project: &Project, folder: &Path, [port, origin, collector]: [u16; 3]) -> Result<Started, String> {
    let nowhere = ports::free()?;
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:{port}\"\n[origin.app]\nurls = [\"http://127.0.0.1:{origin}\"]\n\
         [origin.down]\nurls = [\"http://127.0.0.1:{nowhere}\"]\n[[route]]\norigin = \"app\"\n\
         [[route]]\npath = \"/down\"\norigin = \"down\"\n[admin]\naddress = \"off\"\n\
         [traces]\nendpoint = \"http://127.0.0.1:{collector}\"\nsample = 1.0\nlogs = true\n"
    );
    let config = folder.join("larder.toml");
    fs::write(&config, text).map_err(|error| format!("{}: {error}", config.display()))?;
    let mut command = Command::new(project.larder());
    start(command.args(["serve", "--no-supervisor"]).arg("--config").arg(config), &folder.join("larder.log"), port)
}

fn ask(port: u16, path: &str, lines: &str) -> Result<(), String> {
    let asked = || {
        let mut client = TcpStream::connect(("127.0.0.1", port))?;
        write!(client, "GET {path} HTTP/1.1\r\nHost: a.test\r\n{lines}Connection: close\r\n\r\n")?;
        client.read_to_end(&mut Vec::new())
    };
    asked().map(drop).map_err(|error| format!("{path}: {error}"))
}

/// Each span or log record as a text of `NAME: VALUE` lines, once there are so many. `begins`: what stands in front of each.
fn understood(log: &Path, begins: &str, count: usize) -> Result<Vec<String>, String> {
    let begun = Stopwatch::start();
    loop {
        let text = fs::read_to_string(log).map_err(|error| format!("{}: {error}", log.display()))?;
        let found: Vec<&str> = text.split(begins).skip(1).collect();
        // The last one is whole when what stands behind it is there.
        if found.len() >= count && found.last().is_some_and(|one| one.contains(END)) {
            return Ok(found.iter().map(|one| one.split(END).next().unwrap_or_default().to_owned()).collect());
        }
        if begun.seconds() > PATIENCE_S {
            return Err(format!("{} of `{begins}` have come and not {count}: {}", found.len(), log.display()));
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// What one of them says behind a name.
fn said<'a>(span: &'a str, name: &str) -> &'a str {
    let value =
        |line: &'a str| line.trim().trim_start_matches("-> ").strip_prefix(name)?.trim_start().strip_prefix(':');
    span.lines().find_map(value).map_or("", str::trim)
}

/// What of these pairs is not said.
fn unsaid(of: &str, one: Option<&String>, pairs: &[(&str, &str)]) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, value) in pairs {
        let found = one.map_or("nothing of it", |one| said(one, name));
        if found != *value {
            faults.push(format!("{of}: {name} is {found:?} and not {value:?}"));
        }
    }
    faults
}

/// Each stands in the span of its exchange.
fn faults_of_records(records: &[String], spans: &[String]) -> Vec<String> {
    let of_class = |all: &'_ [String], class: &str| {
        all.iter().find(|one| said(one, "larder.class") == class && !said(one, "Kind").contains("Client")).cloned()
    };
    let mut faults = Vec::new();
    for (class, pairs) in [
        ("Str(miss)", [("SeverityNumber", "Info(9)"), ("Body", "Str(GET a.test/page?sig=REDACTED 200 miss)")]),
        ("Str(hit)", [("SeverityText", "INFO"), ("Body", "Str(GET a.test/page?sig=REDACTED 200 hit)")]),
        ("Str(error)", [("SeverityNumber", "Error(17)"), ("Body", "Str(GET a.test/down 502 error origin-connect)")]),
    ] {
        let (record, span) = (of_class(records, class), of_class(spans, class).unwrap_or_default());
        faults.extend(unsaid(&format!("the log record of {class}"), record.as_ref(), &pairs));
        let ids = [("Trace ID", said(&span, "Trace ID")), ("Span ID", said(&span, "ID"))];
        faults.extend(unsaid(&format!("the log record of {class}"), record.as_ref(), &ids));
    }
    faults
}

fn faults_of_spans(spans: &[String]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut expect = |of: &str, span: Option<&String>, pairs: &[(&str, &str)]| faults.extend(unsaid(of, span, pairs));
    let of = |kind: &str, class: &str| {
        spans
            .iter()
            .find(|span| said(span, "Kind") == kind && (class.is_empty() || said(span, "larder.class") == class))
    };
    let (miss, hit, error) = (of("Server", "Str(miss)"), of("Server", "Str(hit)"), of("Server", "Str(error)"));
    let tries: Vec<&String> = spans.iter().filter(|span| said(span, "Kind") == "Client").collect();
    let id = |span: Option<&String>| span.map_or("", |span| said(span, "ID")).to_owned();
    let under = |parent: Option<&String>| tries.iter().find(|span| said(span, "Parent ID") == id(parent)).copied();
    expect(
        "the miss",
        miss,
        &[
            ("Trace ID", TRACE),
            ("Parent ID", PARENT),
            ("TraceState", "a=1,b=\"2\""),
            ("Name", "GET /"),
            ("Status code", "Unset"),
            ("url.query", "Str(sig=REDACTED)"),
            ("http.response.status_code", "Int(200)"),
            ("larder.forwarded", "Str(uri-miss)"),
        ],
    );
    expect("its try", under(miss), &[("Trace ID", TRACE), ("larder.origin", "Str(app)"), ("Status code", "Unset")]);
    expect(
        "the hit",
        hit,
        &[("Parent ID", ""), ("http.request.method", "Str(GET)"), ("server.address", "Str(a.test)")],
    );
    expect(
        "the error",
        error,
        &[
            ("Status code", "Error"),
            ("http.response.status_code", "Int(502)"),
            ("user_agent.original", "Str(a\"\u{e9}\\)"),
        ],
    );
    expect("its try", under(error), &[("Status code", "Error"), ("error.type", "Str(origin-connect)")]);
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_read_line_by_line() {
        let span = "0\n    Trace ID       : 0af7\n    Parent ID      : \n    Kind           : Server\nAttributes:\n     -> url.path: Str(/a)\n";
        let read = ["Trace ID", "Parent ID", "Kind", "url.path", "url"].map(|name| said(span, name));
        assert_eq!(read, ["0af7", "", "Server", "Str(/a)", ""]);
    }
}
