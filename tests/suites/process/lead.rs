//! What is urgent is begun with before its moment, and nothing of that is seen before the moment: by whoever is woken, wherever it runs, and
//! by whatever is sent.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Addr, Config, Context, Executor, Receive};
use magpie::arch::CoreId;
use magpie::channel::ProcessMailbox;
use magpie::machine;
use magpie::sched::{self, Priority, Setting, Spawn};
use magpie::time::{self, Instant};
use magpie_tests::{Failure, Outcome, amount, ensure, ensure_eq, kernel_test};

/// Numbers that look like chance, by xorshift.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % bound.max(1)
    }
}

/// How often each waits.
fn rounds() -> u64 {
    amount("rounds", 400)
}

/// The longest lead there may be shows best what comes early.
struct LongestLead(u64);

impl LongestLead {
    fn set() -> Result<Self, Failure> {
        let before = sched::setting(Setting::LeadMicroseconds);
        sched::set_setting(Setting::LeadMicroseconds, 20)?;
        Ok(Self(before))
    }
}

impl Drop for LongestLead {
    fn drop(&mut self) {
        let _ = sched::set_setting(Setting::LeadMicroseconds, self.0);
    }
}

/// What has come, and what of it before its moment.
#[derive(Default)]
struct Seen {
    all: AtomicU64,
    early: AtomicU64,
}

impl Seen {
    fn note(&self, due: Instant) {
        let is_early = Instant::now() < due;
        self.early.fetch_add(is_early.into(), Ordering::Relaxed);
        self.all.fetch_add(1, Ordering::Relaxed);
    }

    fn judge(&self, expected: u64, what: &str) -> Outcome {
        let (all, early) = (self.all.load(Ordering::Relaxed), self.early.load(Ordering::Relaxed));
        ensure_eq!(early, 0, "{what} that came early");
        ensure_eq!(all, expected, "{what} that came");
        Ok(())
    }
}

/// A moment a few microseconds away, or up to a hundred.
fn soon(random: &mut Random) -> Instant {
    Instant::now()
        + Duration::from_nanos({
            let most = 3_000 << random.below(6);
            random.below(most)
        })
}

fn cores() -> impl Iterator<Item = CoreId> {
    (0..machine::cores()).filter_map(CoreId::new)
}

/// Sends itself messages for moments to come, and others that are handled at once, so that its worker runs at any time.
struct Clock {
    me: Option<Addr<Self>>,
    random: Random,
    left: u64,
    seen: Arc<Seen>,
}

impl Actor for Clock {}

struct Begin(Addr<Clock>);
#[derive(Clone, Copy, Debug, PartialEq)]
struct Due(Instant);
struct Other;

impl Clock {
    fn new(number: u64, seen: &Arc<Seen>) -> Self {
        Self { me: None, random: Random::new(number + 1), left: rounds(), seen: seen.clone() }
    }

    fn next(&mut self) {
        let Some(me) = self.me.filter(|_| self.left > 0) else { return };
        self.left -= 1;
        let due = soon(&mut self.random);
        // A message that is not sent is missed by who counts them.
        let _ = me.send_at(due, Due(due));
        if self.random.below(2) == 0 {
            let _ = me.send(Other);
        }
    }
}

impl Receive<Begin> for Clock {
    type Reply = ();

    fn receive(&mut self, Begin(me): Begin, _: &mut Context<Self>) {
        self.me = Some(me);
        self.next();
    }
}

impl Receive<Due> for Clock {
    type Reply = ();

    fn receive(&mut self, Due(due): Due, _: &mut Context<Self>) {
        self.seen.note(due);
        self.next();
    }
}

impl Receive<Other> for Clock {
    type Reply = ();

    fn receive(&mut self, _: Other, _: &mut Context<Self>) {}
}

/// Processes that keep the cores busy until this is dropped.
struct Busy(Arc<AtomicBool>);

