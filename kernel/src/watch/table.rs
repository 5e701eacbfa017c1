//! All watches of the system: watching, telling, and giving up.

use super::ended::{Exit, Means, WatchId, Watcher};
use super::lists::Lists;
use super::node::{Asked, Data, Node};
use super::rest::{AT_ONCE, Rest};
use super::watched::Watched;
use crate::arch::atomic::{AtomicU64, Ordering};
use crate::mem::OutOfMemory;
use crate::sync::Identity;

/// So many lists. With ten thousand watches an end looks at ten.
const LISTS: usize = 1024;

static TABLE: Lists<LISTS> = Lists::new();

/// The number of the last watch.
static LAST_NUMBER: AtomicU64 = AtomicU64::new(0);

/// A watch, for whoever wants to give it up. Dropped, it changes nothing: the watcher is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Watch {
    who: Identity,
    id: WatchId,
}

impl Watch {
    /// What the message will say.
    pub fn id(&self) -> WatchId {
        self.id
    }

    /// Gives it up. Whether it was not told, and never will be; otherwise the message was sent already, or is about to be.
    pub fn cancel(self) -> bool {
        let Some(node) = TABLE.take(self.who, self.id.number()) else { return false };
        // SAFETY: taken out of its list.
        unsafe { Node::act(node, Asked::Free) };
        true
    }
}

/// Watches `who` for a watcher, who is told at once if `who` does not live any more.
///
/// # Errors
/// When there is no memory for it.
pub(crate) fn watch(
    who: Identity,
    watcher: &impl Watcher,
    watched: &Watched,
    lives: impl FnOnce() -> bool,
) -> Result<Watch, OutOfMemory> {
    let means = watcher.means().ok_or(OutOfMemory)?;
    // Relaxed: it counts, and orders nothing.
    let id = WatchId::after(LAST_NUMBER.fetch_add(1, Ordering::Relaxed));
    let node = Node::new(who, id.number(), means.act, means.data);
    // SAFETY: the means are memory for a node, the caller's; what comes back was taken out of its list.
    unsafe {
        means.memory.write(node);
        if let Some(late) = TABLE.watch(who, means.memory, watched, lives) {
            Node::act(late, Asked::Tell(Exit::Gone.bits()));
        }
    }
    Ok(Watch { who, id })
}

/// In the number of what waits for an end and tells nobody: the one that it is of was asked to end.
const ASKS: u64 = 1 << 63;

/// Keeps in mind that `who` was asked to end, until it has ended; then `node` is told, which tells nobody. Told at once if `who` does not
/// live any more.
pub(crate) fn ask_to_end(
    who: Identity,
    Means { memory, act, data }: Means,
    watched: &Watched,
    lives: impl FnOnce() -> bool,
) {
    // Relaxed: as above.
    let number = ASKS | LAST_NUMBER.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the means are memory for a node, the caller's; what comes back was taken out of its list.
    unsafe {
        memory.write(Node::new(who, number, act, data));
        if let Some(late) = TABLE.watch(who, memory, watched, lives) {
            Node::act(late, Asked::Free);
        }
    }
}

/// The data of what [`ask_to_end`] has kept in mind of `who`, if it has.
pub(crate) fn asked_to_end(who: Identity) -> Option<Data> {
    // SAFETY: the node is alive.
    TABLE.find(who, |node| (node.number() & ASKS != 0).then(|| unsafe { node.data().read() }))
}

/// `who` has ended, which can be seen by now, and was watched: tells as many watchers as can be told at once, some hundred instructions
/// for each. Those that are left are the caller's to tell. Runs nothing of the application's.
pub(crate) fn tell(who: Identity, exit: Exit) -> Option<Rest> {
    let mut rest = Rest::new(TABLE.take_all(who), exit.bits());
    rest.tell(AT_ONCE).then_some(rest)
}
