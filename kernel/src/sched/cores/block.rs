//! A core's block: its queues, its idle state, and what it is doing.
//!
//! Read by everyone through references; the fields in `Cell`s are touched by the core itself only, with
//! preemption disabled or from its interrupts.

use core::cell::Cell;
use core::ptr;

use super::beneath::Beneath;
use super::chosen::Chosen;
use super::handover::{Handover, Report};
use super::held::Held;
use super::idle_flag::IdleFlag;
use super::in_turn::InTurn;
use super::longest::Open;
use super::remains::Remains;
use crate::arch::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::arch::handlers::Fault;
use crate::arch::{CoreId, MAX_CORES, clock, percpu};
use crate::in_place::write_fields;
use crate::mem::kernel_box_in_place;
use crate::mem::stack::StackRef;
use crate::random::Random;
use crate::roll::Roll;
use crate::sched::cores::raised::Raised;
use crate::sched::cores::run_queue::RunQueue;
use crate::sched::policy::migration::TargetHistory;
use crate::sched::policy::pace::Pace;
use crate::sched::policy::{sharing, victim};
use crate::sched::process::{Header, Priority, ProcessRef};
use crate::stats::{self, Activity, CoreStatistics};
use crate::sync::PreemptGuard;

/// What a thief has taken last.
pub(crate) struct Robbed {
    /// Whom it has taken from.
    pub victim: &'static Core,
    /// When, in clock ticks.
    pub at: u64,
    /// Until when it must have been busy with that, for it to have been worth it.
    pub enough: u64,
}

