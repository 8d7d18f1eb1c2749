//! How nodes know one another: in one field a request bears what the node says of it and a proof of that, and its answer bears a word and the
//! proof that who says it knows the same secret.
//!
//! A proof is an HMAC with SHA-256 (RFC 2104) of what is asked, for whom, and when: whoever reads along on a connection in the clear learns no
//! secret, and can do no more than ask the same once more for a few seconds.

use message::{FieldName, FieldsView, Request};
use sha2::{Digest, Sha256};

use super::fleet_secret::FleetSecret;
use crate::limits::NODE_CLOCK_SKEW_MAX_S;
use crate::secret_comparison::is_same_secret;

/// Its name, in requests and in answers. Nobody but nodes ever sees it.
pub(crate) const NODE_FIELD: &str = "larder-node";

const BLOCK_BYTES: usize = 64;

/// What proves something.
pub(crate) type Proof = [u8; 32];

/// What a node says of a request that it sends to another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeClaim {
    /// When it was sent, in seconds since 1970.
    pub(crate) sent_s: u64,
    /// How far the node is in the log of invalidations.
    pub(crate) position: u64,
    /// What stands for the route that the request has.
    pub(crate) route: u64,
}

/// What a node says of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeWord {
    /// It is the origin's, stored or not.
    Answer,
    /// The origin failed: 502 or 504.
    Failed,
    /// This node has not gone so far in the log of invalidations.
    Behind,
    /// This node asks another one for the same.
    Crossed,
    /// It cannot be answered here, and that says nothing of the origin.
    Unable,
}

impl NodeWord {
    const ALL: [NodeWord; 5] =
        [NodeWord::Answer, NodeWord::Failed, NodeWord::Behind, NodeWord::Crossed, NodeWord::Unable];

    fn text(self) -> &'static str {
        match self {
            NodeWord::Answer => "answer",
            NodeWord::Failed => "failed",
            NodeWord::Behind => "behind",
            NodeWord::Crossed => "crossed",
            NodeWord::Unable => "unable",
        }
    }

    /// The value of the field of an answer to the request with this proof.
    pub(crate) fn said(self, secret: &FleetSecret, asked: &Proof) -> String {
        format!("{}; proof={}", self.text(), hex(&self.proof(secret, asked)))
    }

    /// The word of an answer. `None`: who says it does not know the secret, or speaks of something else.
    pub(crate) fn read(value: &[u8], secret: &FleetSecret, asked: &Proof) -> Option<NodeWord> {
        let (word, proof) = std::str::from_utf8(value).ok()?.split_once("; proof=")?;
        let word = NodeWord::ALL.into_iter().find(|known| known.text() == word)?;
        is_same_secret(&unhex(proof)?, &word.proof(secret, asked)).then_some(word)
    }

    fn proof(self, secret: &FleetSecret, asked: &Proof) -> Proof {
        hmac(secret.bytes(), &[b"larder node 1 answers", self.text().as_bytes(), asked])
    }
}

impl NodeClaim {
    /// What proves it of this request, whose fields say for whom it is asked.
    pub(crate) fn proof(&self, secret: &FleetSecret, request: &Request<'_>, forwarding: FieldsView<'_>) -> Proof {
        let (mut authority, mut target) = (Vec::new(), Vec::new());
        request.authority.write_to(&mut authority);
        request.write_target(&mut target);
        let numbers = [self.sent_s, self.position, self.route].map(u64::to_be_bytes).concat();
        let [clients, chain, scheme, host] = FORWARDING.map(|name| {
            let lines: Vec<&[u8]> = forwarding.get_all(name).collect();
            lines.join(&b'\n')
        });
        let parts = [
            b"larder node 1 asks",
            request.method_text,
            &authority,
            &target,
            &numbers,
            &clients,
            &chain,
            &scheme,
            &host,
        ];
        hmac(secret.bytes(), &parts)
    }

    /// The value of the field of a request.
    pub(crate) fn said(&self, proof: &Proof) -> String {
        let NodeClaim { sent_s, position, route } = self;
        format!("sent={sent_s}; at={position}; route={route:016x}; proof={}", hex(proof))
    }

    pub(crate) fn read(value: &[u8]) -> Option<(NodeClaim, Proof)> {
        let mut words = std::str::from_utf8(value).ok()?.split("; ");
        let mut next = |name: &str| words.next()?.strip_prefix(name);
        let claim = NodeClaim {
            sent_s: next("sent=")?.parse().ok()?,
            position: next("at=")?.parse().ok()?,
            route: u64::from_str_radix(next("route=")?, 16).ok()?,
        };
        let proof = unhex(next("proof=")?)?;
        words.next().is_none().then_some((claim, proof))
    }

    /// Was it sent a moment ago, as far as the clocks of machines agree?
    pub(crate) fn is_of_now(&self, now_s: u64) -> bool {
        self.sent_s.abs_diff(now_s) <= NODE_CLOCK_SKEW_MAX_S
    }
}

