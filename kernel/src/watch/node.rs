//! A watch as it lies in a list: whose end is to be told, and by which function.
//!
//! It is made where the watcher is known, in the memory in which the message will lie: so telling needs none.

use core::mem::MaybeUninit;
use core::ptr::NonNull;

use crate::sync::Identity;

/// What is asked of a watch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// To tell its watcher how it ended: the bits of an `Ended`'s exit. The node is given up.
    Tell(u64),
    /// To be freed without telling anybody. The node is given up.
    Free,
    /// Whether nobody would be told any more. Changes nothing.
    IsPointless,
}

/// Does what is asked. Only the answer to [`Asked::IsPointless`] means something.
///
/// # Safety
/// The node is alive and has this function. Whoever asks for anything but [`Asked::IsPointless`] has it alone, and gives it up.
pub type Act = unsafe fn(NonNull<Node>, Asked) -> bool;

/// Three words that the function knows how to read.
pub type Data = MaybeUninit<[u64; 3]>;

/// One watch.
#[repr(C)]
pub struct Node {
    /// The next in its list; the list's.
    pub(super) next: *mut Node,
    place: usize,
    life: u64,
    number: u64,
    act: Act,
    data: Data,
}

/// What is watched, in two words.
fn words(who: Identity) -> (usize, u64) {
    match who {
        Identity::Process(header) => (header, 0),
        // The word of an actor that lives is never zero.
        Identity::Actor { place, life } => (place, life),
    }
}

impl Node {
    /// The watch with this number of who is so known, in no list.
    pub fn new(who: Identity, number: u64, act: Act, data: Data) -> Self {
        let (place, life) = words(who);
        Self { next: core::ptr::null_mut(), place, life, number, act, data }
    }

    /// What its function needs to know.
    pub fn data(&self) -> *const Data {
        &raw const self.data
    }

    /// Its number. No other watch has had the same.
    pub fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn is_of(&self, who: Identity) -> bool {
        (self.place, self.life) == words(who)
    }

    /// Does what is asked.
    ///
    /// # Safety
    /// As [`Act`].
    pub unsafe fn act(this: NonNull<Self>, asked: Asked) -> bool {
        // SAFETY: by contract.
        unsafe { (this.as_ref().act)(this, asked) }
    }
}
