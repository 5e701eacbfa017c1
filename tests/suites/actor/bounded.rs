//! Actors that have a mailbox alone, with a bound of its own: who floods one takes nothing from others, and what it gives up is its.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use magpie::actor::stop::{End, Vacate};
use magpie::actor::{
    Actor, Addr, Bound, Config, Context, Executor, ExecutorHandle, NotSpawned, Receive, SendError, WhenFull,
};
use magpie::internals::actor::chunk_bytes;
use magpie::internals::mem::heap::HEAP;
use magpie::watch::Ended;
use magpie::{sched, stats, time};
use magpie_tests::{HANGS_AFTER, Outcome, amount, ensure, ensure_eq, kernel_test};

const BOUND: u32 = 8;

/// Of so many actors one crashes.
const CRASHES_ONE_IN: u64 = 64;

/// What the actors and the senders of a test have counted.
#[derive(Default)]
struct Seen {
    handled: AtomicU64,
    refused: AtomicU64,
    dropped: AtomicU64,
    /// Messages that did not come in the order in which they were sent.
    wrong: AtomicU64,
    ends: AtomicU64,
    free: AtomicBool,
}

fn read(count: &AtomicU64) -> u64 {
    count.load(Ordering::Acquire)
}

fn add(count: &AtomicU64) {
    count.fetch_add(1, Ordering::AcqRel);
}

/// A message that counts its end, whether it was handled or given up.
struct Number {
    value: u64,
    seen: Arc<Seen>,
}

impl Drop for Number {
    fn drop(&mut self) {
        add(&self.seen.dropped);
    }
}

struct Counter {
    seen: Arc<Seen>,
    last: u64,
}

impl Actor for Counter {}

impl Receive<Number> for Counter {
    type Reply = ();

    fn receive(&mut self, number: Number, _: &mut Context<Self>) {
        if number.value <= self.last {
            add(&self.seen.wrong);
        }
        self.last = number.value;
        add(&self.seen.handled);
    }
}

struct SpinUntilFree;

impl Receive<SpinUntilFree> for Counter {
    type Reply = ();

    fn receive(&mut self, _: SpinUntilFree, _: &mut Context<Self>) {
        while !self.seen.free.load(Ordering::Acquire) {
            core::hint::spin_loop();
        }
    }
}

/// Send yourself so many numbers.
struct Fill(u64);

impl Receive<Fill> for Counter {
    type Reply = ();

    fn receive(&mut self, Fill(numbers): Fill, context: &mut Context<Self>) {
        for value in 1..=numbers {
            if context.address().send(Number { value, seen: self.seen.clone() }).is_err() {
                add(&self.seen.refused);
            }
        }
    }
}

struct Panic;

impl Receive<Panic> for Counter {
    type Reply = ();

    fn receive(&mut self, _: Panic, _: &mut Context<Self>) {
        if core::hint::black_box(true) {
            panic!("on purpose");
        }
    }
}

/// End that one, with your mailbox full, and hear of it.
struct EndFull(Addr<Counter>);

impl Receive<EndFull> for Counter {
    type Reply = ();

    fn receive(&mut self, EndFull(other): EndFull, context: &mut Context<Self>) {
        if context.watch(other).is_err() || other.send(End).is_err() {
            add(&self.seen.wrong);
        }
        let mut value = 1_000_000;
        while context.address().send(Number { value, seen: self.seen.clone() }).is_ok() {
            value += 1;
        }
        while other.is_alive() {
            core::hint::spin_loop();
        }
    }
}

impl Receive<Ended> for Counter {
    type Reply = ();

    fn receive(&mut self, _: Ended, _: &mut Context<Self>) {
        add(&self.seen.ends);
    }
}

fn counter(seen: &Arc<Seen>) -> Counter {
    Counter { seen: seen.clone(), last: 0 }
}

fn detached() -> u64 {
    stats::worker_total(|worker| worker.detached_behaviours.get())
}

/// Sends so many numbers, and counts those that come back.
async fn flood(to: Addr<Counter>, seen: Arc<Seen>, numbers: u64) {
    for value in 1..=numbers {
        match to.send(Number { value, seen: seen.clone() }) {
            Ok(_) => {}
            Err(_) => add(&seen.refused),
        }
        if sched::is_exhausted() {
            sched::yield_now().await;
        }
    }
}

