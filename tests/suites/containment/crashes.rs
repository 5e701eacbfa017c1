//! Many crashes of all kinds beside those who do nothing wrong: what the innocent are sent arrives once and in order, no core
//! and no timer is lost, and memory grows by no more than is said.
//!
//! How many is said by the boot argument `crashes`; `cargo xtask test --soak` asks for 10^5.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hint::black_box;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{
    Actor, Addr, AskError, Config, Context, Executor, ExecutorHandle, Receive, Shared, StaticActor,
};
use magpie::arch::CoreId;
use magpie::channel::{ProcessAddr, ProcessMailbox};
use magpie::internals::mem::heap::HEAP;
use magpie::sched::{self, JoinError, Setting, Spawn};
use magpie::{machine, stats, time};
use magpie_tests::{Changed, Failure, Outcome, amount, ensure, ensure_eq, kernel_test};

use crate::ways::{Way, linger};
use crate::{crashed, free_stacks, not_started, start_when_free};

/// Innocent actors, and as many innocent processes for each core.
const ACTORS: usize = 12;
/// Who sends to all of them.
const SENDERS: usize = 3;
/// Messages that may be under way from one sender.
const UNDER_WAY: u64 = 300;
/// Who make others crash, at the same time.
const CULPRITS: usize = 4;
/// What a crash may leave on average, all in all: what the dead owned on the heap, and what others may have of it.
const BYTES_PER_CRASH: u64 = 200;
/// Far longer than anything here takes.
const LONG: Duration = magpie_tests::HANGS_AFTER;

/// A numbered message to an innocent.
#[derive(Clone, Copy)]
struct Numbered {
    sender: usize,
    number: u64,
}

/// What innocents have received, all together.
struct Seen {
    messages: AtomicU64,
    out_of_order: AtomicU64,
    later: AtomicU64,
}

/// Which message of each sender comes next.
struct Innocent {
    next: [u64; SENDERS],
    seen: Arc<Seen>,
}

impl Innocent {
    fn new(seen: &Arc<Seen>) -> Self {
        Self { next: [0; SENDERS], seen: seen.clone() }
    }

    fn note(&mut self, Numbered { sender, number }: Numbered) {
        if self.next[sender] != number {
            self.seen.out_of_order.fetch_add(1, Ordering::Relaxed);
        }
        self.next[sender] = number + 1;
        self.seen.messages.fetch_add(1, Ordering::Relaxed);
    }
}

impl Actor for Innocent {}

impl Receive<Numbered> for Innocent {
    type Reply = ();

    fn receive(&mut self, message: Numbered, _: &mut Context<Self>) {
        self.note(message);
    }
}

/// Sent by one who crashes right afterwards, for later.
struct Later;

impl Receive<Later> for Innocent {
    type Reply = ();

    fn receive(&mut self, _: Later, _: &mut Context<Self>) {
        self.seen.later.fetch_add(1, Ordering::Relaxed);
    }
}

/// How one crashes.
#[derive(Clone, Copy)]
struct Crash {
    way: Way,
    /// After it has run for so long that it is suspended if anything waits.
    late: bool,
    /// After it has sent something for later.
    sends: Option<Addr<Innocent>>,
    later: &'static AtomicU64,
}

impl Crash {
    fn happen(self) -> u64 {
        if let Some(innocent) = self.sends
            && innocent.send_after(Duration::from_micros(300), Later).is_ok()
        {
            self.later.fetch_add(1, Ordering::Relaxed);
        }
        if self.late {
            linger();
        }
        self.way.crash()
    }
}

/// An actor that crashes, with a little memory of its own, and a state of so many bytes.
struct Guilty<const BYTES: usize>(Vec<u8>, [u8; BYTES]);

impl<const BYTES: usize> Guilty<BYTES> {
    fn new() -> Self {
        Self(alloc::vec![1; 24], [1; BYTES])
    }
}

impl<const BYTES: usize> Actor for Guilty<BYTES> {}

fn after<A: Actor>(crashed: u64, context: &mut Context<A>) {
    if black_box(crashed) == 1 {
        context.end();
    }
}

impl<const BYTES: usize> Receive<Crash> for Guilty<BYTES> {
    type Reply = u64;

    fn receive(&mut self, crash: Crash, context: &mut Context<Self>) -> u64 {
        let crashed = crash.happen() + u64::from(self.0[0] + self.1[0]);
        after(crashed, context);
        crashed
    }
}

/// A message that is boxed.
impl<const BYTES: usize> Receive<(Crash, [u64; 160])> for Guilty<BYTES> {
    type Reply = ();

    fn receive(&mut self, (crash, load): (Crash, [u64; 160]), context: &mut Context<Self>) {
        after(crash.happen() + load[black_box(3)], context);
    }
}

impl<const BYTES: usize> Receive<Shared<Crash>> for Guilty<BYTES> {
    type Reply = ();

    fn receive(&mut self, crash: Shared<Crash>, context: &mut Context<Self>) {
        after(crash.happen(), context);
    }
}

