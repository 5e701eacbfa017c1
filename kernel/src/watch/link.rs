//! Links: two who end together. What a link does at an end is done by a watch in each direction, whose watcher is not told but killed.

use super::ended::{Means, Watcher};
use super::table::Watch;
use crate::mem::OutOfMemory;

/// Who may be linked: a process, by its [`ProcessRef`](crate::sched::ProcessRef), and an actor, by its [`Addr`](crate::actor::Addr).
pub trait Linkable: sealed::Linked {}

impl<L: sealed::Linked> Linkable for L {}

pub(crate) mod sealed {
    use super::{Means, OutOfMemory, Watch, Watcher};

    /// Only the kernel knows how somebody is killed.
    pub trait Linked {
        /// Has it watched.
        ///
        /// # Errors
        /// When there is no memory for it.
        fn watch_for(&self, watcher: &impl Watcher) -> Result<Watch, OutOfMemory>;

        /// Memory for a watch that kills it when it tells of a failure; `None` if there is none.
        fn fate(&self) -> Option<Means>;
    }
}

/// A watcher that is killed when what it watches ends as a failure.
struct KilledWith<'a, L>(&'a L);

impl<L: Linkable> super::ended::sealed::Sealed for KilledWith<'_, L> {
    fn means(&self) -> Option<Means> {
        self.0.fate()
    }
}

/// A link, for whoever wants to give it up. Dropped, it changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link([Watch; 2]);

impl Link {
    /// Gives it up. Whether neither had ended before: then nobody was killed for it, and nobody will be.
    pub fn cancel(self) -> bool {
        let [one, other] = self.0.map(Watch::cancel);
        one && other
    }
}

/// Links two: if either ends as a failure, the other is killed ([`ProcessRef::kill`](crate::sched::ProcessRef::kill),
/// [`Addr::kill`](crate::actor::Addr::kill)). So is one
/// that is linked to somebody who has ended already, or to an actor at its end, because nobody knows any more how; that end itself goes on as
/// it began. An end that is no failure leaves the other alone. Whoever wants to go on and be told instead, watches. Several links between the
/// same two are as one.
///
/// ```
/// # use magpie::sched;
/// use core::future::pending;
/// use magpie::sched::JoinError;
/// use magpie::watch::link;
///
/// # sched::run_on_threads(2, 1, async {
/// let reader = sched::spawn(pending::<()>())?;
/// let writer = sched::spawn(pending::<()>())?;
/// link(reader.process(), writer.process())?;
/// reader.process().kill();
/// assert_eq!(writer.await, Err(JoinError::Killed));
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # }).unwrap().unwrap();
/// ```
///
/// # Errors
/// When there is no memory for it, 64 bytes in each direction, 128 in that to an actor: then they are not linked.
pub fn link(one: &impl Linkable, other: &impl Linkable) -> Result<Link, OutOfMemory> {
    let ends_other = one.watch_for(&KilledWith(other))?;
    match other.watch_for(&KilledWith(one)) {
        Ok(ends_one) => Ok(Link([ends_other, ends_one])),
        Err(error) => {
            ends_other.cancel();
            Err(error)
        }
    }
}
