//! How an executor is built, and why it may not be.

use core::fmt;
use core::time::Duration;

use super::mail::Bound;
use super::mail::directory::{self, TakeError};
use super::mail::mailbox::FIRST_SEGMENT_BYTES;
use super::run::{MailboxVictim, Refused, Rules, Size};
use crate::machine;
use crate::mem::{MemoryLimit, Payer};
use crate::sched::{Priority, SpawnError};

/// Mailboxes that may be stolen, for so many workers, unless the configuration says otherwise: 4 for one, from whom nobody steals, 16 for two, which is C∀'s sharding
/// factor, and 24 for up to sixteen. More for each worker would make batches smaller, and every message dearer; with fewer there would be
/// less to share out (`docs/performance.md`).
///
/// ```
/// use magpie::actor::default_mailboxes;
///
/// assert_eq!([1, 2, 4, 8, 16, 64].map(default_mailboxes), [4, 16, 24, 24, 24, 128]);
/// ```
#[must_use]
pub const fn default_mailboxes(workers: usize) -> usize {
    match workers {
        0..=1 => 4,
        2 => 16,
        3..=16 => 24,
        _ => 2 * workers,
    }
}

/// How an executor is built.
///
/// ```
/// use core::time::Duration;
/// use magpie::actor::{Bound, Config, MailboxVictim, WhenFull};
/// use magpie::sched::Priority;
///
/// let config = Config::default().workers(2).bound(Bound::new(100, WhenFull::Refuse));
/// assert_eq!(config.workers, Some(2));
///
/// // For many short messages that must not wait long: large buffers, and turns that end early.
/// let urgent = Config::default().priority(Priority::High).segment_bytes(1 << 16).reductions(500);
/// // For a few long ones: many mailboxes to share out, and whoever has nothing to do looks for some.
/// let long = Config::default().mailboxes(256).thieves(4).victim(MailboxVictim::Random);
/// // For what must not wait for other urgent work.
/// let prompt = Config::default().priority(Priority::High).deadline(Duration::from_micros(500));
/// # let _ = (urgent, long, prompt);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Workers, on cores 0 and up; `None` is one for each core.
    pub workers: Option<usize>,
    /// Mailboxes that may be stolen, at least as many as workers; `None` is [as many as usual](default_mailboxes). Each worker has
    /// one more, for pinned actors.
    pub mailboxes: Option<usize>,
    /// Mailboxes for actors that have one alone ([`spawn_bounded`](super::ExecutorHandle::spawn_bounded)): so many of those may live
    /// at once. Each costs some 2 KB from the start, and a look from its worker before that waits.
    pub own_mailboxes: usize,
    /// Bytes of a worker's buffer before it has grown.
    pub segment_bytes: usize,
    /// How many messages may wait in one mailbox, and what happens to more; not in those for one actor.
    pub bound: Bound,
    /// How thieves choose their victims.
    pub victim: MailboxVictim,
    /// Workers that may search for a victim at once.
    pub thieves: u32,
    /// The priority of the workers.
    pub priority: Priority,
    /// How soon a worker should have handled what woke it; only with priority `High`.
    pub deadline: Option<Duration>,
    /// Messages that a worker handles in one turn, at least 1.
    pub reductions: u64,
    /// With it ends who starts it; what has not ended in that time then is killed.
    pub owned: Option<Duration>,
    /// Without, that of whoever starts it.
    pub(super) payer: Option<Payer>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            workers: None,
            mailboxes: None,
            own_mailboxes: 0,
            segment_bytes: FIRST_SEGMENT_BYTES,
            bound: Bound::NONE,
            victim: MailboxVictim::LongestVictim,
            thieves: 1,
            priority: Priority::Normal,
            deadline: None,
            reductions: 4000,
            owned: None,
            payer: None,
        }
    }
}

