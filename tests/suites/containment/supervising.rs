//! Supervisors: whom they start anew, when they give up, and how they end. What is decided is judged by what children tell and by
//! counts. No window and no healthy time in here can be missed by a slow host: they are an hour, or nothing.

use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::Poll;
use core::time::Duration;

use magpie::actor::{
    Actor, Addr, Bound, Config, Context, Executor, ExecutorHandle, Hook, Receive, WhenFull, stop,
};
use magpie::channel::{ProcessAddr, ProcessMailbox};
use magpie::internals::mem::heap::HEAP;
use magpie::registry;
use magpie::supervise::{Backoff, Child, ChildState, Shutdown, Supervisor, SupervisorRef};
use magpie::time::{self, Instant};
use magpie::watch::{Ended, Exit};
use magpie::{machine, sched};
use magpie_tests::{Failure, HANGS_AFTER, HeapExhauster, Outcome, amount, ensure, ensure_eq, kernel_test};

use crate::ways::{Way, linger};

const HOUR: Duration = Duration::from_secs(3600);

/// What a worker is to do.
#[derive(Clone, Copy)]
enum Order {
    Return,
    Fail,
    Crash(Way),
    /// To take no notice of anything any more, and wait.
    Sulk,
    /// The same, and not even wait.
    Hog,
}

/// What a worker tells.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Told {
    Began(u32),
    /// As it was asked to.
    Ended(u32),
    /// Its future was dropped without that.
    Dropped(u32),
}

/// Tells, unless all is over.
struct TellsDrop {
    number: u32,
    address: ProcessAddr<Told>,
    is_over: bool,
}

impl Drop for TellsDrop {
    fn drop(&mut self) {
        if !self.is_over {
            // Nobody may listen any more.
            let _ = self.address.send(Told::Dropped(self.number));
        }
    }
}

/// Which of the two comes first.
async fn first<A: Future, B: Future>(a: A, b: B) -> Result<A::Output, B::Output> {
    let (mut a, mut b) = (pin!(a), pin!(b));
    poll_fn(|context| match a.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Ok(output)),
        Poll::Pending => b.as_mut().poll(context).map(Err),
    })
    .await
}

/// Does what it is ordered to, under its name.
async fn work(number: u32, told: ProcessAddr<Told>, mut shutdown: Shutdown) -> Outcome {
    let mut orders = ProcessMailbox::<Order>::new(8)?;
    registry::register(&format!("worker {number}"), orders.address())?;
    let mut tells = TellsDrop { number, address: told, is_over: false };
    tells.address.send(Told::Began(number)).map_err(|error| error.without_message())?;
    let order = first(orders.receive(), shutdown.requested()).await;
    match order {
        Ok(Some(Order::Sulk)) => core::future::pending().await,
        Ok(Some(Order::Hog)) => loop {
            core::hint::spin_loop();
        },
        Ok(Some(Order::Crash(way))) => drop(way.crash()),
        Err(()) => drop(tells.address.send(Told::Ended(number))),
        Ok(_) => {}
    }
    tells.is_over = true;
    if matches!(order, Ok(Some(Order::Fail))) { Err(Failure("as it was told".into())) } else { Ok(()) }
}

/// Who listens to workers, and gives them orders.
struct Scene {
    told: ProcessMailbox<Told>,
    address: ProcessAddr<Told>,
}

impl Scene {
    fn new() -> Result<Self, Failure> {
        let told = ProcessMailbox::new(10_000)?;
        let address = told.address();
        Ok(Self { told, address })
    }

    fn worker(&self, number: u32) -> Child {
        let address = self.address.clone();
        Child::process("worker", move |shutdown| work(number, address.clone(), shutdown)).within(HOUR)
    }

    async fn next(&mut self) -> Result<Told, Failure> {
        match time::background_timeout(HANGS_AFTER, self.told.receive()).await {
            Ok(Some(told)) => Ok(told),
            _ => Err(Failure("a worker told nothing".into())),
        }
    }

