//! References to supervisors that run, and what can be asked of them.

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use super::child::Child;
use crate::channel::{AskError, ProcessAddr, Request};
use crate::mem::OutOfMemory;
use crate::registry;
use crate::sched::ProcessRef;

/// A child of a supervisor, as long as it is not forgotten. No other child of any supervisor has the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ChildId(pub(super) u64);

/// What a supervisor knows of a child.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChildState {
    /// Which.
    pub id: ChildId,
    /// As it was declared.
    pub name: &'static str,
    /// Whether it lives.
    pub runs: bool,
    /// How often it was restarted because it had ended; not because another had.
    pub restarts: u64,
    /// How long it waited before the last such restart, or waits.
    pub delay: Duration,
}

/// Why a supervisor did not take a child.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NotTaken {
    /// There is no memory for it.
    OutOfMemory,
    /// The supervisor ends.
    Ends,
    /// The supervisor was not reached.
    NotReached(AskError),
}

impl fmt::Display for NotTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfMemory => OutOfMemory.fmt(f),
            Self::Ends => f.write_str("the supervisor is about to end: it takes no more children"),
            Self::NotReached(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for NotTaken {}

impl From<AskError> for NotTaken {
    fn from(error: AskError) -> Self {
        Self::NotReached(error)
    }
}

/// What is asked.
pub(super) enum Command {
    Take(Child),
    Terminate(ChildId),
    List,
    Stop,
}

/// What is answered, in the same order.
pub(super) enum Answer {
    Taken(Result<ChildId, NotTaken>),
    Terminated(bool),
    List(Vec<ChildState>),
    Stopped,
}

/// How many commands may wait.
pub(super) const MOST_COMMANDS: usize = 64;

pub(super) type Commands = ProcessAddr<Request<Command, Answer>>;

/// A supervisor that runs, or has run. May be cloned, and used from any core.
///
/// ```
/// # use magpie::sched;
/// use magpie::registry;
/// use magpie::supervise::{Child, Supervisor, SupervisorRef};
///
/// # sched::run_on_threads(2, 1, async {
/// Supervisor::one_for_one().named("doc/workers").start()?;
/// let workers: SupervisorRef = registry::find("doc/workers")?;
/// let worker = Child::process("worker", |mut shutdown| async move { shutdown.requested().await });
/// let id = workers.start_child(worker.temporary()).await?;
/// assert!(workers.children().await?.iter().any(|child| child.id == id && child.name == "worker"));
/// assert!(workers.terminate(id).await?);
/// assert!(!workers.terminate(id).await?);
/// workers.stop().await?;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # }).unwrap().unwrap();
/// ```
#[derive(Clone)]
pub struct SupervisorRef {
    pub(super) commands: Commands,
    pub(super) process: ProcessRef,
}

impl SupervisorRef {
    /// Its process: to be watched, or killed. With it its children end.
    pub fn process(&self) -> &ProcessRef {
        &self.process
    }

    /// Adds a child after the others, which is started in its turn.
    ///
    /// # Errors
    /// [`NotTaken`]; then it was dropped.
    pub async fn start_child(&self, child: Child) -> Result<ChildId, NotTaken> {
        let child = child.handed_over().map_err(|OutOfMemory| NotTaken::OutOfMemory)?;
        match self.commands.ask(Command::Take(child)).await? {
            Answer::Taken(taken) => taken,
            _ => Err(NotTaken::NotReached(AskError::Unanswered)),
        }
    }

    /// Ends a child, and waits for that; it is never started again, whatever it was declared as. Whether it was known.
    ///
    /// # Errors
    /// When the supervisor was not reached, or ended meanwhile.
    pub async fn terminate(&self, child: ChildId) -> Result<bool, AskError> {
        match self.commands.ask(Command::Terminate(child)).await? {
            Answer::Terminated(was_known) => Ok(was_known),
            _ => Err(AskError::Unanswered),
        }
    }

    /// The children, in order.
    ///
    /// # Errors
    /// When the supervisor was not reached, or has no memory for the answer.
    pub async fn children(&self) -> Result<Vec<ChildState>, AskError> {
        match self.commands.ask(Command::List).await? {
            Answer::List(children) => Ok(children),
            _ => Err(AskError::Unanswered),
        }
    }

    /// Ends it: its children, the last first, each within its limit; then itself. Waits until all children have ended.
    ///
    /// # Errors
    /// When it was not reached, or has given up meanwhile.
    pub async fn stop(&self) -> Result<(), AskError> {
        match self.commands.ask(Command::Stop).await? {
            Answer::Stopped => Ok(()),
            _ => Err(AskError::Unanswered),
        }
    }
}

impl registry::Sealed for SupervisorRef {
    fn lives(&self) -> bool {
        // What waits in its mailbox may run code of the application's when it is dropped, so a process of its own does that, and
        // the mailbox is closed later than its end is told: its successor gets the name at once.
        !self.process.is_done() && !self.commands.has_closed()
    }

    fn number(&self) -> Option<usize> {
        Some(self.process.id())
    }

    fn holder(&self) -> Option<registry::Holder> {
        Some(registry::Holder::Process(self.process.clone()))
    }
}

impl fmt::Debug for SupervisorRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SupervisorRef({:#x})", self.process.id())
    }
}
