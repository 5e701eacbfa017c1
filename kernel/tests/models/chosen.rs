//! What a core's loop, or an interrupt of a turn that is left for it, has chosen for the next turn, in no queue: who asks whether anything is left
//! finds it, what came first has the first turn, and it does not wait behind a turn of another.

use core::ptr::NonNull;

use magpie::internals::arch::atomic::{AtomicBool, AtomicU64, Ordering};
use magpie::internals::sync::{Chosen, Found, InTurn, Looked, PreemptWord, Quiescence, decide};

use crate::harness::{Model, Mutant, ordering, step};
use crate::tool::{Arc, mutant, run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "chosen::is_found",
        preemptions: None,
        body: is_found,
        mutants: &[
            step("chosen-unseen"),
            step("chosen-told-early"),
            step("chosen-taken-idle"),
            ordering("chosen-told-relaxed"),
        ],
    },
    Model {
        name: "chosen::has_its_turn",
        preemptions: None,
        body: has_its_turn,
        mutants: &[
            // The interrupt must come in one of two places of many, which random schedules seldom do.
            Mutant { name: "chosen-put-anywhere", rejected_by: &["loom"] },
            step("chosen-take-keeps"),
            step("chosen-queued-late"),
        ],
    },
    Model {
        name: "chosen::in_a_section",
        preemptions: None,
        body: in_a_section,
        mutants: &[
            step("chosen-not-postponed"),
            // As above.
            Mutant { name: "chosen-cleared-unseen", rejected_by: &["loom"] },
        ],
    },
    Model {
        name: "chosen::is_taken_back",
        preemptions: None,
        body: is_taken_back,
        mutants: &[step("chosen-stays-in-turn")],
    },
];

/// What the section wakes.
const WOKEN_IN_SECTION: u64 = 3;
/// The turn that goes on.
const FOR_EVER: u64 = 9;

/// A process has a number; where it would lie is never looked at.
fn process(number: usize) -> NonNull<u8> {
    NonNull::new(core::ptr::without_provenance_mut(number)).expect("numbers begin at one")
}

fn number(process: NonNull<u8>) -> u64 {
    process.as_ptr().addr() as u64
}

/// Two cores that have announced that they are idle, one of which sleeps, and a source of work.
struct Cores {
    idle: AtomicU64,
    chosen: Chosen<u8>,
    quiescence: Quiescence,
    /// As `time::pending`, or the external sources.
    sources: AtomicU64,
}

/// An interrupt wakes a process on a core that sleeps, and with that the source has given all that it had. The core goes on, and takes
/// what it has chosen; another core must not find that nothing is left.
fn is_found() {
    let cores = Arc::new(Cores {
        idle: AtomicU64::new(3),
        chosen: Chosen::new(),
        quiescence: Quiescence::new(),
        sources: AtomicU64::new(1),
    });
    let leave = |cores: &Cores, core: u64| {
        cores.idle.fetch_and(!core, Ordering::AcqRel);
        cores.quiescence.note_activity();
    };
    let sleeps = task(move |cores: &Cores| {
        let give_up = || {
            let order = if mutant("chosen-told-relaxed") { Ordering::Relaxed } else { Ordering::Release };
            cores.sources.fetch_sub(1, order);
        };
        if mutant("chosen-told-early") {
            give_up();
            cores.chosen.put(process(1));
        } else {
            cores.chosen.put(process(1));
            give_up();
        }
        if mutant("chosen-taken-idle") {
            let taken = cores.chosen.take();
            leave(cores, 2);
            return taken.is_some();
        }
        leave(cores, 2);
        cores.chosen.take().is_some()
    });
    let looks = task(move |cores: &Cores| {
        let everyone =
            || cores.idle.load(Ordering::Acquire) == 3 && cores.sources.load(Ordering::Acquire) == 0;
        cores.quiescence.look(everyone, || cores.chosen.is_some(), || leave(cores, 1)) == Looked::Left(true)
    });
    let [has_it, over] = run(&cores, [sleeps, looks]);
    assert!(has_it, "it was lost");
    assert!(!over, "it was chosen, or in the core's hands");
}

