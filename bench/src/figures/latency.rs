//! How long after the moment that a timer was armed for what it wakes begins to run: a process, or the behaviour of an actor to which
//! a message was scheduled. Likewise after the moment at which a device interrupts, which wakes a process by its waker or sends a message
//! to an actor (see `device.rs`). All are `High`, on the first core. The first parameter is the number of samples.
//!
//! Each is measured in several situations, see [`Beside`]; everything in them is `Normal`.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::time::Duration;

#[cfg(target_os = "none")]
use magpie::actor::Hook;
use magpie::actor::{Actor, Addr, Config, Context, Executor, ExecutorHandle, Receive};
use magpie::arch::CoreId;
use magpie::channel::{ProcessAddr, ProcessMailbox};
use magpie::machine;
use magpie::sched::{self, Priority, Spawn, yield_now};
use magpie::time::{self, Instant};

use super::Go;
use crate::busy::work;
#[cfg(target_os = "none")]
use crate::device::{ClaimedLine, Device, Interrupted};
use crate::failed::Failed;
use crate::random::Random;
use crate::verdict::expect_equal;
use crate::{latency, stopwatch};

/// What goes on meanwhile.
#[derive(Clone, Copy)]
pub enum Beside {
    /// Nothing.
    Nothing,
    /// On each core a process that never yields.
    Hogs,
    /// The first core starts process after process, which others take.
    Thieves,
    /// A thousand processes sleep, each up to 20 ms at a time.
    Timers,
    /// All other cores go offline and come back.
    Offline,
}

/// Samples are so far apart, and up to twice as far.
const APART: Duration = Duration::from_micros(200);
const SLEEPERS: u32 = 1000;

/// Draws when the next sample is due.
// Out of line: its constants would be loaded at the beginning of each turn.
#[inline(never)]
fn next_due(random: &mut Random) -> Instant {
    Instant::now() + APART + APART * (random.next() >> 8) / (1 << 16)
}

/// How late it is, in clock ticks.
fn late(due: Instant) -> u32 {
    late_at(due, Instant::now())
}

/// How late that was.
fn late_at(due: Instant, now: Instant) -> u32 {
    // Nothing is late by seconds.
    now.ticks().saturating_sub(due.ticks()) as u32
}

/// What goes on beside a measurement, until it is stopped.
struct Company {
    stop: Arc<AtomicBool>,
    left: Arc<AtomicU32>,
}

impl Company {
    fn begin(beside: Beside) -> Result<Self, Failed> {
        let this = Self { stop: Arc::new(AtomicBool::new(false)), left: Arc::new(AtomicU32::new(0)) };
        let cores = || (0..machine::cores()).filter_map(CoreId::new);
        match beside {
            Beside::Nothing => {}
            Beside::Hogs => {
                for core in cores() {
                    this.start(Spawn::new().pinned(core), |stop| async move {
                        while !stop.load(Ordering::Relaxed) {
                            core::hint::spin_loop();
                        }
                    })?;
                }
            }
            Beside::Thieves => this.start(Spawn::new().pinned(CoreId::BOOT), |stop| async move {
                while !stop.load(Ordering::Relaxed) {
                    for _ in 0..32 {
                        // Without memory for one, others run.
                        let _ = sched::spawn(async { work(400, 1) });
                    }
                    yield_now().await;
                }
            })?,
            Beside::Timers => {
                for seed in 0..SLEEPERS {
                    this.start(Spawn::new(), move |stop| async move {
                        let mut random = Random::new(seed);
                        while !stop.load(Ordering::Relaxed) {
                            time::sleep(Duration::from_nanos(u64::from(random.next()))).await;
                        }
                    })?;
                }
            }
            Beside::Offline => this.start(Spawn::new().pinned(CoreId::BOOT), |stop| async move {
                while !stop.load(Ordering::Relaxed) {
                    for core in (1..machine::cores()).filter_map(CoreId::new) {
                        // One with something pinned refuses, and stays.
                        let _ = sched::offline(core);
                        time::sleep(Duration::from_micros(300)).await;
                        let _ = sched::online(core);
                    }
                    time::sleep(Duration::from_micros(300)).await;
                }
            })?,
        }
        Ok(this)
    }

