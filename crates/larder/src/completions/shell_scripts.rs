//! What each shell is told to do when somebody presses the key: ask larder, and offer what it answers.

use super::Shell;

pub fn script(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => BASH,
        Shell::Zsh => ZSH,
        Shell::Fish => FISH,
    }
}

/// `$1` is the larder that is typed, `$2` what bash replaces. Where larder tells nothing, files are offered.
const BASH: &str = r#"# bash completion of larder: source <(larder completions bash)
_larder() {
    mapfile -t COMPREPLY < <("$1" completions bash --line="${COMP_LINE:0:COMP_POINT}" --replaced="$2" 2>/dev/null)
    # What goes on has no blank behind it.
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[/=] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o nosort -o bashdefault -o default -F _larder larder
"#;

/// What goes on is offered apart, for it has no blank behind it.
const ZSH: &str = r#"#compdef larder
# zsh completion of larder: source <(larder completions zsh), or as _larder in a folder of $fpath
_larder() {
    local program=${~${(Q)words[1]}} word says
    local -a whole says_whole open says_open
    while IFS=$'\t' read -r word says; do
        if [[ $word == *[/=] ]]; then
            open+=("$word") says_open+=("$word${says:+  -- $says}")
        else
            whole+=("$word") says_whole+=("$word${says:+  -- $says}")
        fi
    done < <("$program" completions zsh --line="${(j: :)words[1,CURRENT-1]} $QIPREFIX$PREFIX" 2>/dev/null)
    (( $#whole + $#open )) || { _files; return }
    (( $#open )) && compadd -l -S '' -d says_open -a open
    (( $#whole )) && compadd -l -d says_whole -a whole
}
if [[ $funcstack[1] == _larder ]]; then _larder "$@"; else compdef _larder larder; fi
"#;

const FISH: &str = r#"# fish completion of larder: larder completions fish | source
function __larder_complete
    set --local line (commandline --current-process --cut-at-cursor | string collect)
    set --local program (commandline --current-process --tokenize)[1]
    $program completions fish --line="$line" 2>/dev/null
    or __fish_complete_path (commandline --current-token)
end
complete --command larder --no-files --keep-order --arguments "(__larder_complete)"
"#;
