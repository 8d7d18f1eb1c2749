//! A constant for each variable, so that a host can `match` on them without comparing names. Of two rows with one name
//! (`req.proto` of 4.0 and of 4.1) there is the first, and a program that is run refers to that.

use crate::plain_values::Plain;
use crate::variable_table::ROWS;
use crate::variables::VariableId;

/// The first row of that name, at compile time; a name that is none does not compile.
const fn row(name: &str) -> VariableId {
    let name = name.as_bytes();
    let mut index = 0;
    while index < ROWS.len() {
        if same(ROWS[index].0.as_bytes(), name) {
            return VariableId(index as u8);
        }
        index += 1;
    }
    panic!("no variable is called that")
}

const fn same(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let mut at = 0;
    while at < left.len() {
        if left[at] != right[at] {
            return false;
        }
        at += 1;
    }
    true
}

impl VariableId {
    /// What a host says that knows nothing of the variable.
    pub fn nothing<'a>(self) -> Plain<'a> {
        Plain::nothing(self.get().of)
    }

    /// The first row of the same name.
    pub fn first_of_name(self) -> VariableId {
        row(self.get().name)
    }
}

#[rustfmt::skip]
impl VariableId {
    pub const CLIENT_IDENTITY: VariableId = row("client.identity");
    pub const CLIENT_IP: VariableId = row("client.ip");
    pub const SERVER_HOSTNAME: VariableId = row("server.hostname");
    pub const SERVER_IDENTITY: VariableId = row("server.identity");
    pub const SERVER_IP: VariableId = row("server.ip");
    pub const REMOTE_IP: VariableId = row("remote.ip");
    pub const LOCAL_ENDPOINT: VariableId = row("local.endpoint");
    pub const LOCAL_IP: VariableId = row("local.ip");
    pub const LOCAL_SOCKET: VariableId = row("local.socket");
    pub const REQ: VariableId = row("req");
    pub const REQ_BACKEND_HINT: VariableId = row("req.backend_hint");
    pub const REQ_CAN_GZIP: VariableId = row("req.can_gzip");
    pub const REQ_ESI: VariableId = row("req.esi");
    pub const REQ_ESI_LEVEL: VariableId = row("req.esi_level");
    pub const REQ_FILTERS: VariableId = row("req.filters");
    pub const REQ_GRACE: VariableId = row("req.grace");
    pub const REQ_HASH: VariableId = row("req.hash");
    pub const REQ_HASH_ALWAYS_MISS: VariableId = row("req.hash_always_miss");
    pub const REQ_HASH_IGNORE_BUSY: VariableId = row("req.hash_ignore_busy");
    pub const REQ_HASH_IGNORE_VARY: VariableId = row("req.hash_ignore_vary");
    pub const REQ_HTTP: VariableId = row("req.http.*");
    pub const REQ_HTTP_CONTENT_LENGTH: VariableId = row("req.http.content-length");
    pub const REQ_HTTP_TRANSFER_ENCODING: VariableId = row("req.http.transfer-encoding");
    pub const REQ_IS_HITMISS: VariableId = row("req.is_hitmiss");
    pub const REQ_IS_HITPASS: VariableId = row("req.is_hitpass");
    pub const REQ_METHOD: VariableId = row("req.method");
    pub const REQ_PROTO: VariableId = row("req.proto");
    pub const REQ_RESTARTS: VariableId = row("req.restarts");
    pub const REQ_STORAGE: VariableId = row("req.storage");
    pub const REQ_TIME: VariableId = row("req.time");
    pub const REQ_TRACE: VariableId = row("req.trace");
    pub const REQ_TRANSPORT: VariableId = row("req.transport");
    pub const REQ_MAX_AGE: VariableId = row("req.max_age");
    pub const REQ_TTL: VariableId = row("req.ttl");
    pub const REQ_URL: VariableId = row("req.url");
    pub const REQ_XID: VariableId = row("req.xid");
    pub const REQ_TOP_HTTP: VariableId = row("req_top.http.*");
    pub const REQ_TOP_METHOD: VariableId = row("req_top.method");
    pub const REQ_TOP_PROTO: VariableId = row("req_top.proto");
    pub const REQ_TOP_TIME: VariableId = row("req_top.time");
    pub const REQ_TOP_URL: VariableId = row("req_top.url");
    pub const BEREQ: VariableId = row("bereq");
    pub const BEREQ_BACKEND: VariableId = row("bereq.backend");
    pub const BEREQ_BETWEEN_BYTES_TIMEOUT: VariableId = row("bereq.between_bytes_timeout");
    pub const BEREQ_BODY: VariableId = row("bereq.body");
    pub const BEREQ_CONNECT_TIMEOUT: VariableId = row("bereq.connect_timeout");
    pub const BEREQ_FILTERS: VariableId = row("bereq.filters");
    pub const BEREQ_FIRST_BYTE_TIMEOUT: VariableId = row("bereq.first_byte_timeout");
    pub const BEREQ_HASH: VariableId = row("bereq.hash");
    pub const BEREQ_HTTP: VariableId = row("bereq.http.*");
    pub const BEREQ_HTTP_CONTENT_LENGTH: VariableId = row("bereq.http.content-length");
    pub const BEREQ_HTTP_TRANSFER_ENCODING: VariableId = row("bereq.http.transfer-encoding");
    pub const BEREQ_IS_BGFETCH: VariableId = row("bereq.is_bgfetch");
    pub const BEREQ_IS_HITMISS: VariableId = row("bereq.is_hitmiss");
    pub const BEREQ_IS_HITPASS: VariableId = row("bereq.is_hitpass");
    pub const BEREQ_METHOD: VariableId = row("bereq.method");
    pub const BEREQ_PROTO: VariableId = row("bereq.proto");
    pub const BEREQ_RETRIES: VariableId = row("bereq.retries");
    pub const BEREQ_RETRY_CONNECT: VariableId = row("bereq.retry_connect");
    pub const BEREQ_TASK_DEADLINE: VariableId = row("bereq.task_deadline");
    pub const BEREQ_TIME: VariableId = row("bereq.time");
    pub const BEREQ_TRACE: VariableId = row("bereq.trace");
    pub const BEREQ_UNCACHEABLE: VariableId = row("bereq.uncacheable");
    pub const BEREQ_URL: VariableId = row("bereq.url");
    pub const BEREQ_XID: VariableId = row("bereq.xid");
    pub const BERESP: VariableId = row("beresp");
    pub const BERESP_AGE: VariableId = row("beresp.age");
    pub const BERESP_BACKEND: VariableId = row("beresp.backend");
    pub const BERESP_BACKEND_IP: VariableId = row("beresp.backend.ip");
    pub const BERESP_BACKEND_NAME: VariableId = row("beresp.backend.name");
    pub const BERESP_BODY: VariableId = row("beresp.body");
    pub const BERESP_DO_ESI: VariableId = row("beresp.do_esi");
    pub const BERESP_DO_GUNZIP: VariableId = row("beresp.do_gunzip");
    pub const BERESP_DO_GZIP: VariableId = row("beresp.do_gzip");
    pub const BERESP_DO_STREAM: VariableId = row("beresp.do_stream");
    pub const BERESP_FILTERS: VariableId = row("beresp.filters");
    pub const BERESP_GRACE: VariableId = row("beresp.grace");
    pub const BERESP_HTTP: VariableId = row("beresp.http.*");
    pub const BERESP_HTTP_CONTENT_LENGTH: VariableId = row("beresp.http.content-length");
    pub const BERESP_HTTP_TRANSFER_ENCODING: VariableId = row("beresp.http.transfer-encoding");
    pub const BERESP_KEEP: VariableId = row("beresp.keep");
    pub const BERESP_PROTO: VariableId = row("beresp.proto");
    pub const BERESP_REASON: VariableId = row("beresp.reason");
    pub const BERESP_STATUS: VariableId = row("beresp.status");
    pub const BERESP_STORAGE: VariableId = row("beresp.storage");
    pub const BERESP_STORAGE_HINT: VariableId = row("beresp.storage_hint");
    pub const BERESP_TIME: VariableId = row("beresp.time");
    pub const BERESP_TRANSIT_BUFFER: VariableId = row("beresp.transit_buffer");
    pub const BERESP_TTL: VariableId = row("beresp.ttl");
    pub const BERESP_UNCACHEABLE: VariableId = row("beresp.uncacheable");
    pub const BERESP_WAS_304: VariableId = row("beresp.was_304");
    pub const OBJ_STALE_AGE: VariableId = row("obj_stale.age");
    pub const OBJ_STALE_CAN_ESI: VariableId = row("obj_stale.can_esi");
    pub const OBJ_STALE_GRACE: VariableId = row("obj_stale.grace");
    pub const OBJ_STALE_HITS: VariableId = row("obj_stale.hits");
    pub const OBJ_STALE_HTTP: VariableId = row("obj_stale.http.*");
    pub const OBJ_STALE_KEEP: VariableId = row("obj_stale.keep");
    pub const OBJ_STALE_PROTO: VariableId = row("obj_stale.proto");
    pub const OBJ_STALE_REASON: VariableId = row("obj_stale.reason");
    pub const OBJ_STALE_STATUS: VariableId = row("obj_stale.status");
    pub const OBJ_STALE_STORAGE: VariableId = row("obj_stale.storage");
    pub const OBJ_STALE_TIME: VariableId = row("obj_stale.time");
    pub const OBJ_STALE_TTL: VariableId = row("obj_stale.ttl");
    pub const OBJ_STALE_UNCACHEABLE: VariableId = row("obj_stale.uncacheable");
    pub const OBJ_STALE_IS_VALID: VariableId = row("obj_stale.is_valid");
    pub const OBJ_AGE: VariableId = row("obj.age");
    pub const OBJ_CAN_ESI: VariableId = row("obj.can_esi");
    pub const OBJ_GRACE: VariableId = row("obj.grace");
    pub const OBJ_HITS: VariableId = row("obj.hits");
    pub const OBJ_HTTP: VariableId = row("obj.http.*");
    pub const OBJ_KEEP: VariableId = row("obj.keep");
    pub const OBJ_PROTO: VariableId = row("obj.proto");
    pub const OBJ_REASON: VariableId = row("obj.reason");
    pub const OBJ_STATUS: VariableId = row("obj.status");
    pub const OBJ_STORAGE: VariableId = row("obj.storage");
    pub const OBJ_TIME: VariableId = row("obj.time");
    pub const OBJ_TTL: VariableId = row("obj.ttl");
    pub const OBJ_UNCACHEABLE: VariableId = row("obj.uncacheable");
    pub const RESP: VariableId = row("resp");
    pub const RESP_BODY: VariableId = row("resp.body");
    pub const RESP_DO_ESI: VariableId = row("resp.do_esi");
    pub const RESP_FILTERS: VariableId = row("resp.filters");
    pub const RESP_HTTP: VariableId = row("resp.http.*");
    pub const RESP_HTTP_CONTENT_LENGTH: VariableId = row("resp.http.content-length");
    pub const RESP_HTTP_TRANSFER_ENCODING: VariableId = row("resp.http.transfer-encoding");
    pub const RESP_IS_STREAMING: VariableId = row("resp.is_streaming");
    pub const RESP_PROTO: VariableId = row("resp.proto");
    pub const RESP_REASON: VariableId = row("resp.reason");
    pub const RESP_STATUS: VariableId = row("resp.status");
    pub const RESP_TIME: VariableId = row("resp.time");
    pub const NOW: VariableId = row("now");
    pub const SESS_IDLE_SEND_TIMEOUT: VariableId = row("sess.idle_send_timeout");
    pub const SESS_SEND_TIMEOUT: VariableId = row("sess.send_timeout");
    pub const SESS_TIMEOUT_IDLE: VariableId = row("sess.timeout_idle");
    pub const SESS_TIMEOUT_LINGER: VariableId = row("sess.timeout_linger");
    pub const SESS_XID: VariableId = row("sess.xid");
    pub const STORAGE_FREE_SPACE: VariableId = row("storage.<name>.free_space");
    pub const STORAGE_HAPPY: VariableId = row("storage.<name>.happy");
    pub const STORAGE_USED_SPACE: VariableId = row("storage.<name>.used_space");
    pub const PARAM_BACKEND_IDLE_TIMEOUT: VariableId = row("param.backend_idle_timeout");
    pub const PARAM_BACKEND_WAIT_LIMIT: VariableId = row("param.backend_wait_limit");
    pub const PARAM_BACKEND_WAIT_TIMEOUT: VariableId = row("param.backend_wait_timeout");
    pub const PARAM_BETWEEN_BYTES_TIMEOUT: VariableId = row("param.between_bytes_timeout");
    pub const PARAM_CONNECT_TIMEOUT: VariableId = row("param.connect_timeout");
    pub const PARAM_DEFAULT_GRACE: VariableId = row("param.default_grace");
    pub const PARAM_DEFAULT_KEEP: VariableId = row("param.default_keep");
    pub const PARAM_DEFAULT_TTL: VariableId = row("param.default_ttl");
    pub const PARAM_FIRST_BYTE_TIMEOUT: VariableId = row("param.first_byte_timeout");
    pub const PARAM_IDLE_SEND_TIMEOUT: VariableId = row("param.idle_send_timeout");
    pub const PARAM_MAX_ESI_DEPTH: VariableId = row("param.max_esi_depth");
    pub const PARAM_MAX_RESTARTS: VariableId = row("param.max_restarts");
    pub const PARAM_MAX_RETRIES: VariableId = row("param.max_retries");
    pub const PARAM_PIPE_TASK_DEADLINE: VariableId = row("param.pipe_task_deadline");
    pub const PARAM_PIPE_TIMEOUT: VariableId = row("param.pipe_timeout");
    pub const PARAM_SEND_TIMEOUT: VariableId = row("param.send_timeout");
    pub const PARAM_SHORTLIVED: VariableId = row("param.shortlived");
    pub const PARAM_TIMEOUT_IDLE: VariableId = row("param.timeout_idle");
    pub const PARAM_TRANSIT_BUFFER: VariableId = row("param.transit_buffer");
    pub const PARAM_UNCACHEABLE_TTL: VariableId = row("param.uncacheable_ttl");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_the_rows_of_their_names() {
        assert_eq!(VariableId::REQ_URL.get().name, "req.url");
        let second = ROWS.iter().rposition(|row| row.0 == "req.proto").expect("there are two");
        assert_eq!(VariableId(second as u8).first_of_name(), VariableId::REQ_PROTO);
        assert_eq!(VariableId::RESP_STATUS.nothing(), Plain::Int(0));
        assert_eq!(VariableId::CLIENT_IDENTITY.nothing(), Plain::Text(None));
    }
}
