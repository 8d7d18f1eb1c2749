//! What an operator decides about an address while everything runs. It holds until it is taken back, through reloads that name the
//! address again.

/// What is ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressOrder {
    /// Probes and failures say whether it is asked.
    #[default]
    Auto,
    /// It is asked, whatever they say.
    Up,
    /// It is asked nothing.
    Down,
    /// It is asked nothing but what belongs to it by a cookie; what is under way goes on.
    Drain,
}

impl AddressOrder {
    pub const WORDS: [(&'static str, AddressOrder); 4] = [
        ("auto", AddressOrder::Auto),
        ("up", AddressOrder::Up),
        ("down", AddressOrder::Down),
        ("drain", AddressOrder::Drain),
    ];

    pub fn word(self) -> &'static str {
        AddressOrder::WORDS[self as usize].0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_has_its_word() {
        assert!(AddressOrder::WORDS.iter().all(|(word, order)| order.word() == *word));
    }
}
