//! What is put aside for an actor with a bounded mailbox while its behaviour is suspended: how it counts, and what of it is forgotten.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Addr, Bound, Config, Context, Executor, Receive, WhenFull};
use magpie::time;
use magpie_tests::{amount, comes, ensure_eq, kernel_test};

/// What has become of the messages of a test.
#[derive(Default)]
struct Seen {
    handled: AtomicU64,
    dropped: AtomicU64,
    /// The number of the one that is being sent.
    newest: AtomicU64,
    /// How many were given up while they were the newest.
    newest_given_up: AtomicU64,
    /// A behaviour runs that goes on until this is taken back.
    is_held: AtomicBool,
}

fn read(count: &AtomicU64) -> u64 {
    count.load(Ordering::Acquire)
}

/// A message that counts its end, whether it was handled or given up.
struct Number {
    value: u64,
    is_handled: bool,
    seen: Arc<Seen>,
}

impl Number {
    fn new(value: u64, seen: &Arc<Seen>) -> Self {
        Self { value, is_handled: false, seen: seen.clone() }
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        self.seen.dropped.fetch_add(1, Ordering::AcqRel);
        if !self.is_handled && self.value == read(&self.seen.newest) {
            self.seen.newest_given_up.fetch_add(1, Ordering::AcqRel);
        }
    }
}

struct Counter(Arc<Seen>);

impl Actor for Counter {}

impl Receive<Number> for Counter {
    type Reply = ();

    fn receive(&mut self, mut number: Number, _: &mut Context<Self>) {
        number.is_handled = true;
        self.0.handled.fetch_add(1, Ordering::AcqRel);
    }
}

/// Goes on until it is let go.
struct Hold;

impl Receive<Hold> for Counter {
    type Reply = ();

    fn receive(&mut self, _: Hold, _: &mut Context<Self>) {
        self.0.is_held.store(true, Ordering::Release);
        while self.0.is_held.load(Ordering::Acquire) {
            core::hint::spin_loop();
        }
    }
}

/// So long a behaviour goes on, so that it is suspended.
const SUSPENDED_AFTER: Duration = Duration::from_millis(4);

kernel_test! {
    /// Who sends while what was put aside is taken loses nothing to a mailbox that has room again: the newest counts.
    #[machine("preemption")]
    async fn the_newest_is_not_forgotten_for_what_was_taken() -> Outcome {
        let executor = Executor::start(&Config::default().own_mailboxes(1))?;
        let bound = Bound::new(1, WhenFull::DropOldest);
        let seen = Arc::new(Seen::default());
        let actor = executor.handle().spawn_bounded(Counter(seen.clone()), bound);
        let actor = actor.map_err(|error| error.without_actor())?;
        let mut value = 0;
        for _ in 0..amount("rounds", 300) {
            // A `Hold` is newer than all numbers, and may take the place of the last one.
            seen.newest.store(0, Ordering::Release);
            actor.send(Hold)?;
            comes(|| seen.is_held.load(Ordering::Acquire), "it does not begin").await?;
            time::sleep(SUSPENDED_AFTER).await;
            let before = read(&seen.handled);
            // Until the first of them is handled: it was let go in between.
            for sent in 0.. {
                if sent == 8 {
                    seen.is_held.store(false, Ordering::Release);
                }
                value += 1;
                seen.newest.store(value, Ordering::Release);
                actor.send(Number::new(value, &seen))?;
                if read(&seen.handled) > before || sent > 100_000 {
                    break;
                }
            }
        }
        seen.newest.store(0, Ordering::Release);
        executor.stop().await;
        ensure_eq!(read(&seen.newest_given_up), 0, "messages given up that were the newest, of {value}");
        Ok(())
    }
}

/// Runs until it is let go. Then it sends to another actor of its mailbox, and ends; when it is dropped, it sends to that once more.
struct Ending {
    begun: Arc<AtomicBool>,
    free: Arc<AtomicBool>,
    other: Addr<Counter>,
    seen: Arc<Seen>,
}

/// So many messages go to the other: half of what the mailbox takes.
const OTHERS: u64 = 500;
/// So many are put aside for the one that ends, so long that short ones would be far more than the mailbox takes.
const ASIDE: usize = 100;

impl Ending {
    fn send(&self, value: u64) {
        let sent = self.other.send(Number::new(value, &self.seen));
        assert!(sent.is_ok(), "the other lives, and a mailbox that forgets the oldest is never full");
    }
}

impl Actor for Ending {}

impl Drop for Ending {
    fn drop(&mut self) {
        self.send(OTHERS + 1);
    }
}

struct Run;

impl Receive<Run> for Ending {
    type Reply = ();

    fn receive(&mut self, _: Run, context: &mut Context<Self>) {
        self.begun.store(true, Ordering::Release);
        while !self.free.load(Ordering::Acquire) {
            core::hint::spin_loop();
        }
        (1..=OTHERS).for_each(|value| self.send(value));
        context.end();
    }
}

impl Receive<[u8; 1000]> for Ending {
    type Reply = ();

    fn receive(&mut self, _: [u8; 1000], _: &mut Context<Self>) {}
}

kernel_test! {
    /// What comes back for an actor that has ended takes no more of a bound than there is of it: nothing else is forgotten for it.
    #[machine("preemption")]
    async fn mail_that_comes_back_is_counted_as_it_is() -> Outcome {
        for _ in 0..5 {
            let bound = Bound::new(1000, WhenFull::DropOldest);
            let executor = Executor::start(&Config::default().workers(1).mailboxes(1).bound(bound))?;
            let (begun, free) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
            let seen = Arc::new(Seen::default());
            let other = executor.handle().spawn(Counter(seen.clone()))?;
            let ending = Ending { begun: begun.clone(), free: free.clone(), other, seen: seen.clone() };
            let ending = executor.handle().spawn(ending)?;
            ending.send(Run)?;
            comes(|| begun.load(Ordering::Acquire), "it does not begin").await?;
            for _ in 0..ASIDE {
                ending.send([1; 1000])?;
            }
            // It is suspended meanwhile, and they are put aside.
            time::sleep(Duration::from_millis(20)).await;
            free.store(true, Ordering::Release);
            comes(|| read(&seen.dropped) > OTHERS, "not all are over").await?;
            ensure_eq!(read(&seen.handled), OTHERS + 1, "messages to the other, which all had room");
            executor.stop().await;
        }
        Ok(())
    }
}
