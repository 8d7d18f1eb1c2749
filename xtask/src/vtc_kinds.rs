//! Which of Varnish's tests are for any HTTP cache that reads VCL, and which only for Varnish itself, by the words that a file
//! uses. vcl.md calls the former tiers A and B.

/// Commands at the beginning of a line that look at more than the wire.
const COMMANDS: [&str; 7] = ["process", "shell", "haproxy", "tunnel", "syslog", "setenv", "barrier_sync"];
/// What of the management protocol is asked; `param.set` alone is no test of it.
const ASKED: [&str; 5] = ["-cliok", "-clierr", "-cliexpect", "-clijson", "-cli"];
/// What a machine must have that is no part of HTTP.
const FEATURES: [&str; 6] = ["cmd", "user_vcache", "group_varnish", "persistent_storage", "setenv", "ssl"];
const MODULES: [&str; 3] = ["debug", "unix", "proxy"];
/// Tests of varnishtest itself, of Varnish's own programs, and of HAProxy.
const FAMILIES: [char; 3] = ['a', 'u', 'h'];

pub fn needs_only_the_wire(name: &str, text: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.starts_with('#')).collect();
    let is_of_a_family = name.starts_with(FAMILIES) && name[1..].starts_with(|byte: char| byte.is_ascii_digit());
    !is_of_a_family && lines.iter().all(|line| is_of_the_wire(line))
}

fn is_of_the_wire(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let first = words.first().copied().unwrap_or_default();
    let behind = |word: &str| words.iter().position(|found| *found == word).and_then(|at| words.get(at + 1));
    let asks = |word: &&str| ASKED.contains(word);
    let sets =
        || words.iter().skip_while(|word| !asks(word)).nth(1).is_some_and(|command| command.contains("param.set"));
    !COMMANDS.contains(&first)
        && (!words.iter().any(asks) || words.contains(&"-cliok") && sets())
        && !(first == "feature" && words.iter().any(|word| FEATURES.contains(word)))
        && !behind("import").is_some_and(|module| MODULES.contains(&module.trim_end_matches(';')))
        && !(first == "varnish" && words.get(1).is_some_and(|name| *name != "v1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, line: &str, expect: bool) {
        let text = format!("varnishtest \"a\"\n\nserver s1 {{\n\trxreq\n}} -start\n{line}\n");
        assert_eq!(needs_only_the_wire(name, &text), expect, "{name}: {line}");
    }

    #[test]
    fn a_file_is_of_the_wire_by_what_it_uses() {
        check("b00001", "varnish v1 -vcl+backend {} -start", true);
        check("b00001", "varnish v1 -cliok \"param.set feature +http2\"", true);
        check("b00001", "varnish v1 -expect n_object == 1", true);
        check("b00001", "# shell {true}", true);
        check("a00001", "", false);
        check("std_b00001", "\timport std;", true);
        check("b00001", "varnish v1 -cliok \"vcl.use vcl1\"", false);
        check("b00001", "varnish v1 -clierr 106 \"param.set a b\"", false);
        check("b00001", "varnish v2 -start", false);
        check("b00001", "shell {true}", false);
        check("b00001", "feature cmd true", false);
        check("b00001", "\timport debug;", false);
    }
}