impl Busy {
    fn begin() -> Result<Self, Failure> {
        let over = Arc::new(AtomicBool::new(false));
        for core in cores() {
            let over = over.clone();
            Spawn::new().pinned(core).start(async move {
                while !over.load(Ordering::Relaxed) {
                    sched::yield_now().await;
                }
            })?;
        }
        Ok(Self(over))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Many clocks, in an executor with so many workers, some of them pinned.
async fn clocks(workers: usize, count: u64) -> Outcome {
    let executor = Executor::start(&Config::default().workers(workers).priority(Priority::High))?;
    let seen = Arc::new(Seen::default());
    for number in 0..count {
        let clock = Clock::new(number, &seen);
        let core = CoreId::new(number as usize % workers).unwrap_or(CoreId::BOOT);
        let handle = executor.handle();
        let clock = if number % 3 == 0 { handle.spawn_pinned(core, clock)? } else { handle.spawn(clock)? };
        clock.send(Begin(clock))?;
    }
    while seen.all.load(Ordering::Relaxed) < count * rounds() {
        time::sleep(Duration::from_millis(1)).await;
    }
    executor.stop().await;
    seen.judge(count * rounds(), "messages")
}

kernel_test! {
    /// A message for an urgent actor is not handled before its moment: on one worker, whose mailboxes nobody takes, and on all.
    async fn no_message_is_early() -> Outcome {
        let _lead = LongestLead::set()?;
        for is_busy in [false, true] {
            let busy = if is_busy { Some(Busy::begin()?) } else { None };
            clocks(1, 1).await?;
            clocks(1, 6).await?;
            clocks(machine::cores(), 12).await?;
            drop(busy);
        }
        Ok(())
    }
}

kernel_test! {
    /// What is sent at intervals, some of them shorter than the lead, comes no earlier than its multiple of the period.
    async fn no_interval_is_early() -> Outcome {
        struct Counter {
            /// When it was set at the earliest: so many clock ticks after this.
            base: Instant,
            set: Arc<AtomicU64>,
            period: Duration,
            seen: Arc<Seen>,
        }
        impl Actor for Counter {}
        impl Receive<u32> for Counter {
            type Reply = ();

            fn receive(&mut self, _: u32, _: &mut Context<Self>) {
                let number = self.seen.all.load(Ordering::Relaxed) as u32 + 1;
                let set = self.base + time::of_ticks(self.set.load(Ordering::Relaxed));
                self.seen.note(set + self.period * number);
            }
        }
        let _lead = LongestLead::set()?;
        let executor = Executor::start(&Config::default().workers(1).priority(Priority::High))?;
        // Of each the first few: later one may have been left out, and the next then comes at a later multiple.
        for round in 0..rounds() {
            let period = Duration::from_nanos([50_011, 200_003][round as usize % 2]);
            let (seen, base, set) = (Arc::new(Seen::default()), Instant::now(), Arc::new(AtomicU64::new(0)));
            let counter = executor.handle().spawn(Counter { base, set: set.clone(), period, seen: seen.clone() })?;
            // When it is set is known only at the earliest: as little as possible comes in between.
            set.store(Instant::now().ticks() - base.ticks(), Ordering::Relaxed);
            let ticks = counter.send_interval(period, 0)?;
            while seen.all.load(Ordering::Relaxed) < 3 {
                time::sleep(period).await;
            }
            ticks.cancel();
            let early = seen.early.load(Ordering::Relaxed);
            ensure_eq!(early, 0, "messages every {period:?} that came early");
        }
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// An urgent process that sleeps, receives what was scheduled, or waits for whichever comes first, never goes on before the moment,
    /// whoever else wakes it meanwhile, and wherever.
    async fn no_wake_up_is_early() -> Outcome {
        let _lead = LongestLead::set()?;
        let _busy = Busy::begin()?;
        let seen = Arc::new(Seen::default());
        let mut all = Vec::new();
        let count = 3 * machine::cores() as u64;
        for number in 0..count {
            let seen = seen.clone();
            let spawn = Spawn::new().priority(if number % 4 == 0 { Priority::Max } else { Priority::High });
            // Some on a core of their own, the others wherever there is room.
            let spawn = match cores().nth(number as usize) {
                Some(core) => spawn.pinned(core),
                None => spawn,
            };
            all.push(spawn.start(async move { waits(Random::new(number + 1000), &seen).await })?);
        }
        for process in all {
            process.await??;
        }
        seen.judge(count * rounds(), "wake-ups")
    }
}

async fn waits(mut random: Random, seen: &Seen) -> Outcome {
    let mut mailbox = ProcessMailbox::new(8)?;
    let address = mailbox.address();
    // Now it is known who receives.
    ensure_eq!(mailbox.try_receive(), None::<Due>, "what nobody has sent");
    for _ in 0..rounds() {
        let due = soon(&mut random);
        match random.below(3) {
            0 => time::sleep_until(due).await,
            1 => {
                // It looks again and again, and may be woken for other things.
                address.send_at(due, Due(due))?;
                loop {
                    if let Some(Due(due)) = mailbox.try_receive() {
                        ensure!(Instant::now() >= due, "a message came before its moment");
                        break;
                    }
                    sched::yield_now().await;
                }
            }
            _ => {
                // Something else wakes it right before.
                let other = address.clone();
                let near = due.ticks().saturating_sub(Instant::now().ticks());
                let before = time::of_ticks(random.below(near));
                let pokes = sched::spawn(async move {
                    time::sleep(before).await;
                    other.send(Due(due)).is_ok()
                })?;
                let limit = due - Instant::now();
                if let Err(time::Elapsed) = time::timeout(limit, mailbox.receive()).await {
                    ensure!(Instant::now() >= due, "a limit was reached before its moment");
                    mailbox.receive().await;
                }
                ensure!(pokes.await?, "there was no room");
                time::sleep_until(due).await;
            }
        }
        seen.note(due);
    }
    Ok(())
}
