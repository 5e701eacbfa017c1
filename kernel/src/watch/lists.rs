//! The lists that watches wait in, by the hash of what is watched.
//!
//! **Exactly once**: a watch is told, or given up, by whoever has taken it out of its list, under the list's lock. Three may
//! try: the end of the watched one, the watcher that cancels, and the one that has just put it there and then finds that the
//! watched one has ended ([`Watched`] has the argument why one of them does).
//!
//! **Garbage**: a watcher that ends leaves its watches where they are; they would tell nobody. Each new watch looks at two others
//! of its list and frees those, so there are never more of them than of the others, but for a few. For that a list has two halves: those
//! that were looked at go from one to the other.

use core::ptr::{self, NonNull};

use super::node::{Asked, Node};
use super::watched::Watched;
use crate::sync::{Identity, SpinLock};

/// How many others a new watch looks at.
const LOOKS: usize = 2;

/// One list.
struct List {
    /// Those that are looked at next.
    next: *mut Node,
    /// Those that were.
    looked_at: *mut Node,
}

impl List {
    const EMPTY: Self = Self { next: ptr::null_mut(), looked_at: ptr::null_mut() };
}

// SAFETY: what is linked is used under the list's lock, from whatever core.
unsafe impl Send for List {}

/// A row of watches that were taken out of their lists.
pub struct Taken(*mut Node);

impl Taken {
    /// Whether none is left.
    #[cfg(not(loom))]
    pub fn is_empty(&self) -> bool {
        self.0.is_null()
    }
}

impl Iterator for Taken {
    type Item = NonNull<Node>;

    fn next(&mut self) -> Option<NonNull<Node>> {
        let node = NonNull::new(self.0)?;
        // SAFETY: taken out, so it is the caller's alone until it is handed out here.
        self.0 = unsafe { node.as_ref() }.next;
        Some(node)
    }
}

/// The lists; so many, which is a power of two.
pub struct Lists<const N: usize>([SpinLock<List>; N]);

impl<const N: usize> Lists<N> {
    /// Empty ones.
    #[cfg(not(loom))]
    #[expect(clippy::new_without_default, reason = "there is one table, a static")]
    pub const fn new() -> Self {
        Self([const { SpinLock::new(List::EMPTY) }; N])
    }