/// Floods bounded actors while innocents, in as few mailboxes as there can be, are sent to as well. Each has one sender.
async fn beside_innocents(when_full: WhenFull) -> Outcome {
    const EACH: usize = 4;
    let numbers = amount("numbers", 5000);
    let workers = magpie::machine::cores().min(8);
    let executor =
        Executor::start(&Config::default().workers(workers).mailboxes(workers).own_mailboxes(EACH))?;
    let (mut flooded, mut innocent, mut senders) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..EACH {
        for (is_bounded, list) in [(true, &mut flooded), (false, &mut innocent)] {
            let seen = Arc::new(Seen::default());
            let actor = if is_bounded {
                executor.handle().spawn_bounded(counter(&seen), Bound::new(BOUND, when_full))
            } else {
                executor.handle().spawn(counter(&seen))
            }
            .map_err(|error| error.without_actor())?;
            senders.push(sched::spawn(flood(actor, seen.clone(), numbers))?);
            list.push(seen);
        }
    }
    for sender in senders {
        sender.await?;
    }
    sched::out_of_work().await;
    for seen in &innocent {
        ensure_eq!((read(&seen.handled), read(&seen.refused)), (numbers, 0), "an innocent's mail");
        ensure_eq!(
            (read(&seen.dropped), read(&seen.wrong)),
            (numbers, 0),
            "an innocent's drops and disorder"
        );
    }
    for seen in &flooded {
        let (handled, refused) = (read(&seen.handled), read(&seen.refused));
        ensure_eq!((read(&seen.dropped), read(&seen.wrong)), (numbers, 0), "drops and disorder");
        ensure!(handled >= u64::from(BOUND), "only {handled} were handled");
        match when_full {
            WhenFull::Refuse => ensure_eq!(handled + refused, numbers, "handled and refused"),
            _ => ensure_eq!(refused, 0, "refused, where the mailbox forgets"),
        }
    }
    ensure!(executor.handle().table_is_whole(), "the table does not hold each mailbox once");
    ensure_eq!(executor.stop().await, 0, "messages left over");
    Ok(())
}

/// What one behaviour that fills its own mailbox leaves: how many were refused, and how many handled.
async fn fill_itself(when_full: WhenFull) -> Result<(u64, u64), magpie_tests::Failure> {
    loop {
        let before = detached();
        let seen = Arc::new(Seen::default());
        let executor = Executor::start(&Config::default().own_mailboxes(1))?;
        let actor = executor
            .handle()
            .spawn_bounded(counter(&seen), Bound::new(BOUND, when_full))
            .map_err(|error| error.without_actor())?;
        actor.send(Fill(100)).map_err(|_| "the actor has ended")?;
        sched::out_of_work().await;
        executor.stop().await;
        ensure_eq!(read(&seen.dropped), 100, "drops, one for each message");
        ensure_eq!(read(&seen.wrong), 0, "disorder");
        if detached() == before {
            return Ok((read(&seen.refused), read(&seen.handled)));
        }
    }
}

/// Sends until one is accepted that finds the actor alive and its mailbox full.
fn fill(actor: Addr<Counter>, seen: &Arc<Seen>) {
    for value in 1..=u64::from(BOUND) * 4 {
        let _ = actor.send(Number { value, seen: seen.clone() });
    }
}

async fn spawn_when_free(
    handle: &ExecutorHandle,
    seen: &Arc<Seen>,
) -> Result<Addr<Counter>, magpie_tests::Failure> {
    let spawning = async {
        loop {
            match handle.spawn_bounded(counter(seen), Bound::new(BOUND, WhenFull::Refuse)) {
                Err(NotSpawned::NoMailbox(_)) => sched::yield_now().await,
                other => return other.map_err(|error| error.without_actor()),
            }
        }
    };
    match time::background_timeout(HANGS_AFTER, spawning).await {
        Ok(spawned) => Ok(spawned?),
        Err(_) => Err("a mailbox was not given back".into()),
    }
}

kernel_test! {
    async fn a_flood_that_is_refused_costs_nobody_else() -> Outcome {
        beside_innocents(WhenFull::Refuse).await
    }
}

kernel_test! {
    async fn a_flood_that_forgets_the_oldest_forgets_its_own() -> Outcome {
        beside_innocents(WhenFull::DropOldest).await
    }
}

kernel_test! {
    async fn a_flood_that_forgets_the_newest_forgets_its_own() -> Outcome {
        beside_innocents(WhenFull::DropNewest).await
    }
}

