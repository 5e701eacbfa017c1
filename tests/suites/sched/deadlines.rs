//! Deadlines: of the `High` processes of a core the one that is due first goes first, at once; and none is lost wherever they wait.
//!
//! Where an order is looked at, deadlines are minutes apart, so that it does not depend on how fast the host is.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::poll_fn;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::task::Poll;
use core::time::Duration;

use magpie::actor::{Actor, Addr, Config, Context, Executor, Receive, StartError};
use magpie::arch::CoreId;
use magpie::sched::{self, Dispatch, JoinHandle, Priority, Setting, Spawn, SpawnError, yield_now};
use magpie::time::Instant;
use magpie::{machine, stats, time};
use magpie_tests::{Changed, Failure, HANGS_AFTER, amount, ensure, ensure_eq, kernel_test};

const HIGH: Spawn = Spawn::new().priority(Priority::High);

fn due_in(minutes: u64) -> Spawn {
    HIGH.deadline(Duration::from_secs(60 * minutes))
}

fn cores() -> impl Iterator<Item = CoreId> {
    (0..machine::cores()).filter_map(CoreId::new)
}

/// Spins until it is so. Whether it is.
fn spin_until(is_so: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while !is_so() {
        if began.elapsed() > HANGS_AFTER {
            return false;
        }
        core::hint::spin_loop();
    }
    true
}

fn is_set(flag: &AtomicBool) -> bool {
    flag.load(Ordering::Acquire)
}

fn set(flag: &AtomicBool) {
    flag.store(true, Ordering::Release);
}

fn preempted() -> u64 {
    stats::total(|core| core.urgent_preemptions.get())
}

fn missed() -> u64 {
    stats::total(|core| core.deadlines_missed.get())
}

/// Starts one process for each of these from one core, in this order, while another process has `core` for itself. In which order
/// they run, as each notes its turn.
async fn order_on(core: CoreId, from: CoreId, spawns: Vec<Spawn>) -> Result<Vec<u64>, Failure> {
    let max = Spawn::new().priority(Priority::Max);
    let (has_begun, is_over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let turns = Arc::new(AtomicU64::new(0));
    let parent = max.pinned(from).start(async move {
        let (begins, seen) = (has_begun.clone(), is_over.clone());
        let above = async move {
            set(&begins);
            spin_until(|| is_set(&seen))
        };
        let above = if core == from { None } else { Some(max.pinned(core).start(above)?) };
        let is_alone = core == from || spin_until(|| is_set(&has_begun));
        let start = |spawn: Spawn| {
            let turns = turns.clone();
            spawn.start(async move { turns.fetch_add(1, Ordering::Relaxed) })
        };
        let started = spawns.into_iter().map(start).collect::<Result<Vec<_>, _>>()?;
        set(&is_over);
        Ok::<_, SpawnError>((above, is_alone, started))
    })?;
    let (above, is_alone, started) = parent.await.map_err(|_| "the parent crashed")??;
    ensure!(is_alone, "the core is not there");
    let mut order = Vec::new();
    for handle in started {
        order.push(handle.await.map_err(|_| "a process crashed")?);
    }
    if let Some(above) = above {
        ensure_eq!(above.await, Ok(true), "the one above them");
    }
    Ok(order)
}

/// Some with a deadline and some without, and the turns that they are to have.
fn mixed() -> (Vec<Spawn>, Vec<u64>) {
    let spawns = [due_in(30), HIGH, due_in(10), due_in(20), due_in(10), HIGH, due_in(u64::MAX / 60)];
    (spawns.into(), [3, 5, 0, 2, 1, 6, 4].into())
}

kernel_test! {
    /// They run in the order of their deadlines, of one deadline in the order in which they came, and before what has none; pinned
    /// or not, whether the core itself or another has started them.
    async fn what_is_due_first_goes_first() -> Outcome {
        // None is to leave for another core.
        let _stay = Changed::new(&[(Setting::Dispatch, Dispatch::PerCore as u64)])?;
        for core in cores() {
            for from in cores() {
                let (mut spawns, expected) = mixed();
                spawns.iter_mut().for_each(|spawn| *spawn = spawn.pinned(core));
                ensure_eq!(order_on(core, from, spawns).await?, expected, "on {core:?}, from {from:?}");
            }
            let (spawns, expected) = mixed();
            ensure_eq!(order_on(core, core, spawns.clone()).await?, expected, "on {core:?}, free");
            let half = |(number, spawn): (usize, Spawn)| if number % 2 == 0 { spawn.pinned(core) } else { spawn };
            let spawns = spawns.into_iter().enumerate().map(half).collect();
            ensure_eq!(order_on(core, core, spawns).await?, expected, "on {core:?}, some of them pinned");
        }
        if machine::cores() == 1 {
            // Several would take them at once.
            let _global = Changed::new(&[(Setting::Dispatch, Dispatch::Global as u64)])?;
            let (spawns, expected) = mixed();
            ensure_eq!(order_on(CoreId::BOOT, CoreId::BOOT, spawns.clone()).await?, expected, "in one queue for all");
            let half = |(number, spawn): (usize, Spawn)| if number < 3 { spawn.pinned(CoreId::BOOT) } else { spawn };
            let spawns = spawns.into_iter().enumerate().map(half).collect();
            let order = order_on(CoreId::BOOT, CoreId::BOOT, spawns).await?;
            for (number, place) in [0, 2, 3, 4, 6].map(|number| (number, expected[number])) {
                ensure_eq!(order[number], place, "in two queues");
            }
        }
        Ok(())
    }
}

/// A process that waits until it is called.
struct Waiting {
    handle: JoinHandle<()>,
    called: Arc<AtomicBool>,
    has_run: Arc<AtomicBool>,
}

impl Waiting {
    async fn start(spawn: Spawn) -> Result<Self, Failure> {
        let (called, has_run) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (seen, ran) = (called.clone(), has_run.clone());
        let handle = spawn.start(async move {
            poll_fn(|_| if is_set(&seen) { Poll::Ready(()) } else { Poll::Pending }).await;
            set(&ran);
        })?;
        sched::out_of_work().await;
        Ok(Self { handle, called, has_run })
    }

    /// What wakes it.
    fn call(&self) -> impl FnOnce() + Send + 'static {
        let (process, called) = (self.handle.process().clone(), self.called.clone());
        move || {
            set(&called);
            process.wake();
        }
    }
}

