//! Killing actors: one ends from outside, whatever it does, alone, and everybody is told once; and an executor's stop does not wait for
//! ever.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Addr, Config, Context, Executor, Hook, Receive, StaticActor, stop};
use magpie::arch::CoreId;
use magpie::channel::ProcessMailbox;
use magpie::crash::{self, CrashKind};
use magpie::internals::mem::heap::HEAP;
use magpie::sched::{self, Setting};
use magpie::watch::{Ended, Exit};
use magpie::{machine, time};
use magpie_tests::{
    Changed, Failure, HANGS_AFTER, HeapExhauster, Outcome, amount, ensure, ensure_eq, kernel_test,
};

use crate::start_when_free;
use crate::ways::linger;

/// What became of those who write here.
#[derive(Default)]
struct Log {
    /// Behaviours that have begun to spin.
    spinning: AtomicU64,
    hooks: AtomicU64,
    drops: AtomicU64,
    handled: AtomicU64,
    /// Numbers that did not come in order.
    wrong: AtomicU64,
}

fn read(count: &AtomicU64) -> u64 {
    count.load(Ordering::Acquire)
}

fn add(count: &AtomicU64) {
    count.fetch_add(1, Ordering::AcqRel);
}

/// Where one of them goes on for ever.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Endless {
    Nowhere,
    Hook,
    Drop,
}

struct Subject {
    log: Arc<Log>,
    next: u64,
    endless: Endless,
}

impl Subject {
    fn new(log: &Arc<Log>) -> Self {
        Self::endless(log, Endless::Nowhere)
    }

    fn endless(log: &Arc<Log>, endless: Endless) -> Self {
        Self { log: log.clone(), next: 0, endless }
    }

    fn spin(&self) -> ! {
        add(&self.log.spinning);
        loop {
            spin_loop();
        }
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        add(&self.log.drops);
        if self.endless == Endless::Drop {
            self.spin();
        }
    }
}

impl Actor for Subject {
    fn stopped() -> Option<Hook<Self>> {
        Some(|subject, _| {
            add(&subject.log.hooks);
            if subject.endless == Endless::Hook {
                subject.spin();
            }
        })
    }
}

/// The next in order.
struct Number(u64);

impl Receive<Number> for Subject {
    type Reply = ();

    fn receive(&mut self, number: Number, _: &mut Context<Self>) {
        if number.0 != self.next {
            add(&self.log.wrong);
        }
        self.next = number.0 + 1;
        add(&self.log.handled);
    }
}

struct Spin;

impl Receive<Spin> for Subject {
    type Reply = ();

    fn receive(&mut self, _: Spin, _: &mut Context<Self>) {
        self.spin();
    }
}

struct Linger;

impl Receive<Linger> for Subject {
    type Reply = ();

    fn receive(&mut self, _: Linger, _: &mut Context<Self>) {
        add(&self.log.spinning);
        linger();
    }
}

/// Has its sender spin when it is dropped.
struct Letter(Arc<Log>);

impl Drop for Letter {
    fn drop(&mut self) {
        add(&self.0.spinning);
        loop {
            spin_loop();
        }
    }
}

impl Receive<Letter> for Subject {
    type Reply = ();

    fn receive(&mut self, letter: Letter, _: &mut Context<Self>) {
        core::mem::forget(letter);
    }
}

/// Ends, with such a letter behind it.
struct EndWithLetter;

impl Receive<EndWithLetter> for Subject {
    type Reply = ();

    fn receive(&mut self, _: EndWithLetter, context: &mut Context<Self>) {
        if let Err(error) = context.address().send(Letter(self.log.clone())) {
            core::mem::forget(error);
        }
        context.end();
    }
}

/// Has another in its own mailbox.
struct Beside(Arc<Log>);

impl Receive<Beside> for Subject {
    type Reply = Option<Addr<Subject>>;

    fn receive(&mut self, beside: Beside, context: &mut Context<Self>) -> Self::Reply {
        context.spawn_beside(Subject::new(&beside.0)).ok()
    }
}

