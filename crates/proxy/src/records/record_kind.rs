//! What a record is about, by the names of vsl(7).

use vcl::{LogKind, Message};

macro_rules! record_kinds {
    ($($kind:ident $name:literal),* $(,)?) => {
        /// What a record is about.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum RecordKind {
            $($kind),*
        }

        impl RecordKind {
            /// In the order of their numbers.
            pub const ALL: &[RecordKind] = &[$(RecordKind::$kind),*];

            /// As vsl(7) has it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(RecordKind::$kind => $name),*
                }
            }
        }
    };
}

record_kinds! {
    Debug "Debug", H2RxHdr "H2RxHdr", H2RxBody "H2RxBody", H2TxHdr "H2TxHdr", H2TxBody "H2TxBody",
    BogoHeader "BogoHeader",
    Error "Error", SessOpen "SessOpen", SessClose "SessClose", Proxy "Proxy", ProxyGarbage "ProxyGarbage",
    BackendOpen "BackendOpen", BackendClose "BackendClose", BackendHealth "Backend_health", HttpGarbage "HttpGarbage",
    Length "Length", FetchError "FetchError", Ttl "TTL", FetchBody "Fetch_Body", Filters "Filters", Storage "Storage",
    ReqMethod "ReqMethod", ReqUrl "ReqURL", ReqProtocol "ReqProtocol", ReqHeader "ReqHeader", ReqUnset "ReqUnset",
    RespProtocol "RespProtocol", RespStatus "RespStatus", RespReason "RespReason", RespHeader "RespHeader",
    RespUnset "RespUnset",
    BereqMethod "BereqMethod", BereqUrl "BereqURL", BereqProtocol "BereqProtocol", BereqHeader "BereqHeader",
    BereqUnset "BereqUnset",
    BerespProtocol "BerespProtocol", BerespStatus "BerespStatus", BerespReason "BerespReason",
    BerespHeader "BerespHeader", BerespUnset "BerespUnset",
    VclAcl "VCL_acl", VclCall "VCL_call", VclReturn "VCL_return", VclUse "VCL_use", VclLog "VCL_Log",
    VclError "VCL_Error",
    ReqStart "ReqStart", Hit "Hit", HitPass "HitPass", HitMiss "HitMiss", Hash "Hash",
    Gzip "Gzip", EsiXmlError "ESI_xmlerror",
    Link "Link", Begin "Begin", End "End", Timestamp "Timestamp",
    ExpKill "ExpKill", Notice "Notice",
    ReqAcct "ReqAcct", PipeAcct "PipeAcct", BereqAcct "BereqAcct",
}

impl RecordKind {
    /// Of what a program says, where that is a record of its own.
    pub(crate) fn of_program(kind: LogKind) -> Option<RecordKind> {
        Some(match kind {
            LogKind::Program => RecordKind::VclLog,
            LogKind::Error => RecordKind::VclError,
            LogKind::Acl => RecordKind::VclAcl,
            LogKind::Notice => RecordKind::Notice,
            LogKind::Mistake => RecordKind::Error,
            LogKind::Debug => RecordKind::Debug,
            LogKind::System(_) | LogKind::Timestamp => return None,
        })
    }

    /// Frames of HTTP/2: bytes and no text.
    pub(crate) fn is_binary(self) -> bool {
        matches!(self, RecordKind::H2RxHdr | RecordKind::H2RxBody | RecordKind::H2TxHdr | RecordKind::H2TxBody)
    }
}

/// A part of a message's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeadPart {
    Status,
    Reason,
    Header,
    Unset,
}

impl RecordKind {
    /// Of a part of a message that a program can change.
    pub(crate) fn of_head(message: Message, part: HeadPart) -> Option<RecordKind> {
        use HeadPart::*;
        Some(match (message, part) {
            (Message::Req | Message::ReqTop, Header) => RecordKind::ReqHeader,
            (Message::Req | Message::ReqTop, Unset) => RecordKind::ReqUnset,
            (Message::Bereq, Header) => RecordKind::BereqHeader,
            (Message::Bereq, Unset) => RecordKind::BereqUnset,
            (Message::Resp, Status) => RecordKind::RespStatus,
            (Message::Resp, Reason) => RecordKind::RespReason,
            (Message::Resp, Header) => RecordKind::RespHeader,
            (Message::Resp, Unset) => RecordKind::RespUnset,
            (Message::Beresp, Status) => RecordKind::BerespStatus,
            (Message::Beresp, Reason) => RecordKind::BerespReason,
            (Message::Beresp, Header) => RecordKind::BerespHeader,
            (Message::Beresp, Unset) => RecordKind::BerespUnset,
            _ => return None,
        })
    }
}