/// A process on the first core wakes another there, and spins until that has run, or only looks whether it has.
async fn is_preempted_by(caller: Spawn, called: Spawn, spins: bool) -> Result<bool, Failure> {
    let waiting = Waiting::start(called.pinned(CoreId::BOOT)).await?;
    let (call, has_run) = (waiting.call(), waiting.has_run.clone());
    let caller = caller.pinned(CoreId::BOOT).start(async move {
        call();
        if spins { spin_until(|| is_set(&has_run)) } else { is_set(&has_run) }
    })?;
    let has_run = caller.await.map_err(|_| "the caller crashed")?;
    ensure!(waiting.handle.await.is_ok(), "the one that was called crashed");
    Ok(has_run)
}

kernel_test! {
    /// What is due before preempts what is due later or has no deadline; nothing else of that priority does.
    #[machine("preemption")]
    async fn what_is_due_before_preempts() -> Outcome {
        let _long = Changed::no_preemption()?;
        for caller in [HIGH, due_in(20), Spawn::new()] {
            let before = preempted();
            ensure!(is_preempted_by(caller, due_in(10), true).await?, "it did not run beside {caller:?}");
            ensure!(preempted() > before, "{caller:?} was not preempted");
        }
        for (caller, called) in [(due_in(10), due_in(20)), (due_in(10), HIGH), (due_in(10), due_in(10))] {
            ensure!(!is_preempted_by(caller, called, false).await?, "{called:?} preempted {caller:?}");
        }
        let max = Spawn::new().priority(Priority::Max);
        ensure!(!is_preempted_by(max, due_in(10), false).await?, "it preempted what is more urgent");
        ensure!(is_preempted_by(due_in(10), max, true).await?, "it kept what is more urgent waiting");
        Ok(())
    }
}

/// From the first core: starts one that spins on another until `waiting` has run, and calls that. Whether it has.
async fn calls_beside(hog: Spawn, other: CoreId, waiting: Waiting) -> Result<bool, Failure> {
    let caller = Spawn::new().pinned(CoreId::BOOT).start(async move {
        let (call, has_run) = (waiting.call(), waiting.has_run.clone());
        let begun = Arc::new(AtomicBool::new(false));
        let begins = begun.clone();
        let hog = hog.pinned(other).start(async move {
            set(&begins);
            spin_until(|| is_set(&has_run))
        })?;
        let has_begun = spin_until(|| is_set(&begun));
        call();
        Ok::<_, SpawnError>(has_begun && hog.await == Ok(true) && waiting.handle.await.is_ok())
    })?;
    Ok(caller.await.map_err(|_| "the caller crashed")??)
}

