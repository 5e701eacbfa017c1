//! Crashes at every point: of a process, a poll, a `Display`, a behaviour and a destructor that use everything the kernel
//! offers. Each is run again and again, and crashes one point later each time, until it gets to its end.
//!
//! Not the kernel's own code: stacks that run out there are in `stacks`.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::{self, Display, Formatter};
use core::future::{Future, poll_fn};
use core::hint::black_box;
use core::pin::{Pin, pin};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::task::{Context as TaskContext, Poll};
use core::time::Duration;

use magpie::actor::{Actor, Addr, AskError, Config, Context, Executor, Receive, Request};
use magpie::arch::CoreId;
use magpie::channel::ProcessMailbox;
use magpie::log::text;
use magpie::sched::{self, JoinError, Setting, Spawn};
use magpie::{machine, time};
use magpie_tests::{Changed, Failure, Outcome, ensure, ensure_eq, kernel_test};

use crate::stacks::{all_cores_are_well, descend};

/// How it crashes.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Way {
    Panics,
    Overflows,
    /// After the timer has interrupted it at that point, and its stack was lent.
    PanicsOnceSuspended,
}

const WAYS: [Way; 3] = [Way::Panics, Way::Overflows, Way::PanicsOnceSuspended];

/// Goes off at one of the points, and knows what else happened until then.
struct Fuse {
    way: Way,
    left: AtomicU64,
    sent: Arc<AtomicU64>,
    replied: AtomicBool,
}

impl Fuse {
    /// A point at which it may crash.
    fn point(&self) {
        // One thread of control passes the points.
        let left = self.left.load(Ordering::Relaxed);
        self.left.store(left.wrapping_sub(1), Ordering::Relaxed);
        if left > 0 {
            return;
        }
        match self.way {
            Way::Panics => {}
            Way::Overflows => _ = black_box(descend(&|| {}, 0)),
            Way::PanicsOnceSuspended => be_suspended(),
        }
        if black_box(true) {
            panic!("on purpose");
        }
    }

    /// Counts a message that was sent, to compare with what has arrived.
    fn has_sent<T, E>(&self, result: Result<T, E>) -> Option<T> {
        let result = result.ok()?;
        self.sent.fetch_add(1, Ordering::Relaxed);
        Some(result)
    }
}

/// Does not come back before something else has run on this core.
fn be_suspended() {
    let Some(core) = sched::current_core() else { return };
    let has_run = Arc::new(AtomicBool::new(false));
    let other = {
        let has_run = has_run.clone();
        Spawn::new().pinned(core).start(async move { has_run.store(true, Ordering::Relaxed) })
    };
    while other.is_ok() && !has_run.load(Ordering::Relaxed) {
        core::hint::spin_loop();
    }
}

/// May crash while it is printed.
struct Shown<'a>(&'a Fuse);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.point();
        f.write_str("shown")?;
        self.0.point();
        Ok(())
    }
}

/// May crash while it is polled, before and after the future in it.
struct Polled<'a, F>(&'a Fuse, F);

impl<F: Future + Unpin> Future for Polled<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut TaskContext<'_>) -> Poll<F::Output> {
        self.0.point();
        let result = Pin::new(&mut self.1).poll(context);
        self.0.point();
        result
    }
}

/// May crash while it is dropped.
struct Will(Arc<Fuse>, Addr<Innocent>);

impl Drop for Will {
    fn drop(&mut self) {
        let Self(fuse, innocent) = self;
        fuse.point();
        let kept = Box::new([7_u64; 40]);
        fuse.point();
        fuse.has_sent(innocent.send(Add));
        fuse.point();
        text!("{}", Shown(fuse));
        let alarm = fuse.has_sent(innocent.send_after(SOON, Add));
        fuse.point();
        drop((kept, alarm));
        fuse.point();
    }
}

/// Polls a future once, so that it waits; drops nothing.
async fn begin<F: Future>(mut future: Pin<&mut F>) {
    poll_fn(|context| {
        let _ = future.as_mut().poll(context);
        Poll::Ready(())
    })
    .await;
}

const SOON: Duration = Duration::from_micros(100);

