//! Idle: search, announce, look again, doze, sleep. The wakers' half is in `place/wake.rs`.
//!
//! A core with nothing to run
//! 1. searches the others for work that may leave (see `policy/sharing.rs`), if not enough others do so already;
//! 2. announces that it is idle (its [`IdleFlag`](crate::sched::cores::idle_flag::IdleFlag), and the mask of idle cores),
//!    **full barrier**;
//! 3. looks again at everything a waker could have changed before it could see the announcement;
//! 4. dozes for a short while (WFE), announces that it sleeps, looks again, and sleeps (WFI, ended by an
//!    SGI or the timer);
//! 5. goes on when something has come. While it dozes or sleeps an interrupt's handler may use its queues. What an interrupt has chosen has the next
//!    turn; what it has raised for somebody urgent, for which it has set no flag because the core waits, is carried out first;
//! 6. begins anew after `share.wait_us` while others are busy, because what it saw waiting may leave by then; the next
//!    time after twice as long, `share.looks` times. Then it sleeps until it is woken, and executes nothing.

use crate::arch::atomic::{AtomicBool, Ordering};
use crate::arch::{clock, cpu, irq, timer};
use crate::mem::heap::HEAP;
use crate::mem::stack::StackBlock;
use crate::sched::cores::idle_flag::Depth;
use crate::sched::cores::{self, Core, ThisCore, calls};
use crate::sched::place::{self, pick, wake};
use crate::sched::policy::settings::{self, Setting};
use crate::sched::process::Runnable;
#[cfg(target_os = "none")]
use crate::sched::run::watchdog;
use crate::sched::run::{attention, out_of_work, start, steal};
use crate::sched::spawn::residents;
use crate::stats::Activity;
use crate::time;
use crate::time::comparator;
use crate::trace::{self, Kind};

/// How often a core that sees work it fails to get tries again before it sleeps all the same. The owner
/// of that work looks again at the end of its slice.
const FRUITLESS_SEARCHES: u32 = 4;

/// Whether it would, or something was raised while it waits.
// Out of line, for the size of an image.
#[inline(never)]
fn is_given_work(core: &Core) -> bool {
    finds_work(core) || core.raised.has_urgent()
}

/// What this core itself would find to do, but for what was raised while it waits.
fn finds_work(core: &Core) -> bool {
    timer_is_due(core)
        || pick::was_told_of_work(core)
        || core.called_to_steal.load(Ordering::Relaxed) != 0
        || calls::all() != 0
}

fn timer_is_due(core: &Core) -> bool {
    // Relaxed: set by this core's own interrupt.
    core.timer_due.load(Ordering::Relaxed) != 0
        || time::next_deadline(core.id()).is_some_and(|at| at <= clock::now())
}

/// The core has nothing to run: returns when it may have. Then with what has its next turn, if an interrupt has chosen that and nothing
/// else wants a look.
// Out of line, as are its parts: what the loops around them keep in registers would be made again behind a device's handler.
#[inline(never)]
pub(crate) fn idle(core: &ThisCore<'_>) -> Option<Runnable> {
    // Mail elsewhere is left to a core that was called and to the one that watches; a worker that has run dry has
    // looked for itself.
    let mut looks = core.watches.replace(false);
    core.note_interrupts();
    for _ in 0..FRUITLESS_SEARCHES {
        // Relaxed: set by whoever called this core, before the claim that this core has acquired since.
        if core.called_to_steal.load(Ordering::Relaxed) != 0 {
            core.called_to_steal.store(0, Ordering::Relaxed);
            core.looks.set(0);
            looks = true;
        }
        if steal::search(core) {
            enter(core, Activity::Running);
            return None;
        }
        wake::announce(core, Depth::Doze);
        let stealable = steal::has_candidate(core);
        let surplus = looks && has_surplus(core);
        if !finds_work(core) && !stealable && !surplus {
            break;
        }
        out_of_work::leave_idleness(core);
        // A timer that has become due meanwhile is the loop's, and not to wait for more searches.
        if pick::was_told_of_work(core) || timer_is_due(core) {
            enter(core, Activity::Running);
            return None;
        }
        if surplus {
            // The residents search the others' mailboxes; this core's loop searches their queues.
            core.next_wake_of_residents.set(clock::now() + settings::ticks(Setting::ShareWaitMicroseconds));
            residents::wake_all_of(core);
            enter(core, Activity::Running);
            return None;
        }
    }
    let began = enter(core, Activity::Idle);
    place::note_none_waits(core);
    wake::announce(core, Depth::Doze);
    if !finds_work(core) && !out_of_work::check(core) {
        core.waits.set(true);
        doze(core);
        sleep(core);
        core.waits.set(false);
    }
    out_of_work::leave_idleness(core);
    core.note_awake();
    // Unless a device's handler has ended the wait, and has said so.
    if core.statistics.time.is_idle() {
        let now = enter(core, Activity::Running);
        let ticks = u32::try_from(now.saturating_sub(began)).unwrap_or(u32::MAX);
        trace::note_if_on(Kind::Awake, 0, ticks, None);
    }
    // As the loop does before it looks: what asks from here on is for the turn that is chosen there.
    StackBlock::current().preempt().clear_request();
    // Nobody has asked the loop to look at it, because this comes first. Not before idleness was left: what waits in that list counts as work, and so
    // does what it leads to, but between the two it is nowhere.
    attention::carry_out_urgent(core);
    // What was killed and waits does not come before it: nothing urgent waits besides, beside which that would have to be looked for (`ending`).
    if core.queue.wants_urgent_look() { None } else { core.take_chosen() }
}

