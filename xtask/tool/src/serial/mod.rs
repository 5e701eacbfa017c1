//! The serial line of a board.
//!
//! [`port`] opens one, [`watch`] reads it for as long as anybody likes, through garbage and cut connections, and
//! [`push`] hands a kernel to the chain loader at the other end. What goes there comes from who types, a line at a time ([`typed`]) or in an
//! [`editor`] that knows the [`words`] of the kernel's commands, or from a [`script`]; [`source`] says which.

pub mod editor;
mod names;
pub mod port;
pub mod push;
pub mod script;
mod sender;
pub mod source;
pub mod typed;
pub mod watch;
pub mod words;
