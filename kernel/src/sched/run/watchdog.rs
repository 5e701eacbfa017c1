//! The watchdog: a core that makes no progress is noticed. What is done about it is a setting.
//!
//! Every core looks now and then, in the interrupt of its timer; an idle one wakes for it.
//!
//! - **At the core after it**, in a ring. Each interrupt of a timer, and each way into and out of idleness, begins an interval of that
//!   core's time sheet. In a turn the slices end, so a core that is not idle and whose interval is the same again and again
//!   has interrupts masked, or has lost its way before its timer was armed.
//! - **At itself.** What was interrupted is a turn that can be preempted, or its loop has looked at its timers since the last interrupt
//!   that asked for it; otherwise it is somewhere with preemption disabled. One core alone can notice that, too.
//!
//! A turn that goes on for ever is progress: it can be preempted. So are a core that is idle, or out of service; nobody is judged while
//! cores stand still for a collection, or the system stops.

use spin::Once;

use crate::arch::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::arch::{MAX_CORES, barrier, clock};
use crate::mem::stack::StackBlock;
use crate::sched::cores::{self, Core, calls};
use crate::sched::place::wake;
use crate::sched::policy::settings::{self, Setting};
use crate::sched::policy::suspicion::{Suspicion, interval};
use crate::sched::policy::watchdog::WatchdogAction;
use crate::sched::run::look_round;
use crate::text;

/// The longest time between two looks: the hardware's watchdog, where there is one, waits for twice as long.
const MOST_SECONDS: u64 = 7;

/// One core's part. Relaxed: written and read by that core, with interrupts masked.
struct Post {
    /// When it looks next, in clock ticks.
    next: AtomicU64,
    /// Whether there was a sign of its own life since it looked last.
    lives: AtomicBool,
    itself: Suspicion,
    neighbour: Suspicion,
}

static POSTS: [Post; MAX_CORES] = [const {
    Post {
        next: AtomicU64::new(0),
        lives: AtomicBool::new(false),
        itself: Suspicion::new(),
        neighbour: Suspicion::new(),
    }
}; MAX_CORES];

/// How often a core was found to be stuck.
static FOUND: AtomicU64 = AtomicU64::new(0);
/// The machine is to start again after the panic.
static RESTARTS: AtomicBool = AtomicBool::new(false);
/// Tells the hardware's watchdog that all is well, or that it is not needed any more.
static HARDWARE: Once<fn(bool)> = Once::new();
/// Every core looks. For a while longer than the setting says so: until one has seen that.
static AT_WORK: AtomicBool = AtomicBool::new(false);

/// Uses the hardware's watchdog as well: it waits for 15 seconds at least.
pub fn use_hardware(tell: fn(bool)) {
    HARDWARE.call_once(|| tell);
}

/// How often a core was found to be stuck.
pub fn found() -> u64 {
    // Relaxed: a number.
    FOUND.load(Ordering::Relaxed)
}

/// Whether the kernel's panic is to end in a restart.
pub fn restarts() -> bool {
    // Relaxed: written by this core.
    RESTARTS.load(Ordering::Relaxed)
}

/// Whether there is anything to do: see [`look`].
#[inline(always)]
pub(super) fn is_on() -> bool {
    // Relaxed: the barriers are in `begin`, and where a core announces that it sleeps.
    settings::get(Setting::WatchdogMicroseconds) != 0 || AT_WORK.load(Ordering::Relaxed)
}

/// When this core, which is about to sleep, looks next, in clock ticks.
pub(super) fn next_look(core: &Core) -> Option<u64> {
    is_on().then(|| POSTS[core.id().index()].next.load(Ordering::Relaxed))
}

/// The core's timer has fired, with interrupts masked, and its loop was not told yet.
#[cold]
#[inline(never)]
pub(super) fn look(core: &Core) {
    let post = &POSTS[core.id().index()];
    // The handler holds it once, as the loop does that waits.
    let can_be_preempted = StackBlock::current().preempt().load() == 1;
    if can_be_preempted || !core.is_asked_for_timers() {
        post.lives.store(true, Ordering::Relaxed);
    }
    let now = clock::now();
    if now < post.next.load(Ordering::Relaxed) {
        return;
    }
    let limit = settings::ticks(Setting::WatchdogMicroseconds);
    let most = MOST_SECONDS * clock::frequency();
    let interval = interval(limit, settings::ticks(Setting::SliceMicroseconds), most);
    post.next.store(now + interval, Ordering::Relaxed);
    // Relaxed: who changes it first is the one.
    if AT_WORK.swap(limit != 0, Ordering::Relaxed) != (limit != 0) && limit != 0 {
        begin(core);
    }
    if let Some(hardware) = HARDWARE.get() {
        hardware(limit != 0);
    }
    let lives = post.lives.swap(false, Ordering::Relaxed);
    if limit == 0 || calls::all() & (calls::STOP | calls::HALT) != 0 || look_round::is_under_way() {
        return;
    }
    if post.itself.look(if lives { None } else { Some(0) }) {
        act(core, &post.itself);
    } else if let Some(neighbour) = after(core)
        && post.neighbour.look(neighbour.statistics.time.busy_since())
    {
        act(neighbour, &post.neighbour);
    }
}

/// The watchdog was switched on: cores that sleep already are to wake for it from now on.
fn begin(core: &Core) {
    // Whoever announces its sleep after what is seen below sees the setting, and has armed its timer for its look.
    barrier::full();
    cores::all().filter(|other| other.id() != core.id()).for_each(|other| {
        wake::wake(other);
    });
}

/// The next core in the ring; itself if it is alone.
fn after(core: &Core) -> Option<&'static Core> {
    let from = core.id().index() + 1;
    let next =
        (from + cores::started().rotate_right(from as u32).trailing_zeros() as usize) % u64::BITS as usize;
    cores::get(next)
}

/// Does what is to be done about that core.
fn act(stuck: &Core, suspicion: &Suspicion) {
    let (number, limit) = (stuck.id().index(), settings::get(Setting::WatchdogMicroseconds) / 1_000);
    let action = WatchdogAction::of_number(settings::get(Setting::WatchdogAction));
    if action != WatchdogAction::Dump {
        RESTARTS.store(action == WatchdogAction::Restart, Ordering::Relaxed);
        panic!("watchdog: core {number} has made no progress for {limit} ms");
    }
    let say = || text!("watchdog: core {number} has made no progress for {limit} ms");
    // SAFETY: in the interrupt of the timer, or in the loop that waits for it with interrupts masked.
    if unsafe { look_round::look_round(&say) } {
        FOUND.fetch_add(1, Ordering::Relaxed);
    } else {
        suspicion.put_off();
    }
}
