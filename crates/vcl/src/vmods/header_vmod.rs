//! vmod header: the lines of a message one by one, where the language itself knows a header only by its first line.

use smallvec::SmallVec;

use super::{Arguments, NOTHING, functions};
use crate::evaluation::evaluator::Run;
use crate::evaluation::lawful_values::lawful_line;
use crate::header_names::KeptName;
use crate::host::{Host, Message};
use crate::matching::substitution::substitute;
use crate::plain_values::{Fault, Plain};

functions! {
    HeaderFunction {
        Append "append",
        Copy "copy",
        Get "get",
        Remove "remove",
        RegSub "regsub",
        Dyn "dyn",
    }
}

/// A line: its name as it stands there, and its value.
type Line<'a> = (&'a [u8], &'a [u8]);

pub fn call<'a, H: Host<'a>>(
    run: &Run<'a, '_, H>,
    function: HeaderFunction,
    given: &Arguments<'_, 'a>,
) -> Result<Plain<'a>, Fault> {
    match function {
        HeaderFunction::Append => {
            let (of, name) = given.kept_header(0, run.arena)?;
            run.add_line(of, name, given.bytes(1))?;
        }
        HeaderFunction::Copy => {
            let (from, name) = given.header(0)?;
            let (to, new_name) = given.kept_header(1, run.arena)?;
            // All are read before the first is written: both may be the same header.
            let mut values: SmallVec<[&[u8]; 8]> = SmallVec::new();
            run.host.header_lines(from, name, &mut |value| values.push(value));
            for value in values {
                run.add_line(to, new_name, value)?;
            }
        }
        HeaderFunction::Get => return first_matching(run, given).map(Plain::Text),
        HeaderFunction::Remove => remove_matching(run, given)?,
        HeaderFunction::RegSub => rewrite_lines(run, given)?,
        HeaderFunction::Dyn => return Err(Fault::new("header.dyn() names a header: it has no value by itself")),
    }
    Ok(NOTHING)
}

fn first_matching<'a, H: Host<'a>>(run: &Run<'a, '_, H>, given: &Arguments<'_, 'a>) -> Result<Option<&'a [u8]>, Fault> {
    let ((of, name), pattern) = (given.header(0)?, given.pattern(1)?);
    let mut values: SmallVec<[&[u8]; 8]> = SmallVec::new();
    run.host.header_lines(of, name, &mut |value| values.push(value));
    for value in values {
        // An empty line matches nothing, not even the empty regex.
        if !value.is_empty() && pattern.is_match(value)? {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

fn remove_matching<'a, H: Host<'a>>(run: &Run<'a, '_, H>, given: &Arguments<'_, 'a>) -> Result<(), Fault> {
    let ((of, name), pattern) = (given.header(0)?, given.pattern(1)?);
    let (mut kept, mut removed) = (SmallVec::<[Line<'a>; 8]>::new(), false);
    for line in all_lines(run, of) {
        if !name.is(line.0) {
            continue;
        }
        match !line.1.is_empty() && pattern.is_match(line.1)? {
            true => removed = true,
            false => kept.push(line),
        }
    }
    if !removed {
        return Ok(());
    }
    run.host.unset_header(of, given.kept_header(0, run.arena)?.1);
    for (written, value) in kept {
        run.add_line(of, KeptName::Made(written), value)?;
    }
    Ok(())
}

/// Each line, name and all, is a text for the regex. Lines whose headers are touched move behind the others; the order
/// among lines of one name stays. A line of which nothing is left goes.
fn rewrite_lines<'a, H: Host<'a>>(run: &Run<'a, '_, H>, given: &Arguments<'_, 'a>) -> Result<(), Fault> {
    let (of, pattern, replacement, all) = (given.message(0)?, given.pattern(1)?, given.bytes(2), given.truth(3));
    let (mut lines, mut touched) = (all_lines(run, of), Vec::<KeptName<'a>>::new());
    for line in &mut lines {
        let text = run.arena.join(&[line.0, b": ", line.1])?;
        let made = substitute(pattern, text, replacement, all, run.arena)?;
        if made == text {
            continue;
        }
        for name in [line.0, parted(made)?.0] {
            if !name.is_empty() && !touched.iter().any(|known| known.is(name)) {
                touched.push(KeptName::Made(name));
            }
        }
        *line = parted(made)?;
    }
    touched.iter().for_each(|name| run.host.unset_header(of, *name));
    for (written, value) in lines {
        if touched.iter().any(|name| name.is(written)) {
            run.add_line(of, KeptName::Made(written), value)?;
        }
    }
    Ok(())
}

/// Name and value of a line that was made here; both empty if it is.
fn parted(line: &[u8]) -> Result<Line<'_>, Fault> {
    if line.is_empty() {
        return Ok((b"", b""));
    }
    let bad = || Fault::new(format!("header.regsub() made \"{}\", which is no header", line.escape_ascii()));
    let colon = line.iter().position(|byte| *byte == b':').ok_or_else(bad)?;
    let name = super::HeaderArgument::called(&line[..colon])?.written().len();
    Ok((&line[..name], lawful_line(&line[..name], line[colon + 1..].trim_ascii())?))
}

fn all_lines<'a, H: Host<'a>>(run: &Run<'a, '_, H>, of: Message) -> Vec<Line<'a>> {
    let mut lines = Vec::new();
    run.host.all_headers(of, &mut |name, value| lines.push((name, value)));
    lines
}