kernel_test! {
    /// The numbers are exact where nothing is taken out meanwhile.
    async fn what_exceeds_a_bound_of_ones_own_is_counted_exactly() -> Outcome {
        let bound = u64::from(BOUND);
        ensure_eq!(fill_itself(WhenFull::Refuse).await?, (100 - bound, bound), "refused and handled");
        ensure_eq!(fill_itself(WhenFull::DropOldest).await?, (0, bound), "refused and handled, without the oldest");
        ensure_eq!(fill_itself(WhenFull::DropNewest).await?, (0, bound), "refused and handled, without the newest");
        Ok(())
    }
}

kernel_test! {
    /// What is put aside for an actor while its behaviour is suspended counts, or a hog could be flooded without an end. Who waits
    /// for room is told when there is some.
    #[machine("preemption")]
    async fn a_suspended_hog_is_bounded() -> Outcome {
        for when_full in [WhenFull::Refuse, WhenFull::DropOldest, WhenFull::DropNewest] {
            let (seen, numbers) = (Arc::new(Seen::default()), 20_000);
            let executor = Executor::start(&Config::default().own_mailboxes(1))?;
            let bound = Bound::new(BOUND, when_full);
            let hog = executor.handle().spawn_bounded(counter(&seen), bound).map_err(|error| error.without_actor())?;
            let before = detached();
            hog.send(SpinUntilFree)?;
            while detached() == before {
                sched::yield_now().await;
            }
            flood(hog, seen.clone(), numbers).await;
            let waiter = (when_full == WhenFull::Refuse).then(|| {
                sched::spawn({
                    let seen = seen.clone();
                    async move { hog.send_wait(Number { value: numbers + 1, seen }).await.is_ok() }
                })
            });
            for _ in 0..10 {
                sched::yield_now().await;
            }
            seen.free.store(true, Ordering::Release);
            let waited = match waiter {
                Some(waiter) => {
                    ensure_eq!(waiter?.await, Ok(true), "whether what waited for room was sent");
                    1
                }
                None => 0,
            };
            sched::out_of_work().await;
            let (handled, refused) = (read(&seen.handled), read(&seen.refused));
            ensure!(handled >= u64::from(BOUND), "only {handled} were handled");
            ensure!(handled <= 4 * u64::from(BOUND), "{handled} waited for a suspended hog");
            if when_full == WhenFull::Refuse {
                ensure_eq!(handled + refused, numbers + waited, "handled and refused");
            }
            ensure_eq!(read(&seen.dropped), numbers + waited, "drops, one for each message");
            ensure_eq!(read(&seen.wrong), 0, "disorder");
            executor.stop().await;
        }
        Ok(())
    }
}

kernel_test! {
    /// Actors end with full mailboxes, by themselves, in a crash and killed, and each mailbox serves thousands.
    #[machine("the kernel's heap")]
    async fn ten_thousand_bounded_lives_at_constant_heap() -> Outcome {
        let lives = amount("lives", 10_000);
        let executor = Executor::start(&Config::default().own_mailboxes(2))?;
        let seen = Arc::new(Seen::default());
        let crashed = || stats::worker_total(|worker| worker.actors_crashed.get());
        let before = crashed();
        let without_cells = || HEAP.usage().0 - chunk_bytes();
        let mut settled = 0;
        for life in 0..lives {
            if life == lives / 10 {
                sched::out_of_work().await;
                settled = without_cells();
            }
            let actor = spawn_when_free(executor.handle(), &seen).await?;
            match life % CRASHES_ONE_IN {
                0 => _ = actor.send(Panic),
                1..32 => _ = actor.kill(),
                _ => _ = actor.send(End),
            }
            fill(actor, &seen);
            if life % CRASHES_ONE_IN == 0 {
                executor.all_ended().await;
            }
        }
        executor.all_ended().await;
        sched::out_of_work().await;
        // Nothing is dropped of the state of one that crashed, or that a kill has found in a behaviour: then nor of its message.
        let (panicked, crashed) = (lives.div_ceil(CRASHES_ONE_IN), crashed() - before);
        let owners = Arc::strong_count(&seen) as u64;
        ensure!(
            (1 + crashed..=1 + crashed + (crashed - panicked)).contains(&owners),
            "{owners} owners at the end, {crashed} crashed, {panicked} of them on purpose"
        );
        let grown = without_cells().saturating_sub(settled);
        ensure!(grown <= 16 * 1024, "the heap grew by {grown} bytes in {lives} lives");
        ensure_eq!(executor.stop().await, 0, "messages left over");
        Ok(())
    }
}

