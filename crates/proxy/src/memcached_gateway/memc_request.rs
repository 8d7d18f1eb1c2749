//! A request as nginx's memc module reads it: the same variables' roles, the same refusals with the same statuses.
//!
//! Nothing is decoded, as nginx decodes no `$arg_…`, but for a path, as `$uri` is; a key is escaped before it is sent. What differs on purpose: a
//! number of more than 32 bits is no flags here, where nginx hands it on.

use message::Request;
use wire::memcached::{Command, Direction};

use crate::memcached_gateway::gateway_settings::{BinaryKeys, LongKeys, MemcachedCommand, MemcachedSettings};
use crate::memcached_gateway::item_key::{ItemKey, KeyRules, NoKey};
use crate::memcached_gateway::memcached_request::{
    MemcachedRequest, command_of_method, forbidden, malformed, number, refused,
};
use crate::transaction::synth::Synth;

impl MemcachedRequest {
    /// Reads a request; what it says of its value is looked at when the body is there.
    pub(crate) fn read_memc(
        request: &Request<'_>,
        prefix: &str,
        settings: &MemcachedSettings,
    ) -> Result<MemcachedRequest, Synth> {
        let of_memc = |command: &MemcachedCommand| MemcachedCommand::OF_MEMC.contains(command);
        let word = settings.command.of(request, prefix).filter(|word| !word.is_empty());
        let command = match word {
            // `gets` is another word for get elsewhere, and no word here.
            Some(word) => MemcachedCommand::of(word).filter(|command| of_memc(command) && word != b"gets"),
            None => command_of_method(request.method),
        };
        let command = command.ok_or_else(|| refused("command-unknown", "The module has no such command."))?;
        if !settings.commands.contains(&command) {
            return Err(forbidden());
        }
        let mut wanted = MemcachedRequest::of_command(command);
        if command.has_key() {
            let key = settings.key.as_variable(request, prefix).map_err(malformed)?.unwrap_or_default();
            let rules = KeyRules { is_path: false, long: LongKeys::Refuse, binary: BinaryKeys::Refuse };
            let key = ItemKey::read(&escaped(&key), rules).map_err(|why| match why {
                NoKey::Missing => Synth::memcached_refused(500, "key-missing", "The request names no key."),
                // What a memcached would say of it, had it been asked.
                NoKey::TooLong => Synth::memcached_refused(502, "key-too-long", "memcached takes keys of 250 bytes."),
                NoKey::Forbidden | NoKey::Reserved => refused("key-forbidden", "No key of a client's."),
            })?;
            wanted.keys.push(key);
        }
        let part = |part: &super::gateway_settings::RequestPart| -> Option<Vec<u8>> {
            part.of(request, prefix).filter(|text| !text.is_empty()).map(<[u8]>::to_vec)
        };
        wanted.value = settings.value.of(request, prefix).map(<[u8]>::to_vec);
        if command.stores().is_some() {
            if let Some(flags) = part(&settings.flags) {
                wanted.flags = number::<u32>(&flags).ok_or_else(|| refused("flags-invalid", "Flags are 32 bits."))?;
            }
            wanted.exptime = exptime(part(&settings.exptime))?;
        } else if matches!(command, MemcachedCommand::FlushAll | MemcachedCommand::Delete) {
            wanted.exptime = exptime(part(&settings.exptime))?;
        }
        if matches!(command, MemcachedCommand::Incr | MemcachedCommand::Decr) {
            let digits = wanted.value.take().unwrap_or_default();
            wanted.number =
                number::<u64>(&digits).ok_or_else(|| refused("value-invalid", "The value is no number."))?;
        }
        Ok(wanted)
    }

    /// As it is sent, in the classic protocol.
    pub(crate) fn memc_command<'a>(&'a self, key: &'a [u8], value: &'a [u8]) -> Command<'a> {
        let exptime = self.exptime.unwrap_or(0);
        if let Some(verb) = self.command.stores() {
            return Command::Store { verb, key, flags: self.flags, exptime, value };
        }
        let seconds = self.exptime.and_then(|seconds| seconds.try_into().ok());
        match self.command {
            MemcachedCommand::Delete => Command::Delete { key, exptime: seconds },
            MemcachedCommand::Incr => Command::Count { direction: Direction::Up, key, delta: self.number },
            MemcachedCommand::Decr => Command::Count { direction: Direction::Down, key, delta: self.number },
            MemcachedCommand::FlushAll => Command::FlushAll { delay_s: seconds },
            MemcachedCommand::Stats => Command::Stats { argument: b"" },
            MemcachedCommand::Version => Command::Version,
            _ => Command::Get { key },
        }
    }
}

/// Digits alone: a negative number is none to the module.
fn exptime(text: Option<Vec<u8>>) -> Result<Option<i64>, Synth> {
    let Some(text) = text else { return Ok(None) };
    let seconds =
        number::<u32>(&text).ok_or_else(|| refused("exptime-invalid", "An expiry is a number of seconds."))?;
    Ok(Some(i64::from(seconds)))
}

/// Blanks, control characters and percent signs as `%xx`.
fn escaped(key: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(key.len());
    for &byte in key {
        match byte <= b' ' || byte == b'%' {
            true => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            false => out.push(byte),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_escaped_as_nginx_does() {
        assert_eq!(escaped(b"a%20b"), b"a%2520b");
        assert_eq!(escaped("a b\r\nc\u{e9}".as_bytes()), "a%20b%0D%0Ac\u{e9}".as_bytes());
    }
}