/// A core's loop, which waits and then begins a turn that goes on for ever, and two interrupts, each of which wakes something urgent. So may that turn, in
/// a section without preemption.
struct Core {
    chosen: Chosen<u8>,
    /// What waits with the priority `High`, oldest first, as the digits of a number. Its own, as what follows but for the interrupts.
    queue: AtomicU64,
    interrupts: [AtomicBool; 2],
    /// How many have been taken, which come one after the other.
    taken: AtomicU64,
    waits: AtomicBool,
    in_turn: InTurn,
    word: PreemptWord,
    /// A stack is free for a loop that leaves a turn. If none is, one is from then on.
    has_stack: AtomicBool,
    /// It is tried again by an interrupt.
    tries_again: AtomicBool,
    /// The turns that began, oldest first, as digits: by the interrupts' numbers, [`WOKEN_IN_SECTION`], and [`FOR_EVER`].
    turns: AtomicU64,
}

impl Core {
    /// Where interrupts may come.
    fn interrupts(&self) {
        // Afresh each time: one may be taken in what the one before has led to. Acquire: pairs with the release of whoever sends it.
        while let Some(next) = self.interrupts.get(self.taken.load(Ordering::Relaxed) as usize)
            && next.load(Ordering::Acquire)
        {
            let number = self.taken.fetch_add(1, Ordering::Relaxed) + 1;
            self.wakes(number as usize);
        }
        if self.tries_again.load(Ordering::Relaxed) {
            self.tries_again.store(false, Ordering::Relaxed);
            self.consider();
        }
    }

    /// `enqueue::keep_urgent` in an interrupt while the loop waits, `woken_in_interrupt` in one that has met a turn, otherwise `deliver`; then
    /// `preempt::consider`.
    fn wakes(&self, number: usize) {
        let waits =
            self.waits.load(Ordering::Relaxed) || self.in_turn.is_in() || mutant("chosen-put-anywhere");
        if waits && self.queue.load(Ordering::Relaxed) == 0 && !self.chosen.is_some() {
            self.chosen.put(process(number));
        } else {
            // The core's inbox, which its loop sorts into its queue behind what was chosen; here it is its queue.
            let was_late = mutant("chosen-queued-late");
            if waits && !was_late {
                self.queue_chosen();
            }
            self.append(number as u64);
            if waits && was_late {
                self.queue_chosen();
            }
        }
        self.consider();
    }

    fn append(&self, number: u64) {
        self.queue.store(self.queue.load(Ordering::Relaxed) * 10 + number, Ordering::Relaxed);
    }

    /// `enqueue::queue_chosen`.
    fn queue_chosen(&self) {
        if let Some(process) = self.chosen.take() {
            self.append(number(process));
        }
    }

    /// `preempt::consider`: a turn that is left goes back, and the loop gives the next.
    fn consider(&self) {
        let is_turn = self.in_turn.is_in();
        if is_turn && self.chosen.is_some() {
            if self.word.is_enabled() {
                return self.leaves_turn();
            }
            // The section's end comes here again.
            if !mutant("chosen-not-postponed") {
                self.word.request();
            }
            return;
        }
        let is_wanted = self.queue.load(Ordering::Relaxed) != 0;
        if decide(&self.word, Found { is_turn, is_wanted }) {
            self.leaves_turn();
        }
    }

    /// `preempt::lend_stack`.
    fn leaves_turn(&self) {
        if self.has_stack.load(Ordering::Relaxed) {
            self.in_turn.end();
            self.word.reset(1);
            return self.gives_turns();
        }
        self.has_stack.store(true, Ordering::Relaxed);
        if !mutant("chosen-stays-in-turn") {
            self.queue_chosen();
        }
        self.tries_again.store(true, Ordering::Relaxed);
        self.check();
    }

    /// The loop gives turns, short ones to what is urgent, and then one that goes on for ever. As `core_loop::run`.
    fn gives_turns(&self) {
        for _ in 0..5 {
            self.word.clear_request();
            self.interrupts();
            // `pick::next`.
            let next = self.chosen.take().map(number).or_else(|| self.take_from_queue());
            self.note(next.unwrap_or(FOR_EVER));
            self.interrupts();
            if next.is_none() {
                return self.begins_for_ever();
            }
        }
        panic!("there are three, and more turns");
    }

