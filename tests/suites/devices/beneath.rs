//! A turn that is left for what an interrupt wakes lies beneath that one's: it goes on behind it, whatever becomes of the urgent one, and elsewhere if
//! that takes long. How long the urgent one waits is in the benchmarks.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hint;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Config, Context, Executor, Hook, Receive, Signal};
use magpie::arch::CoreId;
use magpie::interrupt::Interrupt;
use magpie::sched::{self, JoinError, JoinHandle, Priority, ProcessRef, ProcessState, Spawn};
use magpie::time::Instant;
use magpie::{stats, time};
use magpie_tests::{Failure, HANGS_AFTER, HeapExhauster, amount, comes, ensure, ensure_eq, kernel_test};

use crate::interrupts::{ask, claimed, cores, line};

/// The first of the lines of these tests: one for each core.
const LINE: u32 = 20;

/// More than a turn that lies beneath another waits for its queue.
const LONG: Duration = Duration::from_millis(4);

/// Long enough for an interrupt to come.
const SHORT: Duration = Duration::from_micros(200);

/// What happens in a test, in its order.
#[derive(Default)]
struct Steps(AtomicU32);

impl Steps {
    fn note(&self, step: u32) {
        self.0.store(step, Ordering::Release);
    }

    fn at(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    /// Waits in the caller's turn.
    fn wait_in_turn(&self, step: u32) -> Waited {
        spin_until(|| self.at() >= step)
    }
}

/// Whether something came.
type Waited = Result<(), &'static str>;

/// Waits for it in the caller's turn, which is not ended.
fn spin_until(condition: impl Fn() -> bool) -> Waited {
    let began = Instant::now();
    while !condition() {
        if began.elapsed() >= HANGS_AFTER {
            return Err("it never came");
        }
        hint::spin_loop();
    }
    Ok(())
}

fn spin_for(time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {
        hint::spin_loop();
    }
}

/// Begins a process of this core that claims its line, waits for an interrupt, and does this in the turn that follows. Returns when it waits.
async fn driver<T: Send + 'static>(
    index: u32,
    core: CoreId,
    priority: Priority,
    act: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<Option<T>>, Failure> {
    let mut interrupt = Interrupt::claim(line(LINE + index))?;
    interrupt.route(core)?;
    let driver = Spawn::new().pinned(core).priority(priority).start(async move {
        // Dropped after the act.
        match interrupt.wait().await {
            Ok(_) => Some(act()),
            Err(_) => None,
        }
    })?;
    comes(|| driver.process().state() == ProcessState::Waiting, "a driver does not wait").await?;
    Ok(driver)
}

/// A process of this core that has the line ask in its turn, which is met there, and goes on for so long at least. What it has on its stack and on the heap is the same afterwards.
fn asks(
    core: CoreId,
    time: Duration,
    own: Arc<AtomicU64>,
) -> Result<JoinHandle<Result<(), Failure>>, Failure> {
    Ok(Spawn::new().pinned(core).start(async move {
        let process = sched::current_process().ok_or("no process runs")?;
        // Lists it, though this is its first slice.
        ensure!(sched::processes().any(|other| other.id() == process.id()), "it is not listed");
        own.store(process.id() as u64, Ordering::Release);
        let kept: Vec<Box<u64>> = (0..200).map(Box::new).collect();
        let sum = hint::black_box(21_u64);
        ask(LINE);
        spin_for(time);
        ensure!(kept.iter().zip(0..).all(|(kept, number)| **kept == number), "what it keeps has changed");
        ensure_eq!(hint::black_box(sum) * 2, 42, "what was in its registers");
        Ok(())
    })?)
}

/// On each core: the turn in which the line asks goes on, whatever `act` does in the urgent one above it.
async fn goes_on_beneath<T: Send + 'static>(
    act: impl FnOnce(ProcessRef) -> T + Clone + Send + 'static,
    is_right: impl Fn(Result<Option<T>, JoinError>) -> bool,
) -> Result<(), Failure> {
    for _ in 0..amount("turns", 20) {
        for core in cores() {
            let own = Arc::new(AtomicU64::new(0));
            let (act, seen) = (act.clone(), own.clone());
            let driver = driver(0, core, Priority::High, move || {
                let id = seen.load(Ordering::Acquire);
                let beneath = sched::processes().find(|process| process.id() as u64 == id);
                beneath.map(act)
            })
            .await?;
            let beneath = asks(core, SHORT, own)?;
            let driven = driver.await;
            beneath.await??;
            ensure!(is_right(driven.map(Option::flatten)), "what became of the urgent one");
        }
    }
    Ok(())
}

