//! What a kernel sends about what happens in it, understood: events and statistics.
//!
//! `frame` reads the frames (their format is told in `kernel/src/trace/frame.rs`), `record` collects what they say, `values` knows what the
//! statistics mean, `perfetto` makes a file of the events that Perfetto opens, by way of `proto`, `tape` keeps frames in a file,
//! `dump` what was said in a dump.

pub mod dump;
mod frame;
#[cfg(test)]
mod hostile;
pub mod pages;
pub mod perfetto;
mod proto;
mod record;
pub mod tape;
pub mod values;
pub mod view;

pub use frame::{Event, Kind, Record, read};
pub use record::{Recording, short};
