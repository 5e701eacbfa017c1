//! Supervision misused: from hooks, behaviours, destructors, dead letters, what a panic prints, and polls, somebody kills, links, watches, gives up,
//! names, supervises and starts anybody, itself, those who have ended and its own supervisor; with cores that come and go, and memory refused.
//!
//! It is all safe code. What must hold: nobody else is harmed, each watch tells once at most, and once if it was begun and not given up, and in the end
//! all can be ended.

use alloc::format;
use alloc::vec::Vec;
use core::fmt;
use core::future::Future;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{
    self, Actor, ActorInfo, Addr, Config, Context, Executor, ExecutorHandle, Hook, Limits, Receive, Recipient,
};
use magpie::channel::{ProcessAddr, ProcessMailbox};
use magpie::internals::Random;
use magpie::internals::mem::refusal::refuse_one_in;
use magpie::mem::MemoryLimit;
use magpie::registry;
use magpie::sched::{self, ProcessRef, Setting, Spawn};
use magpie::supervise::{self, Backoff, Child, Shutdown, Supervisor, SupervisorRef};
use magpie::time;
use magpie::watch::{Ended, Link, Watch, link};
use magpie::{crash, machine};
use magpie_tests::{Changed, Failure, HANGS_AFTER, Outcome, amount, ensure, ensure_eq, kernel_test};

use crate::innocents::Innocents;
use crate::moments::linger;
use crate::unrest::Unrest;
use crate::ways::Way;
use crate::{all_meters_are_free, seed, until};

const HOUR: Duration = Duration::from_secs(3600);
/// Names that rogues may have: a letter each. To make up a name takes no memory, or whoever does would end for want of it all the time.
const NAMES: usize = 26;
/// Rogues that may be there, of actors and of processes together.
const MOST: u64 = 150;
/// So many deeds are done before that counts as a hang, however many there are.
const DEEDS_IN_TIME: u64 = 50_000;
/// Supervisors at the top.
const ROOTS: usize = 3;
/// Watches for each deed, the kernel's own among them, and for the start.
const WATCHES: usize = 4;

/// Of a watch, in its entry; above these how often it has told.
const BEGUN: u32 = 1;
const GIVING_UP: u32 = 1 << 1;
const GIVEN_UP: u32 = 1 << 2;
/// It is one of a process.
const OF_PROCESS: u32 = 1 << 3;
const TOLD: u32 = 1 << 8;

fn rogue_name(number: usize) -> &'static str {
    &"abcdefghijklmnopqrstuvwxyz"[number..=number]
}

fn roamer_name(number: usize) -> &'static str {
    &"ABCDEFGHIJKLMNOPQRSTUVWXYZ"[number..=number]
}

fn root_name(number: usize) -> &'static str {
    ["root 0", "root 1", "root 2"][number % ROOTS]
}

/// What all rogues know. It stays for ever: the crashed have references to it.
struct Yard {
    seed: u64,
    executor: ExecutorHandle,
    /// What some of the rogues are held to.
    limits: Limits,
    witnesses: Vec<Recipient<Ended>>,
    mailbox: ProcessAddr<Ended>,
    tellings: &'static Tellings,
    /// How many random sequences were begun.
    sequences: AtomicU64,
    /// Deeds that are still to be done.
    left: AtomicU64,
    done: AtomicU64,
    rogues: AtomicU64,
}

/// What watches have told, by their numbers.
struct Tellings {
    first: u64,
    entries: Vec<AtomicU32>,
}

impl Tellings {
    /// Relaxed: judged when all who write here have ended.
    fn mark(&self, number: u64, what: u32) {
        let place = number.checked_sub(self.first).and_then(|place| self.entries.get(place as usize));
        if let Some(entry) = place {
            entry.fetch_add(what, Ordering::Relaxed);
        }
    }

