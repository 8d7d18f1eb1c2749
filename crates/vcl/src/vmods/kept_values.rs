//! What vmod var keeps: values of every type under names, for one transaction, and texts for all of them.

use std::collections::BTreeMap;

use parking_lot::RwLock;

use crate::limits::{GLOBAL_VARIABLE_BYTES_MAX, GLOBAL_VARIABLES_MAX, TASK_VARIABLE_BYTES_MAX, TASK_VARIABLES_MAX};
use crate::plain_values::{Fault, Plain};

/// One value. What is no text is kept as it is, for it borrows nothing.
#[derive(Debug)]
enum Kept {
    Text(Box<[u8]>),
    Other(Plain<'static>),
}

/// The variables of one transaction.
#[derive(Debug, Default)]
pub struct TaskVariables {
    values: Vec<(Box<[u8]>, Kept)>,
    bytes: usize,
}

impl TaskVariables {
    pub fn clear(&mut self) {
        *self = TaskVariables::default();
    }

    pub fn set_text(&mut self, name: &[u8], text: &[u8]) -> Result<(), Fault> {
        self.put(name, Kept::Text(text.into()), text.len())
    }

    /// A value that is no text.
    pub fn set(&mut self, name: &[u8], value: Plain<'_>) -> Result<(), Fault> {
        let value = match value {
            Plain::Int(number) => Plain::Int(number),
            Plain::Real(number) => Plain::Real(number),
            Plain::Duration(number) => Plain::Duration(number),
            Plain::Ip(ip) => Plain::Ip(ip),
            Plain::Backend(backend) => Plain::Backend(backend),
            other => return Err(Fault::new(format!("vmod var keeps no {other:?}"))),
        };
        self.put(name, Kept::Other(value), 0)
    }

    /// `None` also when it is of another type.
    pub fn text(&self, name: &[u8]) -> Option<&[u8]> {
        match self.find(name)? {
            Kept::Text(text) => Some(text),
            Kept::Other(_) => None,
        }
    }

    /// A value that is no text, of whatever type.
    pub fn other(&self, name: &[u8]) -> Option<Plain<'static>> {
        match self.find(name)? {
            Kept::Text(_) => None,
            Kept::Other(value) => Some(*value),
        }
    }

    fn find(&self, name: &[u8]) -> Option<&Kept> {
        self.values.iter().find(|(known, _)| **known == *name).map(|(_, value)| value)
    }

    fn put(&mut self, name: &[u8], value: Kept, text_bytes: usize) -> Result<(), Fault> {
        let known = self.values.iter().position(|(known, _)| **known == *name);
        let freed = match known.map(|index| &self.values[index].1) {
            Some(Kept::Text(text)) => text.len(),
            Some(Kept::Other(_)) | None => 0,
        };
        let added = text_bytes + if known.is_none() { name.len() } else { 0 };
        if self.bytes - freed + added > TASK_VARIABLE_BYTES_MAX {
            let what = "the variables of vmod var have more than";
            return Err(Fault::new(format!("{what} {TASK_VARIABLE_BYTES_MAX} bytes (TASK_VARIABLE_BYTES_MAX)")));
        }
        match known {
            Some(index) => self.values[index].1 = value,
            None if self.values.len() >= TASK_VARIABLES_MAX => {
                let what = "vmod var keeps more than";
                return Err(Fault::new(format!("{what} {TASK_VARIABLES_MAX} variables (TASK_VARIABLES_MAX)")));
            }
            None => self.values.push((name.into(), value)),
        }
        self.bytes = self.bytes - freed + added;
        Ok(())
    }
}

/// Texts for all transactions. As in Varnish they belong to the process and not to one program: a program that replaces
/// another, or that has its requests handed over by a label, finds what the other set.
pub static GLOBAL_VARIABLES: GlobalVariables = GlobalVariables::new();

#[derive(Debug)]
pub struct GlobalVariables {
    kept: RwLock<Texts>,
}

