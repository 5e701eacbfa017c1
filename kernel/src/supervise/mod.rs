//! Supervisors: processes that start others and, when one of these ends, start it anew.
//!
//! A supervisor has children: processes, actors, and supervisors. It is declared with all of them, and the compiler checks that each
//! can be started again:
//!
//! ```
//! # use magpie::sched;
//! use core::time::Duration;
//! use magpie::channel::{ProcessAddr, ProcessMailbox};
//! use magpie::registry;
//! use magpie::supervise::{Child, Shutdown, Supervisor};
//! use magpie::time;
//!
//! async fn echo(_: Shutdown) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//!     let mut mailbox = ProcessMailbox::<ProcessAddr<u32>>::new(10)?;
//!     // Its name is that of each of its lives: who has crashed has none.
//!     registry::register("doc/echo", mailbox.address())?;
//!     while let Some(whom) = mailbox.receive().await {
//!         whom.send(7)?;
//!     }
//!     Ok(())
//! }
//!
//! # sched::run_on_threads(2, 1, async {
//! let supervisor = Supervisor::one_for_one().child(Child::process("echo", echo)).start()?;
//! let mut answers = ProcessMailbox::new(1)?;
//! let echo = loop {
//!     match registry::find::<ProcessAddr<ProcessAddr<u32>>>("doc/echo") {
//!         Ok(echo) => break echo,
//!         Err(_) => time::sleep(Duration::from_millis(1)).await,
//!     }
//! };
//! echo.send(answers.address())?;
//! assert_eq!(answers.receive().await, Some(7));
//! // It does not look whether it is to end: it would be killed after five seconds.
//! supervisor.process().kill();
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! # }).unwrap().unwrap();
//! ```
//!
//! **Restarts.** After each end of a child that is [permanent](Restart), each failure of one that is transient, and no end of one that is
//! temporary, the [`Strategy`] says who is started anew, and the [`Backoff`] when. A start that fails counts as a failure of the child.
//!
//! **Giving up.** When there are more restarts than allowed within a time, the supervisor ends its children and fails
//! ([`Exit::Failed`](crate::watch::Exit::Failed)). Its own supervisor then does as for any child.
//!
//! **Ending.** Children are asked to end, the last first, one after the other. Who has not ended within its limit is killed.
//!
//! **If a supervisor is killed**, its children are: each is linked to it before it runs code of its own.
//!
//! A supervisor runs nothing of the application's itself, so no child can end it. It needs memory for each child, and keeps nothing of one that
//! is not started again.
//!
//! What is decided stands in `policy/`, which knows no process; what is done, in `run.rs`. How a child is started is in
//! `blueprint.rs`, an actor's in `tend.rs`; what it shares with its supervisor in `control.rs`, and how its end is told in `ends.rs`. What is seen of both from outside is in `inspect.rs`.

mod blueprint;
mod child;
mod control;
mod ends;
mod handle;
mod inspect;
mod policy;
mod print;
mod run;
mod shutdown;
mod supervisor;
mod tend;

pub use blueprint::Ending;
pub use child::Child;
pub use handle::{ChildId, ChildState, NotTaken, SupervisorRef};
pub use inspect::{ChildInfo, SupervisorInfo, children, supervised, supervisors};
pub use policy::{Backoff, Restart, Strategy};
pub(crate) use print::printer;
pub use shutdown::Shutdown;
pub use supervisor::{StartError, Supervisor};
