//! `client_header_buffer_size` and `large_client_header_buffers` of nginx, as bounds of heads of requests in `[limits]`.

use crate::import::nginx_conf::Directive;
use crate::import::nginx_times::bytes;

/// How long heads of requests may be.
pub struct HeadBuffers {
    one: u64,
    large: u64,
    count: Option<u64>,
}

impl Default for HeadBuffers {
    fn default() -> HeadBuffers {
        HeadBuffers { one: 1 << 10, large: 8 << 10, count: None }
    }
}

impl HeadBuffers {
    /// Takes a directive in. False: it is another one.
    pub fn take(&mut self, directive: &Directive) -> bool {
        match directive.name.as_str() {
            "client_header_buffer_size" => self.one = bytes(directive.argument(0)).unwrap_or(self.one),
            "large_client_header_buffers" => {
                self.large = bytes(directive.argument(1)).unwrap_or(self.large);
                self.count = directive.argument(0).parse::<u64>().ok();
            }
            _ => return false,
        }
        true
    }

    /// Lines of `[limits]`.
    pub fn lines(&self) -> Vec<String> {
        let Some(count) = self.count else { return Vec::new() };
        // One line has to fit into one buffer, and all of them into all.
        let line = self.large.clamp(256, u64::from(u16::MAX));
        vec![
            format!("request_target_bytes_max = {line}"),
            format!("request_field_bytes_max = {line}"),
            format!(
                "request_head_bytes_max = {}",
                self.one.saturating_add(count.saturating_mul(self.large)).clamp(512, 16 << 20)
            ),
        ]
    }
}
