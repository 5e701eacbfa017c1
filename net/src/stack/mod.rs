//! The network's process: it alone has smoltcp, the sockets and their buffers, and does what it is told by message.
//!
//! *Why messages and no lock.* Who holds a lock can be killed, and then nobody gets it; or cannot be killed because it disables preemption, and then a copy of many
//! bytes holds up its core. A message was sent or was not. It costs a turn of this process for each read and write, and no copy: what is sent along is
//! the caller's buffer, by pointer, and it comes back the same way.
//!
//! After the start nothing is allocated here but what messages take: buffers come with the questions, places were made at the start.

mod acknowledging;
mod addresses;
mod admission;
mod listeners;
mod port;
mod run;
mod slots;
mod tcp;
mod udp;

pub use run::Stack;
