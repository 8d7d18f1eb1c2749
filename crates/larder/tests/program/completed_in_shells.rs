//! `larder completions`: bash, zsh and fish themselves read the script and say what they would offer.

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};

    /// A folder whose only files have names that are looked for.
    fn folder(name: &str) -> PathBuf {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("completions-{name}-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("sites")).unwrap();
        std::fs::write(folder.join("larder.toml"), "").unwrap();
        folder
    }

    /// What a shell prints; nothing where it is not installed.
    fn printed(shell: &str, name: &str, args: &[&str]) -> Option<String> {
        let program = Path::new(env!("CARGO_BIN_EXE_larder"));
        let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new(shell);
        command.args(args).env("PATH", path).env("TERM", "dumb").stdin(Stdio::null()).current_dir(folder(name));
        match command.output() {
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                assert!(output.status.success(), "{shell}: {said}");
                Some(String::from_utf8_lossy(&output.stdout).into_owned())
            }
            Err(error) => {
                println!("{shell} is not asked: {error}");
                None
            }
        }
    }

    /// `line` up to the cursor, and what bash takes for the word that it replaces.
    #[track_caller]
    fn bash(line: &str, replaced: &str) -> Vec<String> {
        let script = "source <(larder completions bash)\n\
            complete -p larder | grep -q -- '-F _larder larder' || exit 1\n\
            COMP_LINE=$1 COMP_POINT=${#1}\n\
            _larder larder \"$2\"\n\
            printf '%s\\n' \"${COMPREPLY[@]}\"";
        let args = ["--norc", "-c", script, "bash", line, replaced];
        let printed = printed("bash", "bash", &args).expect("bash is everywhere");
        printed.lines().map(str::to_owned).collect()
    }

    #[test]
    fn bash_completes_commands_flags_values_and_files() {
        assert_eq!(bash("larder lo", "lo"), ["log"]);
        assert_eq!(bash("larder log --gro", "--gro"), ["--group-by"]);
        assert_eq!(bash("larder completions ", ""), ["bash", "zsh", "fish"]);
        assert_eq!(bash("larder top --order mi", "mi"), ["misses"]);
        assert_eq!(bash("larder hist --time f", "f"), ["first-byte"]);
        assert_eq!(bash("larder log --group-by tls", "tls"), ["tls", "tls.sni", "tls.resumed"]);
        assert_eq!(bash("larder top --by cl", "cl"), ["client", "class"]);
        assert_eq!(bash("larder check la", "la"), ["larder.toml"]);
        // bash parts the word at the sign.
        assert_eq!(bash("larder check --config=la", "la"), ["larder.toml"]);
        assert_eq!(bash("larder serve --root s", "s"), ["sites/"]);
        // As it is typed in a pipe.
        assert_eq!(bash("grep x | larder vcl lo", "lo"), ["load"]);
        let commands = bash("larder ", "");
        assert!(commands.iter().any(|word| word == "serve") && commands.iter().all(|word| !word.starts_with('-')));
    }

    #[test]
    fn bash_completes_queries() {
        assert_eq!(bash("larder log -q 'class == mi", "class == mi")[0], "class == miss");
        assert_eq!(bash("larder top -q 'status > 499 and why == no-s", "status > 499 and why == no-s")[0].len(), 32);
        assert_eq!(bash("larder log -q cli", "cli"), ["'client ==", "'client !=", "'client !~", "'client ~"]);
        assert_eq!(bash("larder log --query=class==mi", "mi"), ["miss"]);
    }

    #[test]
    fn fish_completes() {
        let ask = |line: &str| {
            let script = "larder completions fish | source; complete -C $argv[1]";
            printed("fish", "fish", &["--no-config", "-c", script, line])
        };
        let Some(commands) = ask("larder lo") else { return };
        assert!(commands.starts_with("log\tTell which exchanges are over"), "{commands}");
        let query = ask("larder log -q 'class == mi").unwrap();
        assert_eq!(query.lines().next().map(str::trim_end), Some("class == miss"));
        assert_eq!(ask("larder check la").unwrap().trim_end(), "larder.toml");
    }

    /// In a terminal of its own, for zsh completes nowhere else.
    #[test]
    fn zsh_completes() {
        let script = "zmodload zsh/zpty || exit 1\n\
            zpty typed zsh -f -i\n\
            tell() { zpty -w -n typed $1; local said= all=; repeat 200; do zpty -r -t typed said && all+=$said; \
                     [[ $all == *$2* ]] && break; sleep 0.05; done; print -r -- $all; [[ $all == *$2* ]] }\n\
            tell $'autoload -U compinit; compinit -u -D; source <(larder completions zsh); print re\"\"ady\\n' ready || exit 1\n\
            tell $'larder completions f\\t' 'completions fish' && tell $'\\x15' '' && \
            tell $'larder log -q \\'class == mi\\t' 'class == miss' && tell $'\\x15' '' && \
            tell $'larder check la\\t' 'check larder.toml'";
        if let Some(printed) = printed("zsh", "zsh", &["-f", "-c", script]) {
            assert!(printed.contains("larder.toml"), "{printed}");
        }
    }
}
