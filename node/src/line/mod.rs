//! A line: the process of one connection to another node. It alone has the connection's state: what others want of it they ask by message ([`Order`]).
//!
//! It waits for several things at once: bytes, room for bytes, orders, answers of actors that were asked, ends of those who are watched, and the clock. What it has to
//! say and cannot, because as much as may be is on its way, is a [`Duty`]; while there is one, nothing more is heard. So a slow reader on the other side ends in
//! TCP's window there, and a full mailbox here in this side's.

mod duty;
mod hear;
mod order;
mod run;

pub use order::{Order, Ordered, Place, RemoteDown, Token};
pub use run::{End, MOST_ORDERS, drive, now};