kernel_test! {
    /// So it is when another core wakes it.
    #[cores(2)]
    #[machine("preemption")]
    async fn what_is_due_before_preempts_on_another_core() -> Outcome {
        let _long = Changed::no_preemption()?;
        let other = CoreId::new(1).ok_or("there is one core")?;
        for hog in [HIGH, due_in(20)] {
            for _ in 0..10 {
                let waiting = Waiting::start(due_in(10).pinned(other)).await?;
                let before = preempted();
                ensure!(calls_beside(hog, other, waiting).await?, "it did not run beside {hog:?}");
                ensure!(preempted() > before, "the other core's turn was not preempted");
            }
        }
        Ok(())
    }
}

kernel_test! {
    /// And when a timer does.
    #[machine("preemption")]
    async fn a_timer_of_what_is_due_before_preempts() -> Outcome {
        let _long = Changed::no_preemption()?;
        for hog in [HIGH, due_in(20)] {
            let before = preempted();
            let has_run = Arc::new(AtomicBool::new(false));
            let ran = has_run.clone();
            let sleeping = due_in(10).pinned(CoreId::BOOT).start(async move {
                for _ in 0..20 {
                    time::sleep(Duration::from_micros(300)).await;
                }
                set(&ran);
            })?;
            let hog = hog.pinned(CoreId::BOOT).start(async move { spin_until(|| is_set(&has_run)) })?;
            ensure_eq!(hog.await, Ok(true), "whether it ran beside one that spins");
            ensure!(sleeping.await.is_ok(), "the one that sleeps crashed");
            ensure!(preempted() > before, "no timer preempted");
        }
        Ok(())
    }
}

kernel_test! {
    /// One that goes on beyond its deadline, time and again, does not keep for ever what is due later.
    #[machine("preemption")]
    async fn whoever_is_late_keeps_nobody_for_ever() -> Outcome {
        let _short = Changed::new(&[(Setting::SliceMicroseconds, 100)])?;
        for yields in [false, true] {
            let before = missed();
            // They leave nothing to what is `Normal`, so one that is more urgent starts all of them.
            let all = Spawn::new().priority(Priority::Max).pinned(CoreId::BOOT).start(async move {
                let has_run = Arc::new(AtomicBool::new(false));
                let mut all = Vec::new();
                for _ in 0..3 {
                    let has_run = has_run.clone();
                    all.push(HIGH.deadline(Duration::from_millis(1)).pinned(CoreId::BOOT).start(async move {
                        if !yields {
                            return spin_until(|| is_set(&has_run));
                        }
                        let began = Instant::now();
                        while !is_set(&has_run) && began.elapsed() < HANGS_AFTER {
                            yield_now().await;
                        }
                        is_set(&has_run)
                    })?);
                }
                let patient = HIGH.deadline(Duration::from_millis(20)).pinned(CoreId::BOOT);
                all.push(patient.start(async move {
                    set(&has_run);
                    true
                })?);
                Ok::<_, SpawnError>(all)
            })?;
            let Ok(all) = all.await else { return Err("the parent crashed".into()) };
            for one in all? {
                ensure_eq!(one.await, Ok(true), "whether the patient one ran beside those that are late");
            }
            ensure!(missed() > before, "nobody was late");
        }
        Ok(())
    }
}

kernel_test! {
    /// Who is late is counted each time, and nobody else is.
    async fn missed_deadlines_are_counted() -> Outcome {
        const TIMES: u64 = 20;
        let _long = Changed::no_preemption()?;
        let turns = async |spawn: Spawn| {
            let before = missed();
            let waits = spawn.start(async {
                for _ in 0..TIMES {
                    let began = Instant::now();
                    while Instant::now() == began {}
                    time::sleep(Duration::from_micros(10)).await;
                }
            });
            ensure!(waits?.await.is_ok(), "it crashed");
            Ok::<u64, Failure>(missed() - before)
        };
        ensure_eq!(turns(due_in(100)).await?, 0, "missed, of what has long");
        ensure_eq!(turns(HIGH).await?, 0, "missed, of what has no deadline");
        let late = turns(HIGH.deadline(Duration::ZERO)).await?;
        // Once more, where it was preempted when it was late already: what was left then is another job.
        ensure!(late >= TIMES, "{late} were missed of {TIMES}");
        Ok(())
    }
}

