//! Urgent wake-ups from wherever safe code can make them: deep in a stack and at its end, in destructors and hooks, with a mutex
//! held, of what has ended long ago; and urgent processes that leave no turn to others.
//!
//! Where a wake-up preempts, slices are as long as they can be: then nothing else lets the one that was woken run beside one
//! that spins until it has.
#![forbid(unsafe_code)]

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::poll_fn;
use core::hint::black_box;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::task::Poll;

use magpie::actor::{Actor, Config, Context, Executor, Hook, Receive};
use magpie::arch::CoreId;
use magpie::channel::{ProcessAddr, ProcessMailbox};
use magpie::mutex::Mutex;
use magpie::sched::{self, JoinHandle, Priority, ProcessRef, Spawn};
use magpie::time::Instant;
use magpie::{machine, stats};
use magpie_tests::{Changed, Failure, HANGS_AFTER, Outcome, ensure, ensure_eq, kernel_test};

use crate::not_started;
use crate::stacks::{all_cores_are_well, descend};

/// A `High` process that counts the calls that it has answered.
struct Waiting {
    handle: JoinHandle<()>,
    call: Call,
}

/// Wakes it.
#[derive(Clone)]
struct Call {
    process: ProcessRef,
    calls: Arc<AtomicU64>,
    answers: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

impl Waiting {
    fn start(core: CoreId) -> Result<Self, Failure> {
        let (calls, answers) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let is_over = Arc::new(AtomicBool::new(false));
        let (seen, given, over) = (calls.clone(), answers.clone(), is_over.clone());
        let waits = poll_fn(move |_| {
            given.store(seen.load(Ordering::Acquire), Ordering::Release);
            if over.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
        });
        let handle = Spawn::new().pinned(core).priority(Priority::High).start(waits).map_err(not_started)?;
        let call = Call { process: handle.process().clone(), calls, answers, is_over };
        Ok(Self { handle, call })
    }

    async fn end(self) -> Outcome {
        self.call.is_over.store(true, Ordering::Release);
        self.call.process.wake();
        self.handle.await.map_err(|_| Failure("the urgent one crashed".into()))
    }
}

impl Call {
    /// Wakes it. The number of the call.
    fn call(&self) -> u64 {
        let number = self.calls.fetch_add(1, Ordering::AcqRel) + 1;
        self.process.wake();
        number
    }

    /// Spins until it has answered. Whether it has.
    fn is_answered(&self, number: u64) -> bool {
        let began = Instant::now();
        while self.answers.load(Ordering::Acquire) < number {
            if began.elapsed() > HANGS_AFTER {
                return false;
            }
            core::hint::spin_loop();
        }
        true
    }

