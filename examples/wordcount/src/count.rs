//! Counting: what a word is, the count of a text, and how two counts become one.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use magpie::log::text;

/// Words that are printed.
const PRINTED: usize = 10;

/// What was counted.
#[derive(Default)]
pub struct Count {
    words: u64,
    lines: u64,
    bytes: u64,
    by_word: BTreeMap<Vec<u8>, u64>,
}

/// Letters and digits of ASCII, apostrophes, and every byte of other letters in UTF-8.
fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'\'' || byte >= 0x80
}

/// Cuts a text into chunks of at least `bytes`, never within a word.
pub fn chunks(text: &[u8], bytes: usize) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    core::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let least = bytes.min(rest.len());
        let more = rest[least..].iter().position(|&byte| !is_word_byte(byte));
        let (chunk, later) = rest.split_at(more.map_or(rest.len(), |more| least + more));
        rest = later;
        Some(chunk)
    })
}

impl Count {
    /// Adds a text.
    pub fn add(&mut self, text: &[u8]) {
        self.bytes += text.len() as u64;
        self.lines += text.iter().filter(|&&byte| byte == b'\n').count() as u64;
        let mut lowercase = Vec::new();
        for word in text.split(|&byte| !is_word_byte(byte)).filter(|word| !word.is_empty()) {
            self.words += 1;
            lowercase.clear();
            lowercase.extend(word.iter().map(u8::to_ascii_lowercase));
            match self.by_word.get_mut(&lowercase) {
                Some(count) => *count += 1,
                None => {
                    self.by_word.insert(lowercase.clone(), 1);
                }
            }
        }
    }

    /// Adds another count.
    pub fn merge(&mut self, other: Self) {
        self.words += other.words;
        self.lines += other.lines;
        self.bytes += other.bytes;
        for (word, count) in other.by_word {
            *self.by_word.entry(word).or_default() += count;
        }
    }

    /// Prints the sums and the most frequent words.
    pub fn print(&self) {
        text!(
            "words: {}\nlines: {}\nbytes: {}\ndistinct: {}",
            self.words,
            self.lines,
            self.bytes,
            self.by_word.len()
        );
        let mut words: Vec<_> = self.by_word.iter().collect();
        words.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
        for (word, count) in words.into_iter().take(PRINTED) {
            text!("  {count} {}", alloc::string::String::from_utf8_lossy(word));
        }
    }
}
