//! What most applications name: `use magpie::prelude::*`.

pub use crate::actor::{Actor, Addr, Config, Context, Executor, ExecutorHandle, Hook, Receive};
pub use crate::arch::{CoreId, CoreSet};
pub use crate::channel::{ProcessAddr, ProcessMailbox, Request};
pub use crate::log::text;
pub use crate::sched::{self, JoinError, JoinHandle, Priority, Spawn, SpawnError, tuning};
pub use crate::supervise::{Child, Supervisor};
pub use crate::{ExitCode, machine, registry, time};