    fn start<F>(&self, spawn: Spawn, body: impl FnOnce(Arc<AtomicBool>) -> F) -> Result<(), Failed>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (body, left) = (body(self.stop.clone()), self.left.clone());
        left.fetch_add(1, Ordering::Relaxed);
        spawn
            .start(async move {
                body.await;
                left.fetch_sub(1, Ordering::Relaxed);
            })
            .map_err(|_| Failed::Memory)?;
        Ok(())
    }

    async fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        while self.left.load(Ordering::Relaxed) > 0 {
            time::sleep(APART).await;
        }
    }
}

/// From a timer to the process that it wakes.
async fn process_samples(count: usize) -> Vec<u32> {
    let (mut samples, mut random) = (Vec::with_capacity(count), Random::new(1));
    for _ in 0..count {
        let due = next_due(&mut random);
        time::sleep_until(due).await;
        samples.push(late(due));
    }
    samples
}

/// From a device's interrupt to the process that it wakes; `None` if there is no such device.
#[cfg(target_os = "none")]
async fn interrupt_samples(count: usize) -> Option<Vec<u32>> {
    let device = Device::claim()?;
    let (mut samples, mut random) = (Vec::with_capacity(count), Random::new(1));
    for _ in 0..count {
        let due = next_due(&mut random);
        let went_on = device.interrupts_at(due).await;
        samples.push(late_at(due, went_on));
    }
    Some(samples)
}

/// From a line that becomes pending to the process that has claimed it; `None` if there is no such line.
#[cfg(target_os = "none")]
async fn claimed_samples(count: usize) -> Option<Vec<u32>> {
    let mut line = ClaimedLine::claim()?;
    let (mut samples, mut random) = (Vec::with_capacity(count), Random::new(1));
    for _ in 0..count {
        // Nothing is late by seconds.
        samples.push(line.interrupts_after(next_due(&mut random)).await? as u32);
    }
    Some(samples)
}

/// A host has none.
#[cfg(not(target_os = "none"))]
async fn claimed_samples(_: usize) -> Option<Vec<u32>> {
    None
}

/// A host has none.
#[cfg(not(target_os = "none"))]
async fn interrupt_samples(_: usize) -> Option<Vec<u32>> {
    None
}

/// Takes samples of the messages that it schedules to itself.
struct Sampler {
    me: Option<Addr<Self>>,
    random: Random,
    samples: Vec<u32>,
    left: usize,
    done: ProcessAddr<Vec<u32>>,
}

impl Actor for Sampler {}

struct Begin(Addr<Sampler>);

struct Due(Instant);

impl Sampler {
    fn schedule(&mut self) {
        let due = next_due(&mut self.random);
        if let Some(me) = self.me {
            // Without memory the benchmark does not come to its end, and says so.
            let _ = me.send_at(due, Due(due));
        }
    }
}

impl Receive<Begin> for Sampler {
    type Reply = ();

    fn receive(&mut self, Begin(me): Begin, _: &mut Context<Self>) {
        self.me = Some(me);
        self.schedule();
    }
}

impl Receive<Due> for Sampler {
    type Reply = ();

    fn receive(&mut self, Due(due): Due, context: &mut Context<Self>) {
        self.samples.push(late(due));
        self.left -= 1;
        if self.left > 0 {
            return self.schedule();
        }
        let _ = self.done.send(core::mem::take(&mut self.samples));
        context.end();
    }
}

/// From a timer to the behaviour to which its message goes.
async fn message_samples(count: usize) -> Option<Vec<u32>> {
    let executor = Executor::start(&Config::default().workers(1).priority(Priority::High)).ok()?;
    let mut mailbox = ProcessMailbox::new(1).ok()?;
    let (random, samples, done) = (Random::new(1), Vec::with_capacity(count), mailbox.address());
    let sampler = executor.handle().spawn(Sampler { me: None, random, samples, left: count, done }).ok()?;
    sampler.send(Begin(sampler)).ok()?;
    let samples = mailbox.receive().await;
    executor.stop().await;
    samples
}

/// Takes samples of the messages that a device sends it.
#[cfg(target_os = "none")]
struct Driver {
    device: Device,
    due: Instant,
    random: Random,
    samples: Vec<u32>,
    left: usize,
    done: ProcessAddr<Vec<u32>>,
}

#[cfg(target_os = "none")]
impl Driver {
    fn arm(&mut self) {
        self.due = next_due(&mut self.random);
        self.device.arm(self.due);
    }
}

