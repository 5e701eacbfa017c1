//! What has crashed: a record of each crash, of which the last 32 are kept.
//!
//! A process that panics or faults ends alone, and so does an actor. What is known of that is written down before anybody is told, so whoever
//! learns of a crash finds its record. Crashes are numbered from 1 on, without a gap.
//!
//! ```
//! use magpie::crash;
//! use magpie::log::text;
//!
//! text!("{} crashes so far", crash::total());
//! for record in crash::records() {
//!     text!("{record}");
//! }
//! ```
//!
//! The command `crashes` prints the same over the serial line. Where a crash is told of, its number leads to the record:
//!
//! ```
//! use magpie::crash::{self, CrashNumber};
//!
//! fn why(number: CrashNumber) -> &'static str {
//!     match crash::record(number) {
//!         Some(record) => record.name(),
//!         None => "something, more than 32 crashes ago",
//!     }
//! }
//! # assert!(crash::last().is_none_or(|last| why(last.number) == last.name()));
//! ```
//!
//! Inside: `record.rs` says what is known of one crash, `message.rs` takes the beginning of a message while that is printed,
//! `trace.rs` follows the stack, `ring.rs` keeps the last ones. Who crashed and who is told is the scheduler's.

pub(crate) mod message;
mod record;
mod ring;
mod trace;

pub(crate) use message::Message;
pub use record::{CrashKind, CrashRecord};
pub(crate) use record::{Remembered, Scene};
pub(crate) use ring::note;
pub use ring::{last, record, records, total};
pub(crate) use trace::{Called, Trace, stack_at};

pub use crate::sync::CrashNumber;
