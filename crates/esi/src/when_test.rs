//! The test of `<esi:when>`: `$(HTTP_COOKIE{group})=='Advanced' & !($(HTTP_HOST)=='a.test')` (ESI 1.0, section 5).

use crate::esi_variables::{Variable, Variables};
use crate::limits::{TEST_DEPTH_MAX, TEST_TERMS_MAX};

/// Does it hold? The error is a sentence about what is no test.
pub fn holds(test: &[u8], variables: &dyn Variables) -> Result<bool, &'static str> {
    let mut reader = TestReader { rest: test, variables, terms_left: TEST_TERMS_MAX };
    let holds = reader.either(0)?;
    match reader.next() {
        None => Ok(holds),
        Some(_) => Err("ESI 1.0 <esi:when> has something behind its test"),
    }
}

struct TestReader<'t> {
    rest: &'t [u8],
    variables: &'t dyn Variables,
    terms_left: usize,
}

const OPERATORS: [&[u8]; 6] = [b"==", b"!=", b"<=", b">=", b"<", b">"];

impl TestReader<'_> {
    /// The next byte but blanks.
    fn next(&mut self) -> Option<u8> {
        self.rest = self.rest.trim_ascii_start();
        self.rest.first().copied()
    }

    fn takes(&mut self, word: &[u8]) -> bool {
        self.next();
        let behind = self.rest.strip_prefix(word);
        self.rest = behind.unwrap_or(self.rest);
        behind.is_some()
    }

    fn either(&mut self, depth: usize) -> Result<bool, &'static str> {
        let mut holds = self.both(depth)?;
        while self.takes(b"|") {
            holds |= self.both(depth)?;
        }
        Ok(holds)
    }

    fn both(&mut self, depth: usize) -> Result<bool, &'static str> {
        let mut holds = self.term(depth)?;
        while self.takes(b"&") {
            holds &= self.term(depth)?;
        }
        Ok(holds)
    }

    fn term(&mut self, depth: usize) -> Result<bool, &'static str> {
        self.terms_left = self.terms_left.checked_sub(1).ok_or("ESI 1.0 <esi:when> has a test that is too long")?;
        if depth >= TEST_DEPTH_MAX {
            return Err("ESI 1.0 <esi:when> has a test nested too deep");
        }
        if self.takes(b"!") {
            return Ok(!self.term(depth + 1)?);
        }
        if self.takes(b"(") {
            let holds = self.either(depth + 1)?;
            return if self.takes(b")") { Ok(holds) } else { Err("ESI 1.0 <esi:when> has no ')' in its test") };
        }
        let left = self.operand()?;
        let Some(operator) = OPERATORS.into_iter().find(|operator| self.takes(operator)) else {
            return Ok(!left.is_empty());
        };
        let right = self.operand()?;
        // What is not said is like nothing.
        Ok(!left.is_empty() && !right.is_empty() && compare(&left, operator, &right))
    }

    /// A variable, a text in quotes, or a number.
    fn operand(&mut self) -> Result<Vec<u8>, &'static str> {
        const NONE: &str = "ESI 1.0 <esi:when> lacks an operand in its test";
        match self.next().ok_or(NONE)? {
            b'$' => {
                let (variable, length) =
                    Variable::read(self.rest).ok_or("ESI 1.0 <esi:when> has an unknown variable")?;
                self.rest = &self.rest[length..];
                Ok(variable.value(self.variables))
            }
            b'\'' => {
                let length = self.rest[1..].iter().position(|byte| *byte == b'\'').ok_or(NONE)?;
                let text = self.rest[1..=length].to_vec();
                self.rest = &self.rest[length + 2..];
                Ok(text)
            }
            _ => {
                let is_number = |byte: &&u8| byte.is_ascii_digit() || **byte == b'.' || **byte == b'-';
                let length = self.rest.iter().take_while(is_number).count();
                let (number, rest) = self.rest.split_at(length);
                self.rest = rest;
                if number.is_empty() { Err(NONE) } else { Ok(number.to_vec()) }
            }
        }
    }
}

/// As numbers where both are, else as texts.
fn compare(left: &[u8], operator: &[u8], right: &[u8]) -> bool {
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<f64>().ok().filter(|number| number.is_finite());
    let ordering = match (number(left), number(right)) {
        (Some(left), Some(right)) => left.total_cmp(&right),
        _ => left.cmp(right),
    };
    match operator {
        b"==" => ordering.is_eq(),
        b"!=" => ordering.is_ne(),
        b"<=" => ordering.is_le(),
        b">=" => ordering.is_ge(),
        b"<" => ordering.is_lt(),
        _ => ordering.is_gt(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::esi_variables::tests::Asked;

    fn check(test: &str, expect: Result<bool, &str>) {
        match (holds(test.as_bytes(), &Asked), expect) {
            (Ok(holds), Ok(expect)) => assert_eq!(holds, expect, "{test}"),
            (Err(why), Err(part)) => assert!(why.contains(part), "{test}: {why}"),
            (holds, expect) => panic!("{test}: {holds:?}, not {expect:?}"),
        }
    }

    #[test]
    fn a_test_compares_what_is_said() {
        check("$(HTTP_COOKIE{id})=='7'", Ok(true));
        check("$(HTTP_COOKIE{id}) != '7'", Ok(false));
        check("$(HTTP_COOKIE{id}) < 10", Ok(true));
        check("'10' < '7'", Ok(false));
        check("'b' > 'a'", Ok(true));
        check("$(HTTP_COOKIE{id})", Ok(true));
        check("$(HTTP_COOKIE{no})", Ok(false));
        check("$(HTTP_COOKIE{no})=='7' | $(HTTP_HOST)=='a.test'", Ok(true));
        check("$(HTTP_COOKIE{no})!='7'", Ok(false));
        check("!$(HTTP_COOKIE{no})", Ok(true));
        check("!($(HTTP_HOST)=='a.test' & $(HTTP_COOKIE{id})>=8)", Ok(true));
        check("'a'=='a' & 'b'=='c' | 'd'=='d'", Ok(true));
    }

    #[test]
    fn what_is_no_test_is_said_and_what_is_endless_ends() {
        check("", Err("lacks an operand"));
        check("'a'==", Err("lacks an operand"));
        check("('a'=='a'", Err("no ')'"));
        check("'a'=='a' 'b'", Err("behind its test"));
        check("$(HTTP_OTHER)", Err("unknown variable"));
        check("'a", Err("lacks an operand"));
        check(&"(".repeat(5_000), Err("nested too deep"));
        check(&"!".repeat(5_000), Err("nested too deep"));
        check(&["'a'"; 1_000].join("|"), Err("too long"));
    }
}
