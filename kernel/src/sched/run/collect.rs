//! Collecting what crashed code owned: when, and from which roots. How the blocks are found is described in
//! `mem::orphans`.
//!
//! A crash leaves behind what may be pointers to blocks that nobody else knows. When enough of it has accumulated, or
//! when memory is short then or later, a core collects: all others stand still while the blocks that nobody can reach
//! are found and freed. So a system in which nothing crashes never stands still.

use core::ops::Range;

use crate::arch::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::arch::stack_layout::FRAME_IN_BLOCK;
use crate::arch::switch::Frame;
use crate::arch::{clock, image};
use crate::mem::{orphans, stack};
use crate::roll;
use crate::sched::cores::{self, Core, calls};
use crate::sched::policy::settings::{self, Setting};
use crate::sched::run::halt;

/// After a collection that was not worth it, the next one that no crash asks for waits this many times as long as it
/// took; after the next twice as many times, and so on.
const REST: u64 = 8;
/// It is doubled so often at the most.
const MOST_IN_VAIN: u32 = 5;

/// When the last collection ended that was not worth it, and how long it took, in clock ticks.
static ENDED: AtomicU64 = AtomicU64::new(0);
static TOOK: AtomicU64 = AtomicU64::new(0);
/// How many in a row were not, since the last crash.
static IN_VAIN: AtomicU32 = AtomicU32::new(0);

/// Whether one may begin that no crash asks for.
fn has_rested() -> bool {
    // Relaxed, here and where they are written: nothing is ordered by them.
    let rest = REST << IN_VAIN.load(Ordering::Relaxed).saturating_sub(1).min(MOST_IN_VAIN);
    let since = clock::now().saturating_sub(ENDED.load(Ordering::Relaxed));
    since >= rest.saturating_mul(TOOK.load(Ordering::Relaxed))
}

fn is_allowed() -> bool {
    settings::get(Setting::CollectMicroseconds) != 0
}

/// Between two turns: memory may be short, though nothing crashes, or a collection was given up.
pub(crate) fn begin_if_wanted() {
    if is_allowed() && orphans::is_wanted() && has_rested() {
        calls::raise(calls::COLLECT);
    }
}

/// Something has crashed. What it left is noted.
pub(crate) fn after_crash() {
    IN_VAIN.store(0, Ordering::Relaxed);
    if is_allowed() && orphans::is_due() {
        calls::raise(calls::COLLECT);
    }
}

/// Does what the core is called for.
///
/// # Safety
/// The caller is `core`'s loop, between two turns.
pub(crate) unsafe fn answer(core: &Core, called_for: u32) {
    if called_for & calls::HALT != 0 {
        // SAFETY: the caller is the core's loop, between two turns.
        unsafe { halt::stand_still_in_loop(core) };
    } else if calls::CALLS.lower(calls::COLLECT) {
        // SAFETY: as above.
        unsafe { collect(core) };
    }
}

/// # Safety
/// As for [`answer`].
#[cold]
#[inline(never)]
unsafe fn collect(core: &Core) {
    let Some(mut collection) = orphans::begin() else { return };
    let mark = |standing: &halt::Standing| {
        let began = clock::now();
        // Whoever has crashed until now is noted, so what was called for meanwhile is done here. (Nobody is waiting for it.)
        calls::CALLS.lower(calls::COLLECT);
        for core in cores::all() {
            // SAFETY: who stands still is in no operation of a queue, and its writes are seen: see `Standstill`.
            unsafe { core.queue.clear_taken() };
        }
        // SAFETY: nothing changes, because all other cores stand still and interrupts are masked here. These are all
        // roots: what a core has in hand is on the stack of a turn or in the frame of that turn, because the loops have
        // nothing in hand.
        unsafe {
            collection.run(
                each_root,
                |visit| standing.exception_stacks().for_each(|stacks| visit(stacks.start)),
                // Who stands still holds no lock, and neither does this core's loop.
                roll::forget,
                began + settings::ticks(Setting::CollectMicroseconds),
            );
        };
        clock::now() - began
    };
    let began = clock::now();
    // SAFETY: the caller is the core's loop, between two turns.
    let was_worth_it = match unsafe { halt::with_all_standing(core, mark) } {
        Some(ticks) => collection.end(ticks),
        None => collection.give_up(),
    };
    let now = clock::now();
    ENDED.store(now, Ordering::Relaxed);
    TOOK.store(if was_worth_it { 0 } else { now - began }, Ordering::Relaxed);
    let in_vain = if was_worth_it { 0 } else { IN_VAIN.load(Ordering::Relaxed).saturating_add(1) };
    IN_VAIN.store(in_vain, Ordering::Relaxed);
}

/// Shows all memory outside of the heap where pointers into it may be.
fn each_root(visit: &mut dyn FnMut(Range<usize>)) {
    image::statics().into_iter().for_each(&mut *visit);
    for block in stack::all().filter(|block| !block.process().is_null()) {
        // A turn that stands, or that is suspended.
        let frame = block.saved();
        let top = core::ptr::from_ref(block).addr();
        // SAFETY: complete, and nobody writes to it.
        let sp = unsafe { (*frame).sp } as usize;
        visit(frame.addr()..frame.addr() + size_of::<Frame>());
        visit(sp.next_multiple_of(8).min(top)..top);
        // The block up to the frame in it: whose turn it is.
        visit(top..top + FRAME_IN_BLOCK);
    }
}
