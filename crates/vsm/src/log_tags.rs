//! The kinds of records in the log of Varnish 7.1: their names (vsl(7)), whose numbers are their places.

/// A kind of record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogTag(u8);

/// What opens a piece that holds records.
pub(crate) const BATCH: u8 = 255;

/// The number of the first is 1.
const NAMES: [&str; 96] = [
    "Debug",
    "Error",
    "CLI",
    "SessOpen",
    "SessClose",
    "BackendOpen",
    "BackendReuse",
    "BackendClose",
    "HttpGarbage",
    "Proxy",
    "ProxyGarbage",
    "Backend",
    "Length",
    "FetchError",
    "ReqMethod",
    "ReqURL",
    "ReqProtocol",
    "ReqStatus",
    "ReqReason",
    "ReqHeader",
    "ReqUnset",
    "ReqLost",
    "RespMethod",
    "RespURL",
    "RespProtocol",
    "RespStatus",
    "RespReason",
    "RespHeader",
    "RespUnset",
    "RespLost",
    "BereqMethod",
    "BereqURL",
    "BereqProtocol",
    "BereqStatus",
    "BereqReason",
    "BereqHeader",
    "BereqUnset",
    "BereqLost",
    "BerespMethod",
    "BerespURL",
    "BerespProtocol",
    "BerespStatus",
    "BerespReason",
    "BerespHeader",
    "BerespUnset",
    "BerespLost",
    "ObjMethod",
    "ObjURL",
    "ObjProtocol",
    "ObjStatus",
    "ObjReason",
    "ObjHeader",
    "ObjUnset",
    "ObjLost",
    "BogoHeader",
    "LostHeader",
    "TTL",
    "Fetch_Body",
    "VCL_acl",
    "VCL_call",
    "VCL_trace",
    "VCL_return",
    "ReqStart",
    "Hit",
    "HitPass",
    "ExpBan",
    "ExpKill",
    "WorkThread",
    "ESI_xmlerror",
    "Hash",
    "Backend_health",
    "VCL_Log",
    "VCL_Error",
    "Gzip",
    "Link",
    "Begin",
    "End",
    "VSL",
    "Storage",
    "Timestamp",
    "ReqAcct",
    "PipeAcct",
    "BereqAcct",
    "VfpAcct",
    "Witness",
    "BackendStart",
    "H2RxHdr",
    "H2RxBody",
    "H2TxHdr",
    "H2TxBody",
    "HitMiss",
    "Filters",
    "SessError",
    "VCL_use",
    "Notice",
    "VdpAcct",
];

/// What is not logged unless somebody asks for it.
const QUIET: [&str; 15] = [
    "Debug",
    "ObjProtocol",
    "ObjStatus",
    "ObjReason",
    "ObjHeader",
    "VCL_trace",
    "ExpKill",
    "WorkThread",
    "Hash",
    "VfpAcct",
    "H2RxHdr",
    "H2RxBody",
    "H2TxHdr",
    "H2TxBody",
    "VdpAcct",
];

/// Those that hold bytes, by their numbers.
const BINARY: u128 = {
    let (mut bits, mut at) = (0, 0);
    while at < NAMES.len() {
        if let [b'H', b'2', b'R' | b'T', b'x', ..] = NAMES[at].as_bytes() {
            bits |= 1 << (at + 1);
        }
        at += 1;
    }
    bits
};

impl LogTag {
    pub fn named(name: &str) -> Option<LogTag> {
        let at = NAMES.iter().position(|known| known.eq_ignore_ascii_case(name))?;
        Some(LogTag(at as u8 + 1))
    }

    /// Is what such a record holds no text? Readers show it as hexadecimal digits, and it has no NUL behind it.
    pub fn is_binary(self) -> bool {
        BINARY & 1 << self.0 != 0
    }

    pub fn numbered(number: u8) -> Option<LogTag> {
        (1..=NAMES.len()).contains(&usize::from(number)).then_some(LogTag(number))
    }

    pub fn name(self) -> &'static str {
        NAMES[usize::from(self.0) - 1]
    }

    pub fn number(self) -> u8 {
        self.0
    }
}

/// Which kinds are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogMask(u128);

impl LogMask {
    pub fn allows(self, tag: LogTag) -> bool {
        self.0 & (1 << tag.0) != 0
    }

    /// Changed by words such as `-VCL_acl,+Hash`; `default`, `all` and `none` begin anew. The error is a word that is none.
    pub fn changed(self, words: &str) -> Result<LogMask, String> {
        let mut bits = self.0;
        for word in words.split([',', ' ']).filter(|word| !word.is_empty()) {
            let bit = |name| LogTag::named(name).map(|tag| 1_u128 << tag.0).ok_or_else(|| name.to_owned());
            match (word, word.split_at_checked(1)) {
                ("default", _) => bits = LogMask::default().0,
                ("all", _) => bits = u128::MAX,
                ("none", _) => bits = 0,
                (_, Some(("+", name))) => bits |= bit(name)?,
                (_, Some(("-", name))) => bits &= !bit(name)?,
                _ => return Err(word.to_owned()),
            }
        }
        Ok(LogMask(bits))
    }
}

impl Default for LogMask {
    fn default() -> LogMask {
        let quiet = QUIET.iter().filter_map(|name| LogTag::named(name)).fold(0, |bits, tag| bits | 1_u128 << tag.0);
        LogMask(!quiet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_numbers_that_readers_expect() {
        let check = |name: &str, number: u8| {
            let tag = LogTag::named(name).unwrap();
            assert_eq!((tag.number(), tag.name()), (number, name));
        };
        check("Debug", 1);
        check("ReqMethod", 15);
        check("ObjLost", 54);
        check("VCL_call", 60);
        assert_eq!(LogTag::named("Nonesuch"), None);
    }

    #[test]
    fn frames_of_http2_are_bytes_and_all_else_is_text() {
        let binary = (1..=NAMES.len() as u8).filter_map(LogTag::numbered).filter(|tag| tag.is_binary());
        let names: Vec<&str> = binary.map(LogTag::name).collect();
        assert_eq!(names, ["H2RxHdr", "H2RxBody", "H2TxHdr", "H2TxBody"]);
    }

    #[test]
    fn words_change_what_is_logged() {
        let (hash, call) = (LogTag::named("Hash").unwrap(), LogTag::named("VCL_call").unwrap());
        let usual = LogMask::default();
        assert!(!usual.allows(hash) && usual.allows(call));
        let changed = usual.changed("+hash,-VCL_call").unwrap();
        assert!(changed.allows(hash) && !changed.allows(call));
        assert_eq!(changed.changed("default"), Ok(usual));
        assert_eq!(changed.changed("+Nonesuch"), Err("Nonesuch".to_owned()));
        assert_eq!(changed.changed("Hash"), Err("Hash".to_owned()));
    }
}
