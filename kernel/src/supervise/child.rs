//! Children as they are declared.

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::time::Duration;

use super::blueprint::{Ending, Plan};
use super::policy::Restart;
use super::run;
use super::shutdown::Shutdown;
use super::supervisor::Supervisor;
use super::tend::{HeldTo, tend};
use crate::actor::{Actor, Bound, ExecutorHandle, Limits};
use crate::mem::OutOfMemory;
use crate::message::Shared;
use crate::sched::Spawn;

/// How long a child may take to end unless it is said otherwise.
const LIMIT: Duration = Duration::from_secs(5);

/// A child of a supervisor as it is declared: a process, an actor or a supervisor; permanent, with five seconds to end.
///
/// ```
/// use core::time::Duration;
/// use magpie::supervise::{Child, Restart, Shutdown};
///
/// async fn print(mut shutdown: Shutdown) {
///     shutdown.requested().await;
/// }
/// let printer = Child::process("printer", print).within(Duration::from_millis(100));
/// let once = Child::process("once", print).temporary();
/// let whichever = |restart: Restart| Child::process("whichever", print).restart(restart);
/// # let _ = (printer, once, whichever(Restart::Transient));
/// ```
///
/// What is declared can be started again and again, and the compiler sees to that:
///
/// ```compile_fail,E0525
/// use magpie::supervise::Child;
/// let file = String::from("what can be read once");
/// let reader = Child::process("reader", move |_| async move { drop(file) });
/// ```
///
/// ```compile_fail,E0277
/// use magpie::supervise::Child;
/// // What it waits for could not change cores.
/// let reader = Child::process("reader", |_| async {
///     let here = std::rc::Rc::new(1);
///     magpie::sched::yield_now().await;
///     drop(here);
/// });
/// ```
#[must_use = "it is started by a supervisor"]
pub struct Child {
    pub(super) name: &'static str,
    pub(super) restart: Restart,
    pub(super) limit: Duration,
    pub(super) how: Spawn,
    /// Without, there was no memory for it.
    pub(super) plan: Option<Plan>,
}

/// What a process that tends an actor is seen as.
struct Tender<A>(PhantomData<A>);