    /// These are told, in this order.
    async fn expect(&mut self, expected: &[Told]) -> Outcome {
        for expected in expected {
            ensure_eq!(self.next().await?, *expected, "what was told");
        }
        Ok(())
    }

    /// These begin next, in whichever order their cores come to it.
    async fn expect_begins(&mut self, numbers: &[u32]) -> Outcome {
        self.expect_begins_but(numbers, &[]).await
    }

    /// The same; meanwhile these may be told. One that was to compute for ever may have had no turn for that before it was killed.
    async fn expect_begins_but(&mut self, numbers: &[u32], others: &[Told]) -> Outcome {
        let mut began = Vec::new();
        while began.len() < numbers.len() {
            let next = self.next().await?;
            if !others.contains(&next) {
                began.push(next);
            }
        }
        began.sort_unstable();
        let expected: Vec<Told> = numbers.iter().copied().map(Told::Began).collect();
        ensure_eq!(began, expected, "who began");
        Ok(())
    }

    /// Orders a worker that has begun.
    fn order(&self, number: u32, order: Order) -> Outcome {
        let worker: ProcessAddr<Order> = registry::find(&format!("worker {number}"))?;
        worker.send(order).map_err(|error| error.without_message())?;
        Ok(())
    }

    fn nothing_more(&mut self) -> Outcome {
        ensure_eq!(self.told.try_receive(), None, "what else was told");
        Ok(())
    }
}

/// Waits until the children are as is expected.
async fn until(supervisor: &SupervisorRef, holds: impl Fn(&[ChildState]) -> bool) -> Outcome {
    let came = async {
        while !holds(&supervisor.children().await?) {
            sched::yield_now().await;
        }
        Ok::<(), Failure>(())
    };
    time::background_timeout(HANGS_AFTER, came)
        .await
        .map_err(|_| Failure("the children are otherwise".into()))?
}

/// How a supervisor ended.
async fn end_of(supervisor: &SupervisorRef) -> Result<Exit, Failure> {
    let mut ends = ProcessMailbox::<Ended>::new(1)?;
    supervisor.process().watch(&ends.address())?;
    match time::background_timeout(HANGS_AFTER, ends.receive()).await {
        Ok(Some(ended)) => Ok(ended.exit()),
        _ => Err(Failure("a supervisor did not end".into())),
    }
}

/// Without delays, and with as many restarts as are wanted.
fn patient(supervisor: Supervisor) -> Supervisor {
    supervisor.backoff(Backoff::NONE).restarts(1000, HOUR)
}

kernel_test! {
    async fn each_strategy_starts_whom_it_names() -> Outcome {
        use Told::Ended;
        let cases: [(Supervisor, &[Told], &[u32]); 3] = [
            (Supervisor::one_for_one(), &[], &[1]),
            (Supervisor::one_for_all(), &[Ended(2), Ended(0)], &[0, 1, 2]),
            (Supervisor::rest_for_one(), &[Ended(2)], &[1, 2]),
        ];
        for (supervisor, ended, begun) in cases {
            let mut scene = Scene::new()?;
            let supervisor = (0..3).fold(patient(supervisor), |all, number| all.child(scene.worker(number))).start()?;
            scene.expect_begins(&[0, 1, 2]).await?;
            for order in [Order::Fail, Order::Return, Order::Fail] {
                scene.order(1, order)?;
                scene.expect(ended).await?;
                scene.expect_begins(begun).await?;
            }
            ensure_eq!(supervisor.children().await?.iter().map(|child| child.restarts).sum::<u64>(), 3, "restarts");
            supervisor.stop().await?;
            scene.expect(&[Ended(2), Ended(1), Ended(0)]).await?;
            scene.nothing_more()?;
        }
        Ok(())
    }
}

