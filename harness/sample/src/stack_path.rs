//! A short path that needs no memory.

/// A path on the stack: rows allocate nothing.
pub(crate) struct StackPath {
    bytes: [u8; 64],
    length: usize,
}

impl StackPath {
    /// The empty path.
    pub(crate) fn new() -> Self {
        Self {
            bytes: [0; 64],
            length: 0,
        }
    }

    /// Appends a text. What does not fit is left out, and the path then names nothing.
    pub(crate) fn text(self, text: &str) -> Self {
        self.push(text.as_bytes())
    }

    /// Appends a number in decimal digits.
    pub(crate) fn number(self, number: u32) -> Self {
        let mut digits = [0u8; 10];
        let (mut at, mut rest) = (digits.len(), number);
        loop {
            at -= 1;
            // Below 10, so it fits; 10 digits hold every u32.
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                return self.push(&digits[at..]);
            }
        }
    }

    /// The path so far.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn push(mut self, part: &[u8]) -> Self {
        let end = self.length + part.len();
        if let Some(room) = self.bytes.get_mut(self.length..end) {
            room.copy_from_slice(part);
            self.length = end;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_what_format_would_make() {
        for number in [0, 7, 10, 4_194_304, u32::MAX] {
            let path = StackPath::new().number(number).text("/children");
            assert_eq!(path.bytes(), format!("{number}/children").as_bytes());
        }
    }
}
