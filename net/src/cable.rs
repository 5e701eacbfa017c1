//! A cable between two networks, with faults on demand: for tests, and for programs that talk to themselves.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::Poll;

use magpie::sched::{self, ProcessRef};

use crate::error::Error;
use crate::frame::Frame;
use crate::link::{Link, LinkEvent};
use crate::network::Network;

/// So many frames may be under way, each way and each kind.
const FRAMES: usize = 64;

/// What happens to frames on their way: each in so many of a thousand.
///
/// ```
/// use magpie_net::Faults;
/// let faults = Faults { lost: 20, ..Faults::none() };
/// assert_eq!((faults.lost, faults.doubled), (20, 0));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Faults {
    /// Never come.
    pub lost: u32,
    /// Come twice.
    pub doubled: u32,
    /// Come after the one behind.
    pub reordered: u32,
    /// Come with a bit changed.
    pub corrupted: u32,
    /// Equal seeds choose equal frames, by the order in which they come.
    pub seed: u64,
}

impl Faults {
    /// A cable without faults.
    pub const fn none() -> Self {
        Self { lost: 0, doubled: 0, reordered: 0, corrupted: 0, seed: 1 }
    }
}

/// What a cable has done, counted over both ways.
///
/// ```
/// let carried = magpie_net::Carried::default();
/// assert_eq!((carried.frames, carried.lost), (0, 0));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Carried {
    /// Frames that were handed to it.
    pub frames: u64,
    /// Of these: lost on purpose, or because the other side had no room.
    pub lost: u64,
    /// Doubled.
    pub doubled: u64,
    /// Brought later than the one behind.
    pub reordered: u64,
    /// Changed.
    pub corrupted: u64,
}

#[derive(Default)]
struct Counts {
    frames: AtomicU64,
    lost: AtomicU64,
    doubled: AtomicU64,
    reordered: AtomicU64,
    corrupted: AtomicU64,
}

/// A cable. It is carried on when this is dropped, and ends with either network.
///
/// ```
/// use core::net::Ipv4Addr;
/// use magpie_net::{Cable, Config, Faults, Network};
/// # magpie::sched::run_on_threads(2, 1, async {
/// let here = Network::start(Config::fixed(Ipv4Addr::new(10, 0, 0, 1), 24))?;
/// let there = Network::start(Config::fixed(Ipv4Addr::new(10, 0, 0, 2), 24))?;
/// let cable = Cable::connect(&here, &there, Faults { lost: 1000, ..Faults::none() })?;
/// let one = here.bind(9, 4, 4096).await?.send_to(b"?", "10.0.0.2:9".parse()?).await;
/// assert_eq!(one, Ok(()));
/// // The network asks who has that address first. That was lost, too.
/// while cable.carried().frames == 0 {
///     magpie::sched::yield_now().await;
/// }
/// assert_eq!(cable.carried().lost, cable.carried().frames);
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # }).unwrap().unwrap();
/// ```
pub struct Cable {
    counts: Arc<Counts>,
    process: ProcessRef,
}

impl Cable {
    /// Connects two networks, whose links it becomes.
    ///
    /// # Errors
    /// Without memory, and when one of the two has ended.
    pub fn connect(one: &Network, other: &Network, faults: Faults) -> Result<Self, Error> {
        let counts = Arc::new(Counts::default());
        let mut ways = Vec::new();
        ways.try_reserve_exact(2).map_err(|_| Error::OutOfMemory)?;
        for (network, last) in [(one, 1), (other, 2)] {
            let (link, free) = Link::attach(network, [2, 0, 0, 0, 1, last], FRAMES, FRAMES)?;
            ways.push(Way { link, free, held: None });
        }
        let carrier = Carrier { ways, faults, random: faults.seed | 1, counts: counts.clone() };
        let process = sched::spawn(carrier.run())?.process().clone();
        Ok(Self { counts, process })
    }

    /// Its process, to be killed: then both networks have no link.
    pub const fn process(&self) -> &ProcessRef {
        &self.process
    }

