//! Watching: who is told when an actor or a process ends, whatever ended it, and how.
//!
//! [`Addr::watch`](crate::actor::Addr::watch) and [`ProcessRef::watch`](crate::sched::Header::watch) name a watcher: an
//! actor with a behaviour for [`Ended`], or a mailbox for it. That one is told exactly once, by an ordinary message that comes
//! before all mail that waits there, and that neither a bound nor a lack of memory holds back. One who has ended already is
//! told of at once.
//!
//! ```
//! # use magpie::sched;
//! use magpie::channel::ProcessMailbox;
//! use magpie::watch::{Ended, Exit};
//!
//! # sched::run_on_threads(2, 1, async {
//! let mut ends = ProcessMailbox::<Ended>::new(10)?;
//! let mut start = ProcessMailbox::<()>::new(1)?;
//! let go = start.address();
//! let work = sched::spawn(async move { start.receive().await })?;
//! let watch = work.process().watch(&ends.address())?;
//! go.send(())?;
//! let ended = ends.receive().await.ok_or("nobody has an address")?;
//! assert_eq!((ended.watch(), ended.exit()), (watch.id(), Exit::Normal));
//! assert!(watch.id().number() > 0 && !ended.exit().is_failure());
//! // It was told already.
//! assert!(!watch.cancel());
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! # }).unwrap().unwrap();
//! ```
//!
//! [`link()`] makes two end together.
//!
//! Here is what is known of neither actors nor processes: the watches that wait (`lists.rs`), and what is told. How a watcher is
//! reached is in `actor/watch.rs` and `channel/watch.rs`; who ends, says so by `tell`, and has many told by a process (`sched/spawn/telling.rs`).

#[cfg(not(loom))]
mod ended;
#[cfg(not(loom))]
mod link;
pub(crate) mod lists;
pub(crate) mod node;
#[cfg(not(loom))]
mod rest;
#[cfg(not(loom))]
mod table;
pub(crate) mod watched;

#[cfg(not(loom))]
pub use ended::{Ended, Exit, WatchId, Watcher};
#[cfg(not(loom))]
pub(crate) use ended::{Means, sealed::Sealed};
#[cfg(not(loom))]
pub(crate) use link::sealed::Linked;
#[cfg(not(loom))]
pub use link::{Link, Linkable, link};
#[cfg(not(loom))]
pub(crate) use node::{Asked, Data, Node};
#[cfg(not(loom))]
pub(crate) use rest::Rest;
#[cfg(not(loom))]
pub use table::Watch;
#[cfg(not(loom))]
pub(crate) use table::{ask_to_end, asked_to_end, tell, watch};
#[cfg(not(loom))]
pub(crate) use watched::Watched;