impl Config {
    /// With so many workers.
    #[must_use]
    pub const fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(workers);
        self
    }

    /// With so many mailboxes that may be stolen.
    #[must_use]
    pub const fn mailboxes(mut self, mailboxes: usize) -> Self {
        self.mailboxes = Some(mailboxes);
        self
    }

    /// With so many mailboxes for actors that have one alone.
    ///
    /// ```
    /// use magpie::actor::Config;
    /// assert_eq!(Config::own_mailboxes(Config::default(), 10).own_mailboxes, 10);
    /// ```
    #[must_use]
    pub const fn own_mailboxes(mut self, mailboxes: usize) -> Self {
        self.own_mailboxes = mailboxes;
        self
    }

    /// With workers' buffers of so many bytes, before they have grown.
    #[must_use]
    pub const fn segment_bytes(mut self, bytes: usize) -> Self {
        self.segment_bytes = bytes;
        self
    }

    /// With bounded mailboxes.
    #[must_use]
    pub const fn bound(mut self, bound: Bound) -> Self {
        self.bound = bound;
        self
    }

    /// With thieves that choose their victims so.
    #[must_use]
    pub const fn victim(mut self, rule: MailboxVictim) -> Self {
        self.victim = rule;
        self
    }

    /// With so many workers that may search for a victim at once.
    #[must_use]
    pub const fn thieves(mut self, thieves: u32) -> Self {
        self.thieves = thieves;
        self
    }

    /// With workers of this priority.
    #[must_use]
    pub const fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// With workers that should have handled all mail so long after the first of it has woken them, as
    /// [`Spawn::deadline`](crate::sched::Spawn::deadline) says; their priority is to be `High`.
    #[must_use]
    pub const fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// With workers that handle so many messages in one turn, if anybody waits for its end.
    #[must_use]
    pub const fn reductions(mut self, reductions: u64) -> Self {
        self.reductions = reductions;
        self
    }

    /// Owned by who starts it: the process, or the actor in whose behaviour that is. When the owner has ended, whatever ended it, the executor is
    /// stopped as [`Executor::stop_within`](super::Executor::stop_within) says, with this limit. There is no moment in which the one has ended
    /// and the other would not: also if the owner is killed while it starts it.
    ///
    /// So an executor belongs to a tree of supervisors, by a child that starts it:
    ///
    /// ```
    /// use core::time::Duration;
    /// use magpie::actor::{Config, Executor, StartError};
    /// use magpie::supervise::{Child, Shutdown};
    ///
    /// async fn workshop(mut shutdown: Shutdown) -> Result<(), StartError> {
    ///     let executor = Executor::start(&Config::default().owned(Duration::from_millis(100)))?;
    ///     shutdown.requested().await;
    ///     executor.stop().await;
    ///     Ok(())
    /// }
    /// let child = Child::process("workshop", workshop);
    /// # let _ = child;
    /// ```
    #[must_use]
    pub const fn owned(mut self, limit: Duration) -> Self {
        self.owned = Some(limit);
        self
    }

    /// With this limit for the memory of its actors, all together, and of what they start. Otherwise it has the limit of whoever starts it.
    ///
    /// What an actor allocates in its behaviours and destructors counts, wherever the message came from; its first state is whoever
    /// made that has allocated. An actor that is to have a limit of its own needs an executor of its own.
    ///
    /// ```
    /// use magpie::actor::{Config, Executor};
    /// use magpie::mem::MemoryLimit;
    ///
    /// fn modest(limit: &MemoryLimit) -> Result<Executor, magpie::actor::StartError> {
    ///     Executor::start(&Config::default().workers(1).memory(limit))
    /// }
    /// ```
    #[must_use]
    pub fn memory(mut self, limit: &MemoryLimit) -> Self {
        self.payer = Some(limit.payer());
        self
    }

    /// How its workers work.
    pub(super) fn rules(&self) -> Rules {
        let Self { segment_bytes, victim, thieves, reductions, .. } = *self;
        Rules { segment_bytes, victim_rule: victim, thieves, reductions }
    }

    /// How many workers and mailboxes that makes on this machine.
    pub(super) fn check(&self) -> Result<Size, StartError> {
        let cores = machine::cores();
        let workers = self.workers.unwrap_or(cores);
        if workers == 0 || workers > cores {
            return Err(StartError::Workers { asked: workers, cores });
        }
        let mailboxes = self.mailboxes.unwrap_or(default_mailboxes(workers));
        if mailboxes < workers {
            return Err(StartError::TooFewMailboxes { mailboxes, workers });
        }
        // There are fewer cores than mailboxes.
        let most = directory::CAPACITY - workers;
        let all = mailboxes.saturating_add(self.own_mailboxes);
        if all > most {
            return Err(StartError::TooManyMailboxes { mailboxes: all, most });
        }
        if self.reductions == 0 {
            return Err(StartError::NoReductions);
        }
        Ok(Size { workers, movable: mailboxes, own: self.own_mailboxes })
    }
}