kernel_test! {
    /// It is suspended meanwhile, and who looks sees that; also in an urgent turn of several slices.
    async fn it_is_suspended() -> Outcome {
        let look = |beneath: ProcessRef| {
            let at_first = beneath.state();
            spin_for(LONG);
            (at_first, beneath.state())
        };
        let expected = (ProcessState::Suspended, ProcessState::Suspended);
        goes_on_beneath(look, |seen| seen == Ok(Some(expected))).await
    }
}

kernel_test! {
    /// The urgent one crashes, at once or after some slices.
    async fn the_urgent_one_crashes() -> Outcome {
        for wait in [Duration::ZERO, LONG] {
            let crash = move |_| {
                spin_for(wait);
                if wait < Duration::MAX {
                    panic!("expected: the urgent one crashes");
                }
            };
            goes_on_beneath(crash, |ended| ended == Err(JoinError::Crashed)).await?;
        }
        Ok(())
    }
}

/// Needs more stack than there is.
#[inline(never)]
fn descend(level: u64) -> u64 {
    let room = hint::black_box([level; 64]);
    if room[0] == u64::MAX { 0 } else { room[1] + descend(room[2] + 1) }
}

kernel_test! {
    /// The urgent one runs out of stack.
    #[machine("stacks of its own")]
    async fn the_urgent_one_overflows() -> Outcome {
        goes_on_beneath(|_| descend(0), |ended| ended == Err(JoinError::Crashed)).await
    }
}

kernel_test! {
    /// The urgent one is killed in its turn.
    async fn the_urgent_one_is_killed() -> Outcome {
        let kill = |_| {
            if let Some(own) = sched::current_process() {
                own.kill();
            }
            // It ends meanwhile.
            spin_until(|| false)
        };
        goes_on_beneath(kill, |ended| ended == Err(JoinError::Killed)).await
    }
}

kernel_test! {
    /// What lies beneath is killed by the urgent one: it ends where it was, and drops nothing twice.
    async fn it_is_killed() -> Outcome {
        for _ in 0..amount("turns", 20) {
            for core in cores() {
                let own = Arc::new(AtomicU64::new(0));
                let seen = own.clone();
                let driver = driver(0, core, Priority::High, move || {
                    let id = seen.load(Ordering::Acquire);
                    let beneath = sched::processes().find(|process| process.id() as u64 == id);
                    beneath.map(|beneath| beneath.kill()).is_some()
                })
                .await?;
                let beneath = asks(core, HANGS_AFTER, own)?;
                ensure_eq!(driver.await, Ok(Some(true)), "whether the urgent one has killed it");
                ensure!(matches!(beneath.await, Err(JoinError::Killed)), "what lay beneath was not killed");
            }
        }
        Ok(())
    }
}

kernel_test! {
    /// The urgent one is left for something more urgent: all go on, the most urgent first.
    async fn one_beneath_another() -> Outcome {
        for _ in 0..amount("turns", 20) {
            for core in cores() {
                let steps = Arc::new(Steps::default());
                let noted = steps.clone();
                let max = driver(1, core, Priority::Max, move || noted.0.fetch_add(1, Ordering::AcqRel)).await?;
                let noted = steps.clone();
                let high = driver(0, core, Priority::High, move || {
                    ask(LINE + 1);
                    let ended = spin_until(|| noted.at() == 1);
                    (ended, noted.0.fetch_add(1, Ordering::AcqRel))
                })
                .await?;
                let beneath = asks(core, SHORT, Arc::default())?;
                ensure_eq!(max.await, Ok(Some(0)), "the most urgent one's step");
                ensure_eq!(high.await, Ok(Some((Ok(()), 1))), "the urgent one's step");
                beneath.await??;
            }
        }
        Ok(())
    }
}

/// Its line has asked.
#[derive(Clone, Copy)]
struct Asked;

static ASKED: Signal<Asked> = Signal::new();

/// One more short behaviour in the same turn.
struct More;

/// Handles one message after another from when its line asks until what lies beneath goes on elsewhere.
struct Busy {
    interrupt: Interrupt,
    steps: Arc<Steps>,
    since: Instant,
    /// The turns of its core when the first was handled.
    turns: u64,
    /// Whether all were handled in the same one.
    in_one_turn: Arc<AtomicBool>,
}

/// What it notes when it handles the first.
const ABOVE: u32 = 1;
/// What the other notes when it goes on.
const ELSEWHERE: u32 = 2;

