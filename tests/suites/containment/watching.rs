//! Who watches is told of each crash exactly once: of actors and processes, whatever the crash, wherever the watcher is by then.
//!
//! How many crashes is said by the boot argument `crashes`; `cargo xtask test --soak` asks for 10^5.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{
    Actor, Addr, Bound, Config, Context, Executor, ExecutorHandle, Receive, Recipient, StaticActor, WhenFull,
    stop,
};
use magpie::arch::CoreId;
use magpie::channel::{ProcessAddr, ProcessMailbox};
use magpie::crash::{self, CrashNumber};
use magpie::internals::mem::heap::HEAP;
use magpie::sched::{self, Priority, Setting, Spawn};
use magpie::watch::{Ended, Exit, Watch};
use magpie::{machine, time};
use magpie_tests::{Changed, Failure, HeapExhauster, Outcome, amount, ensure, ensure_eq, kernel_test};

use crate::ways::{Way, linger};
use crate::{crashed, not_started, start_when_free};

/// Who make others crash, at the same time.
const CULPRITS: usize = 4;

/// What a watcher was told, by the number of the watch: nothing yet, or which exit, so often.
struct Register {
    told: Vec<AtomicU64>,
    handled: AtomicU64,
}

impl Register {
    fn new(watches: usize) -> Arc<Self> {
        let told = (0..watches).map(|_| AtomicU64::new(0)).collect();
        Arc::new(Self { told, handled: AtomicU64::new(0) })
    }

    /// The numbers of watches go on from one test to the next, and nobody else watches meanwhile.
    fn note(&self, first: u64, ended: Ended) {
        let step = if number_of_crash(ended).is_some() { 1 } else { 1 << 32 };
        if let Some(told) = self.told.get((number(ended) - first) as usize) {
            told.fetch_add(step, Ordering::Relaxed);
        }
        self.handled.fetch_add(1, Ordering::Relaxed);
    }
}

/// The number of the crash, if it was one.
fn number_of_crash(ended: Ended) -> Option<CrashNumber> {
    match ended.exit() {
        Exit::Crashed(number) => Some(number),
        _ => None,
    }
}

fn number(ended: Ended) -> u64 {
    ended.watch().number()
}

/// One that watches. Some take long for what they are told.
struct Watcher {
    register: Arc<Register>,
    first: u64,
    takes_long: bool,
}

impl Actor for Watcher {}

impl Receive<Ended> for Watcher {
    type Reply = ();

    fn receive(&mut self, ended: Ended, _: &mut Context<Self>) {
        if self.takes_long && number(ended).is_multiple_of(16) {
            linger();
        }
        self.register.note(self.first, ended);
    }
}

/// Load: passes a number on as often as it says.
impl Receive<u32> for Watcher {
    type Reply = ();

    fn receive(&mut self, left: u32, context: &mut Context<Self>) {
        if left > 0 {
            let _ = context.address().send(left - 1);
        }
    }
}

/// An actor that crashes, with a state that lies in its cell, or in a box.
struct Guilty<const BYTES: usize>([u8; BYTES]);

impl<const BYTES: usize> Actor for Guilty<BYTES> {}

#[derive(Clone, Copy)]
struct Crash {
    way: Way,
    late: bool,
}

impl Crash {
    fn happen(self) -> u64 {
        if self.late {
            linger();
        }
        self.way.crash()
    }
}

impl<const BYTES: usize> Receive<Crash> for Guilty<BYTES> {
    type Reply = u64;

    fn receive(&mut self, crash: Crash, _: &mut Context<Self>) -> u64 {
        crash.happen() + u64::from(self.0[0])
    }
}

static STORAGE: [StaticActor<Guilty<40>>; CULPRITS] = [const { StaticActor::new() }; CULPRITS];

/// Those who watch each culprit.
#[derive(Clone)]
struct Scene {
    handle: ExecutorHandle,
    watchers: Arc<Vec<Recipient<Ended>>>,
    mailbox: ProcessAddr<Ended>,
}

impl Scene {
    fn watch(
        &self,
        watch: impl Fn(Option<&Recipient<Ended>>) -> Result<Watch, magpie::mem::OutOfMemory>,
        number: u64,
    ) -> Outcome {
        let watcher = &self.watchers[number as usize % self.watchers.len()];
        watch(Some(watcher))?;
        watch(None)?;
        Ok(())
    }

