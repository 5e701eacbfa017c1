//! What a crash gives back: all that the kernel itself knows to have been the dead one's.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::{pending, poll_fn};
use core::hint::black_box;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context as TaskContext, Poll, Waker};
use core::time::Duration;

use magpie::actor::{
    Actor, Addr, Config, Context, Executor, ExecutorHandle, Receive, SendError, StaticActor,
};
use magpie::arch::CoreId;
use magpie::channel::{ProcessAddr, ProcessMailbox};
use magpie::internals::mem::heap::HEAP;
use magpie::internals::mem::stack;
use magpie::sched::{self, JoinError, Priority, Setting, Spawn};
use magpie::{machine, stats, time};
use magpie_tests::{Changed, Failure, Outcome, ensure, ensure_eq, kernel_test};

use crate::ways::{Way, linger};
use crate::{crashed, free_stacks, not_started, start_when_free};

/// So many that a cell of each shows, beside a chunk of cells and the slack.
const CRASHES: usize = 100;
/// What buffers of mailboxes may have grown by, which crashes have nothing to do with.
const SLACK_BYTES: usize = 2048;
/// So often what is left is measured, if it is too much: a buffer that grew late does so once, and what is lost is lost each time.
const ROUNDS: usize = 3;
/// Far longer than anything here takes.
const LONG: Duration = magpie_tests::HANGS_AFTER;

/// An actor with a state of so many bytes, which it has to itself.
struct Weighty<const BYTES: usize>([u8; BYTES]);

impl<const BYTES: usize> Actor for Weighty<BYTES> {}

/// How an actor crashes, with something in hand of so many bytes.
struct Crash<const BYTES: usize> {
    way: Way,
    /// After it has been suspended.
    late: bool,
    load: [u8; BYTES],
}

impl<const STATE: usize, const MESSAGE: usize> Receive<Crash<MESSAGE>> for Weighty<STATE> {
    type Reply = ();

    fn receive(&mut self, crash: Crash<MESSAGE>, context: &mut Context<Self>) {
        if crash.late {
            linger();
        }
        if crash.way.crash() == u64::from(crash.load[black_box(0)]) + u64::from(self.0[black_box(0)]) {
            context.end();
        }
    }
}

/// An actor crashes, with mail behind the message that it crashes on.
async fn one_actor<const STATE: usize, const MESSAGE: usize>(
    handle: &ExecutorHandle,
    number: usize,
) -> Outcome {
    let actor = handle.spawn_pinned(CoreId::BOOT, Weighty([1; STATE]))?;
    let (way, late) = (Way::ALL[number % 3], number % 10 == 9);
    for _ in 0..3 {
        // It may have crashed already.
        let _ = actor.send(Crash { way, late, load: [1; MESSAGE] });
    }
    crashed(actor).await?;
    ensure!(
        actor.send(Crash { way, late, load: [1; MESSAGE] }).is_err(),
        "one that has crashed accepts a message"
    );
    Ok(())
}

/// Bytes in use when nothing is under way.
async fn in_use() -> usize {
    sched::out_of_work().await;
    HEAP.usage().0
}

fn returned() -> u64 {
    stats::total(|core| core.crash_bytes_returned.get())
}

/// What so many crashes leave, after as many that may have made buffers grow.
macro_rules! leaves_nothing {
    ($what:literal, $least:expr, |$number:ident| $crash:expr) => {
        for $number in 0..CRASHES {
            $crash?;
        }
        let (mut left, mut given) = (usize::MAX, 0);
        for _ in 0..ROUNDS {
            let (before, returned_before) = (in_use().await, returned());
            for $number in 0..CRASHES {
                $crash?;
            }
            left = left.min(in_use().await.saturating_sub(before));
            given = returned() - returned_before;
            if left <= SLACK_BYTES {
                break;
            }
        }
        ensure!(left <= SLACK_BYTES, "{CRASHES} crashes of {} have left {left} bytes", $what);
        ensure!(
            given >= (CRASHES * $least) as u64,
            "{CRASHES} crashes of {} are said to have given back {given} bytes",
            $what
        );
    };
}

