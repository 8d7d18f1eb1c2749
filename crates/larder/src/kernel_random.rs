//! Random bytes of the kernel, for what nobody may guess: tokens, secrets and challenges.

/// So many that nobody can foretell.
pub fn bytes<const COUNT: usize>() -> [u8; COUNT] {
    let mut random = [0; COUNT];
    let mut filled = 0;
    while filled < random.len() {
        match rustix::rand::getrandom(&mut random[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            // The kernel has it since 3.17; a secret that can be foretold is worse than none.
            Err(error) => panic!("the kernel gives no random bytes: {error}"),
        }
    }
    random
}

/// The same as a text: two digits and letters for each byte.
pub fn text<const COUNT: usize>() -> String {
    bytes::<COUNT>().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_are_alike() {
        let texts = [text::<16>(), text::<16>()];
        assert!(texts[0] != texts[1] && texts.iter().all(|text| text.len() == 32), "{texts:?}");
    }
}
