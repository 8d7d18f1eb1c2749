//! Replacements within a text, made when all of them are known.

/// Replacements and insertions, in the order in which they were found.
#[derive(Clone, Debug, Default)]
pub struct Edits(Vec<Edit>);

#[derive(Clone, Debug)]
struct Edit {
    start: usize,
    end: usize,
    by: Vec<u8>,
}

impl Edits {
    pub fn replace(&mut self, start: usize, end: usize, by: impl Into<Vec<u8>>) {
        self.0.push(Edit { start, end, by: by.into() });
    }

    pub fn insert(&mut self, at: usize, text: impl Into<Vec<u8>>) {
        self.replace(at, at, text);
    }

    /// For `undo_to`.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Forgets what was added since.
    pub fn undo_to(&mut self, count: usize) {
        self.0.truncate(count);
    }

    /// Bytes `start..end` of the text with the edits in them. Of two that overlap, the one that begins first counts.
    pub fn apply(&self, bytes: &[u8], start: usize, end: usize) -> Vec<u8> {
        let mut inside: Vec<&Edit> = self.0.iter().filter(|edit| edit.start >= start && edit.end <= end).collect();
        // Stable: insertions at one place stay in their order.
        inside.sort_by_key(|edit| edit.start);
        let mut out = Vec::with_capacity(end - start);
        let mut at = start;
        for edit in inside.iter().filter(|edit| edit.start <= edit.end) {
            if edit.start < at {
                continue;
            }
            out.extend_from_slice(&bytes[at..edit.start]);
            out.extend_from_slice(&edit.by);
            at = edit.end;
        }
        out.extend_from_slice(&bytes[at..end]);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_applied_in_the_order_of_the_text() {
        let check = |edits: &[(usize, usize, &str)], expect: &str| {
            let mut all = Edits::default();
            edits.iter().for_each(|(start, end, by)| all.replace(*start, *end, *by));
            assert_eq!(String::from_utf8(all.apply(b"0123456789", 2, 8)).unwrap(), expect, "{edits:?}");
        };
        check(&[], "234567");
        check(&[(5, 6, "b"), (3, 4, "a")], "2a4b67");
        check(&[(4, 4, "+ "), (4, 5, "x")], "23+ x567");
        check(&[(3, 6, "-"), (4, 5, "x")], "2-67");
        check(&[(0, 1, "x"), (9, 10, "x")], "234567");
    }
}
