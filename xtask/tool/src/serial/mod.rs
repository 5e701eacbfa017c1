//! The serial line of a board.
//!
//! [`port`] opens one, [`watch`] reads it for as long as anybody likes, through garbage and cut connections, and
//! [`push`] hands a kernel to the chain loader at the other end. What is [`typed`] goes there.

pub mod port;
pub mod push;
mod sender;
pub mod typed;
pub mod watch;