    /// Wakes it from a place where its caller can be preempted, which it is.
    fn preempts(&self) -> bool {
        self.is_answered(self.call())
    }
}

fn urgent_preemptions() -> u64 {
    stats::total(|core| core.urgent_preemptions.get())
}

/// Goes down so far, and does something there.
#[inline(never)]
fn far_down(depth: u64, what: &dyn Fn() -> bool) -> bool {
    let frame = black_box([depth; 64]);
    let done = if depth == 0 { what() } else { far_down(depth - 1, what) };
    done && frame[black_box(3)] == depth
}

/// Calls when it is dropped, and notes whether that was answered.
struct CallsWhenDropped(Call, Arc<AtomicBool>);

impl Drop for CallsWhenDropped {
    fn drop(&mut self) {
        self.1.store(self.0.preempts(), Ordering::Release);
    }
}

/// Runs on the boot core, beside nothing, and says whether it went well.
async fn on_the_boot_core(body: impl FnOnce() -> bool + Send + 'static) -> Result<bool, Failure> {
    let process = Spawn::new().pinned(CoreId::BOOT).start(async move { body() }).map_err(not_started)?;
    process.await.map_err(|_| Failure("the one that calls crashed".into()))
}

kernel_test! {
    /// Far down a stack, in a destructor, and with a mutex held, which the one that is woken leaves alone.
    #[machine("preemption")]
    async fn wake_ups_preempt_wherever_they_are_made() -> Outcome {
        let _long = Changed::no_preemption()?;
        let waiting = Waiting::start(CoreId::BOOT)?;
        sched::out_of_work().await;
        let before = urgent_preemptions();
        for depth in [0, 1, 10, 30, 50] {
            let call = waiting.call.clone();
            let well = on_the_boot_core(move || far_down(black_box(depth), &|| call.preempts())).await?;
            ensure!(well, "not answered {depth} frames down");
        }
        let (call, answered) = (waiting.call.clone(), Arc::new(AtomicBool::new(false)));
        let seen = answered.clone();
        let well = on_the_boot_core(move || {
            drop(CallsWhenDropped(call, answered.clone()));
            answered.load(Ordering::Acquire)
        });
        ensure!(well.await? && seen.load(Ordering::Acquire), "not answered in a destructor");
        let (call, mutex) = (waiting.call.clone(), Arc::new(Mutex::new(0_u64)));
        let held = mutex.clone();
        let well = on_the_boot_core(move || {
            let Ok(mut held) = held.try_lock() else { return false };
            *held += 1;
            let answered = call.preempts();
            *held += 1;
            answered
        });
        ensure!(well.await?, "not answered with a mutex held");
        ensure_eq!(mutex.try_lock().map(|held| *held).ok(), Some(2), "what the mutex guards");
        let preemptions = urgent_preemptions() - before;
        ensure!(preemptions >= 7, "{preemptions} preemptions for seven calls");
        waiting.end().await
    }
}

/// An actor that calls in its hooks, and when it is dropped.
struct Hooked {
    call: Call,
    answered: Arc<AtomicU64>,
}

impl Hooked {
    fn calls(&self) {
        self.answered.fetch_add(u64::from(self.call.preempts()), Ordering::AcqRel);
    }
}

impl Drop for Hooked {
    fn drop(&mut self) {
        self.calls();
    }
}

impl Actor for Hooked {
    fn started() -> Option<Hook<Self>> {
        Some(|actor, _| actor.calls())
    }

    fn stopped() -> Option<Hook<Self>> {
        Some(|actor, _| actor.calls())
    }
}

impl Receive<Box<CallsWhenDropped>> for Hooked {
    type Reply = ();

