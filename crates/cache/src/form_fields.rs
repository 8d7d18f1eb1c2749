//! Numbers, texts and lists as the stored form of an object has them: little-endian, with the length before a text or a list as u32.

/// The length of a text that is not there.
pub(crate) const NONE_LEN: u32 = u32::MAX;

/// Writes them.
pub(crate) struct FormWriter(pub Vec<u8>);

impl FormWriter {
    pub fn numbers<const N: usize>(&mut self, numbers: [u64; N]) {
        numbers.iter().for_each(|number| self.0.extend_from_slice(&number.to_le_bytes()));
    }

    pub fn length(&mut self, length: usize) {
        let length = u32::try_from(length).expect("a head is limited far below 4 GiB");
        self.0.extend_from_slice(&length.to_le_bytes());
    }

    pub fn text(&mut self, text: &[u8]) {
        self.length(text.len());
        self.0.extend_from_slice(text);
    }

    pub fn list<T: Copy, const N: usize>(&mut self, list: &[T], bytes: impl Fn(T) -> [u8; N]) {
        self.length(list.len());
        list.iter().for_each(|&item| self.0.extend_from_slice(&bytes(item)));
    }
}

/// Reads them. `None`: there is less than there should be.
pub(crate) struct FormReader<'a>(pub &'a [u8]);

impl<'a> FormReader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    pub fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes()?))
    }

    pub fn length(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.bytes()?))
    }

    /// `Some(None)`: there is none, which is not an empty one.
    pub fn text(&mut self) -> Option<Option<&'a [u8]>> {
        match self.length()? {
            NONE_LEN => Some(None),
            length => self.take(length as usize).map(Some),
        }
    }

    pub fn list<T, const N: usize>(&mut self, item: impl Fn([u8; N]) -> T) -> Option<Vec<T>> {
        let length = self.length()? as usize;
        let bytes = self.take(length.checked_mul(N)?)?;
        Some(bytes.chunks_exact(N).map(|chunk| item(chunk.try_into().expect("a chunk is so long"))).collect())
    }
}