/// Why an executor was not started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StartError {
    /// No workers, or more than there are cores.
    Workers {
        /// The number asked for.
        asked: usize,
        /// The number of cores.
        cores: usize,
    },
    /// Fewer mailboxes than workers: some worker would have none.
    TooFewMailboxes {
        /// The number asked for.
        mailboxes: usize,
        /// The number of workers.
        workers: usize,
    },
    /// More mailboxes than there are numbers for.
    TooManyMailboxes {
        /// The number asked for.
        mailboxes: usize,
        /// The most that an executor with as many workers could have, were it the only one.
        most: usize,
    },
    /// The executors that exist have nearly all mailbox numbers: stop one first.
    MailboxesInUse,
    /// A worker could handle no message in a turn.
    NoReductions,
    /// The workers have a deadline and are not of priority `High`.
    DeadlineNotHigh,
    /// No memory for it, or none within its limit.
    OutOfMemory,
    /// Its memory limit was dropped, and nothing has that any more.
    LimitDropped,
    /// A core that would have a worker is not one of the scheduler's: ask for fewer workers.
    NoSuchCore,
    /// A core that would have a worker is offline.
    CoreOffline,
    /// The scheduler has as many processes as it is set to have.
    TooManyProcesses,
    /// Whoever starts it was killed meanwhile, and is about to end: nobody would get it.
    Ending,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workers { asked, cores } => {
                write!(f, "{asked} workers on {cores} cores: ask for 1 to {cores}")
            }
            Self::TooFewMailboxes { mailboxes, workers } => {
                write!(f, "{mailboxes} mailboxes for {workers} workers: ask for at least {workers}")
            }
            Self::TooManyMailboxes { mailboxes, most } => {
                write!(f, "{mailboxes} mailboxes: ask for at most {most}")
            }
            Self::MailboxesInUse => f.write_str("too many mailboxes are in use: stop another executor first"),
            Self::NoReductions => f.write_str("no reductions: ask for at least 1"),
            Self::DeadlineNotHigh => f.write_str("only workers of priority High can have a deadline"),
            Self::OutOfMemory => f.write_str("out of memory: the executor was not started"),
            Self::LimitDropped => {
                f.write_str("its memory limit was dropped: keep it while something is to be started")
            }
            Self::NoSuchCore => f.write_str("a core does not exist: ask for fewer workers"),
            Self::CoreOffline => f.write_str("a core is offline: ask for fewer workers, or bring it back"),
            Self::Ending => f.write_str("whoever starts it was killed: the executor was not started"),
            Self::TooManyProcesses => f.write_str("too many processes: raise sched.processes"),
        }
    }
}

impl core::error::Error for StartError {}

impl From<Refused> for StartError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Mailbox(TakeError::AllInUse) => Self::MailboxesInUse,
            Refused::Worker(SpawnError::TooManyProcesses) => Self::TooManyProcesses,
            Refused::Worker(SpawnError::CoreOffline) => Self::CoreOffline,
            Refused::Worker(SpawnError::LimitDropped) => Self::LimitDropped,
            Refused::Worker(SpawnError::NoSuchCore) => Self::NoSuchCore,
            Refused::Worker(SpawnError::DeadlineNotHigh) => Self::DeadlineNotHigh,
            Refused::Ending => Self::Ending,
            Refused::Worker(SpawnError::OutOfMemory)
            | Refused::Mailbox(TakeError::OutOfMemory)
            | Refused::OutOfMemory => Self::OutOfMemory,
        }
    }
}
