//! Mail: envelopes and their queues, the mailboxes that senders write to, and the table that says whose each is.
//!
//! Nothing here delivers a message or runs an actor. A mailbox knows who runs it by address alone, and what becomes of mail
//! that nobody has in hand is decided above.

pub(crate) mod bound;
pub(crate) mod copy_queue;
pub(crate) mod directory;
pub(crate) mod envelope;
pub(crate) mod extent;
pub(crate) mod gone_flag;
pub(crate) mod growth;
pub(crate) mod guest_flag;
pub(crate) mod hand;
pub(crate) mod list;
pub(crate) mod mailbox;
pub(crate) mod oldest;
pub(crate) mod owner_hint;
mod patience;
mod place;
pub(crate) mod processing_flag;
pub(crate) mod segment;
pub(crate) mod table;
mod waiting_senders;

pub use bound::{Bound, WhenFull};
pub(crate) use copy_queue::{CopyQueue, Gulp};
pub(crate) use envelope::Envelope;
pub(crate) use extent::Extent;
pub(crate) use hand::{Following, Room};
pub(crate) use list::List;
pub(crate) use mailbox::Mailbox;
pub(crate) use place::Place;
pub(crate) use segment::Segment;
pub(crate) use table::Table;