kernel_test! {
    async fn each_kind_is_restarted_as_it_was_declared() -> Outcome {
        for failure in [Order::Fail, Order::Return] {
            let mut scene = Scene::new()?;
            let supervisor = patient(Supervisor::one_for_one())
                .child(scene.worker(0))
                .child(scene.worker(1).transient())
                .child(scene.worker(2).temporary())
                .start()?;
            scene.expect_begins(&[0, 1, 2]).await?;
            let is_failure = matches!(failure, Order::Fail);
            scene.order(2, failure)?;
            until(&supervisor, |children| children.len() == 2).await?;
            scene.order(1, failure)?;
            if is_failure {
                scene.expect_begins(&[1]).await?;
            } else {
                until(&supervisor, |children| children.len() == 2 && !children[1].runs).await?;
            }
            scene.order(0, failure)?;
            scene.expect_begins(&[0]).await?;
            supervisor.stop().await?;
            let ended = if is_failure { &[Told::Ended(1), Told::Ended(0)][..] } else { &[Told::Ended(0)] };
            scene.expect(ended).await?;
            scene.nothing_more()?;
        }
        Ok(())
    }
}

kernel_test! {
    /// The inner one gives up, the outer one starts it again, until it gives up, too.
    async fn who_gives_up_tells_its_own() -> Outcome {
        let mut scene = Scene::new()?;
        let inner = Supervisor::one_for_one()
            .backoff(Backoff::NONE)
            .restarts(2, HOUR)
            .child(scene.worker(0))
            .child(scene.worker(1));
        let outer = Supervisor::one_for_one()
            .backoff(Backoff::NONE)
            .restarts(1, HOUR)
            .child(scene.worker(2))
            .child(Child::supervisor("inner", inner))
            .start()?;
        scene.expect_begins(&[0, 1, 2]).await?;
        for is_last in [false, true] {
            for _ in 0..2 {
                scene.order(0, Order::Fail)?;
                scene.expect_begins(&[0]).await?;
            }
            scene.order(0, Order::Fail)?;
            scene.expect(&[Told::Ended(1)]).await?;
            if is_last {
                scene.expect(&[Told::Ended(2)]).await?;
            } else {
                scene.expect_begins(&[0, 1]).await?;
                ensure!(outer.children().await?.iter().any(|child| child.name == "inner" && child.restarts == 1), "restarts");
            }
        }
        let exit = end_of(&outer).await?;
        ensure!(exit == Exit::Failed || exit == Exit::Gone && outer.process().has_failed(), "it ended as {exit:?}");
        ensure!(outer.start_child(scene.worker(3)).await.is_err(), "one that has given up has taken a child");
        scene.nothing_more()
    }
}

kernel_test! {
    /// A supervisor with a name that is started anew gets it at once: its end, and no other, is a restart.
    async fn a_named_supervisor_is_restarted_once_for_each_end() -> Outcome {
        const ROUNDS: u32 = 200;
        let mut scene = Scene::new()?;
        let inner = Supervisor::one_for_one().named("inner").restarts(0, HOUR).child(scene.worker(0));
        let outer = patient(Supervisor::one_for_one()).child(Child::supervisor("inner", inner)).start()?;
        for round in 0..ROUNDS {
            scene.expect_begins(&[0]).await?;
            let restarts = outer.children().await?.iter().map(|child| child.restarts).sum::<u64>();
            ensure_eq!(restarts, u64::from(round), "restarts");
            scene.order(0, Order::Fail)?;
        }
        scene.expect_begins(&[0]).await?;
        outer.stop().await?;
        scene.expect(&[Told::Ended(0)]).await?;
        scene.nothing_more()
    }
}

