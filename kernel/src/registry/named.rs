//! What may have a name: whatever messages can be sent to, and which says whether somebody is there.

use crate::actor::{Actor, Addr, Recipient};
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
    /// Only the kernel knows who lives.
    pub trait Sealed {
        /// Whether somebody is there. Runs nothing of the application's.
        fn lives(&self) -> bool;
    }
}

impl<A: Actor> sealed::Sealed for Addr<A> {
    fn lives(&self) -> bool {
        self.is_alive()
    }
}

impl<M: Message> sealed::Sealed for Recipient<M> {
    fn lives(&self) -> bool {
        self.is_alive()
    }
}

impl<M: Message> sealed::Sealed for ProcessAddr<M> {
    fn lives(&self) -> bool {
        !self.has_closed()
    }
}
