//! What a request asks of memcached: the command, its key and its numbers, by HTTP's method or by the request's own
//! word. In the clean mode here; as nginx's memc module reads it, in `memc_request.rs`.

use message::{FieldName, Method, Request};
use smallvec::SmallVec;
use wire::memcached::{Command, Direction, StoreVerb};

use crate::limits::MEMCACHED_MULTI_KEYS_MAX;
use crate::memcached_gateway::gateway_settings::{MemcachedCommand, MemcachedSettings, RequestPart};
use crate::memcached_gateway::item_key::{ItemKey, KeyRules, NoKey};
use crate::memcached_gateway::request_part::{Malformed, argument, arguments, decode};
use crate::transaction::synth::Synth;

#[derive(Clone, Debug)]
pub(crate) struct MemcachedRequest {
    pub(crate) command: MemcachedCommand,
    /// Of commands that have one: one, but for a multi-get.
    pub(crate) keys: SmallVec<[ItemKey; 1]>,
    pub(crate) flags: u32,
    pub(crate) exptime: Option<i64>,
    /// What is added or taken away, or a level or a size.
    pub(crate) number: u64,
    /// What a counter begins with.
    pub(crate) initial: Option<u64>,
    /// Only if the item is still this one.
    pub(crate) cas: Option<u64>,
    /// An unmet condition of `add`, `replace` or `cas` is HTTP's 412: the request's fields said it.
    pub(crate) by_condition: bool,
    /// Instead of the body.
    pub(crate) value: Option<Vec<u8>>,
    /// Of statistics.
    pub(crate) argument: Vec<u8>,
    /// Who asks waits for no reply.
    pub(crate) is_unheard: bool,
    /// Of an item all but its value is wanted.
    pub(crate) wants_facts: bool,
}

/// Which command a method is, if the request does not say.
pub(crate) fn command_of_method(method: Method) -> Option<MemcachedCommand> {
    match method {
        Method::Get | Method::Head => Some(MemcachedCommand::Get),
        Method::Post => Some(MemcachedCommand::Add),
        Method::Put => Some(MemcachedCommand::Set),
        Method::Delete => Some(MemcachedCommand::Delete),
        _ => None,
    }
}

impl MemcachedCommand {
    pub(crate) fn has_key(self) -> bool {
        use MemcachedCommand::{CacheMemoryLimit, FlushAll, Noop, Stats, Verbosity, Version};
        !matches!(self, FlushAll | Stats | Version | Verbosity | CacheMemoryLimit | Noop)
    }

    pub(crate) fn stores(self) -> Option<StoreVerb> {
        match self {
            MemcachedCommand::Set | MemcachedCommand::Cas => Some(StoreVerb::Set),
            MemcachedCommand::Add => Some(StoreVerb::Add),
            MemcachedCommand::Replace => Some(StoreVerb::Replace),
            MemcachedCommand::Append => Some(StoreVerb::Append),
            MemcachedCommand::Prepend => Some(StoreVerb::Prepend),
            _ => None,
        }
    }
}

impl MemcachedRequest {
    pub(crate) fn of_command(command: MemcachedCommand) -> MemcachedRequest {
        MemcachedRequest {
            command,
            keys: SmallVec::new(),
            flags: 0,
            exptime: None,
            number: 1,
            initial: None,
            cas: None,
            by_condition: false,
            value: None,
            argument: Vec::new(),
            is_unheard: false,
            wants_facts: false,
        }
    }

