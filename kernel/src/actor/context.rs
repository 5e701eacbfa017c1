//! What a behaviour can do as the actor that it is part of: give its address away, start others, and end.

use super::address::Addr;
use super::behaviour::{Actor, Context};
use super::handle::ExecutorHandle;
use super::limits::Limits;
use super::mail::{Bound, directory};
use super::run::ExecutorState;
use super::spawn::{self, NotSpawned};
use super::storage::Outcome;
use crate::mem::Counted;
use core::ptr::NonNull;

impl<A: Actor> Context<A> {
    /// The address of the actor itself.
    #[inline(always)]
    pub fn address(&self) -> Addr<A> {
        Addr::new(self.cell, self.word)
    }

    /// The executor that runs the actor.
    pub fn executor(&self) -> ExecutorHandle {
        // SAFETY: the executor lives, because a behaviour is running, or for as long as a test's context; all of them are counted.
        ExecutorHandle::new(unsafe { Counted::of(NonNull::from(self.state())) })
    }

    fn state(&self) -> &ExecutorState {
        #[cfg(not(any(target_os = "none", shuttle)))]
        if let Some(executor) = self.of_test {
            // SAFETY: whoever made the context lets the executor live as long.
            return unsafe { executor.as_ref() };
        }
        // SAFETY: a behaviour is running.
        unsafe { ExecutorState::of(directory::get(self.word.mailbox())) }
    }

    /// Starts another actor on the same executor.
    ///
    /// # Errors
    /// As [`ExecutorHandle::spawn`].
    pub fn spawn<B: Actor>(&self, actor: B) -> Result<Addr<B>, NotSpawned<B>> {
        let executor = self.state();
        spawn::spawn(executor, executor.next_mailbox(), actor)
    }

    /// Starts another actor on the same executor, with a mailbox that is its alone.
    ///
    /// ```
    /// use magpie::actor::{Actor, Addr, Bound, Context, NotSpawned, WhenFull};
    /// struct Display;
    /// impl Actor for Display {}
    /// struct Panel;
    /// impl Actor for Panel {}
    /// fn display(context: &Context<Panel>) -> Result<Addr<Display>, NotSpawned<Display>> {
    ///     Context::spawn_bounded(context, Display, Bound::new(1, WhenFull::DropOldest))
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`ExecutorHandle::spawn_bounded`].
    pub fn spawn_bounded<B: Actor>(&self, actor: B, bound: Bound) -> Result<Addr<B>, NotSpawned<B>> {
        spawn::spawn_bounded(self.state(), bound, actor)
    }

    /// Starts another actor on the same executor, with limits of its own.
    ///
    /// ```
    /// use magpie::actor::{Actor, Addr, Context, Limits, NotSpawned};
    /// use magpie::mem::MemoryLimit;
    /// struct Parser;
    /// impl Actor for Parser {}
    /// struct Reader {
    ///     limit: MemoryLimit,
    /// }
    /// impl Actor for Reader {}
    /// fn parser(reader: &Reader, context: &Context<Reader>) -> Result<Addr<Parser>, NotSpawned<Parser>> {
    ///     Context::spawn_limited(context, Parser, Limits::new().memory(&reader.limit))
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`ExecutorHandle::spawn_limited`].
    pub fn spawn_limited<B: Actor>(&self, actor: B, limits: Limits) -> Result<Addr<B>, NotSpawned<B>> {
        spawn::spawn_limited(self.state(), limits, actor)
    }

    /// Starts another actor in the same mailbox: the two always run on one core, one at a time.
    ///
    /// # Errors
    /// As [`ExecutorHandle::spawn_beside`].
    pub fn spawn_beside<B: Actor>(&self, actor: B) -> Result<Addr<B>, NotSpawned<B>> {
        spawn::spawn_beside(self.state(), directory::get(self.word.mailbox()), actor)
    }

    /// The actor ends with this behaviour: its state is dropped, and its storage given back. (C∀'s *Delete*.)
    ///
    /// Of several words about the actor's end the last counts.
    ///
    /// ```
    /// use magpie::actor::{Actor, Context, Receive};
    /// struct Candle { hours: u32 }
    /// impl Actor for Candle {}
    /// struct Burn;
    /// impl Receive<Burn> for Candle {
    ///     type Reply = ();
    ///
    ///     fn receive(&mut self, _: Burn, context: &mut Context<Self>) {
    ///         self.hours -= 1;
    ///         if self.hours == 0 {
    ///             context.end();
    ///         }
    ///     }
    /// }
    /// ```
    #[inline(always)]
    pub fn end(&mut self) {
        self.outcome = Outcome::End;
    }

    /// The actor ends with this behaviour: its state is dropped, and its storage stays for a successor, by
    /// [`respawn`](super::ExecutorHandle::respawn). (C∀'s *Destroy*.) Otherwise as [`Self::end`].
    #[inline(always)]
    pub fn vacate(&mut self) {
        self.outcome = Outcome::Vacate;
    }

    /// The actor ends with this behaviour: its state stays where it is, until somebody takes it, by [`Addr::take`] or
    /// [`StaticActor::take`](super::StaticActor::take). (C∀'s *Finished*.) Otherwise as [`Self::end`].
    #[inline(always)]
    pub fn retire(&mut self) {
        self.outcome = Outcome::Retire;
    }

    /// A context of the actor at `address` for behaviours that a test calls.
    ///
    /// # Safety
    /// `executor` is that of the actor, and lives as long as the context, although the actor and its mailbox may be gone.
    #[cfg(not(any(target_os = "none", shuttle)))]
    pub(crate) unsafe fn for_test(address: Addr<A>, executor: &ExecutorHandle) -> Self {
        let mut context = Self::new(address.cell(), address.word());
        context.of_test = Some(NonNull::from(executor.state()));
        context
    }

    /// What behaviours have said last.
    #[cfg(not(any(target_os = "none", shuttle)))]
    pub(crate) fn outcome(&self) -> Outcome {
        self.outcome
    }
}
