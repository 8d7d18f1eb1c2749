//! The reports of a matrix run: a table for the terminal, CSV, one HTML page, and the comparison of two runs.
//!
//! They stand at the end of the story: everything is taken from [`LabResults`](crate::results::LabResults) as it was
//! written, so a report can be made again years later from `results.json`. What all of them say alike (words, ranks,
//! verdicts) is made once, in `cell_words`, `ranking` and `verdict_sentences`. Nothing here measures, reads a file or a clock.

pub(crate) mod cell_words;
mod cells_csv;
mod comparison;
mod comparison_words;
#[cfg(test)]
mod example_results;
mod ranking;
mod report_page;
mod terminal_table;
mod verdict_sentences;

pub use cell_words::grouped;
pub use cells_csv::csv;
pub use comparison::{CellBroken, CellChange, Comparison, THRESHOLD_DEFAULT, compare};
pub use comparison_words::comparison_text;
pub use report_page::html;
pub use terminal_table::{TableForm, table};
