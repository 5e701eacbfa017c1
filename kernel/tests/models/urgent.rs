//! What is urgent and comes from another core is seen by its core, or its core is interrupted and leaves its turn; and what a
//! turn was asked to give away is not left to the next.
//!
//! A core takes its interrupts between its own steps, wherever one may come: [`Core::interrupts`]. What has not come when its steps
//! are over comes then, in a turn that goes on for ever.

use magpie::internals::arch::atomic::{AtomicBool, AtomicU64, Ordering};
use magpie::internals::arch::barrier;
use magpie::internals::sync::{Depth, Found, IdleFlag, InTurn, PreemptWord, ReadyMask, decide};

use crate::harness::{Model, Mutant, ordering, step};
use crate::tool::{Arc, Task, mutant, run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "urgent::between_two_turns",
        preemptions: None,
        body: between_two_turns,
        mutants: &[
            step("preempt-loop-unasked"),
            step("preempt-forgets-late"),
            step("preempt-begins-unasked"),
            step("urgent-asks-nobody"),
            step("urgent-asks-by-estimate"),
        ],
    },
    Model {
        name: "urgent::in_a_section",
        preemptions: None,
        body: in_a_section,
        mutants: &[step("preempt-one-word"), step("urgent-asks-nobody")],
    },
    Model {
        name: "urgent::at_a_sections_end",
        preemptions: None,
        body: at_a_sections_end,
        mutants: &[step("preempt-unrequested"), step("preempt-in-a-section")],
    },
    Model {
        name: "urgent::out_of_idleness",
        preemptions: None,
        body: out_of_idleness,
        mutants: &[ordering("retract-relaxed"), step("urgent-asks-nobody")],
    },
    Model {
        name: "urgent::out_of_service",
        preemptions: Some(2),
        body: out_of_service,
        mutants: &[step("offline-attended-once"), step("offline-no-second-look")],
    },
    Model {
        name: "urgent::looks_for_the_turn",
        preemptions: None,
        body: looks_for_the_turn,
        mutants: &[
            step("turn-keeps-request"),
            // It shows in the third turn alone, which random schedules seldom reach before the timer.
            Mutant { name: "turn-asked-in-loop", rejected_by: &["loom"] },
        ],
    },
];

/// Bits of the mask.
const NORMAL: u32 = 4;
const HIGH: u32 = 2;
const ATTENTION: u32 = 1 << 8;

/// What runs on the core.
const LOOP: u64 = 0;

/// Whether an interrupt has come, which is taken. Not by an exchange, because loom may forget what one finds: the core alone takes
/// it, and it is sent once.
fn is_taken(interrupt: &AtomicBool) -> bool {
    // Acquire: pairs with the sender's release.
    let has_come = interrupt.load(Ordering::Acquire);
    if has_come {
        interrupt.store(false, Ordering::Relaxed);
    }
    has_come
}

/// The core that something urgent comes to.
struct Core {
    ready: ReadyMask,
    idle: IdleFlag,
    in_turn: InTurn,
    word: PreemptWord,
    /// What waits with the priority `High`; taken by an exchange.
    waits: AtomicU64,
    /// Another core has taken what waited here.
    is_elsewhere: AtomicBool,
    is_online: AtomicBool,
    /// The turn that runs, by its number, or the loop. Its own, as what follows but for the interrupt.
    runs: AtomicU64,
    /// An interrupt that another core has sent.
    interrupt: AtomicBool,
    interrupt_has_come: AtomicBool,
    has_left: AtomicBool,
}

impl Core {
    fn new(runs: u64) -> Arc<Self> {
        let core = Self {
            ready: ReadyMask::new(),
            idle: IdleFlag::new(),
            in_turn: InTurn::new(),
            word: PreemptWord::new(u32::from(runs == LOOP)),
            waits: AtomicU64::new(0),
            is_elsewhere: AtomicBool::new(false),
            is_online: AtomicBool::new(true),
            runs: AtomicU64::new(runs),
            interrupt: AtomicBool::new(false),
            interrupt_has_come: AtomicBool::new(false),
            has_left: AtomicBool::new(false),
        };
        if runs != LOOP {
            core.in_turn.begin(false);
        }
        // Other work waits, too.
        core.ready.flag(NORMAL);
        Arc::new(core)
    }

    /// `enqueue::deliver` on another core: something urgent for this one, which is woken or interrupted.
    fn deliver(&self) {
        // Relaxed: the mask alone hands it over.
        self.waits.store(1, Ordering::Relaxed);
        self.ready.flag(HIGH);
        barrier::full();
        if self.idle.claim_after_fence().is_some() {
            return;
        }
        let is_asked = if mutant("urgent-asks-by-estimate") {
            self.in_turn.is_in()
        } else {
            !mutant("urgent-asks-nobody")
        };
        if is_asked {
            // Release: the interrupt comes after what was written before.
            self.interrupt.store(true, Ordering::Release);
        }
    }

    fn sends() -> Task<Self, bool> {
        task(|core: &Self| {
            core.deliver();
            true
        })
    }

