//! Actors with limits of their own, in mailboxes and on executors that others share: each is counted and charged by itself, whatever
//! becomes of it, and nobody else notices.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hint::{black_box, spin_loop};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{
    Actor, Addr, Bound, Config, Context, Executor, Hook, Limits, NotSpawned, Receive, Request, SendError,
    Signal, WhenFull, actors, stop,
};
use magpie::crash::{self, CrashKind};
use magpie::group::{Group, Publish, Subscribe};
use magpie::mem::MemoryLimit;
use magpie::sched::{self, Setting};
use magpie::supervise::{Child, Supervisor};
use magpie::time::Instant;
use magpie::watch::{Ended, link};
use magpie::{machine, registry, time};
use magpie_tests::{Changed, Failure, HANGS_AFTER, Outcome, amount, ensure, ensure_eq, kernel_test};

const LIMIT: usize = 128 * 1024;
/// What one that is held to a limit is charged for that.
const HOLD: usize = 64;

async fn until(holds: impl Fn() -> bool, what: impl Fn() -> alloc::string::String) -> Outcome {
    let waiting = async {
        while !holds() {
            sched::yield_now().await;
        }
    };
    time::background_timeout(HANGS_AFTER, waiting).await.map_err(|_| Failure(what()))
}

async fn falls_to(limit: &MemoryLimit, bytes: usize) -> Outcome {
    until(|| limit.used() <= bytes, || alloc::format!("{} bytes are in use, not {bytes}", limit.used())).await
}

/// Keeps what it is told to take, and says whether it got it.
#[derive(Default)]
struct Keeper {
    kept: Vec<Vec<u8>>,
    last: u64,
    disorder: u64,
}

impl Actor for Keeper {}

struct Keep(usize);

impl Receive<Keep> for Keeper {
    type Reply = bool;

    fn receive(&mut self, Keep(bytes): Keep, _: &mut Context<Self>) -> bool {
        let mut load = Vec::new();
        if load.try_reserve_exact(bytes).is_err() || self.kept.try_reserve(1).is_err() {
            return false;
        }
        load.resize(bytes, 1);
        self.kept.push(load);
        true
    }
}

/// Takes until it is refused, gives all back, and says how much that was.
struct Fill;

impl Receive<Fill> for Keeper {
    type Reply = usize;

    fn receive(&mut self, _: Fill, _: &mut Context<Self>) -> usize {
        let mut all = Vec::new();
        loop {
            let mut block = Vec::<u8>::new();
            if all.try_reserve(1).is_err() || block.try_reserve_exact(1000).is_err() {
                return black_box(&all).len() * 1000;
            }
            all.push(block);
        }
    }
}

/// The next of a sender's numbers.
struct Number(u64);

impl Receive<Number> for Keeper {
    type Reply = ();

    fn receive(&mut self, Number(number): Number, _: &mut Context<Self>) {
        self.disorder += u64::from(number != self.last + 1);
        self.last = number;
    }
}

struct Report;

impl Receive<Report> for Keeper {
    type Reply = (u64, u64);

    fn receive(&mut self, _: Report, _: &mut Context<Self>) -> (u64, u64) {
        (self.last, self.disorder)
    }
}

/// Goes on until that says otherwise, and takes memory before and after.
struct Long(Arc<AtomicBool>);

impl Receive<Long> for Keeper {
    type Reply = bool;

    fn receive(&mut self, Long(ends): Long, _: &mut Context<Self>) -> bool {
        let before = alloc::vec![1_u8; 10_000];
        while !ends.load(Ordering::Acquire) {
            spin_loop();
        }
        self.kept.push(alloc::vec![2; 10_000]);
        before.iter().all(|byte| *byte == 1)
    }
}

struct Devour;

impl Receive<Devour> for Keeper {
    type Reply = ();

    fn receive(&mut self, _: Devour, _: &mut Context<Self>) {
        loop {
            self.kept.push(alloc::vec![1; 500]);
            if black_box(self.kept.len()) == usize::MAX {
                return;
            }
        }
    }
}

/// An executor whose mailboxes are one for each core, so that many share each.
fn crowded() -> Result<Executor, Failure> {
    Ok(Executor::start(&Config::default().mailboxes(machine::cores()).own_mailboxes(4))?)
}

