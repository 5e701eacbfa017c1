//! How long something urgent waits while the kernel works on many of one kind: messages that were put aside or are to be passed, free cells,
//! mailboxes of one's own.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Addr, Bound, Config, Context, Executor, NotSpawned, Receive, WhenFull};
use magpie::arch::CoreId;
use magpie::machine;
use magpie::sched::{self, Priority, Spawn};
use magpie::time::{self, Instant};
use magpie_tests::{Failure, Outcome, ensure, ensure_eq, kernel_test};

use crate::{needs_counted_time, slice, within};

/// So many there are of each kind.
const MANY: u32 = 4000;

/// The most that an urgent process is late, with debug assertions: what began a moment before it was due, a turn that cannot be suspended and is
/// tried again after 2 µs, and the mailboxes that a worker had in hand.
const LONGEST: Duration = Duration::from_micros(12);

/// A moment of an urgent process follows the last by so much, and a little more each time.
const PERIOD: Duration = Duration::from_micros(5);

/// Runs `work` beside an urgent process that sleeps again and again, and looks how late that is at most.
pub(crate) async fn beside_urgent<T>(
    what: &str,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let other = stop.clone();
    let urgent = Spawn::new().pinned(CoreId::BOOT).priority(Priority::High).start(async move {
        let (mut longest, mut round) = (Duration::ZERO, 0);
        while !other.load(Ordering::Acquire) {
            round += 1;
            let due = Instant::now() + PERIOD + Duration::from_nanos(round % 4000);
            time::sleep_until(due).await;
            longest = longest.max(due.elapsed());
        }
        longest
    })?;
    let done = work.await;
    stop.store(true, Ordering::Release);
    let longest = urgent.await?;
    magpie::log::text!("{}: {} ns", what, longest.as_nanos() as u64);
    // The turns of other virtual cores are counted on the same clock.
    if machine::cores() == 1 {
        within(longest, LONGEST, what)?;
    }
    done
}

/// Counts its messages, and those that are dropped.
#[derive(Default)]
struct Seen {
    handled: AtomicU64,
    dropped: AtomicU64,
    is_long: AtomicBool,
}

struct Counter(Arc<Seen>);

impl Actor for Counter {}

/// A message that knows when it is dropped without having been handled.
struct Letter(Option<Arc<Seen>>);

