//! What a behaviour can do as the actor that it is part of: give its address away, and start others.

use super::address::Addr;
use super::behaviour::{Actor, Context};
use super::handle::ExecutorHandle;
use super::mail::directory;
use super::run::ExecutorState;
use super::spawn::{self, SpawnError};

impl<A: Actor> Context<A> {
    /// The address of the actor itself.
    #[inline(always)]
    pub fn address(&self) -> Addr<A> {
        Addr::new(self.cell, self.word)
    }

    /// The executor that runs the actor.
    pub fn executor(&self) -> ExecutorHandle {
        // SAFETY: an executor is inside an `Arc`, and alive while a behaviour of its actors runs.
        unsafe { ExecutorHandle::of(self.state()) }
    }

    fn state(&self) -> &ExecutorState {
        // SAFETY: a behaviour is running.
        unsafe { ExecutorState::of(directory::get(self.word.mailbox())) }
    }

    /// Starts another actor on the same executor.
    ///
    /// # Errors
    /// As [`ExecutorHandle::spawn`].
    pub fn spawn<B: Actor>(&self, actor: B) -> Result<Addr<B>, SpawnError<B>> {
        let executor = self.state();
        spawn::spawn(executor, executor.next_mailbox(), actor)
    }

    /// Starts another actor in the same mailbox: the two always run on one core, one at a time.
    ///
    /// # Errors
    /// As [`ExecutorHandle::spawn`].
    pub fn spawn_beside<B: Actor>(&self, actor: B) -> Result<Addr<B>, SpawnError<B>> {
        spawn::spawn(self.state(), directory::get(self.word.mailbox()), actor)
    }
}
