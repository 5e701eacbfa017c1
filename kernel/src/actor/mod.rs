//! The actor system, in the style of C∀: message-centric, with mailboxes that many actors share.
//!
//! An [`Actor`] is state with a behaviour for each type of message ([`Receive`]). It belongs to one mailbox for life. A
//! sender copies an envelope to the end of the mailbox's copy queue; a worker gulps a mailbox whole and delivers what is
//! in it. A worker that runs dry steals a mailbox from another by swapping two pointers. A behaviour that runs too long is
//! detached, one that panics ends its actor.
//!
//! A message may also be sent later, and taken back before; and again and again, until that is cancelled:
//!
//! ```
//! # use magpie::sched;
//! use core::time::Duration;
//! use magpie::actor::{Actor, Config, Context, Executor, Receive};
//! use magpie::time::Instant;
//!
//! struct Lamp;
//! impl Actor for Lamp {}
//! #[derive(Clone, Copy, PartialEq, Debug)]
//! struct Off;
//! impl Receive<Off> for Lamp {
//!     type Reply = ();
//!
//!     fn receive(&mut self, _: Off, context: &mut Context<Self>) {
//!         context.end();
//!     }
//! }
//! # sched::run_on_threads(2, 1, async {
//! let executor = Executor::start(&Config::default())?;
//! let lamp = executor.handle().spawn(Lamp)?;
//! let in_an_hour = lamp.send_after(Duration::from_secs(3600), Off)?;
//! assert!(in_an_hour.is_pending());
//! assert_eq!(in_an_hour.cancel(), Some(Off));
//! lamp.send_at(Instant::now() + Duration::from_millis(1), Off)?;
//! lamp.recipient().send_after(Duration::from_millis(1), Off)?;
//! lamp.send_interval(Duration::from_millis(1), Off)?.cancel();
//! executor.all_ended().await;
//! # executor.stop().await;
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! # }).unwrap().unwrap();
//! ```
//!
//! The files here are what applications see, and where the types of actors and messages are known. Below, each using only
//! those that follow, are the rooms of those who run actors (`run/`), of envelopes and mailboxes (`mail/`), and of the
//! cells that actors live in (`storage/`).
//!
//! The way of a message: `address.rs` → `target.rs` → `send.rs` → `mail/envelope.rs`, in `mail/copy_queue.rs` →
//! `run/worker/gulping.rs` → `run/delivery.rs` → `target.rs` → a behaviour. The way of an actor: `spawn.rs` →
//! `storage/pool.rs` → `storage/cell.rs`.

mod address;
mod ask;
mod behaviour;
#[cfg(feature = "checks")]
#[path = "../../tests/checks/actor/mod.rs"]
pub mod checks;
mod config;
mod context;
mod continuation;
mod executor;
mod handle;
mod inspect;
mod limits;
pub(crate) mod mail;
mod print;
mod recipient;
pub(crate) mod run;
mod send;
mod send_after;
mod send_interval;
mod send_wait;
mod signal;
mod spawn;
mod static_actor;
pub mod stop;
pub(crate) mod storage;
mod target;
mod watch;

pub use address::Addr;
pub use ask::{Answers, Direct, Kept};
pub use behaviour::{Actor, Context, Hook, Receive};
pub use config::{Config, StartError, default_mailboxes};
pub use executor::Executor;
pub use handle::{ExecutorHandle, HighWater};
pub(crate) use inspect::ActorId;
pub use inspect::{ActorInfo, ActorState, MailboxInfo, actors, mailboxes};
pub use limits::Limits;
pub use mail::{Bound, WhenFull};
pub(crate) use print::{actors_printer, mailboxes_printer, note_names};
pub use recipient::Recipient;
pub(crate) use run::KillRoom;
pub use run::MailboxVictim;
pub use run::stopping::{Stopped, Stopping};
pub use send_wait::SendWait;
pub use signal::Signal;
pub use spawn::NotSpawned;
pub use static_actor::StaticActor;
#[cfg(not(any(target_os = "none", loom, shuttle)))]
pub(crate) use storage::Outcome;
pub(crate) use storage::cell::chunk_bytes;

pub use crate::message::ask::{Answer, AskError, Reply, Request, Unwanted};
pub use crate::message::{Message, NotShared, SendError, SendToAllError, Shared};
