//! Mailboxes by number: what an actor's word has room for.

/// A mailbox's number in the directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MailboxIndex(u16);

impl MailboxIndex {
    pub(crate) const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// The number.
    pub(crate) const fn get(self) -> u16 {
        self.0
    }
}