kernel_test! {
    /// Each delay is in the range that is declared, and no restart comes before its delay is over.
    async fn delays_grow_and_begin_anew() -> Outcome {
        let milliseconds = Duration::from_millis;
        let backoff = Backoff::new(milliseconds(4), milliseconds(20));
        let grows = (backoff.reset_after(HOUR), [4, 8, 16, 20, 20]);
        let does_not = (backoff.reset_after(Duration::ZERO), [4; 5]);
        for (backoff, delays) in [grows, does_not] {
            let mut scene = Scene::new()?;
            let supervisor =
                Supervisor::one_for_one().restarts(1000, HOUR).backoff(backoff).child(scene.worker(0)).start()?;
            scene.expect_begins(&[0]).await?;
            for whole in delays.map(milliseconds) {
                let before = Instant::now();
                scene.order(0, Order::Fail)?;
                scene.expect_begins(&[0]).await?;
                let took = before.elapsed();
                let delay = supervisor.children().await?.first().map_or(Duration::ZERO, |child| child.delay);
                ensure!(delay * 2 >= whole && delay <= whole, "a delay of {delay:?} of {whole:?}");
                ensure!(took >= delay, "started after {took:?} in place of {delay:?}");
            }
            supervisor.stop().await?;
        }
        Ok(())
    }
}

kernel_test! {
    /// One that takes no notice is killed when its time is over; nobody else is.
    async fn who_does_not_end_is_killed() -> Outcome {
        const LIMIT: Duration = Duration::from_millis(20);
        let mut scene = Scene::new()?;
        let supervisor = Supervisor::one_for_one()
            .child(scene.worker(0))
            .child(scene.worker(1).within(LIMIT))
            .child(scene.worker(2))
            .start()?;
        scene.expect_begins(&[0, 1, 2]).await?;
        scene.order(1, Order::Sulk)?;
        let before = Instant::now();
        supervisor.stop().await?;
        ensure!(before.elapsed() >= LIMIT, "it had no time to end");
        scene.expect(&[Told::Ended(2)]).await?;
        let mut next = scene.next().await?;
        if next == Told::Dropped(1) {
            // It waited already; killed in its turn, it would not have told that.
            next = scene.next().await?;
        }
        ensure_eq!(next, Told::Ended(0), "what was told");
        scene.nothing_more()
    }
}

kernel_test! {
    #[machine("preemption")]
    async fn who_computes_for_ever_is_killed() -> Outcome {
        const LIMIT: Duration = Duration::from_millis(20);
        for second_is_hog in [true, false] {
            let mut scene = Scene::new()?;
            let second = scene.worker(2);
            let supervisor = patient(Supervisor::one_for_all())
                .child(scene.worker(0))
                .child(scene.worker(1).within(LIMIT))
                .child(if second_is_hog { second.within(LIMIT) } else { second })
                .start()?;
            scene.expect_begins(&[0, 1, 2]).await?;
            for _ in 0..3 {
                scene.order(1, Order::Hog)?;
                if second_is_hog {
                    scene.order(2, Order::Hog)?;
                }
                scene.order(0, Order::Fail)?;
                if !second_is_hog {
                    scene.expect(&[Told::Ended(2)]).await?;
                }
                let dropped = [Told::Dropped(1), Told::Dropped(2)];
                scene.expect_begins_but(&[0, 1, 2], &dropped[..1 + usize::from(second_is_hog)]).await?;
            }
            // All wait by now, and only the first may take as long as it likes.
            supervisor.stop().await?;
            let mut told = Vec::new();
            while let Some(end) = scene.told.try_receive() {
                told.push(end);
            }
            ensure_eq!(told.len(), 3, "how many have ended; {:?}", told);
            ensure_eq!(told[2], Told::Ended(0), "who ends last");
            let ends = told[0] == Told::Ended(2) || second_is_hog && told[0] == Told::Dropped(2);
            ensure!(ends, "what was told first: {:?}", told[0]);
        }
        Ok(())
    }
}

