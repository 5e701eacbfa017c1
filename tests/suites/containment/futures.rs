//! The kernel's other futures: polled when they are over, or with another's waker, or with memory used up, or left behind
//! by a crash; and results that nobody takes.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::{Future, poll_fn};
use core::hint::black_box;
use core::pin::{Pin, pin};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::task::{Context as TaskContext, Poll, Waker};
use core::time::Duration;

use magpie::actor::{Actor, Config, Context, Executor, Receive, Reply, Request};
use magpie::arch::CoreId;
use magpie::channel::ProcessMailbox;
use magpie::internals::sync;
use magpie::sched::{self, JoinError, Spawn};
use magpie::time;
use magpie_tests::{Failure, HeapExhauster, Outcome, ensure, ensure_eq, kernel_test};

use crate::{not_started, use_memory_again};

fn noop() -> TaskContext<'static> {
    TaskContext::from_waker(Waker::noop())
}

kernel_test! {
    /// It says so, and nothing else happens.
    async fn a_handle_can_be_awaited_again() -> Outcome {
        for taken_before in [false, true] {
            let mut handle = sched::spawn(async { 7 }).map_err(not_started)?;
            if taken_before {
                let taken = loop {
                    match handle.try_take() {
                        Some(taken) => break taken,
                        None => sched::yield_now().await,
                    }
                };
                ensure_eq!(taken, Ok(7), "the result that was taken");
            } else {
                ensure_eq!((&mut handle).await, Ok(7), "the result");
            }
            ensure_eq!((&mut handle).await, Err(JoinError::Taken), "the result, asked for again");
            ensure_eq!(handle.try_take(), None, "the result, taken again");
            ensure_eq!(handle.await, Err(JoinError::Taken), "the result, at last");
        }
        Ok(())
    }
}

kernel_test! {
    /// While this runs, the system has not run out of work, whoever asks.
    async fn another_waker_is_not_the_end_of_work() -> Outcome {
        let mut waiting = pin!(sched::out_of_work());
        ensure!(waiting.as_mut().poll(&mut noop()).is_pending(), "over at once");
        let again = poll_fn(|context| Poll::Ready(waiting.as_mut().poll(context))).await;
        ensure!(again.is_pending(), "over when polled with another waker, while this runs");
        waiting.as_mut().await;
        ensure!(waiting.as_mut().poll(&mut noop()).is_ready(), "not over any more");
        Ok(())
    }
}

/// An actor that ends when it is told.
struct Lasting;

impl Actor for Lasting {}

struct End;

impl Receive<End> for Lasting {
    type Reply = ();

    fn receive(&mut self, _: End, context: &mut Context<Self>) {
        context.end();
    }
}

/// So many wait at once: more than have room without memory.
const CROWD: usize = 20;

