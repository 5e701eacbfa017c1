//! Timers: of those who crash while they wait, and for moments that never come.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::future::{Future, pending, poll_fn};
use core::hint::black_box;
use core::pin::pin;
use core::task::{Context as TaskContext, Poll, Waker};
use core::time::Duration;

use magpie::actor::{Actor, Config, Context, Executor, Receive, Request};
use magpie::arch::CoreId;
use magpie::channel::ProcessMailbox;
use magpie::sched::{self, JoinError, Spawn};
use magpie::{machine, time};
use magpie_tests::{Failure, HeapExhauster, Outcome, ensure, ensure_eq, kernel_test};

use crate::{not_started, use_memory_again};

/// Long enough that the memory was used again by then.
const SOON: Duration = Duration::from_millis(20);

/// Begins to wait for a moment with a waker that keeps nothing, on its own stack, and crashes.
fn crash_with_a_timer_on_the_stack() {
    let mut context = TaskContext::from_waker(Waker::noop());
    // A busy host may let the moment pass before it was waited for.
    loop {
        let mut sleep = pin!(time::sleep(SOON));
        let mut limited = pin!(time::timeout(SOON, pending::<()>()));
        let waiting = sleep.as_mut().poll(&mut context).is_pending()
            && limited.as_mut().poll(&mut context).is_pending();
        if black_box(waiting) {
            panic!("on purpose, with timers on the stack");
        }
    }
}

/// All timers have fired, and new ones do on every core.
async fn every_core_keeps_time() -> Outcome {
    use_memory_again().await?;
    // Only when no timer is pending.
    sched::out_of_work().await;
    for core in (0..machine::cores()).filter_map(CoreId::new) {
        let sleeper = Spawn::new().pinned(core).start(async {
            let began = time::Instant::now();
            time::sleep(Duration::from_millis(2)).await;
            began.elapsed()
        });
        let slept = sleeper.map_err(not_started)?.await?;
        ensure!(slept >= Duration::from_millis(2), "{core:?} slept {slept:?}");
    }
    Ok(())
}

kernel_test! {
    /// The stack is given back while the timers are armed.
    async fn a_timer_outlives_the_stack_of_who_crashed() -> Outcome {
        for _ in 0..20 {
            let crashes = sched::procedure(crash_with_a_timer_on_the_stack).map_err(not_started)?;
            ensure_eq!(crashes.await, Err(JoinError::Crashed), "what the handle says");
            use_memory_again().await?;
        }
        every_core_keeps_time().await
    }
}

kernel_test! {
    /// The process is given back while its timer is armed: the waker keeps nothing.
    async fn a_timer_outlives_a_process_that_crashed() -> Outcome {
        for _ in 0..20 {
            let crashes = sched::spawn(async {
                loop {
                    let mut sleep = pin!(time::sleep(SOON));
                    let waiting = sleep.as_mut().poll(&mut TaskContext::from_waker(Waker::noop())).is_pending();
                    // So that it lies in the process.
                    sched::yield_now().await;
                    if black_box(waiting) {
                        panic!("on purpose, with a timer in the process");
                    }
                    sleep.await;
                }
            });
            ensure_eq!(crashes.map_err(not_started)?.await, Err(JoinError::Crashed), "what the handle says");
            use_memory_again().await?;
        }
        every_core_keeps_time().await
    }
}

struct Crasher;

impl Actor for Crasher {}

struct Crash;

impl Receive<Crash> for Crasher {
    type Reply = ();

    fn receive(&mut self, _: Crash, _: &mut Context<Self>) {
        crash_with_a_timer_on_the_stack();
    }
}

impl Receive<Request<u32, u32>> for Crasher {
    type Reply = ();

    /// Never answers, and keeps the asker waiting.
    fn receive(&mut self, request: Request<u32, u32>, _: &mut Context<Self>) {
        core::mem::forget(request.reply);
    }
}

kernel_test! {
    /// The same in a behaviour.
    async fn a_timer_outlives_a_behaviour_that_crashed() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        for _ in 0..20 {
            executor.handle().spawn(Crasher)?.send(Crash)?;
            executor.all_ended().await;
            use_memory_again().await?;
        }
        executor.stop().await;
        every_core_keeps_time().await
    }
}

/// Waits until one of the two is over, the second being asked first.
async fn until<T>(endless: impl Future<Output = T>, end: impl Future<Output = ()>) -> bool {
    let (mut endless, mut end) = (pin!(endless), pin!(end));
    poll_fn(|context| {
        if end.as_mut().poll(context).is_ready() {
            return Poll::Ready(false);
        }
        endless.as_mut().poll(context).map(|_| true)
    })
    .await
}