kernel_test! {
    #[machine("isolation")]
    async fn who_crashes_is_started_again() -> Outcome {
        let mut scene = Scene::new()?;
        let supervisor = patient(Supervisor::one_for_one())
            .child(scene.worker(0).transient())
            .child(scene.worker(1))
            .start()?;
        scene.expect_begins(&[0, 1]).await?;
        for round in 0..30 {
            scene.order(round % 2, Order::Crash(Way::ALL[round as usize % 3]))?;
            scene.expect_begins(&[round % 2]).await?;
        }
        supervisor.stop().await?;
        scene.expect(&[Told::Ended(1), Told::Ended(0)]).await?;
        scene.nothing_more()
    }
}

kernel_test! {
    /// Children come and go at run time, and leave no memory.
    async fn children_come_and_go() -> Outcome {
        const ROUNDS: u32 = 200;
        let mut scene = Scene::new()?;
        let supervisor = patient(Supervisor::one_for_one()).start()?;
        let mut before = 0;
        for round in 0..ROUNDS {
            let one = supervisor.start_child(scene.worker(0)).await?;
            let other = supervisor.start_child(scene.worker(1).transient()).await?;
            scene.expect_begins(&[0, 1]).await?;
            scene.order(0, Order::Fail)?;
            scene.expect_begins(&[0]).await?;
            scene.order(1, Order::Return)?;
            until(&supervisor, |children| children.len() == 1).await?;
            ensure!(supervisor.terminate(one).await?, "one was forgotten");
            ensure!(!supervisor.terminate(other).await?, "one was kept that was over");
            scene.expect(&[Told::Ended(0)]).await?;
            if round == ROUNDS / 2 {
                sched::out_of_work().await;
                before = HEAP.usage().0;
            }
        }
        sched::out_of_work().await;
        let grown = HEAP.usage().0.saturating_sub(before);
        ensure!(grown < 16 * 1024, "{grown} bytes more are in use after {} children", ROUNDS);
        supervisor.stop().await?;
        scene.nothing_more()
    }
}

kernel_test! {
    /// With a supervisor its children end, and theirs, whatever ends it.
    async fn children_of_a_killed_supervisor_are_killed() -> Outcome {
        for _ in 0..20 {
            let mut scene = Scene::new()?;
            let inner = Supervisor::one_for_one().child(scene.worker(0)).child(scene.worker(1));
            let outer = Supervisor::one_for_one().child(Child::supervisor("inner", inner)).child(scene.worker(2)).start()?;
            scene.expect_begins(&[0, 1, 2]).await?;
            scene.order(0, Order::Sulk)?;
            outer.process().kill();
            let nobody = async {
                // Each name is gone with its worker, whether that waited when it was killed or not.
                while registry::names().any(|name| name.starts_with("worker")) {
                    sched::yield_now().await;
                }
            };
            ensure!(time::background_timeout(HANGS_AFTER, nobody).await.is_ok(), "a child lives on");
            while let Some(told) = scene.told.try_receive() {
                ensure!(matches!(told, Told::Dropped(_)), "a child was told to end, or began: {told:?}");
            }
            sched::out_of_work().await;
        }
        Ok(())
    }
}

/// Fails in one of its first lives, as often as it is said.
async fn fails(lives: Arc<AtomicU64>, failures: u64, crashes: bool, mut shutdown: Shutdown) -> Outcome {
    let life = lives.fetch_add(1, Ordering::Relaxed);
    if life < failures {
        if life.is_multiple_of(3) {
            sched::yield_now().await;
        }
        if crashes {
            Way::ALL[life as usize % 3].crash();
        }
        return Err(Failure("as often as it should".into()));
    }
    shutdown.requested().await;
    Ok(())
}

/// Under one supervisor many others, each with a child that fails some random number of times beside one that does not: how often each
/// is started, and how often each supervisor gives up, can be said before.
///
/// A failure says the seed; with `seed=N` as a boot argument it is that one.
async fn random_failures(crashes: bool) -> Outcome {
    let given = machine::argument("seed").and_then(|text| text.parse().ok());
    let seed: u64 = given.unwrap_or_else(|| Instant::now().ticks());
    failures_of(seed, crashes).await.map_err(|failure| Failure(format!("seed={seed}: {}", failure.0)))
}