impl Drop for Letter {
    fn drop(&mut self) {
        if let Some(seen) = &self.0 {
            seen.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Receive<Letter> for Counter {
    type Reply = ();

    fn receive(&mut self, mut letter: Letter, _: &mut Context<Self>) {
        letter.0 = None;
        self.0.handled.fetch_add(1, Ordering::Relaxed);
    }
}

/// Runs until it is told to stop.
struct Long;

impl Receive<Long> for Counter {
    type Reply = ();

    fn receive(&mut self, _: Long, _: &mut Context<Self>) {
        self.0.is_long.store(true, Ordering::Release);
        while self.0.is_long.load(Ordering::Acquire) {
            core::hint::spin_loop();
        }
    }
}

/// The actor ends.
struct End;

impl Receive<End> for Counter {
    type Reply = ();

    fn receive(&mut self, _: End, context: &mut Context<Self>) {
        context.end();
    }
}

async fn until(what: &str, is_so: impl Fn() -> bool) -> Outcome {
    let end = Instant::now() + 2000 * slice();
    while !is_so() {
        ensure!(Instant::now() < end, "in vain: {what}");
        time::sleep(slice()).await;
    }
    Ok(())
}

/// An actor is suspended, and what it is sent meanwhile is put aside. Then it ends, before the letters or at the first of what was put aside.
async fn ends_with_mail_aside(is_aside: bool) -> Outcome {
    let executor = Executor::start(&Config::default().workers(1).mailboxes(1))?;
    let seen = Arc::new(Seen::default());
    let actor = executor.handle().spawn_pinned(CoreId::BOOT, Counter(seen.clone()))?;
    actor.send(Long)?;
    until("it runs", || seen.is_long.load(Ordering::Acquire)).await?;
    time::sleep(4 * slice()).await;
    if is_aside {
        actor.send(Letter(Some(seen.clone())))?;
    }
    actor.send(End)?;
    for _ in 0..MANY {
        actor.send(Letter(Some(seen.clone())))?;
    }
    // The worker puts them aside.
    time::sleep(20 * slice()).await;
    beside_urgent("an end with mail put aside", async {
        seen.is_long.store(false, Ordering::Release);
        until("it has ended", || !actor.is_alive()).await?;
        until("all are dropped", || seen.dropped.load(Ordering::Acquire) >= u64::from(MANY)).await
    })
    .await?;
    ensure_eq!(seen.handled.load(Ordering::Acquire), u64::from(is_aside), "letters handled");
    ensure_eq!(seen.dropped.load(Ordering::Acquire), u64::from(MANY), "letters dropped");
    executor.stop().await;
    Ok(())
}

kernel_test! {
    /// Nobody urgent waits for the mail of an actor that was suspended and ends.
    async fn mail_put_aside_is_dropped_bit_by_bit() -> Outcome {
        needs_counted_time()?;
        ends_with_mail_aside(false).await?;
        ends_with_mail_aside(true).await
    }
}

kernel_test! {
    /// A kill comes in front of all that waits in a mailbox, of which some was forgotten.
    async fn a_kill_passes_many_messages() -> Outcome {
        needs_counted_time()?;
        // Whose worker has no turn while this one is at work.
        let rules = Config::default().workers(1).own_mailboxes(1).priority(Priority::Low);
        let executor = Executor::start(&rules)?;
        let seen = Arc::new(Seen::default());
        let bound = Bound::new(MANY, WhenFull::DropOldest);
        let actor = executor.handle().spawn_bounded(Counter(seen.clone()), bound).map_err(|error| error.without_actor())?;
        for _ in 0..MANY + 10 {
            actor.send(Letter(Some(seen.clone())))?;
        }
        beside_urgent("a kill in front of many messages", async {
            actor.kill()?;
            until("it has ended", || !actor.is_alive()).await?;
            let all = u64::from(MANY) + 10;
            let is_all = || seen.dropped.load(Ordering::Acquire) + seen.handled.load(Ordering::Acquire) >= all;
            until("all are handled or dropped", is_all).await
        })
        .await?;
        if machine::cores() == 1 {
            ensure_eq!(seen.handled.load(Ordering::Acquire), 0, "letters handled");
        }
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// A worker with as many mailboxes as it has hints for looks at few of them before its turn ends for somebody urgent.
    async fn somebody_urgent_does_not_wait_for_looks_at_what_is_hinted() -> Outcome {
        needs_counted_time()?;
        let executor = Executor::start(&Config::default().workers(1).mailboxes(64))?;
        let seen = Arc::new(Seen::default());
        let actors = (0..64).map(|_| executor.handle().spawn(Counter(seen.clone())));
        let actors = actors.collect::<Result<Vec<_>, _>>()?;
        let send = async {
            for actor in actors.iter().cycle().take(MANY as usize) {
                actor.send(Letter(None))?;
                sched::yield_now().await;
            }
            until("all are handled", || seen.handled.load(Ordering::Acquire) == u64::from(MANY)).await
        };
        beside_urgent("mail to 64 mailboxes, one after the other", send).await?;
        executor.stop().await;
        Ok(())
    }
}

/// Spawns so many, and has them end.
async fn spawn_and_end<A: Receive<End>>(executor: &Executor, make: impl Fn() -> A) -> Outcome {
    let actors = (0..MANY).map(|_| executor.handle().spawn(make()));
    let actors = actors.collect::<Result<Vec<Addr<A>>, _>>()?;
    for actor in &actors {
        actor.send(End)?;
    }
    executor.all_ended().await;
    Ok(())
}

/// Others, each of which is a kind of its own.
struct Other<const N: usize>;

impl<const N: usize> Actor for Other<N> {}

impl<const N: usize> Receive<End> for Other<N> {
    type Reply = ();

    fn receive(&mut self, _: End, context: &mut Context<Self>) {
        context.end();
    }
}

/// As many of each of so many kinds of actors, one after the other, with all that is left of the others.
macro_rules! spawn_and_end_of_kinds {
    ($executor:expr, $($kind:literal)*) => {
        $(spawn_and_end($executor, || Other::<$kind>).await?;)*
    };
}

kernel_test! {
    /// Nobody urgent waits for free cells that go from core to core, or make room for another kind of actor.
    async fn many_free_cells_are_given_away_bit_by_bit() -> Outcome {
        needs_counted_time()?;
        let executor = Executor::start(&Config::default().workers(1))?;
        beside_urgent("cells that are given away", async {
            for _ in 0..2 {
                spawn_and_end_of_kinds!(&executor, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
            }
            Ok(())
        })
        .await?;
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// Nobody urgent waits for the search for a mailbox of an actor's own where all are taken.
    async fn many_own_mailboxes_are_searched_bit_by_bit() -> Outcome {
        needs_counted_time()?;
        let executor = Executor::start(&Config::default().workers(1).own_mailboxes(MANY as usize))?;
        let seen = Arc::new(Seen::default());
        let handle = executor.handle();
        let bound = Bound::new(10, WhenFull::Refuse);
        let mut actors = Vec::new();
        for _ in 0..MANY {
            actors.push(handle.spawn_bounded(Counter(seen.clone()), bound).map_err(|error| error.without_actor())?);
        }
        beside_urgent("a search for a mailbox", async {
            for _ in 0..20 {
                let refused = handle.spawn_bounded(Counter(seen.clone()), bound).map_err(|error| error.without_actor());
                ensure!(matches!(refused, Err(NotSpawned::NoMailbox(()))), "there was one more");
                sched::yield_now().await;
            }
            // The last that was looked at is found again.
            actors[actors.len() / 2].send(End)?;
            until("one has ended", || !actors[actors.len() / 2].is_alive()).await?;
            let found = handle.spawn_bounded(Counter(seen.clone()), bound).map_err(|error| error.without_actor());
            ensure!(found.is_ok(), "the mailbox of one that has ended was not found");
            Ok(())
        })
        .await?;
        executor.stop().await;
        Ok(())
    }
}