    /// Reads a request in the clean mode.
    pub(crate) fn read(
        request: &Request<'_>,
        prefix: &str,
        settings: &MemcachedSettings,
    ) -> Result<MemcachedRequest, Synth> {
        let word = settings.command.of(request, prefix).filter(|word| !word.is_empty());
        let command = match word {
            Some(word) => MemcachedCommand::of(word).ok_or_else(|| refused("command-unknown", NO_COMMAND))?,
            None => command_of_method(request.method).ok_or_else(Synth::memcached_method)?,
        };
        if !settings.commands.contains(&command) {
            return Err(forbidden());
        }
        let mut wanted = MemcachedRequest::of_command(command);
        wanted.keys = keys(request, prefix, settings, command)?;
        let query = request.query.unwrap_or_default();
        if let Some(flags) = number_of(&settings.flags, request, prefix, "flags-invalid", FLAGS)? {
            wanted.flags = flags;
        }
        wanted.exptime = number_of(&settings.exptime, request, prefix, "exptime-invalid", EXPTIME)?;
        if command.stores().is_some() {
            wanted.read_conditions(request, query)?;
            wanted.value = value(&settings.value, request, prefix)?;
            let is_gzip =
                request.fields.get(FieldName::ContentEncoding).is_some_and(|v| v.eq_ignore_ascii_case(b"gzip"));
            if is_gzip {
                wanted.flags |= settings.gzip_flag;
            }
        } else if command == MemcachedCommand::Delete {
            wanted.cas = if_match(request)?.flatten();
        }
        wanted.read_numbers(query)?;
        wanted.is_unheard = wanted.read_noreply(query)?;
        // An item that begins with its key is not known by its facts.
        let is_get = command == MemcachedCommand::Get;
        wanted.wants_facts = is_get && request.method == Method::Head && !wanted.keys.iter().any(ItemKey::is_long);
        wanted.check_key()?;
        Ok(wanted)
    }

    /// If-Match and If-None-Match make conditional commands of a plain `set`.
    fn read_conditions(&mut self, request: &Request<'_>, query: &[u8]) -> Result<(), Synth> {
        if self.command == MemcachedCommand::Cas {
            self.cas = match argument(query, b"cas") {
                Some(digits) => Some(number(digits).ok_or_else(|| refused("cas-invalid", CAS))?),
                None => None,
            };
        }
        let none_match = request.fields.get(FieldName::IfNoneMatch).map(<[u8]>::trim_ascii);
        match (self.command, none_match, if_match(request)?) {
            (MemcachedCommand::Set | MemcachedCommand::Cas, _, Some(Some(cas))) => self.set_conditional(Some(cas)),
            (MemcachedCommand::Set, _, Some(None)) => {
                self.command = MemcachedCommand::Replace;
                self.by_condition = true;
            }
            (MemcachedCommand::Set, Some(b"*"), None) => {
                self.command = MemcachedCommand::Add;
                self.by_condition = true;
            }
            (_, Some(b"*"), None) if self.command == MemcachedCommand::Add => self.by_condition = true,
            (_, None, None) => {}
            _ => return Err(refused("condition-unsupported", CONDITION)),
        }
        match self.command == MemcachedCommand::Cas && self.cas.is_none() {
            true => Err(refused("cas-invalid", CAS)),
            false => Ok(()),
        }
    }

    fn set_conditional(&mut self, cas: Option<u64>) {
        self.cas = cas;
        self.by_condition = true;
    }