/// A process that uses everything.
async fn life(fuse: Arc<Fuse>, innocent: Addr<Innocent>) -> Outcome {
    fuse.point();
    let will = Will(fuse.clone(), innocent);
    let mut kept = Vec::new();
    for number in 0..3_u64 {
        kept.push(Box::new([number; 40]));
        fuse.point();
    }
    fuse.has_sent(innocent.send(Add));
    fuse.point();
    text!("{}", Shown(&fuse));
    Polled(&fuse, pin!(sched::yield_now())).await;
    let child = sched::spawn(async { 7 })?;
    fuse.point();
    ensure_eq!(Polled(&fuse, child).await, Ok(7), "what a child gives back");
    let orphan = {
        let fuse = fuse.clone();
        sched::spawn(async move {
            time::sleep(SOON).await;
            fuse.has_sent(innocent.send(Add));
        })?
    };
    drop(orphan);
    fuse.point();
    let answer = innocent.ask(Read);
    fuse.point();
    Polled(&fuse, pin!(answer)).await?;
    let unanswered = pin!(innocent.ask_within(SOON, Never));
    let mut unanswered = unanswered;
    begin(unanswered.as_mut()).await;
    fuse.point();
    let mut sleep = pin!(time::sleep(SOON));
    begin(sleep.as_mut()).await;
    fuse.point();
    Polled(&fuse, sleep).await;
    let alarm = fuse.has_sent(innocent.send_after(SOON, Add));
    fuse.point();
    ensure!(matches!(unanswered.await, Err(AskError::TimedOut)), "nobody answers");
    fuse.point();
    let mut mailbox = ProcessMailbox::new(10)?;
    let to = mailbox.address();
    fuse.point();
    to.send(1)?.send(2)?;
    fuse.point();
    ensure_eq!(mailbox.receive_matching(|message| *message == 2).await, Some(2), "a message that matches");
    fuse.point();
    ensure_eq!(mailbox.receive().await, Some(1), "a message");
    {
        let mut waits = pin!(mailbox.receive());
        begin(waits.as_mut()).await;
        fuse.point();
        let later = to.send_after(SOON, 3)?;
        fuse.point();
        ensure_eq!(Polled(&fuse, waits).await, Some(3), "a message that comes later");
        drop(later);
    }
    fuse.point();
    let everything = pin!(sched::out_of_work());
    let mut everything = everything;
    begin(everything.as_mut()).await;
    fuse.point();
    drop((kept, alarm));
    fuse.point();
    drop(will);
    Ok(())
}

/// Counts what it is sent.
struct Innocent(u64);
struct Add;
struct Read;
struct Never;

impl Actor for Innocent {}

impl Receive<Add> for Innocent {
    type Reply = ();

    fn receive(&mut self, _: Add, _: &mut Context<Self>) {
        self.0 += 1;
    }
}

impl Receive<Read> for Innocent {
    type Reply = u64;

    fn receive(&mut self, _: Read, _: &mut Context<Self>) -> u64 {
        self.0
    }
}

impl Receive<Request<Never, u64>> for Innocent {
    type Reply = ();

    fn receive(&mut self, request: Request<Never, u64>, _: &mut Context<Self>) {
        core::mem::forget(request.reply);
    }
}

/// An actor whose behaviour uses everything that a behaviour may.
struct Liver {
    innocent: Addr<Innocent>,
    mailbox: ProcessMailbox<u64>,
    /// For when the state is dropped.
    will: Option<Will>,
}

type Live = Request<Arc<Fuse>, u64>;

impl Actor for Liver {}

impl Receive<Add> for Liver {
    type Reply = ();

    fn receive(&mut self, _: Add, _: &mut Context<Self>) {}
}

impl Receive<Live> for Liver {
    type Reply = ();

    fn receive(&mut self, request: Live, context: &mut Context<Self>) {
        let fuse = request.message;
        fuse.point();
        let kept: Vec<_> = (0..3_u64)
            .map(|number| {
                fuse.point();
                Box::new([number; 40])
            })
            .collect();
        fuse.has_sent(self.innocent.send(Add));
        fuse.point();
        let _ = context.address().send(Add);
        fuse.point();
        text!("{}", Shown(&fuse));
        let child = context.spawn(Innocent(0));
        fuse.point();
        if let Ok(child) = child {
            let _ = child.send(Add);
            fuse.point();
            let _ = child.send(magpie::actor::stop::End);
        }
        fuse.point();
        let innocent = self.innocent;
        let process = {
            let fuse = fuse.clone();
            sched::spawn(async move { fuse.has_sent(innocent.send(Add)).is_some() })
        };
        fuse.point();
        let alarm = fuse.has_sent(self.innocent.send_after(SOON, Add));
        fuse.point();
        let _ = self.mailbox.address().send(1);
        fuse.point();
        let received = self.mailbox.try_receive();
        fuse.point();
        if request.reply.send(received.unwrap_or(0)).is_ok() {
            fuse.replied.store(true, Ordering::Relaxed);
        }
        fuse.point();
        drop((kept, process, alarm));
        fuse.point();
        self.will = Some(Will(fuse, self.innocent));
        context.end();
    }
}

