//! The records of one transaction, from its Begin to its End.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::Write;
use std::rc::Rc;

use message::write_decimal;

use crate::clock::{Clock, Moment};
use crate::core::Core;
use crate::limits::TASK_RECORDS_BYTES_MAX;
use crate::records::record_form::{WORD_TEXT_MAX, append_word, close, open, transaction_word};
use crate::records::record_outlet::RecordOutlet;
use crate::records::record_text::write_seconds;
use crate::records::{RecordKind, RecordSide};

/// Bytes that went either way, as ReqAcct and BereqAcct have them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Carried {
    pub(crate) head_in: u64,
    pub(crate) body_in: u64,
    pub(crate) head_out: u64,
    pub(crate) body_out: u64,
}

/// Ends when it is dropped, if nobody ended it: a client may leave at any time.
pub(crate) struct TaskRecords {
    outlet: Rc<RecordOutlet>,
    side: RecordSide,
    clock: Clock,
    xid: Cell<u64>,
    bytes: RefCell<Vec<u8>>,
    began: Cell<Moment>,
    stamped: Cell<Moment>,
    pub(crate) carried: Cell<Carried>,
    is_over: Cell<bool>,
    /// Says what it carried, at its end.
    account: Option<RecordKind>,
}

impl TaskRecords {
    /// Of a transaction that began at this moment, if anybody wants records. A session has no account.
    pub(crate) fn begin(core: &Core, account: Option<RecordKind>, xid: u64, began: Moment) -> Option<Rc<TaskRecords>> {
        let side = if account == Some(RecordKind::BereqAcct) { RecordSide::Backend } else { RecordSide::Client };
        let outlet = Rc::clone(core.records.as_ref()?);
        Some(Rc::new(TaskRecords {
            side,
            clock: core.clock(),
            xid: Cell::new(xid),
            bytes: RefCell::new(outlet.buffer()),
            outlet,
            began: Cell::new(began),
            stamped: Cell::new(began),
            carried: Cell::default(),
            is_over: Cell::new(false),
            account,
        }))
    }

    /// A record, if anybody hears its kind; `write` appends the text.
    #[inline(always)]
    pub(crate) fn record(&self, kind: RecordKind, write: impl FnOnce(&mut Vec<u8>)) {
        let Some(heard) = self.outlet.as_heard(kind) else { return };
        let mut bytes = self.bytes.borrow_mut();
        let record_at = open(&mut bytes, transaction_word(self.xid.get(), self.side));
        write(&mut bytes);
        close(&mut bytes, record_at, (kind, heard));
        if bytes.len() > TASK_RECORDS_BYTES_MAX {
            self.outlet.put(&mut bytes);
        }
    }

    /// A text in parts.
    pub(crate) fn put(&self, kind: RecordKind, parts: &[&[u8]]) {
        self.record(kind, |text| parts.iter().for_each(|part| text.extend_from_slice(part)));
    }

    /// A short text of ours, without control bytes: much of what a hit records.
    #[inline(always)]
    pub(crate) fn word(&self, kind: RecordKind, text: &[u8]) {
        if text.len() > WORD_TEXT_MAX {
            return self.put(kind, &[text]);
        }
        let Some(heard) = self.outlet.as_heard(kind) else { return };
        if text.len() <= heard.text_bytes_max() {
            append_word(&mut self.bytes.borrow_mut(), transaction_word(self.xid.get(), self.side), heard, text);
        } else {
            self.put(kind, &[text]);
        }
    }

    /// A text that is formatted: for what is not recorded of every hit.
    pub(crate) fn write(&self, kind: RecordKind, text: fmt::Arguments<'_>) {
        // Writing into memory cannot fail.
        self.record(kind, |to| drop(to.write_fmt(text)));
    }

    /// `name: value`.
    pub(crate) fn field(&self, kind: RecordKind, name: &[u8], value: &[u8]) {
        self.record(kind, |text| {
            text.extend_from_slice(name);
            text.extend_from_slice(b": ");
            text.extend_from_slice(value);
        });
    }

    pub(crate) fn stamp(&self, event: &str) {
        self.stamp_at(event, Moment::now());
    }

    pub(crate) fn stamp_at(&self, event: &str, at: Moment) {
        let (began, before) = (self.began.get(), self.stamped.replace(at));
        let (now, whole, since) = (self.clock.wall_micros(at), began.micros_until(at), before.micros_until(at));
        self.record(RecordKind::Timestamp, |text| {
            text.extend_from_slice(event.as_bytes());
            text.extend_from_slice(b": ");
            write_seconds(text, now);
            text.push(b' ');
            write_seconds(text, whole);
            text.push(b' ');
            write_seconds(text, since);
        });
    }

    pub(crate) fn xid(&self) -> u64 {
        self.xid.get()
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut Carried)) {
        let mut carried = self.carried.get();
        change(&mut carried);
        self.carried.set(carried);
    }

    /// Goes on as another transaction: a restart, or a retry.
    pub(crate) fn go_on_as(&self, xid: u64, kind: &str, why: &str) {
        let before = self.xid.get();
        self.write(RecordKind::Link, format_args!("{kind} {xid} {why}"));
        self.put(RecordKind::End, &[]);
        self.hand_over();
        self.xid.set(xid);
        self.write(RecordKind::Begin, format_args!("{kind} {before} {why}"));
    }

    /// The last record; what comes later is nobody's.
    pub(crate) fn end(&self) {
        if !self.is_over.replace(true) {
            if let Some(kind) = self.account {
                self.say_account(kind);
            }
            self.word(RecordKind::End, b"");
            self.hand_over();
        }
    }

    /// What it carried so far.
    pub(crate) fn say_account(&self, kind: RecordKind) {
        let Carried { head_in, body_in, head_out, body_out } = self.carried.get();
        let ([head, body], [head_after, body_after]) = match kind {
            RecordKind::BereqAcct => ([head_out, body_out], [head_in, body_in]),
            _ => ([head_in, body_in], [head_out, body_out]),
        };
        let (sum, sum_after) = (head + body, head_after + body_after);
        self.record(kind, |text| {
            write_decimal(text, head);
            for number in [body, sum, head_after, body_after, sum_after] {
                text.push(b' ');
                write_decimal(text, number);
            }
        });
    }

    /// Does anybody read such records?
    pub(crate) fn wants(&self, kind: RecordKind) -> bool {
        self.outlet.as_heard(kind).is_some()
    }

    /// What its storage is called.
    pub(crate) fn storage(&self) -> &str {
        self.outlet.storage()
    }

    /// What there is so far.
    pub(crate) fn hand_over(&self) {
        self.outlet.put(&mut self.bytes.borrow_mut());
    }
}

impl Drop for TaskRecords {
    fn drop(&mut self) {
        self.end();
        self.outlet.take_back(self.bytes.take());
    }
}

impl fmt::Debug for TaskRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "records of {}", self.xid.get())
    }
}