async fn failures_of(seed: u64, crashes: bool) -> Outcome {
    const SUPERVISORS: u64 = 24;
    const MOST: u64 = 3;
    let most_failures = amount("crashes", 200) / SUPERVISORS + 2;
    let random = seed | 1;
    let mut outer = patient(Supervisor::one_for_one());
    let (mut expected, mut lives) = (Vec::new(), Vec::new());
    for index in 0..SUPERVISORS {
        let failures =
            random.wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ index << 7).rotate_left(23) % most_failures;
        let (failing, steady) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (its, others) = (failing.clone(), steady.clone());
        let inner = Supervisor::rest_for_one()
            .backoff(Backoff::NONE)
            .restarts(MOST as usize, HOUR)
            .child(Child::process("steady", move |shutdown| fails(others.clone(), 0, false, shutdown)))
            .child(
                Child::process("failing", move |shutdown| fails(its.clone(), failures, crashes, shutdown))
                    .transient(),
            );
        outer = outer.child(Child::supervisor("inner", inner));
        // Each fourth failure is one too many.
        expected.push((failures + 1, failures / (MOST + 1)));
        lives.push((failing, steady));
    }
    let outer = outer.start()?;
    let all_begun = async {
        for ((failing, steady), (begins, given_up)) in lives.iter().zip(&expected) {
            while failing.load(Ordering::Relaxed) < *begins || steady.load(Ordering::Relaxed) < given_up + 1 {
                sched::yield_now().await;
            }
        }
    };
    let begun = time::background_timeout(HANGS_AFTER, all_begun).await;
    ensure!(begun.is_ok(), "children were not started as often as they should");
    let children = outer.children().await?;
    outer.stop().await?;
    for (index, ((failing, steady), (begins, given_up))) in lives.iter().zip(&expected).enumerate() {
        ensure_eq!(
            failing.load(Ordering::Relaxed),
            *begins,
            "lives of the child that fails, of supervisor {index}"
        );
        ensure_eq!(steady.load(Ordering::Relaxed), given_up + 1, "lives of its steady child");
        ensure_eq!(children[index].restarts, *given_up, "how often it gave up");
    }
    Ok(())
}

kernel_test! {
    async fn random_failures_are_followed_by_what_a_model_says() -> Outcome {
        random_failures(false).await
    }
}

kernel_test! {
    #[machine("isolation")]
    async fn random_crashes_are_followed_by_what_a_model_says() -> Outcome {
        random_failures(true).await
    }
}

/// What panics when it is dropped.
struct Brittle(Box<u64>);

impl Drop for Brittle {
    fn drop(&mut self) {
        assert!(*self.0 == 0, "on purpose");
    }
}

kernel_test! {
    /// Neither what makes a child nor its destructor ends the supervisor.
    #[machine("isolation")]
    async fn what_makes_a_child_may_crash() -> Outcome {
        let mut scene = Scene::new()?;
        let supervisor = patient(Supervisor::one_for_one()).child(scene.worker(0)).start()?;
        scene.expect_begins(&[0]).await?;
        for _ in 0..10 {
            let brittle = Brittle(Box::new(7));
            let child = Child::process("brittle", move |_| {
                assert!(*brittle.0 == 0, "on purpose");
                core::future::pending::<()>()
            });
            let child = supervisor.start_child(child).await?;
            until(&supervisor, |children| children.iter().any(|it| it.id == child && it.restarts > 2)).await?;
            ensure!(supervisor.terminate(child).await?, "it was forgotten");
        }
        ensure_eq!(supervisor.children().await?.len(), 1, "children");
        supervisor.stop().await?;
        scene.expect(&[Told::Ended(0)]).await
    }
}

/// An actor with a name.
struct Clerk(Arc<AtomicU64>);

