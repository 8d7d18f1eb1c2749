//! What is asked of a memcached, as bytes: the classic text commands, and the meta commands that larder prefers.
//!
//! A key with bytes that would end a word or a line goes as base64, which the meta commands have a flag for; to a classic
//! command none such must come. What the answer may be follows from the command, and is kept in [`Expected`] for the
//! reader of replies. It knows no socket and no policy.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use message::write_decimal;

use crate::limits::MEMCACHED_KEY_BYTES_MAX;

/// A command, complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    Get {
        key: &'a [u8],
    },
    Store {
        verb: StoreVerb,
        key: &'a [u8],
        flags: u32,
        exptime: i64,
        value: &'a [u8],
    },
    Delete {
        key: &'a [u8],
        /// Old servers take a zero here, new ones nothing else.
        exptime: Option<u64>,
    },
    Count {
        direction: Direction,
        key: &'a [u8],
        delta: u64,
    },
    FlushAll {
        delay_s: Option<u64>,
    },
    Stats {
        argument: &'a [u8],
    },
    Version,
    Verbosity {
        level: u32,
    },
    /// In megabytes.
    CacheMemoryLimit {
        megabytes: u64,
    },
    /// Reads with everything that is known of an item; with an exptime it is touched as well (`gat`).
    MetaGet {
        key: &'a [u8],
        exptime: Option<i64>,
    },
    /// The same; where there is none an empty one is made for so many seconds, and who is told that it has won is to fetch it.
    MetaVivify {
        key: &'a [u8],
        life_s: u64,
    },
    /// All of that but the value.
    MetaFacts {
        key: &'a [u8],
    },
    /// What memcached itself remembers of an item.
    MetaDebug {
        key: &'a [u8],
    },
    /// Nothing, but for the reply.
    MetaNoop,
    /// Sets only the time to live.
    MetaTouch {
        key: &'a [u8],
        exptime: i64,
    },
    MetaStore {
        verb: StoreVerb,
        key: &'a [u8],
        flags: u32,
        exptime: i64,
        /// Only if the item is still this one.
        cas: Option<u64>,
        value: &'a [u8],
    },
    MetaDelete {
        key: &'a [u8],
        cas: Option<u64>,
        /// Not deleted but stale, for so many seconds: the next reader is told that it is the one to fetch it anew.
        stale_s: Option<u64>,
    },
    MetaCount {
        direction: Direction,
        key: &'a [u8],
        delta: u64,
        /// What a counter that is not there begins with, and how long it lives.
        initial: Option<(u64, i64)>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreVerb {
    Set,
    Add,
    Replace,
    Append,
    Prepend,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Up,
    Down,
}

/// Which replies answer a command. All but these two need no key to be told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// `VALUE` of the key that was asked for, or `END`.
    Value,
    /// `VA` of that key, or `EN`.
    MetaValue,
    /// `STORED` and what else may become of a value.
    Stored,
    Deleted,
    Number,
    /// `OK`.
    Done,
    /// `STAT` lines and `END`, or one word.
    Lines,
    Version,
    /// `HD`, `EN`, `NF`, `NS` or `EX`.
    MetaStatus,
    /// The same, or a number.
    MetaNumber,
    /// `HD` with what is known of the item, or `EN`.
    MetaFacts,
    /// `ME`, or `EN`.
    MetaDebug,
    /// `MN`.
    Noop,
    /// Nothing but what went wrong, up to the `MN` of the command that was sent behind it.
    Silence,
}

impl StoreVerb {
    const fn word(self) -> &'static [u8] {
        match self {
            StoreVerb::Set => b"set ",
            StoreVerb::Add => b"add ",
            StoreVerb::Replace => b"replace ",
            StoreVerb::Append => b"append ",
            StoreVerb::Prepend => b"prepend ",
        }
    }

    const fn mode(self) -> &'static [u8] {
        match self {
            StoreVerb::Set => b" MS",
            StoreVerb::Add => b" ME",
            StoreVerb::Replace => b" MR",
            StoreVerb::Append => b" MA",
            StoreVerb::Prepend => b" MP",
        }
    }
}

/// May the text protocol carry this key as it is?
#[inline]
pub fn is_key(key: &[u8]) -> bool {
    !key.is_empty() && key.len() <= MEMCACHED_KEY_BYTES_MAX && are_key_bytes(key)
}

/// May the meta commands carry it, as it is or as base64?
pub fn is_meta_key(key: &[u8]) -> bool {
    is_key(key) || !key.is_empty() && !are_key_bytes(key) && key.len().div_ceil(3) * 4 <= MEMCACHED_KEY_BYTES_MAX
}