kernel_test! {
    /// Whatever takes a duration takes any: the longest too, on every core, and its timers go on.
    async fn no_duration_is_too_long() -> Outcome {
        const LONGEST: Duration = Duration::MAX;
        let executor = Executor::start(&Config::default())?;
        let asked = executor.handle().spawn(Crasher)?;
        for core in (0..machine::cores()).filter_map(CoreId::new) {
            let waits = Spawn::new().pinned(core).start(async move {
                let soon = || time::sleep(Duration::from_millis(2));
                let message = asked.send_after(LONGEST, Crash)?;
                ensure!(!until(time::sleep(LONGEST), soon()).await, "a sleep for ever is over");
                ensure!(!until(time::timeout(LONGEST, pending::<()>()), soon()).await, "a limit of ever is over");
                ensure!(!until(asked.ask_within(LONGEST, 1_u32), soon()).await, "an answer came");
                let mut mailbox = ProcessMailbox::<u32>::new(1)?;
                let _address = mailbox.address();
                ensure!(!until(mailbox.receive_within(LONGEST), soon()).await, "a message came");
                ensure!(message.is_pending(), "a message was sent at the end of time");
                ensure!(message.cancel().is_some(), "a message was lost");
                Ok::<_, Failure>(())
            });
            waits.map_err(not_started)?.await??;
        }
        executor.stop().await;
        every_core_keeps_time().await
    }
}

kernel_test! {
    /// Timers at every distance, far and near, on one core: the near ones fire in order, the far ones do not.
    async fn durations_of_every_size_wait_side_by_side() -> Outcome {
        const NEAR: u32 = 22;
        let waits = Spawn::new().pinned(CoreId::BOOT).start(async {
            // From 1 ns to 4 ms, and from 1100 s on.
            let mut far: Vec<_> = (40..94).map(|bits| {
                Box::pin(time::sleep(Duration::new((1_u128 << bits).div_ceil(1_000_000_000) as u64, 0)))
            }).collect();
            let mut near: Vec<_> = (0..=NEAR).map(|bits| Box::pin(time::sleep(Duration::from_nanos(1 << bits)))).collect();
            let mut fired = 0;
            poll_fn(|context| {
                for (number, sleep) in far.iter_mut().enumerate() {
                    if sleep.as_mut().poll(context).is_ready() {
                        return Poll::Ready(Err(Failure(alloc::format!("the sleep of 2^{} ns is over", number + 40))));
                    }
                }
                while let Some(sleep) = near.get_mut(fired) {
                    if sleep.as_mut().poll(context).is_pending() {
                        return Poll::Pending;
                    }
                    fired += 1;
                }
                Poll::Ready(Ok(()))
            }).await
        });
        waits.map_err(not_started)?.await??;
        every_core_keeps_time().await
    }
}

kernel_test! {
    /// Without memory for a timer a sleep is over no sooner, and over all the same; so is a limit.
    async fn a_sleep_without_memory_is_as_long() -> Outcome {
        const LENGTH: Duration = Duration::from_millis(5);
        sched::out_of_work().await;
        // On one core, whose blocks are hoarded. Another has blocks that it leaves to all when it falls asleep, which it may do
        // only after this one has taken everything.
        loop {
            let sleeper = Spawn::new().pinned(CoreId::BOOT).start(sleep_without_memory(LENGTH));
            if sleeper.map_err(not_started)?.await?? == 0 {
                break;
            }
        }
        every_core_keeps_time().await
    }
}

/// Takes all memory and sleeps for so long, twice. How many timers had memory all the same.
async fn sleep_without_memory(length: Duration) -> Result<u64, Failure> {
    let exhauster = HeapExhauster::everything(16);
    // A core keeps the memory of one timer: this sleep gets it.
    let mut hoards = pin!(time::sleep(Duration::from_secs(3600)));
    let _ = poll_fn(|context| Poll::Ready(hoards.as_mut().poll(context))).await;
    let others = time::pending();
    // Before the sleep is made, whose moment counts from then.
    let began = time::Instant::now();
    let (mut sleep, mut armed) = (pin!(time::sleep(length)), 0);
    poll_fn(|context| {
        let polled = sleep.as_mut().poll(context);
        armed = armed.max(time::pending().saturating_sub(others));
        polled
    })
    .await;
    let slept = began.elapsed();
    let limited = time::timeout(length, pending::<()>()).await;
    let both = began.elapsed();
    drop(exhauster);
    ensure!(slept >= length, "over after {slept:?}");
    ensure!(limited.is_err() && both >= 2 * length, "the limit was reached after {:?}", both - slept);
    Ok(armed)
}
