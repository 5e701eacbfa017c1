//! Where actors live: a cell for each, the word that says what is in it, and the pool of those that are free.
//!
//! Nothing here knows of messages, or of who runs an actor. The word carries a mailbox's number and does not look at it.

pub(crate) mod cell;
mod mailbox_index;
pub(crate) mod meter;
mod outcome;
pub(crate) mod pool;
pub(crate) mod static_cell;
mod word;
pub(crate) mod word_cell;

pub(crate) use cell::{CellHeader, CellRef};
pub(crate) use mailbox_index::MailboxIndex;
pub(crate) use outcome::Outcome;
pub(crate) use word::{Life, Word};
