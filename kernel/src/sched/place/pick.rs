//! Taking what runs next from a core's own queues and the global one.

use crate::sched::cores::{Core, ThisCore};
use crate::sched::place::{enqueue, global};
use crate::sched::process::{NEVER, Priority, Runnable};

/// Whether the core would find something to run.
pub(crate) fn has_work(core: &Core) -> bool {
    core.chosen.is_some() || !core.queue.is_empty() || global::has_work_for(core)
}

/// Whether the core was told of something to run: all that was put into its queues is flagged before its waker looks whether the core
/// is idle (`enqueue::deliver`), so an idle core looks at the flags alone, and at what interrupts raise while it waits. What it finds flagged may be gone; then its loop, which
/// takes the flag back, finds nothing.
#[inline(always)]
pub(crate) fn was_told_of_work(core: &Core) -> bool {
    core.queue.is_flagged() || core.chosen.is_some() || global::has_work_for(core)
}

/// Takes the process to run next: what is chosen already, if nothing urgent waits besides.
#[inline(always)]
pub(crate) fn next(core: &ThisCore<'_>) -> Option<Runnable> {
    if let Some(process) = core.take_chosen() {
        if !core.queue.has_urgent() {
            return Some(process);
        }
        enqueue::queue_apart(core, process);
    }
    if global::has_work_for(core) { next_of_both(core) } else { core.take() }
}

/// Takes it from the core's own queues or from the global one. Apart, because the core loop is short without it.
#[inline(never)]
fn next_of_both(core: &ThisCore<'_>) -> Option<Runnable> {
    // The more urgent first, or what is due earlier; in turns where neither is, so that neither starves.
    let own_is_next = core.own_is_next.replace(!core.own_is_next.get());
    // `Normal` and `Low` share, each queue by its own count.
    let urgency = |priority: Option<Priority>, earliest| {
        let due = if priority == Some(Priority::High) { earliest } else { NEVER };
        priority.map(|priority| (priority.min(Priority::Normal), due))
    };
    let own = urgency(core.queue.most_urgent(), core.queue.earliest());
    let own_first = match (own, urgency(global::most_urgent(), global::earliest())) {
        (Some(own), Some(global)) if own != global => own < global,
        _ => own_is_next,
    };
    let global = if own_first { None } else { global::take() };
    global.or_else(|| core.take()).or_else(global::take)
}
