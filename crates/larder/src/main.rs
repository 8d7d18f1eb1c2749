//! larder: an HTTP accelerator. The program reads what the operator typed and starts the rest.

mod acme_board;
mod acme_flags;
mod acme_plan;
mod acme_service;
mod addresses;
mod admin;
mod admin_client;
mod authority_files;
mod bounded_file;
mod build_identity;
mod check;
mod check_vcl;
mod command_examples;
mod completions;
mod config;
mod config_command;
mod core_dumps;
mod crash_report;
mod demo;
mod disk_watch;
mod edge_report;
mod ending_signals;
mod expiry_watch;
mod explain_command;
mod explain_text;
mod fit_connections;
mod flag_settings;
mod flags;
mod fleet_command;
mod fleet_plan;
mod given_sockets;
mod group_memory;
mod handing_over;
mod held_config;
mod hsts;
mod import;
mod init;
mod init_flags;
mod init_text;
mod kept_listeners;
mod kernel_random;
mod limits;
mod live_command;
mod load_tool;
mod lock_holder;
mod log_command;
mod log_writer;
mod machine_check;
mod man_pages;
mod memory_check;
mod name_check;
mod named_backtrace;
mod note_command;
mod notify_socket;
mod open_files;
mod origin_check;
mod own_files;
mod panics;
mod plan;
mod plan_changes;
mod port_holder;
mod process_flags;
mod process_memory;
mod process_user;
mod purge_command;
mod quantities;
mod reload_board;
mod reload_command;
mod root_contents;
mod routes_as_vcl;
mod running;
mod running_config;
mod sandbox;
mod say;
mod serve;
mod serving_place;
mod shared_plan;
mod signals;
mod supervised;
mod support_command;
mod terminal_screen;
mod tls_files;
mod tls_flags;
mod trace_collector;
mod trace_export;
mod typed_hints;
mod upgrade_board;
mod upgrade_command;
mod varnish_front;
mod varnish_parameters;
mod vcl_command;
mod vcl_loading;
mod vcl_world;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

/// Misses and passes allocate a dozen times a request; glibc's allocator took a fifth of their time.
#[cfg(not(feature = "system-allocator"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    panics::are_said_in_a_line();
    let typed: Vec<OsString> = std::env::args_os().collect();
    if let Some(words) = varnish_front::words_of(&typed) {
        return varnish_front::run(words);
    }
    let words = match load_tool::translate(typed) {
        Ok(words) => words,
        Err(sentence) => {
            say::say!("error: {sentence}");
            return ExitCode::from(2);
        }
    };
    let flags = match flags::Flags::try_parse_from(words) {
        Ok(flags) => flags,
        Err(wrong) => return typed_hints::told(&wrong),
    };
    match flags.command {
        flags::Command::Serve(flags) => serve::serve(*flags),
        flags::Command::Demo(flags) => demo::demo(&flags),
        flags::Command::Check(flags) => check::check(&flags),
        flags::Command::Upgrade(flags) => upgrade_command::upgrade(&flags),
        flags::Command::Support(flags) => support_command::support(&flags),
        flags::Command::Note(flags) => note_command::note(&flags),
        flags::Command::Fleet { command } => fleet_command::fleet(&command),
        flags::Command::Reload(flags) => reload_command::reload(&flags),
        flags::Command::Config { command } => config_command::config(&command),
        flags::Command::Explain(flags) => explain_command::explain(&flags),
        flags::Command::Init(flags) => init::init(&flags),
        flags::Command::Import(flags) => import::import(&flags),
        flags::Command::Stat(flags) => live_command::stat(&flags),
        flags::Command::Top(flags) => live_command::top(&flags),
        flags::Command::Hist(flags) => live_command::hist(&flags),
        flags::Command::Log(flags) => log_command::log(&flags),
        flags::Command::Bench(flags) => load_tool::bench(&flags),
        flags::Command::Lab { command } => load_tool::lab(&command),
        flags::Command::Vcl { command } => vcl_command::vcl(&command),
        flags::Command::Purge(flags) => purge_command::purge(&flags),
        flags::Command::Refresh(flags) => purge_command::refresh(&flags),
        flags::Command::Warm(flags) => purge_command::warm(&flags),
        flags::Command::Tags(flags) => purge_command::tags(&flags),
        flags::Command::Ban(flags) => vcl_command::ban(&flags),
        flags::Command::Completions(flags) => completions::completions(&flags, flags::Flags::command()),
        flags::Command::Man(flags) => man_pages::man(&flags, flags::Flags::command()),
    }
}
