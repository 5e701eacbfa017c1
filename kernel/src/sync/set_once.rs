//! Setting a value once, where whoever sets it may be preempted, or killed.
//!
//! A `Once` that is being set makes all others who would set it wait, in a loop. If the one that sets it is put aside in the middle, they wait
//! as long as that; if it is killed there, for ever, and with them their cores. So preemption is disabled meanwhile.

use spin::Once;

use super::PreemptGuard;

/// Sets it to what `make` makes, which is short, unless it was set before.
pub(crate) fn set_once<T>(once: &Once<T>, make: impl FnOnce() -> T) {
    if !once.is_completed() {
        let _whole = PreemptGuard::new();
        once.call_once(make);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::set_once;
    use crate::sync::preemption_is_disabled;
    use spin::Once;

    #[test]
    fn whoever_sets_it_is_not_put_aside_in_the_middle() {
        let once = Once::new();
        assert!(!preemption_is_disabled());
        set_once(&once, preemption_is_disabled);
        assert_eq!(once.get(), Some(&true));
        assert!(!preemption_is_disabled());
        set_once(&once, || false);
        assert_eq!(once.get(), Some(&true));
    }
}
