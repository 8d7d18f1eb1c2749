//! The commands of the management protocol: how they are typed, how many words they take, and who does them.

use crate::answers::Answer;
use crate::commands::{Asked, Front};
use crate::{backend_commands, ban_commands, parameter_commands, status_commands, vcl_commands};

/// One command.
pub(crate) struct Command {
    pub(crate) name: &'static str,
    /// Behind the name, for `help`.
    pub(crate) syntax: &'static str,
    pub(crate) purpose: &'static str,
    /// Words behind the name, without `-j`.
    pub(crate) words: (usize, usize),
    pub(crate) has_json: bool,
    pub(crate) when: When,
    pub(crate) act: fn(&Front, &Asked<'_>) -> Answer,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Always,
    /// What is asked is only known while requests are served.
    Running,
    /// For tests: `help` shows it with -a or -d.
    Debug,
}

use When::{Always, Debug, Running};

const MANY: usize = usize::MAX;

const fn row(
    name: &'static str,
    syntax: &'static str,
    words: (usize, usize),
    has_json: bool,
    when: When,
    act: fn(&Front, &Asked<'_>) -> Answer,
    purpose: &'static str,
) -> Command {
    Command { name, syntax, purpose, words, has_json, when, act }
}

/// By name.
pub(crate) const COMMANDS: &[Command] = &[
    row("auth", "<response>", (1, 1), false, Always, status_commands::auth, "Show that you know the secret."),
    row(
        "backend.list",
        "[-j] [-p] [<backend_pattern>]",
        (0, 2),
        true,
        Running,
        backend_commands::list,
        "Show backends and their health; -p with their probes.",
    ),
    row(
        "backend.set_health",
        "<backend_pattern> [auto|healthy|sick]",
        (2, 2),
        false,
        Running,
        backend_commands::set_health,
        "Decide yourself about the health of backends.",
    ),
    row(
        "ban",
        "<field> <operator> <arg> [&& <field> <oper> <arg> ...]",
        (3, MANY),
        false,
        Running,
        ban_commands::ban,
        "Ban what is stored and meets all conditions.",
    ),
    row("ban.list", "[-j]", (0, 0), true, Running, ban_commands::list, "Show the bans in force."),
    row("banner", "", (0, 0), false, Always, status_commands::banner, "Show what one is greeted with."),
    row("debug.fragfetch", "", (1, 1), false, Debug, status_commands::nothing, "Taken, and without effect."),
    row(
        "debug.listen_address",
        "",
        (0, 0),
        false,
        Debug,
        status_commands::listen_address,
        "Show what is listened on, with the ports that were picked.",
    ),
    row("debug.srandom", "", (0, 1), false, Debug, status_commands::nothing, "Taken, and without effect."),
    row(
        "debug.xid",
        "[<xid> [<cachesize>]]",
        (0, 2),
        false,
        Debug,
        status_commands::xid,
        "Number transactions from here on.",
    ),
    row(
        "help",
        "[-j|-a|-d|<command>]",
        (0, 1),
        true,
        Always,
        status_commands::help,
        "Show the commands, or one of them; -a with those for tests, -d these alone.",
    ),
    row("panic.clear", "[-z]", (0, 1), false, Always, status_commands::panic_clear, "Forget a panic."),
    row("panic.show", "[-j]", (0, 0), true, Always, status_commands::panic_show, "Show the last panic."),
    row("param.reset", "<param>", (1, 1), false, Always, parameter_commands::reset, "Set a parameter to its default."),
    row("param.set", "[-j] <param> <value>", (2, 2), true, Always, parameter_commands::set, "Set a parameter."),
    row(
        "param.show",
        "[-l|-j] [<param>|changed]",
        (0, 2),
        true,
        Always,
        parameter_commands::show,
        "Show parameters and their values.",
    ),
    row("pid", "[-j]", (0, 0), true, Always, status_commands::pid, "Show the numbers of the processes."),
    row("ping", "[-j] [<timestamp>]", (0, 1), true, Always, status_commands::ping, "Ask whether somebody is there."),
    row("quit", "", (0, 0), false, Always, status_commands::quit, "End this conversation."),
    row("start", "", (0, 0), false, Always, status_commands::start, "Begin to serve."),
    row("status", "[-j]", (0, 0), true, Always, status_commands::status, "Ask whether requests are served."),
    row("stop", "", (0, 0), false, Always, status_commands::stop, "End serving; what is in memory is gone."),
    row("storage.list", "[-j]", (0, 0), true, Always, status_commands::storages, "Show the stores."),
    row("vcl.deps", "[-j]", (0, 0), true, Always, vcl_commands::deps, "Show what loaded programs depend on."),
    row(
        "vcl.discard",
        "<name_pattern>...",
        (1, MANY),
        false,
        Always,
        vcl_commands::discard,
        "Unload programs, or labels.",
    ),
    row(
        "vcl.inline",
        "<configname> <quoted_VCLstring> [auto|cold|warm]",
        (2, 3),
        false,
        Always,
        vcl_commands::inline,
        "Load a program that follows.",
    ),
    row(
        "vcl.label",
        "<label> <configname>",
        (2, 2),
        false,
        Always,
        vcl_commands::label,
        "Let a label stand for a program.",
    ),
    row("vcl.list", "[-j]", (0, 0), true, Always, vcl_commands::list, "Show what is loaded."),
    row(
        "vcl.load",
        "<configname> <filename> [auto|cold|warm]",
        (2, 3),
        false,
        Always,
        vcl_commands::load,
        "Load a program from a file.",
    ),
    row("vcl.show", "[-v] [<configname>]", (0, 2), false, Always, vcl_commands::show, "Show the text of a program."),
    row(
        "vcl.state",
        "<configname> [auto|cold|warm]",
        (2, 2),
        false,
        Always,
        vcl_commands::state,
        "Say when a program probes its backends.",
    ),
    row(
        "vcl.use",
        "<configname|label>",
        (1, 1),
        false,
        Always,
        vcl_commands::use_vcl,
        "Let a program decide from now on.",
    ),
];

impl Command {
    pub(crate) fn shown(&self) -> String {
        format!("{} {}", self.name, self.syntax).trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_stand_by_name_and_once() {
        assert!(COMMANDS.is_sorted_by(|a, b| a.name < b.name));
    }
}