impl Actor for Clerk {
    fn started() -> Option<Hook<Self>> {
        Some(|clerk, context| {
            clerk.0.fetch_add(1, Ordering::Relaxed);
            // Who does not get it is not found, and the test says so.
            let _ = registry::register("supervised clerk", context.address());
        })
    }
}

impl Receive<Way> for Clerk {
    type Reply = u64;

    fn receive(&mut self, way: Way, _: &mut Context<Self>) -> u64 {
        way.crash()
    }
}

/// The clerk of that life.
async fn clerk(lives: &AtomicU64, life: u64) -> Result<Addr<Clerk>, Failure> {
    let found = async {
        loop {
            if lives.load(Ordering::Relaxed) >= life
                && let Ok(clerk) = registry::find("supervised clerk")
            {
                return clerk;
            }
            sched::yield_now().await;
        }
    };
    time::background_timeout(HANGS_AFTER, found).await.map_err(|_| Failure("no clerk was found".into()))
}

/// Actors are started again, and found under their name.
async fn actors(crash: impl Fn(u64, Addr<Clerk>) -> bool) -> Outcome {
    lives_of(|executor, make| Child::actor("clerk", executor, make), crash).await
}

async fn lives_of(
    child: impl Fn(&ExecutorHandle, Box<dyn Fn() -> Clerk + Send + Sync>) -> Child,
    crash: impl Fn(u64, Addr<Clerk>) -> bool,
) -> Outcome {
    let executor = Executor::start(&Config::default().own_mailboxes(1))?;
    let lives = Arc::new(AtomicU64::new(0));
    let counted = lives.clone();
    let make = Box::new(move || Clerk(counted.clone()));
    let supervisor = patient(Supervisor::one_for_one()).child(child(executor.handle(), make)).start()?;
    for life in 1..20 {
        let clerk = clerk(&lives, life).await?;
        ensure!(crash(life, clerk), "it could not be told to end");
    }
    let last = clerk(&lives, 20).await?;
    supervisor.stop().await?;
    ensure!(!last.is_alive(), "it lives on without its supervisor");
    ensure_eq!(lives.load(Ordering::Relaxed), 20, "lives");
    executor.stop().await;
    Ok(())
}

kernel_test! {
    async fn actors_that_end_are_started_again() -> Outcome {
        actors(|_, clerk| clerk.send(stop::End).is_ok()).await
    }
}

kernel_test! {
    #[machine("isolation")]
    async fn actors_that_crash_are_started_again() -> Outcome {
        actors(|life, clerk| clerk.send(Way::ALL[life as usize % 3]).is_ok()).await
    }
}

kernel_test! {
    /// Each has the one mailbox alone, and leaves it full.
    #[machine("isolation")]
    async fn bounded_actors_that_crash_are_started_again() -> Outcome {
        lives_of(
            |executor, make| Child::bounded_actor("clerk", executor, Bound::new(2, WhenFull::Refuse), make),
            |life, clerk| {
                let is_told = clerk.send(Way::ALL[life as usize % 3]).is_ok();
                while clerk.send(Way::ALL[0]).is_ok() {}
                is_told
            },
        )
        .await
    }
}

/// An actor that computes for ever, on each core and for each life.
struct Hog {
    life: u64,
    beats: Arc<[AtomicU64; 3]>,
}

impl Actor for Hog {
    fn started() -> Option<Hook<Self>> {
        Some(|hog, context| {
            // In its turn it is found by the test.
            let _ = registry::register("hog", context.address());
            hog.beats[hog.life as usize].store(1, Ordering::Relaxed);
        })
    }
}

struct Spin;

impl Receive<Spin> for Hog {
    type Reply = ();

    fn receive(&mut self, _: Spin, _: &mut Context<Self>) {
        loop {
            self.beats[self.life as usize].fetch_add(1, Ordering::Relaxed);
        }
    }
}

