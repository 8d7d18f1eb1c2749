//! A program as the generator makes it and as it is made smaller: declarations and subroutines, whose statements are text
//! but for conditions, which have branches.

#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// Imports, backends, lists of addresses, each a whole declaration.
    pub declarations: Vec<String>,
    pub subroutines: Vec<Subroutine>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Subroutine {
    pub name: String,
    pub body: Vec<Statement>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// With its semicolon.
    Plain(String),
    If {
        condition: String,
        then: Vec<Statement>,
        otherwise: Vec<Statement>,
    },
}

impl Program {
    pub fn text(&self) -> String {
        let mut text = "vcl 4.1;\n".to_string();
        for declaration in &self.declarations {
            text.push_str(&format!("{declaration}\n"));
        }
        for Subroutine { name, body } in &self.subroutines {
            text.push_str(&format!("sub {name} {{\n"));
            write_all(body, 1, &mut text);
            text.push_str("}\n");
        }
        text
    }

    /// Everything that is one step smaller, the largest steps first.
    pub fn smaller(&self) -> Vec<Program> {
        let mut all = Vec::new();
        for which in 0..self.subroutines.len() {
            let mut program = self.clone();
            let gone = program.subroutines.remove(which);
            let call = Statement::Plain(format!("call {};", gone.name));
            program.subroutines.iter_mut().for_each(|rest| forget(&call, &mut rest.body));
            all.push(program);
        }
        for (which, subroutine) in self.subroutines.iter().enumerate() {
            for body in smaller_lists(&subroutine.body) {
                let mut program = self.clone();
                program.subroutines[which].body = body;
                all.push(program);
            }
        }
        for which in (0..self.declarations.len()).rev() {
            let mut program = self.clone();
            program.declarations.remove(which);
            all.push(program);
        }
        all
    }
}

/// Wherever it stands.
pub fn forget(call: &Statement, body: &mut Vec<Statement>) {
    body.retain(|statement| statement != call);
    for statement in body {
        if let Statement::If { then, otherwise, .. } = statement {
            forget(call, then);
            forget(call, otherwise);
        }
    }
}

fn smaller_lists(body: &[Statement]) -> Vec<Vec<Statement>> {
    let with = |which: usize, put: Vec<Statement>| [&body[..which], &put, &body[which + 1..]].concat();
    let mut all: Vec<_> = (0..body.len()).map(|which| with(which, Vec::new())).collect();
    for (which, statement) in body.iter().enumerate() {
        match statement {
            Statement::Plain(text) => all.extend(plainer(text).map(|text| with(which, vec![Statement::Plain(text)]))),
            Statement::If { condition, then, otherwise } => {
                all.push(with(which, then.clone()));
                all.push(with(which, otherwise.clone()));
                let again = |then: Vec<Statement>, otherwise: Vec<Statement>| {
                    with(which, vec![Statement::If { condition: condition.clone(), then, otherwise }])
                };
                if !otherwise.is_empty() {
                    all.push(again(then.clone(), Vec::new()));
                }
                all.extend(smaller_lists(then).into_iter().map(|then| again(then, otherwise.clone())));
                all.extend(smaller_lists(otherwise).into_iter().map(|otherwise| again(then.clone(), otherwise)));
            }
        }
    }
    all
}

/// The same field with a simpler text.
fn plainer(text: &str) -> Option<String> {
    const SIMPLE: &str = "\"v\";";
    let (target, value) = text.strip_prefix("set ")?.split_once(" = ")?;
    (target.contains(".http.") && value.len() > SIMPLE.len()).then(|| format!("set {target} = {SIMPLE}"))
}

fn write_all(body: &[Statement], depth: usize, text: &mut String) {
    let indent = "    ".repeat(depth);
    for statement in body {
        match statement {
            Statement::Plain(plain) => text.push_str(&format!("{indent}{plain}\n")),
            Statement::If { .. } => {
                text.push_str(&indent);
                write_if(statement, depth, text);
            }
        }
    }
}

fn write_if(statement: &Statement, depth: usize, text: &mut String) {
    let Statement::If { condition, then, otherwise } = statement else { return };
    let indent = "    ".repeat(depth);
    text.push_str(&format!("if ({condition}) {{\n"));
    write_all(then, depth + 1, text);
    text.push_str(&format!("{indent}}}"));
    match otherwise.as_slice() {
        [] => text.push('\n'),
        [only @ Statement::If { .. }] => {
            text.push_str(" else");
            write_if(only, depth, text);
        }
        _ => {
            text.push_str(" else {\n");
            write_all(otherwise, depth + 1, text);
            text.push_str(&format!("{indent}}}\n"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Statement {
        Statement::Plain(text.to_string())
    }

    #[test]
    fn a_program_is_written_and_made_smaller() {
        let inner = Statement::If { condition: "b".to_string(), then: vec![plain("y;")], otherwise: Vec::new() };
        let outer = Statement::If { condition: "a".to_string(), then: vec![plain("x;")], otherwise: vec![inner] };
        let program = Program {
            declarations: vec!["import std;".to_string()],
            subroutines: vec![Subroutine { name: "vcl_recv".to_string(), body: vec![outer] }],
        };
        let expected = "vcl 4.1;\nimport std;\nsub vcl_recv {\n    if (a) {\n        x;\n    } elseif (b) {\n        y;\n    }\n}\n";
        assert_eq!(program.text(), expected);
        let smaller: Vec<String> = program.smaller().iter().map(Program::text).collect();
        assert!(smaller.iter().all(|text| text.len() < expected.len()));
        assert!(smaller.contains(&"vcl 4.1;\nsub vcl_recv {\n    x;\n}\n".replace("sub", "import std;\nsub")));
        assert!(smaller.contains(&"vcl 4.1;\nimport std;\n".to_string()));
    }
}
