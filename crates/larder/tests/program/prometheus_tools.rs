//! Prometheus' own tool on what ships for Prometheus: the alerts are tried on made series, and the names of what a larder answers
//! under `/metrics` are looked at.

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::Path;
    use std::process::{Command, Stdio};

    use crate::http2_site::Site;
    use crate::subject::get;

    fn promtool(args: &[&str], input: &str) -> (bool, String) {
        let mut child = Command::new("promtool")
            .args(args)
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("promtool: {error}; ./setup all installs it"));
        child.stdin.take().expect("it is piped").write_all(input.as_bytes()).expect("promtool reads");
        let done = child.wait_with_output().expect("promtool ends");
        let said = [done.stdout, done.stderr].concat();
        (done.status.success(), String::from_utf8_lossy(&said).into_owned())
    }

    #[test]
    fn alerts_do_what_their_cases_say() {
        for args in [["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"]] {
            let (is_well, said) = promtool(&args, "");
            assert!(is_well, "promtool {}: {said}", args.join(" "));
        }
    }
    /// Of the former names each is wrong, which is why they are former ones.
    #[test]
    fn metrics_are_named_as_prometheus_has_it() {
        let site = Site::start("http://127.0.0.1:9", "", "");
        site.get("/");
        let text = get(site.admin, "/metrics").unwrap();
        let (_, body) = text.split_once("\r\n\r\n").unwrap_or(("", &text));
        let former = |line: &&str| line.starts_with("# HELP ") && line.contains("Deprecated: ask for");
        let former: Vec<&str> = body.lines().filter(former).filter_map(|line| line.split(' ').nth(2)).collect();
        let is_former = |line: &&str| former.iter().any(|name| line.split(' ').any(|word| word.starts_with(name)));
        let now: String = body.lines().filter(|line| !is_former(line)).map(|line| format!("{line}\n")).collect();
        let (is_well, said) = promtool(&["check", "metrics"], &now);
        assert!(is_well && said.is_empty(), "promtool check metrics: {said}");
    }
}