    fn receive(&mut self, message: Box<CallsWhenDropped>, context: &mut Context<Self>) {
        drop(message);
        context.end();
    }
}

kernel_test! {
    /// In the hooks of an actor, in its destructor and in that of a message: one that is handled, and those that nobody gets.
    async fn hooks_and_destructors_may_wake_what_is_urgent() -> Outcome {
        let waiting = Waiting::start(CoreId::BOOT)?;
        let executor = Executor::start(&Config::default())?;
        for _ in 0..10 {
            let answered = Arc::new(AtomicU64::new(0));
            let actor = Hooked { call: waiting.call.clone(), answered: answered.clone() };
            let address = executor.handle().spawn(actor)?;
            let flags: Vec<_> = (0..5).map(|_| Arc::new(AtomicBool::new(false))).collect();
            for flag in &flags {
                // The first ends the actor; the others may come too late to be sent.
                let message = Box::new(CallsWhenDropped(waiting.call.clone(), flag.clone()));
                drop(address.send(message));
            }
            executor.all_ended().await;
            sched::out_of_work().await;
            ensure_eq!(answered.load(Ordering::Acquire), 3, "calls answered, of two hooks and a destructor");
            let dropped = flags.iter().filter(|flag| flag.load(Ordering::Acquire)).count();
            ensure_eq!(dropped, flags.len(), "messages whose destructor's call was answered");
        }
        executor.stop().await;
        waiting.end().await
    }
}

kernel_test! {
    /// At every depth down to the end of the stack, also in the section that wakes, and with a stack overflow there: those that
    /// overflow end alone, and every call is answered.
    #[machine("stacks of its own")]
    async fn wake_ups_at_the_end_of_a_stack() -> Outcome {
        for core in (0..machine::cores()).filter_map(CoreId::new) {
            let waiting = Waiting::start(CoreId::BOOT)?;
            let call = waiting.call.clone();
            let overflows = Spawn::new().pinned(core).start(async move {
                descend(&|| _ = call.call(), black_box(0))
            });
            ensure!(overflows.map_err(not_started)?.await.is_err(), "it went down for ever and ended well");
            let last = waiting.call.clone();
            let well = on_the_boot_core(move || last.preempts()).await?;
            ensure!(well, "the last call was not answered");
            waiting.end().await?;
        }
        all_cores_are_well().await
    }
}

kernel_test! {
    /// Wakers of urgent processes that have ended wake nobody, from every core at once, and preempt nothing.
    async fn wakers_outlive_what_is_urgent() -> Outcome {
        const WAKES: u64 = 2_000;
        let mut waking = Vec::new();
        for round in 0..8 {
            let waker = Arc::new(Mutex::new(None));
            let kept = waker.clone();
            let urgent = Spawn::new().priority(if round % 2 == 0 { Priority::High } else { Priority::Max }).start(
                poll_fn(move |context| {
                    match kept.try_lock() {
                        Ok(mut kept) => *kept = Some(context.waker().clone()),
                        Err(_) => return Poll::Ready(false),
                    }
                    Poll::Ready(true)
                }),
            );
            ensure_eq!(urgent.map_err(not_started)?.await, Ok(true), "what it says of its waker");
            let waker = waker.try_lock().ok().and_then(|mut waker| waker.take()).ok_or("no waker was kept")?;
            for core in (0..machine::cores()).filter_map(CoreId::new) {
                let waker = waker.clone();
                waking.push(Spawn::new().pinned(core).start(async move {
                    for _ in 0..WAKES {
                        let another = waker.clone();
                        waker.wake_by_ref();
                        another.wake();
                    }
                }).map_err(not_started)?);
            }
        }
        for process in waking {
            ensure!(process.await.is_ok(), "one that wakes what has ended crashed");
        }
        all_cores_are_well().await
    }
}

/// What thousands do that wake each other.
struct Ring {
    members: Vec<ProcessAddr<u64>>,
    turns_beside: Arc<AtomicU64>,
    /// Hops that were made, and turns of others meanwhile.
    hops: AtomicU64,
    seen_beside: AtomicU64,
}

const MEMBERS: usize = 2_000;
const TOKENS: u64 = 16;
const HOPS: u64 = 40_000;

/// Hands on what comes, until there were hops enough; then the end.
async fn hand_on(mut mailbox: ProcessMailbox<u64>, place: usize, ring: Arc<Ring>) {
    let next = &ring.members[(place + 1) % ring.members.len()];
    while let Some(token) = mailbox.receive().await {
        // All are on one core.
        let hops = ring.hops.fetch_add(1, Ordering::Relaxed) + 1;
        if hops == HOPS {
            ring.seen_beside.store(ring.turns_beside.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        let is_end = token == 0 || hops >= HOPS;
        // A mailbox has room for all tokens and the end.
        if next.send(if is_end { 0 } else { token }).is_err() || is_end {
            return;
        }
    }
}

kernel_test! {
    /// Thousands of urgent processes on one core that wake each other: what is less urgent there has no turn meanwhile, as is promised,
    /// and goes on afterwards; what may leave does, where there is another core, though they go on.
    async fn thousands_that_wake_each_other() -> Outcome {
        let turns_beside = Arc::new(AtomicU64::new(0));
        let (is_over, has_left) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        // Everything is started by one that is more urgent, so that nothing begins before all is there.
        let (turns, over, left) = (turns_beside.clone(), is_over.clone(), has_left.clone());
        let starts = Spawn::new().pinned(CoreId::BOOT).priority(Priority::Max).start(async move {
            let neighbour = Spawn::new().pinned(CoreId::BOOT).start(async move {
                while !over.load(Ordering::Relaxed) {
                    turns.fetch_add(1, Ordering::Relaxed);
                    sched::yield_now().await;
                }
            })?;
            let free = Spawn::new().start(async move { left.store(true, Ordering::Relaxed) })?;
            let mut mailboxes = Vec::new();
            for _ in 0..MEMBERS {
                mailboxes.push(ProcessMailbox::new(2 * TOKENS as usize)?);
            }
            let ring = Arc::new(Ring {
                members: mailboxes.iter().map(ProcessMailbox::address).collect(),
                turns_beside,
                hops: AtomicU64::new(0),
                seen_beside: AtomicU64::new(0),
            });
            let mut members = Vec::new();
            for (place, mailbox) in mailboxes.into_iter().enumerate() {
                let member = hand_on(mailbox, place, ring.clone());
                members.push(Spawn::new().pinned(CoreId::BOOT).priority(Priority::High).start(member)?);
            }
            for token in 0..TOKENS as usize {
                ring.members[token * MEMBERS / TOKENS as usize].send(1)?;
            }
            let before = ring.turns_beside.load(Ordering::Relaxed);
            Ok::<_, Failure>((neighbour, free, members, ring, before))
        })?;
        let (neighbour, free, members, ring, before) = starts.await??;
        for member in members {
            ensure!(member.await.is_ok(), "one of the ring crashed");
        }
        is_over.store(true, Ordering::Relaxed);
        ensure!(neighbour.await.is_ok() && free.await.is_ok(), "one beside them crashed");
        ensure!(has_left.load(Ordering::Relaxed), "what may run anywhere did not run");
        let hops = ring.hops.load(Ordering::Relaxed);
        ensure!(hops >= HOPS, "{hops} hops");
        let beside = ring.seen_beside.load(Ordering::Relaxed) - before;
        ensure_eq!(beside, 0, "turns of one that is not urgent, while urgent ones were runnable");
        Ok(())
    }
}

kernel_test! {
    /// An urgent process that never yields, beside another that is as urgent, and one that is more so: the latter preempts it, the
    /// former takes turns with it, and what may leave its core does.
    #[machine("preemption")]
    async fn an_urgent_one_that_never_yields() -> Outcome {
        let (has_begun, is_over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (begins, over) = (has_begun.clone(), is_over.clone());
        // Both are started by one that is more urgent: whoever is less so would have no turn beside the first.
        let starts = Spawn::new().pinned(CoreId::BOOT).priority(Priority::Max).start(async move {
            let pinned = Spawn::new().pinned(CoreId::BOOT).priority(Priority::High);
            let hog = pinned.start(async move {
                let began = Instant::now();
                begins.store(true, Ordering::Release);
                while !over.load(Ordering::Acquire) {
                    if began.elapsed() > HANGS_AFTER {
                        return false;
                    }
                    core::hint::spin_loop();
                }
                true
            })?;
            let equal = pinned.start(async move {
                for _ in 0..20 {
                    sched::yield_now().await;
                }
                while !has_begun.load(Ordering::Acquire) {
                    sched::yield_now().await;
                }
                let above = Spawn::new().pinned(CoreId::BOOT).priority(Priority::Max).start(async {});
                let is_well = match above {
                    Ok(above) => above.await.is_ok(),
                    Err(_) => false,
                };
                is_over.store(true, Ordering::Release);
                is_well
            })?;
            Ok::<_, Failure>((hog, equal))
        })?;
        let (hog, equal) = starts.await??;
        ensure_eq!(equal.await, Ok(true), "whether one that is as urgent had its turns");
        ensure_eq!(hog.await, Ok(true), "whether the hog was told before it gave up");
        all_cores_are_well().await
    }
}