    fn take_from_queue(&self) -> Option<u64> {
        let queue = self.queue.load(Ordering::Relaxed);
        let place = 10_u64.pow(queue.checked_ilog10()?);
        self.queue.store(queue % place, Ordering::Relaxed);
        Some(queue / place)
    }

    fn note(&self, turn: u64) {
        self.turns.store(self.turns.load(Ordering::Relaxed) * 10 + turn, Ordering::Relaxed);
    }

    fn begins_for_ever(&self) {
        self.in_turn.begin(false);
        self.interrupts();
        self.word.store(0);
        self.interrupts();
        // As `PreemptWord::enable`, which traps.
        if self.word.is_requested() {
            self.consider();
        }
        self.check();
    }

    /// A section of the turn that goes on wakes something urgent.
    fn is_in_section(&self) {
        self.word.store(1);
        self.interrupts();
        // `enqueue::queue_urgent`, and `Chosen::take` in it.
        let is_chosen = self.chosen.is_some();
        self.interrupts();
        if is_chosen {
            self.queue_chosen();
        } else if mutant("chosen-cleared-unseen") {
            self.chosen.take();
        }
        self.append(WOKEN_IN_SECTION);
        self.word.request();
        self.interrupts();
        self.word.store(0);
        self.interrupts();
        // As at a `PreemptGuard`'s end.
        if self.word.is_requested() {
            self.consider();
        }
    }

    /// In the turn that goes on, with preemption enabled.
    fn check(&self) {
        assert!(!self.in_turn.is_in() || !self.chosen.is_some(), "something is chosen in a turn");
    }
}

/// Two interrupts come wherever they like: both have their turns, in order, once.
fn has_its_turn() {
    two_interrupts(true, false);
}

/// So they have where they come in a turn with a section, and so has what that section wakes.
fn in_a_section() {
    two_interrupts(true, true);
}

/// The same, where no stack is free at first for the loop that leaves a turn: nothing is chosen in the turn that goes on.
fn is_taken_back() {
    two_interrupts(false, false);
}

fn two_interrupts(has_stack: bool, has_section: bool) {
    let core = Arc::new(Core {
        chosen: Chosen::new(),
        queue: AtomicU64::new(0),
        interrupts: [AtomicBool::new(false), AtomicBool::new(false)],
        taken: AtomicU64::new(0),
        waits: AtomicBool::new(false),
        in_turn: InTurn::new(),
        word: PreemptWord::new(1),
        has_stack: AtomicBool::new(has_stack),
        tries_again: AtomicBool::new(false),
        turns: AtomicU64::new(0),
    });
    let loops = task(move |core: &Core| {
        if has_section {
            core.in_turn.begin(false);
            core.word.store(0);
            core.is_in_section();
            return core.check();
        }
        core.interrupts();
        // `idle::sleep`.
        core.waits.store(true, Ordering::Relaxed);
        core.interrupts();
        core.interrupts();
        core.waits.store(false, Ordering::Relaxed);
        core.gives_turns();
    });
    let sends = task(|core: &Core| {
        core.interrupts[0].store(true, Ordering::Release);
        core.interrupts[1].store(true, Ordering::Release);
    });
    run(&core, [loops, sends]);
    // What has not come yet comes now, in the turn that goes on for ever.
    core.check();
    core.interrupts();
    core.interrupts();
    let mut turns = core.turns.load(Ordering::Relaxed);
    let mut urgent = 0;
    let mut place = 1;
    let mut of_section = 0;
    while turns != 0 {
        match turns % 10 {
            FOR_EVER => {}
            WOKEN_IN_SECTION => of_section += 1,
            number => {
                urgent += number * place;
                place *= 10;
            }
        }
        turns /= 10;
    }
    assert_eq!(urgent, 12, "one has had no turn, or two, or before its time");
    assert_eq!(of_section, u64::from(has_section), "turns of what the section has woken");
    core.check();
}