/// One core.
#[repr(C)]
pub(crate) struct Core {
    /// First, where `arch::percpu::core_number` reads it.
    number: u64,
    id: CoreId,
    mask: u64,
    /// Its announcement that it waits.
    pub idle: IdleFlag,
    pub statistics: &'static CoreStatistics,
    /// Whether a process runs now, as opposed to the loop itself, and how many slice ends its turn has seen.
    pub in_turn: InTurn,
    /// When nothing is left of the share of what runs here, in clock ticks, if that has one. Its loop's, and read by interrupts here.
    pub share_end: Cell<u64>,
    /// The timer's interrupt, or one that has raised something, asks the core loop to look at its timers and at what was raised: 1. The
    /// loop itself asks for another round: 2.
    pub timer_due: AtomicU32,
    /// How often in a row its loop has put off looking at everything, because something urgent waited.
    pub put_off: Cell<u32>,
    /// Another core has woken this one so that it comes and steals.
    pub called_to_steal: AtomicU32,
    /// For how long more than one process has been here.
    pub crowd: sharing::Crowd,
    /// Whether taking from it pays.
    pub worth: sharing::Worth,
    /// As a thief: whom it has taken from, if its next turn is to tell whether that was worth it.
    pub taken_from: Cell<Option<CoreId>>,
    /// As a thief: what it has taken last, until it has nothing to do again.
    pub robbed: Cell<Option<Robbed>>,
    /// Of how many kills this core has heard, see `run/ending.rs`.
    pub kills_heard: Cell<u32>,
    /// How often it still looks for what was killed.
    pub looks_for_killed: Cell<usize>,
    /// Until then, in clock ticks, what was killed may drop what it owns although something urgent waits.
    pub granted_until: Cell<u64>,
    /// The turn that begins is for the end of what is suspended.
    pub is_swept: Cell<bool>,
    /// How often it has looked for work elsewhere and found none since it last ran anything.
    pub looks: Cell<u32>,
    /// It sleeps only until it looks again.
    pub watches: Cell<bool>,
    /// When it may have its residents search the others' mailboxes again, in clock ticks.
    pub next_wake_of_residents: Cell<u64>,
    /// When the timer checks again whether something waits behind the turn in progress; 0: it does not.
    pub next_look: Cell<u64>,
    /// From when on the end of a slice begins with another such check, in clock ticks.
    pub looks_from: Cell<u64>,
    /// When the slice in progress ends, in clock ticks; 0 when none is being counted.
    pub slice_end: Cell<u64>,
    /// How long a slice was when one was counted anew, as the setting said it, and in clock ticks: so that nobody who is woken multiplies.
    pub slice_setting: Cell<u64>,
    pub slice_ticks: Cell<u64>,
    /// What interrupts here have raised.
    pub raised: Raised,
    /// The interrupt in progress has judged a resident's turn at the end of a slice, and leaves the rest to the next one, which it has asked for if
    /// there is any.
    pub has_judged: Cell<bool>,
    /// How often memory had been short when a slice last ended in a resident's turn here.
    pub shortages: Cell<u32>,
    /// Deep in an interrupt: the owner's side of the queues must not be touched, unless the loop waits.
    pub in_interrupt: Cell<bool>,
    /// That interrupt has met a turn, which its end may leave, or the end of the turn's section.
    pub has_met_turn: Cell<bool>,
    /// Its loop dozes or sleeps, and does no more to its queues than to look at them. What is urgent and raised meanwhile asks for no attention.
    pub waits: Cell<bool>,
    /// What a preemption or a crash leaves to the fresh core loop.
    pub handover: Cell<Handover>,
    /// The stack that a resumption leaves behind, to give back.
    pub left_stack: Cell<Option<StackRef>>,
    /// The stack that its loop goes on with when a turn is suspended and no other stack is left.
    pub reserve: Cell<Option<StackRef>>,
    /// Its loop runs on the core's last stack: that one, or another while that is in use.
    pub on_reserve: Cell<bool>,
    /// How the code has faulted that a fresh core loop finds crashed, and what says so.
    pub fault: Cell<Option<(Fault, Report)>>,
    /// What crashed code has left on a stack that is to be given back.
    pub remains: Cell<Option<Remains>>,
    /// Its loop has come to stand still, see `sched/run/halt.rs`.
    pub stands: Cell<bool>,
    /// How many processes in a row it gave no turn because no stack was free.
    pub passed_over: Cell<u64>,
    /// The resident that is to give back what it has in hand, since when it is, in clock ticks, and how urgent; 0: there is none. See
    /// `run/give_back.rs`.
    pub gives_back: Cell<Option<ProcessRef>>,
    pub gives_back_from: Cell<u64>,
    pub gives_back_as: Cell<Priority>,
    /// What has the next turn, and is in no queue.
    pub chosen: Chosen<Header>,
    /// No turn of a resident begins before this. See `spawn/early.rs`.
    pub held: Held,
    /// When the turn before ended, if the next can begin with that: the clock is read once for both. 0: it cannot.
    pub turn_ended_at: Cell<u64>,
    /// When the turn in progress began, and other stretches whose length is of interest.
    pub(super) open: Open,
    /// The turn that lies beneath the one in progress, and is in no queue.
    pub beneath: Beneath,
    /// Whether its own queue comes before the global one next time.
    pub own_is_next: Cell<bool>,
    /// What the core draws. Owner only.
    pub random: Random,
    /// What it has said last of itself, see [`note_waiting`](crate::sched::place::note_waiting). Owner only.
    pub is_crowded: Cell<bool>,
    /// As a thief: what it has learnt of its victims.
    pub memory: victim::Memory,
    /// As the target of moves, for the policy.
    pub history: TargetHistory,
    pub pace: Pace,
    robbed_at: AtomicU64,
    /// When another core woke it, in clock ticks; 0 when nobody has since it went on.
    woken_at: AtomicU64,
    /// The processes that were first seen there.
    pub(super) roll: Roll,
    /// Last, because it is large.
    pub queue: RunQueue,
}

// SAFETY: the `Cell`s are only used by the core itself (see the head of this file), everything else is
// atomic or immutable.
unsafe impl Sync for Core {}
// SAFETY: as above; a core's block is made on one core and used on another before that one starts.
unsafe impl Send for Core {}

static CORES: [AtomicPtr<Core>; MAX_CORES] = [const { AtomicPtr::new(core::ptr::null_mut()) }; MAX_CORES];
static COUNT: AtomicUsize = AtomicUsize::new(0);
static ONLINE: AtomicU64 = AtomicU64::new(0);
static STARTED: AtomicU64 = AtomicU64::new(0);

/// How many cores the scheduler was started with.
pub(crate) fn count() -> usize {
    // Relaxed: written once, before any other core runs.
    COUNT.load(Ordering::Relaxed)
}

/// The cores that take work, as a mask.
pub(crate) fn online() -> u64 {
    // Relaxed: placement that misses a change is corrected by the core that goes offline.
    ONLINE.load(Ordering::Relaxed)
}

/// The cores that have ever taken work, as a mask: in service now or not.
pub(crate) fn started() -> u64 {
    // Relaxed: grows only; whoever must not miss a core has read the epoch that it moved after this (`Quiescence::enter`).
    STARTED.load(Ordering::Relaxed)
}

/// A core takes part from now on.
pub(crate) fn start(core: CoreId) {
    STARTED.fetch_or(core.mask(), Ordering::AcqRel);
    set_online(core, true);
}

