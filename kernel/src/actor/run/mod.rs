//! Running actors: the workers of an executor, what they share, and what becomes of an actor whose behaviour runs too long,
//! ends it, or crashes.
//!
//! Nothing here knows a type of actor or message, nor how an application addresses either. The scheduler sees a worker as
//! a [`resident`]; a worker [gulps and delivers](worker), [steals](steal) when it runs dry, is [split](detach) when a
//! behaviour outruns its slice, and goes on when one [crashes](crash).
//!
//! An executor's [state](executor_state) and its [workers](worker) know one another; no other files here form a circle.

mod at_work;
mod batch;
mod clearing;
mod crash;
mod delivery;
mod detach;
pub(crate) mod detachment;
mod executor_state;
mod kill;
mod live;
pub(crate) mod live_count;
mod mailbox_victim;
mod metered;
mod own_mailboxes;
mod owner;
mod pending_kills;
mod reclaim;
mod resident;
pub(crate) mod shutdown;
mod side_queue;
mod start;
mod steal;
pub(crate) mod stopping;
mod tally;
mod worker;

pub(crate) use at_work::identity;
pub(crate) use executor_state::{ExecutorState, Rules, put_in_front};
pub(crate) use kill::{Room as KillRoom, fate, kill};
pub use mailbox_victim::MailboxVictim;
pub(crate) use side_queue::{forget_oldest, messages_aside};
pub(crate) use start::{Refused, Size, start};
pub(crate) use worker::direct::Direct;
pub(crate) use worker::lane::{leave_lane, make_room_in_lane, take_of_worker};