    /// Where an interrupt may come.
    fn interrupts(&self) {
        if is_taken(&self.interrupt) {
            self.interrupt_has_come.store(true, Ordering::Relaxed);
            self.consider();
        }
    }

    fn runs_turn(&self) -> bool {
        // Relaxed: the core's own.
        self.runs.load(Ordering::Relaxed) != LOOP
    }

    /// `preempt::consider`.
    fn consider(&self) {
        let waits = self.ready.bits() & HIGH != 0 && self.waits.load(Ordering::Relaxed) != 0;
        let is_turn = self.runs_turn();
        if decide(&self.word, Found { is_turn, is_wanted: waits }) {
            assert!(is_turn && self.word.is_enabled(), "left in a section, or in the loop");
            self.has_left.store(true, Ordering::Relaxed);
        }
    }

    /// The loop looks what is next. Whether it takes what is urgent.
    fn picks_urgent(&self) -> bool {
        if mutant("preempt-forgets-late") {
            return self.looks_for_urgent() || {
                self.interrupts();
                self.word.clear_request();
                false
            };
        }
        self.word.clear_request();
        self.interrupts();
        self.looks_for_urgent()
    }

    fn looks_for_urgent(&self) -> bool {
        if self.ready.bits() & HIGH == 0 {
            return false;
        }
        self.waits.load(Ordering::Relaxed) != 0 && self.waits.swap(0, Ordering::Relaxed) != 0
    }

    /// The loop begins a turn that is not urgent.
    fn begin(&self, turn: u64) {
        self.in_turn.begin(false);
        self.interrupts();
        self.runs.store(turn, Ordering::Relaxed);
        self.interrupts();
        self.word.store(0);
        self.interrupts();
        // As `PreemptWord::enable`, which traps.
        if self.word.is_requested() && !mutant("preempt-begins-unasked") {
            self.consider();
        }
    }

    /// A turn ends, and the loop goes on.
    fn end(&self) {
        self.word.store(1);
        self.interrupts();
        self.runs.store(LOOP, Ordering::Relaxed);
        self.interrupts();
        self.in_turn.end();
        self.interrupts();
    }

    /// The turn goes on for ever, and what has not come comes now. Whether it is left.
    fn is_left(&self) -> bool {
        self.interrupts();
        self.has_left.load(Ordering::Relaxed)
    }
}

/// A turn ends, and one begins that goes on for ever.
fn between_two_turns() {
    let core = Core::new(1);
    let turns = task(|core: &Core| {
        core.end();
        let is_taken = core.picks_urgent();
        core.interrupts();
        if !is_taken {
            core.begin(2);
        }
        is_taken
    });
    let [is_taken, _] = run(&core, [turns, Core::sends()]);
    assert!(is_taken || core.is_left(), "it waits behind a turn that never ends");
}

/// The beginning of a section, or its end, as `PreemptGuard` does it: an interrupt may come between what it reads and what it
/// writes.
fn write_back(core: &Core, change: impl FnOnce(u32) -> u32) -> u32 {
    let count = change(core.word.load());
    let was_requested = core.word.is_requested();
    core.interrupts();
    core.word.store(count);
    if mutant("preempt-one-word") && !was_requested {
        core.word.clear_request();
    }
    core.interrupts();
    count
}

/// As the end of a guard, which traps if something was requested and it is the outermost.
fn end_section(core: &Core) {
    write_back(core, |count| count - 1);
    if core.word.is_requested() && core.word.is_enabled() {
        core.consider();
    }
}

/// A turn that goes on for ever has sections in sections in which it is not preempted.
fn in_a_section() {
    let core = Core::new(1);
    let turns = task(|core: &Core| {
        write_back(core, |count| count + 1);
        if core.has_left.load(Ordering::Relaxed) {
            return true;
        }
        write_back(core, |count| count + 1);
        end_section(core);
        end_section(core);
        true
    });
    run(&core, [turns, Core::sends()]);
    assert!(core.is_left(), "it waits behind a turn that never ends");
}

/// Where the interrupt comes between the beginning and the end of a section, the turn is left at the end, not later.
fn at_a_sections_end() {
    let core = Core::new(1);
    let turns = task(|core: &Core| {
        core.word.hold();
        core.interrupts();
        assert!(!core.has_left.load(Ordering::Relaxed), "left in a section");
        let has_come = core.interrupt_has_come.load(Ordering::Relaxed);
        core.word.release();
        if core.word.is_requested() && core.word.is_enabled() {
            core.consider();
        }
        let has_left = core.has_left.load(Ordering::Relaxed);
        assert_eq!(has_left, has_come, "the section's end does not do what was asked in it");
        has_left
    });
    let [has_left, _] = run(&core, [turns, Core::sends()]);
    assert!(has_left || core.is_left(), "it waits behind a turn that never ends");
}

/// The core announces that it is idle, finds other work in its look, and begins that.
fn out_of_idleness() {
    let core = Core::new(LOOP);
    let turns = task(|core: &Core| {
        core.idle.announce(Depth::Doze);
        assert!(core.ready.bits() & NORMAL != 0, "there is other work");
        core.idle.retract();
        core.interrupts();
        let is_taken = core.picks_urgent();
        core.interrupts();
        if !is_taken {
            core.begin(1);
        }
        is_taken
    });
    let [is_taken, _] = run(&core, [turns, Core::sends()]);
    assert!(is_taken || core.is_left(), "it waits behind a turn that never ends");
}

