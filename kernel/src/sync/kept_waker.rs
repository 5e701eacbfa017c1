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

/// Takes what is kept out of a place that outlives it, and leaves no address there, as `take` does: to a collection of what crashed code had
/// that would be a pointer to whatever lies there later.
pub fn take_kept(place: &mut Option<Waker>) -> Option<Waker> {
    const WORDS: usize = size_of::<Option<Waker>>() / size_of::<usize>();
    let kept = place.take();
    // Volatile, or the compiler could leave it out: of what is none the address says nothing.
    // SAFETY: so many words are the place's, which has nothing to drop, and has a value again afterwards.
    unsafe {
        (&raw mut *place).cast::<[usize; WORDS]>().write_volatile([0; WORDS]);
        (&raw mut *place).write(None);
    }
    kept
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

#[cfg(test)]
pub(super) mod tests {
    use super::take_kept;
    use alloc::sync::Arc;
    use alloc::task::Wake;
    use core::task::Waker;

    struct Nobody;

    impl Wake for Nobody {
        fn wake(self: Arc<Self>) {}
    }

    /// A waker, and its address.
    pub fn waker_of_nobody() -> (Waker, usize) {
        let waker = Waker::from(Arc::new(Nobody));
        let address = waker.data().addr();
        (waker, address)
    }

    /// Whether either word of a place that has had a waker is that address.
    pub fn leads_to(place: &Option<Waker>, address: usize) -> bool {
        // SAFETY: a waker is two words, and the place has had one.
        let left: [usize; 2] = unsafe { (&raw const *place).cast::<[usize; 2]>().read_volatile() };
        left.contains(&address)
    }

    #[test]
    fn nothing_is_left_of_what_was_taken() {
        let (waker, address) = waker_of_nobody();
        let mut place = Some(waker);
        assert!(leads_to(&place, address));
        assert!(take_kept(&mut place).is_some_and(|taken| taken.data().addr() == address));
        assert!(place.is_none());
        assert!(!leads_to(&place, address), "the address of what was kept is left in the place");
        assert!(take_kept(&mut place).is_none());
    }
}
