//! What may have a name: whatever messages can be sent to, and which says whether somebody is there.

use crate::actor::{Actor, ActorId, Addr, Recipient};
use crate::channel::ProcessAddr;
use crate::message::Message;

/// An address: [`Addr`], [`Recipient`] or [`ProcessAddr`]. A name keeps a copy; that of a process's mailbox counts as one of its
/// addresses.
///
/// ```
/// use magpie::registry::{self, Named, NotFound};
/// /// Whoever has that name, or else somebody else.
/// fn somebody<A: Named>(name: &str, or: &A) -> Result<A, NotFound> {
///     match registry::find(name) {
///         Err(NotFound::Nobody) => Ok(or.clone()),
///         found => found,
///     }
/// }
/// ```
pub trait Named: sealed::Sealed + Clone + Send + Sync + 'static {}

impl<T: sealed::Sealed + Clone + Send + Sync + 'static> Named for T {}

pub(crate) mod sealed {
    use crate::actor::ActorId;
    use crate::mem::OutOfMemory;
    use crate::sched::ProcessRef;

    /// Only the kernel knows who lives.
    pub trait Sealed {
        /// Whether somebody is there. Runs nothing of the application's.
        fn lives(&self) -> bool;

        /// The number of who is there: of a process, or of an actor.
        fn number(&self) -> Option<usize>;

        /// Who is there, to be ended.
        fn holder(&self) -> Option<Holder>;
    }

    /// Who has a name.
    pub enum Holder {
        /// Who has received last from the mailbox, or the supervisor.
        Process(ProcessRef),
        /// The actor, and how it is killed: that code is in an image only if an actor can have a name there.
        Actor(ActorId, fn(ActorId) -> Result<(), OutOfMemory>),
    }
}

impl<A: Actor> sealed::Sealed for Addr<A> {
    fn lives(&self) -> bool {
        self.is_alive()
    }

    fn number(&self) -> Option<usize> {
        Some(self.actor_id().number())
    }

    fn holder(&self) -> Option<sealed::Holder> {
        Some(sealed::Holder::Actor(self.actor_id(), ActorId::kill))
    }
}

impl<M: Message> sealed::Sealed for Recipient<M> {
    fn lives(&self) -> bool {
        self.is_alive()
    }

    fn number(&self) -> Option<usize> {
        Some(self.actor_id().number())
    }

    fn holder(&self) -> Option<sealed::Holder> {
        Some(sealed::Holder::Actor(self.actor_id(), ActorId::kill))
    }
}

impl<M: Message> sealed::Sealed for ProcessAddr<M> {
    fn lives(&self) -> bool {
        !self.has_closed()
    }

    fn number(&self) -> Option<usize> {
        self.owner_place()
    }

    fn holder(&self) -> Option<sealed::Holder> {
        self.owner_process().map(sealed::Holder::Process)
    }
}
