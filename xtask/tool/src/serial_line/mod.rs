//! The other end of a machine's serial line, where its network goes over one (`magpie_drivers::serial`): IP packets in SLIP. This machine is 10.0.2.2 there, and the other 10.0.2.15, as in
//! QEMU's own network; and what QEMU does there for a card is done here for a line, without rights: what comes to a port of this machine that is forwarded goes to one of the other, and what
//! that connects to at 10.0.2.2 goes to this machine's own loopback.
//!
//! ```text
//! line --- bytes --- wire --- packets --- smoltcp --- gateway --- carried, one for each connection --- TCP of this machine
//! ```
//!
//! One thread does all of it, in [`run()`], and waits in `poll`. What one side does not take waits with the other: nothing here grows with it.

mod carried;
mod gateway;
mod notice;
mod open;
mod run;
// A link to the driver's own file: a package of this crate has a copy of it.
mod slip;
#[cfg(test)]
mod tests;
mod wire;

pub use gateway::Gateway;
pub use notice::Notice;
pub use open::{Ends, open};
pub use run::{Ending, run};
