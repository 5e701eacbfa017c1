//! Executors: a table of mailboxes, a worker on each of some cores, and the actors bound to them.
//!
//! Several may exist at once. An executor that is dropped without being stopped runs on for ever.

use super::config::{Config, StartError};
use super::handle::ExecutorHandle;
use super::run::{self, shutdown};

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
        let (workers, movable) = config.check()?;
        let urgency = (config.priority, config.deadline);
        let executor = run::start(config.rules(), workers, movable, config.bound, urgency)?;
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
    /// delivered is dropped, and so is every actor. Returns how many messages were dropped.
    pub async fn stop(self) -> u64 {
        // SAFETY: there is one `Executor` for an executor, and it ends here.
        unsafe { shutdown::stop(self.handle.state_arc()) }.await
    }
}