/// The cores that were made, as a mask.
pub(crate) fn existing() -> u64 {
    match count() {
        0 => 0,
        count => u64::MAX >> (MAX_CORES - count),
    }
}

pub(crate) fn set_online(core: CoreId, online: bool) {
    if online {
        ONLINE.fetch_or(core.mask(), Ordering::AcqRel);
    } else {
        ONLINE.fetch_and(!core.mask(), Ordering::AcqRel);
        // It hands on what it has.
        if let Some(core) = get(core.index()) {
            core.ask_attention();
        }
    }
}

/// The core with this number, if it was made.
pub(crate) fn get(index: usize) -> Option<&'static Core> {
    // Acquire: pairs with the release in `install`.
    let core = CORES.get(index)?.load(Ordering::Acquire);
    // SAFETY: blocks are leaked in `install` and never freed.
    unsafe { core.as_ref() }
}

/// All cores that were made.
pub(crate) fn all() -> impl Iterator<Item = &'static Core> {
    (0..count()).filter_map(get)
}

/// Those of a mask.
pub(crate) fn of_mask(mut mask: u64) -> impl Iterator<Item = &'static Core> {
    core::iter::from_fn(move || {
        let index = mask.trailing_zeros() as usize;
        // Nothing to take away when none is left.
        mask &= mask.wrapping_sub(1);
        get(index)
    })
}

/// Makes `cores` core blocks. Returns how many could be made: fewer when memory runs out.
pub(crate) fn install(cores: usize) -> usize {
    let mut made = 0;
    for id in (0..cores).filter_map(CoreId::new) {
        // SAFETY: `init` makes a core at the place that it is handed.
        let Ok(core) = (unsafe { kernel_box_in_place(|place| Core::init(place, id)) }) else { break };
        let core = alloc::boxed::Box::leak(core);
        // An interrupt that is to enter somebody takes no memory.
        core.roll.grow();
        // Release: pairs with the acquire in `get`.
        CORES[id.index()].store(ptr::from_ref(core).cast_mut(), Ordering::Release);
        made += 1;
    }
    COUNT.store(made, Ordering::Relaxed);
    made
}

impl Core {
    /// # Safety
    /// The place is fit to be written.
    unsafe fn init(place: *mut Self, id: CoreId) {
        // SAFETY: the caller promised a place fit to be written.
        unsafe {
            write_fields!(place => Self {
                number: id.index() as u64,
                id: id,
                mask: id.mask(),
                idle: IdleFlag::new(),
                statistics: stats::core(id),
                in_turn: InTurn::new(),
                share_end: Cell::new(u64::MAX),
                timer_due: AtomicU32::new(0),
                put_off: Cell::new(0),
                called_to_steal: AtomicU32::new(0),
                crowd: sharing::Crowd::new(),
                // A new process is assumed to run long until some turned out not to.
                worth: sharing::Worth::new(true),
                taken_from: Cell::new(None),
                robbed: Cell::new(None),
                kills_heard: Cell::new(0),
                looks_for_killed: Cell::new(0),
                granted_until: Cell::new(0),
                is_swept: Cell::new(false),
                looks: Cell::new(0),
                watches: Cell::new(false),
                next_wake_of_residents: Cell::new(0),
                next_look: Cell::new(0),
                looks_from: Cell::new(0),
                slice_end: Cell::new(0),
                slice_setting: Cell::new(0),
                slice_ticks: Cell::new(0),
                raised: Raised::new(),
                has_judged: Cell::new(false),
                shortages: Cell::new(0),
                in_interrupt: Cell::new(false),
                has_met_turn: Cell::new(false),
                waits: Cell::new(false),
                handover: Cell::new(Handover::Nothing),
                left_stack: Cell::new(None),
                reserve: Cell::new(None),
                on_reserve: Cell::new(false),
                fault: Cell::new(None),
                remains: Cell::new(None),
                stands: Cell::new(false),
                passed_over: Cell::new(0),
                gives_back: Cell::new(None),
                gives_back_from: Cell::new(0),
                gives_back_as: Cell::new(Priority::Normal),
                chosen: Chosen::new(),
                held: Held::new(),
                turn_ended_at: Cell::new(0),
                open: Open::new(),
                beneath: Beneath::new(),
                own_is_next: Cell::new(false),
                is_crowded: Cell::new(false),
                random: Random::new(self::seed(), id.index()),
                memory: victim::Memory::new(),
                history: TargetHistory::new(),
                pace: Pace::new(),
                robbed_at: AtomicU64::new(0),
                woken_at: AtomicU64::new(0),
                roll: Roll::new(),
            } in place {
                queue: RunQueue::init,
            });
        }
    }