#[derive(Debug)]
struct Texts {
    by_name: BTreeMap<Box<[u8]>, Box<[u8]>>,
    bytes: usize,
}

impl GlobalVariables {
    const fn new() -> GlobalVariables {
        GlobalVariables { kept: RwLock::new(Texts { by_name: BTreeMap::new(), bytes: 0 }) }
    }

    /// Absent takes the variable away.
    pub fn set(&self, name: &[u8], text: Option<&[u8]>) -> Result<(), Fault> {
        let mut kept = self.kept.write();
        let freed = kept.by_name.get(name).map_or(0, |text| name.len() + text.len());
        let Some(text) = text else {
            kept.by_name.remove(name);
            kept.bytes -= freed;
            return Ok(());
        };
        let bytes = kept.bytes - freed + name.len() + text.len();
        if bytes > GLOBAL_VARIABLE_BYTES_MAX {
            let what = "the global variables of vmod var have more than";
            return Err(Fault::new(format!("{what} {GLOBAL_VARIABLE_BYTES_MAX} bytes (GLOBAL_VARIABLE_BYTES_MAX)")));
        }
        if kept.by_name.len() >= GLOBAL_VARIABLES_MAX && !kept.by_name.contains_key(name) {
            let what = "there are more global variables of vmod var than";
            return Err(Fault::new(format!("{what} {GLOBAL_VARIABLES_MAX} (GLOBAL_VARIABLES_MAX)")));
        }
        kept.by_name.insert(name.into(), text.into());
        kept.bytes = bytes;
        Ok(())
    }

    pub fn look<T>(&self, name: &[u8], at: impl FnOnce(&[u8]) -> T) -> Option<T> {
        self.kept.read().by_name.get(name).map(|text| at(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_keeps_only_so_much() {
        let mut variables = TaskVariables::default();
        for _ in 0..10 {
            variables.set_text(b"a", &[b'x'; TASK_VARIABLE_BYTES_MAX - 1]).expect("it fits, and replaces itself");
        }
        let check = |made: Result<(), Fault>, limit: &str| {
            let why = made.expect_err("it is too much");
            assert!(why.reason().contains(limit), "{why}");
        };
        check(
            variables.set(b"b", Plain::Int(1)).and_then(|()| variables.set_text(b"c", b"")),
            "TASK_VARIABLE_BYTES_MAX",
        );
        variables.clear();
        for number in 0..TASK_VARIABLES_MAX {
            variables.set(format!("{number}").as_bytes(), Plain::Int(1)).expect("there is room");
        }
        check(variables.set(b"more", Plain::Int(1)), "TASK_VARIABLES_MAX");
        assert_eq!(variables.set(b"0", Plain::Int(2)), Ok(()));
        assert_eq!((variables.other(b"0"), variables.text(b"0")), (Some(Plain::Int(2)), None));
    }

    #[test]
    fn so_do_all_together() {
        let globals = GlobalVariables::new();
        let check = |made: Result<(), Fault>, limit: &str| {
            let why = made.expect_err("it is too much");
            assert!(why.reason().contains(limit), "{why}");
        };
        let long = vec![b'x'; GLOBAL_VARIABLE_BYTES_MAX - 1];
        assert_eq!(globals.set(b"a", Some(&long)), Ok(()));
        assert_eq!(globals.set(b"a", Some(&long)), Ok(()));
        check(globals.set(b"b", Some(b"")), "GLOBAL_VARIABLE_BYTES_MAX");
        assert_eq!(globals.set(b"a", None), Ok(()));
        for number in 0..GLOBAL_VARIABLES_MAX {
            globals.set(format!("{number}").as_bytes(), Some(b"")).expect("there is room");
        }
        check(globals.set(b"more", Some(b"")), "GLOBAL_VARIABLES_MAX");
        assert_eq!(globals.set(b"0", Some(b"new")), Ok(()));
        assert_eq!((globals.look(b"0", <[u8]>::len), globals.look(b"no", <[u8]>::len)), (Some(3), None));
    }
}