kernel_test! {
    /// The heap is as it was, however many actors crash: cells and states are used again.
    #[machine("isolation")]
    async fn crashed_actors_leave_no_memory() -> Outcome {
        let _slice = Changed::new(&[(Setting::SliceMicroseconds, 100)])?;
        let executor = Executor::start(&Config::default())?;
        let handle = executor.handle().clone();
        // On one core, so that no other begins to keep free cells of its own.
        let crashes = Spawn::new().pinned(CoreId::BOOT).start(async move {
            leaves_nothing!("actors", 64, |number| one_actor::<64, 8>(&handle, number).await);
            leaves_nothing!("large actors", 5000, |number| one_actor::<5000, 8>(&handle, number).await);
            leaves_nothing!("actors with much in hand", 64, |number| one_actor::<64, 1100>(&handle, number).await);
            ensure_eq!(handle.live_actors(), 0, "actors that are said to live");
            Ok::<_, Failure>(())
        });
        crashes.map_err(not_started)?.await??;
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// The same for processes, and their stacks.
    #[machine("isolation")]
    async fn crashed_processes_leave_no_memory() -> Outcome {
        async fn one(number: usize) -> Outcome {
            let (way, state) = (Way::ALL[number % 3], black_box([1_u8; 2000]));
            let process = sched::spawn(async move {
                sched::yield_now().await;
                way.crash() + u64::from(state[black_box(7)])
            });
            ensure_eq!(process.map_err(not_started)?.await, Err(JoinError::Crashed), "what the handle says");
            Ok(())
        }
        sched::out_of_work().await;
        let free = free_stacks();
        leaves_nothing!("processes", 2000, |number| one(number).await);
        sched::out_of_work().await;
        ensure_eq!(free_stacks(), free, "free stacks");
        Ok(())
    }
}

static STORAGE: StaticActor<Weighty<100>> = StaticActor::new();

kernel_test! {
    /// A static actor's storage is free after a crash, and an address of the one who crashed means no later one.
    #[machine("isolation")]
    async fn storage_is_free_after_a_crash() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let mut old: Vec<Addr<Weighty<100>>> = Vec::new();
        for way in Way::ALL {
            let actor = start_when_free(&STORAGE, executor.handle(), Weighty([1; 100])).await?;
            for former in &old {
                let refused = former.send(Crash { way, late: false, load: [1] });
                ensure!(matches!(refused, Err(SendError::Ended(_))), "an old address was answered");
            }
            actor.send(Crash { way, late: false, load: [1] })?;
            crashed(actor).await?;
            ensure!(STORAGE.take().is_none(), "the state of one that crashed was handed out");
            old.push(actor);
        }
        executor.stop().await;
        Ok(())
    }
}

/// Waits once for what was armed.
fn begin<F: Future + Unpin>(future: &mut F, context: &mut TaskContext<'_>) -> bool {
    Pin::new(future).poll(context).is_pending()
}

kernel_test! {
    /// Timers of a process that crashed count as work no more, and keep nothing: not even those that never fire.
    #[machine("isolation")]
    async fn timers_of_the_crashed_are_taken_out() -> Outcome {
        async fn one(number: usize) -> Outcome {
            let (way, state) = (Way::ALL[number % 3], black_box([1_u8; 2000]));
            let process = sched::spawn(async move {
                let mut sleeps = [time::sleep(Duration::MAX), time::sleep(LONG)];
                let mut limited = time::background_timeout(LONG, pending::<()>());
                let began = poll_fn(|context| {
                    let began = sleeps.iter_mut().all(|sleep| begin(sleep, context)) && begin(&mut limited, context);
                    Poll::Ready(began)
                }).await;
                way.crash() + u64::from(state[usize::from(black_box(began))])
            });
            ensure_eq!(process.map_err(not_started)?.await, Err(JoinError::Crashed), "what the handle says");
            ensure_eq!(time::pending(), 0, "timers that count as work");
            Ok(())
        }
        sched::out_of_work().await;
        for number in 0..CRASHES {
            one(number).await?;
        }
        let (before, doubt) = (in_use().await, stats::total(|core| core.crash_bytes_in_doubt.get()));
        for number in 0..CRASHES {
            one(number).await?;
        }
        let left = in_use().await.saturating_sub(before);
        let doubt = (stats::total(|core| core.crash_bytes_in_doubt.get()) - doubt) as usize;
        magpie::log::text!("{CRASHES} crashes with three timers each leave {left} bytes, {doubt} of them timers");
        // Each is in a block of the next size.
        ensure!(left <= 2 * doubt + SLACK_BYTES, "{left} bytes are left, of them {doubt} of timers");
        Ok(())
    }
}

kernel_test! {
    /// A sleep that a process began and gave away before it crashed lasts as long for who has it now.
    #[machine("isolation")]
    async fn a_sleep_that_was_given_away_goes_on() -> Outcome {
        const LENGTH: Duration = Duration::from_millis(5);
        let mut mailbox = ProcessMailbox::new(1)?;
        let to_me: ProcessAddr<time::Sleep> = mailbox.address();
        let began = time::Instant::now();
        let giver = sched::spawn(async move {
            let mut sleep = time::sleep(LENGTH);
            // Pending, unless this was kept from running for so long.
            poll_fn(|context| Poll::Ready(black_box(begin(&mut sleep, context)))).await;
            if black_box(to_me.send(sleep).is_ok()) {
                Way::Panic.crash();
            }
        });
        ensure_eq!(giver.map_err(not_started)?.await, Err(JoinError::Crashed), "what the handle says");
        let sleep = mailbox.receive().await.ok_or("the sleep did not come")?;
        sleep.await;
        ensure!(began.elapsed() >= LENGTH, "it was over after {:?}", began.elapsed());
        Ok(())
    }
}

