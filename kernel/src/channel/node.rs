//! Nodes and lists: messages in the order in which they came, from which any may be taken.
//!
//! A list owns its nodes. Appending a whole list takes constant time, so that a receiver can take over what
//! has come under the lock; so does taking out a node that a cursor stands before. Nodes are used again: see
//! [`block`](super::block).

use alloc::alloc::{Layout, dealloc};
use core::any::TypeId;
use core::marker::PhantomData;
use core::mem::transmute;
use core::ops::{Deref, DerefMut};
use core::ptr::{self, NonNull};

use crate::mem;
use crate::watch::{self, Ended};

/// Room for one message.
pub(super) struct Node<M> {
    next: *mut Node<M>,
    pub message: Option<M>,
}

// A watch becomes a node.
const _: () = {
    let (node, watch) = (Layout::new::<Node<Ended>>(), Layout::new::<watch::Node>());
    assert!(node.size() <= watch.size() && node.align() <= watch.align());
};

/// Whether it is the message that a watch becomes. Known when it is compiled; but [`TypeId::of`] can be asked of a type that outlives
/// everything only, and to say so of every mailbox's message would be heard by those who name its type.
fn is_ended<M>() -> bool {
    trait Identified {
        fn id(&self) -> TypeId
        where
            Self: 'static;
    }
    impl<M> Identified for PhantomData<M> {
        fn id(&self) -> TypeId
        where
            Self: 'static,
        {
            TypeId::of::<Self>()
        }
    }
    let message = PhantomData::<M>;
    // SAFETY: only the bound changes, which no code depends on; there is nothing in it that could be kept.
    let message = unsafe { transmute::<&dyn Identified, &(dyn Identified + 'static)>(&message) };
    message.id() == TypeId::of::<PhantomData<Ended>>()
}

/// A node of the caller's own.
pub(super) struct Room<M>(NonNull<Node<M>>);

impl<M> Room<M> {
    /// A node without a message, if there is memory.
    pub(super) fn new() -> Option<Self> {
        // SAFETY: fresh memory of that layout.
        mem::kernel_memory(Self::layout()).map(|memory| unsafe { Self::in_memory(memory) })
    }

    /// What the memory of each is. Those for the end of what was watched are as long as a watch, which becomes one where it lies: any node
    /// may be used again for any message of its mailbox.
    fn layout() -> Layout {
        if is_ended::<M>() { Layout::new::<watch::Node>() } else { Layout::new::<Node<M>>() }
    }

    /// A node without a message in the memory of what was one watch, or will be.
    ///
    /// # Safety
    /// The memory is the global allocator's, has the layout of all of these, and is given up by the caller.
    pub(super) unsafe fn in_memory(memory: NonNull<u8>) -> Self {
        let node = memory.cast::<Node<M>>();
        // SAFETY: by contract it has room.
        unsafe { node.write(Node { next: ptr::null_mut(), message: None }) };
        Self(node)
    }

    fn into_raw(self) -> *mut Node<M> {
        core::mem::ManuallyDrop::new(self).0.as_ptr()
    }

    /// # Safety
    /// It came from [`Self::into_raw`], once, and is not null.
    unsafe fn from_raw(node: *mut Node<M>) -> Self {
        // SAFETY: by contract.
        Self(unsafe { NonNull::new_unchecked(node) })
    }
}

impl<M> Deref for Room<M> {
    type Target = Node<M>;

    fn deref(&self) -> &Node<M> {
        // SAFETY: it is this one's own.
        unsafe { self.0.as_ref() }
    }
}

impl<M> DerefMut for Room<M> {
    fn deref_mut(&mut self) -> &mut Node<M> {
        // SAFETY: as above.
        unsafe { self.0.as_mut() }
    }
}

impl<M> Drop for Room<M> {
    fn drop(&mut self) {
        // SAFETY: it is this one's own, and its memory has that layout.
        unsafe {
            self.0.drop_in_place();
            dealloc(self.0.as_ptr().cast(), Self::layout());
        }
    }
}

/// Nodes in a row.
pub(super) struct List<M> {
    first: *mut Node<M>,
    /// Meaningless while the list is empty.
    last: *mut Node<M>,
    owned: PhantomData<Room<M>>,
}

// SAFETY: a list owns its nodes, and they their messages.
unsafe impl<M: Send> Send for List<M> {}
// SAFETY: a shared list offers nothing but whether it is empty.
unsafe impl<M: Send> Sync for List<M> {}

impl<M> List<M> {
    pub(super) const fn new() -> Self {
        Self { first: ptr::null_mut(), last: ptr::null_mut(), owned: PhantomData }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Puts a node at the end.
    pub(super) fn push(&mut self, mut node: Room<M>) {
        node.next = ptr::null_mut();
        let node = node.into_raw();
        self.append(&mut Self { first: node, last: node, owned: PhantomData });
    }

    /// Puts all of `other` at the end.
    pub(super) fn append(&mut self, other: &mut Self) {
        if other.is_empty() {
            return;
        }
        if self.is_empty() {
            self.first = other.first;
        } else {
            // SAFETY: the list is not empty, so its last node is its own.
            unsafe { (*self.last).next = other.first };
        }
        self.last = other.last;
        other.first = ptr::null_mut();
    }

    /// Takes the first node.
    pub(super) fn pop(&mut self) -> Option<Room<M>> {
        self.take_after(ptr::null_mut())
    }

    /// Takes the first node behind the cursor whose message `matches`, and moves the cursor behind those that
    /// do not.
    ///
    /// # Safety
    /// The cursor is new, or was moved by this only, on this list, from which no node was taken in any other
    /// way meanwhile.
    pub(super) unsafe fn find(
        &mut self,
        cursor: &mut Cursor<M>,
        mut matches: impl FnMut(&M) -> bool,
    ) -> Option<Room<M>> {
        loop {
            // SAFETY: by contract the node before the cursor is still in the list.
            let next = unsafe { cursor.before.as_ref() }.map_or(self.first, |node| node.next);
            // SAFETY: the list's own, and borrowed exclusively.
            let node = unsafe { next.as_ref() }?;
            if node.message.as_ref().is_some_and(&mut matches) {
                return self.take_after(cursor.before);
            }
            cursor.before = next;
        }
    }

    /// Takes the node after `before`, one of the list's own, or the first if that is null.
    fn take_after(&mut self, before: *mut Node<M>) -> Option<Room<M>> {
        // SAFETY: `before` is null or in the list; all nodes in the list are its own, and were put there whole.
        unsafe {
            let link = if before.is_null() { &raw mut self.first } else { &raw mut (*before).next };
            let taken = *link;
            if taken.is_null() {
                return None;
            }
            *link = (*taken).next;
            if (*taken).next.is_null() {
                self.last = before;
            }
            Some(Room::from_raw(taken))
        }
    }
}

impl<M> Drop for List<M> {
    fn drop(&mut self) {
        while let Some(node) = self.pop() {
            drop(node);
        }
    }
}

/// How far a list was looked through: behind `before`, or at the beginning.
pub(super) struct Cursor<M> {
    before: *mut Node<M>,
}

// SAFETY: only compared and followed together with the list that it belongs to.
unsafe impl<M: Send> Send for Cursor<M> {}

impl<M> Cursor<M> {
    pub(super) const fn new() -> Self {
        Self { before: ptr::null_mut() }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cursor, List, Room};

    fn push(list: &mut List<u32>, number: u32) {
        let mut node = Room::new().expect("memory");
        node.message = Some(number);
        list.push(node);
    }

    fn find(list: &mut List<u32>, cursor: &mut Cursor<u32>, looked: &mut u32, wanted: u32) -> Option<u32> {
        // SAFETY: each test takes nodes by one cursor at a time.
        let node = unsafe {
            list.find(cursor, |&number| {
                *looked += 1;
                number == wanted
            })
        };
        node.and_then(|node| node.message)
    }

    #[test]
    fn any_node_can_be_taken_and_the_rest_stays_in_order() {
        for wanted in 0..5 {
            let mut list = List::new();
            (0..5).for_each(|number| push(&mut list, number));
            assert_eq!(find(&mut list, &mut Cursor::new(), &mut 0, wanted), Some(wanted));
            push(&mut list, 5);
            let rest: Vec<_> = std::iter::from_fn(|| list.pop().and_then(|node| node.message)).collect();
            assert_eq!(rest, (0..=5).filter(|&number| number != wanted).collect::<Vec<_>>());
            assert!(list.is_empty());
            push(&mut list, 6);
            assert_eq!(list.pop().and_then(|node| node.message), Some(6));
        }
    }

    #[test]
    fn a_cursor_looks_at_nothing_twice() {
        let (mut list, mut cursor, mut looked) = (List::new(), Cursor::new(), 0);
        assert_eq!(find(&mut list, &mut cursor, &mut looked, 9), None);
        (0..5).for_each(|number| push(&mut list, number));
        assert_eq!(find(&mut list, &mut cursor, &mut looked, 9), None);
        assert_eq!(looked, 5);
        let mut more = List::new();
        (8..12).for_each(|number| push(&mut more, number));
        list.append(&mut more);
        assert!(more.is_empty());
        assert_eq!(find(&mut list, &mut cursor, &mut looked, 9), Some(9));
        assert_eq!(looked, 7);
        assert_eq!(find(&mut list, &mut cursor, &mut looked, 11), Some(11));
        assert_eq!(looked, 9);
        push(&mut list, 12);
        assert_eq!(find(&mut list, &mut cursor, &mut looked, 12), Some(12));
        let rest: Vec<_> = std::iter::from_fn(|| list.pop().and_then(|node| node.message)).collect();
        assert_eq!(rest, [0, 1, 2, 3, 4, 8, 10]);
    }
}
