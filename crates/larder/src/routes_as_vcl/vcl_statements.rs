//! Statements of a program, line by line.

/// Statements that stand behind one another.
#[derive(Clone, Debug, Default)]
pub struct Statements(Vec<Statement>);

#[derive(Clone, Debug)]
enum Statement {
    Line(String),
    Comment(&'static str),
    /// What stands before the brace, and what stands in it.
    Block(String, Statements),
    /// What holds where none of the blocks before it did.
    Otherwise(Statements),
}

impl Statements {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A statement, without its semicolon.
    pub fn say(&mut self, text: impl Into<String>) {
        self.0.push(Statement::Line(text.into()));
    }

    pub fn remark(&mut self, text: &'static str) {
        self.0.push(Statement::Comment(text));
    }

    /// These, where this holds.
    pub fn when(&mut self, condition: &str, then: Statements) {
        self.0.push(Statement::Block(format!("if ({condition})"), then));
    }

    /// One, where this holds.
    pub fn when_say(&mut self, condition: &str, text: impl Into<String>) {
        let mut then = Statements::default();
        then.say(text);
        self.when(condition, then);
    }

    /// These, where this holds and none of those before it did.
    pub fn else_when(&mut self, condition: &str, then: Statements) {
        let word = if matches!(self.0.last(), Some(Statement::Block(..))) { "elseif" } else { "if" };
        self.0.push(Statement::Block(format!("{word} ({condition})"), then));
    }

    /// These, where none of those before held.
    pub fn otherwise(&mut self, then: Statements) {
        match self.0.last() {
            Some(Statement::Block(..)) => self.0.push(Statement::Otherwise(then)),
            _ => self.append(then),
        }
    }

    pub fn append(&mut self, mut others: Statements) {
        self.0.append(&mut others.0);
    }

    pub fn draw(&self, depth: usize) -> String {
        let indent = "    ".repeat(depth);
        let block =
            |head: &str, inner: &Statements| format!("{indent}{head} {{\n{}{indent}}}\n", inner.draw(depth + 1));
        let statement = |statement: &Statement| match statement {
            Statement::Line(line) => format!("{indent}{line};\n"),
            Statement::Comment(text) => format!("{indent}# {text}\n"),
            Statement::Block(head, inner) => block(head, inner),
            Statement::Otherwise(inner) => block("else", inner),
        };
        self.0.iter().map(statement).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_drawn_with_their_blocks() {
        let mut all = Statements::default();
        all.when_say("req.url == \"/\"", "set req.http.A = \"b\"");
        let mut other = Statements::default();
        other.remark("nothing else");
        other.say("return (pass)");
        all.otherwise(other);
        let expect = "if (req.url == \"/\") {\n    set req.http.A = \"b\";\n}\nelse {\n    # nothing else\n    return (pass);\n}\n";
        assert_eq!(all.draw(0), expect);
        let mut alone = Statements::default();
        alone.otherwise(Statements::default());
        assert!(alone.is_empty());
    }
}