impl Child {
    /// Its processes are seen under the name of the type `N`.
    fn new<N, F, T>(name: &'static str, make: F) -> Self
    where
        N: 'static,
        F: Fn(Shutdown) -> T + Send + Sync + 'static,
        T: Future<Output: Ending> + Send + 'static,
    {
        let plan = Plan::new::<N, F, T>(make).ok();
        Self { name, restart: Restart::Permanent, limit: LIMIT, how: Spawn::new(), plan }
    }

    /// A process: for each life `make` is called in it, and the future awaited.
    ///
    /// ```
    /// use magpie::supervise::Child;
    /// let clerk = Child::process("clerk", |mut shutdown| async move { shutdown.requested().await });
    /// # let _ = clerk;
    /// ```
    pub fn process<F, T>(name: &'static str, make: F) -> Self
    where
        F: Fn(Shutdown) -> T + Send + Sync + 'static,
        T: Future<Output: Ending> + Send + 'static,
    {
        Self::new::<F, F, T>(name, make)
    }

    /// An actor on that executor: for each life `make` makes its state. It is asked to end by [`stop::End`](crate::actor::stop::End).
    /// A process beside it tends it; it is that process which [`Self::with`] is about.
    ///
    /// ```
    /// use magpie::actor::{Actor, ExecutorHandle};
    /// use magpie::supervise::Child;
    /// struct Counter(u64);
    /// impl Actor for Counter {}
    /// fn counter(executor: &ExecutorHandle) -> Child {
    ///     Child::actor("counter", executor, || Counter(0)).transient()
    /// }
    /// ```
    pub fn actor<A: Actor>(
        name: &'static str,
        executor: &ExecutorHandle,
        make: impl Fn() -> A + Send + Sync + 'static,
    ) -> Self {
        let executor = executor.clone();
        Self::new::<Tender<A>, _, _>(name, move |shutdown| {
            tend(executor.clone(), make(), HeldTo::Nothing, shutdown)
        })
    }

    /// The same with a mailbox that is the actor's alone, as [`ExecutorHandle::spawn_bounded`] says. It is started when there is one: that
    /// of its last life serves again once its worker has dropped what still waited there. If there is none for a tenth of a second, it has
    /// failed.
    ///
    /// ```
    /// use magpie::actor::{Actor, Bound, ExecutorHandle, WhenFull};
    /// use magpie::supervise::Child;
    /// struct Display;
    /// impl Actor for Display {}
    /// fn display(executor: &ExecutorHandle) -> Child {
    ///     Child::bounded_actor("display", executor, Bound::new(10, WhenFull::DropOldest), || Display)
    /// }
    /// ```
    pub fn bounded_actor<A: Actor>(
        name: &'static str,
        executor: &ExecutorHandle,
        bound: Bound,
        make: impl Fn() -> A + Send + Sync + 'static,
    ) -> Self {
        let executor = executor.clone();
        Self::new::<Tender<A>, _, _>(name, move |shutdown| {
            tend(executor.clone(), make(), HeldTo::Bound(bound), shutdown)
        })
    }

    /// The same with limits that are the actor's alone, as [`ExecutorHandle::spawn_limited`] says: each life within the same. What a former life
    /// has left counts until it is [collected](crate::stats::collections), so a start may be refused; that is a failure.
    ///
    /// ```
    /// use magpie::actor::{Actor, ExecutorHandle, Limits};
    /// use magpie::mem::{LimitError, MemoryLimit};
    /// use magpie::supervise::Child;
    /// struct Parser;
    /// impl Actor for Parser {}
    /// fn parser(executor: &ExecutorHandle) -> Result<Child, LimitError> {
    ///     // It is in force as long as the child keeps it.
    ///     let limit = MemoryLimit::new(1 << 20)?;
    ///     let limits = Limits::new().memory(&limit);
    ///     Ok(Child::limited_actor("parser", executor, limits, move || {
    ///         let _keeps = &limit;
    ///         Parser
    ///     }))
    /// }
    /// ```
    pub fn limited_actor<A: Actor>(
        name: &'static str,
        executor: &ExecutorHandle,
        limits: Limits,
        make: impl Fn() -> A + Send + Sync + 'static,
    ) -> Self {
        let executor = executor.clone();
        Self::new::<Tender<A>, _, _>(name, move |shutdown| {
            tend(executor.clone(), make(), HeldTo::Limits(limits), shutdown)
        })
    }

    /// A supervisor, which fails when it gives up. It may take a minute to end, for each of its children has a limit of its own.
    ///
    /// ```
    /// use magpie::supervise::{Child, Supervisor};
    /// let workers = Supervisor::one_for_one().child(Child::process("worker", |_| async {}).transient());
    /// let all = Supervisor::one_for_all().child(Child::supervisor("workers", workers));
    /// # let _ = all;
    /// ```
    pub fn supervisor(name: &'static str, supervisor: Supervisor) -> Self {
        // One that has lost a child for want of memory is as good as none.
        let complete = Some(supervisor).filter(|supervisor| !supervisor.is_incomplete);
        let child = match complete.and_then(|supervisor| Shared::new(supervisor).ok()) {
            Some(supervisor) => {
                Self::new::<Supervisor, _, _>(name, move |shutdown| run::nested(supervisor.clone(), shutdown))
            }
            None => Self { name, restart: Restart::Permanent, limit: LIMIT, how: Spawn::new(), plan: None },
        };
        child.within(Duration::from_secs(60))
    }

    /// Which ends are followed by a restart.
    pub fn restart(self, restart: Restart) -> Self {
        Self { restart, ..self }
    }

    /// Restarted after a failure only.
    pub fn transient(self) -> Self {
        self.restart(Restart::Transient)
    }

    /// Never restarted.
    pub fn temporary(self) -> Self {
        self.restart(Restart::Temporary)
    }

    /// How long it may take to end when it is asked to; then it is killed. Without time it is killed at once.
    pub fn within(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// At that priority, on those cores.
    ///
    /// ```
    /// use magpie::sched::{Priority, Spawn};
    /// use magpie::supervise::Child;
    /// let prompt = Child::process("prompt", |_| async {}).with(Spawn::new().priority(Priority::High));
    /// # let _ = prompt;
    /// ```
    pub fn with(self, how: Spawn) -> Self {
        Self { how, ..self }
    }

    pub(super) fn restart_and_limit(&self) -> (Restart, Duration) {
        (self.restart, self.limit)
    }

    /// As it is handed to a supervisor.
    pub(super) fn handed_over(mut self) -> Result<Self, OutOfMemory> {
        self.plan.as_mut().ok_or(OutOfMemory)?.hand_over();
        Ok(self)
    }
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Child({:?}, {:?})", self.name, self.restart)
    }
}