/// Waits until that holds.
async fn until(what: &'static str, holds: impl Fn() -> bool) -> Outcome {
    let waiting = async {
        while !holds() {
            sched::yield_now().await;
        }
    };
    time::background_timeout(HANGS_AFTER, waiting)
        .await
        .map_err(|_| Failure(alloc::format!("it does not come to hold: {what}")))
}

/// Who is told of ends.
struct Ends(ProcessMailbox<Ended>);

impl Ends {
    fn new() -> Result<Self, Failure> {
        Ok(Self(ProcessMailbox::new(10)?))
    }

    fn watch<A: Actor>(&self, actor: Addr<A>) -> Outcome {
        actor.watch(&self.0.address())?;
        Ok(())
    }

    async fn next(&mut self) -> Result<Exit, Failure> {
        match time::background_timeout(HANGS_AFTER, self.0.receive()).await {
            Ok(Some(ended)) => Ok(ended.exit()),
            _ => Err(Failure("an end was not told".into())),
        }
    }

    /// All that come until there can be none.
    async fn rest(mut self) -> Result<Vec<Exit>, Failure> {
        let mut exits = Vec::new();
        let all = async {
            while let Some(ended) = self.0.receive().await {
                exits.push(ended.exit());
            }
        };
        time::background_timeout(HANGS_AFTER, all)
            .await
            .map_err(|_| Failure("an end was not told".into()))?;
        Ok(exits)
    }
}

fn kills_on_record() -> usize {
    crash::records().filter(|record| record.kind == CrashKind::Killed).count()
}

kernel_test! {
    /// One that waits, in a cell or in storage of the application's own, told by its address or as a recipient: its hook runs, its state is
    /// dropped, and its successor lives.
    async fn one_that_waits_ends_as_ever() -> Outcome {
        static STORAGE: StaticActor<Subject> = StaticActor::new();
        let executor = Executor::start(&Config::default())?;
        let log = Arc::new(Log::default());
        let mut ends = Ends::new()?;
        for way in 0..4 {
            let actor = match way {
                0 | 1 => executor.handle().spawn(Subject::new(&log))?,
                _ => start_when_free(&STORAGE, executor.handle(), Subject::new(&log)).await?,
            };
            ends.watch(actor)?;
            if way % 2 == 0 {
                actor.kill()?;
            } else {
                actor.recipient::<Number>().kill()?;
            }
            let _ = actor.kill();
            ensure_eq!(ends.next().await?, Exit::Killed, "what was told");
            ensure!(!actor.is_alive() && actor.send(Number(0)).is_err(), "it lives");
            actor.kill()?;
        }
        executor.all_ended().await;
        ensure_eq!(read(&log.hooks), 4, "how many hooks ran");
        until("all are dropped", || read(&log.drops) == 4).await?;
        ensure_eq!(executor.stop().await, 0, "messages left over");
        ensure_eq!(ends.rest().await?.len(), 0, "ends that were told twice");
        Ok(())
    }
}