/// In these a node says for whom it asks.
const FORWARDING: [FieldName; 4] =
    [FieldName::XForwardedFor, FieldName::Forwarded, FieldName::XForwardedProto, FieldName::XForwardedHost];

/// Of parts whose lengths count, too.
fn hmac(secret: &[u8], parts: &[&[u8]]) -> Proof {
    let mut message = Vec::new();
    for part in parts {
        message.extend_from_slice(&(part.len() as u64).to_be_bytes());
        message.extend_from_slice(part);
    }
    hmac_sha256(secret, &message)
}

/// RFC 2104 §2.
fn hmac_sha256(secret: &[u8], message: &[u8]) -> Proof {
    let mut key = [0; BLOCK_BYTES];
    match secret.len() > BLOCK_BYTES {
        true => key[..32].copy_from_slice(&Sha256::digest(secret)),
        false => key[..secret.len()].copy_from_slice(secret),
    }
    let inner = Sha256::new().chain_update(key.map(|byte| byte ^ 0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(key.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize().into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Proof> {
    let mut proof = Proof::default();
    if text.len() != 2 * proof.len() || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (at, byte) in proof.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(proof)
}

#[cfg(test)]
mod tests {
    use message::Fields;

    use super::*;
    use crate::fetch::fetch_test_messages::request;

    /// RFC 4231 §4.2, §4.3 and §4.7.
    #[test]
    fn hmac_as_published() {
        let check = |secret: &[u8], message: &[u8], expect: &str| {
            assert_eq!(hex(&hmac_sha256(secret, message)), expect);
        };
        check(&[0x0b; 20], b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
        check(
            b"Jefe",
            b"what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        );
        check(
            &[0xaa; 131],
            b"Test Using Larger Than Block-Size Key - Hash Key First",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
        );
    }

    #[test]
    fn a_claim_is_proven_of_one_request_alone() {
        let (secret, other) = (FleetSecret::new(b"0123456789abcdef"), FleetSecret::new(b"0123456789abcdeg"));
        let claim = NodeClaim { sent_s: 1_790_000_000, position: 7, route: 0xabc };
        let proof = |claim: NodeClaim, secret: &FleetSecret, method: &str, clients: &str| {
            let (head, mut forwarding) = (request(method, &[]), Fields::default());
            forwarding.push(FieldName::XForwardedFor, clients);
            claim.proof(secret, &head.request(), forwarding.view())
        };
        let right = proof(claim, &secret, "GET", "192.0.2.1");
        assert_eq!(NodeClaim::read(claim.said(&right).as_bytes()), Some((claim, right)));
        for wrong in [
            proof(claim, &other, "GET", "192.0.2.1"),
            proof(claim, &secret, "POST", "192.0.2.1"),
            proof(claim, &secret, "GET", "192.0.2.2"),
            proof(NodeClaim { sent_s: 0, ..claim }, &secret, "GET", "192.0.2.1"),
            proof(NodeClaim { position: 8, ..claim }, &secret, "GET", "192.0.2.1"),
            proof(NodeClaim { route: 0, ..claim }, &secret, "GET", "192.0.2.1"),
        ] {
            assert_ne!(wrong, right);
        }
        assert!(claim.is_of_now(1_790_000_030) && claim.is_of_now(1_789_999_970) && !claim.is_of_now(1_790_000_031));
        assert!(!format!("{secret:?} {:?}", secret.digest_key()).contains("0123"));
    }

    #[test]
    fn a_claim_that_is_none_is_not_read() {
        let text = NodeClaim::default().said(&[1; 32]);
        assert!(NodeClaim::read(text.as_bytes()).is_some());
        let (short, long) = (&text[..text.len() - 1], format!("{text}; x=1"));
        for wrong in ["", "1", "sent=1", short, &long, &text.replace("at=0; ", ""), &text.replace("sent=0", "sent=-1")]
        {
            assert_eq!(NodeClaim::read(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn a_word_is_believed_of_who_knows_the_secret_and_answers_this() {
        let (secret, asked) = (FleetSecret::new(b"0123456789abcdef"), [5; 32]);
        for word in NodeWord::ALL {
            let said = word.said(&secret, &asked);
            assert_eq!(NodeWord::read(said.as_bytes(), &secret, &asked), Some(word));
            assert_eq!(NodeWord::read(said.as_bytes(), &secret, &[6; 32]), None);
            assert_eq!(NodeWord::read(said.as_bytes(), &FleetSecret::new(b"another"), &asked), None);
        }
        let said = NodeWord::Failed.said(&secret, &asked).replace("failed", "answer");
        assert_eq!(NodeWord::read(said.as_bytes(), &secret, &asked), None);
        assert_eq!(NodeWord::read(b"answer", &secret, &asked), None);
    }
}