/// The points that a body has had when it first comes to its end, each tried; more than that is endless.
const MOST_POINTS: u64 = 200;

struct World {
    executor: Executor,
    innocent: Addr<Innocent>,
    sent: Arc<AtomicU64>,
    slice: Changed,
}

impl World {
    fn new() -> Result<Self, Failure> {
        let slice = Changed::new(&[(Setting::SliceMicroseconds, 50)])?;
        let executor = Executor::start(&Config::default())?;
        let innocent = executor.handle().spawn(Innocent(0))?;
        Ok(Self { executor, innocent, sent: Arc::new(AtomicU64::new(0)), slice })
    }

    fn fuse(&self, way: Way, left: u64) -> Arc<Fuse> {
        let sent = self.sent.clone();
        Arc::new(Fuse { way, left: AtomicU64::new(left), sent, replied: AtomicBool::new(false) })
    }

    /// Nothing that was sent is lost or doubled, timers fire, and every core is well.
    async fn ends_well(self) -> Outcome {
        drop(self.slice);
        // Not before the alarms that are pending have fired.
        sched::out_of_work().await;
        let arrived = self.innocent.ask(Read).await?;
        ensure_eq!(arrived, self.sent.load(Ordering::Relaxed), "messages that arrived of those sent");
        self.executor.stop().await;
        all_cores_are_well().await
    }
}

kernel_test! {
    #[machine("crashes that end alone")]
    async fn a_process_may_crash_anywhere() -> Outcome {
        let world = World::new()?;
        for way in WAYS {
            let mut points = 0;
            loop {
                let (fuse, core) = (world.fuse(way, points), CoreId::new(points as usize % machine::cores()));
                let core = core.ok_or("no such core")?;
                match Spawn::new().pinned(core).start(life(fuse, world.innocent))?.await {
                    Ok(outcome) => break outcome?,
                    Err(error) => ensure_eq!(error, JoinError::Crashed, "how it ended"),
                }
                points += 1;
                ensure!(points < MOST_POINTS, "it never comes to its end");
            }
            ensure!(points > 30, "{way:?}: {points} points only");
        }
        world.ends_well().await
    }
}

kernel_test! {
    #[machine("crashes that end alone")]
    async fn a_behaviour_may_crash_anywhere() -> Outcome {
        let world = World::new()?;
        let handle = world.executor.handle();
        for way in WAYS {
            let mut points = 0;
            loop {
                let fuse = world.fuse(way, points);
                let liver = Liver { innocent: world.innocent, mailbox: ProcessMailbox::new(4)?, will: None };
                let liver = handle.spawn_on(CoreId::new(points as usize % handle.workers()).ok_or("no such core")?, liver)?;
                let neighbour = handle.spawn_beside(liver, Innocent(0))?;
                neighbour.send(Add)?;
                let answer = liver.ask(fuse.clone());
                neighbour.send(Add)?;
                let answer = answer.await;
                sched::out_of_work().await;
                let is_over = fuse.left.load(Ordering::Relaxed) < MOST_POINTS;
                if fuse.replied.load(Ordering::Relaxed) {
                    ensure_eq!(answer, Ok(1), "an answer that was given before the crash");
                } else {
                    ensure_eq!(answer, Err(AskError::Crashed), "what the asker of a crashed actor is told");
                }
                ensure!(!liver.is_alive(), "it lives on");
                ensure_eq!(neighbour.ask(Read).await?, 2, "what its neighbour was sent");
                neighbour.send(magpie::actor::stop::End)?;
                if is_over {
                    break;
                }
                points += 1;
                ensure!(points < MOST_POINTS, "it never comes to its end");
            }
            ensure!(points > 15, "{way:?}: {points} points only");
        }
        world.ends_well().await
    }
}
