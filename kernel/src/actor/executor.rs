//! Executors: a table of mailboxes, a worker on each of some cores, and the actors bound to them.
//!
//! Several may exist at once. An executor that is dropped without being stopped runs on for ever, unless its
//! [owner](Config::owned) ends.

use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::time::Duration;

use super::config::{Config, StartError};
use super::handle::ExecutorHandle;
use super::print;
use super::run;
use super::run::shutdown;
use super::run::stopping::Stopping;
use crate::mem::Payer;

/// An executor that runs. Its actors live until they end or it is stopped.
///
/// ```
/// # use magpie::sched;
/// use magpie::actor::stop::End;
/// use magpie::actor::{Actor, Config, Context, Executor, Receive};
///
/// struct Adder(u64);
/// impl Actor for Adder {}
/// impl Receive<u64> for Adder {
///     type Reply = u64;
///
///     fn receive(&mut self, number: u64, _: &mut Context<Self>) -> u64 {
///         self.0 += number;
///         self.0
///     }
/// }
/// # sched::run_on_threads(2, 1, async {
/// let executor = Executor::start(&Config::default())?;
/// let adder = executor.handle().spawn(Adder(39))?;
/// adder.send(1)?.send(1)?;
/// assert_eq!(adder.ask(1).await, Ok(42));
/// adder.send(End)?;
/// executor.all_ended().await;
/// assert_eq!(executor.stop().await, 0);
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # }).unwrap().unwrap();
/// ```
pub struct Executor {
    handle: ExecutorHandle,
}

impl Executor {
    /// Starts an executor.
    ///
    /// # Errors
    /// See [`StartError`]; nothing is left behind.
    pub fn start(config: &Config) -> Result<Self, StartError> {
        let size = config.check()?;
        let urgency = (config.priority, config.deadline);
        print::note_used();
        let payer = config.payer.unwrap_or_else(Payer::here);
        let executor = run::start(config.rules(), size, config.bound, urgency, payer, config.owned)?;
        Ok(Self { handle: ExecutorHandle::new(executor) })
    }

    /// The right to spawn on it.
    pub fn handle(&self) -> &ExecutorHandle {
        &self.handle
    }

    /// Waits until no actor lives. Actors created from outside while this waits count as they come; call it
    /// when the first have been spawned.
    pub async fn all_ended(&self) {
        self.handle.state().live.none().await;
    }

    /// Stops it: no message is accepted or delivered any more, behaviours that run end, what was not
    /// delivered is dropped, and so is every actor. Says how many messages were dropped.
    ///
    /// This call begins the stop, and closes everything; the rest goes on by itself, whether anybody waits for it or not.
    ///
    /// What does not end within [`STOP_LIMIT`](Self::STOP_LIMIT) is killed: see [`stop_within`](Self::stop_within).
    pub fn stop(self) -> impl Future<Output = u64> + Send + Sync + Unpin + 'static {
        let mut stopping = self.stop_within(Self::STOP_LIMIT);
        poll_fn(move |context| Pin::new(&mut stopping).poll(context).map(|stopped| stopped.undelivered()))
    }

    /// How long [`stop`](Self::stop) waits for a behaviour or a destructor before it kills that: a minute.
    pub const STOP_LIMIT: Duration = Duration::from_secs(60);

    /// Stops it, and waits so long at most for the behaviours that run or are suspended: those that have not ended by then are
    /// killed. Their actors end as in a crash; all others, and what was not delivered, are dropped as ever. If one of the destructors, or of the
    /// hooks [`stopped`](super::Actor::stopped), takes longer than `limit`, that is killed, too, and the next goes on.
    ///
    /// This call begins the stop, and closes everything. The rest is done by a process whose memory was taken when the executor was started, as
    /// urgent as the caller: it goes on whether anybody waits for it or not, and whatever becomes of the caller. Any number may wait,
    /// each with a clone of the [`Stopping`].
    ///
    /// A behaviour is killed by an interrupt, or when it would go on. So it takes slices longer, and the time until those have had their
    /// turns that are as urgent. What runs on host threads is not interrupted, and waited for.
    ///
    /// ```
    /// # use magpie::sched;
    /// use core::time::Duration;
    /// use magpie::actor::{Config, Executor};
    ///
    /// # sched::run_on_threads(2, 1, async {
    /// let executor = Executor::start(&Config::default())?;
    /// let stopped = executor.stop_within(Duration::from_secs(10)).await;
    /// assert_eq!((stopped.undelivered(), stopped.killed()), (0, 0));
    /// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
    /// # }).unwrap().unwrap();
    /// ```
    pub fn stop_within(self, limit: Duration) -> Stopping {
        shutdown::stop(self.handle.counted_state(), limit)
    }
}
