//! Knowing when the system has run out of work.
//!
//! After the rule of the Sophie note: the last core to become idle decides, and only if it saw every
//! other core idle, no timer and no external source pending *before* it looked through every queue, and
//! found nothing. A core that leaves idleness meanwhile bumps the epoch, which spoils the verdict.
//!
//! The protocol itself is in [`Quiescence`], which is model-checked. Why it is never early: work exists only in a
//! queue, in what an interrupt has raised, on a running core, in a timer, or at an external source. At the moment the mask was read no core was running:
//! one that was woken but has not gone on has its work in a queue still. From then on a core starts to run only by
//! leaving idleness, which bumps the epoch, then passes a full barrier, then takes work. If the look below misses that
//! work because it was taken, then the second reading of the epoch, after a full barrier of its own, finds it changed.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use super::quiescence::{Looked, Quiescence};
use crate::arch::atomic::{AtomicU32, Ordering};
use crate::sched::cores::{self, Core};
use crate::sched::place::{pick, wake};
use crate::sched::run::stop;
use crate::sched::spawn::residents;
use crate::sync::{Seat, Waiters};
use crate::time;

static QUIESCENCE: Quiescence = Quiescence::new();
static EXTERNAL_SOURCES: AtomicU32 = AtomicU32::new(0);
static WAITING: Waiters = Waiters::new();

/// A core leaves idleness, whoever ended it, and says so before it takes any work.
pub(crate) fn leave_idleness(core: &Core) {
    wake::retract(core);
    QUIESCENCE.note_activity();
}

/// A core takes part from now on, and has not taken any work yet. `count_me` sets its bit among the cores that were
/// started.
pub(crate) fn note_entry(count_me: impl FnOnce()) {
    QUIESCENCE.enter(count_me);
}

/// Something outside the system that may bring work, such as a device: while one exists, the system has
/// not run out of work.
///
/// ```
/// # use magpie::sched;
/// use magpie::sched::ExternalSource;
///
/// # sched::run_on_threads(2, 1, async {
/// let line = ExternalSource::new();
/// let device = sched::spawn(async move {
///     // Here it would wait for the device.
///     sched::yield_now().await;
///     drop(line);
/// });
/// // Not before the line is gone.
/// sched::out_of_work().await;
/// # assert!(device.is_ok_and(|device| device.process().is_done()));
/// # }).unwrap();
/// ```
pub struct ExternalSource(());

impl ExternalSource {
    /// Registers a source, until this is dropped.
    pub fn new() -> Self {
        // AcqRel: a running core does this, so no verdict is in progress that could miss it.
        EXTERNAL_SOURCES.fetch_add(1, Ordering::AcqRel);
        Self(())
    }
}

impl Default for ExternalSource {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for ExternalSource {
    fn drop(&mut self) {
        // AcqRel: as above.
        EXTERNAL_SOURCES.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Called by a core that has announced that it is idle. Returns whether it has taken that back, to look for work again:
/// it has given its verdict, or another was faster.
pub(crate) fn check(core: &Core) -> bool {
    let everyone_is_idle = || {
        // Those that are offline, too: they may have work in hand that they are about to hand on.
        let everyone = cores::started();
        wake::idle_cores() & everyone == everyone
            && EXTERNAL_SOURCES.load(Ordering::Acquire) == 0
            && time::pending() == 0
    };
    let any_work =
        || cores::all().any(|core| pick::has_work(core) || core.raised.has_any()) || residents::any_backlog();
    // This core leaves idleness before it gives its verdict, or it would miss what is woken here.
    match QUIESCENCE.look(everyone_is_idle, any_work, || leave_idleness(core)) {
        Looked::Busy => return false,
        Looked::Left(false) => {}
        Looked::Left(true) => {
            if !WAITING.tell_all(|| ()) {
                stop::out_of_work_unawaited();
            }
        }
    }
    true
}

/// Waits until the system has run out of work: nothing is runnable, nothing runs, no timer is pending and
/// no [`ExternalSource`] exists. Whoever waits here does not count as work. Awaited again, it is over at once.
///
/// A few can wait even when memory is used up. Any further one runs turn after turn until there is memory for it, so
/// meanwhile the system has not run out of work.
///
/// ```
/// # use magpie::{sched, time};
/// # sched::run_on_threads(2, 1, async {
/// let work = sched::spawn(async {});
/// sched::out_of_work().await;
/// assert!(work.unwrap().process().is_done());
/// # }).unwrap();
/// ```
pub fn out_of_work() -> OutOfWork {
    OutOfWork(WAITING.seat())
}

/// The future of [`out_of_work`].
pub struct OutOfWork(Seat<'static>);

impl Future for OutOfWork {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        // Any other wake-up is not the verdict.
        self.0.poll(context.waker(), |told| told)
    }
}