impl Actor for Busy {
    fn started() -> Option<Hook<Self>> {
        Some(|busy, context| {
            if busy.interrupt.raises(&ASKED).is_err() {
                context.end();
            }
            // Is seen by who waits until this is ready.
            ASKED.send_to(context.address().recipient(), Asked);
        })
    }
}

impl Receive<Asked> for Busy {
    type Reply = ();

    fn receive(&mut self, _: Asked, context: &mut Context<Self>) {
        self.turns = stats::core(CoreId::BOOT).context_switches();
        self.steps.note(ABOVE);
        self.receive(More, context);
    }
}

impl Receive<More> for Busy {
    type Reply = ();

    fn receive(&mut self, _: More, context: &mut Context<Self>) {
        let waits = self.steps.at() == ABOVE && self.since.elapsed() < HANGS_AFTER;
        if waits && context.address().send(More).is_ok() {
            return;
        }
        let is_the_same = self.turns == stats::core(CoreId::BOOT).context_switches();
        self.in_one_turn.store(is_the_same, Ordering::Release);
        context.end();
    }
}

/// Processes that keep all other cores busy until an urgent one runs on this core: until then no core is idle.
fn keep_busy(core: CoreId, steps: &Arc<Steps>) -> Result<Vec<JoinHandle<Waited>>, Failure> {
    let others = cores().filter(|other| *other != core);
    let busy = others.map(|other| {
        let until = steps.clone();
        Spawn::new().pinned(other).start(async move { until.wait_in_turn(ABOVE) })
    });
    Ok(busy.collect::<Result<_, _>>()?)
}

/// Has the line ask in a turn on this core, and notes when it goes on.
fn asks_and_goes_on(core: CoreId, steps: &Arc<Steps>) -> Result<JoinHandle<Result<(), Failure>>, Failure> {
    let beneath = steps.clone();
    Ok(sched::spawn(async move {
        // The core has nothing else to do, so it comes and takes this.
        let begun = Instant::now();
        while sched::current_core() != Some(core) {
            ensure!(begun.elapsed() < HANGS_AFTER, "the core never took it");
            sched::yield_now().await;
        }
        ask(LINE);
        beneath.wait_in_turn(ABOVE)?;
        beneath.note(ELSEWHERE);
        Ok(())
    })?)
}

kernel_test! {
    /// The urgent turn goes on for ever, and another core has nothing to do by then: what lies beneath goes on there.
    #[cores(2)]
    async fn it_goes_on_elsewhere() -> Outcome {
        for _ in 0..amount("turns", 20) {
            let core = cores().last().ok_or("no core")?;
            let steps = Arc::new(Steps::default());
            let above = steps.clone();
            let driver = driver(0, core, Priority::High, move || {
                above.note(ABOVE);
                above.wait_in_turn(ELSEWHERE)
            })
            .await?;
            let busy = keep_busy(core, &steps)?;
            asks_and_goes_on(core, &steps)?.await??;
            ensure_eq!(driver.await, Ok(Some(Ok(()))), "what became of the urgent one");
            for busy in busy {
                busy.await??;
            }
        }
        Ok(())
    }
}

kernel_test! {
    /// So it is above a worker's turn, which goes on with one short behaviour after another: what lies beneath does not wait for its end.
    #[cores(2)]
    async fn it_goes_on_before_a_workers_turn_ends() -> Outcome {
        // No turn ends because of how many it has handled.
        let config = Config::default().workers(1).priority(Priority::High).reductions(u64::MAX);
        let executor = Executor::start(&config)?;
        let mut was_before = false;
        for _ in 0..amount("turns", 20) {
            // The first worker is the first core's.
            let core = CoreId::BOOT;
            let steps = Arc::new(Steps::default());
            let in_one_turn = Arc::new(AtomicBool::new(false));
            let interrupt = Interrupt::claim(line(LINE))?;
            interrupt.route(core)?;
            let busy = keep_busy(core, &steps)?;
            let (steps_above, seen) = (steps.clone(), in_one_turn.clone());
            let above = Busy { interrupt, steps: steps_above, since: Instant::now(), turns: 0, in_one_turn: seen };
            executor.handle().spawn(above)?;
            comes(|| ASKED.has_recipient(), "it does not wait for its line").await?;
            asks_and_goes_on(core, &steps)?.await??;
            for busy in busy {
                busy.await??;
            }
            comes(|| claimed(LINE).is_none(), "it has not ended").await?;
            ASKED.send_to_nobody();
            was_before |= in_one_turn.load(Ordering::Acquire);
        }
        executor.stop().await;
        // By chance its time may be over now and then.
        ensure!(was_before, "it went on when the worker's turn had ended, always");
        Ok(())
    }
}

