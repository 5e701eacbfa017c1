//! Executors with an owner, the process or actor that has started one: with it ends the executor, whatever ended it.

use alloc::boxed::Box;
use core::mem::{MaybeUninit, size_of};
use core::ptr::NonNull;

use super::at_work::identity;
use super::executor_state::ExecutorState;
use super::shutdown;
use crate::actor::storage::{CellRef, Word, cell};
use crate::mem::{self, Counted, OutOfMemory};
use crate::sched;
use crate::watch::{self, Asked, Means, Node, Sealed, Watch};

/// Whoever is told stops this executor.
struct Stops<'a>(&'a Counted<ExecutorState>);

const _: () =
    assert!(size_of::<Counted<ExecutorState>>() <= size_of::<watch::Data>(), "it fits into the watch");

impl Sealed for Stops<'_> {
    fn means(&self) -> Option<Means> {
        let memory = mem::kernel_box(MaybeUninit::<Node>::uninit()).ok()?;
        let mut data = watch::Data::uninit();
        // SAFETY: it has room, as was asserted.
        unsafe { data.as_mut_ptr().cast::<Counted<ExecutorState>>().write(self.0.clone()) };
        Some(Means { memory: NonNull::from(Box::leak(memory)).cast(), act, data })
    }
}

/// # Safety
/// As [`Act`](crate::watch::node::Act); the node has the means of [`Stops`].
unsafe fn act(node: NonNull<Node>, asked: Asked) -> bool {
    // SAFETY: by contract; written in `means`.
    let executor = unsafe { node.as_ref().data().cast::<Counted<ExecutorState>>() };
    if asked == Asked::IsPointless {
        // SAFETY: by contract it stays while it is looked at.
        return unsafe { (*executor).is_stopping() };
    }
    // SAFETY: by contract it is the caller's alone, who gives it up: moved out once, and then freed, as it was made.
    let (executor, node) =
        unsafe { (executor.read(), Box::from_raw(node.cast::<MaybeUninit<Node>>().as_ptr())) };
    drop(node);
    if matches!(asked, Asked::Tell(_)) {
        shutdown::stop_ownerless(&executor);
    }
    true
}

/// Has the executor end with the actor whose behaviour the caller is in, or else with its process. `None` if there is neither.
///
/// # Errors
/// When there is no memory for it.
pub(super) fn end_with_caller(executor: &Counted<ExecutorState>) -> Result<Option<Watch>, OutOfMemory> {
    if let Some(at_work) = sched::at_work_here() {
        // SAFETY: what is at work for an executor is an actor, in its cell.
        let cell = unsafe { CellRef::new(at_work.place.cast()) };
        let word = Word::from_bits(at_work.life);
        let lives = || {
            let now = cell.word();
            now.is_same_actor(word) || now == word.ending()
        };
        return watch::watch(identity(cell, word), &Stops(executor), cell::watched(cell, word), lives)
            .map(Some);
    }
    sched::current_process().map(|process| process.watch(&Stops(executor))).transpose()
}
