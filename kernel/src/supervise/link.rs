//! Links: a child ends with its supervisor, whatever ended that. It is a watch whose watcher is nobody: instead of a message the
//! child is killed.

use alloc::boxed::Box;
use core::mem::{MaybeUninit, size_of};
use core::ptr::NonNull;

use crate::mem::{self, OutOfMemory};
use crate::sched::{self, ProcessRef};
use crate::watch::{self, Asked, Means, Node, Sealed, Watch};

/// Who is killed.
struct Link(ProcessRef);

const _: () = assert!(size_of::<Link>() <= size_of::<watch::Data>(), "it fits into the watch");

/// Links the process that calls this to `supervisor`: it is killed when that ends, and at once if it has ended.
pub(super) fn link_to(supervisor: &ProcessRef) -> Result<Option<Watch>, OutOfMemory> {
    let Some(own) = sched::current_process() else { return Ok(None) };
    supervisor.watch(&Link(own)).map(Some)
}

impl Sealed for Link {
    fn means(&self) -> Option<Means> {
        // Overwritten by whoever gets it.
        let memory = mem::try_box(MaybeUninit::<Node>::uninit()).ok()?;
        let mut data = watch::Data::uninit();
        // SAFETY: it has room, as was asserted.
        unsafe { data.as_mut_ptr().cast::<Self>().write(Self(self.0.clone())) };
        Some(Means { memory: NonNull::from(Box::leak(memory)).cast(), act, data })
    }
}

/// # Safety
/// As [`Act`](watch::node::Act); the node has the means of a link.
unsafe fn act(node: NonNull<Node>, asked: Asked) -> bool {
    // SAFETY: by contract; written in `means`.
    let link = unsafe { node.as_ref().data().cast::<Link>() };
    if asked == Asked::IsPointless {
        // SAFETY: by contract it stays while it is looked at.
        return unsafe { (*link).0.is_done() };
    }
    // SAFETY: by contract it is the caller's alone, who gives it up: moved out once, and then freed, as it was made.
    let (Link(child), _node) =
        unsafe { (link.read(), Box::from_raw(node.as_ptr().cast::<MaybeUninit<Node>>())) };
    if let Asked::Tell(_) = asked {
        child.kill();
    }
    true
}
