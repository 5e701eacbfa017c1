//! Taking what runs next from a core's own queues and the global one.

use core::ptr::NonNull;

use crate::sched::cores::Core;
use crate::sched::place::global;
use crate::sched::process::{Header, Priority};

/// Whether the core would find something to run.
pub(crate) fn has_work(core: &Core) -> bool {
    !core.queue.is_empty() || global::has_work_for(core)
}

/// Takes the process to run next.
///
/// # Safety
/// The caller is `core`'s loop.
pub(crate) unsafe fn next(core: &Core) -> Option<NonNull<Header>> {
    if !global::has_work_for(core) {
        // SAFETY: by contract.
        return unsafe { core.queue.take() };
    }
    // The more urgent first; in turns where neither is, so that neither starves.
    let own_is_next = core.own_is_next.replace(!core.own_is_next.get());
    // `Normal` and `Low` share, each queue by its own count.
    let urgency = |priority: Option<Priority>| priority.map(|priority| priority.min(Priority::Normal));
    let own_first = match (urgency(core.queue.most_urgent()), urgency(global::most_urgent())) {
        (Some(own), Some(global)) if own != global => own < global,
        _ => own_is_next,
    };
    // SAFETY: by contract.
    let own = || unsafe { core.queue.take() };
    if own_first { own().or_else(global::take) } else { global::take().or_else(own) }
}
