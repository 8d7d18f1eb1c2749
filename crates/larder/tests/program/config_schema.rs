//! The schema that `larder config schema` prints, by a validator that others wrote (Python's jsonschema): the sample passes, and files
//! that are wrong do not.

use std::io::Write;
use std::process::{Command, Stdio};

fn larder(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_larder")).args(arguments).output().expect("larder can be started");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("the output is text")
}

/// What the validator says of each of these files, in one line; empty: it is good.
fn verdicts(files: &[String]) -> Vec<String> {
    let instances: Vec<serde_json::Value> = files
        .iter()
        .map(|text| serde_json::to_value(toml::from_str::<toml::Table>(text).expect(text)).expect("TOML is JSON"))
        .collect();
    let schema: serde_json::Value = serde_json::from_str(&larder(&["config", "schema"])).expect("the schema is JSON");
    let script = "import json, sys, jsonschema\n\
                  asked = json.load(sys.stdin)\n\
                  kind = jsonschema.Draft7Validator\n\
                  kind.check_schema(asked['schema'])\n\
                  for file in asked['files']:\n\
                  \x20   print(' | '.join(error.message.replace('\\n', ' ') for error in kind(asked['schema']).iter_errors(file)))\n";
    let mut python = Command::new("python3")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 is there (./setup all)");
    let asked = serde_json::json!({ "schema": schema, "files": instances }).to_string();
    python.stdin.take().expect("it was asked for").write_all(asked.as_bytes()).expect("python3 reads");
    let output = python.wait_with_output().expect("python3 ends");
    assert!(output.status.success(), "python3 with jsonschema is wanted: ./setup all");
    String::from_utf8(output.stdout).expect("the output is text").lines().map(str::to_owned).collect()
}

/// The sample with every setting switched on.
fn everything(sample: &str) -> String {
    let setting = |line: &str| match line.strip_prefix('#') {
        Some(setting) if !setting.is_empty() && !setting.starts_with(' ') => Some(setting.to_owned()),
        Some(_) => None,
        None => Some(line.to_owned()),
    };
    sample.lines().filter_map(setting).map(|line| line + "\n").collect()
}

/// Words of routes in the shortest of the forms that they take.
const SHORT_FORMS: &str = "[origin.web]\nurls = \"http://a\"\n[[route]]\ncookies = \"strip\"\nquery = \"ignore\"\nttl = \"5m\"\n\
    cors = true\nbasic_auth = \"users\"\nrate_limit = \"10/s\"\nmaintenance = false\ncache = \"force\"\n[[route]]\npath = \"/a\"\n\
    redirect = \"/b\"\nrate_limit = [\"10/s\", { requests = 100, per = \"1m\" }]\n[[route]]\npath = \"/c\"\nrespond = \"no\"\n";

#[test]
fn the_schema_takes_the_sample_and_refuses_what_is_wrong() {
    let sample = larder(&["config", "sample"]);
    let on_disk = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/larder.toml"));
    let good = [
        sample.clone(),
        everything(&sample),
        SHORT_FORMS.to_owned(),
        on_disk.expect("the sample is part of the repository"),
        String::new(),
    ];
    for (file, verdict) in good.iter().zip(verdicts(&good)) {
        assert_eq!(verdict, "", "{file}");
    }
    let wrong = [
        ("server_nmae = \"edge\"", "server_nmae"),
        ("workers = 0", "0"),
        ("workers = \"many\"", "many"),
        ("trusted_proxies = 7", "7"),
        ("[listen]\naddress = \"127.0.0.1:80\"", "array"),
        ("[[listen]]\nmode = \"forward\"", "address"),
        ("[[listen]]\naddress = \"*:80\"\nmode = \"proxy\"", "proxy"),
        ("[[listen]]\naddress = \"*:80\"\ntls = { certt = \"x\" }", "certt"),
        ("[origin.web]\nurl = \"http://a\"", "url"),
        ("[origin.web]\nurls = \"http://a\"\nqueue_timeout = 10", "10"),
        ("[origin.web]\nurls = \"http://a\"\ntls = { verify = \"no\" }", "no"),
        ("[[route]]\nroot = \"/srv\"\nlisting = \"xml\"", "xml"),
        ("[[route]]\nroot = \"/srv\"\nerror_pages = { 404 = 1 }", "1"),
        ("[[route]]\norigin = 3", "3"),
        ("[[route]]\ncookies = { keeps = [] }", "keeps"),
        ("[[route]]\nrate_limit = [{ request = 1 }]", "request"),
        ("[limits]\nidle_timeout = \"10 min\"", "10 min"),
        ("[limits]\nconnections_max = 0", "0"),
        ("[limits]\nobject_bytes_max = \"1.5G\"", "1.5G"),
        ("[limits]\nfrobs_max = 1", "frobs_max"),
        ("[memory]\nsize = true", "True"),
        ("[policy]\nignore_query = [1]", "1"),
        ("[policy]\ndefault_tll = 3", "default_tll"),
        ("[esi]\npages = \"all\"", "all"),
        ("[forward]\nports = [0]", "0"),
        ("[[forward.parent]]\nweight = 1", "address"),
        ("[log]\nformat = \"json\"", "path"),
        ("[resolver]\nhosts = { a = 1 }", "1"),
    ];
    let files: Vec<String> = wrong.iter().map(|(file, _)| (*file).to_owned()).collect();
    for ((file, part), verdict) in wrong.iter().zip(verdicts(&files)) {
        assert!(verdict.contains(part), "{file}: {verdict:?}");
    }
}