kernel_test! {
    /// A deadline is for what is `High`.
    async fn a_deadline_without_that_priority_is_refused() -> Outcome {
        for priority in [Priority::Max, Priority::Normal, Priority::Low] {
            let refused = due_in(1).priority(priority).start(async {});
            ensure_eq!(refused.err(), Some(SpawnError::DeadlineNotHigh), "{priority:?}");
            let config = Config::default().priority(priority).deadline(Duration::from_millis(1));
            let refused = Executor::start(&config);
            ensure_eq!(refused.err(), Some(StartError::DeadlineNotHigh), "an executor at {priority:?}");
        }
        let given = due_in(1).start(async {})?;
        ensure_eq!(given.process().deadline(), Some(Duration::from_secs(60)), "the deadline");
        ensure_eq!(HIGH.start(async {})?.process().deadline(), None, "no deadline");
        Ok(())
    }
}

kernel_test! {
    /// What waits behind one that goes on for ever leaves for other cores, also what came from another core.
    #[cores(2)]
    #[machine("preemption")]
    async fn what_waits_with_a_deadline_is_stolen() -> Outcome {
        let other = CoreId::new(1).ok_or("there is one core")?;
        let max = HIGH.priority(Priority::Max);
        for (above, parent) in [(due_in(1), other), (due_in(1), CoreId::BOOT), (max, other)] {
            let ran = Arc::new(AtomicU64::new(0));
            let counted = ran.clone();
            let begun = Arc::new(AtomicBool::new(false));
            let begins = begun.clone();
            let hog = above.pinned(other).start(async move {
                set(&begins);
                spin_until(|| counted.load(Ordering::Acquire) == 20)
            })?;
            if parent != other {
                ensure!(spin_until(|| is_set(&begun)), "the hog has not begun");
            }
            let start = move || {
                let process = || {
                    let ran = ran.clone();
                    async move {
                        // So that it comes back to the core where it was.
                        time::sleep(Duration::from_micros(100)).await;
                        ran.fetch_add(1, Ordering::AcqRel);
                    }
                };
                (0..20).map(|_| due_in(5).start(process())).collect::<Result<Vec<_>, _>>()
            };
            let started = Spawn::new().priority(Priority::Max).pinned(parent).start(async move { start() })?;
            let Ok(started) = started.await else { return Err("the parent crashed".into()) };
            for handle in started? {
                ensure!(handle.await.is_ok(), "a process crashed");
            }
            ensure_eq!(hog.await, Ok(true), "whether all ran beside one that spins");
        }
        Ok(())
    }
}

kernel_test! {
    /// Thousands with all sorts of deadlines yield, sleep and wake each other while cores go and come, under each dispatch scheme:
    /// each has all its turns, and none two at once.
    async fn none_is_lost_or_run_twice() -> Outcome {
        const TURNS: u64 = 20;
        let processes = amount("deadlines", 600);
        for scheme in [Dispatch::Stealing, Dispatch::Global, Dispatch::PerCore] {
            let _scheme = Changed::new(&[(Setting::Dispatch, scheme as u64), (Setting::SliceMicroseconds, 200)])?;
            let turns = Arc::new(AtomicU64::new(0));
            let twice = Arc::new(AtomicBool::new(false));
            let mut handles = Vec::new();
            for number in 0..processes {
                let (turns, twice) = (turns.clone(), twice.clone());
                let spawn = match number % 7 {
                    0 => HIGH,
                    1 => Spawn::new(),
                    _ => HIGH.deadline(Duration::from_micros(number * number % 5000)),
                };
                let core = CoreId::new(number as usize % machine::cores()).unwrap_or(CoreId::BOOT);
                // What is pinned keeps a core from going.
                let spawn = if number % 11 == 0 && core == CoreId::BOOT { spawn.pinned(core) } else { spawn };
                handles.push(spawn.start(async move {
                    let inside = AtomicBool::new(false);
                    for turn in 0..TURNS {
                        if inside.swap(true, Ordering::Relaxed) {
                            twice.store(true, Ordering::Relaxed);
                        }
                        turns.fetch_add(1, Ordering::Relaxed);
                        inside.store(false, Ordering::Relaxed);
                        match (number + turn) % 3 {
                            0 => yield_now().await,
                            1 => time::sleep(Duration::from_micros(number % 100)).await,
                            _ => {
                                let mut is_woken = false;
                                poll_fn(|context| {
                                    if core::mem::replace(&mut is_woken, true) {
                                        return Poll::Ready(());
                                    }
                                    context.waker().wake_by_ref();
                                    Poll::Pending
                                })
                                .await;
                            }
                        }
                    }
                })?);
            }
            let others: Vec<_> = cores().filter(|&core| core != CoreId::BOOT).collect();
            for &core in others.iter().cycle().take(if others.is_empty() { 0 } else { 20 }) {
                sched::offline(core).ok();
                time::sleep(Duration::from_micros(500)).await;
                ensure_eq!(sched::online(core), Ok(()), "coming back");
            }
            for handle in handles {
                ensure!(handle.await.is_ok(), "a process crashed");
            }
            ensure_eq!(turns.load(Ordering::Relaxed), processes * TURNS, "turns under {scheme:?}");
            ensure!(!twice.load(Ordering::Relaxed), "a process ran on two cores at once");
        }
        Ok(())
    }
}

