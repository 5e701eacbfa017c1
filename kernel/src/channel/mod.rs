//! Processes with a mailbox of their own: messages for code that waits, in the style of Erlang.
//!
//! An actor shares its mailbox with others and handles what comes, in the order in which it comes. A process
//! owns its [`ProcessMailbox`] and decides what it receives next: it awaits the first message, or the first
//! that matches, and leaves the others where they are. Urgent messages overtake ordinary ones. Anyone with a
//! [`ProcessAddr`] sends: processes and behaviours, on any core.
//!
//! A message may also be sent later, and taken back before; and again and again, until that is cancelled:
//!
//! ```
//! # use magpie::sched;
//! use core::time::Duration;
//! use magpie::channel::ProcessMailbox;
//! use magpie::time::Instant;
//!
//! # sched::run_on_threads(2, 1, async {
//! let mut mailbox = ProcessMailbox::new(10)?;
//! let in_an_hour = mailbox.address().send_after(Duration::from_secs(3600), "too late")?;
//! mailbox.address().send_after(Duration::from_millis(1), "in time")?;
//! assert_eq!(mailbox.receive().await, Some("in time"));
//! mailbox.address().send_at(Instant::now() + Duration::from_millis(1), "on time")?;
//! assert_eq!(mailbox.receive().await, Some("on time"));
//! let beats = mailbox.address().send_interval(Duration::from_millis(1), "beat")?;
//! assert_eq!((mailbox.receive().await, mailbox.receive().await), (Some("beat"), Some("beat")));
//! beats.cancel();
//! assert!(in_an_hour.is_pending());
//! assert_eq!(in_an_hour.cancel(), Some("too late"));
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! # }).unwrap().unwrap();
//! ```
//!
//! The way of a message: `address.rs` → `block.rs`, under its lock → `receive.rs`, which takes over whatever
//! has come and looks through it without a lock.

mod address;
mod ask;
mod block;
mod by_owner;
#[cfg(feature = "checks")]
#[path = "../../tests/checks/channel/mod.rs"]
pub mod checks;
mod mailbox;
mod node;
mod owner;
mod receive;
mod send_after;
mod send_interval;
mod watch;

pub use address::ProcessAddr;
pub use ask::Answer;
pub use by_owner::waiting_for;
pub use mailbox::ProcessMailbox;
pub use receive::{Receive, ReceiveMatching};

pub use crate::message::ask::{AskError, Reply, Request, Unwanted};
pub use crate::message::{Message, SendError};