kernel_test! {
    /// Without memory for it nothing has happened.
    async fn without_memory_it_lives() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let log = Arc::new(Log::default());
        let actor = executor.handle().spawn(Subject::new(&log))?;
        let ends = Ends::new()?;
        ends.watch(actor)?;
        let mut exhauster = HeapExhauster::everything(16);
        exhauster.take_more(16);
        let refused = actor.kill().is_err();
        drop(exhauster);
        if refused {
            ensure!(actor.is_alive(), "it was not killed, and has ended");
            actor.kill()?;
        }
        ensure_eq!(ends.rest().await?, [Exit::Killed], "what was told");
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// One behind whose backlog the kill comes; those of the same mailbox lose and reorder nothing.
    async fn a_backlog_goes_with_it_and_others_lose_nothing() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let numbers = amount("numbers", 3000);
        for _ in 0..10 {
            let (doomed, innocent) = (Arc::new(Log::default()), Arc::new(Log::default()));
            let ends = Ends::new()?;
            let actor = executor.handle().spawn(Subject::new(&doomed))?;
            let Some(other) = actor.ask(Beside(innocent.clone())).await? else { return Err("no memory".into()) };
            ends.watch(actor)?;
            for number in 0..numbers {
                let _ = actor.send(Number(number));
                other.send(Number(number))?;
                if number == numbers / 2 {
                    actor.kill()?;
                }
            }
            ensure_eq!(ends.rest().await?, [Exit::Killed], "what was told");
            until("all numbers came", || read(&innocent.handled) == numbers).await?;
            ensure_eq!(read(&innocent.wrong), 0, "numbers that did not come in order");
            ensure_eq!(read(&doomed.wrong), 0, "of the killed one: numbers that did not come in order");
            ensure!(other.is_alive(), "the other has ended");
            other.send(stop::End)?;
        }
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// One that goes on for ever, on each core, killed at once and when it is suspended for long; others of its mailbox go on.
    #[machine("preemption")]
    async fn one_that_spins_ends() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        for core in (0..machine::cores()).filter_map(CoreId::new) {
            for others in [0, 2] {
                for late in [false, true] {
                    let (doomed, innocent) = (Arc::new(Log::default()), Arc::new(Log::default()));
                    let ends = Ends::new()?;
                    let mut actors = Vec::new();
                    for _ in 0..=others {
                        actors.push(executor.handle().spawn_on(core, Subject::new(&doomed))?);
                    }
                    let Some(beside) = actors[0].ask(Beside(innocent.clone())).await? else {
                        return Err("no memory".into());
                    };
                    for actor in &actors {
                        ends.watch(*actor)?;
                        actor.send(Spin)?;
                    }
                    until("all spin", || read(&doomed.spinning) == others + 1).await?;
                    (0..10).try_for_each(|number| beside.send(Number(number)).map(|_| ()))?;
                    if late {
                        until("the others go on", || read(&innocent.handled) == 10).await?;
                        linger();
                    }
                    for actor in &actors {
                        actor.send(Number(0))?;
                        actor.kill()?;
                        actor.kill()?;
                    }
                    let exits = ends.rest().await?;
                    ensure_eq!(exits.len() as u64, others + 1, "how many ends were told");
                    ensure!(exits.iter().all(|&exit| exit == Exit::Killed), "another exit: {:?}", exits);
                    until("the others go on", || read(&innocent.handled) == 10).await?;
                    ensure_eq!((read(&innocent.wrong), read(&doomed.handled)), (0, 0), "what was wrong, and handled after all");
                    ensure_eq!((read(&doomed.hooks), read(&doomed.drops)), (0, 0), "hooks and destructors that ran");
                    beside.kill()?;
                }
            }
        }
        ensure!(kills_on_record() > 0, "no kill is on record");
        executor.all_ended().await;
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// A hook and a destructor that go on for ever end, too, whether the actor was killed before or is only then.
    #[machine("preemption")]
    async fn an_endless_end_ends() -> Outcome {
        // A killed actor's end has two slices. A busy host may hold up the guest for as long as two of the usual, before that has begun.
        let _long = Changed::new(&[(Setting::SliceMicroseconds, 100_000)])?;
        let executor = Executor::start(&Config::default())?;
        for endless in [Endless::Hook, Endless::Drop] {
            for by_kill in [true, false] {
                let log = Arc::new(Log::default());
                let ends = Ends::new()?;
                let actor = executor.handle().spawn(Subject::endless(&log, endless))?;
                ends.watch(actor)?;
                if by_kill {
                    actor.kill()?;
                } else {
                    actor.send(stop::End)?;
                    until("its end has begun", || read(&log.spinning) == 1).await?;
                    actor.kill()?;
                }
                ensure_eq!(ends.rest().await?, [Exit::Killed], "what was told");
                ensure_eq!(read(&log.spinning), 1, "how often its end has begun");
            }
        }
        executor.all_ended().await;
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// Thousands are killed about when they end by themselves, while mailboxes are stolen, and some are suspended: each end is told once.
    async fn each_end_is_told_once() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let actors = amount("kills", 3000);
        let log = Arc::new(Log::default());
        let ends = Ends::new()?;
        let mut killers = Vec::new();
        for number in 0..actors {
            let actor = executor.handle().spawn(Subject::new(&log))?;
            ends.watch(actor)?;
            for next in 0..number % 5 {
                actor.send(Number(next))?;
            }
            if number % 50 == 0 {
                actor.send(Linger)?;
            }
            let kill_it = async move {
                for _ in 0..number % 7 {
                    sched::yield_now().await;
                }
                let _ = actor.kill();
            };
            if number % 3 == 0 {
                let _ = actor.kill();
            } else {
                killers.push(sched::spawn(kill_it)?);
            }
            if number % 2 == 0 {
                let _ = actor.send(stop::End);
            }
        }
        for killer in killers {
            killer.await?;
        }
        let exits = ends.rest().await?;
        ensure_eq!(exits.len() as u64, actors, "how many ends were told");
        ensure!(exits.contains(&Exit::Killed), "none was killed in time");
        let others = exits.iter().filter(|exit| !matches!(exit, Exit::Killed | Exit::Normal | Exit::Gone)).count();
        ensure_eq!(others, 0, "how many ended otherwise");
        ensure_eq!(read(&log.wrong), 0, "numbers that did not come in order");
        ensure!(read(&log.drops) <= actors && read(&log.hooks) <= actors, "something was dropped twice");
        executor.all_ended().await;
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// The stop of an executor on whose cores behaviours, hooks, destructors and dead letters go on for ever: they are killed, and all
    /// others are dropped as ever.
    #[machine("preemption")]
    async fn a_stop_ends() -> Outcome {
        let limit = Duration::from_millis(20);
        for others in [0, 3] {
            let executor = Executor::start(&Config::default())?;
            let (doomed, innocent) = (Arc::new(Log::default()), Arc::new(Log::default()));
            let mut ends = Ends::new()?;
            let mut hogs = 0;
            for core in (0..machine::cores()).filter_map(CoreId::new) {
                for _ in 0..=others {
                    let hog = executor.handle().spawn_on(core, Subject::new(&doomed))?;
                    ends.watch(hog)?;
                    hog.send(Spin)?;
                    hogs += 1;
                }
            }
            until("all spin", || read(&doomed.spinning) == hogs).await?;
            for _ in 0..100 {
                let actor = executor.handle().spawn(Subject::new(&innocent))?;
                actor.send(Number(0))?;
            }
            let stopped = time::background_timeout(HANGS_AFTER, executor.stop_within(limit)).await;
            let Ok(stopped) = stopped else { return Err("the stop of an executor waits for ever".into()) };
            ensure_eq!(stopped.killed(), hogs, "how many were killed");
            for _ in 0..hogs {
                ensure_eq!(ends.next().await?, Exit::Killed, "what was told of a hog");
            }
            ensure_eq!((read(&innocent.hooks), read(&innocent.drops)), (100, 100), "hooks and destructors that ran");
            ensure_eq!(stopped.undelivered() + read(&innocent.handled), 100, "what became of the messages");
        }
        for endless in [Endless::Hook, Endless::Drop] {
            for begins in [true, false] {
                let executor = Executor::start(&Config::default())?;
                let (doomed, innocent) = (Arc::new(Log::default()), Arc::new(Log::default()));
                let actor = executor.handle().spawn(Subject::endless(&doomed, endless))?;
                if begins {
                    actor.send(stop::End)?;
                    until("its end has begun", || read(&doomed.spinning) == 1).await?;
                }
                executor.handle().spawn(Subject::new(&innocent))?;
                let stopped = time::background_timeout(HANGS_AFTER, executor.stop_within(limit)).await;
                let Ok(stopped) = stopped else { return Err("the stop of an executor waits for ever".into()) };
                ensure_eq!(stopped.killed(), 1, "how many were killed; {:?}, begun: {}", endless, begins);
                ensure_eq!(read(&innocent.drops), 1, "destructors that ran");
            }
        }
        for delivered in [true, false] {
            let executor = Executor::start(&Config::default())?;
            let doomed = Arc::new(Log::default());
            let first = executor.handle().spawn(Subject::new(&doomed))?;
            if delivered {
                // A dead letter, when the worker meets it.
                first.send(EndWithLetter)?;
                until("the letter is dropped", || read(&doomed.spinning) == 1).await?;
            } else {
                let hog = executor.handle().spawn_on(CoreId::BOOT, Subject::new(&doomed))?;
                hog.send(Spin)?.send(Letter(doomed.clone()))?;
                until("it spins", || read(&doomed.spinning) == 1).await?;
            }
            let stopped = time::background_timeout(HANGS_AFTER, executor.stop_within(limit)).await;
            let Ok(stopped) = stopped else { return Err("the stop of an executor waits for ever".into()) };
            ensure!(stopped.killed() > 0, "nothing was killed; delivered: {}", delivered);
        }
        Ok(())
    }
}

kernel_test! {
    /// A behaviour that takes longer than a slice, but not longer than the limit, ends by itself.
    async fn a_stop_waits_for_what_ends_in_time() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let log = Arc::new(Log::default());
        for core in (0..machine::cores()).filter_map(CoreId::new) {
            executor.handle().spawn_on(core, Subject::new(&log))?.send(Linger)?;
        }
        let cores = machine::cores() as u64;
        until("all have begun", || read(&log.spinning) == cores).await?;
        let stopped = executor.stop_within(HANGS_AFTER).await;
        ensure_eq!(stopped.killed(), 0, "how many were killed");
        ensure_eq!((read(&log.hooks), read(&log.drops)), (cores, cores), "hooks and destructors that ran");
        Ok(())
    }
}

