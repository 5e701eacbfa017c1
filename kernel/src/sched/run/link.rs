//! How a link ends a process. What a link is, is told in `watch/link.rs`.

use alloc::boxed::Box;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use crate::mem::{self, OutOfMemory};
use crate::sched::process::ProcessRef;
use crate::watch::{self, Asked, Exit, Linked, Means, Node, Watch, Watcher};

impl Linked for ProcessRef {
    fn watch_for(&self, watcher: &impl Watcher) -> Result<Watch, OutOfMemory> {
        self.watch(watcher)
    }

    fn fate(&self) -> Option<Means> {
        // Overwritten by whoever gets it.
        let memory = mem::kernel_box(MaybeUninit::<Node>::uninit()).ok()?;
        let mut data = watch::Data::uninit();
        // SAFETY: it has room for one word.
        unsafe { data.as_mut_ptr().cast::<ProcessRef>().write(self.clone()) };
        Some(Means { memory: NonNull::from(Box::leak(memory)).cast(), act, data })
    }
}

/// # Safety
/// As [`Act`](crate::watch::node::Act); the node has the means of [`Linked::fate`].
unsafe fn act(node: NonNull<Node>, asked: Asked) -> bool {
    // SAFETY: by contract; written in `fate`.
    let process = unsafe { node.as_ref().data().cast::<ProcessRef>() };
    if asked == Asked::IsPointless {
        // SAFETY: by contract it stays while it is looked at.
        return unsafe { (*process).is_done() };
    }
    // SAFETY: by contract it is the caller's alone, who gives it up: moved out once, and then freed, as it was made.
    let (process, node) = unsafe { (process.read(), Box::from_raw(node.as_ptr())) };
    drop(node);
    if matches!(asked, Asked::Tell(bits) if Exit::from_bits(bits).ends_linked()) {
        process.kill();
    }
    true
}
