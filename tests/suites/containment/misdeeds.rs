//! What code of the application may do wrong in places that are the kernel's: where it drops, wakes and formats.

use alloc::vec::Vec;
use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Addr, Context, ExecutorHandle, Receive};
use magpie::arch::CoreId;
use magpie::internals::sync;
use magpie::log::text;
use magpie::sched::Spawn;
use magpie::{machine, sched, time};
use magpie_tests::{Changed, Failure, Outcome, ensure, ensure_eq};

/// Far longer than anything here takes.
const LONG: Duration = magpie_tests::HANGS_AFTER;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misdeed {
    Panics,
    Overflows,
    Allocates,
    Prints,
    Sends,
    /// Until every core has run somebody else.
    Spins,
}

impl Misdeed {
    /// Whether who commits it does not go on.
    pub fn crashes(self) -> bool {
        matches!(self, Self::Panics | Self::Overflows)
    }
}

pub const ALL: [Misdeed; 6] = [
    Misdeed::Panics,
    Misdeed::Overflows,
    Misdeed::Allocates,
    Misdeed::Prints,
    Misdeed::Sends,
    Misdeed::Spins,
];

static BEGUN: AtomicU64 = AtomicU64::new(0);
static ENDED: AtomicU64 = AtomicU64::new(0);
static HARMLESS: AtomicU64 = AtomicU64::new(0);
static WRONG: AtomicU64 = AtomicU64::new(0);
static STUCK: AtomicU64 = AtomicU64::new(0);
static PASSED: AtomicU64 = AtomicU64::new(0);

/// An actor to send to.
struct Sink;

impl Actor for Sink {}

impl Receive<u64> for Sink {
    type Reply = ();

    fn receive(&mut self, _: u64, _: &mut Context<Self>) {}
}

/// Commits its misdeed when it is dropped, or told to.
pub struct Trouble {
    misdeed: Misdeed,
    to: Option<Addr<Sink>>,
}

impl Trouble {
    /// One that has somebody to send to.
    pub fn knowing(misdeed: Misdeed, executor: &ExecutorHandle) -> Self {
        Self { misdeed, to: executor.spawn(Sink).ok() }
    }

    pub fn commit(&self) {
        BEGUN.fetch_add(1, Ordering::Relaxed);
        WRONG.fetch_add(u64::from(sync::preemption_is_disabled()), Ordering::Relaxed);
        match self.misdeed {
            Misdeed::Panics => panic!("on purpose"),
            Misdeed::Overflows => {
                black_box(descend(black_box(0)));
            }
            Misdeed::Allocates => drop(black_box(alloc::vec![1_u64; 5_000])),
            Misdeed::Prints => text!("on purpose"),
            // Whether it arrives is not the question here.
            Misdeed::Sends => {
                let _ = self.to.map(|to| to.send(1).map(|_| ()));
            }
            Misdeed::Spins => {
                let began = time::Instant::now();
                while PASSED.load(Ordering::Relaxed) < machine::cores() as u64 {
                    if began.elapsed() > LONG {
                        STUCK.fetch_add(1, Ordering::Relaxed);
                        break;
                    }
                    core::hint::spin_loop();
                }
            }
        }
        ENDED.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Trouble {
    fn drop(&mut self) {
        self.commit();
    }
}

#[inline(never)]
#[expect(unconditional_recursion, reason = "that is the point")]
fn descend(depth: u64) -> u64 {
    let frame = black_box([depth; 3]);
    descend(depth + 1) ^ frame[1]
}

/// Does something on core 0 where nothing else runs there meanwhile, so that a worker of that core finds all of it at once.
pub async fn in_one_go<R: Send + 'static>(what: impl FnOnce() -> R + Send + 'static) -> Result<R, Failure> {
    let process = Spawn::new().pinned(CoreId::BOOT).start(async move {
        let changed = Changed::no_preemption()?;
        // What is left of the slice that has begun, and a whole one at least.
        sched::yield_now().await;
        let done = what();
        drop(changed);
        Ok(done)
    });
    process?.await?
}

/// What is dropped after trouble, where that must not keep it from being dropped.
pub struct Harmless;

impl Drop for Harmless {
    fn drop(&mut self) {
        HARMLESS.fetch_add(1, Ordering::Relaxed);
    }
}

/// Nothing has happened yet.
pub fn reset() {
    for counter in [&BEGUN, &ENDED, &HARMLESS, &WRONG, &STUCK, &PASSED] {
        counter.store(0, Ordering::Relaxed);
    }
}

/// Trouble has been caused, so often: it begins, with preemption enabled; every core runs others meanwhile, and afterwards; and
/// so much that is harmless is dropped.
pub async fn is_contained(place: &str, misdeed: Misdeed, times: u64, harmless: u64) -> Outcome {
    let mut neighbours = Vec::new();
    for core in (0..machine::cores()).filter_map(CoreId::new) {
        neighbours.push(Spawn::new().pinned(core).start(async {
            while BEGUN.load(Ordering::Relaxed) == 0 {
                time::sleep(Duration::from_micros(100)).await;
            }
            PASSED.fetch_add(1, Ordering::Relaxed);
        })?);
    }
    let waited_for = async {
        for neighbour in neighbours {
            neighbour.await?;
        }
        let (count, counter) = if misdeed.crashes() { (times, &BEGUN) } else { (times, &ENDED) };
        while counter.load(Ordering::Relaxed) < count || HARMLESS.load(Ordering::Relaxed) < harmless {
            time::sleep(Duration::from_micros(100)).await;
        }
        Ok::<_, Failure>(())
    };
    let over = time::timeout(LONG, waited_for).await;
    let (begun, dropped) = (BEGUN.load(Ordering::Relaxed), HARMLESS.load(Ordering::Relaxed));
    ensure!(over.is_ok(), "{place}, {misdeed:?}: {begun} of {times} begun, {dropped} of {harmless} harmless");
    ensure_eq!((begun, dropped), (times, harmless), "{place}, {misdeed:?}: begun, and harmless");
    ensure_eq!(WRONG.load(Ordering::Relaxed), 0, "{place}, {misdeed:?}: with preemption disabled");
    ensure_eq!(STUCK.load(Ordering::Relaxed), 0, "{place}, {misdeed:?}: kept its core");
    Ok(())
}