kernel_test! {
    /// The mailboxes of a process that crashed are closed before its end is told, and keep nothing of the process.
    #[machine("isolation")]
    async fn mailboxes_of_the_crashed_are_closed() -> Outcome {
        for way in Way::ALL {
            let mut one = ProcessMailbox::<u64>::new(10)?;
            let mut other = ProcessMailbox::<u64>::new(10)?;
            let (to_one, to_other) = (one.address(), other.address());
            to_one.send(1)?;
            let process = sched::spawn(async move {
                let _ = one.receive().await;
                let waits = poll_fn(|context| Poll::Ready(begin(&mut other.receive(), context))).await;
                if waits { way.crash() } else { 0 }
            }).map_err(not_started)?;
            let weak = process.process().clone();
            ensure_eq!(process.await, Err(JoinError::Crashed), "what the handle says");
            ensure!(weak.has_crashed(), "the process has not crashed");
            for address in [&to_one, &to_other] {
                ensure!(matches!(address.send(2), Err(SendError::Ended(2))), "a closed mailbox accepts");
            }
            // Who uses another's waker is refused nothing.
            let mut fresh = ProcessMailbox::<u64>::new(1)?;
            let _address = fresh.address();
            ensure!(begin(&mut fresh.receive(), &mut TaskContext::from_waker(Waker::noop())), "an empty mailbox has mail");
        }
        Ok(())
    }
}

kernel_test! {
    /// Whoever crashes on a core that has nothing else to do leaves nothing there, though what is urgent may go before that.
    async fn a_crash_on_an_idle_core_leaves_no_stack() -> Outcome {
        for core in (0..machine::cores()).filter_map(CoreId::new) {
            for priority in [Priority::High, Priority::Max, Priority::Normal] {
                for way in Way::ALL {
                    sched::out_of_work().await;
                    let free = free_stacks();
                    let process = Spawn::new().pinned(core).priority(priority).start(async move {
                        // From here on it comes out of its core's queue.
                        sched::yield_now().await;
                        way.crash()
                    });
                    ensure_eq!(process?.await, Err(JoinError::Crashed), "what the handle says");
                    // No core has anything to do.
                    sched::out_of_work().await;
                    ensure_eq!(free_stacks(), free, "free stacks");
                }
            }
        }
        Ok(())
    }
}

/// Goes on for ever, or until it is told.
async fn spin(is_over: Arc<AtomicBool>) {
    while !is_over.load(Ordering::Relaxed) {
        black_box(0);
    }
}

kernel_test! {
    /// More processes go on for ever than there are stacks. What is urgent crashes meanwhile, on every core and in every way, is killed as it
    /// runs, and in the end all that go on are killed: every one ends, and every stack comes back.
    #[machine("stacks of its own")]
    async fn crashes_where_no_stack_is_free_leave_none_behind() -> Outcome {
        sched::out_of_work().await;
        let free = free_stacks();
        let hogs = stack::usage().0 + 30;
        let mut handles = Vec::new();
        for _ in 0..hogs {
            handles.push(Spawn::new().priority(Priority::Low).start(spin(Arc::default()))?);
        }
        let judge = Spawn::new().pinned(CoreId::BOOT).priority(Priority::Max).start(async move {
            while stack::usage().1 > 0 {
                time::sleep(Duration::from_millis(2)).await;
            }
            for core in (0..machine::cores()).filter_map(CoreId::new) {
                let urgent = || Spawn::new().pinned(core).priority(Priority::High);
                for way in Way::ALL {
                    let victim = urgent().start(async move { way.crash() })?;
                    ensure_eq!(victim.await, Err(JoinError::Crashed), "what the handle says");
                }
                if core != CoreId::BOOT {
                    let victim = urgent().start(spin(Arc::default()))?;
                    time::sleep(Duration::from_millis(5)).await;
                    victim.process().kill();
                    ensure_eq!(victim.await, Err(JoinError::Killed), "what the handle of a killed one says");
                }
            }
            Ok::<(), Failure>(())
        })?;
        let judged = judge.await;
        for handle in &handles {
            handle.process().kill();
        }
        for handle in handles {
            ensure_eq!(handle.await, Err(JoinError::Killed), "what a hog's handle says");
        }
        judged??;
        sched::out_of_work().await;
        ensure_eq!(free_stacks(), free, "free stacks");
        Ok(())
    }
}
