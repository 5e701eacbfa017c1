//! When something crashes: the points in what processes and actors do.

use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use core::future::poll_fn;
use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::Poll;
use core::time::Duration;

use magpie::actor::{Actor, Addr, Context, ExecutorHandle, Receive};
use magpie::channel::ProcessMailbox;
use magpie::internals::Random;
use magpie::log::text;
use magpie::mutex::{Mutex, MutexGuard};
use magpie::sched::{self, Setting, Spawn};
use magpie::time::{self, Instant};

use crate::ways::Way;

/// Takes what others send while they crash, and counts it.
pub struct Sink {
    pub handled: Arc<AtomicU64>,
}

impl Actor for Sink {}

/// A message whose copies count. One of them may be the crash of who sends it.
pub struct Copied {
    left: AtomicU64,
    way: Way,
}

impl Clone for Copied {
    fn clone(&self) -> Self {
        // One thread of control copies it.
        let left = self.left.load(Ordering::Relaxed);
        if left == 0 {
            self.way.crash();
        }
        self.left.store(left.wrapping_sub(1), Ordering::Relaxed);
        Self { left: AtomicU64::new(u64::MAX), way: self.way }
    }
}

impl Receive<Copied> for Sink {
    type Reply = ();

    fn receive(&mut self, _: Copied, _: &mut Context<Self>) {
        self.handled.fetch_add(1, Ordering::Relaxed);
    }
}

/// What comes due when who sent it may have ended.
pub struct Later;

impl Receive<Later> for Sink {
    type Reply = u64;

    fn receive(&mut self, _: Later, _: &mut Context<Self>) -> u64 {
        self.handled.fetch_add(1, Ordering::Relaxed)
    }
}

/// Runs for several slices, so that it is suspended if anything waits.
pub fn linger() {
    let began = Instant::now();
    let several = Duration::from_micros(4 * sched::setting(Setting::SliceMicroseconds));
    while began.elapsed() < several {
        core::hint::spin_loop();
    }
}

/// Crashes when it is dropped.
pub struct Will(pub Way);

impl Drop for Will {
    fn drop(&mut self) {
        black_box(self.0.crash());
    }
}

/// A point at which something crashes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    AtOnce,
    /// In the middle of a message to several.
    Sending,
    WithMutex,
    /// After it has run for so long that it is suspended if anything waits.
    Suspended,
    /// In what it drops.
    Dropping,
    /// With something of everything: timers, mailboxes, memory, answers that are awaited.
    WithEverything,
    /// A process: in a poll, after other turns. An actor: in its first hook.
    Early,
    /// A process: in the turn after a sleep. An actor: in its last hook.
    Late,
}

impl Moment {
    pub fn any(random: &Random) -> Self {
        const ALL: [Moment; 8] = [
            Moment::AtOnce,
            Moment::Sending,
            Moment::WithMutex,
            Moment::Suspended,
            Moment::Dropping,
            Moment::WithEverything,
            Moment::Early,
            Moment::Late,
        ];
        ALL[random.below(ALL.len())]
    }
}

/// What somebody about to crash has to do with others.
#[derive(Clone)]
pub struct Ties {
    pub way: Way,
    pub moment: Moment,
    pub sinks: [Addr<Sink>; 3],
    /// Nobody else has it, but for who looks whether it is poisoned.
    pub mutex: Arc<Mutex<u64>>,
}

impl Ties {
    /// At any moment.
    pub fn any(way: Way, sinks: [Addr<Sink>; 3], random: &Random) -> Self {
        Self { way, moment: Moment::any(random), sinks, mutex: Arc::new(Mutex::new(0)) }
    }

    /// For the message of a failure: when it was watched, its way, its moment, a digit each.
    pub fn described(&self, when: u16) -> u16 {
        when << 8 | (self.way as u16) << 4 | self.moment as u16
    }