    /// Empty ones.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self(core::array::from_fn(|_| SpinLock::new(List::EMPTY)))
    }

    fn list(&self, who: Identity) -> &SpinLock<List> {
        // Fibonacci hashing: headers and cells lie at regular distances.
        let hash = (who.place() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        &self.0[hash as usize % N]
    }

    /// Puts a watch of `who` into its list.
    ///
    /// # Safety
    /// It is the caller's alone, who gives it up.
    pub unsafe fn insert(&self, who: Identity, mut node: NonNull<Node>) {
        let mut pointless = Taken(ptr::null_mut());
        let mut list = self.list(who).lock();
        // SAFETY: under the lock; what is linked is alive, and the list's.
        unsafe {
            for _ in 0..LOOKS {
                let Some(mut known) = NonNull::new(list.next) else { break };
                list.next = known.as_ref().next;
                let goes_to =
                    if Node::act(known, Asked::IsPointless) { &mut pointless.0 } else { &mut list.looked_at };
                known.as_mut().next = *goes_to;
                *goes_to = known.as_ptr();
            }
            if list.next.is_null() {
                list.next = ptr::replace(&mut list.looked_at, ptr::null_mut());
            }
            node.as_mut().next = list.looked_at;
        }
        list.looked_at = node.as_ptr();
        drop(list);
        for node in pointless {
            // SAFETY: taken out of the list.
            unsafe { Node::act(node, Asked::Free) };
        }
    }

    /// Puts a watch of `who` into its list. Comes back if `who` does not live any more, and nobody has taken it out: it is for the caller
    /// to tell.
    ///
    /// # Safety
    /// As [`Self::insert`].
    #[must_use]
    pub unsafe fn watch(
        &self,
        who: Identity,
        node: NonNull<Node>,
        watched: &Watched,
        lives: impl FnOnce() -> bool,
    ) -> Option<NonNull<Node>> {
        // SAFETY: by contract.
        let number = unsafe { node.as_ref() }.number();
        // SAFETY: by contract.
        unsafe { self.insert(who, node) };
        watched.note();
        if lives() { None } else { self.take(who, number) }
    }

    /// Takes out all watches of `who`.
    pub fn take_all(&self, who: Identity) -> Taken {
        self.take_if(who, false, |node| node.is_of(who))
    }

    /// What `tells` says of the first watch of `who` of which it says anything. It is told under the list's lock.
    pub fn find<T>(&self, who: Identity, tells: impl Fn(&Node) -> Option<T>) -> Option<T> {
        let list = self.list(who).lock();
        for half in [list.next, list.looked_at] {
            let mut link = half;
            while let Some(node) = NonNull::new(link) {
                // SAFETY: under the lock; what is linked is alive.
                let node = unsafe { node.as_ref() };
                if node.is_of(who)
                    && let Some(found) = tells(node)
                {
                    return Some(found);
                }
                link = node.next;
            }
        }
        None
    }

    /// Takes out the watch of `who` with that number, if it is there.
    pub fn take(&self, who: Identity, number: u64) -> Option<NonNull<Node>> {
        self.take_if(who, true, |node| node.number() == number).next()
    }

    /// Takes out those that match, or one of them.
    fn take_if(&self, who: Identity, takes_one: bool, matches: impl Fn(&Node) -> bool) -> Taken {
        let mut taken = ptr::null_mut();
        let mut list = self.list(who).lock();
        let List { next, looked_at } = &mut *list;
        for half in [next, looked_at] {
            let mut link: *mut *mut Node = half;
            // SAFETY: under the lock; what is linked is alive, and the list's.
            unsafe {
                while let Some(mut node) = NonNull::new(*link) {
                    if matches(node.as_ref()) {
                        *link = node.as_ref().next;
                        node.as_mut().next = taken;
                        taken = node.as_ptr();
                        if takes_one {
                            return Taken(taken);
                        }
                    } else {
                        link = &raw mut (*node.as_ptr()).next;
                    }
                }
            }
        }
        Taken(taken)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::Lists;
    use crate::sync::Identity;
    use crate::watch::{Asked, Node};
    use core::mem::MaybeUninit;
    use core::ptr::NonNull;

    /// In `data`: whether it is pointless.
    unsafe fn act(node: NonNull<Node>, asked: Asked) -> bool {
        // SAFETY: made by `node` below, and given up by whoever asks for more than whether it is pointless.
        unsafe {
            match asked {
                Asked::IsPointless => (*node.as_ref().data()).assume_init()[0] != 0,
                Asked::Free | Asked::Tell(_) => {
                    drop(Box::from_raw(node.as_ptr()));
                    true
                }
            }
        }
    }

    fn insert(lists: &Lists<2>, place: usize, number: u64, is_pointless: bool) {
        let who = Identity::Process(place);
        let node = Node::new(who, number, act, MaybeUninit::new([u64::from(is_pointless), 0, 0]));
        // SAFETY: made here.
        unsafe { lists.insert(who, NonNull::from(Box::leak(Box::new(node)))) };
    }

    fn free(nodes: impl Iterator<Item = NonNull<Node>>) -> Vec<u64> {
        // SAFETY: taken out of their lists.
        let mut numbers: Vec<u64> = nodes
            .map(|node| unsafe {
                let number = node.as_ref().number();
                Node::act(node, Asked::Free);
                number
            })
            .collect();
        numbers.sort_unstable();
        numbers
    }

    #[test]
    fn each_is_taken_once_and_by_what_it_watches() {
        let lists = Lists::new();
        (0..20).for_each(|number| insert(&lists, 64 * (number as usize % 3), number, false));
        let one = lists.take(Identity::Process(64), 4);
        assert_eq!(free(one.into_iter()), [4]);
        assert!(lists.take(Identity::Process(64), 4).is_none());
        assert_eq!(free(lists.take_all(Identity::Process(64))), [1, 7, 10, 13, 16, 19]);
        assert_eq!(lists.take_all(Identity::Process(64)).count(), 0);
        assert_eq!(free(lists.take_all(Identity::Process(0))).len(), 7);
        assert_eq!(free(lists.take_all(Identity::Process(128))).len(), 6);
    }

    #[test]
    fn what_tells_nobody_does_not_pile_up() {
        let lists = Lists::new();
        (0..1000).for_each(|number| insert(&lists, 64, number, number % 10 != 0));
        let left = free(lists.take_all(Identity::Process(64)));
        assert_eq!(
            left.iter().filter(|number| *number % 10 == 0).count(),
            100,
            "one was lost that somebody waits for"
        );
        assert!(left.len() < 320, "{} are left of which 100 tell somebody", left.len());
    }
}