    fn watch_actor<A: Actor>(&self, actor: Addr<A>, number: u64) -> Outcome {
        self.watch(
            |watcher| watcher.map_or_else(|| actor.watch(&self.mailbox), |watcher| actor.watch(watcher)),
            number,
        )
    }

    /// One crash, for the `number`th time, by the culprit of that index, watched by two.
    async fn one(&self, culprit: usize, number: u64) -> Outcome {
        let crash = Crash { way: Way::ALL[number as usize % 3], late: number % 5 == 4 };
        match number % 4 {
            0 => {
                let actor = self.handle.spawn(Guilty([1; 40]))?;
                self.watch_actor(actor, number)?;
                actor.send(crash)?;
                crashed(actor).await?;
            }
            1 => {
                let actor = self.handle.spawn(Guilty([1; 1500]))?;
                self.watch_actor(actor, number)?;
                actor.send(crash)?;
                crashed(actor).await?;
            }
            2 => {
                let actor = start_when_free(&STORAGE[culprit], &self.handle, Guilty([1; 40])).await?;
                self.watch_actor(actor, number)?;
                actor.send(crash)?;
                crashed(actor).await?;
            }
            _ => {
                let core = CoreId::new(number as usize / 4 % machine::cores()).unwrap_or(CoreId::BOOT);
                // It waits until it is watched, or could have crashed by then.
                let go = Arc::new(AtomicBool::new(false));
                let gone = go.clone();
                let process = Spawn::new().pinned(core).start(async move {
                    while !gone.load(Ordering::Acquire) {
                        sched::yield_now().await;
                    }
                    crash.happen()
                });
                let process = process.map_err(not_started)?;
                let reference = process.process().clone();
                self.watch(
                    |watcher| {
                        watcher.map_or_else(
                            || reference.watch(&self.mailbox),
                            |watcher| reference.watch(watcher),
                        )
                    },
                    number,
                )?;
                go.store(true, Ordering::Release);
                ensure!(process.await.is_err(), "a process did not crash");
            }
        }
        Ok(())
    }
}

/// The number that the next watch will have.
async fn next_number() -> Result<u64, Failure> {
    let mailbox = ProcessMailbox::<Ended>::new(1)?;
    let process = sched::spawn(async {}).map_err(not_started)?;
    let watch = process.process().watch(&mailbox.address())?;
    process.await?;
    Ok(watch.id().number() + 1)
}