    fn send_and_crash(&self) {
        let message = Copied { left: AtomicU64::new(1), way: self.way };
        // It does not come back.
        let _ = Addr::send_to_all(&self.sinks, &message);
    }

    /// What of the moments a process and an actor have in common.
    pub fn crash(&self) -> u64 {
        match self.moment {
            Moment::Sending => self.send_and_crash(),
            Moment::Suspended => linger(),
            Moment::Dropping => drop(black_box(Will(self.way))),
            _ => {}
        }
        self.way.crash()
    }

    pub fn crash_with(&self, mut held: MutexGuard<'_, u64>) -> u64 {
        *held += 1;
        self.way.crash() + *held
    }

    /// Does a little of everything, until it crashes or is killed.
    pub async fn busy_life(&self) -> u64 {
        let number = Box::new(7_u64);
        let Ok(mut mailbox) = ProcessMailbox::<u64>::new(4) else { return 0 };
        let to = mailbox.address();
        loop {
            let sink = self.sinks[*number as usize % 3];
            let alarm = sink.send_after(Duration::from_micros(150), Later);
            let pending = to.send_after(Duration::from_micros(500), 1);
            let _ = to.send(*number);
            let answer = sink.ask(Later);
            let child = sched::spawn(async { black_box(Box::new([1_u64; 20])).len() });
            let _ = mailbox.receive().await;
            if let Ok(mut held) = self.mutex.lock().await {
                *held += text_of(*number) as u64;
                if self.moment == Moment::WithEverything && self.way.is_crash() {
                    return self.way.crash();
                }
            }
            let _ = answer.await;
            if let Ok(child) = child {
                let _ = child.await;
            }
            let _ = time::timeout(Duration::from_micros(20), mailbox.receive()).await;
            drop((alarm, pending));
        }
    }

    /// The life of a process that ends as is said. One that is to be killed goes on until it is.
    pub async fn life(self) -> u64 {
        if self.way == Way::Kill {
            return match self.moment {
                Moment::AtOnce | Moment::Dropping => core::future::pending().await,
                Moment::Suspended | Moment::Sending => spin(),
                _ => self.busy_life().await,
            };
        }
        match self.moment {
            Moment::WithMutex => match self.mutex.lock().await {
                Ok(held) => self.crash_with(held),
                Err(_) => 0,
            },
            Moment::WithEverything => self.busy_life().await,
            Moment::Early => {
                let mut polls = 0;
                poll_fn(|context| {
                    polls += 1;
                    if polls == 3 {
                        return Poll::Ready(self.way.crash());
                    }
                    context.waker().wake_by_ref();
                    Poll::Pending
                })
                .await
            }
            Moment::Late => {
                time::sleep(Duration::from_micros(50)).await;
                self.way.crash()
            }
            _ => self.crash(),
        }
    }
}

/// Text that is made, and seen by nobody.
fn text_of(number: u64) -> usize {
    if black_box(number) == 0 {
        text!("{number}");
    }
    black_box(format!("{number}")).len()
}

pub fn spin() -> ! {
    loop {
        core::hint::spin_loop();
    }
}

/// Some turns, or some microseconds.
pub fn a_little(random: &Random) -> impl Future<Output = ()> + Send + use<> {
    let (turns, sleeps) = (random.below(6), random.below(4) == 0);
    let delay = Duration::from_micros(random.below(700) as u64);
    async move {
        for _ in 0..turns {
            sched::yield_now().await;
        }
        if sleeps {
            time::sleep(delay).await;
        }
    }
}

/// Where a process may run: anywhere, or on some core that all executors have workers on.
pub fn somewhere(random: &Random, handle: &ExecutorHandle) -> Spawn {
    let core = magpie::arch::CoreId::new(random.below(2 * handle.workers()));
    match core.filter(|core| handle.cores().contains(*core)) {
        Some(core) => Spawn::new().pinned(core),
        None => Spawn::new(),
    }
}