fn neighbours(executor: &Executor) -> Result<Vec<Addr<Keeper>>, Failure> {
    let spawned = (0..4 * machine::cores()).map(|_| executor.handle().spawn(Keeper::default()));
    Ok(spawned.collect::<Result<_, _>>()?)
}

kernel_test! {
    /// What is sent to one that is counted, from every core, is counted once each, in the mailbox of others and alone; nothing overtakes
    /// anything, and others are not counted.
    async fn each_message_is_counted_once() -> Outcome {
        let executor = crowded()?;
        let beside = neighbours(&executor)?;
        let mut counted = Vec::new();
        for limits in [Limits::new(), Limits::new(), Limits::new().mailbox(Bound::new(10_000, WhenFull::Refuse))] {
            counted.push(executor.handle().spawn_limited(Keeper::default(), limits)?);
        }
        let messages = amount("counted", 2000);
        let mut senders = Vec::new();
        for keeper in counted.iter().chain(&beside) {
            let keeper = *keeper;
            // One sender to each, so that its numbers are in order; from wherever it is at the time.
            senders.push(sched::spawn(async move {
                for number in 1..=messages {
                    if keeper.send_wait(Number(number)).await.is_err() {
                        return false;
                    }
                    if number % 50 == 0 {
                        sched::yield_now().await;
                    }
                }
                true
            })?);
        }
        for sender in senders {
            ensure!(sender.await?, "a message was refused");
        }
        for keeper in counted.iter().chain(&beside) {
            ensure_eq!(keeper.ask(Report).await?, (messages, 0), "the last number, and how many were out of order");
        }
        for keeper in &counted {
            let seen = keeper.inspect().ok_or("it has ended")?;
            ensure_eq!(seen.messages, Some(messages + 1), "messages that were counted");
            ensure!(seen.reductions.is_some_and(|reductions| reductions >= messages), "{:?} reductions", seen.reductions);
            ensure!(seen.age.is_some_and(|age| age < Duration::from_secs(3600)), "it is {:?} old", seen.age);
        }
        for keeper in &beside {
            let seen = keeper.inspect().ok_or("it has ended")?;
            ensure_eq!((seen.messages, seen.reductions, seen.moves), (None, None, None), "what is counted of others");
        }
        ensure_eq!(actors().filter(|actor| actor.messages.is_some()).count(), 3, "who is listed as counted");
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// One that eats is refused at its limit, and ends alone where it cannot be refused; those who share its mailbox have memory
    /// meanwhile, and lose nothing; its successor has the same limit.
    #[machine("isolation")]
    async fn one_has_a_limit_of_its_own() -> Outcome {
        let executor = crowded()?;
        let beside = neighbours(&executor)?;
        let limit = MemoryLimit::new(LIMIT).map_err(|error| Failure(alloc::format!("{error}")))?;
        let limits = Limits::new().memory(&limit);
        for life in 0..3 {
            let mut glutton = executor.handle().spawn_limited(Keeper::default(), limits);
            // What the life before has left counts until it is collected, which who is refused asks for.
            while let Err(NotSpawned::OverLimit(_)) = &glutton {
                time::sleep(Duration::from_millis(2)).await;
                glutton = executor.handle().spawn_limited(Keeper::default(), limits);
            }
            let glutton = glutton?;
            if life == 0 {
                ensure_eq!(limit.used(), HOLD, "in use by one that has nothing");
                let filled = glutton.ask(Fill).await?;
                ensure!(filled > LIMIT / 2 && filled <= LIMIT, "{filled} bytes are all that it gets");
                ensure_eq!(limit.used(), HOLD, "in use when it has given all back");
                ensure!(glutton.ask(Keep(5000)).await?, "what is within the limit");
                ensure!(limit.used() >= HOLD + 5000 && limit.used() < 6000, "{} in use", limit.used());
                ensure!(!glutton.ask(Keep(LIMIT)).await?, "more than there is");
            }
            for keeper in &beside {
                ensure!(keeper.ask(Keep(LIMIT / 8)).await?, "another was refused");
                keeper.send(Number(life + 1))?;
            }
            let before = crash::total();
            ensure!(glutton.ask(Devour).await.is_err(), "a glutton was answered");
            until(|| !glutton.is_alive(), || "it lives".into()).await?;
            ensure!(crash::total() > before, "no crash is on record");
            ensure_eq!(crash::last().map(|record| record.kind), Some(CrashKind::OutOfMemory), "what is on record");
            for keeper in &beside {
                ensure_eq!(keeper.ask(Report).await?, (life + 1, 0), "what others were sent");
            }
        }
        ensure!(limit.most_used() <= LIMIT, "{} at most", limit.most_used());
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// Suspended, resumed and moved, it pays for itself alone, is counted on, and what was sent meanwhile comes in order.
    #[machine("preemption")]
    async fn one_that_is_suspended_pays_on() -> Outcome {
        let _slice = Changed::new(&[(Setting::SliceMicroseconds, 50)])?;
        let executor = crowded()?;
        let beside = neighbours(&executor)?;
        let limit = MemoryLimit::new(LIMIT).map_err(|error| Failure(alloc::format!("{error}")))?;
        let own = executor.handle().spawn_limited(Keeper::default(), Limits::new().memory(&limit))?;
        let mut sent = 0;
        for round in 0..amount("suspensions", 5) {
            let ends = Arc::new(AtomicBool::new(false));
            let answer = own.ask(Long(ends.clone()));
            for _ in 0..20 {
                sent += 1;
                own.send(Number(sent))?;
            }
            for keeper in &beside {
                ensure!(keeper.ask(Keep(1000)).await?, "another was refused");
            }
            time::sleep(Duration::from_micros(500)).await;
            ends.store(true, Ordering::Release);
            ensure_eq!(answer.await, Ok(true), "its answer");
            ensure_eq!(own.ask(Report).await?, (sent, 0), "what came");
            let kept = 10_000 * (round as usize + 1);
            let used = limit.used();
            ensure!(used >= kept + HOLD && used < kept + kept / 2 + 2048, "{used} in use in round {round}");
        }
        let seen = own.inspect().ok_or("it has ended")?;
        ensure_eq!(seen.messages, Some(22 * amount("suspensions", 5)), "messages that were counted");
        own.send(stop::End)?;
        falls_to(&limit, 0).await?;
        // The others were charged nothing.
        executor.stop().await;
        ensure_eq!(limit.used(), 0, "in use by nobody");
        Ok(())
    }
}

/// Ends in the way that it is told to, and some of them go wrong there.
struct Ends {
    way: u64,
    _load: Vec<u8>,
}

static HOOKS: AtomicU64 = AtomicU64::new(0);

impl Actor for Ends {
    fn stopped() -> Option<Hook<Self>> {
        Some(|ends, _| {
            HOOKS.fetch_add(1, Ordering::Relaxed);
            assert!(ends.way != 5, "on purpose");
        })
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        assert!(self.way != 6, "on purpose");
    }
}

struct Go;

impl Receive<Go> for Ends {
    type Reply = ();

    fn receive(&mut self, _: Go, context: &mut Context<Self>) {
        match self.way {
            1 => context.vacate(),
            2 => context.retire(),
            3 => panic!("on purpose"),
            _ => context.end(),
        }
    }
}

kernel_test! {
    /// However it ends (by itself, vacated, retired, crashed, killed, in its hook, in its destructor, or with its executor) its meter
    /// and its charge come back: more of them live one after the other than there are meters.
    #[machine("isolation")]
    async fn what_counts_comes_back() -> Outcome {
        let limit = MemoryLimit::new(8 << 20).map_err(|error| Failure(alloc::format!("{error}")))?;
        let limits = Limits::new().memory(&limit);
        let (mut lives, mut round) = (0, 0);
        while lives < 5000 {
            round += 1;
            let executor = crowded()?;
            let mut all = Vec::new();
            for number in 0..400_u64 {
                // Those that crash are dear.
                let way = if number < 40 { number % 8 } else { [0, 1, 2, 4][number as usize % 4] };
                let ends = Ends { way, _load: alloc::vec![1; 8] };
                let address = executor.handle().spawn_limited(ends, limits)?;
                lives += 1;
                match way {
                    // It is left to its executor.
                    7 => continue,
                    4 => address.kill()?,
                    _ => drop(address.send(Go)?),
                }
                all.push((way, address));
            }
            for (way, address) in all {
                until(|| !address.is_alive(), || alloc::format!("{address:?} lives, way {way}")).await?;
                if way == 2 {
                    until(|| address.take().is_some(), || "its state is gone".into()).await?;
                }
            }
            executor.stop().await;
            falls_to(&limit, 0).await.map_err(|Failure(what)| Failure(alloc::format!("round {round}: {what}")))?;
        }
        ensure!(HOOKS.load(Ordering::Relaxed) > 1000, "hooks that have run");
        Ok(())
    }
}

kernel_test! {
    /// There are 4095 at a time; a limit that is full or was dropped is given to nobody, and the state comes back.
    async fn errors_are_typed() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let handle = executor.handle();
        let small = MemoryLimit::new(HOLD - 1).map_err(|error| Failure(alloc::format!("{error}")))?;
        let limits = Limits::new().memory(&small);
        let refused = handle.spawn_limited(Keeper { last: 7, ..Keeper::default() }, limits);
        ensure!(matches!(refused, Err(NotSpawned::OverLimit(Keeper { last: 7, .. }))), "one was spawned over its limit");
        drop(small);
        ensure!(matches!(handle.spawn_limited(Keeper::default(), limits), Err(NotSpawned::OverLimit(_))), "spawned by none");
        let bounded = Limits::new().mailbox(Bound::new(1, WhenFull::Refuse));
        ensure!(matches!(handle.spawn_limited(Keeper::default(), bounded), Err(NotSpawned::NoMailbox(_))), "without one");
        let mut all = Vec::new();
        let error = loop {
            match handle.spawn_limited(Keeper::default(), Limits::new()) {
                Ok(keeper) => all.push(keeper),
                Err(error) => break error.without_actor(),
            }
        };
        ensure_eq!((error, all.len()), (NotSpawned::NoMeter(()), 4095), "why there is no other, and how many there are");
        ensure!(handle.spawn(Keeper::default()).is_ok(), "one that is not counted is refused");
        let Some(last) = all.pop() else { return Ok(()) };
        last.kill()?;
        until(|| handle.spawn_limited(Keeper::default(), Limits::new()).is_ok(), || "none came back".into()).await?;
        executor.stop().await;
        let executor = Executor::start(&Config::default())?;
        let again = executor.handle().spawn_limited(Keeper::default(), Limits::new())?;
        ensure_eq!(again.inspect().and_then(|seen| seen.messages), Some(0), "messages of the last one");
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// A flood is refused by the bound of its own mailbox, memory by its own limit, and neither is another's.
    #[machine("isolation")]
    async fn bound_and_memory_at_once() -> Outcome {
        let executor = crowded()?;
        let beside = neighbours(&executor)?;
        let limit = MemoryLimit::new(LIMIT).map_err(|error| Failure(alloc::format!("{error}")))?;
        let limits = Limits::new().memory(&limit).mailbox(Bound::new(4, WhenFull::Refuse));
        let own = executor.handle().spawn_limited(Keeper::default(), limits)?;
        let ends = Arc::new(AtomicBool::new(false));
        let answer = own.ask(Long(ends.clone()));
        let mut refused = 0;
        for number in 0..1000_u64 {
            refused += u64::from(matches!(own.send(Keep(100)), Err(SendError::Full(_))));
            let neighbour = beside[number as usize % beside.len()];
            neighbour.send(Number(number / beside.len() as u64 + 1))?;
        }
        ends.store(true, Ordering::Release);
        ensure!(answer.await?, "what it had was changed");
        ensure!(refused >= 900, "{refused} of 1000 were refused");
        for keeper in &beside {
            ensure_eq!(keeper.ask(Report).await?.1, 0, "of a neighbour's mail out of order");
        }
        ensure!(!own.ask(Keep(LIMIT)).await?, "more than there is");
        executor.stop().await;
        falls_to(&limit, 0).await
    }
}

kernel_test! {
    /// A supervised one has its limit in each life.
    #[machine("isolation")]
    async fn each_life_has_the_limit() -> Outcome {
        #[derive(Default)]
        struct Named(Keeper);
        impl Actor for Named {
            fn started() -> Option<Hook<Self>> {
                Some(|_, context| {
                    // Who does not get the name is not found under it.
                    let _ = registry::register("limited", context.address());
                })
            }
        }
        impl Receive<Fill> for Named {
            type Reply = usize;
            fn receive(&mut self, _: Fill, context: &mut Context<Self>) -> usize {
                // One that crashes after it has said how much it got.
                if self.0.last == 1 {
                    context.end();
                }
                self.0.last += 1;
                let mut all = Vec::new();
                while all.try_reserve(1000).is_ok() {
                    all.resize(all.capacity(), 1_u8);
                }
                black_box(&all).len()
            }
        }
        let executor = crowded()?;
        let limit = MemoryLimit::new(LIMIT).map_err(|error| Failure(alloc::format!("{error}")))?;
        let child = Child::limited_actor("limited", executor.handle(), Limits::new().memory(&limit), Named::default);
        let supervisor = Supervisor::one_for_one().restarts(100, Duration::MAX).child(child).start()?;
        let mut lives = Vec::new();
        while lives.len() < 8 {
            let Ok(found) = registry::find::<Addr<Named>>("limited") else {
                time::sleep(Duration::from_millis(1)).await;
                continue;
            };
            if let Ok(bytes) = found.ask(Fill).await {
                ensure!(bytes > LIMIT / 4 && bytes <= LIMIT, "{bytes} bytes are all that it gets");
                lives.push(bytes);
            }
        }
        supervisor.stop().await?;
        executor.stop().await;
        falls_to(&limit, 0).await
    }
}

/// Counts what reaches it, by the way it came.
#[derive(Default)]
struct Reached {
    plain: u64,
    ended: u64,
    answers: u64,
    other: Option<Addr<Keeper>>,
}

impl Actor for Reached {}

#[derive(Clone, Copy)]
struct Plain;

impl Receive<Plain> for Reached {
    type Reply = ();

    fn receive(&mut self, _: Plain, _: &mut Context<Self>) {
        self.plain += 1;
    }
}

impl Receive<Ended> for Reached {
    type Reply = ();

    fn receive(&mut self, _: Ended, _: &mut Context<Self>) {
        self.ended += 1;
    }
}

/// Have it ask another.
struct Ask;

impl Receive<Ask> for Reached {
    type Reply = bool;

    fn receive(&mut self, _: Ask, context: &mut Context<Self>) -> bool {
        let Some(other) = self.other else { return false };
        context.ask(other, Report, |reached, answer, _| reached.answers += u64::from(answer.is_ok())).is_ok()
    }
}

impl Receive<Report> for Reached {
    type Reply = [u64; 3];

    fn receive(&mut self, _: Report, _: &mut Context<Self>) -> [u64; 3] {
        [self.plain, self.ended, self.answers]
    }
}

static LINE: Signal<Plain> = Signal::new();

kernel_test! {
    /// By whatever way a message comes, it reaches one that is counted as it reaches others, once, and is counted.
    async fn all_ways_lead_there() -> Outcome {
        let executor = crowded()?;
        let handle = executor.handle();
        let other = handle.spawn_limited(Keeper::default(), Limits::new())?;
        let reached = handle.spawn_limited(Reached { other: Some(other), ..Reached::default() }, Limits::new())?;
        let report = || reached.ask(Report);
        reached.send(Plain)?;
        reached.recipient().send(Plain)?;
        reached.send_wait(Plain).await.map_err(|_| "it was not sent")?;
        Addr::send_to_all(&[reached, reached], &Plain)?;
        reached.send_after(Duration::from_micros(100), Plain)?;
        reached.send_at(Instant::now() + Duration::from_micros(200), Plain)?;
        let group = handle.spawn(Group::<Plain>::new())?;
        group.ask(Subscribe(reached.recipient())).await??;
        ensure_eq!(group.ask(Publish(Plain)).await?.reached, 1, "whom a group has reached");
        LINE.send_to(reached.recipient(), Plain);
        LINE.raise();
        let mut plain = 9;
        for _ in 0..3 {
            // An end, told of as a watch tells of one, in front of all other mail.
            let dies = handle.spawn_limited(Keeper::default(), Limits::new())?;
            dies.watch(&reached.recipient())?;
            dies.kill()?;
        }
        ensure!(reached.ask(Ask).await?, "it could not ask");
        let deadline = Instant::now() + HANGS_AFTER;
        let mut asked = 2;
        loop {
            let seen = report().await?;
            asked += 1;
            if seen == [plain, 3, 1] {
                break;
            }
            ensure!(Instant::now() < deadline, "{seen:?} have come");
            sched::yield_now().await;
        }
        let beats = reached.send_interval(Duration::from_micros(500), Plain)?;
        while plain < 12 {
            plain = report().await?[0];
            asked += 1;
            ensure!(Instant::now() < deadline, "{plain} have come");
            sched::yield_now().await;
        }
        beats.cancel();
        let [plain, ended, answers] = report().await?;
        let counted = reached.inspect().and_then(|seen| seen.messages).ok_or("it is not counted")?;
        // Those that came after the report, if one did.
        let all = plain + ended + answers + asked;
        ensure!(counted == all || counted == all + 1, "{counted} were counted, {all} have come");
        // What is linked to it ends it, and it ends what is linked to it.
        let linked = handle.spawn_limited(Keeper::default(), Limits::new())?;
        link(&linked, &reached)?;
        linked.kill()?;
        until(|| !reached.is_alive() && !linked.is_alive(), || "a link does not end it".into()).await?;
        executor.stop().await;
        Ok(())
    }
}

/// Starts others that eat, and says how much they got: a process, and an actor on an executor of its own.
struct Starts;

impl Actor for Starts {}

impl Receive<Request<Fill, usize>> for Starts {
    type Reply = ();

    fn receive(&mut self, request: Request<Fill, usize>, _: &mut Context<Self>) {
        let started = sched::spawn(async move {
            let config = Config::default().workers(1).mailboxes(1);
            let filled = match Executor::start(&config) {
                Ok(executor) => {
                    let filled = match executor.handle().spawn(Keeper::default()) {
                        Ok(keeper) => keeper.ask(Fill).await.unwrap_or(0),
                        Err(_) => 0,
                    };
                    executor.stop().await;
                    filled
                }
                Err(_) => 0,
            };
            // An error only says that nobody waits any more.
            let _ = request.reply.send(filled);
        });
        drop(started);
    }
}

kernel_test! {
    /// What it starts is under its limit, and stays so when the limit is dropped and the actor has ended; then all of it comes back.
    #[machine("isolation")]
    async fn what_it_starts_pays_with_it() -> Outcome {
        let executor = crowded()?;
        let limit = MemoryLimit::new(LIMIT).map_err(|error| Failure(alloc::format!("{error}")))?;
        let starts = executor.handle().spawn_limited(Starts, Limits::new().memory(&limit))?;
        let filled = starts.ask(Fill).await?;
        ensure!(filled > LIMIT / 4 && filled < LIMIT, "{filled} bytes are all that what it starts gets");
        falls_to(&limit, HOLD).await?;
        let keeper = executor.handle().spawn_limited(Keeper::default(), Limits::new().memory(&limit))?;
        ensure!(keeper.ask(Keep(LIMIT / 2)).await?, "it was refused");
        let numbers = || {
            let all: Vec<_> = core::iter::from_fn(|| MemoryLimit::new(1).ok()).collect();
            all.len()
        };
        let before = numbers();
        drop(limit);
        ensure_eq!(numbers(), before, "limits: one that is in force may not be given again");
        ensure!(!keeper.ask(Keep(LIMIT)).await?, "its limit is not in force any more");
        ensure!(keeper.ask(Keep(1000)).await?, "what is within it");
        starts.send(stop::End)?;
        keeper.send(stop::End)?;
        until(|| numbers() == before + 1, || alloc::format!("{} limits, {before} were", numbers())).await?;
        executor.stop().await;
        Ok(())
    }
}
