//! The one queue for all cores, for the dispatch scheme that has no other.
//!
//! Only processes that may run anywhere wait here; what has a mask stays in its core's own queues. It is the simple
//! scheme of the Sophie note: a locked list for each priority. The scheme can be left while something waits here:
//! cores look at it whatever the scheme is.

use crate::arch::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::queue::Overflow;
use crate::sched::cores::deadlines::Deadlines;
use crate::sched::cores::{self, Core};
use crate::sched::place::wake;
use crate::sched::policy::dispatch::{self, Dispatch};
use crate::sched::policy::settings::{self, Setting};
use crate::sched::process::{Header, Priority, Runnable};

static QUEUES: [Overflow<Header>; Priority::COUNT] = [const { Overflow::new() }; Priority::COUNT];
/// Those of `High` that have a deadline; before the others of `High`.
static DEADLINES: Deadlines = Deadlines::new();
/// How many wait; counted before they are visible, so never too few.
static WAITING: AtomicUsize = AtomicUsize::new(0);
/// `Normal` turns since the last `Low` one, while both waited.
static NORMAL_TURNS: AtomicU64 = AtomicU64::new(0);

/// Whether this process waits here now.
pub(crate) fn is_for(header: &Header) -> bool {
    dispatch::current() == Dispatch::Global && header.affinity_mask() == u64::MAX
}

/// Puts a process at the back of its priority, and wakes a core for it.
pub(crate) fn push(process: Runnable) {
    let priority = process.priority();
    // Relaxed: a reader that must not miss it looks after the barrier in `wake_thief`, or after its own.
    let is_first = WAITING.fetch_add(1, Ordering::Relaxed) == 0;
    if is_first {
        // Every core is to look here from now on, until nothing is left.
        cores::all().for_each(Core::ask_attention);
    }
    if process.has_deadline() {
        DEADLINES.push(process);
    } else {
        // SAFETY: what is in hand is in no list; processes may be handed to any core.
        unsafe { QUEUES[priority.index()].push(process.into_pointer()) };
    }
    wake::wake_thief();
}

/// Whether something waits here, or the scheme is the one whose processes wait here.
pub(crate) fn is_in_use() -> bool {
    // Relaxed: read after the caller's clearing of its attention bit, which acquires what was counted before the bit was
    // set.
    WAITING.load(Ordering::Relaxed) != 0 || dispatch::current() == Dispatch::Global
}

/// Whether this core would find something here.
pub(crate) fn has_work_for(core: &Core) -> bool {
    // Relaxed: as in `push`.
    WAITING.load(Ordering::Relaxed) != 0 && cores::online() & core.mask() != 0
}

/// The most urgent priority of which something waits, as far as can be seen.
pub(crate) fn most_urgent() -> Option<Priority> {
    let has_any = |priority: Priority| {
        !QUEUES[priority.index()].is_empty() || (priority == Priority::High && !DEADLINES.is_empty())
    };
    Priority::ALL.into_iter().find(|&priority| has_any(priority))
}

/// When the first is due of those with a deadline.
pub(crate) fn earliest() -> u64 {
    DEADLINES.earliest()
}

/// Takes the oldest process of the most urgent priority, of `High` first the one that is due first; of `Low` once for every `normal_per_low` `Normal` ones.
pub(crate) fn take() -> Option<Runnable> {
    let low = Priority::Low.index();
    let both = most_urgent() == Some(Priority::Normal) && !QUEUES[low].is_empty();
    // Relaxed: a share, not a promise to the turn; cores that count at the same time are off by at most their number.
    let low_is_due =
        both && NORMAL_TURNS.fetch_add(1, Ordering::Relaxed) >= settings::get(Setting::NormalPerLow);
    if low_is_due {
        NORMAL_TURNS.store(0, Ordering::Relaxed);
    }
    let first = if low_is_due { QUEUES[low].pop() } else { None };
    // SAFETY: what comes from a queue is in hand.
    let in_hand = |process| unsafe { Runnable::new(process) };
    let max = || QUEUES[Priority::Max.index()].pop().map(in_hand);
    let any = || QUEUES.iter().find_map(Overflow::pop).map(in_hand);
    let taken = first.map(in_hand).or_else(max).or_else(|| DEADLINES.pop()).or_else(any)?;
    // Relaxed: as in `push`.
    WAITING.fetch_sub(1, Ordering::Relaxed);
    Some(taken)
}