    fn read_numbers(&mut self, query: &[u8]) -> Result<(), Synth> {
        let named = |name: &[u8]| match argument(query, name) {
            Some(digits) => number(digits).map(Some).ok_or_else(|| refused("number-invalid", NUMBER)),
            None => Ok(None),
        };
        use MemcachedCommand::{CacheMemoryLimit, Decr, Incr, Invalidate, Stats, Touch, Verbosity};
        match self.command {
            Incr | Decr => {
                self.number = named(b"delta")?.unwrap_or(1);
                self.initial = named(b"initial")?;
            }
            Invalidate => self.number = named(b"stale")?.unwrap_or(STALE_SECONDS_DEFAULT),
            Verbosity => self.number = named(b"level")?.unwrap_or(0),
            CacheMemoryLimit => {
                self.number = named(b"megabytes")?.ok_or_else(|| refused("number-invalid", NUMBER))?;
            }
            Touch => drop(self.exptime.ok_or_else(|| refused("exptime-invalid", EXPTIME))?),
            Stats => {
                self.argument = argument(query, b"of").unwrap_or_default().to_vec();
                if !self.argument.iter().all(u8::is_ascii_alphanumeric) {
                    return Err(refused("argument-invalid", "What statistics are of is a word of letters and digits."));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// `noreply=1`, of what changes one item.
    fn read_noreply(&self, query: &[u8]) -> Result<bool, Synth> {
        use MemcachedCommand::{Decr, Delete, Incr, Invalidate, Touch};
        let is_noreply = match argument(query, b"noreply") {
            None | Some(b"0") => return Ok(false),
            Some(said) => said == b"1",
        };
        let changes =
            self.command.stores().is_some() || matches!(self.command, Delete | Invalidate | Incr | Decr | Touch);
        (is_noreply && changes).then_some(true).ok_or_else(|| refused("noreply-invalid", NOREPLY))
    }

    /// What is stored under a hash begins with its key, and takes no part of a value at its front or as a number. And an
    /// item that memcached makes anew by itself forgets that its key came as base64.
    fn check_key(&self) -> Result<(), Synth> {
        use MemcachedCommand::{Append, Decr, Incr, Prepend};
        if !matches!(self.command, Append | Prepend | Incr | Decr) {
            return Ok(());
        }
        match self.keys.iter().find(|key| key.is_long() || key.is_binary()) {
            None => Ok(()),
            Some(key) if key.is_long() => Err(long_key(414)),
            Some(_) => Err(refused("key-binary", KEY_BINARY)),
        }
    }

    /// As it is sent; `value` is what is stored.
    pub(crate) fn command<'a>(&'a self, key: &'a [u8], value: &'a [u8]) -> Command<'a> {
        let exptime = self.exptime.unwrap_or(0);
        let direction = if self.command == MemcachedCommand::Incr { Direction::Up } else { Direction::Down };
        if let Some(verb) = self.command.stores() {
            return Command::MetaStore { verb, key, flags: self.flags, exptime, cas: self.cas, value };
        }
        match self.command {
            MemcachedCommand::Gat => Command::MetaGet { key, exptime: Some(exptime) },
            MemcachedCommand::Delete => Command::MetaDelete { key, cas: self.cas, stale_s: None },
            MemcachedCommand::Invalidate => Command::MetaDelete { key, cas: self.cas, stale_s: Some(self.number) },
            MemcachedCommand::Incr | MemcachedCommand::Decr => {
                let initial = self.initial.map(|initial| (initial, exptime));
                Command::MetaCount { direction, key, delta: self.number, initial }
            }
            MemcachedCommand::Touch => Command::MetaTouch { key, exptime },
            MemcachedCommand::FlushAll => Command::FlushAll { delay_s: self.exptime.and_then(|s| s.try_into().ok()) },
            MemcachedCommand::Stats => Command::Stats { argument: &self.argument },
            MemcachedCommand::Version => Command::Version,
            MemcachedCommand::Verbosity => Command::Verbosity { level: self.number.try_into().unwrap_or(u32::MAX) },
            MemcachedCommand::CacheMemoryLimit => Command::CacheMemoryLimit { megabytes: self.number },
            MemcachedCommand::Debug => Command::MetaDebug { key },
            MemcachedCommand::Noop => Command::MetaNoop,
            _ if self.wants_facts => Command::MetaFacts { key },
            _ => Command::MetaGet { key, exptime: None },
        }
    }
}

const STALE_SECONDS_DEFAULT: u64 = 30;

const NO_COMMAND: &str = "memcached has no such command, or it is none that HTTP can ask for.";
const FLAGS: &str = "An item's flags are a number of 32 bits.";
const EXPTIME: &str = "An expiry is a whole number of seconds, as memcached reads it.";
const NUMBER: &str = "This takes a whole number of 64 bits.";
const KEY_BINARY: &str = "This cannot be had of a key with blanks or control characters.";
const NOREPLY: &str = "noreply=1 is for a command that changes one item.";
const CAS: &str = "A `cas` needs the item's number: an If-Match with its ETag, or the argument cas=NUMBER.";
const CONDITION: &str = "Storing takes If-Match with one ETag or *, or If-None-Match: *, and no other condition.";

/// A request that asks for something that cannot be.
pub(crate) fn refused(token: &'static str, text: &'static str) -> Synth {
    Synth::memcached_refused(400, token, text)
}

pub(crate) fn forbidden() -> Synth {
    Synth::memcached_refused(403, "command-forbidden", "This command is not offered here (commands of the [[route]]).")
}

pub(crate) fn long_key(status: u16) -> Synth {
    let text = "The key is too long for that: memcached takes 250 bytes (long_keys of the [[route]]).";
    Synth::memcached_refused(status, "key-too-long", text)
}

pub(crate) fn no_key(why: NoKey) -> Synth {
    match why {
        NoKey::Missing => refused("key-missing", "The request names no key (key of the [[route]])."),
        NoKey::Forbidden => refused("key-forbidden", "A key holds no blanks and no control characters, and no `..`."),
        NoKey::Reserved => refused("key-reserved", "Keys that begin with `larder:` are larder's own."),
        NoKey::TooLong => long_key(414),
    }
}

pub(crate) fn malformed(_: Malformed) -> Synth {
    refused("escape-malformed", "A percent sign that begins no escape.")
}

fn keys(
    request: &Request<'_>,
    prefix: &str,
    settings: &MemcachedSettings,
    command: MemcachedCommand,
) -> Result<SmallVec<[ItemKey; 1]>, Synth> {
    let rules = KeyRules { is_path: settings.key.is_of_path(), long: settings.long_keys, binary: settings.binary_keys };
    let read = |key: &[u8]| ItemKey::read(key, rules).map_err(no_key);
    let mut keys = SmallVec::new();
    if command == MemcachedCommand::MultiGet {
        for written in arguments(request.query.unwrap_or_default(), b"key") {
            if keys.len() == MEMCACHED_MULTI_KEYS_MAX {
                return Err(refused("keys-too-many", "More keys than one request may name."));
            }
            keys.push(read(&decode(written).map_err(malformed)?)?);
        }
        return if keys.is_empty() { Err(no_key(NoKey::Missing)) } else { Ok(keys) };
    }
    if command.has_key() {
        let key = settings.key.decoded(request, prefix).map_err(malformed)?;
        keys.push(read(&key.unwrap_or_default())?);
    }
    Ok(keys)
}

fn value(part: &RequestPart, request: &Request<'_>, prefix: &str) -> Result<Option<Vec<u8>>, Synth> {
    Ok(part.decoded(request, prefix).map_err(malformed)?.map(|value| value.into_owned()))
}

fn number_of<T: std::str::FromStr>(
    part: &RequestPart,
    request: &Request<'_>,
    prefix: &str,
    token: &'static str,
    text: &'static str,
) -> Result<Option<T>, Synth> {
    match part.of(request, prefix).filter(|text| !text.is_empty()) {
        Some(digits) => number(digits).map(Some).ok_or_else(|| refused(token, text)),
        None => Ok(None),
    }
}

/// A whole number, with a sign where its type has one.
pub(crate) fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// `Some(None)` is `*`; a tag is a CAS number of ours.
fn if_match(request: &Request<'_>) -> Result<Option<Option<u64>>, Synth> {
    let Some(value) = request.fields.get(FieldName::IfMatch).map(<[u8]>::trim_ascii) else { return Ok(None) };
    if value == b"*" {
        return Ok(Some(None));
    }
    if value.contains(&b',') {
        return Err(refused("condition-unsupported", CONDITION));
    }
    // A tag that is none of ours fits no item: 0 is no item's number.
    Ok(Some(Some(cas_of_tag(value).unwrap_or(0))))
}

/// An ETag of an item is its CAS number.
pub(crate) fn tag_of_cas(cas: u64) -> String {
    format!("\"{cas:x}\"")
}

fn cas_of_tag(tag: &[u8]) -> Option<u64> {
    let digits = tag.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}
