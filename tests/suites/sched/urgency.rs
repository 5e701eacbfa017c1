//! What is urgent does not wait for a slice: it preempts what is less urgent at once.
//!
//! Slices are as long as they can be, and the statistics say whether it was a preemption for something urgent that let a process
//! run beside one that spins until it has.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::poll_fn;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::task::Poll;
use core::time::Duration;

use magpie::actor::{Actor, Addr, Config, Context, Executor, Receive};
use magpie::arch::{CoreId, MAX_CORES};
use magpie::channel::ProcessMailbox;
use magpie::machine;
use magpie::sched::{self, JoinHandle, Priority, Spawn, yield_now};
use magpie::stats;
use magpie::watch::Ended;
use magpie_tests::{Changed, Failure, HANGS_AFTER, ensure, ensure_eq, kernel_test};

/// A process that waits until it is called.
struct Waiting {
    handle: JoinHandle<()>,
    called: Arc<AtomicBool>,
    has_run: Arc<AtomicBool>,
}

/// Calls a process, and says whether it has run.
struct Call {
    process: sched::ProcessRef,
    called: Arc<AtomicBool>,
    has_run: Arc<AtomicBool>,
}

impl Call {
    /// Wakes it.
    fn call(&self) {
        self.called.store(true, Ordering::Release);
        self.process.wake();
    }

    /// Spins until it has run. Whether it has.
    fn spin(&self) -> bool {
        let began = magpie::time::Instant::now();
        while !self.has_run.load(Ordering::Acquire) {
            if began.elapsed() > HANGS_AFTER {
                return false;
            }
            core::hint::spin_loop();
        }
        true
    }
}

impl Waiting {
    fn start(core: CoreId, priority: Priority) -> Result<Self, Failure> {
        Self::begin(Spawn::new().pinned(core).priority(priority))
    }

    fn begin(spawn: Spawn) -> Result<Self, Failure> {
        let (called, has_run) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (seen, ran) = (called.clone(), has_run.clone());
        let handle = spawn.start(async move {
            poll_fn(|_| if seen.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }).await;
            ran.store(true, Ordering::Release);
        })?;
        Ok(Self { handle, called, has_run })
    }

    fn to_call(&self) -> Call {
        Call {
            process: self.handle.process().clone(),
            called: self.called.clone(),
            has_run: self.has_run.clone(),
        }
    }
}

fn preempted() -> u64 {
    stats::total(|core| core.urgent_preemptions.get())
}

/// A process of one priority calls one of another on its core, and spins until that has run. How many preemptions for something
/// urgent that took.
async fn called_by(caller: Priority, called: Priority) -> Result<u64, Failure> {
    let waiting = Waiting::start(CoreId::BOOT, called)?;
    sched::out_of_work().await;
    let call = waiting.to_call();
    let spinning = Spawn::new().pinned(CoreId::BOOT).priority(caller).start(async move {
        let before = preempted();
        call.call();
        (call.spin(), preempted() - before)
    })?;
    let Ok((has_run, preemptions)) = spinning.await else { return Err("the one that spins crashed".into()) };
    ensure!(has_run, "it did not run beside one that spins");
    ensure!(waiting.handle.await.is_ok(), "the one that was called crashed");
    Ok(preemptions)
}

kernel_test! {
    /// `Max` and `High` preempt what is less urgent, on the core that wakes them.
    #[machine("preemption")]
    async fn the_more_urgent_preempts_who_wakes_it() -> Outcome {
        let _long = Changed::no_preemption()?;
        for (caller, called) in [
            (Priority::Normal, Priority::High),
            (Priority::Low, Priority::High),
            (Priority::Normal, Priority::Max),
            (Priority::High, Priority::Max),
        ] {
            let preemptions = called_by(caller, called).await?;
            ensure!(preemptions >= 1, "{called:?} did not preempt {caller:?}");
        }
        Ok(())
    }
}

kernel_test! {
    /// Nothing else does: who is as urgent waits for a turn, and `Normal` work does not preempt `Low` work.
    #[machine("preemption")]
    async fn nothing_else_preempts_at_once() -> Outcome {
        let _short = Changed::new(&[(sched::Setting::SliceMicroseconds, 100)])?;
        for (caller, called) in [
            (Priority::High, Priority::High),
            (Priority::Normal, Priority::Normal),
            (Priority::Low, Priority::Normal),
        ] {
            ensure_eq!(called_by(caller, called).await?, 0, "preemptions for something urgent");
        }
        Ok(())
    }
}