/// All of them at once, which is faster than stopping at the first that is none.
#[inline]
pub fn are_key_bytes(bytes: &[u8]) -> bool {
    bytes.iter().fold(true, |all, &b| all & is_key_byte(b))
}

/// Is this word of a reply that key? `in_base64`: the reply says that it is encoded.
pub(crate) fn is_said(said: &[u8], in_base64: bool, key: &[u8]) -> bool {
    match in_base64 {
        false => said == key,
        true => !are_key_bytes(key) && BASE64.encode(key).as_bytes() == said,
    }
}

/// What ends a word or a line, and what terminals act on, stands in no key.
#[inline]
pub const fn is_key_byte(b: u8) -> bool {
    b > b' ' && b != 0x7f
}

impl Command<'_> {
    /// Which replies will answer it.
    pub fn expected(&self) -> Expected {
        match self {
            Command::Get { .. } => Expected::Value,
            Command::Store { .. } => Expected::Stored,
            Command::Delete { .. } => Expected::Deleted,
            Command::Count { .. } => Expected::Number,
            Command::FlushAll { .. } | Command::Verbosity { .. } | Command::CacheMemoryLimit { .. } => Expected::Done,
            Command::Stats { .. } => Expected::Lines,
            Command::Version => Expected::Version,
            Command::MetaGet { .. } | Command::MetaVivify { .. } => Expected::MetaValue,
            Command::MetaTouch { .. } | Command::MetaStore { .. } | Command::MetaDelete { .. } => Expected::MetaStatus,
            Command::MetaCount { .. } => Expected::MetaNumber,
            Command::MetaFacts { .. } => Expected::MetaFacts,
            Command::MetaDebug { .. } => Expected::MetaDebug,
            Command::MetaNoop => Expected::Noop,
        }
    }

    /// Does it only read, so that it may be asked twice?
    pub fn is_read(&self) -> bool {
        match self {
            Command::Get { .. } | Command::Stats { .. } | Command::Version => true,
            Command::MetaFacts { .. } | Command::MetaDebug { .. } | Command::MetaNoop => true,
            Command::MetaGet { exptime, .. } => exptime.is_none(),
            _ => false,
        }
    }

    /// Appends the command as it is sent.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_with(b"", out);
    }

    /// Appends a meta command to which nothing is said unless it fails, and one whose reply tells that this is over:
    /// [`Expected::Silence`].
    pub fn write_quiet(&self, out: &mut Vec<u8>) {
        self.write_with(b" q", out);
        Command::MetaNoop.write(out);
    }

    fn write_with(&self, quiet: &[u8], out: &mut Vec<u8>) {
        match *self {
            Command::Get { key } => put(out, &[b"get ", key]),
            Command::Store { verb, key, flags, exptime, value } => {
                put(out, &[verb.word(), key]);
                put_number(out, b" ", u64::from(flags));
                put_signed(out, b" ", exptime);
                put_number(out, b" ", value.len() as u64);
                put(out, &[b"\r\n", value]);
            }
            Command::Delete { key, exptime } => {
                put(out, &[b"delete ", key]);
                if let Some(exptime) = exptime {
                    put_number(out, b" ", exptime);
                }
            }
            Command::Count { direction, key, delta } => {
                put(out, &[if direction == Direction::Up { b"incr " } else { b"decr " }, key]);
                put_number(out, b" ", delta);
            }
            Command::FlushAll { delay_s } => {
                put(out, &[b"flush_all"]);
                if let Some(delay_s) = delay_s {
                    put_number(out, b" ", delay_s);
                }
            }
            Command::Stats { argument: b"" } => put(out, &[b"stats"]),
            Command::Stats { argument } => put(out, &[b"stats ", argument]),
            Command::Version => put(out, &[b"version"]),
            Command::Verbosity { level } => put_number(out, b"verbosity ", u64::from(level)),
            Command::CacheMemoryLimit { megabytes } => put_number(out, b"cache_memlimit ", megabytes),
            _ => self.write_meta(quiet, out),
        }
        out.extend_from_slice(b"\r\n");
    }

    /// The meta commands, whose key comes back in the answer where a value does.
    fn write_meta(&self, quiet: &[u8], out: &mut Vec<u8>) {
        match *self {
            Command::MetaGet { key, exptime } => {
                put_key(out, b"mg ", key, b" f c t v k");
                if let Some(exptime) = exptime {
                    put_signed(out, b" T", exptime);
                }
            }
            Command::MetaVivify { key, life_s } => {
                put_key(out, b"mg ", key, b" f c t v k");
                put_number(out, b" N", life_s);
            }
            Command::MetaFacts { key } => put_key(out, b"mg ", key, b" s f c t k"),
            Command::MetaDebug { key } => put_key(out, b"me ", key, b""),
            Command::MetaNoop => put(out, &[b"mn"]),
            Command::MetaTouch { key, exptime } => {
                put_key(out, b"mg ", key, b"");
                put_signed(out, b" T", exptime);
                put(out, &[quiet]);
            }
            Command::MetaStore { verb, key, flags, exptime, cas, value } => {
                let encoding = put_word(out, b"ms ", key);
                put_number(out, b" ", value.len() as u64);
                put(out, &[encoding]);
                put_number(out, b" c F", u64::from(flags));
                put_signed(out, b" T", exptime);
                put(out, &[verb.mode()]);
                if let Some(cas) = cas {
                    put_number(out, b" C", cas);
                }
                put(out, &[quiet, b"\r\n", value]);
            }
            Command::MetaDelete { key, cas, stale_s } => {
                put_key(out, b"md ", key, b"");
                if let Some(cas) = cas {
                    put_number(out, b" C", cas);
                }
                if let Some(stale_s) = stale_s {
                    put_number(out, b" I T", stale_s);
                }
                put(out, &[quiet]);
            }
            Command::MetaCount { direction, key, delta, initial } => {
                put_key(out, b"ma ", key, if direction == Direction::Up { b" MI" } else { b" MD" });
                put_number(out, b" v c D", delta);
                if let Some((initial, exptime)) = initial {
                    put_number(out, b" J", initial);
                    put_signed(out, b" N", exptime);
                }
                put(out, &[quiet]);
            }
            _ => unreachable!("the classic commands are written before"),
        }
    }
}