kernel_test! {
    /// Under load, with stealing, by watchers some of which are suspended when they are told, or whose mailbox is full.
    #[machine("isolation")]
    async fn each_crash_is_told_once() -> Outcome {
        let crashes = amount("crashes", 200);
        let _slice = Changed::new(&[(Setting::SliceMicroseconds, 200)])?;
        sched::out_of_work().await;
        let first = next_number().await?;
        let executor = Executor::start(&Config::default())?;
        let bounded = Executor::start(&Config::default().bound(Bound::new(2, WhenFull::DropOldest)))?;
        let register = Register::new(2 * crashes as usize);
        let mut watchers = Vec::new();
        for index in 0..12 {
            let watcher = Watcher { register: register.clone(), first, takes_long: index % 3 == 0 };
            let handle = if index % 2 == 0 { executor.handle() } else { bounded.handle() };
            let watcher = handle.spawn(watcher)?;
            watcher.send(10_000_u32)?;
            watchers.push(watcher.recipient());
        }
        let mut ends = ProcessMailbox::<Ended>::new(1)?;
        let mailbox = ends.address();
        let in_mailbox = register.clone();
        let receives = sched::spawn(async move {
            while let Some(ended) = ends.receive().await {
                in_mailbox.note(first, ended);
            }
        });
        let receives = receives.map_err(not_started)?;
        let scene = Scene { handle: executor.handle().clone(), watchers: Arc::new(watchers), mailbox };
        let mut culprits = Vec::new();
        for culprit in 0..CULPRITS {
            let scene = scene.clone();
            let crashing = async move {
                for number in (culprit as u64..crashes).step_by(CULPRITS) {
                    scene.one(culprit, number).await?;
                }
                Ok::<(), Failure>(())
            };
            culprits.push(sched::spawn(crashing).map_err(not_started)?);
        }
        for culprit in culprits {
            culprit.await??;
        }
        // The last address but for those of watches.
        drop(scene);
        receives.await?;
        sched::out_of_work().await;
        ensure_eq!(register.handled.load(Ordering::Relaxed), 2 * crashes, "ends that were told");
        for told in &register.told {
            ensure_eq!(told.load(Ordering::Relaxed), 1, "how often one watch told of a crash (others in the upper half)");
        }
        executor.stop().await;
        bounded.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// What is told lies in memory of its own, which was there before.
    async fn an_end_is_told_with_memory_used_up() -> Outcome {
        let whole = Changed::no_preemption()?;
        let first = next_number().await?;
        let executor = Executor::start(&Config::default())?;
        let register = Register::new(64);
        let watcher = Watcher { register: register.clone(), first, takes_long: false };
        let watcher = executor.handle().spawn(watcher)?.recipient();
        let mut ends = ProcessMailbox::<Ended>::new(1)?;
        let mut actors = Vec::new();
        for _ in 0..32 {
            let actor = executor.handle().spawn(Guilty([1; 40]))?;
            actor.watch(&watcher)?;
            actor.watch(&ends.address())?;
            actors.push(actor);
        }
        let mut exhauster = HeapExhauster::everything(16);
        exhauster.take_more(16);
        let refused = actors[0].watch(&watcher).is_err();
        for actor in &actors {
            while actor.send(stop::End).is_err() {
                sched::yield_now().await;
            }
        }
        let told = async {
            let mut received = 0;
            while received < 32 {
                received += u64::from(ends.receive().await.is_some());
            }
            while register.handled.load(Ordering::Relaxed) < 32 {
                sched::yield_now().await;
            }
            received
        };
        let received = time::background_timeout(magpie_tests::HANGS_AFTER, told).await;
        drop(exhauster);
        drop(whole);
        ensure_eq!(received, Ok(32), "ends that came to a mailbox, with memory used up");
        ensure_eq!(register.handled.load(Ordering::Relaxed), 32, "ends that came to an actor");
        ensure!(refused, "there was memory for another watch");
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// Watches of those who have ended since do not pile up at one who lives on.
    async fn watches_of_the_dead_leave_no_memory() -> Outcome {
        const ROUNDS: usize = 2000;
        let executor = Executor::start(&Config::default())?;
        let lives = executor.handle().spawn(Guilty([1; 40]))?;
        let process = sched::spawn(async { time::sleep(Duration::from_secs(3600)).await }).map_err(not_started)?;
        let mut before = 0;
        for round in 0..ROUNDS {
            let register = Register::new(0);
            let watcher = executor.handle().spawn(Watcher { register, first: 0, takes_long: false })?;
            let mailbox = ProcessMailbox::<Ended>::new(1)?;
            lives.watch(&watcher.recipient())?;
            lives.watch(&mailbox.address())?;
            process.process().watch(&watcher.recipient())?;
            process.process().watch(&mailbox.address())?;
            watcher.send(stop::End)?;
            crashed(watcher).await?;
            if round == ROUNDS / 2 {
                before = HEAP.usage().0;
            }
        }
        let grown = HEAP.usage().0.saturating_sub(before);
        ensure!(grown < 32 * 1024, "{grown} bytes more are in use after {} watchers that ended", ROUNDS / 2);
        executor.stop().await;
        Ok(())
    }
}

/// Watches whoever comes, and crashes while it does.
struct Careless;

impl Actor for Careless {}

impl Receive<Ended> for Careless {
    type Reply = ();

    fn receive(&mut self, _: Ended, _: &mut Context<Self>) {}
}

impl Receive<Addr<Guilty<40>>> for Careless {
    type Reply = ();

    fn receive(&mut self, other: Addr<Guilty<40>>, context: &mut Context<Self>) {
        let watches =
            vec![context.watch(other), context.watch(other), other.watch(&context.address().recipient())];
        let boxed = Box::new(watches);
        if boxed.iter().all(Result::is_ok) {
            Way::Panic.crash();
        }
    }
}

kernel_test! {
    /// A watcher that crashes, one that watches itself, and two that watch each other.
    #[machine("isolation")]
    async fn watchers_crash_too() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        for _ in 0..20 {
            let mut ends = ProcessMailbox::<Ended>::new(1)?;
            let (careless, other) = (executor.handle().spawn(Careless)?, executor.handle().spawn(Guilty([1; 40]))?);
            careless.watch(&careless.recipient())?;
            careless.watch(&ends.address())?;
            careless.send(other)?;
            let record = ends.receive().await.and_then(number_of_crash).and_then(crash::record);
            ensure!(record.is_some_and(|record| record.name().contains("Careless")), "the watcher: {record:?}");
            other.watch(&ends.address())?;
            other.send(Crash { way: Way::Fault, late: false })?;
            let record = ends.receive().await.and_then(number_of_crash).and_then(crash::record);
            ensure!(record.is_some_and(|record| record.name().contains("Guilty")), "the other: {record:?}");
        }
        executor.stop().await;
        Ok(())
    }
}

/// One whose end goes wrong.
struct Brittle;

impl Drop for Brittle {
    fn drop(&mut self) {
        Way::Panic.crash();
    }
}

impl Actor for Brittle {}

kernel_test! {
    /// One that crashes while it ends, or while its executor drops it, is told of once.
    #[machine("isolation")]
    async fn who_crashes_at_its_end_is_told_of_once() -> Outcome {
        for _ in 0..10 {
            let executor = Executor::start(&Config::default())?;
            let mut ends = ProcessMailbox::<Ended>::new(1)?;
            let (ended, left, both) =
                (executor.handle().spawn(Brittle)?, executor.handle().spawn(Brittle)?, executor.handle().spawn(Brittle)?);
            for brittle in [ended, left, both] {
                brittle.watch(&ends.address())?;
            }
            ended.send(stop::End)?;
            ensure!(ends.receive().await.and_then(number_of_crash).is_some(), "the end of one that ended");
            executor.stop().await;
            ensure_eq!(ends.receive().await.map(|ended| ended.exit()), Some(Exit::Stopped), "the end of one that was left");
            ensure_eq!(ends.receive().await.map(|ended| ended.exit()), Some(Exit::Stopped), "the end of the other");
            ensure_eq!(ends.receive().await, None, "what came after all had ended");
        }
        Ok(())
    }
}

kernel_test! {
    /// Thousands watch one that crashes: an actor, and a mailbox with room for one.
    #[machine("isolation")]
    async fn thousands_watch_one() -> Outcome {
        const WATCHES: u64 = 4000;
        let first = next_number().await?;
        let executor = Executor::start(&Config::default())?;
        let register = Register::new(2 * WATCHES as usize);
        let watcher = Watcher { register: register.clone(), first, takes_long: false };
        let watcher = executor.handle().spawn(watcher)?.recipient();
        let mut ends = ProcessMailbox::<Ended>::new(1)?;
        let guilty = executor.handle().spawn(Guilty([1; 40]))?;
        for _ in 0..WATCHES {
            guilty.watch(&watcher)?;
            guilty.watch(&ends.address())?;
        }
        guilty.send(Crash { way: Way::Panic, late: false })?;
        for _ in 0..WATCHES {
            let ended = ends.receive().await.ok_or("no watch is left that could tell")?;
            register.note(first, ended);
        }
        sched::out_of_work().await;
        for told in &register.told {
            ensure_eq!(told.load(Ordering::Relaxed), 1, "how often one watch told of the crash");
        }
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// The same of a process.
    #[machine("isolation")]
    async fn thousands_watch_a_process_that_crashes() -> Outcome {
        const WATCHES: u64 = 4000;
        let first = next_number().await?;
        let register = Register::new(WATCHES as usize);
        let mut ends = ProcessMailbox::<Ended>::new(1)?;
        let mut start = ProcessMailbox::<()>::new(1)?;
        let go = start.address();
        let guilty = sched::spawn(async move {
            start.receive().await;
            Way::Panic.crash();
        })
        .map_err(not_started)?;
        for _ in 0..WATCHES {
            guilty.process().watch(&ends.address())?;
        }
        go.send(())?;
        for _ in 0..WATCHES {
            let ended = ends.receive().await.ok_or("no watch is left that could tell")?;
            register.note(first, ended);
        }
        ensure!(guilty.await.is_err(), "one that crashed has returned");
        for told in &register.told {
            ensure_eq!(told.load(Ordering::Relaxed), 1, "how often one watch told of the crash");
        }
        Ok(())
    }
}

kernel_test! {
    /// However many watch, each is told once, and the core on which somebody ends does not tell all of them before others have a turn.
    async fn telling_many_keeps_nobody_waiting() -> Outcome {
        const WATCHES: usize = 10_000;
        let here = Spawn::new().pinned(CoreId::BOOT);
        for is_crash in [false, true] {
            let mut go = ProcessMailbox::<()>::new(1)?;
            let address = go.address();
            let victim = here.start(async move {
                go.receive().await;
                if is_crash { Way::Panic.crash() } else { 0 }
            });
            let who = victim.map_err(not_started)?.process().clone();
            let watcher = here.start(async move {
                let mut ends = ProcessMailbox::<Ended>::new(1)?;
                let mut watches = Vec::with_capacity(WATCHES);
                for _ in 0..WATCHES {
                    watches.push((who.watch(&ends.address())?.id(), 0));
                }
                address.send(()).map_err(|error| error.without_message())?;
                while !who.is_done() {
                    sched::yield_now().await;
                }
                let at_once = ends.waiting();
                while let Some(ended) = ends.receive().await {
                    let place = watches.binary_search_by_key(&ended.watch(), |watch| watch.0);
                    watches[place.map_err(|_| "a watch that nobody has has told")?].1 += 1;
                }
                ensure!(watches.iter().all(|watch| watch.1 == 1), "a watch has not told once");
                Ok::<_, Failure>(at_once)
            });
            let at_once = watcher.map_err(not_started)?.await??;
            // With more cores those others may have told the rest by then.
            ensure!(machine::cores() > 1 || at_once < WATCHES / 2, "{at_once} were told before others had a turn");
        }
        Ok(())
    }
}

kernel_test! {
    /// The rest of many is told by a process of the kernel's. Whoever kills all that is listed does not keep any watch from telling.
    #[machine("preemption")]
    async fn whoever_kills_all_leaves_each_watch_to_tell() -> Outcome {
        const WATCHES: usize = 4000;
        const ROUNDS: usize = 12;
        let _slice = Changed::new(&[(Setting::SliceMicroseconds, 100)])?;
        let (over, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let killer = {
            let (over, seen) = (over.clone(), seen.clone());
            Spawn::new().priority(Priority::High).start(async move {
                while !over.load(Ordering::Acquire) {
                    for process in sched::processes().filter(|process| process.type_name().contains("the kernel's")) {
                        seen.fetch_add(1, Ordering::Relaxed);
                        process.kill();
                    }
                    time::sleep(Duration::from_micros(70)).await;
                }
            })?
        };
        for round in 0..ROUNDS {
            let mut ends = ProcessMailbox::<Ended>::new(1)?;
            let mut go = ProcessMailbox::<()>::new(1)?;
            let address = go.address();
            let victim = sched::spawn(async move {
                go.receive().await;
            })?;
            let mut watches = Vec::with_capacity(WATCHES);
            for _ in 0..WATCHES {
                watches.push((victim.process().watch(&ends.address())?.id(), 0));
            }
            address.send(())?;
            victim.await?;
            // A watch counts as an address: this ends when none is left.
            while let Some(ended) = ends.receive().await {
                let place = watches.binary_search_by_key(&ended.watch(), |watch| watch.0);
                watches[place.map_err(|_| "a watch that nobody has has told")?].1 += 1;
            }
            let wrong = watches.iter().filter(|watch| watch.1 != 1).count();
            ensure_eq!(wrong, 0, "watches that have not told once, in round {round}");
        }
        over.store(true, Ordering::Release);
        killer.await?;
        ensure!(seen.load(Ordering::Relaxed) > 0, "no process told the rest while somebody looked");
        Ok(())
    }
}

kernel_test! {
    /// As much as its documentation says, until it has told.
    async fn a_watch_takes_few_bytes() -> Outcome {
        const WATCHES: usize = 4096;
        /// What the heap may keep beside, for all of them.
        const BESIDE: usize = 64 * 1024;
        let executor = Executor::start(&Config::default())?;
        let register = Register::new(0);
        let watcher = Watcher { register, first: 0, takes_long: false };
        let watcher = executor.handle().spawn(watcher)?.recipient();
        let mailbox = ProcessMailbox::<Ended>::new(1)?;
        let lives = sched::spawn(async { time::sleep(Duration::from_secs(3600)).await }).map_err(not_started)?;
        let mut watches = Vec::with_capacity(WATCHES);
        for is_actor in [true, false] {
            let before = HEAP.usage().0;
            for _ in 0..WATCHES {
                let process = lives.process();
                watches.push(if is_actor { process.watch(&watcher)? } else { process.watch(&mailbox.address())? });
            }
            let bytes = HEAP.usage().0.saturating_sub(before);
            ensure!(bytes <= 64 * WATCHES + BESIDE, "{WATCHES} watches take {bytes} bytes: actor {is_actor}");
            ensure!(watches.drain(..).all(Watch::cancel), "a watch of one that lives has told");
        }
        lives.process().kill();
        executor.stop().await;
        Ok(())
    }
}
