//! Each core's timer queue, its lock, and the deadlines it publishes.
//!
//! A timer lives in the queue of the core that armed it. Anyone may cancel it, under that queue's lock. The
//! core loop fires: it takes a waker out under the lock and wakes after it, so a timer's memory is not touched any more
//! by the time its owner can know that it has fired.
//!
//! Deadlines are kept as they were given, and the comparator is armed for the earliest: a timer fires in the first pass of the
//! loop after the interrupt at its own tick, and never before.
//!
//! Interrupt handlers take no lock: they read the published deadlines.

use alloc::boxed::Box;
use core::ptr::{self, NonNull};
use core::task::Waker;

use super::comparator;
use super::owned::{self, OwnedTimers};
use super::queue::{Fired, TimerQueue};
use super::state::State;
use super::timer::Timer;
use crate::arch::atomic::{AtomicPtr, AtomicU64, Ordering};
use crate::arch::{CoreId, MAX_CORES, clock, percpu};
use crate::sync::{PreemptGuard, SpinLock, is_kept_for, keep_waker, take_kept};
use crate::{mem, stats};

/// No deadline. Zero, like the initial state of a core's part, so that the image need not contain it.
const NONE: u64 = 0;

struct PerCore {
    queue: SpinLock<TimerQueue>,
    /// The memory of one timer that nobody uses, for the next: mostly the core's own.
    spare: AtomicPtr<Timer>,
    /// When the next timer is due, in clock ticks.
    next: AtomicU64,
    /// When the next urgent one is.
    next_urgent: AtomicU64,
    /// How many have fired here.
    fired: AtomicU64,
}

impl PerCore {
    const fn new() -> Self {
        Self {
            queue: SpinLock::new(TimerQueue::new()),
            spare: AtomicPtr::new(ptr::null_mut()),
            next: AtomicU64::new(NONE),
            next_urgent: AtomicU64::new(NONE),
            fired: AtomicU64::new(0),
        }
    }
}

static CORES: [PerCore; MAX_CORES] = [const { PerCore::new() }; MAX_CORES];
/// Timers that count as work and have not fired, or whose waker was not called yet.
static PENDING: AtomicU64 = AtomicU64::new(0);
static LONGEST_PASS: AtomicU64 = AtomicU64::new(0);

/// When `core` has a timer to fire next, in clock ticks.
#[inline]
pub fn next_deadline(core: CoreId) -> Option<u64> {
    published(&CORES[core.index()].next)
}

/// When `core` has a timer to fire next that wakes what is `Max` or `High`, in clock ticks.
#[inline]
pub fn next_urgent_deadline(core: CoreId) -> Option<u64> {
    published(&CORES[core.index()].next_urgent)
}

#[inline]
fn published(deadline: &AtomicU64) -> Option<u64> {
    // Relaxed: written by the core itself, or by one that cancels and can only make it later.
    match deadline.load(Ordering::Relaxed) {
        NONE => None,
        deadline => Some(deadline),
    }
}

/// How many timers are pending that count as work, on all cores.
pub fn pending() -> u64 {
    // Acquire: pairs with the release of the decrement, which comes after the wake-up.
    PENDING.load(Ordering::Acquire)
}

/// How many timers have fired since the system started, on all cores.
pub fn fired() -> u64 {
    // Relaxed: a statistic.
    CORES.iter().map(|core| core.fired.load(Ordering::Relaxed)).sum()
}

/// The most timers that a core has fired, if more than one, before it looked at its queues again: see
/// [`tuning::TIMERS_PER_PASS`](crate::sched::tuning::TIMERS_PER_PASS).
pub fn longest_pass() -> u64 {
    // Relaxed: a statistic.
    LONGEST_PASS.load(Ordering::Relaxed)
}

/// As [`publish`], where it is not in the way of something urgent.
#[inline(never)]
fn publish_apart(core: usize, queue: &TimerQueue) {
    publish(core, queue);
}

#[inline(always)]
fn publish(core: usize, queue: &TimerQueue) {
    let PerCore { next, next_urgent, .. } = &CORES[core];
    for (place, deadline) in [(next, queue.next()), (next_urgent, queue.next_urgent())] {
        // What is due at zero was due at one, too. Relaxed: as in `published`.
        place.store(deadline.map_or(NONE, |deadline| deadline.max(1)), Ordering::Relaxed);
    }
}

/// Makes a timer, in memory of its own: in that which was given back last on this core, if there is any. `None` without memory.
pub(crate) fn make(background: bool) -> Option<NonNull<Timer>> {
    let here = PreemptGuard::new();
    let spare = &CORES[percpu::core_number()].spare;
    // By an exchange, because a thread that is no core has some core's. Acquire: pairs with the release in `give_back`. A look first, which
    // spares the exchange.
    let kept = match spare.load(Ordering::Relaxed).is_null() {
        true => None,
        false => NonNull::new(spare.swap(ptr::null_mut(), Ordering::Acquire)),
    };
    drop(here);
    match kept {
        Some(timer) => {
            // SAFETY: nobody's, and of a box of this type; what was there needs no dropping.
            unsafe { timer.write(Timer::new(background)) };
            Some(timer)
        }
        None => Some(NonNull::from(Box::leak(mem::kernel_box(Timer::new(background)).ok()?))),
    }
}

