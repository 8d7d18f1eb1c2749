//! `larder config`: what may stand in a larder.toml, and what holds when it is read.

use std::io::Write;
use std::process::ExitCode;

use clap::Subcommand;

use crate::config;

#[derive(Clone, Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print a JSON schema of larder.toml, for editors
    #[command(after_help = SCHEMA_EXAMPLES)]
    Schema,
    /// Print a larder.toml with every key, its default, and what it does, all switched off
    Sample,
    /// Print a preset: the words of routes that sites of a kind need
    Preset {
        /// wordpress, drupal, mediawiki, static, spa or api
        #[arg(value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(config::presets::names()))]
        name: String,
    },
    /// Print a page with every key, its type, its default and an example, in Markdown
    Reference,
}

const SCHEMA_EXAMPLES: &str = "\
Examples:
  larder config schema > larder.schema.json

Even Better TOML (VS Code) and Taplo take it by a first line `#:schema ./larder.schema.json` in larder.toml; docs/config.md has more.";

/// A closed pipe must not end it with a panic.
pub fn config(command: &ConfigCommand) -> ExitCode {
    let text = match command {
        ConfigCommand::Schema => format!("{:#}\n", config::schema()),
        ConfigCommand::Sample => config::sample(),
        ConfigCommand::Preset { name } => config::presets::text_of(name).unwrap_or_default().to_owned(),
        ConfigCommand::Reference => config::reference(),
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
