//! A random program: the declarations that all of them share, and some subroutines.

use super::random_expressions::Scope;
use super::random_statements::Statements;
use super::syntax_tree::{Program, Statement, Subroutine, forget};
use crate::dice::Dice;

const DECLARATIONS: [&str; 9] = [
    "import std;",
    "import cookie;",
    "import purge;",
    "import directors;",
    "backend default { .host = \"127.0.0.1\"; .port = \"{port}\"; }",
    "backend other { .host = \"127.0.0.1\"; .port = \"{port}\"; .host_header = \"other.example\"; }",
    "backend dead { .host = \"127.0.0.1\"; .port = \"1\"; }",
    "backend unborn none;",
    "acl near { \"127.0.0.0\"/8; ! \"127.0.0.9\"; \"10.1.0.0\"/16; }",
];

/// Two directors that say the same in every process.
const INIT: [&str; 6] = [
    "new ring = directors.round_robin();",
    "ring.add_backend(default);",
    "ring.add_backend(other);",
    "new first = directors.fallback();",
    "first.add_backend(default);",
    "first.add_backend(other);",
];

/// In the order in which they are asked, and how often of ten programs they are there.
const SUBROUTINES: [(&str, Scope, u64); 11] = [
    ("vcl_recv", Scope::Recv, 8),
    ("vcl_hash", Scope::Hash, 2),
    ("vcl_hit", Scope::Hit, 3),
    ("vcl_miss", Scope::Miss, 3),
    ("vcl_pass", Scope::Pass, 2),
    ("vcl_purge", Scope::Purge, 2),
    ("vcl_backend_fetch", Scope::BackendFetch, 4),
    ("vcl_backend_response", Scope::BackendResponse, 8),
    ("vcl_backend_error", Scope::BackendError, 4),
    ("vcl_deliver", Scope::Deliver, 7),
    ("vcl_synth", Scope::Synth, 4),
];

pub fn drawn(dice: &mut Dice) -> Program {
    let mut subroutines = vec![Subroutine {
        name: "vcl_init".to_string(),
        body: INIT.iter().map(|line| Statement::Plain(line.to_string())).collect(),
    }];
    let statements_max = 1 + dice.below(6);
    // A subroutine that others call knows only what all of them know.
    let own_of_clients = dice.below(4) == 0;
    if own_of_clients {
        let body = Statements { dice, scope: Scope::Purge }.body(2);
        let no_end = body.into_iter().filter(|statement| !ends(statement)).collect();
        subroutines.push(Subroutine { name: "own_client".to_string(), body: no_end });
    }
    let knows_purge = dice.below(3) == 0;
    for (name, scope, often) in SUBROUTINES {
        if dice.below(10) >= often {
            continue;
        }
        let mut body = Statements { dice, scope }.body(statements_max);
        if knows_purge && scope == Scope::Recv {
            let then = vec![Statement::Plain("return (hash);".to_string())];
            let condition = "req.method == \"PURGE\"".to_string();
            body.insert(0, Statement::If { condition, then, otherwise: Vec::new() });
        }
        if own_of_clients && !scope.is_backend() && dice.below(3) == 0 {
            body.insert(0, Statement::Plain("call own_client;".to_string()));
        }
        subroutines.push(Subroutine { name: name.to_string(), body });
    }
    let says = |words: &str| subroutines.iter().any(|sub| format!("{:?}", sub.body).contains(words));
    // Varnish dies of vmod cookie behind a rollback, which takes its memory away.
    if says("cookie.parse") {
        let rollback = Statement::Plain("std.rollback(req);".to_string());
        subroutines.iter_mut().for_each(|subroutine| forget(&rollback, &mut subroutine.body));
    }
    Program { declarations: DECLARATIONS.map(str::to_string).to_vec(), subroutines }
}

/// Whether a return is in it.
fn ends(statement: &Statement) -> bool {
    match statement {
        Statement::Plain(text) => text.starts_with("return"),
        Statement::If { then, otherwise, .. } => then.iter().chain(otherwise).any(ends),
    }
}
