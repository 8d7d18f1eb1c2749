//! What was invalidated, as one process says it to the next: a line of text.

use bytes::Bytes;

use crate::key::Key;

/// What was invalidated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invalidated {
    Key(Key),
    Group(Key),
    Tag(Key),
    /// As [`RecoveredBan`] reads it.
    Ban(Bytes),
}

impl Invalidated {
    /// In a line of text.
    pub fn line(&self) -> String {
        let key = |word: &str, key: &Key| format!("{word} {:032x}", { key.0 });
        match self {
            Invalidated::Key(of) => key("key", of),
            Invalidated::Group(of) => key("group", of),
            Invalidated::Tag(of) => key("tag", of),
            Invalidated::Ban(text) => {
                let digits: String = text.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("ban {digits}")
            }
        }
    }

    /// `None`: nobody wrote this.
    pub fn read(line: &str) -> Option<Invalidated> {
        let (word, digits) = line.split_once(' ')?;
        if !digits.is_ascii() {
            return None;
        }
        let key = || (digits.len() == 32).then(|| u128::from_str_radix(digits, 16).ok()).flatten().map(Key);
        Some(match word {
            "key" => Invalidated::Key(key()?),
            "group" => Invalidated::Group(key()?),
            "tag" => Invalidated::Tag(key()?),
            "ban" if digits.len().is_multiple_of(2) => {
                let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
                let bytes = pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect::<Option<Vec<u8>>>()?;
                Invalidated::Ban(bytes.into())
            }
            _ => return None,
        })
    }
}

/// Who is told of what is invalidated, once there is somebody. It is told under locks, and must not wait.
pub type Successor = Box<dyn Fn(Invalidated) + Send + Sync>;

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    #[test]
    fn what_was_invalidated_is_read_as_it_was_written() {
        let (low, high) = (Key(7), Key(u128::MAX - 3));
        for said in [
            Invalidated::Key(high),
            Invalidated::Key(low),
            Invalidated::Group(low),
            Invalidated::Tag(high),
            Invalidated::Ban(Bytes::from_static(b"\x00\xffobj.age > 5m")),
        ] {
            assert_eq!(Invalidated::read(&said.line()), Some(said));
        }
        let long = format!("key {}", "0".repeat(33));
        for line in ["", "key", "key 12", "key x", &long, "ban 1", "ban zz", "ban ää", "other 00"] {
            assert_eq!(Invalidated::read(line), None, "{line}");
        }
    }
}
