//! The spin lock and the idle announcement.

use magpie::internals::arch::atomic::{AtomicU64, Ordering};
use magpie::internals::sync::{Depth, IdleFlag, SpinLock};

use crate::harness::{Model, ordering, step};
use crate::tool::{Arc, Plain, Task, mutant, run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "spin_lock::three_holders",
        preemptions: Some(2),
        body: three_holders,
        mutants: &[ordering("spin-take-relaxed"), ordering("spin-free-relaxed"), step("spin-take-in-two")],
    },
    Model {
        name: "spin_lock::wait_and_try",
        preemptions: Some(3),
        body: wait_and_try,
        mutants: &[step("spin-try-frees")],
    },
    Model {
        name: "idle::announce_then_look",
        preemptions: None,
        body: announce_then_look,
        mutants: &[
            ordering("idle-announce-no-fence"),
            ordering("idle-claim-no-fence"),
            step("idle-no-second-look"),
        ],
    },
    Model { name: "idle::deeper", preemptions: None, body: deeper, mutants: &[step("idle-no-second-look")] },
    Model {
        name: "idle::two_wakers",
        preemptions: Some(3),
        body: two_wakers,
        mutants: &[step("idle-claim-unasked")],
    },
];

/// One waits for the lock, two try; each counts. (Two that wait would keep loom busy for ever.)
fn three_holders() {
    fn count(count: &Plain) {
        count.set(count.get() + 1);
    }
    let lock = Arc::new(SpinLock::new(Plain::new(0)));
    let tries =
        || task(|lock: &SpinLock<Plain>| u64::from(lock.try_lock().map(|guard| count(&guard)).is_some()));
    let waits = task(|lock: &SpinLock<Plain>| {
        count(&lock.lock());
        1
    });
    let taken: u64 = run(&lock, [tries(), tries(), waits]).iter().sum();
    assert_eq!(lock.lock().get(), taken, "two held the lock at once");
}

/// A refused try leaves the lock with its holder.
fn wait_and_try() {
    let lock = Arc::new(SpinLock::new(Plain::new(0)));
    let waits = task(|lock: &SpinLock<Plain>| {
        let held = lock.lock();
        held.set(held.get() + 1);
        1
    });
    let tries = task(|lock: &SpinLock<Plain>| {
        lock.try_lock().map_or(0, |held| {
            held.set(held.get() + 1);
            1
        })
    });
    let taken: u64 = run(&lock, [waits, tries]).iter().sum();
    assert_eq!(lock.lock().get(), taken, "two held the lock at once");
}

/// A core and what it looks at before it waits.
struct Core {
    flag: IdleFlag,
    work: AtomicU64,
}

impl Core {
    fn new() -> Arc<Self> {
        Arc::new(Self { flag: IdleFlag::new(), work: AtomicU64::new(0) })
    }

    /// Announces and looks; how much work the look found.
    fn idle(&self, depth: Depth) -> u64 {
        let before = self.work.load(Ordering::Relaxed);
        self.flag.announce(depth);
        if mutant("idle-no-second-look") { before } else { self.work.load(Ordering::Relaxed) }
    }

    /// Makes one piece of work visible, and wakes the core if it is idle.
    fn wake(&self) -> Option<Depth> {
        self.work.fetch_add(1, Ordering::Relaxed);
        if mutant("idle-claim-unasked") {
            magpie::internals::arch::barrier::full();
            return self.flag.depth();
        }
        self.flag.claim()
    }
}

/// What a thread of an idle model saw.
#[derive(Default)]
struct Seen {
    found: u64,
    claimed: Option<Depth>,
}

fn waker() -> Task<Core, Seen> {
    task(|core: &Core| Seen { claimed: core.wake(), ..Seen::default() })
}

fn announce_then_look() {
    let core = Core::new();
    let sleeper = task(|core: &Core| Seen { found: core.idle(Depth::Sleep), ..Seen::default() });
    let [Seen { found, .. }, Seen { claimed, .. }] = run(&core, [sleeper, waker()]);
    assert!(found == 1 || claimed.is_some(), "the core sleeps, and there is work");
    assert_eq!(core.flag.retract(), claimed.is_some(), "the flag and the waker disagree");
}

/// From a doze to sleep without going on between.
fn deeper() {
    let core = Core::new();
    let sleeper = task(|core: &Core| {
        let mut found = core.idle(Depth::Doze);
        if found == 0 {
            found = core.idle(Depth::Sleep);
        }
        Seen { found, ..Seen::default() }
    });
    let [Seen { found, .. }, Seen { claimed, .. }] = run(&core, [sleeper, waker()]);
    // A claim of the doze does not end the sleep: then the second look must have found the work.
    assert!(found == 1 || claimed == Some(Depth::Sleep), "the core sleeps, and there is work");
}

/// Of two wakers at most one signals, and no work stays unseen.
fn two_wakers() {
    let core = Core::new();
    let sleeper = task(|core: &Core| Seen { found: core.idle(Depth::Sleep), ..Seen::default() });
    let [Seen { found, .. }, first, second] = run(&core, [sleeper, waker(), waker()]);
    assert!(first.claimed.is_none() || second.claimed.is_none(), "two wakers signalled one sleeper");
    let signals = [first, second].iter().filter(|waker| waker.claimed.is_some()).count();
    assert!(found > 0 || signals == 1, "the core sleeps, and there is work");
}
