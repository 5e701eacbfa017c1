//! What most applications name: `use magpie::prelude::*`.

pub use crate::actor::{Actor, Addr, Config, Context, Executor, ExecutorHandle, Receive};
pub use crate::arch::{CoreId, CoreSet};
pub use crate::channel::ProcessMailbox;
pub use crate::log::text;
pub use crate::sched::{self, JoinError, JoinHandle, Priority, Spawn, SpawnError, tuning};
pub use crate::{ExitCode, machine, time};
