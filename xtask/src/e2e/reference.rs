//! The host's own word count, which the guest's must equal. It is written apart from the example on
//! purpose, as plainly as can be.
//!
//! A word is a longest run of ASCII letters, digits, apostrophes and bytes from 0x80 up; ASCII letters
//! count as small. Lines are counted by their ends, as `wc -l` does.

use std::collections::HashMap;

/// What there is to count in a text.
#[derive(Debug, PartialEq, Eq)]
pub struct Count {
    pub words: u64,
    pub lines: u64,
    pub bytes: u64,
    pub each: HashMap<Vec<u8>, u64>,
}

impl Count {
    /// Counts a text.
    pub fn of(text: &[u8]) -> Self {
        let mut each: HashMap<Vec<u8>, u64> = HashMap::new();
        for word in text.split(|&byte| !is_word(byte)).filter(|word| !word.is_empty()) {
            *each.entry(word.to_ascii_lowercase()).or_default() += 1;
        }
        Self {
            words: each.values().sum(),
            lines: text.iter().filter(|&&byte| byte == b'\n').count() as u64,
            bytes: text.len() as u64,
            each,
        }
    }

    /// The ten largest counts, largest first.
    pub fn top_ten_counts(&self) -> Vec<u64> {
        let mut counts: Vec<u64> = self.each.values().copied().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts.truncate(10);
        counts
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'\'' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::Count;

    #[test]
    fn counts_by_the_rules() {
        let count = Count::of("It's 5 o'clock, it's\nna\u{ef}ve--NA\u{ef}VE \n".as_bytes());
        assert_eq!((count.words, count.lines, count.bytes), (6, 2, 37));
        assert_eq!(count.each[b"it's".as_slice()], 2);
        assert_eq!(count.each["na\u{ef}ve".as_bytes()], 2);
        assert_eq!(count.top_ten_counts(), [2, 2, 1, 1]);
    }

    #[test]
    fn nothing_has_nothing() {
        assert_eq!(Count::of(b" \n-").words, 0);
    }
}
