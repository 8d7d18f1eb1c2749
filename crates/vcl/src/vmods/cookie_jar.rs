//! The cookies of one transaction, as vmod cookie sees them: names with values, in the order they came.
//!
//! All texts lie in one buffer. What is replaced or removed leaves its bytes there until the jar is emptied, so the
//! limit is on all that was ever put in.

use std::ops::Range;

use smallvec::SmallVec;

use crate::limits::{COOKIE_BYTES_MAX, COOKIES_MAX};
use crate::matching::pattern::Pattern;
use crate::plain_values::Fault;
use crate::scope_arena::Arena;

/// The jar.
#[derive(Debug, Default)]
pub struct CookieJar {
    bytes: Vec<u8>,
    cookies: Vec<Cookie>,
}

#[derive(Debug)]
struct Cookie {
    name: Range<usize>,
    value: Range<usize>,
}

impl CookieJar {
    pub fn clean(&mut self) {
        self.bytes.clear();
        self.cookies.clear();
    }

    /// Empties the jar and fills it from a Cookie header. An empty header changes nothing, as in Varnish.
    pub fn parse(&mut self, header: &[u8]) -> Result<(), Fault> {
        if header.is_empty() {
            return Ok(());
        }
        self.clean();
        self.keep_bytes(&[header])?;
        let position = |bytes: &[u8], from: usize, wanted: u8| {
            bytes[from..].iter().position(|byte| *byte == wanted).map(|at| at + from)
        };
        let mut at = 0;
        while at < self.bytes.len() {
            at += self.bytes[at..].iter().take_while(|byte| is_space(**byte)).count();
            let Some(equals) = position(&self.bytes, at, b'=') else { break };
            let end = position(&self.bytes, equals + 1, b';').unwrap_or(self.bytes.len());
            self.put(at..equals, equals + 1..end)?;
            at = end + 1;
        }
        Ok(())
    }

    /// A cookie without name or value is none.
    pub fn set(&mut self, name: &[u8], value: &[u8]) -> Result<(), Fault> {
        if name.is_empty() || value.is_empty() {
            return Ok(());
        }
        let start = self.bytes.len();
        self.keep_bytes(&[name, value])?;
        let middle = start + name.len();
        self.put(start..middle, middle..self.bytes.len())
    }

    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        let cookie = self.cookies.iter().find(|cookie| self.bytes[cookie.name.clone()] == *name)?;
        Some(&self.bytes[cookie.value.clone()])
    }

    /// The value of the first cookie whose name matches.
    pub fn get_matching(&self, pattern: &Pattern) -> Result<Option<&[u8]>, Fault> {
        for cookie in &self.cookies {
            if pattern.is_match(&self.bytes[cookie.name.clone()])? {
                return Ok(Some(&self.bytes[cookie.value.clone()]));
            }
        }
        Ok(None)
    }

    pub fn delete(&mut self, name: &[u8]) {
        self.cookies.retain(|cookie| self.bytes[cookie.name.clone()] != *name);
    }

    /// Leaves the cookies that are in the list of names with commas between, or those that are not.
    pub fn retain_listed(&mut self, list: &[u8], listed: bool) {
        let names = list.split(|byte| *byte == b',').map(|name| {
            let blanks = name.iter().take_while(|byte| is_space(**byte)).count();
            &name[blanks..]
        });
        let mut names: SmallVec<[&[u8]; 16]> = names.filter(|name| !name.is_empty()).collect();
        names.sort_unstable();
        let bytes = &self.bytes;
        self.cookies.retain(|cookie| names.binary_search(&&bytes[cookie.name.clone()]).is_ok() == listed);
    }

    /// Leaves the cookies whose names match, or those whose do not.
    pub fn retain_matching(&mut self, pattern: &Pattern, matching: bool) -> Result<(), Fault> {
        let (bytes, mut fault) = (&self.bytes, None);
        self.cookies.retain(|cookie| match pattern.is_match(&bytes[cookie.name.clone()]) {
            Ok(matched) => matched == matching,
            Err(why) => {
                fault = Some(why);
                true
            }
        });
        fault.map_or(Ok(()), Err)
    }

    /// As a Cookie header: `a=1; b=2;`.
    pub fn written<'a>(&self, arena: &'a Arena) -> Result<&'a [u8], Fault> {
        let mut parts: SmallVec<[&[u8]; 64]> = SmallVec::new();
        for (index, cookie) in self.cookies.iter().enumerate() {
            parts.extend([if index == 0 { b"" } else { b" ".as_slice() }, &self.bytes[cookie.name.clone()], b"="]);
            parts.extend([&self.bytes[cookie.value.clone()], b";"]);
        }
        arena.join(&parts)
    }

    fn put(&mut self, name: Range<usize>, value: Range<usize>) -> Result<(), Fault> {
        if name.is_empty() || value.is_empty() {
            return Ok(());
        }
        let bytes = &self.bytes;
        if let Some(known) = self.cookies.iter_mut().find(|known| bytes[known.name.clone()] == bytes[name.clone()]) {
            known.value = value;
            return Ok(());
        }
        if self.cookies.len() >= COOKIES_MAX {
            return Err(Fault::new(format!("a request has more than {COOKIES_MAX} cookies (COOKIES_MAX)")));
        }
        self.cookies.push(Cookie { name, value });
        Ok(())
    }

    fn keep_bytes(&mut self, parts: &[&[u8]]) -> Result<(), Fault> {
        let total = parts.iter().map(|part| part.len()).sum::<usize>();
        if self.bytes.len() + total > COOKIE_BYTES_MAX {
            let what = "the cookies that vmod cookie keeps for one request have more than";
            return Err(Fault::new(format!("{what} {COOKIE_BYTES_MAX} bytes (COOKIE_BYTES_MAX)")));
        }
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        Ok(())
    }
}

/// C's isspace.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_varnish_reads_it() {
        let check = |header: &str, expect: &str| {
            let (mut jar, arena) = (CookieJar::default(), Arena::default());
            jar.parse(header.as_bytes()).expect("there is room");
            let written = jar.written(&arena).expect("there is room");
            assert_eq!(String::from_utf8_lossy(written), expect, "{header:?}");
        };
        check("a=1; b=2;c=3", "a=1; b=2; c=3;");
        check(" \t a=1;;b=2; ", "a=1; ;b=2;");
        check("a; b=2", "a; b=2;");
        check("a=1; a=2", "a=2;");
        check("a=; =1; b", "");
        check("a= 1 ; b==2=", "a= 1 ; b==2=;");
        check("", "");
        check("none", "");
    }

    #[test]
    fn a_jar_has_limits() {
        let mut jar = CookieJar::default();
        let many: Vec<String> = (0..=COOKIES_MAX).map(|n| format!("c{n}=1")).collect();
        let why = jar.parse(many.join(";").as_bytes()).expect_err("they are too many");
        assert!(why.reason().contains("COOKIES_MAX"), "{why}");
        assert_eq!(jar.parse(many[..COOKIES_MAX].join(";").as_bytes()), Ok(()));
        let why = jar.set(b"long", &[b'x'; COOKIE_BYTES_MAX]).expect_err("it is too long");
        assert!(why.reason().contains("COOKIE_BYTES_MAX"), "{why}");
        let mut jar = CookieJar::default();
        let fits = (COOKIE_BYTES_MAX / 2048..).find(|_| jar.set(b"a", &[b'x'; 1023]).is_err());
        assert!(fits.is_some(), "a replaced value counts until the jar is emptied");
        jar.clean();
        assert_eq!(jar.set(b"a", b"1"), Ok(()));
    }
}
