//! The records of one transaction, from its Begin to its End.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;

use crate::clock::{Clock, Moment};
use crate::core::Core;
use crate::limits::TASK_RECORDS_BYTES_MAX;
use crate::records::record_word::RecordWord;
use crate::records::{RecordKind, RecordSide, RecordSink, append, close, open};

/// Bytes that went either way, as ReqAcct and BereqAcct have them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Carried {
    pub(crate) head_in: u64,
    pub(crate) body_in: u64,
    pub(crate) head_out: u64,
    pub(crate) body_out: u64,
}

/// Between two words.
pub(crate) const BLANK: RecordWord<'static> = RecordWord::Text(b" ");

/// Ends when it is dropped, if nobody ended it: a client may leave at any time.
pub(crate) struct TaskRecords {
    sink: Arc<dyn RecordSink>,
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
        let sink = Arc::clone(core.records.as_ref()?);
        Some(Rc::new(TaskRecords {
            sink,
            side,
            clock: core.clock(),
            xid: Cell::new(xid),
            bytes: RefCell::new(Vec::with_capacity(2 << 10)),
            began: Cell::new(began),
            stamped: Cell::new(began),
            carried: Cell::default(),
            is_over: Cell::new(false),
            account,
        }))
    }

    /// A text in parts.
    pub(crate) fn put(&self, kind: RecordKind, parts: &[&[u8]]) {
        append(&mut self.bytes.borrow_mut(), kind, parts);
        self.hand_over_if_many();
    }

    /// A text of several words, which stand as they are.
    pub(crate) fn say(&self, kind: RecordKind, words: &[RecordWord<'_>]) {
        {
            let mut bytes = self.bytes.borrow_mut();
            let frame_at = open(&mut bytes, kind);
            words.iter().for_each(|word| word.append_to(&mut bytes));
            close(&mut bytes, frame_at);
        }
        self.hand_over_if_many();
    }

    /// A text that is formatted: for what is not recorded of every hit.
    pub(crate) fn write(&self, kind: RecordKind, text: fmt::Arguments<'_>) {
        {
            let mut bytes = self.bytes.borrow_mut();
            let frame_at = open(&mut bytes, kind);
            // Writing into memory cannot fail.
            let _ = bytes.write_fmt(text);
            close(&mut bytes, frame_at);
        }
        self.hand_over_if_many();
    }

    /// `name: value`.
    pub(crate) fn field(&self, kind: RecordKind, name: &[u8], value: &[u8]) {
        self.put(kind, &[name, b": ", value]);
    }

    pub(crate) fn stamp(&self, event: &str) {
        self.stamp_at(event, Moment::now());
    }

    pub(crate) fn stamp_at(&self, event: &str, at: Moment) {
        let (began, before) = (self.began.get(), self.stamped.replace(at));
        let (now, whole, since) = (self.clock.wall_micros(at), began.micros_until(at), before.micros_until(at));
        let seconds = |micros: u64| RecordWord::Seconds(micros as i64);
        self.say(
            RecordKind::Timestamp,
            &[
                RecordWord::Text(event.as_bytes()),
                RecordWord::Text(b": "),
                seconds(now),
                BLANK,
                seconds(whole),
                BLANK,
                seconds(since),
            ],
        );
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
            self.put(RecordKind::End, &[]);
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
        let [first, rest @ ..] = [head, body, sum, head_after, body_after, sum_after];
        let mut words = [BLANK; 11];
        words[0] = RecordWord::Number(first);
        rest.into_iter().enumerate().for_each(|(at, number)| words[2 * at + 2] = RecordWord::Number(number));
        self.say(kind, &words);
    }

    /// Does anybody read such records?
    pub(crate) fn wants(&self, kind: RecordKind) -> bool {
        self.sink.wants(kind)
    }

    /// What its storage is called.
    pub(crate) fn storage(&self) -> &str {
        self.sink.storage()
    }

    fn hand_over_if_many(&self) {
        if self.bytes.borrow().len() > TASK_RECORDS_BYTES_MAX {
            self.hand_over();
        }
    }

    /// What there is so far.
    pub(crate) fn hand_over(&self) {
        let mut bytes = self.bytes.borrow_mut();
        self.sink.put(self.xid.get(), self.side, &bytes);
        bytes.clear();
    }
}

impl Drop for TaskRecords {
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for TaskRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "records of {}", self.xid.get())
    }
}
