//! Mailboxes that watch: the message's node is made in the memory of the watch, and comes with the urgent ones, whatever the mailbox's bound
//! says. A watch counts as an address: its mailbox waits for what it will tell.

use core::alloc::Layout;
use core::mem::size_of;
use core::ptr::NonNull;

use super::address::ProcessAddr;
use super::node::Room;
use crate::mem;
use crate::watch::{self, Asked, Ended, Means, Node, Sealed};

const _: () = assert!(size_of::<ProcessAddr<Ended>>() <= size_of::<watch::Data>(), "it fits into the watch");

impl Sealed for ProcessAddr<Ended> {
    fn means(&self) -> Option<Means> {
        let memory = mem::kernel_memory(Layout::new::<Node>())?.cast();
        let mut data = watch::Data::uninit();
        // SAFETY: it has room, as was asserted.
        unsafe { data.as_mut_ptr().cast::<Self>().write(self.clone()) };
        Some(Means { memory, act, data })
    }
}

/// # Safety
/// As [`Act`](crate::watch::node::Act); the node has the means of an address.
unsafe fn act(node: NonNull<Node>, asked: Asked) -> bool {
    // SAFETY: by contract; written in `means`.
    let address = unsafe { node.as_ref().data().cast::<ProcessAddr<Ended>>() };
    if asked == Asked::IsPointless {
        // SAFETY: by contract it stays while it is looked at.
        return unsafe { (*address).has_closed() };
    }
    // SAFETY: by contract it is the caller's alone, who gives it up: the address is moved out once, before a message's node is made of it,
    // which has the same layout.
    let (address, ended, room) = unsafe {
        let ended = match asked {
            Asked::Tell(exit) => Some(Ended::of(node.as_ref(), exit)),
            _ => None,
        };
        (address.read(), ended, Room::in_memory(node.cast()))
    };
    match ended {
        Some(ended) => address.send_in(room, ended),
        None => drop(room),
    }
    true
}