kernel_test! {
    /// So it is when another core wakes them.
    #[cores(2)]
    #[machine("preemption")]
    async fn the_more_urgent_preempts_on_another_core() -> Outcome {
        let _long = Changed::no_preemption()?;
        let other = CoreId::new(1).ok_or("there is one core")?;
        for _ in 0..20 {
            let waiting = Waiting::start(other, Priority::High)?;
            sched::out_of_work().await;
            let (before, call, spinning) = (preempted(), waiting.to_call(), waiting.to_call());
            let begun = Arc::new(AtomicBool::new(false));
            let spins = begun.clone();
            let hog = Spawn::new().pinned(other).start(async move {
                spins.store(true, Ordering::Release);
                spinning.spin()
            })?;
            let caller = Spawn::new().pinned(CoreId::BOOT).start(async move {
                while !begun.load(Ordering::Acquire) {
                    core::hint::spin_loop();
                }
                call.call();
            })?;
            ensure_eq!(hog.await, Ok(true), "whether it ran beside one that spins");
            ensure!(caller.await.is_ok() && waiting.handle.await.is_ok(), "a process crashed");
            ensure!(preempted() > before, "the other core's turn was not preempted");
        }
        Ok(())
    }
}

/// Calls a process, and spins until that has run.
struct Caller;

impl Actor for Caller {}

impl Receive<Box<Call>> for Caller {
    type Reply = bool;

    fn receive(&mut self, call: Box<Call>, _: &mut Context<Self>) -> bool {
        call.call();
        call.spin()
    }
}

/// Sends to an actor of an executor that is more urgent, and spins until that has handled it.
struct Sender(Addr<Urgent>, Arc<AtomicBool>);

impl Actor for Sender {}

struct Go;

impl Receive<Go> for Sender {
    type Reply = bool;

    fn receive(&mut self, _: Go, _: &mut Context<Self>) -> bool {
        let began = magpie::time::Instant::now();
        if self.0.send(Go).is_err() {
            return false;
        }
        while !self.1.load(Ordering::Acquire) {
            if began.elapsed() > HANGS_AFTER {
                return false;
            }
            core::hint::spin_loop();
        }
        true
    }
}

struct Urgent(Arc<AtomicBool>);

impl Actor for Urgent {}

impl Receive<Go> for Urgent {
    type Reply = ();

