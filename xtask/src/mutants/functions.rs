//! Where the functions of a file begin and end, as far as brackets tell. It reads code whose comments and literals are
//! blanked, and knows no grammar beyond `fn`.

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    /// Its type as it is written; empty where it returns nothing.
    pub returns: String,
    /// Right behind the opening brace.
    pub body: usize,
    pub end: usize,
}

pub fn of(code: &str) -> Vec<Function> {
    code.match_indices("fn ").filter_map(|(at, _)| function(code, at)).collect()
}

pub fn innermost(functions: &[Function], at: usize) -> Option<&Function> {
    functions.iter().filter(|function| (function.body..function.end).contains(&at)).max_by_key(|f| f.body)
}

fn function(code: &str, at: usize) -> Option<Function> {
    if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
        return None;
    }
    let rest = &code[at + 3..];
    let name = &rest[..rest.find(|c: char| !(c.is_alphanumeric() || c == '_'))?];
    if name.is_empty() {
        return None; // the type of a pointer
    }
    let (mut depth, mut arrow) = (0_i32, None);
    for (offset, byte) in code.bytes().enumerate().skip(at) {
        match byte {
            b'(' | b'[' | b'<' => depth += 1,
            b'>' if code[..offset].ends_with('-') => {
                let is_of_function = depth == 0 && arrow.is_none() && !code[at..offset].contains("\nwhere");
                arrow = if is_of_function { Some(offset + 1) } else { arrow };
            }
            b')' | b']' | b'>' => depth -= 1,
            b';' if depth == 0 => return None,
            b'{' if depth == 0 => {
                let returns = arrow.map_or("", |start| &code[start..offset]);
                let returns = returns.split("\nwhere").next().unwrap_or_default().trim();
                let end = closing(code, offset)?;
                return Some(Function { name: name.to_string(), returns: returns.to_string(), body: offset + 1, end });
            }
            _ => {}
        }
    }
    None
}

/// Behind the bracket that closes the one at `open`.
pub fn closing(code: &str, open: usize) -> Option<usize> {
    let mut depth = 0_i32;
    for (offset, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(offset + 1);
        }
    }
    None
}

/// Behind the item that begins here: its block, or its semicolon.
pub fn end_of_item(code: &str, from: usize) -> usize {
    match code[from..].find(['{', ';']).map(|offset| from + offset) {
        Some(open) if code[open..].starts_with('{') => closing(code, open).unwrap_or(code.len()),
        Some(semicolon) => semicolon + 1,
        None => code.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_with_what_they_return() {
        let code = "fn a();\npub fn b<C: Fn(u8) -> u8>(c: C) -> Option<(u8, [u8; 2])> { fn d() {} }\ntype E = fn (u8);";
        let found = of(code);
        let said: Vec<(&str, &str)> = found.iter().map(|f| (f.name.as_str(), f.returns.as_str())).collect();
        assert_eq!(said, [("b", "Option<(u8, [u8; 2])>"), ("d", "")]);
        assert_eq!(innermost(&found, code.find("fn d").unwrap()).map(|f| f.name.as_str()), Some("b"));
        assert_eq!(innermost(&found, 0), None);
    }
}
