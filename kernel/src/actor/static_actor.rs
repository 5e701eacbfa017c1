//! Actors whose storage belongs to the user: a `static`.
//!
//! When such an actor ends with [`Context::retire`](super::Context::retire) its state stays where it is, until the
//! user takes it. Ended in any other way, also by a crash, the storage is free for the next start.

use super::address::Addr;
use super::behaviour::Actor;
use super::handle::ExecutorHandle;
use super::spawn::{self, NotSpawned};
use super::storage::static_cell::StaticCell;
use super::storage::{Life, cell, pool};
use crate::sync::PreemptGuard;

/// Storage for one actor, in a `static`. At most 1000 bytes, aligned to 8 at most.
///
/// ```
/// # use magpie::sched;
/// use magpie::actor::stop::Retire;
/// use magpie::actor::{Actor, Config, Context, Executor, Receive, StaticActor};
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
/// static ADDER: StaticActor<Adder> = StaticActor::new();
/// # sched::run_on_threads(2, 1, async {
/// let executor = Executor::start(&Config::default())?;
/// let adder = ADDER.start(executor.handle(), Adder(40))?;
/// adder.send(2)?.send(Retire)?;
/// executor.all_ended().await;
/// assert!(ADDER.take().is_some_and(|adder| adder.0 == 42));
/// # executor.stop().await;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # }).unwrap().unwrap();
/// ```
#[repr(transparent)]
pub struct StaticActor<A: 'static>(StaticCell<A>);

impl<A: Actor> StaticActor<A> {
    /// Storage without an actor.
    #[expect(clippy::new_without_default, reason = "it is of use in a static only, which needs a constant")]
    pub const fn new() -> Self {
        Self::at_generation(0)
    }

    /// As [`Self::new`], as if so many actors had ended here: for a test, which cannot wait for them.
    #[cfg(feature = "checks")]
    #[doc(hidden)]
    pub const fn after_generations(generations: u32) -> Self {
        Self::at_generation(generations)
    }

    const fn at_generation(generation: u32) -> Self {
        Self(StaticCell::new(generation))
    }

    /// Starts an actor here, on one of `executor`'s mailboxes.
    ///
    /// # Errors
    /// [`NotSpawned::NotFree`] if one lives here, or the state of one that has retired is still here, or one has ended that
    /// is still being cleared away: then it is free before long;
    /// [`NotSpawned::UsedUp`] after 2^32 - 1 actors.
    pub fn start(&'static self, executor: &ExecutorHandle, actor: A) -> Result<Addr<A>, NotSpawned<A>> {
        let here = PreemptGuard::new();
        let cell = self.0.cell();
        let free = cell.word();
        let claimed = free.starting();
        if !matches!(free.life(), Some(Life::Free | Life::Vacant)) {
            return Err(NotSpawned::NotFree(actor));
        }
        if free.is_used_up() {
            return Err(NotSpawned::UsedUp(actor));
        }
        if !cell.claim(free, claimed) {
            return Err(NotSpawned::NotFree(actor));
        }
        // SAFETY: claimed above.
        unsafe { self.0.list() };
        // SAFETY: the cell is of kind `A`, free, and ours since we claimed it. Not boxed, so there is memory.
        let _ = unsafe { cell::fill(cell, actor) };
        let executor = executor.state();
        match spawn::attach::<A>(executor, executor.next_mailbox(), cell, claimed, 0, here) {
            Ok(word) => Ok(Addr::new(cell, word)),
            Err(why) => {
                // SAFETY: filled above; still ours.
                let actor = unsafe { cell::take_state(cell) };
                cell.set_word(free);
                Err(why.with(actor))
            }
        }
    }

    /// Takes the state of the actor that has retired here, once.
    pub fn take(&'static self) -> Option<A> {
        let cell = self.0.cell();
        let retired = cell.word();
        let claimed = retired.starting();
        if retired.life() != Some(Life::Retired) || !cell.claim(retired, claimed) {
            return None;
        }
        // SAFETY: the cell is of kind `A` and holds the state of a retired actor, and is ours.
        let actor = unsafe { cell::take_state(cell) };
        let here = PreemptGuard::new();
        pool::give(cell, claimed, &here);
        Some(actor)
    }
}