kernel_test! {
    /// With memory used up it goes on all the same, behind an urgent turn of several slices.
    #[machine("the kernel's heap")]
    async fn memory_is_used_up() -> Outcome {
        const USED_UP: u32 = 1;
        for _ in 0..amount("turns", 5) {
            for core in cores() {
                let steps = Arc::new(Steps::default());
                let driver = driver(0, core, Priority::High, || spin_for(LONG)).await?;
                let until = steps.clone();
                let beneath = Spawn::new().pinned(core).start(async move {
                    while until.at() < USED_UP {
                        sched::yield_now().await;
                    }
                    ask(LINE);
                    spin_for(SHORT);
                })?;
                let exhauster = HeapExhauster::everything(16);
                steps.note(USED_UP);
                let ended = (driver.await, beneath.await);
                drop(exhauster);
                ensure_eq!(ended, (Ok(Some(())), Ok(())), "what became of them");
            }
        }
        Ok(())
    }
}

kernel_test! {
    /// Memory that crashed code has left is collected meanwhile: what the turn beneath owns is not.
    #[cores(2)]
    async fn what_it_owns_is_not_collected() -> Outcome {
        for core in cores() {
            let other = cores().find(|other| *other != core).ok_or("there is one core")?;
            let before = stats::collections().finished;
            let stops = Arc::new(Steps::default());
            let until = stops.clone();
            let crashes = Spawn::new().pinned(other).start(async move {
                while until.at() == 0 {
                    let leaves = Spawn::new().pinned(other).start(async {
                        let left: Vec<Box<[u64; 8]>> = (0..500).map(|number| Box::new([number; 8])).collect();
                        if !hint::black_box(&left).is_empty() {
                            panic!("expected: it leaves what it owns");
                        }
                    })?;
                    ensure_eq!(leaves.await, Err(JoinError::Crashed), "what its handle says");
                    // Wants a collection, however much memory there is.
                    ensure!(Vec::<u8>::new().try_reserve(isize::MAX as usize).is_err(), "that much was free");
                }
                Ok::<_, Failure>(())
            })?;
            let look = move |_| spin_until(|| stats::collections().finished != before);
            let own = Arc::new(AtomicU64::new(0));
            let driver = driver(0, core, Priority::High, move || look(())).await?;
            let beneath = asks(core, SHORT, own)?;
            let driven = driver.await;
            beneath.await??;
            stops.note(1);
            crashes.await??;
            ensure_eq!(driven, Ok(Some(Ok(()))), "whether anything was collected");
        }
        Ok(())
    }
}

kernel_test! {
    /// Again and again, with the urgent turns of many lengths, beside others that come and go: nobody is forgotten.
    async fn nobody_is_forgotten() -> Outcome {
        let times = amount("interrupts", 300);
        for core in cores() {
            let mut interrupt = Interrupt::claim(line(LINE))?;
            interrupt.route(core)?;
            let told = Arc::new(AtomicU64::new(0));
            let notes = told.clone();
            let driver = Spawn::new().pinned(core).priority(Priority::High).start(async move {
                while interrupt.wait().await.is_ok() {
                    let number = notes.fetch_add(1, Ordering::AcqRel);
                    spin_for(Duration::from_micros(number * 97 % 1500));
                }
            })?;
            comes(|| driver.process().state() == ProcessState::Waiting, "the driver does not wait").await?;
            let asking: Result<Vec<_>, _> = (0..3_u64)
                .map(|asker| {
                    let told = told.clone();
                    Spawn::new().pinned(core).start(async move {
                        for number in 0..times / 3 {
                            let before = told.load(Ordering::Acquire);
                            ask(LINE);
                            spin_until(|| told.load(Ordering::Acquire) > before)?;
                            if (number + asker) % 3 == 0 {
                                sched::yield_now().await;
                            }
                            if (number + asker) % 7 == 0 {
                                time::sleep(Duration::from_micros(50)).await;
                            }
                        }
                        Ok::<_, Failure>(())
                    })
                })
                .collect();
            for asking in asking? {
                asking.await??;
            }
            driver.process().kill();
            ensure_eq!(driver.await, Err(JoinError::Killed), "what the driver's handle says");
        }
        Ok(())
    }
}
