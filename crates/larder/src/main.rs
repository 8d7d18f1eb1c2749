//! larder: an HTTP accelerator. The program reads what the operator typed and starts the rest.

mod addresses;
mod admin;
mod bench;
mod bench_dialects;
mod bench_flags;
mod bench_job;
mod bench_memcached;
mod bench_screen;
mod bench_show;
mod bench_sources;
mod bench_words;
mod bounded_file;
mod check;
mod check_vcl;
mod config;
mod demo;
mod edge_report;
mod explained;
mod flags;
mod import;
mod import_findings;
mod import_nginx;
mod import_squid;
mod imported_toml;
mod include_pattern;
mod lab_command;
mod lab_compare;
mod lab_origin;
mod lab_run;
mod lab_simulate;
mod limits;
mod log_writer;
mod nginx_conf;
mod nginx_guards;
mod nginx_location;
mod nginx_memcached;
mod nginx_prefixes;
mod nginx_routes;
mod nginx_tree;
mod nginx_types;
mod nginx_upstream;
mod open_files;
mod panics;
mod plan;
mod process_memory;
mod quantities;
mod rehearsal_heads;
mod rehearsal_trace;
mod rehearsing;
mod running;
mod say;
mod serve;
mod signals;
mod simulation;
mod squid_access;
mod squid_conf;
mod squid_peers;
mod varnish_front;
mod varnish_parameters;
mod vcl_command;
mod vcl_expect;
mod vcl_explain;
mod vcl_fmt;
mod vcl_loading;
mod vcl_remote;
mod vcl_suite;
mod vcl_test;
mod vcl_world;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

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
    let words = match bench_words::translate(typed) {
        Ok(words) => words,
        Err(sentence) => {
            say::say!("error: {sentence}");
            return ExitCode::from(2);
        }
    };
    match flags::Flags::parse_from(words).command {
        flags::Command::Serve(flags) => serve::serve(*flags),
        flags::Command::Demo(flags) => demo::demo(&flags),
        flags::Command::Check(flags) => check::check(&flags),
        flags::Command::Import(flags) => import::import(&flags),
        flags::Command::Bench(flags) => bench::bench(&flags),
        flags::Command::Lab { command } => lab_command::lab(&command),
        flags::Command::Vcl { command } => vcl_command::vcl(&command),
    }
}