kernel_test! {
    async fn a_mailbox_of_ones_own_is_nobody_elses() -> Outcome {
        let seen = Arc::new(Seen::default());
        let executor = Executor::start(&Config::default().own_mailboxes(1))?;
        let (handle, bound) = (executor.handle(), Bound::new(BOUND, WhenFull::Refuse));
        let first = handle.spawn_bounded(counter(&seen), bound).map_err(|error| error.without_actor())?;
        let second = handle.spawn_bounded(counter(&seen), bound).map_err(|error| error.without_actor());
        ensure!(matches!(second, Err(NotSpawned::NoMailbox(()))), "a second one had a mailbox");
        let beside = handle.spawn_beside(first, counter(&seen)).map_err(|error| error.without_actor());
        ensure!(matches!(beside, Err(NotSpawned::Alone(()))), "another was put into its mailbox");
        // One that was vacated keeps its mailbox for its successor.
        first.send(Vacate)?;
        executor.all_ended().await;
        sched::out_of_work().await;
        let second = handle.spawn_bounded(counter(&seen), bound).map_err(|error| error.without_actor());
        ensure!(matches!(second, Err(NotSpawned::NoMailbox(()))), "the mailbox of one that was vacated was given away");
        let successor = handle.respawn(first, counter(&seen)).map_err(|error| error.without_actor())?;
        let second = handle.spawn_bounded(counter(&seen), bound).map_err(|error| error.without_actor());
        ensure!(matches!(second, Err(NotSpawned::NoMailbox(()))), "the successor's mailbox was given away");
        successor.send(Fill(100))?;
        // It may have filled its mailbox by now.
        while successor.send(End).is_err() {
            sched::yield_now().await;
        }
        executor.all_ended().await;
        let third = spawn_when_free(handle, &seen).await?;
        third.send(End)?;
        executor.all_ended().await;
        executor.stop().await;
        ensure_eq!(Arc::strong_count(&seen), 1, "owners at the end");
        let none = Executor::start(&Config::default())?;
        let refused = none.handle().spawn_bounded(counter(&seen), bound).map_err(|error| error.without_actor());
        ensure!(matches!(refused, Err(NotSpawned::NoMailbox(()))), "an executor without such mailboxes had one");
        none.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// An end is told although the mailbox is full.
    #[machine("preemption")]
    async fn a_full_mailbox_of_ones_own_lets_an_end_pass() -> Outcome {
        let (seen, others) = (Arc::new(Seen::default()), Arc::new(Seen::default()));
        let executor = Executor::start(&Config::default().own_mailboxes(1))?;
        let bound = Bound::new(BOUND, WhenFull::Refuse);
        let watcher = executor.handle().spawn_bounded(counter(&seen), bound).map_err(|error| error.without_actor())?;
        let other = executor.handle().spawn(counter(&others)).map_err(|error| error.without_actor())?;
        if magpie::machine::cores() == 1 {
            // Nobody else could end it while the watcher's behaviour looks at it.
            return executor.stop().await.eq(&0).then_some(()).ok_or_else(|| "messages left over".into());
        }
        watcher.send(EndFull(other))?;
        sched::out_of_work().await;
        ensure_eq!((read(&seen.ends), read(&seen.wrong)), (1, 0), "ends that were told, and failures");
        ensure!(watcher.is_alive() && !other.is_alive(), "the wrong one has ended");
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    async fn the_mailboxes_of_an_executor_have_numbers() -> Outcome {
        let most = Executor::start(&Config::default().own_mailboxes(usize::MAX));
        ensure!(most.is_err(), "an executor was started with more mailboxes than there are");
        let executor = Executor::start(&Config::default().own_mailboxes(100))?;
        ensure!(executor.handle().table_is_whole(), "the table does not hold each mailbox once");
        let seen = Arc::new(Seen::default());
        let mut all = Vec::new();
        for _ in 0..100 {
            let bound = Bound::new(1, WhenFull::Refuse);
            all.push(executor.handle().spawn_bounded(counter(&seen), bound).map_err(|error| error.without_actor())?);
        }
        for actor in &all {
            match actor.send(Number { value: 1, seen: seen.clone() }) {
                Ok(_) | Err(SendError::Full(_)) => {}
                Err(_) => return Err("an actor has ended".into()),
            }
        }
        sched::out_of_work().await;
        ensure_eq!(read(&seen.handled), 100, "numbers that were handled, one by each");
        ensure_eq!(executor.stop().await, 0, "messages left over");
        Ok(())
    }
}