static STORAGE: [StaticActor<Guilty<40>>; CULPRITS] = [const { StaticActor::new() }; CULPRITS];

/// What the culprits need.
#[derive(Clone)]
struct Scene {
    handle: ExecutorHandle,
    innocents: Arc<Vec<Addr<Innocent>>>,
    later: &'static AtomicU64,
}

impl Scene {
    fn crash(&self, number: u64) -> Crash {
        let way = Way::ALL[number as usize % 3];
        let innocent = self.innocents[number as usize % ACTORS];
        Crash { way, late: number % 7 == 6, sends: (number % 5 == 4).then_some(innocent), later: self.later }
    }

    /// One crash, for the `number`th time, by the culprit of that index.
    async fn one(&self, culprit: usize, number: u64) -> Outcome {
        let crash = self.crash(number);
        // Beside an innocent, so that its mail is before and behind in the same batch.
        let beside = self.innocents[number as usize % 11];
        match number % 8 {
            0 => {
                let process = sched::spawn(async move { crash.happen() });
                ensure_eq!(
                    process.map_err(not_started)?.await,
                    Err(JoinError::Crashed),
                    "what a handle says"
                );
            }
            1 => self.process_with_ties(crash).await?,
            2 => {
                let actor = self.handle.spawn_beside(beside, Guilty::<40>::new())?;
                for _ in 0..4 {
                    // It may have crashed already.
                    let _ = actor.send(crash);
                }
                crashed(actor).await?;
            }
            3 => {
                let actor = self.handle.spawn(Guilty::<1500>::new())?;
                actor.send((crash, [1; 160]))?;
                let _ = actor.send((crash, [1; 160]));
                crashed(actor).await?;
            }
            4 => {
                let actor = self.handle.spawn(Guilty::<40>::new())?;
                let answer = actor.ask(crash).await;
                ensure_eq!(answer, Err(AskError::Crashed), "what is said to who asked");
            }
            5 => {
                let actor = start_when_free(&STORAGE[culprit], &self.handle, Guilty::new()).await?;
                actor.send(crash)?;
                crashed(actor).await?;
            }
            6 => {
                let shared = Shared::new(crash).map_err(|_| "no memory")?;
                let actors = [(); 2].map(|()| self.handle.spawn_beside(beside, Guilty::<40>::new()));
                for actor in actors {
                    let actor = actor?;
                    actor.send(shared.clone())?;
                    crashed(actor).await?;
                }
            }
            _ => {
                let core = CoreId::new(number as usize / 8 % machine::cores()).unwrap_or(CoreId::BOOT);
                let process = Spawn::new().pinned(core).start(async move {
                    time::sleep(Duration::from_micros(50)).await;
                    crash.happen()
                });
                ensure_eq!(
                    process.map_err(not_started)?.await,
                    Err(JoinError::Crashed),
                    "what a handle says"
                );
            }
        }
        Ok(())
    }

    /// A process that crashes while others have its mailbox, and timer queues its timers.
    async fn process_with_ties(&self, crash: Crash) -> Outcome {
        let mut mailbox = ProcessMailbox::<u64>::new(4)?;
        let address = mailbox.address();
        address.send(1)?;
        let process = sched::spawn(async move {
            let received = mailbox.receive_within(LONG).await;
            let mut nothing = Box::pin(mailbox.receive_within(LONG));
            let waits = core::future::poll_fn(|context| {
                core::task::Poll::Ready(nothing.as_mut().poll(context).is_pending())
            });
            if waits.await && received.is_ok() { crash.happen() } else { 0 }
        });
        ensure_eq!(process.map_err(not_started)?.await, Err(JoinError::Crashed), "what a handle says");
        ensure!(address.send(2).is_err(), "the mailbox of a process that crashed accepts");
        Ok(())
    }
}

/// Sends to all innocents until it is told to stop. Returns how many messages that were.
async fn load(
    sender: usize,
    actors: Arc<Vec<Addr<Innocent>>>,
    processes: Vec<ProcessAddr<Numbered>>,
    seen: Arc<Seen>,
    sent: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
) -> Result<(), Failure> {
    let mut number = 0;
    while !over.load(Ordering::Relaxed) {
        let under_way = sent.load(Ordering::Relaxed).saturating_sub(seen.messages.load(Ordering::Relaxed));
        if under_way < UNDER_WAY * SENDERS as u64 {
            let message = Numbered { sender, number };
            for actor in actors.iter() {
                actor.send(message)?;
            }
            for process in &processes {
                process.send(message)?;
            }
            sent.fetch_add((actors.len() + processes.len()) as u64, Ordering::Relaxed);
            number += 1;
            sched::yield_now().await;
        } else {
            // Cores run out of work now and then, and steal.
            time::sleep(Duration::from_micros(200)).await;
        }
    }
    Ok(())
}

/// Sleeps again and again on its core. Returns how often.
async fn keep_time(over: Arc<AtomicBool>) -> u64 {
    let mut slept = 0;
    // Once at least: its core may come to it late.
    while slept == 0 || !over.load(Ordering::Relaxed) {
        time::sleep(Duration::from_micros(500)).await;
        slept += 1;
    }
    slept
}