kernel_test! {
    /// Somebody keeps the processes of suspended behaviours, as whoever lists processes does, and as a behaviour may of itself: a stop does
    /// not wait for that, whether they end by themselves, or are killed.
    #[machine("isolation")]
    async fn a_stop_does_not_wait_for_who_looks() -> Outcome {
        for endless in [false, true] {
            let executor = Executor::start(&Config::default())?;
            let log = Arc::new(Log::default());
            for core in (0..machine::cores()).filter_map(CoreId::new) {
                let subject = executor.handle().spawn_on(core, Subject::new(&log))?;
                if endless { subject.send(Spin)? } else { subject.send(Linger)? };
            }
            let mut kept = Vec::new();
            let suspended = || sched::processes().filter(|process| process.type_name() == "a suspended behaviour");
            while kept.is_empty() {
                kept.extend(suspended());
                sched::yield_now().await;
                if !endless && kept.is_empty() {
                    // All may have come to their end before they were seen.
                    executor.handle().spawn(Subject::new(&log))?.send(Linger)?;
                }
            }
            let limit = if endless { Duration::from_millis(20) } else { HANGS_AFTER };
            let stopped = time::background_timeout(HANGS_AFTER, executor.stop_within(limit)).await;
            let Ok(stopped) = stopped else { return Err("the stop of an executor waits for who looks".into()) };
            ensure!((stopped.killed() > 0) == endless, "{} were killed; endless: {}", stopped.killed(), endless);
            ensure!(!kept.is_empty() && kept.iter().all(|process| process.is_done()), "a behaviour has not ended");
        }
        Ok(())
    }
}

