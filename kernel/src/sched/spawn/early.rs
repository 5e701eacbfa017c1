//! What a core's loop does for a moment that has not quite come (`time/timers/lead.rs`).
//!
//! A message may be put into a mailbox before its moment if nobody but this core handles what is there, in a turn that begins later than
//! this: that turn is held until the moment. Anything else waits for its moment first, here, in the loop: no longer than the lead.

use crate::sched::cores::Core;
use crate::sync::PreemptGuard;
use crate::time;

/// Called for a delayed call that has fired, before it is carried out: it is for `moment`, in clock ticks. Whether it goes no further than
/// into the next turn of a resident that is pinned to a core, `stays` says of that core: then residents' turns are held there. Otherwise returns when the
/// moment has come.
#[inline(always)]
pub(super) fn begin(moment: u64, stays: impl FnOnce(&'static Core) -> bool) {
    let here = PreemptGuard::new();
    if !time::is_ahead(moment) {
        return;
    }
    if Core::current(&here).is_none_or(|core| !core.held.may_go_first(moment, stays(core))) {
        time::hold_until(moment);
    }
}