/// The core is taken out of service while something urgent is sent to it, hands on what it has, and falls asleep.
fn out_of_service() {
    let core = Core::new(LOOP);
    core.ready.clear(NORMAL);
    let takes_out = task(|core: &Core| {
        // Relaxed: the mask hands it over.
        core.is_online.store(false, Ordering::Relaxed);
        core.ready.flag(ATTENTION);
        barrier::full();
        core.idle.claim_after_fence().is_some()
    });
    let sends = task(|core: &Core| {
        if core.is_online.load(Ordering::Relaxed) {
            core.deliver();
        } else {
            core.is_elsewhere.store(true, Ordering::Relaxed);
        }
        false
    });
    let sleeps = task(|core: &Core| {
        attend(core);
        if core.picks_urgent() {
            // It runs what it finds, in service or not; never lost.
            core.is_elsewhere.store(true, Ordering::Relaxed);
        }
        // One that comes before the core falls asleep does not wake it.
        is_taken(&core.interrupt);
        core.idle.announce(Depth::Sleep);
        // Otherwise it goes on, and is in its loop.
        core.ready.bits() == 0 || mutant("offline-no-second-look")
    });
    let [_, _, sleeps] = run(&core, [takes_out, sends, sleeps]);
    let is_claimed = core.idle.depth().is_none() || is_taken(&core.interrupt);
    let is_lost = core.waits.load(Ordering::Relaxed) != 0 && !core.is_elsewhere.load(Ordering::Relaxed);
    assert!(!is_lost || !sleeps || is_claimed, "it waits on a core that sleeps");
    let is_in_service = core.is_online.load(Ordering::Relaxed);
    let knows = core.ready.bits() & ATTENTION != 0;
    assert!(is_in_service || knows, "a core that is out of service does not know it");
}

/// `attention::attend`.
fn attend(core: &Core) {
    if core.ready.bits() & ATTENTION == 0 {
        return;
    }
    let is_online = || core.is_online.load(Ordering::Relaxed);
    if !is_online() && core.picks_urgent() {
        core.is_elsewhere.store(true, Ordering::Relaxed);
    }
    if is_online() || mutant("offline-attended-once") {
        core.ready.unflag(ATTENTION, || is_online() || mutant("offline-attended-once"));
    }
}

/// The timer asks for a look at what waits behind the turn that it finds; there is one in that turn, or it ends before.
fn looks_for_the_turn() {
    const NONE: u64 = u64::MAX;
    struct Turns {
        core: Arc<Core>,
        timer: AtomicBool,
        asked: AtomicU64,
    }
    /// Where the timer's interrupt may come. There is a look at once, or at its section's end.
    fn interrupts(turns: &Turns) {
        let core = &turns.core;
        if is_taken(&turns.timer) {
            let runs = core.runs.load(Ordering::Relaxed);
            if runs != LOOP || mutant("turn-asked-in-loop") {
                core.in_turn.ask_to_look(false);
                turns.asked.store(runs, Ordering::Relaxed);
            }
            considers(turns);
        }
    }
    fn considers(turns: &Turns) {
        let core = &turns.core;
        let found = Found { is_turn: core.runs_turn(), is_wanted: core.in_turn.turn().looks() };
        if decide(&core.word, found) {
            let runs = core.runs.load(Ordering::Relaxed);
            assert_eq!(runs, turns.asked.swap(NONE, Ordering::Relaxed), "it looks behind another turn");
            let turn = core.in_turn.interrupt();
            core.in_turn.go_on(turn);
            assert!(!core.in_turn.turn().looks(), "it looks twice");
        }
    }
    fn turn(turns: &Turns, number: u64) {
        let core = &turns.core;
        core.in_turn.begin(false);
        interrupts(turns);
        core.runs.store(number, Ordering::Relaxed);
        core.word.store(0);
        interrupts(turns);
        core.word.hold();
        interrupts(turns);
        // Another interrupt comes later, and finds what is left.
        core.word.store(1);
        core.runs.store(LOOP, Ordering::Relaxed);
        interrupts(turns);
        core.in_turn.end();
        interrupts(turns);
    }
    let turns =
        Arc::new(Turns { core: Core::new(LOOP), timer: AtomicBool::new(false), asked: AtomicU64::new(NONE) });
    let runs = task(|turns: &Turns| {
        turn(turns, 1);
        turn(turns, 2);
        // The third is interrupted for something else.
        turns.core.in_turn.begin(false);
        interrupts(turns);
        turns.core.runs.store(3, Ordering::Relaxed);
        turns.core.word.reset(0);
        interrupts(turns);
        considers(turns);
    });
    let fires = task(|turns: &Turns| turns.timer.store(true, Ordering::Release));
    run(&turns, [runs, fires]);
    assert_eq!(turns.core.in_turn.slices(), 0, "slices of a turn that has seen none");
}