/// Kills itself in the hook for its end.
struct Doubter;

impl Actor for Doubter {
    fn stopped() -> Option<Hook<Self>> {
        Some(|_, context| {
            // Without memory for it nothing has happened.
            let _ = context.address().kill();
        })
    }
}

/// Starts an executor with so many of those, and stops it.
async fn stop_doubters(number: usize) -> Outcome {
    let executor = Executor::start(&Config::default())?;
    for _ in 0..number {
        executor.handle().spawn(Doubter)?;
    }
    executor.stop().await;
    Ok(())
}

kernel_test! {
    /// Who is killed while its executor stops has ended already: nothing is kept in mind of that for ever.
    #[machine("isolation")]
    async fn a_kill_at_an_executors_end_leaves_nothing() -> Outcome {
        const NUMBER: usize = 200;
        /// What buffers of mailboxes may grow by; a kill takes 64 bytes.
        const SLACK_BYTES: usize = 2048;
        stop_doubters(NUMBER).await?;
        let mut left = usize::MAX;
        // Until pools and caches of all cores have grown as far as they do.
        for _ in 0..20 {
            if left <= SLACK_BYTES {
                break;
            }
            sched::out_of_work().await;
            let before = HEAP.usage().0;
            stop_doubters(NUMBER).await?;
            sched::out_of_work().await;
            left = left.min(HEAP.usage().0.saturating_sub(before));
        }
        ensure!(left <= SLACK_BYTES, "{NUMBER} kills have left {left} bytes");
        Ok(())
    }
}
