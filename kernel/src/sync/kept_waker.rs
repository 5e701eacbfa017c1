//! Wakers that the kernel keeps: those of the scheduler's processes as they are; in place of any other, a waker that
//! may be called and dropped anywhere (see `sched::spawn::foreign`). The scheduler, which is above, provides it.

use core::task::Waker;

use spin::Once;

/// What the scheduler provides for keeping wakers.
pub struct Keeper {
    /// What may be kept for a waker, and called and dropped anywhere; `None` without memory.
    pub keep: fn(&Waker) -> Option<Waker>,
    /// Whether what is kept is for that waker.
    pub is_for: fn(&Waker, &Waker) -> bool,
    /// Whether what is kept is for a process that has crashed.
    pub is_of_crashed: fn(&Waker) -> bool,
    /// Whether what is kept is for a process that is urgent. It is asked under locks.
    pub is_of_urgent: fn(&Waker) -> bool,
}

static KEEPER: Once<Keeper> = Once::new();

/// Registers what the scheduler does; later calls change nothing.
pub fn register_keeper(keeper: Keeper) {
    KEEPER.call_once(|| keeper);
}

/// What may be kept to wake `waker`; `None` without memory. Called under no lock, and with preemption enabled, because
/// it may clone the application's own.
pub fn keep_waker(waker: &Waker) -> Option<Waker> {
    match KEEPER.get() {
        Some(keeper) => (keeper.keep)(waker),
        None => Some(waker.clone()),
    }
}

/// Whether `kept` stands for `waker`.
pub fn is_kept_for(kept: &Waker, waker: &Waker) -> bool {
    kept.will_wake(waker) || KEEPER.get().is_some_and(|keeper| (keeper.is_for)(kept, waker))
}

/// Whether `kept` is for a process that is urgent. Of a waker that is not the scheduler's nobody knows.
pub fn is_kept_for_urgent(kept: &Waker) -> bool {
    KEEPER.get().is_some_and(|keeper| (keeper.is_of_urgent)(kept))
}

/// Whether `kept` is for a process that has crashed, so that nobody waits by it. Of a waker that is not the scheduler's nobody knows.
pub fn is_kept_for_crashed(kept: &Waker) -> bool {
    KEEPER.get().is_some_and(|keeper| (keeper.is_of_crashed)(kept))
}