    /// What it has done so far.
    pub fn carried(&self) -> Carried {
        // Each is a number by itself: nothing else is read by it.
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Carried {
            lost: read(&self.counts.lost),
            doubled: read(&self.counts.doubled),
            reordered: read(&self.counts.reordered),
            corrupted: read(&self.counts.corrupted),
            frames: read(&self.counts.frames),
        }
    }
}

impl core::fmt::Debug for Cable {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Cable({:?})", self.carried())
    }
}

/// One end: frames go out of it to the other, and come in from there.
struct Way {
    link: Link,
    /// For what is to be handed to this end's network.
    free: Vec<Frame>,
    /// One that waits for the one behind it.
    held: Option<Frame>,
}

struct Carrier {
    ways: Vec<Way>,
    faults: Faults,
    random: u64,
    counts: Arc<Counts>,
}

impl Carrier {
    async fn run(mut self) {
        loop {
            let (from, event) = {
                let [one, other] = &mut self.ways[..] else { return };
                let (mut one, mut other) = (pin!(one.link.next()), pin!(other.link.next()));
                let next = poll_fn(|context| {
                    if let Poll::Ready(event) = one.as_mut().poll(context) {
                        return Poll::Ready((0, event));
                    }
                    other.as_mut().poll(context).map(|event| (1, event))
                });
                next.await
            };
            let Some(event) = event else { return };
            if self.take(from, event).is_err() {
                return;
            }
            // What waits already is carried in turn from both ends.
            for turn in 0..FRAMES {
                let from = turn % 2;
                if let Some(event) = self.ways[from].link.try_next()
                    && self.take(from, event).is_err()
                {
                    return;
                }
            }
            // The one behind does not come: it is brought late, if not behind another.
            for to in 0..2 {
                if let Some(frame) = self.ways[to].held.take()
                    && self.ways[to].link.received(frame).is_err()
                {
                    return;
                }
            }
            sched::charge(FRAMES as u64);
            if sched::is_exhausted() {
                sched::yield_now().await;
            }
        }
    }

    fn take(&mut self, from: usize, event: LinkEvent) -> Result<(), Error> {
        match event {
            LinkEvent::Send(frame) => {
                self.carry(1 - from, &frame)?;
                self.ways[from].link.sent(frame)
            }
            LinkEvent::Again(frame) => {
                let free = &mut self.ways[from].free;
                // As many as there were at the start: no allocation.
                if free.len() < free.capacity() {
                    free.push(frame);
                }
                Ok(())
            }
        }
    }

    fn carry(&mut self, to: usize, frame: &Frame) -> Result<(), Error> {
        count(&self.counts.frames);
        if self.chance(self.faults.lost) {
            count(&self.counts.lost);
            return Ok(());
        }
        let copies = if self.chance(self.faults.doubled) { 2 } else { 1 };
        if copies == 2 {
            count(&self.counts.doubled);
        }
        for _ in 0..copies {
            let Some(mut copy) = self.ways[to].free.pop() else {
                count(&self.counts.lost);
                return Ok(());
            };
            let length = frame.bytes().len();
            copy.room()[..length].copy_from_slice(frame.bytes());
            copy.set_length(length);
            if self.chance(self.faults.corrupted) && length > 0 {
                count(&self.counts.corrupted);
                let bit = self.draw() as usize % (8 * length);
                copy.bytes_mut()[bit / 8] ^= 1 << (bit % 8);
            }
            let reorders = self.chance(self.faults.reordered);
            let way = &mut self.ways[to];
            match way.held.take() {
                None if reorders => {
                    count(&self.counts.reordered);
                    way.held = Some(copy);
                }
                held => {
                    way.link.received(copy)?;
                    if let Some(held) = held {
                        way.link.received(held)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn chance(&mut self, thousandths: u32) -> bool {
        thousandths > 0 && self.draw() % 1000 < u64::from(thousandths)
    }

    /// xorshift64*, as the kernel's own tests draw.
    fn draw(&mut self) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }
}

/// Only this process counts, so nothing is lost; readers read each number by itself.
fn count(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}
