//! How many processes exist, and how many are pinned to each core.

use crate::arch::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::arch::{CoreId, MAX_CORES, barrier};
use crate::sched::cores::ThisCore;
use crate::sched::cores::{self, roll_call};
use crate::sched::policy::settings::{self, Setting};
use crate::sched::process::Header;
use crate::sync::PreemptGuard;

/// Processes that exist.
static LIVE: AtomicU64 = AtomicU64::new(0);

/// Of those, how many can run on one core only.
static PINNED: [AtomicU32; MAX_CORES] = [const { AtomicU32::new(0) }; MAX_CORES];

/// How many processes can run on no other core.
pub(crate) fn pinned_to(core: CoreId) -> u32 {
    // Relaxed: ordered by the caller's barrier.
    PINNED[core.index()].load(Ordering::Relaxed)
}

/// Proof that nobody can kill who runs here before it has done the next steps, too: whoever were killed after it has counted a process, and before
/// it has queued that, would leave it counted for ever.
pub(crate) trait Unbroken {}

impl Unbroken for PreemptGuard {}
impl Unbroken for ThisCore<'_> {}

fn pinned_core(affinity: u64) -> Option<usize> {
    affinity.is_power_of_two().then(|| affinity.trailing_zeros() as usize)
}

/// Counts a process with this mask if it is pinned. Returns whether its core is in service.
pub(crate) fn count_pinned(affinity: u64) -> bool {
    let Some(core) = pinned_core(affinity) else { return true };
    // Relaxed: ordered by the barrier.
    PINNED[core].fetch_add(1, Ordering::Relaxed);
    // Pairs with the barrier in `offline`.
    barrier::full();
    if cores::existing() & affinity != 0
        && cores::online() & affinity == 0
        && cores::started() & affinity != 0
    {
        uncount_pinned(affinity);
        return false;
    }
    true
}

pub(crate) fn uncount_pinned(affinity: u64) {
    if let Some(core) = pinned_core(affinity) {
        // Relaxed: a process that has ended needs no core.
        PINNED[core].fetch_sub(1, Ordering::Relaxed);
    }
}

/// How many processes exist.
///
/// ```
/// # use magpie::sched;
/// # sched::run_on_threads(2, 1, async {
/// // The caller counts, too.
/// assert!(sched::live_processes() >= 1);
/// # }).unwrap();
/// ```
pub fn live_processes() -> u64 {
    // Relaxed: a statistic.
    LIVE.load(Ordering::Relaxed)
}

/// Counts a process that is about to be started. Returns whether [`Setting::ProcessLimit`] allows one more.
pub(crate) fn count_start(_: &impl Unbroken) -> bool {
    // Relaxed: a limit; nothing is inferred from the count.
    if LIVE.fetch_add(1, Ordering::Relaxed) >= settings::get(Setting::ProcessLimit) {
        LIVE.fetch_sub(1, Ordering::Relaxed);
        return false;
    }
    true
}

/// A detached piece is a process until it ends. It is bounded by the stacks that can be lent, and refusing
/// it would let a hog go on, so no limit applies.
pub(crate) fn count_detached(affinity: u64, _: &impl Unbroken) {
    // Relaxed: as above.
    LIVE.fetch_add(1, Ordering::Relaxed);
    // Its core may be offline only if its worker was not pinned to it, so this cannot fail.
    let _ = count_pinned(affinity);
}

/// A process was counted, its core was not.
pub(crate) fn uncount_start() {
    // Relaxed: as above.
    LIVE.fetch_sub(1, Ordering::Relaxed);
}

/// A process with this mask was counted and not started.
pub(crate) fn uncount(affinity: u64) {
    uncount_start();
    uncount_pinned(affinity);
}

/// A process has ended. The scheduler's reference to it still lives.
#[inline(always)]
pub(crate) fn note_end(header: &Header) {
    if header.is_listed() {
        roll_call::strike(header);
    }
    uncount(header.affinity_mask());
}