/// Gives back a timer. To free it takes longer than to keep it, and who waits once mostly waits again.
///
/// # Safety
/// It came from [`make`], is in no queue, and not used any more.
pub(crate) unsafe fn give_back(timer: NonNull<Timer>) {
    // SAFETY: by contract; what has fired has no waker any more.
    if unsafe { (*timer.as_ptr()).waker.is_some() } {
        // It may be the application's: it is dropped with preemption enabled.
        // SAFETY: as above.
        drop(unsafe { take_kept(&mut (*timer.as_ptr()).waker) });
    }
    // Nothing leads from here to a process that may have ended by then: this stays.
    // SAFETY: by contract; it is in no list of its owner's.
    unsafe { (*timer.as_ptr()).owner = None };
    // The caller may be on another core by the time it uses that: then it gives the timer to this one, which does no harm.
    let spare = &CORES[percpu::core_number()].spare;
    // Release: pairs with the acquire in `make`. Relaxed on failure: there is one already.
    let none = ptr::null_mut();
    if spare.compare_exchange(none, timer.as_ptr(), Ordering::Release, Ordering::Relaxed).is_ok() {
        return;
    }
    // SAFETY: by contract; it came from a box.
    unsafe { free(timer) };
}

#[cold]
#[inline(never)]
unsafe fn free(timer: NonNull<Timer>) {
    // SAFETY: by the contract of `give_back`, whose end this is.
    drop(unsafe { Box::from_raw(timer.as_ptr()) });
}

/// Arms a timer on the calling core. Returns the core.
///
/// # Safety
/// The timer stays where it is until it has fired or [`cancel`] was called, whatever becomes of its owner: it lies in no
/// memory that a crash gives back. It is in no queue, and the caller's alone.
pub(crate) unsafe fn arm(timer: NonNull<Timer>, deadline: u64) -> usize {
    let _here = PreemptGuard::new();
    let core = percpu::core_number();
    let mut queue = CORES[core].queue.lock();
    // SAFETY: under the lock, and by contract.
    unsafe {
        if !timer.as_ref().background {
            // Relaxed: its process runs, so nobody can conclude meanwhile that the system is out of work.
            PENDING.fetch_add(1, Ordering::Relaxed);
        }
        queue.insert(timer, deadline);
        owned::link(timer, core);
    }
    publish_apart(core, &queue);
    drop(queue);
    // For this one alone: what is due before it has been armed for, and if its moment has passed the core's loop looks anyway.
    comparator::arm_if_earlier(deadline.max(1));
    core
}

/// Takes a timer back, wherever it is. Afterwards its memory is the owner's alone.
///
/// # Safety
/// The timer was armed on `core`.
pub(crate) unsafe fn cancel(timer: NonNull<Timer>, core: usize) {
    let mut queue = CORES[core].queue.lock();
    // SAFETY: under the lock, and by contract. One that has fired is in no queue.
    unsafe {
        if timer.as_ref().state.get() == State::Armed {
            owned::unlink(timer, queue.preempt());
            remove(&mut queue, timer, core);
        }
    }
}