/// An actor whose behaviour says that it has run, or spins until another's has.
struct Prompt(Arc<AtomicBool>);

impl Actor for Prompt {}

struct Run;

impl Receive<Run> for Prompt {
    type Reply = ();

    fn receive(&mut self, _: Run, _: &mut Context<Self>) {
        set(&self.0);
    }
}

/// How many behaviours were suspended.
fn suspended() -> u64 {
    stats::worker_total(|worker| worker.detached_behaviours.get())
}

/// Has another run, and spins until it has.
struct SpinUntilRun {
    other: Addr<Prompt>,
    /// How many behaviours had been suspended.
    suspended: u64,
}

impl Receive<SpinUntilRun> for Prompt {
    /// Whether the other has run; `None` if that says nothing.
    type Reply = Option<bool>;

    fn receive(&mut self, request: SpinUntilRun, _: &mut Context<Self>) -> Option<bool> {
        // The mail is to wait for the worker when this is suspended. If the worker had nothing more to do then, it is a job of its own, due after
        // this one, which goes on for as long as it may.
        let is_sent = request.other.send(Run).is_ok();
        (suspended() == request.suspended).then(|| is_sent && spin_until(|| is_set(&self.0)))
    }
}

kernel_test! {
    /// Mail for an executor with a deadline preempts what is due later, and its long behaviours do not keep its other actors.
    #[machine("preemption")]
    async fn an_executor_may_have_a_deadline() -> Outcome {
        let minutes = |minutes: u64| Config::default().workers(1).priority(Priority::High).deadline(Duration::from_secs(60 * minutes));
        let executor = Executor::start(&minutes(10))?;
        for hog in [HIGH, due_in(20), Spawn::new()] {
            let _long = Changed::no_preemption()?;
            let has_run = Arc::new(AtomicBool::new(false));
            let prompt: Addr<Prompt> = executor.handle().spawn(Prompt(has_run.clone()))?;
            sched::out_of_work().await;
            let before = preempted();
            let hog = hog.pinned(CoreId::BOOT).start(async move {
                prompt.send(Run).is_ok() && spin_until(|| is_set(&has_run))
            })?;
            ensure_eq!(hog.await, Ok(true), "whether it was handled beside one that spins");
            ensure!(preempted() > before, "the one that spins was not preempted");
        }
        for deadline in [Duration::ZERO, Duration::from_secs(600)] {
            let _short = Changed::new(&[(Setting::SliceMicroseconds, 100)])?;
            let late = Executor::start(&minutes(0).deadline(deadline))?;
            // Again where the host has held up the guest in between.
            let has_run_beside = loop {
                let has_run = Arc::new(AtomicBool::new(false));
                let (spins, other) = (late.handle().spawn(Prompt(has_run.clone()))?, late.handle().spawn(Prompt(has_run))?);
                let suspended = suspended();
                if let Some(has_run) = spins.ask(SpinUntilRun { other, suspended }).await.map_err(|error| Failure(alloc::format!("{error}")))? {
                    break has_run;
                }
            };
            ensure!(has_run_beside, "the other did not run beside it");
            late.stop().await;
        }
        executor.stop().await;
        Ok(())
    }
}
