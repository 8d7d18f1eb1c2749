//! How urgent an answer is (RFC 9218 §4), as a client says in a field or a PRIORITY_UPDATE frame.

/// Urgency 0 to 7, 0 first; and whether pieces of the answer are of use before it is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    pub urgency: u8,
    pub incremental: bool,
}

impl Default for Priority {
    fn default() -> Priority {
        Priority { urgency: URGENCY_DEFAULT, incremental: false }
    }
}

const URGENCY_DEFAULT: u8 = 3;
const URGENCY_MAX: u8 = 7;

impl Priority {
    /// Reads `u=2, i`: a dictionary (RFC 8941 §3.2) of which two members are known. What is not understood of it is left out
    /// (RFC 9218 §4.1); the last member of a name counts.
    pub fn parse(text: &[u8]) -> Priority {
        let mut priority = Priority::default();
        for member in text.split(|octet| *octet == b',') {
            // Members may have parameters, which mean nothing here.
            let member = member.split(|octet| *octet == b';').next().unwrap_or_default().trim_ascii();
            match member {
                [b'u', b'=', digit @ b'0'..=b'9'] if digit - b'0' <= URGENCY_MAX => priority.urgency = digit - b'0',
                b"i" | b"i=?1" => priority.incremental = true,
                b"i=?0" => priority.incremental = false,
                _ => {}
            }
        }
        priority
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_members_are_known() {
        for (text, urgency, incremental) in [
            ("", 3, false),
            ("u=0", 0, false),
            ("u=7, i", 7, true),
            ("i,u=5", 5, true),
            ("i=?0", 3, false),
            ("u=8", 3, false),
            ("u=-1, i=?1", 3, true),
            ("u=1;x=2, i;y", 1, true),
            ("x, u=2, z=\"a\"", 2, false),
            ("u=10", 3, false),
            ("\0,,,=", 3, false),
        ] {
            assert_eq!(Priority::parse(text.as_bytes()), Priority { urgency, incremental }, "{text}");
        }
    }
}