/// # Safety
/// The timer is in the queue, which is that of `core`.
unsafe fn remove(queue: &mut TimerQueue, timer: NonNull<Timer>, core: usize) {
    // SAFETY: the caller promised that the timer is in this queue.
    unsafe {
        queue.remove(timer);
        publish_apart(core, queue);
        if !timer.as_ref().background {
            // Relaxed: as in `arm`.
            PENDING.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Takes the timer that `choose` returns out of the queue of `core`, under whose lock it is called. Returns the timer's
/// waker, to be dropped outside the lock.
///
/// # Safety
/// The timer is in that queue, and in no list of a process's.
unsafe fn take_out(core: usize, choose: impl FnOnce() -> Option<NonNull<Timer>>) -> Option<Waker> {
    let mut queue = CORES[core].queue.lock();
    let timer = choose()?;
    // SAFETY: the caller promised that the timer is in this queue.
    unsafe {
        remove(&mut queue, timer, core);
        take_kept(&mut (*timer.as_ptr()).waker)
    }
}

/// A process has crashed: takes its timers out of their queues.
pub(crate) fn take_out_of_crashed(timers: &OwnedTimers) {
    timers.close();
    while let Some(core) = timers.core_of_first() {
        // May fire now, which takes it out of the list; then the next is looked at.
        // SAFETY: `take_first` returns what is in that core's queue.
        let waker = unsafe { take_out(core, || timers.take_first(core)) };
        if let Some(waker) = waker {
            drop(waker);
            let _here = PreemptGuard::new();
            stats::core_here().crash_bytes_in_doubt.add(size_of::<Timer>() as u64);
        }
    }
}

/// What a timer means to the future that asks.
pub(crate) enum Checked {
    /// It has fired.
    Fired,
    /// It wakes the caller's waker when it fires.
    Waits,
    /// It was taken out: the process that waited for it before has crashed.
    TakenOut,
}

/// Whether a timer has fired; if not, `waker` is woken when it does, and the timer is in the list of `owner`.
///
/// # Safety
/// The timer was armed on `core`. `owner` is that of the process that `waker` wakes, and lives as long as that.
pub(crate) unsafe fn check(
    timer: NonNull<Timer>,
    core: usize,
    waker: &Waker,
    owner: impl FnOnce() -> Option<NonNull<OwnedTimers>>,
) -> Checked {
    // SAFETY: by contract it stays; the state is atomic, and no more of it is referred to.
    if unsafe { &(*timer.as_ptr()).state }.has_fired() {
        return Checked::Fired;
    }
    let owner = owner();
    let mut replaced = None;
    loop {
        let queue = CORES[core].queue.lock();
        // SAFETY: under the lock, and by contract.
        let held = unsafe { &mut *timer.as_ptr() };
        match held.state.get() {
            State::Fired => return Checked::Fired,
            State::Idle => return Checked::TakenOut,
            State::Armed => {}
        }
        if held.waker.as_ref().is_some_and(|known| is_kept_for(known, waker)) {
            return Checked::Waits;
        }
        // Wakers are cloned and dropped outside the lock: they may be the application's own, and dropping one may free
        // a process.
        match replaced.take() {
            Some(waker) => {
                // SAFETY: under the lock, in which the timer changes hands.
                unsafe {
                    owned::unlink(timer, queue.preempt());
                    replaced = (*timer.as_ptr()).waker.replace(waker);
                    (*timer.as_ptr()).owner = owner;
                    owned::link(timer, core);
                }
                drop(queue);
                drop(replaced);
                return Checked::Waits;
            }
            None => {
                drop(queue);
                replaced = keep_waker(waker);
                if replaced.is_none() {
                    // Without memory it is asked again at once.
                    waker.wake_by_ref();
                    return Checked::Waits;
                }
            }
        }
    }
}

/// Fires what `choose` takes out of a core's queue, and wakes whom it was for. Whether there was one.
#[inline(always)]
fn fire_one(
    core: CoreId,
    here: &PreemptGuard,
    choose: impl FnOnce(&mut TimerQueue) -> Option<Fired>,
    wake: impl FnOnce(Waker),
) -> bool {
    let fired = {
        let mut queue = CORES[core.index()].queue.lock_under(here);
        let fired = choose(&mut queue);
        if fired.is_some() {
            publish(core.index(), &queue);
        }
        fired
    };
    let Some(fired) = fired else { return false };
    if let Some(waker) = fired.waker {
        wake(waker);
    }
    if !fired.background {
        // Release: the process was woken before; pairs with `pending`.
        PENDING.fetch_sub(1, Ordering::Release);
    }
    true
}

/// Fires one urgent timer, if one is due on `core`. As [`expire`], which fires the rest. Whether another urgent one is due.
#[inline(always)]
pub fn expire_one_urgent(core: CoreId, here: &PreemptGuard, wake: impl FnOnce(Waker)) -> bool {
    let slot = &CORES[core.index()];
    let now = clock::now();
    let is_due = || published(&slot.next_urgent).is_some_and(|deadline| deadline <= now);
    if is_due() && fire_one(core, here, |queue| queue.fire_urgent(now, here), wake) {
        // Relaxed: as in `expire`.
        slot.fired.store(slot.fired.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
    is_due()
}

/// Fires what is due on `core`, urgent timers first, at most `most`. Called by the core itself, in its loop.
///
/// Between two timers it asks `is_called_for`: whether something urgent waits for the core. Then only urgent ones are fired, and the
/// rest is left. `wake` wakes whom a timer was for. Returns whether more may be due.
pub fn expire(
    core: CoreId,
    most: usize,
    here: &PreemptGuard,
    is_called_for: impl Fn() -> bool,
    wake: impl Fn(Waker),
) -> bool {
    let slot = &CORES[core.index()];
    let began = clock::now();
    let mut count = 0;
    let more = loop {
        // Afresh each time, because what becomes urgent meanwhile comes before the rest; of the rest only what was due when it began.
        let now = clock::now();
        let is_due = |place, at| published(place).is_some_and(|deadline| deadline <= at);
        let is_urgent = is_due(&slot.next_urgent, now);
        let is_other = is_due(&slot.next, began);
        if !is_urgent && (!is_other || is_called_for()) {
            break is_other;
        }
        if count == most {
            break true;
        }
        // One that was cancelled is not published any more, now that the lock was had.
        let at = if is_urgent { now } else { began };
        count += usize::from(fire_one(core, here, |queue| queue.fire(at, is_urgent, here), &wake));
    };
    // Relaxed, both: statistics. This core alone writes the first.
    slot.fired.store(slot.fired.load(Ordering::Relaxed) + count as u64, Ordering::Relaxed);
    if count > 1 && count as u64 > LONGEST_PASS.load(Ordering::Relaxed) {
        LONGEST_PASS.fetch_max(count as u64, Ordering::Relaxed);
    }
    more
}