/// Whether the residents of this core would find mail that may leave its core. Not again right after they were told: it
/// may have been taken by the time they looked.
fn has_surplus(core: &Core) -> bool {
    let now = clock::now();
    // First the look, which notes what it sees.
    residents::any_surplus(now) && now >= core.next_wake_of_residents.get()
}

/// Whether a core sleeps only until it looks again. One at a time, after the same rule as for thieves: if it finds work,
/// and sees more, it wakes the next.
static WATCHED: AtomicBool = AtomicBool::new(false);

/// When this core looks again for what may leave others, if it is the one that does. No core does when none is busy,
/// nor does a core that is out of service.
fn next_look(core: &Core) -> Option<u64> {
    let looks = core.looks.get();
    let is_online = cores::online() & core.mask() != 0;
    if !is_online || cores::count() == 1 || wake::idle_cores() & cores::started() == cores::started() {
        return None;
    }
    let most = settings::get(Setting::ShareLooks);
    if u64::from(looks) >= most && timer::INTERRUPTS {
        return None;
    }
    // Relaxed: it limits, and orders nothing.
    if WATCHED.swap(true, Ordering::Relaxed) {
        return None;
    }
    core.watches.set(true);
    core.looks.set(looks + 1);
    let doubled = u64::from(looks).min(most.saturating_sub(1)).min(16);
    Some(clock::now() + (settings::ticks(Setting::ShareWaitMicroseconds) << doubled))
}

fn doze(core: &Core) {
    let end = clock::now() + settings::ticks(Setting::DozeMicroseconds);
    core.statistics.dozes.bump();
    // A timer that is due ends it, too: whoever waits for that is not to wait for the end of the doze.
    // What comes between the look and the wait ends that: an interrupt, as its return is an event.
    while core.idle.depth().is_some() && clock::now() < end && !is_given_work(core) {
        cpu::wait_for_event();
    }
}

fn sleep(core: &ThisCore<'_>) {
    if core.idle.depth().is_none() || is_given_work(core) {
        return;
    }
    wake::announce(core, Depth::Sleep);
    // First these, because an interrupt in between would arm the timer for them.
    core.slice_end.set(0);
    core.next_look.set(0);
    let own = next_look(core).into_iter();
    #[cfg(target_os = "none")]
    let own = own.chain(watchdog::next_look(core));
    comparator::arm(own.chain(time::next_deadline(core.id())));
    core.statistics.sleeps.bump();
    trace::note(Kind::Sleeps, 0, 0, None);
    // SAFETY: this is the core's loop. To look at queues and timers takes no memory, and interrupt handlers use the heap
    // only when they interrupt what can be preempted.
    let lent = unsafe { HEAP.lend_cache(core.here()) };
    while core.idle.depth().is_some() && !is_given_work(core) {
        // A device's handler has said that the core goes on, and it does not.
        if !core.statistics.time.is_idle() {
            enter(core, Activity::Idle);
        }
        // What is urgent and has been chosen, or raised, need not be looked for.
        if wait_for_interrupt(core) && (core.chosen.is_some() || core.raised.has_urgent()) {
            break;
        }
    }
    drop(lent);
    if core.watches.get() {
        // Relaxed: as in `next_look`.
        WATCHED.store(false, Ordering::Relaxed);
    }
}

/// From now on time counts as `activity`. Returns what the clock says.
// Out of line, for there are many callers.
#[inline(never)]
fn enter(core: &Core, activity: Activity) -> u64 {
    core.enter(activity).1
}

/// Waits until the core is interrupted, and takes that, unless there is something to do already. Whether something may have been chosen, or raised, since.
// Out of line: in the loop around it the compiler would keep addresses in registers, and make them again behind the handler.
#[inline(never)]
fn wait_for_interrupt(core: &ThisCore<'_>) -> bool {
    // With interrupts masked, one that arrives between the look and WFI stays pending and ends it.
    irq::disable();
    let mut is_timer = false;
    if core.idle.depth().is_some() && !is_given_work(core) {
        cpu::wait_for_interrupt();
        // The core's own timer is what is waited for most, and its interrupt would find no turn to look at.
        is_timer = timer::take_due();
        if is_timer {
            attention::note_timer(core);
        } else {
            // Nor would any other: the core's loop looks at all that it may have brought.
            match irq::take_pending() {
                Some(device) => {
                    start::on_awaited_device(core, device.number());
                    device.end();
                    // A trace is to show the end of the wait as that of any other.
                    if trace::is_on() {
                        enter(core, Activity::Idle);
                    }
                }
                None => {
                    core.take_masked();
                }
            }
        }
    }
    // SAFETY: the core loop runs with interrupts unmasked; they were masked above. The interrupt is taken here.
    unsafe { irq::enable() };
    !is_timer
}
