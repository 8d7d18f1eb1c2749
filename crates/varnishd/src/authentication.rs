//! Who may speak: whoever can show, without sending it, that they know the secret. The answer to a challenge is the
//! SHA-256 of challenge, secret and challenge, each challenge with its line's end.

use sha2::{Digest, Sha256};

/// Letters of a challenge.
const CHALLENGE_BYTES: usize = 32;

/// The bytes of the secret's file, as they are.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

/// As letters from so many random bytes.
pub fn challenge(random: &[u8; CHALLENGE_BYTES]) -> String {
    random.iter().map(|byte| char::from(b'a' + byte % 26)).collect()
}

impl Secret {
    pub fn new(bytes: Vec<u8>) -> Secret {
        Secret(bytes)
    }

    /// For who hands it on.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Is this the answer to the challenge? How long it takes says nothing about how much of it is right.
    pub(crate) fn is_shown_by(&self, challenge: &str, answer: &[u8]) -> bool {
        let right = self.answer_to(challenge);
        let differing =
            right.bytes().zip(answer).fold(0, |all, (right, given)| all | (right ^ given.to_ascii_lowercase()));
        answer.len() == right.len() && differing == 0
    }

    #[cfg(test)]
    pub(crate) fn shown_for_tests(&self, challenge: &str) -> String {
        self.answer_to(challenge)
    }

    fn answer_to(&self, challenge: &str) -> String {
        let digest = Sha256::new()
            .chain_update(challenge)
            .chain_update("\n")
            .chain_update(&self.0)
            .chain_update(challenge)
            .chain_update("\n")
            .finalize();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_answer_is_right() {
        let secret = Secret::new(b"foo\n".to_vec());
        let challenge = "ixslvvxrgkjptxmcgnnsdxsvdmvfympg";
        // From the manual's own example of the exchange.
        let right = "455ce847f0073c7ab3b1465f74507b75d3dc064c1e7de3b71e00de9092fdc89a";
        assert_eq!(secret.answer_to(challenge), right);
        let check =
            |answer: &str, expect| assert_eq!(secret.is_shown_by(challenge, answer.as_bytes()), expect, "{answer}");
        check(right, true);
        check(&right.to_uppercase(), true);
        check("", false);
        check(&right[..63], false);
        check(&format!("{right}0"), false);
        check(&right.replace("455c", "455d"), false);
        assert!(!secret.is_shown_by("another challenge", right.as_bytes()));
    }

    #[test]
    fn challenges_are_letters() {
        let made = challenge(&std::array::from_fn(|i| i as u8 * 8));
        assert!(made.len() == CHALLENGE_BYTES && made.bytes().all(|b| b.is_ascii_lowercase()), "{made}");
    }
}
