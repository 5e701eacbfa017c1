//! Supervisors as they are declared.

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use super::child::Child;
use super::handle::SupervisorRef;
use super::policy::{Backoff, Rules, Strategy};
use super::run;
use crate::mem::OutOfMemory;
use crate::registry::{self, RegisterError};
use crate::sched::{Spawn, SpawnError};

/// A supervisor as it is declared: a strategy, limits, and children in the order in which they are started.
///
/// Unless it is said otherwise it gives up at the fourth restart within five seconds, and has the
/// [usual back-off](Backoff::default).
///
/// ```
/// use magpie::sched::{Priority, Spawn};
/// use magpie::supervise::{Backoff, Strategy, Supervisor};
/// let urgent = Supervisor::one_for_all()
///     .named("urgent")
///     .backoff(Backoff::NONE)
///     .with(Spawn::new().priority(Priority::High));
/// let whichever = |strategy: Strategy| Supervisor::new(strategy);
/// # let _ = (urgent, whichever(Strategy::RestForOne));
/// ```
///
/// ```
/// # use magpie::sched;
/// use core::time::Duration;
/// use magpie::supervise::{Child, Supervisor};
///
/// # sched::run_on_threads(2, 1, async {
/// let stages = Supervisor::rest_for_one()
///     .child(Child::process("source", |mut shutdown| async move { shutdown.requested().await }))
///     .child(Child::process("sink", |mut shutdown| async move { shutdown.requested().await }));
/// let all = Supervisor::one_for_one()
///     .restarts(5, Duration::from_secs(10))
///     .child(Child::supervisor("stages", stages))
///     .child(Child::process("once", |_| async {}).transient())
///     .start()?;
/// all.stop().await?;
/// assert!(all.process().is_done() || !all.process().has_failed());
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # }).unwrap().unwrap();
/// ```
#[must_use = "it does nothing until it is started, or is a child of one that is"]
pub struct Supervisor {
    pub(super) rules: Rules,
    pub(super) name: Option<&'static str>,
    pub(super) how: Spawn,
    pub(super) children: Vec<Child>,
    /// There was no memory for a child.
    pub(super) is_incomplete: bool,
}

/// Why a supervisor was not started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StartError {
    /// There is no memory for it, or was none for a child.
    OutOfMemory,
    /// Its process was not started.
    Process(SpawnError),
    /// It did not get its name.
    Name(RegisterError),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfMemory => f.write_str("there is no memory for the supervisor and its children"),
            Self::Process(error) => error.fmt(f),
            Self::Name(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for StartError {}

impl From<OutOfMemory> for StartError {
    fn from(OutOfMemory: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

impl Supervisor {
    /// One without children yet.
    pub const fn new(strategy: Strategy) -> Self {
        let rules = Rules {
            strategy,
            most: 3,
            window: Duration::from_secs(5),
            backoff: Backoff::new(Duration::from_millis(1), Duration::from_secs(1)),
        };
        Self { rules, name: None, how: Spawn::new(), children: Vec::new(), is_incomplete: false }
    }

    /// With [`Strategy::OneForOne`].
    pub const fn one_for_one() -> Self {
        Self::new(Strategy::OneForOne)
    }

    /// With [`Strategy::OneForAll`].
    pub const fn one_for_all() -> Self {
        Self::new(Strategy::OneForAll)
    }

    /// With [`Strategy::RestForOne`].
    pub const fn rest_for_one() -> Self {
        Self::new(Strategy::RestForOne)
    }

    /// So many restarts are allowed within any time of that length, of all its children together. With one more it gives up: it ends
    /// its children and fails. It keeps 8 bytes for each. With none it fails with the first; with `usize::MAX` none is counted, and it
    /// never gives up.
    pub const fn restarts(mut self, most: usize, within: Duration) -> Self {
        self.rules.most = most;
        self.rules.window = within;
        self
    }

    /// How long a child waits for its restart.
    pub const fn backoff(mut self, backoff: Backoff) -> Self {
        self.rules.backoff = backoff;
        self
    }

    /// With a name in the [registry], under which a [`SupervisorRef`] is found. That of a child is found
    /// after each restart again.
    pub const fn named(mut self, name: &'static str) -> Self {
        self.name = Some(name);
        self
    }

    /// The process of one that is started by [`Self::start`] has that priority, and those cores. (That of a child:
    /// [`Child::with`].)
    pub const fn with(mut self, how: Spawn) -> Self {
        self.how = how;
        self
    }

    /// With one more child, after the others.
    pub fn child(mut self, child: Child) -> Self {
        // Without a plan there was no memory for it.
        if child.plan.is_some() && self.children.try_reserve(1).is_ok() {
            self.children.push(child);
        } else {
            self.is_incomplete = true;
        }
        self
    }

    /// Starts it: a process, which then starts the children. It goes on until it is stopped or gives up, whether anybody
    /// has its reference or not.
    ///
    /// # Errors
    /// See [`StartError`]; no child goes on that was started.
    pub fn start(self) -> Result<SupervisorRef, StartError> {
        let name = self.name;
        let started = run::root(self)?;
        if let Some(name) = name
            && let Err(error) = registry::register(name, started.clone())
        {
            started.process().kill();
            return Err(StartError::Name(error));
        }
        Ok(started)
    }
}

impl fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervisor")
            .field("rules", &self.rules)
            .field("children", &self.children)
            .finish_non_exhaustive()
    }
}
