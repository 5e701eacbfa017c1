//! A name: a short text, kept in place.

use core::fmt;
use core::ops::Deref;

/// Bytes of the longest.
pub(super) const MOST_BYTES: usize = 47;

/// A name that somebody has, and which type of address it stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Name {
    bytes: [u8; MOST_BYTES],
    length: u8,
    type_name: &'static str,
}

impl Name {
    /// That text, unless it is empty or too long.
    pub(super) fn new(text: &str, type_name: &'static str) -> Option<Self> {
        let mut bytes = [0; MOST_BYTES];
        bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        (!text.is_empty()).then_some(Self { bytes, length: text.len() as u8, type_name })
    }

    /// The type of the address, as the compiler names it.
    pub fn type_name(&self) -> &'static str {
        self.type_name
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        // It was made of a text as a whole.
        core::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ({})", &**self, self.type_name)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{MOST_BYTES, Name};

    #[test]
    fn a_name_is_neither_empty_nor_cut_off() {
        let name = |text: &str| Name::new(text, "u8").map(|name| name.to_string());
        assert_eq!(name(""), None);
        assert_eq!(name("a").as_deref(), Some("a"));
        let longest = "ä".repeat(MOST_BYTES / 2);
        assert_eq!(name(&longest), Some(longest.clone()));
        assert_eq!(name(&(longest + "ä")), None);
    }
}