    /// The core that runs the caller, or `None` on a thread that is no core (before the scheduler
    /// starts, or on the host).
    #[inline(always)]
    pub(crate) fn current(_here: &PreemptGuard) -> Option<&'static Self> {
        // SAFETY: a core's block pointer is null or that of a leaked `Core`.
        unsafe { percpu::core_block().cast::<Self>().as_ref() }
    }

    /// The core that runs the caller, which is its core loop or an interrupt on it.
    ///
    /// # Safety
    /// Preemption is disabled, and the scheduler runs on this core.
    #[inline(always)]
    pub(crate) unsafe fn this() -> &'static Self {
        // SAFETY: by contract the block was set, to a leaked `Core`.
        unsafe { &*percpu::core_block().cast::<Self>() }
    }

    /// Whether this is the core that runs the caller; for who does not mind that it may be another at once.
    pub(crate) fn is_here(&self) -> bool {
        core::ptr::eq(percpu::core_block().cast::<Self>(), self)
    }

    /// Whether the caller is a device's handler: one that has interrupted something, or for which the loop has waited.
    #[inline(always)]
    pub(crate) fn is_in_handler(&self) -> bool {
        self.in_interrupt.get() || self.waits.get()
    }

    pub(crate) fn id(&self) -> CoreId {
        self.id
    }

    /// Itself, as a mask of cores.
    #[inline(always)]
    pub(crate) fn mask(&self) -> u64 {
        self.mask
    }

    /// The number as the machine reads it; keeps the first word in use.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Its loop is to look at everything before the next turn. The caller has made visible what is to be seen.
    pub(crate) fn ask_attention(&self) {
        self.queue.ask_attention();
    }

    /// Its loop is to look at its timers, and at what was raised.
    pub(crate) fn ask_for_timers(&self) {
        // Relaxed: asked on this core, by its interrupts and by code that has disabled preemption, and read by its own loop.
        self.timer_due.store(1, Ordering::Relaxed);
        self.ask_attention();
    }

    /// Whether it was asked by an interrupt, and has not looked since.
    #[cfg(target_os = "none")]
    pub(crate) fn is_asked_for_timers(&self) -> bool {
        self.timer_due.load(Ordering::Relaxed) == 1
    }

    /// Its load: what waits, and one for what runs.
    pub(crate) fn load(&self) -> u64 {
        // Relaxed: an estimate.
        self.queue.stealable() as u64 + u64::from(self.in_turn.is_in())
    }

    /// When a thief last tried it, in clock ticks.
    pub(crate) fn robbed_at(&self) -> u64 {
        // Relaxed: a hint.
        self.robbed_at.load(Ordering::Relaxed)
    }

    /// A thief has just tried it.
    pub(crate) fn note_robbed(&self) {
        // Relaxed: as above.
        self.robbed_at.store(clock::now(), Ordering::Relaxed);
    }

    /// Another core has woken it from idleness.
    pub(crate) fn note_woken(&self) {
        // Relaxed: a statistic; the wake-up itself orders it before the core goes on.
        self.woken_at.store(clock::now(), Ordering::Relaxed);
    }

    /// It goes on after having been idle. Owner only.
    pub(crate) fn note_awake(&self) {
        // Relaxed: as above.
        let woken = self.woken_at.load(Ordering::Relaxed);
        if woken != 0 {
            self.woken_at.store(0, Ordering::Relaxed);
            self.statistics.wake_latency.record(clock::now().saturating_sub(woken));
        }
    }

    /// From now on time counts as `activity`. Owner only. Returns what it counted as until now, and what the clock says.
    pub(crate) fn enter(&self, activity: Activity) -> (Activity, u64) {
        let (before, now) = self.statistics.time.enter(activity);
        #[cfg(feature = "traced")]
        if crate::trace::is_on() {
            self.note_traced_activity(before, activity, now);
        }
        (before, now)
    }
}

static SEED: AtomicU64 = AtomicU64::new(1);

/// The seed of every core's random numbers, set before the cores are made.
pub(crate) fn set_seed(seed: u64) {
    // Relaxed: set once, before any other core runs.
    SEED.store(seed, Ordering::Relaxed);
}

fn seed() -> u64 {
    SEED.load(Ordering::Relaxed)
}
