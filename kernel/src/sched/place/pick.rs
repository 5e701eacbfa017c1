//! Taking what runs next from a core's own queues and the global one.

use crate::sched::cores::{Core, ThisCore};
use crate::sched::place::global;
use crate::sched::process::{Priority, Runnable};

/// Whether the core would find something to run.
pub(crate) fn has_work(core: &Core) -> bool {
    !core.queue.is_empty() || global::has_work_for(core)
}

/// Takes the process to run next.
pub(crate) fn next(core: &ThisCore<'_>) -> Option<Runnable> {
    if !global::has_work_for(core) {
        return core.take();
    }
    // The more urgent first; in turns where neither is, so that neither starves.
    let own_is_next = core.own_is_next.replace(!core.own_is_next.get());
    // `Normal` and `Low` share, each queue by its own count.
    let urgency = |priority: Option<Priority>| priority.map(|priority| priority.min(Priority::Normal));
    let own_first = match (urgency(core.queue.most_urgent()), urgency(global::most_urgent())) {
        (Some(own), Some(global)) if own != global => own < global,
        _ => own_is_next,
    };
    let own = || core.take();
    if own_first { own().or_else(global::take) } else { global::take().or_else(own) }
}