    /// How many have told. Fails if one has told twice, or not, or although it was given up.
    fn judge(&self) -> Result<u64, Failure> {
        let mut all = 0;
        for (place, entry) in self.entries.iter().enumerate() {
            let bits = entry.load(Ordering::Relaxed);
            let told = bits / TOLD;
            let is_right = match () {
                () if bits & GIVEN_UP != 0 => told == 0,
                // Whoever gave it up was ended meanwhile, or was too late; or whoever began it was ended before that was noted.
                () if bits & GIVING_UP != 0 || bits & BEGUN == 0 => told <= 1,
                () => told == 1,
            };
            ensure!(
                is_right,
                "watch {}: told {told} times, marked {:#x}",
                self.first + place as u64,
                bits % TOLD
            );
            all += u64::from(told);
        }
        Ok(all)
    }

    fn is_complete(&self) -> bool {
        self.entries.iter().all(|entry| {
            let bits = entry.load(Ordering::Relaxed);
            bits & BEGUN == 0 || bits & (GIVING_UP | GIVEN_UP) != 0 || bits >= TOLD
        })
    }
}

struct Witness(&'static Tellings);

impl Actor for Witness {}

impl Receive<Ended> for Witness {
    type Reply = ();

    fn receive(&mut self, ended: Ended, _: &mut Context<Self>) {
        self.0.mark(ended.watch().number(), TOLD);
    }
}

/// Whether a process is one of those that do such things; those of the test's own are called calm.
fn is_rogue(process: &ProcessRef) -> bool {
    process.type_name().contains("faults::misuse::") && !process.type_name().contains("calm")
}

/// What one who does such things has in hand meanwhile.
#[derive(Default)]
struct Ties {
    watch: Option<Watch>,
    link: Option<Link>,
}

/// Says who panics, and does something at that.
struct Says(&'static Yard);

impl fmt::Display for Says {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.deed(None, &mut Ties::default());
        f.write_str("on purpose")
    }
}

impl Yard {
    fn random(&self) -> Random {
        Random::new(self.seed, self.sequences.fetch_add(1, Ordering::Relaxed) as usize)
    }

    fn is_over(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    fn named(&self, random: &Random) -> Option<Addr<Rogue>> {
        registry::find(rogue_name(random.below(NAMES))).ok()
    }

    fn some_process(&self, random: &Random) -> Option<ProcessRef> {
        let position = random.below(20);
        sched::processes().filter(is_rogue).nth(position)
    }

    /// Some that are seen, whether they have names or not.
    fn some_actors(&self, random: &Random, one_in: usize) -> impl Iterator<Item = ActorInfo> {
        actor::actors()
            .filter(|seen| seen.type_name.ends_with("misuse::Rogue"))
            .filter(move |_| random.below(one_in) == 0)
    }

    fn watcher_of(
        &'static self,
        random: &Random,
        actor: Option<Addr<Rogue>>,
        who: Option<ProcessRef>,
    ) -> Option<Watch> {
        let witness = self.witnesses.get(random.below(self.witnesses.len() + 1));
        let watch = match (actor, who, witness) {
            (Some(actor), _, Some(witness)) => actor.watch(witness),
            (Some(actor), _, None) => actor.watch(&self.mailbox),
            (None, Some(process), Some(witness)) => process.watch(witness),
            (None, Some(process), None) => process.watch(&self.mailbox),
            (None, None, _) => return None,
        };
        let watch = watch.ok()?;
        self.tellings.mark(watch.id().number(), if actor.is_some() { BEGUN } else { BEGUN | OF_PROCESS });
        Some(watch)
    }

    fn give_up(&self, watch: Watch) {
        let number = watch.id().number();
        self.tellings.mark(number, GIVING_UP);
        if watch.cancel() {
            self.tellings.mark(number, GIVEN_UP);
        }
    }

    fn spawn_rogue(&'static self, beside: Option<Addr<Rogue>>) {
        if self.rogues.load(Ordering::Relaxed) < MOST {
            let rogue = Rogue::new(self);
            // There may be no memory, or the executor may be stopping: then it is dropped here.
            let _ = match beside {
                Some(beside) => self.executor.spawn_beside(beside, rogue),
                None if self.done.load(Ordering::Relaxed).is_multiple_of(2) => {
                    self.executor.spawn_limited(rogue, self.limits)
                }
                None => self.executor.spawn(rogue),
            };
        }
    }

    fn spawn_process(&'static self) {
        if self.rogues.load(Ordering::Relaxed) < MOST {
            let _ = Spawn::new().start(roam(self));
        }
    }

    /// Does one thing of all that can be done, wherever that is.
    fn deed(&'static self, own: Option<Addr<Rogue>>, ties: &mut Ties) {
        let goes_on = |left: u64| left.checked_sub(1);
        if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, goes_on).is_err() {
            return;
        }
        self.done.fetch_add(1, Ordering::Relaxed);
        let random = self.random();
        let other = if random.below(8) == 0 { own } else { self.named(&random) };
        match random.below(18) {
            0 => _ = other.map(|other| other.kill()),
            1 => _ = registry::kill(roamer_name(random.below(NAMES))),
            2 => _ = self.some_process(&random).map(|process| process.kill()),
            3 | 4 => {
                let linked = match (own, other, self.some_process(&random)) {
                    (Some(own), Some(other), _) if random.below(2) == 0 => link(&own, &other),
                    (Some(own), _, Some(process)) => link(&process, &own),
                    (None, Some(other), Some(process)) => link(&other, &process),
                    _ => return,
                };
                ties.link = linked.ok().or(ties.link);
            }
            5 => _ = ties.link.take().map(Link::cancel),
            6..9 => {
                let process = self.some_process(&random);
                let actor = other.filter(|_| process.is_none() || random.below(2) == 0);
                ties.watch = self.watcher_of(&random, actor, process).or(ties.watch);
            }
            9 => _ = ties.watch.take().map(|watch| self.give_up(watch)),
            10 => self.spawn_rogue(other.filter(|_| random.below(2) == 0)),
            11 => self.spawn_process(),
            12 => {
                if let Some(own) = own {
                    let _ = registry::register(rogue_name(random.below(NAMES)), own);
                } else {
                    registry::unregister(rogue_name(random.below(NAMES)));
                }
            }
            13 => {
                if let Ok(root) = registry::find::<SupervisorRef>(root_name(random.below(ROOTS))) {
                    match random.below(4) {
                        0 => root.process().kill(),
                        1 => _ = self.watcher_of(&random, None, Some(root.process().clone())),
                        2 => _ = own.map(|own| link(root.process(), &own)),
                        _ => _ = supervise::children().nth(random.below(10)).map(|child| child.restarts),
                    }
                }
            }
            14 if random.below(2) == 0 => {
                let seen = self.some_actors(&random, 20).next();
                _ = seen.map(|seen| seen.kill());
            }
            14 => _ = actor::actors().take(50).filter(|seen| seen.waiting > 0).count(),
            15 => linger(),
            16 => _ = other.map(|other| other.send(Do(Letter(self))).is_ok()),
            _ if random.below(3) == 0 => panic!("{}", Says(self)),
            _ => drop(Way::CRASHES[random.below(Way::CRASHES.len())].crash()),
        }
    }
}

/// An actor that does what it should not.
struct Rogue {
    yard: &'static Yard,
    ties: Ties,
}

impl Rogue {
    fn new(yard: &'static Yard) -> Self {
        yard.rogues.fetch_add(1, Ordering::Relaxed);
        Self { yard, ties: Ties::default() }
    }
}

impl Drop for Rogue {
    fn drop(&mut self) {
        // One that crashes is not counted off: the driver makes up for that.
        self.yard.rogues.fetch_sub(1, Ordering::Relaxed);
        self.yard.deed(None, &mut self.ties);
    }
}

impl Actor for Rogue {
    fn started() -> Option<Hook<Self>> {
        Some(|rogue, context| {
            let name = rogue_name(rogue.yard.random().below(NAMES));
            let _ = registry::register(name, context.address());
            rogue.yard.deed(Some(context.address()), &mut rogue.ties);
        })
    }

    fn stopped() -> Option<Hook<Self>> {
        Some(|rogue, context| rogue.yard.deed(Some(context.address()), &mut rogue.ties))
    }
}

/// Does something where it is dropped, which may be as a dead letter.
struct Letter(&'static Yard);

impl Drop for Letter {
    fn drop(&mut self) {
        self.0.deed(None, &mut Ties::default());
    }
}

/// Told to a rogue: do something, and once more when this is dropped.
struct Do(#[expect(dead_code, reason = "it is there to be dropped")] Letter);

impl Receive<Do> for Rogue {
    type Reply = ();

    fn receive(&mut self, what: Do, context: &mut Context<Self>) {
        self.yard.deed(Some(context.address()), &mut self.ties);
        if self.yard.random().below(12) == 0 {
            context.end();
        }
        drop(what);
    }
}

/// Leaves at the end of a process.
struct Leaves(&'static Yard);

impl Drop for Leaves {
    fn drop(&mut self) {
        self.0.rogues.fetch_sub(1, Ordering::Relaxed);
        self.0.deed(None, &mut Ties::default());
    }
}

/// A process that does what it should not, for some turns.
fn roam(yard: &'static Yard) -> impl Future<Output = ()> + Send {
    yard.rogues.fetch_add(1, Ordering::Relaxed);
    let leaves = Leaves(yard);
    async move {
        let _leaves = leaves;
        let mut ties = Ties::default();
        let Ok(mut mailbox) = ProcessMailbox::<u32>::new(2) else { return };
        let name = roamer_name(yard.random().below(NAMES));
        let _ = registry::register(name, mailbox.address());
        let turns = yard.random().below(30);
        for _ in 0..turns {
            yard.deed(None, &mut ties);
            if let Ok(root) = registry::find::<SupervisorRef>("root 0")
                && !yard.is_over()
            {
                ask_a_supervisor(yard, &root).await;
            }
            let _ = time::timeout(Duration::from_micros(50), mailbox.receive()).await;
        }
    }
}

/// Has a supervisor do something, and may not wait for the answer.
async fn ask_a_supervisor(yard: &'static Yard, root: &SupervisorRef) {
    let random = yard.random();
    let patience = Duration::from_micros(random.below(300) as u64);
    match random.below(12) {
        0 => {
            let child = Child::process("added", move |shutdown| child(yard, shutdown)).temporary();
            let _ = time::timeout(patience, root.start_child(child)).await;
        }
        1 => {
            if let Ok(Ok(children)) = time::timeout(patience, root.children()).await
                && let Some(child) = children.get(random.below(children.len().max(1)))
            {
                let _ = time::timeout(patience, root.terminate(child.id)).await;
            }
        }
        2 => _ = time::timeout(patience, root.stop()).await,
        _ => {}
    }
}

/// A supervised process that does what it should not, until it is asked to end, or longer.
async fn child(yard: &'static Yard, mut shutdown: Shutdown) {
    let mut ties = Ties::default();
    let takes_notice = yard.random().below(4) != 0;
    while !(yard.is_over() || takes_notice && shutdown.is_requested()) {
        yard.deed(None, &mut ties);
        let _ = time::timeout(Duration::from_micros(200), shutdown.requested()).await;
    }
    shutdown.requested().await;
}

/// A supervisor over processes, an actor and another supervisor.
fn root(yard: &'static Yard, number: usize) -> Supervisor {
    let soon = Duration::from_millis(2);
    let kind = |number: usize| match number % 3 {
        0 => Supervisor::one_for_one(),
        1 => Supervisor::one_for_all(),
        _ => Supervisor::rest_for_one(),
    };
    let patient = |supervisor: Supervisor, most| {
        supervisor.restarts(most, HOUR).backoff(Backoff::new(Duration::from_micros(100), soon))
    };
    let process = || Child::process("child", move |shutdown| child(yard, shutdown)).within(soon);
    let inner = patient(kind(number + 1), 3)
        .child(process())
        .child(Child::actor("rogue", &yard.executor, move || Rogue::new(yard)).within(soon));
    patient(kind(number), 30)
        .named(root_name(number))
        .child(process())
        .child(Child::actor("rogue", &yard.executor, move || Rogue::new(yard)).within(Duration::ZERO))
        .child(Child::supervisor("inner", inner).within(4 * soon))
}

/// Has something done all the time, until all deeds are done: sends to rogues, starts others, and supervisors where there are none.
async fn calm_driver(yard: &'static Yard, driver: usize) {
    while !yard.is_over() {
        let random = yard.random();
        for _ in 0..4 {
            match yard.named(&random) {
                Some(rogue) => _ = rogue.send(Do(Letter(yard))),
                None => yard.spawn_rogue(None),
            }
        }
        yard.spawn_process();
        let is_there = registry::find::<SupervisorRef>(root_name(driver)).is_ok();
        if driver < ROOTS && !is_there {
            // Without memory for it, it is tried again.
            let _ = root(yard, driver).start();
        }
        // Who has no name, because another has it or it was refused or taken away, is never sent to, and would stay. So some go, or the
        // yard would be full of those, and nothing happen in it any more.
        if yard.rogues.load(Ordering::Relaxed) >= MOST {
            yard.some_actors(&random, 4).for_each(|seen| _ = seen.kill());
        }
        // Those that have crashed are still counted.
        if random.below(20) == 0 {
            yard.rogues.store(yard.executor.live_actors(), Ordering::Relaxed);
        }
        time::sleep(Duration::from_micros(100)).await;
    }
}

/// Notes what it is told.
async fn calm_receiver(mut ends: ProcessMailbox<Ended>, tellings: &'static Tellings) {
    while let Some(ended) = ends.receive().await {
        tellings.mark(ended.watch().number(), TOLD);
    }
}

/// Kills all that are left, until none is.
async fn end_all() -> Outcome {
    let is_any_left =
        || sched::processes().any(|process| is_rogue(&process)) || supervise::supervisors().next().is_some();
    let all = async {
        while is_any_left() {
            supervise::supervisors().for_each(|supervisor| supervisor.process.kill());
            sched::processes().filter(is_rogue).for_each(|process| process.kill());
            time::sleep(Duration::from_micros(200)).await;
        }
    };
    time::background_timeout(HANGS_AFTER, all).await.map_err(|_| {
        let left: Vec<_> =
            sched::processes().filter(is_rogue).map(|left| (left.type_name(), left.state())).collect();
        Failure(format!("not all can be ended: {left:?}"))
    })
}

/// All of it once, with one allocation in so many refused.
async fn misuse(seed: u64, deeds: u64, refused: u32) -> Outcome {
    let calm = Executor::start(&Config::default().workers(machine::cores().div_ceil(2)))?;
    let handle = calm.handle().clone();
    let executor = Executor::start(&Config::default().workers(machine::cores().div_ceil(2)))?;
    let innocents = Innocents::start(&handle)?;
    let unrest = Unrest::start(Random::new(seed, 0), handle.cores())?;
    let ends = ProcessMailbox::<Ended>::new(1)?;
    let first = sched::spawn(async {})?.process().watch(&ends.address())?.id().number() + 1;
    let mut entries = Vec::new();
    let most = WATCHES * (deeds as usize + 10_000);
    entries.try_reserve_exact(most).map_err(|_| "no memory for what watches tell")?;
    entries.extend((0..most).map(|_| AtomicU32::new(0)));
    let tellings: &'static Tellings =
        alloc::boxed::Box::leak(alloc::boxed::Box::new(Tellings { first, entries }));
    let mut witnesses = Vec::new();
    for _ in 0..4 {
        witnesses.push(handle.spawn(Witness(tellings))?.recipient());
    }
    // What is left of those that crash stays charged, so it is left, too.
    let limit = MemoryLimit::new(MemoryLimit::MOST).map_err(|error| Failure(format!("{error}")))?;
    let yard: &'static Yard = alloc::boxed::Box::leak(alloc::boxed::Box::new(Yard {
        seed,
        executor: executor.handle().clone(),
        limits: Limits::new().memory(alloc::boxed::Box::leak(alloc::boxed::Box::new(limit))),
        witnesses,
        mailbox: ends.address(),
        tellings,
        sequences: AtomicU64::new(1),
        left: AtomicU64::new(deeds),
        done: AtomicU64::new(0),
        rogues: AtomicU64::new(0),
    }));
    let receiver = sched::spawn(calm_receiver(ends, tellings))?;
    refuse_one_in(refused, seed);
    let all_done = async {
        while !yard.is_over() {
            let mut drivers = [const { None }; 4];
            for (number, driver) in drivers.iter_mut().enumerate() {
                *driver = sched::spawn(calm_driver(yard, number)).ok();
            }
            for driver in drivers.into_iter().flatten() {
                // It may end for want of memory, and then the others do what is left.
                let _ = driver.await;
            }
            sched::yield_now().await;
        }
    };
    let longest = HANGS_AFTER * u32::try_from(deeds.div_ceil(DEEDS_IN_TIME)).unwrap_or(u32::MAX);
    let is_done = time::background_timeout(longest, all_done).await.is_ok();
    refuse_one_in(0, 0);
    ensure!(is_done, "{} deeds are not done", yard.left.load(Ordering::Relaxed));
    end_all().await?;
    let stopped =
        time::background_timeout(HANGS_AFTER, executor.stop_within(Duration::from_millis(50))).await;
    let stopped = stopped.map_err(|_| "the stop of an executor waits for ever")?;
    end_all().await?;
    unrest.end().await?;
    let messages = innocents.end().await?;
    // If they do not, that says which.
    let _ = until("all watches have told", || tellings.is_complete()).await;
    tellings.judge()?;
    sched::out_of_work().await;
    ensure!(handle.table_is_whole(), "a mailbox is missing");
    receiver.process().kill();
    let _ = receiver.await;
    calm.stop().await;
    let watches = tellings.judge()?;
    magpie::log::text!(
        "{} deeds, {watches} watches told, {} behaviours killed at the end, {messages} messages",
        yard.done.load(Ordering::Relaxed),
        stopped.killed()
    );
    Ok(())
}

kernel_test! {
    /// Whatever somebody does with others, from wherever: nobody else is harmed, each watch tells once, and all can be ended. With memory refused, too.
    async fn nobody_else_is_harmed() -> Outcome {
        let (seed, deeds) = (seed(), amount("crashes", 3000));
        let _slice = Changed::new(&[(Setting::SliceMicroseconds, 200)])?;
        sched::out_of_work().await;
        let before = sched::live_processes();
        for (round, refused) in [0, 0, 30, 5].into_iter().enumerate() {
            let crashes = crash::total();
            let outcome = misuse(seed.wrapping_add(round as u64), deeds, refused).await;
            outcome.map_err(|Failure(text)| Failure(format!("seed={seed}, round {round}: {text}")))?;
            ensure!(crash::total() > crashes, "seed={seed}, round {round}: nothing has crashed");
            sched::out_of_work().await;
            let live: Vec<_> = sched::processes().map(|process| (process.type_name(), process.state())).collect();
            ensure_eq!(sched::live_processes(), before, "seed={}, round {}: processes, of {:?}", seed, round, live);
        }
        all_meters_are_free().await
    }
}