/// Waits for all of them.
async fn all<F: Future<Output = ()> + ?Sized>(waiting: &mut [Pin<Box<F>>]) {
    let mut over = 0_u64;
    poll_fn(|context| {
        for (number, future) in waiting.iter_mut().enumerate() {
            if over & 1 << number == 0 && future.as_mut().poll(context).is_ready() {
                over |= 1 << number;
            }
        }
        if over.count_ones() as usize == waiting.len() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// How many of them are over, polled once.
async fn over<F: Future<Output = ()> + ?Sized>(waiting: &mut [Pin<Box<F>>]) -> usize {
    poll_fn(|context| {
        Poll::Ready(
            waiting
                .iter_mut()
                .filter_map(|future| future.as_mut().poll(context).is_ready().then_some(()))
                .count(),
        )
    })
    .await
}

/// With memory used up on the core where this runs.
async fn wait_without_memory() -> Outcome {
    let executor = Executor::start(&Config::default())?;
    let actor = executor.handle().spawn(Lasting)?;
    let mut for_actors: Vec<_> = (0..CROWD).map(|_| Box::pin(executor.all_ended())).collect();
    let mut for_work: Vec<_> = (0..CROWD).map(|_| Box::pin(sched::out_of_work())).collect();
    let mut exhauster = HeapExhauster::everything(16);
    sched::out_of_work().await;
    exhauster.take_more(16);
    let early = over(&mut for_work).await + over(&mut for_actors).await;
    // Who found no room asks for another turn, which comes before the end of work does.
    let mut polled = false;
    let came_first = poll_fn(|context| {
        if !core::mem::replace(&mut polled, true) {
            return for_work[CROWD - 1].as_mut().poll(context).map(|()| false);
        }
        Poll::Ready(for_work[0].as_mut().poll(context).is_pending())
    })
    .await;
    let early = early + over(&mut for_work).await + over(&mut for_actors).await;
    drop(exhauster);
    ensure!(came_first, "who found no room was left waiting");
    ensure_eq!(early, 0, "futures that were over too early");
    all(&mut for_work).await;
    ensure_eq!(over(&mut for_actors).await, 0, "futures that were over while an actor lived");
    actor.send(End)?;
    all(&mut for_actors).await;
    drop(for_actors);
    executor.stop().await;
    Ok(())
}

kernel_test! {
    /// With memory used up one can wait for the end of work; and for the end of all actors, though one lives until the crowd
    /// has found no room.
    async fn waiting_needs_no_memory() -> Outcome {
        Spawn::new().pinned(CoreId::BOOT).start(wait_without_memory()).map_err(not_started)?.await?
    }
}

/// Keeps what it is asked, and answers when it is told.
struct Slow(Option<Reply<u32>>);

impl Actor for Slow {}

impl Receive<Request<(), u32>> for Slow {
    type Reply = ();

    fn receive(&mut self, request: Request<(), u32>, _: &mut Context<Self>) {
        self.0 = Some(request.reply);
    }
}

impl Receive<End> for Slow {
    type Reply = ();

    fn receive(&mut self, _: End, context: &mut Context<Self>) {
        if let Some(reply) = self.0.take() {
            let _ = reply.send(1);
        }
        context.end();
    }
}

/// Polls it with a waker that keeps nothing, where it lies, and crashes.
fn crash_waiting<F: Future>(future: F) {
    let mut future = pin!(future);
    if black_box(future.as_mut().poll(&mut noop()).is_pending()) {
        panic!("on purpose, while waiting");
    }
}

/// How long the executor of a round may take to stop.
const LIMIT: Duration = Duration::from_secs(10);

/// All that may be waited for comes after who waits for it has crashed.
async fn crash_before_it_comes(round: u32) -> Outcome {
    let executor = Arc::new(Executor::start(&Config::default().owned(LIMIT))?);
    let slow = executor.handle().spawn(Slow(None))?;
    let mut mailbox = ProcessMailbox::<u64>::new(10)?;
    let mut selective = ProcessMailbox::<u64>::new(10)?;
    let (to, to_selective) = (mailbox.address(), selective.address());
    let gate = ProcessMailbox::<u64>::new(1)?;
    let open = gate.address();
    let waited_for = sched::spawn(async move {
        let mut gate = gate;
        gate.receive().await
    });
    let waited_for = waited_for.map_err(not_started)?;
    let actors = executor.clone();
    let crashes = [
        sched::procedure(move || crash_waiting(waited_for)),
        sched::procedure(move || crash_waiting(slow.ask(()))),
        sched::procedure(move || crash_waiting(mailbox.receive())),
        sched::procedure(move || crash_waiting(selective.receive_matching(|&number| number > 5))),
        sched::procedure(|| crash_waiting(sched::out_of_work())),
        sched::procedure(move || crash_waiting(actors.all_ended())),
    ];
    for (number, crashed) in crashes.into_iter().enumerate() {
        let outcome = crashed.map_err(not_started)?.await;
        ensure_eq!(outcome, Err(JoinError::Crashed), "waiter {number} in round {round}");
    }
    use_memory_again().await?;
    open.send(7)?;
    slow.send(End)?;
    ensure!(to.send(7).is_err() && to_selective.send(7).is_err(), "a mailbox outlived its process");
    executor.all_ended().await;
    sched::out_of_work().await;
    use_memory_again().await?;
    Ok(())
}

kernel_test! {
    /// What is waited for comes after whoever waited has crashed and its memory was used again.
    async fn what_comes_after_a_crash_finds_nobody() -> Outcome {
        for round in 0..10 {
            // A process of its own, with which its executor ends: the crashed one's share of that is never given back.
            sched::spawn(crash_before_it_comes(round)).map_err(not_started)?.await??;
        }
        Ok(())
    }
}

/// A result that looks where it is dropped.
struct Fragile {
    drops: &'static AtomicU64,
    wrong: &'static AtomicU64,
    panics: bool,
}

impl Drop for Fragile {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Ordering::Relaxed);
        self.wrong.fetch_add(u64::from(sync::preemption_is_disabled()), Ordering::Relaxed);
        if black_box(self.panics) {
            panic!("on purpose, in the destructor of a result");
        }
    }
}

/// Ends with such a result, while a timer keeps the process.
async fn end_with(fragile: Fragile) -> Fragile {
    let mut sleep = Box::pin(time::sleep(Duration::from_millis(5)));
    poll_fn(|context| Poll::Ready(sleep.as_mut().poll(context).is_pending())).await;
    // Fires after the end of the process, and then has the last reference to it.
    core::mem::forget(sleep);
    fragile
}

kernel_test! {
    /// A result that nobody takes is dropped once, where the application runs: with the handle, or by its process. A
    /// destructor that panics there ends its process alone.
    async fn a_result_is_dropped_where_the_application_runs() -> Outcome {
        static DROPS: AtomicU64 = AtomicU64::new(0);
        static WRONG: AtomicU64 = AtomicU64::new(0);
        for panics in [false, true] {
            let fragile = || Fragile { drops: &DROPS, wrong: &WRONG, panics };
            DROPS.store(0, Ordering::Relaxed);
            // The handle goes first: the process does not end before.
            static IS_GONE: AtomicBool = AtomicBool::new(false);
            IS_GONE.store(false, Ordering::Relaxed);
            let fragile_first = fragile();
            let handle = sched::spawn(async move {
                while !IS_GONE.load(Ordering::Relaxed) {
                    sched::yield_now().await;
                }
                end_with(fragile_first).await
            });
            drop(handle.map_err(not_started)?);
            IS_GONE.store(true, Ordering::Relaxed);
            sched::out_of_work().await;
            ensure_eq!(DROPS.load(Ordering::Relaxed), 1, "drops of a result whose handle went first");
            // The handle goes last, in a process of its own that a panic may end.
            let handle = sched::spawn(end_with(fragile())).map_err(not_started)?;
            sched::out_of_work().await;
            ensure!(handle.process().is_done(), "the process has not ended");
            ensure_eq!(DROPS.load(Ordering::Relaxed), 1, "drops while there is a handle");
            let dropper = sched::procedure(move || drop(handle)).map_err(not_started)?;
            ensure_eq!(dropper.await.is_err(), panics, "whether who dropped the handle crashed");
            ensure_eq!(DROPS.load(Ordering::Relaxed), 2, "drops of a result whose handle went last");
            ensure_eq!(WRONG.load(Ordering::Relaxed), 0, "drops with preemption disabled");
        }
        Ok::<_, Failure>(())
    }
}