kernel_test! {
    /// An actor that does not end when it is asked to is killed, and its successor is not made before it has ended.
    #[machine("preemption")]
    async fn a_killed_actor_has_ended_before_its_successor_is_made() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let beats = Arc::new([const { AtomicU64::new(0) }; 3]);
        let (lives, went_on) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let make = {
            let (beats, went_on) = (beats.clone(), went_on.clone());
            move || {
                let life = lives.fetch_add(1, Ordering::Relaxed);
                if let Some(last) = (life as usize).checked_sub(1) {
                    let before = beats[last].load(Ordering::Relaxed);
                    linger();
                    went_on.fetch_add(u64::from(beats[last].load(Ordering::Relaxed) != before), Ordering::Relaxed);
                }
                Hog { life, beats: beats.clone() }
            }
        };
        let mut scene = Scene::new()?;
        let supervisor = patient(Supervisor::one_for_all())
            .child(Child::actor("hog", executor.handle(), make).within(Duration::from_millis(3)))
            .child(scene.worker(1))
            .start()?;
        for life in 0..3 {
            scene.expect(&[Told::Began(1)]).await?;
            let hog = async {
                loop {
                    match registry::find::<Addr<Hog>>("hog") {
                        Ok(hog) if beats[life].load(Ordering::Relaxed) == 1 => return hog,
                        _ => sched::yield_now().await,
                    }
                }
            };
            let hog = time::background_timeout(HANGS_AFTER, hog).await.map_err(|_| "a hog was not started")?;
            hog.send(Spin)?;
            while beats[life].load(Ordering::Relaxed) < 2 {
                sched::yield_now().await;
            }
            if life < 2 {
                scene.order(1, Order::Fail)?;
            }
        }
        let stopped = time::background_timeout(HANGS_AFTER, supervisor.stop()).await;
        ensure!(matches!(stopped, Ok(Ok(()))), "a supervisor whose child is a hog does not stop: {stopped:?}");
        ensure!(registry::find::<Addr<Hog>>("hog").is_err(), "the last hog lives");
        ensure_eq!(went_on.load(Ordering::Relaxed), 0, "lives that went on beside their successors");
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// A supervisor is killed while memory is used up: so are the actors that are its children, for which memory was kept.
    #[machine("isolation")]
    async fn actors_of_a_killed_supervisor_are_killed_without_memory() -> Outcome {
        const CHILDREN: usize = 16;
        let executor = Executor::start(&Config::default())?;
        let lives = Arc::new(AtomicU64::new(0));
        let mut supervisor = patient(Supervisor::one_for_one());
        for _ in 0..CHILDREN {
            let lives = lives.clone();
            supervisor = supervisor.child(Child::actor("idle", executor.handle(), move || Idle(lives.clone())));
        }
        let supervisor = supervisor.start()?;
        let all = async {
            while lives.load(Ordering::Acquire) < CHILDREN as u64 {
                sched::yield_now().await;
            }
        };
        time::background_timeout(HANGS_AFTER, all).await.map_err(|_| "not all were started")?;
        let mut exhauster = HeapExhauster::everything(16)?;
        exhauster.take_more(16)?;
        supervisor.process().kill();
        // Until all is over that could take memory, and gives none back.
        while executor.handle().live_actors() > 0 && !supervisor.process().is_done() {
            exhauster.take_more(16)?;
            sched::yield_now().await;
        }
        let all_ended = time::background_timeout(HANGS_AFTER, executor.all_ended()).await;
        drop(exhauster);
        ensure!(all_ended.is_ok(), "{} actors outlive their supervisor", executor.handle().live_actors());
        executor.stop().await;
        Ok(())
    }
}

/// Says that it lives.
struct Idle(Arc<AtomicU64>);

impl Actor for Idle {
    fn started() -> Option<Hook<Self>> {
        Some(|idle, _| _ = idle.0.fetch_add(1, Ordering::AcqRel))
    }
}