/// Verb, key and flags.
fn put_key(out: &mut Vec<u8>, verb: &[u8], key: &[u8], flags: &[u8]) {
    let encoding = put_word(out, verb, key);
    put(out, &[encoding, flags]);
}

/// Verb and key. The flag that says how the key is written stands behind what else the command has before its flags.
fn put_word(out: &mut Vec<u8>, verb: &[u8], key: &[u8]) -> &'static [u8] {
    match are_key_bytes(key) {
        true => {
            put(out, &[verb, key]);
            b""
        }
        false => {
            put(out, &[verb, BASE64.encode(key).as_bytes()]);
            b" b"
        }
    }
}

fn put(out: &mut Vec<u8>, parts: &[&[u8]]) {
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

fn put_number(out: &mut Vec<u8>, before: &[u8], number: u64) {
    out.extend_from_slice(before);
    write_decimal(out, number);
}

fn put_signed(out: &mut Vec<u8>, before: &[u8], number: i64) {
    out.extend_from_slice(before);
    if number < 0 {
        out.push(b'-');
    }
    write_decimal(out, number.unsigned_abs());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: Command<'_>, text: &str) {
        let mut out = Vec::new();
        command.write(&mut out);
        assert_eq!(String::from_utf8_lossy(&out), text, "{command:?}");
    }

    #[test]
    fn classic_commands_are_written() {
        let (key, verb) = (&b"k"[..], StoreVerb::Set);
        check(Command::Get { key }, "get k\r\n");
        check(
            Command::Store { verb, key, flags: u32::MAX, exptime: -1, value: b"a\r\nb" },
            "set k 4294967295 -1 4\r\na\r\nb\r\n",
        );
        for (verb, word) in [
            (StoreVerb::Add, "add"),
            (StoreVerb::Replace, "replace"),
            (StoreVerb::Append, "append"),
            (StoreVerb::Prepend, "prepend"),
        ] {
            check(Command::Store { verb, key, flags: 0, exptime: 0, value: b"" }, &format!("{word} k 0 0 0\r\n\r\n"));
        }
        check(Command::Delete { key, exptime: None }, "delete k\r\n");
        check(Command::Delete { key, exptime: Some(0) }, "delete k 0\r\n");
        check(Command::Count { direction: Direction::Up, key, delta: u64::MAX }, "incr k 18446744073709551615\r\n");
        check(Command::Count { direction: Direction::Down, key, delta: 1 }, "decr k 1\r\n");
        check(Command::FlushAll { delay_s: None }, "flush_all\r\n");
        check(Command::FlushAll { delay_s: Some(10) }, "flush_all 10\r\n");
        check(Command::Stats { argument: b"" }, "stats\r\n");
        check(Command::Stats { argument: b"items" }, "stats items\r\n");
        check(Command::Version, "version\r\n");
        check(Command::Verbosity { level: 1 }, "verbosity 1\r\n");
        check(Command::CacheMemoryLimit { megabytes: 64 }, "cache_memlimit 64\r\n");
    }

    #[test]
    fn meta_commands_are_written() {
        let (key, verb) = (&b"k"[..], StoreVerb::Set);
        check(Command::MetaGet { key, exptime: None }, "mg k f c t v k\r\n");
        check(Command::MetaGet { key, exptime: Some(30) }, "mg k f c t v k T30\r\n");
        check(Command::MetaVivify { key, life_s: 10 }, "mg k f c t v k N10\r\n");
        check(Command::MetaFacts { key }, "mg k s f c t k\r\n");
        check(Command::MetaDebug { key }, "me k\r\n");
        check(Command::MetaNoop, "mn\r\n");
        check(Command::MetaTouch { key, exptime: -1 }, "mg k T-1\r\n");
        check(
            Command::MetaStore { verb, key, flags: 7, exptime: 60, cas: Some(12), value: b"xy" },
            "ms k 2 c F7 T60 MS C12\r\nxy\r\n",
        );
        check(
            Command::MetaStore { verb: StoreVerb::Add, key, flags: 0, exptime: 0, cas: None, value: b"" },
            "ms k 0 c F0 T0 ME\r\n\r\n",
        );
        check(Command::MetaDelete { key, cas: Some(3), stale_s: None }, "md k C3\r\n");
        check(Command::MetaDelete { key, cas: None, stale_s: Some(30) }, "md k I T30\r\n");
        check(
            Command::MetaCount { direction: Direction::Down, key, delta: 2, initial: Some((5, 0)) },
            "ma k MD v c D2 J5 N0\r\n",
        );
    }

    #[test]
    fn a_key_that_words_cannot_hold_goes_as_base64() {
        let key = &b"a b\r\n"[..];
        check(Command::MetaGet { key, exptime: None }, "mg YSBiDQo= b f c t v k\r\n");
        check(Command::MetaFacts { key }, "mg YSBiDQo= b s f c t k\r\n");
        check(Command::MetaTouch { key, exptime: 3 }, "mg YSBiDQo= b T3\r\n");
        let (verb, value) = (StoreVerb::Set, &b"v"[..]);
        check(
            Command::MetaStore { verb, key, flags: 0, exptime: 0, cas: None, value },
            "ms YSBiDQo= 1 b c F0 T0 MS\r\nv\r\n",
        );
        check(Command::MetaDelete { key, cas: None, stale_s: None }, "md YSBiDQo= b\r\n");
        check(
            Command::MetaCount { direction: Direction::Up, key, delta: 1, initial: None },
            "ma YSBiDQo= b MI v c D1\r\n",
        );
        check(Command::MetaDebug { key }, "me YSBiDQo= b\r\n");
        for (key, is_one) in [(&[0; 186][..], true), (&[0; 187], false), (b"", false), (&[b'k'; 250], true)] {
            assert_eq!(is_meta_key(key), is_one, "{}", key.len());
        }
        assert!(is_said(b"YSBiDQo=", true, key) && !is_said(b"YSBiDQo=", false, key));
        assert!(!is_said(b"YQ==", true, b"a"), "nobody asked so");
    }

    #[test]
    fn a_quiet_command_is_followed_by_one_that_is_not() {
        let check = |command: Command<'_>, text: &str| {
            let mut out = Vec::new();
            command.write_quiet(&mut out);
            assert_eq!(String::from_utf8_lossy(&out), text, "{command:?}");
        };
        let (key, verb, value) = (&b"k"[..], StoreVerb::Append, &b"v"[..]);
        check(
            Command::MetaStore { verb, key, flags: 0, exptime: 0, cas: None, value },
            "ms k 1 c F0 T0 MA q\r\nv\r\nmn\r\n",
        );
        check(Command::MetaDelete { key, cas: Some(3), stale_s: None }, "md k C3 q\r\nmn\r\n");
        check(Command::MetaTouch { key, exptime: 5 }, "mg k T5 q\r\nmn\r\n");
    }

    #[test]
    fn what_would_be_another_command_is_no_key() {
        for key in [&b""[..], b"a b", b"a\r\nflush_all", b"a\tb", b"\0", b"a\x7f", &[b'k'; 251]] {
            assert!(!is_key(key), "{key:?}");
        }
        for key in [&b"k"[..], "caf\u{e9}".as_bytes(), b"%20", &[b'k'; 250]] {
            assert!(is_key(key), "{key:?}");
        }
    }
}
