//! Running a program: `compiler` turns the checked program into `compiled`, typed trees without a name or a conversion
//! left to look up, and `evaluator` walks those over a host.

pub(crate) mod builtin_rules;
pub(crate) mod compiled;
pub(crate) mod compiler;
pub(crate) mod evaluator;
pub(crate) mod http_dates;
pub(crate) mod lawful_values;
pub(crate) mod text_forms;
mod value_compiler;
mod value_evaluator;
