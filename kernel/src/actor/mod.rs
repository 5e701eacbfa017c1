//! The actor system, in the style of C∀: message-centric, with mailboxes that many actors share.
//!
//! An [`Actor`] is state with a behaviour for each type of message ([`Receive`]). It belongs to one
//! [mailbox](self::mailbox) for life. A sender copies an [envelope] to the end of the mailbox's copy queue;
//! a [worker] gulps a mailbox whole and delivers what is in it. A worker that runs dry [steals](steal) a
//! mailbox from another by swapping two pointers. A behaviour that runs too long is [detached](detach),
//! one that panics [ends its actor](crash).
//!
//! The way of a message: [`address`] → [`envelope`] → [`copy_queue`] → [`worker`] → [`batch`] →
//! [`delivery`]. The way of an actor: [`executor`] → [`pool`] → [`cell`] → [`word`].

mod address;
mod batch;
mod behaviour;
mod cell;
mod copy_queue;
mod crash;
mod delivery;
mod detach;
mod envelope;
mod executor;
mod mailbox;
mod pool;
mod reclaim;
mod resident;
mod segment;
mod shutdown;
mod side_queue;
mod steal;
mod word;
mod worker;

pub use address::{Addr, SendError};
pub use behaviour::{Actor, Context, Message, Outcome, Receive};
pub use executor::{Config, Executor, ExecutorHandle, MAILBOXES_PER_WORKER, SpawnError, StartError};
pub use steal::VictimRule;
