//! Mailboxes that watch: the message lies in a node of its own, made with the watch, and comes with the urgent ones, whatever the
//! mailbox's bound says. A watch counts as an address: its mailbox waits for what it will tell.

use alloc::boxed::Box;
use core::mem::size_of;
use core::ptr::NonNull;

use super::address::ProcessAddr;
use super::node::Node as MessageNode;
use crate::mem;
use crate::watch::{self, Asked, Ended, Means, Node, Sealed};

/// What a watch knows.
struct Known {
    address: ProcessAddr<Ended>,
    node: Box<MessageNode<Ended>>,
}

const _: () = assert!(size_of::<Known>() <= size_of::<watch::Data>(), "it fits into the watch");

impl Sealed for ProcessAddr<Ended> {
    fn means(&self) -> Option<Means> {
        let node = MessageNode::new()?;
        // Overwritten by whoever gets it.
        let memory = mem::kernel_box(core::mem::MaybeUninit::<Node>::uninit()).ok()?;
        let mut data = watch::Data::uninit();
        // SAFETY: it has room, as was asserted.
        unsafe { data.as_mut_ptr().cast::<Known>().write(Known { address: self.clone(), node }) };
        Some(Means { memory: NonNull::from(Box::leak(memory)).cast(), act, data })
    }
}

/// # Safety
/// As [`Act`](watch::Act); the node has the means of an address.
unsafe fn act(node: NonNull<Node>, asked: Asked) -> bool {
    // SAFETY: by contract; written in `means`.
    let known = unsafe { node.as_ref().data().cast::<Known>() };
    if asked == Asked::IsPointless {
        // SAFETY: by contract it stays while it is looked at.
        return unsafe { (*known).address.has_closed() };
    }
    // SAFETY: by contract it is the caller's alone, who gives it up: moved out once, and then freed, as it was made.
    let (Known { address, node: message_node }, node) =
        unsafe { (known.read(), Box::from_raw(node.as_ptr())) };
    if let Asked::Tell(exit) = asked {
        address.send_in(message_node, Ended::of(&node, exit));
    }
    true
}