#[cfg(target_os = "none")]
impl Actor for Driver {
    fn started() -> Option<Hook<Self>> {
        Some(|driver, context| {
            driver.device.sends_to(context.address().recipient());
            driver.arm();
        })
    }
}

#[cfg(target_os = "none")]
impl Receive<Interrupted> for Driver {
    type Reply = ();

    fn receive(&mut self, _: Interrupted, context: &mut Context<Self>) {
        self.samples.push(late(self.due));
        self.left -= 1;
        if self.left > 0 {
            return self.arm();
        }
        let _ = self.done.send(core::mem::take(&mut self.samples));
        context.end();
    }
}

/// From a device's interrupt to the behaviour to which its message goes; `None` if there is no such device.
#[cfg(target_os = "none")]
async fn interrupt_message_samples(count: usize) -> Option<Vec<u32>> {
    let device = Device::claim()?;
    let executor = Executor::start(&Config::default().workers(1).priority(Priority::High)).ok()?;
    let mut mailbox = ProcessMailbox::new(1).ok()?;
    let (random, samples, done) = (Random::new(1), Vec::with_capacity(count), mailbox.address());
    let driver = Driver { device, due: Instant::now(), random, samples, left: count, done };
    executor.handle().spawn(driver).ok()?;
    let samples = mailbox.receive().await;
    executor.stop().await;
    samples
}

/// A host has none.
#[cfg(not(target_os = "none"))]
async fn interrupt_message_samples(_: usize) -> Option<Vec<u32>> {
    None
}

/// What is woken, and by what.
#[derive(Clone, Copy)]
enum Way {
    TimerToProcess,
    TimerToBehaviour,
    DeviceToProcess,
    DeviceToBehaviour,
    ClaimedToProcess,
}

/// What measures, and what is measured.
fn urgent() -> Spawn {
    Spawn::new().pinned(CoreId::BOOT).priority(Priority::High)
}

/// Takes samples in a process that does nothing else, so that its first instruction is not behind those of another's. `None` if it could not begin,
/// or crashed.
async fn alone<T: Send + 'static>(samples: impl Future<Output = T> + Send + 'static) -> Option<T> {
    urgent().start(samples).ok()?.await.ok()
}

fn prepare(parameters: &[u64], beside: Beside, way: Way) -> Result<Go, Failed> {
    let count = parameters[0].max(1);
    Ok(Box::new(move || {
        let company = Company::begin(beside)?;
        stopwatch::begin(1);
        let measure = async move {
            // What goes on has begun by then.
            time::sleep(10 * APART).await;
            let samples = match way {
                Way::TimerToProcess => alone(process_samples(count as usize)).await,
                Way::TimerToBehaviour => message_samples(count as usize).await,
                Way::DeviceToProcess => alone(interrupt_samples(count as usize)).await.flatten(),
                Way::DeviceToBehaviour => interrupt_message_samples(count as usize).await,
                Way::ClaimedToProcess => alone(claimed_samples(count as usize)).await.flatten(),
            };
            company.end().await;
            if let Some(samples) = samples {
                expect_equal("samples", samples.len() as u64, count);
                latency::note(samples);
                stopwatch::done();
            }
        };
        urgent().start(measure).map_err(|_| Failed::Memory)?;
        Ok(count)
    }))
}

/// Of a process.
pub fn prepare_process<const BESIDE: u8>(_: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    prepare(parameters, beside::<BESIDE>(), Way::TimerToProcess)
}

/// Of a behaviour.
pub fn prepare_message<const BESIDE: u8>(_: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    prepare(parameters, beside::<BESIDE>(), Way::TimerToBehaviour)
}

/// Of a process that a device wakes.
pub fn prepare_interrupt<const BESIDE: u8>(_: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    prepare(parameters, beside::<BESIDE>(), Way::DeviceToProcess)
}

/// Of a process that has claimed a line.
pub fn prepare_claimed(_: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    prepare(parameters, Beside::Nothing, Way::ClaimedToProcess)
}

/// Of a behaviour to which a device sends a message.
pub fn prepare_interrupt_message<const BESIDE: u8>(
    _: &ExecutorHandle,
    parameters: &[u64],
) -> Result<Go, Failed> {
    prepare(parameters, beside::<BESIDE>(), Way::DeviceToBehaviour)
}

const fn beside<const BESIDE: u8>() -> Beside {
    [Beside::Nothing, Beside::Hogs, Beside::Thieves, Beside::Timers, Beside::Offline][BESIDE as usize]
}
