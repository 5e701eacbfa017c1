//! The beginning of a message, taken while the message is printed: what prints may be the application's, and runs once.

use core::cell::RefCell;
use core::fmt::{self, Display, Formatter, Write};

/// Bytes that are kept.
const BYTES: usize = 120;

/// The beginning of a text.
#[derive(Clone, Copy)]
pub struct Message {
    bytes: [u8; BYTES],
    used: u8,
}

impl Message {
    /// Nothing yet.
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; BYTES], used: 0 }
    }

    /// `what`, which shows as it does otherwise, and is taken here on the way.
    pub fn take<'a>(&'a mut self, what: &'a dyn Display) -> Taken<'a> {
        Taken { what, by: RefCell::new(self) }
    }

    /// What there is, up to the last whole character.
    pub(crate) fn text(&self) -> &str {
        let bytes = self.bytes.get(..usize::from(self.used)).unwrap_or(&self.bytes);
        match core::str::from_utf8(bytes) {
            Ok(text) => text,
            // The end of a character was cut off.
            Err(error) => core::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
        }
    }
}

impl Write for Message {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let used = usize::from(self.used);
        let count = text.len().min(BYTES - used);
        self.bytes[used..used + count].copy_from_slice(&text.as_bytes()[..count]);
        // At most 120.
        self.used += count as u8;
        Ok(())
    }
}

/// See [`Message::take`].
pub struct Taken<'a> {
    what: &'a dyn Display,
    by: RefCell<&'a mut Message>,
}

impl Taken<'_> {
    /// Takes it, and shows it to nobody.
    pub fn take_unsaid(self) {
        // What does not fit is cut off.
        let _ = write!(self.by.into_inner(), "{}", self.what);
    }
}

impl Display for Taken<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // Nobody but this borrows it, and `what` does not know of it.
        let mut by = self.by.try_borrow_mut().map_err(|_| fmt::Error)?;
        write!(Both(f, &mut by), "{}", self.what)
    }
}

struct Both<'a, 'b>(&'a mut Formatter<'b>, &'a mut Message);

impl Write for Both<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.1.write_str(text)?;
        self.0.write_str(text)
    }
}

#[cfg(test)]
mod tests {
    use super::Message;
    use std::format;
    use std::string::String;

    #[test]
    fn what_is_shown_is_taken() {
        let mut message = Message::new();
        assert_eq!(message.text(), "");
        assert_eq!(format!("<{}>", message.take(&format_args!("{} of {}", 3, 4))), "<3 of 4>");
        assert_eq!(message.text(), "3 of 4");
    }

    #[test]
    fn only_the_beginning_is_kept_in_whole_characters() {
        let long: String = core::iter::repeat_n('ä', 100).collect();
        for shift in 0..3 {
            let mut message = Message::new();
            let all = format!("{}{long}", &"xyz"[..shift]);
            assert_eq!(format!("{}", message.take(&all)), all);
            assert_eq!(message.text(), &all[..120 - shift % 2]);
        }
    }
}