    fn receive(&mut self, _: Go, _: &mut Context<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

kernel_test! {
    /// Out of a behaviour, too.
    #[machine("preemption")]
    async fn the_more_urgent_preempts_a_behaviour() -> Outcome {
        let _long = Changed::no_preemption()?;
        let executor = Executor::start(&Config::default().workers(1))?;
        let caller = executor.handle().spawn(Caller)?;
        for _ in 0..20 {
            let waiting = Waiting::start(CoreId::BOOT, Priority::High)?;
            sched::out_of_work().await;
            let before = preempted();
            ensure_eq!(caller.ask(Box::new(waiting.to_call())).await, Ok(true), "whether it ran beside the behaviour");
            ensure!(waiting.handle.await.is_ok(), "the one that was called crashed");
            ensure!(preempted() > before, "the behaviour was not preempted");
        }
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// A message to an actor of an executor of that priority likewise.
    #[machine("preemption")]
    async fn a_message_to_an_urgent_executor_preempts() -> Outcome {
        let _long = Changed::no_preemption()?;
        let executor = Executor::start(&Config::default().workers(1))?;
        let urgent = Executor::start(&Config::default().workers(1).priority(Priority::High))?;
        for _ in 0..20 {
            let handled = Arc::new(AtomicBool::new(false));
            let receiver = urgent.handle().spawn(Urgent(handled.clone()))?;
            let sender = executor.handle().spawn(Sender(receiver, handled))?;
            sched::out_of_work().await;
            let before = preempted();
            ensure_eq!(sender.ask(Go).await, Ok(true), "whether it was handled beside the behaviour");
            ensure!(preempted() > before, "the behaviour was not preempted");
        }
        urgent.stop().await;
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// What a timer wakes, too, beside one that spins.
    #[machine("preemption")]
    async fn a_timer_of_the_more_urgent_preempts() -> Outcome {
        let _long = Changed::no_preemption()?;
        for (spins, sleeps) in [
            (Priority::Normal, Priority::High),
            (Priority::Low, Priority::Max),
            (Priority::High, Priority::Max),
        ] {
            let before = preempted();
            let has_run = Arc::new(AtomicBool::new(false));
            let ran = has_run.clone();
            let urgent = Spawn::new().pinned(CoreId::BOOT).priority(sleeps).start(async move {
                for _ in 0..20 {
                    magpie::time::sleep(Duration::from_micros(300)).await;
                }
                ran.store(true, Ordering::Release);
            })?;
            let spinning = Spawn::new().pinned(CoreId::BOOT).priority(spins).start(async move {
                let began = magpie::time::Instant::now();
                while !has_run.load(Ordering::Acquire) {
                    if began.elapsed() > HANGS_AFTER {
                        return false;
                    }
                    core::hint::spin_loop();
                }
                true
            })?;
            ensure_eq!(spinning.await, Ok(true), "whether {sleeps:?} ran beside {spins:?} that spins");
            ensure!(urgent.await.is_ok(), "the urgent one crashed");
            // Where a host is slow the moment may have come before the turn that is to be preempted.
            ensure!(preempted() > before, "no timer preempted {spins:?}");
        }
        Ok(())
    }
}

kernel_test! {
    /// One whose own core is in a turn as urgent, and that is woken elsewhere, preempts there.
    #[cores(2)]
    #[machine("preemption")]
    async fn who_cannot_preempt_at_home_preempts_elsewhere() -> Outcome {
        let _long = Changed::no_preemption()?;
        let other = CoreId::new(1).ok_or("there is one core")?;
        for _ in 0..5 {
            // It has run on the other core, and may run on both.
            let both = Spawn::new().affinity([CoreId::BOOT, other].into_iter().collect()).priority(Priority::High);
            let waiting = Spawn::new().pinned(other).start(async move { Waiting::begin(both) })?.await;
            let waiting = waiting.map_err(|_| "the parent crashed")??;
            sched::out_of_work().await;
            let (call, spinning) = (waiting.to_call(), waiting.to_call());
            let begun = Arc::new(AtomicBool::new(false));
            let spins = begun.clone();
            let hog = Spawn::new().pinned(other).priority(Priority::High).start(async move {
                spins.store(true, Ordering::Release);
                spinning.spin()
            })?;
            let caller = Spawn::new().pinned(CoreId::BOOT).start(async move {
                while !begun.load(Ordering::Acquire) {
                    core::hint::spin_loop();
                }
                let before = preempted();
                call.call();
                (call.spin(), preempted() - before)
            })?;
            let Ok((has_run, preemptions)) = caller.await else { return Err("the caller crashed".into()) };
            ensure!(has_run && hog.await == Ok(true), "it did not run beside two that spin");
            ensure!(preemptions >= 1, "nothing was preempted");
            ensure!(waiting.handle.await.is_ok(), "the one that was called crashed");
        }
        Ok(())
    }
}

kernel_test! {
    /// Who is told of an end between two turns, and is urgent, has the next one, before all that only yields there.
    async fn who_is_told_of_an_end_has_the_next_turn() -> Outcome {
        const ROUNDS: usize = 50;
        let _long = Changed::no_preemption()?;
        // Turns that others had on each core.
        let turns: Arc<[AtomicU64; MAX_CORES]> = Arc::new([const { AtomicU64::new(0) }; MAX_CORES]);
        let here = |turns: &[AtomicU64; MAX_CORES]| {
            let core = sched::current_core().map_or(0, CoreId::index);
            (core, turns[core].load(Ordering::Relaxed))
        };
        let stop = Arc::new(AtomicBool::new(false));
        let mut others = Vec::new();
        for _ in 0..8 * machine::cores() {
            let (turns, stop) = (turns.clone(), stop.clone());
            others.push(sched::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    turns[here(&turns).0].fetch_add(1, Ordering::Relaxed);
                    yield_now().await;
                }
            })?);
        }
        let mut compared = 0;
        for _ in 0..ROUNDS {
            let mut ends = ProcessMailbox::<Ended>::new(1)?;
            let mut go = ProcessMailbox::<()>::new(1)?;
            let (told, begin) = (ends.address(), go.address());
            let (seen, left) = (turns.clone(), turns.clone());
            let watcher = Spawn::new().priority(Priority::High).start(async move {
                let ended = ends.receive().await;
                (ended.is_some(), here(&seen))
            })?;
            let ends = sched::spawn(async move {
                go.receive().await;
                // Its last turn, to the end.
                here(&left)
            })?;
            ends.process().watch(&told)?;
            begin.send(())?;
            let (was_told, at) = watcher.await?;
            ensure!(was_told, "the watcher was not told");
            let (core, before) = ends.await?;
            if at.0 == core {
                ensure_eq!(at.1, before, "turns of others that came first");
                compared += 1;
            }
        }
        stop.store(true, Ordering::Relaxed);
        for other in others {
            other.await?;
        }
        ensure!(compared * 2 >= ROUNDS, "{compared} of {ROUNDS} were told where the process ended");
        Ok(())
    }
}
