//! A route on its way to becoming statements, and what its statements need around them.

use std::collections::BTreeSet;

use proxy::settings::RouteSettings;

use super::vcl_statements::Statements;
use super::words_without_vcl::Notes;

/// The field of a request that says which route it has, until it is asked for.
pub const ROUTE: &str = "Larder-Route";
/// The field of a request that says what its route has decided.
pub const DECIDED: &str = "Larder-Says";
/// Where a fetch keeps the number of the route, which no origin is told.
pub const KEPT_ROUTE: &str = "var.get(\"route\")";

/// A route that the program knows.
#[derive(Clone, Copy)]
pub struct Printed<'a> {
    /// From 1, in the order of the file.
    pub number: usize,
    pub route: &'a RouteSettings,
}

/// What the parts of the program need before them.
#[derive(Default)]
pub struct Needs {
    pub modules: BTreeSet<&'static str>,
    pub acls: Vec<String>,
    pub notes: Notes,
}

/// A subroutine, if there is something in it.
pub fn subroutine(name: &str, comment: &str, body: &Statements) -> String {
    if body.is_empty() {
        return String::new();
    }
    let comment = if comment.is_empty() { String::new() } else { format!("# {comment}\n") };
    format!("{comment}sub {name} {{\n{}}}\n", body.draw(1))
}

/// What is said for some routes, each by itself.
pub fn by_route<'a>(
    known: &[Printed<'a>],
    which: &str,
    mut say: impl FnMut(Printed<'a>, &mut Statements),
) -> Statements {
    let mut all = Statements::default();
    for printed in known {
        let mut own = Statements::default();
        say(*printed, &mut own);
        if !own.is_empty() {
            all.when(&format!("{which} == \"{}\"", printed.number), own);
        }
    }
    all
}