kernel_test! {
    /// Crashes of all kinds under load, with stealing on.
    #[machine("isolation")]
    async fn many_crashes_harm_nobody() -> Outcome {
        let crashes = amount("crashes", 200);
        let _slice = Changed::new(&[(Setting::SliceMicroseconds, 200)])?;
        sched::out_of_work().await;
        let free = free_stacks();
        let executor = Executor::start(&Config::default())?;
        let handle = executor.handle();
        let seen = Arc::new(Seen {
            messages: AtomicU64::new(0),
            out_of_order: AtomicU64::new(0),
            later: AtomicU64::new(0),
        });
        let later: &'static AtomicU64 = Box::leak(Box::new(AtomicU64::new(0)));
        let mut innocents = Vec::new();
        for _ in 0..ACTORS {
            innocents.push(handle.spawn(Innocent::new(&seen))?);
        }
        let innocents = Arc::new(innocents);
        let (over, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (mut addresses, mut receivers, mut keepers, mut senders) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for core in (0..machine::cores()).filter_map(CoreId::new) {
            let mut mailbox = ProcessMailbox::<Numbered>::new(10_000)?;
            addresses.push(mailbox.address());
            let mut innocent = Innocent::new(&seen);
            let receiver = Spawn::new().pinned(core).start(async move {
                while let Some(message) = mailbox.receive().await {
                    innocent.note(message);
                }
            });
            receivers.push(receiver.map_err(not_started)?);
            keepers.push(Spawn::new().pinned(core).start(keep_time(over.clone())).map_err(not_started)?);
        }
        let began = time::Instant::now();
        let warm_up = crashes / 4;
        let scene = Scene { handle: handle.clone(), innocents: innocents.clone(), later };
        // First some that let buffers grow to their sizes, with the load already there.
        for sender in 0..SENDERS {
            let load =
                load(sender, innocents.clone(), addresses.clone(), seen.clone(), sent.clone(), over.clone());
            senders.push(sched::spawn(load).map_err(not_started)?);
        }
        drop(addresses);
        make_crash(&scene, 0..warm_up).await?;
        let used = HEAP.usage().0;
        make_crash(&scene, warm_up..crashes).await?;
        let grown = HEAP.usage().0.saturating_sub(used) as u64;
        let lasted = began.elapsed();
        over.store(true, Ordering::Relaxed);
        for sender in senders {
            sender.await??;
        }
        for receiver in receivers {
            receiver.await?;
        }
        let mut slept = Vec::new();
        for keeper in keepers {
            slept.push(keeper.await?);
        }
        // What was sent for later and what is under way: none of it is lost, so there is an end.
        time::background_timeout(LONG, sched::out_of_work()).await.map_err(|_| Failure("work does not end".into()))?;
        let counted = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        magpie::log::text!(
            "{crashes} crashes in {} ms beside {} messages, {} mailboxes stolen, {slept:?} sleeps: {} bytes each in the last {}",
            lasted.as_millis(),
            counted(&sent),
            stats::worker_total(|worker| worker.mailboxes_stolen.get()),
            grown / (crashes - warm_up).max(1),
            crashes - warm_up,
        );
        ensure_eq!(counted(&seen.messages), counted(&sent), "messages to innocents that were handled");
        ensure_eq!(counted(&seen.out_of_order), 0, "messages to innocents out of order");
        ensure_eq!(counted(&seen.later), counted(later), "messages sent for later that have come");
        ensure_eq!(handle.live_actors(), ACTORS as u64, "actors that live");
        ensure_eq!(free_stacks(), free, "free stacks");
        ensure!(
            grown <= BYTES_PER_CRASH * (crashes - warm_up) + BUFFERS * machine::cores() as u64,
            "memory has grown by {grown} bytes over {} crashes",
            crashes - warm_up
        );
        executor.stop().await;
        Ok(())
    }
}

/// What mailboxes and lists may have grown by meanwhile, for each core.
const BUFFERS: u64 = 256 * 1024;

/// These crashes, by several at once.
async fn make_crash(scene: &Scene, numbers: core::ops::Range<u64>) -> Outcome {
    let before = stats::total(|core| core.crashes.get());
    let mut culprits = Vec::new();
    for culprit in 0..CULPRITS {
        let (scene, numbers) = (scene.clone(), numbers.clone());
        let culprit = sched::spawn(async move {
            for number in numbers.skip(culprit).step_by(CULPRITS) {
                scene.one(culprit, number).await?;
            }
            Ok::<_, Failure>(())
        });
        culprits.push(culprit.map_err(not_started)?);
    }
    let wanted = numbers.end - numbers.start;
    for culprit in culprits {
        culprit.await??;
    }
    let crashes = stats::total(|core| core.crashes.get()) - before;
    ensure!(crashes >= wanted, "{crashes} crashes of {wanted}");
    Ok(())
}
