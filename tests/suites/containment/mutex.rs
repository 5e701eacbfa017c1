//! The mutex of applications: crashes of those who hold it, and of those who wait for it.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::{Future, poll_fn};
use core::hint::black_box;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context as TaskContext, Waker};
use core::time::Duration;

use magpie::actor::{Actor, Config, Context, Executor, Receive};
use magpie::arch::CoreId;
use magpie::mutex::{Mutex, MutexGuard, Poisoned, TryLockError};
use magpie::sched::{self, Spawn};
use magpie::{machine, time};
use magpie_tests::{HeapExhauster, Outcome, ensure, ensure_eq, kernel_test};

/// How a holder goes.
#[derive(Clone, Copy, Debug)]
enum Crash {
    Panic,
    Overflow,
    /// After it was suspended.
    Later,
}

const CRASHES: [Crash; 3] = [Crash::Panic, Crash::Overflow, Crash::Later];

fn crash(how: Crash) {
    match how {
        Crash::Panic => {}
        Crash::Overflow => {
            black_box(descend(black_box(0)));
        }
        Crash::Later => spin_for_slices(6),
    }
    if black_box(true) {
        panic!("on purpose, with a mutex");
    }
}

fn spin_for_slices(slices: u64) {
    let began = time::Instant::now();
    let long = Duration::from_micros(slices * sched::setting(sched::Setting::SliceMicroseconds));
    while began.elapsed() < long {
        core::hint::spin_loop();
    }
}

#[inline(never)]
#[expect(unconditional_recursion, reason = "that is the point")]
fn descend(depth: u64) -> u64 {
    let frame = black_box([depth; 3]);
    descend(depth + 1) ^ frame[1]
}

/// Takes the mutex it is sent, and crashes.
struct Holder;

impl Actor for Holder {}

struct Take(Arc<Mutex<u64>>, Crash, Arc<AtomicBool>);

impl Receive<Take> for Holder {
    type Reply = ();

    fn receive(&mut self, Take(mutex, how, may_go): Take, _: &mut Context<Self>) {
        hold(&mutex, how, &may_go);
    }
}

/// Takes it; who asks whether it is held has it for a moment.
fn take(mutex: &Mutex<u64>) -> MutexGuard<'_, u64> {
    loop {
        if let Ok(guard) = mutex.try_lock() {
            return guard;
        }
        core::hint::spin_loop();
    }
}

/// Takes it, waits until somebody waits for it, and crashes.
fn hold(mutex: &Mutex<u64>, how: Crash, may_go: &AtomicBool) {
    let mut number = take(mutex);
    *number += 1;
    while !may_go.load(Ordering::Acquire) {
        core::hint::spin_loop();
    }
    crash(how);
}

/// Sees the holder of a mutex crash; who waited then is told, and who comes later.
async fn is_poisoned(mutex: Arc<Mutex<u64>>, may_go: Arc<AtomicBool>) -> Outcome {
    while refusal(&mutex) != Some(TryLockError::Held) {
        time::sleep(Duration::from_micros(100)).await;
    }
    let mut waiting = Vec::new();
    for _ in 0..6 {
        let mutex = mutex.clone();
        waiting.push(sched::spawn(async move { mutex.lock().await.map(|number| *number) })?);
    }
    // One that gives up, and one whose process is gone.
    let mut given_up = Box::pin(mutex.lock());
    ensure!(
        given_up.as_mut().poll(&mut TaskContext::from_waker(Waker::noop())).is_pending(),
        "it did not wait"
    );
    drop(given_up);
    let crashed = mutex.clone();
    let crashed = sched::procedure(move || {
        let mut lock = Box::pin(crashed.lock());
        let polled = lock.as_mut().poll(&mut TaskContext::from_waker(Waker::noop())).is_pending();
        assert!(!polled, "on purpose, while waiting");
    })?;
    ensure!(crashed.await.is_err(), "it did not wait, or did not crash");
    ensure!(
        !mutex.is_poisoned() && refusal(&mutex) == Some(TryLockError::Held),
        "a crash of somebody else has poisoned it"
    );
    may_go.store(true, Ordering::Release);
    for waiting in waiting {
        let told = time::timeout(magpie_tests::HANGS_AFTER, waiting).await;
        ensure!(told.is_ok(), "who waits was not told of the crash");
        ensure_eq!(told??, Err(Poisoned), "what who waits was told");
    }
    ensure_eq!(refusal(&mutex), Some(TryLockError::Poisoned), "what who comes later is told");
    ensure_eq!(mutex.lock().await.map(|_| ()), Err(Poisoned), "what who comes later is told, waiting");
    Ok(())
}

/// Why it cannot be taken now.
fn refusal(mutex: &Mutex<u64>) -> Option<TryLockError> {
    mutex.try_lock().err()
}

kernel_test! {
    /// Whoever holds it, and however that goes: a process, a behaviour.
    #[machine("isolation")]
    async fn a_crash_poisons_what_is_held() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let untouched = Arc::new(Mutex::new(1));
        for how in CRASHES {
            for by_actor in [false, true] {
                let (mutex, may_go) = (Arc::new(Mutex::new(0)), Arc::new(AtomicBool::new(false)));
                let (held, go) = (mutex.clone(), may_go.clone());
                if by_actor {
                    executor.handle().spawn(Holder)?.send(Take(held, how, go))?;
                } else {
                    drop(sched::procedure(move || hold(&held, how, &go))?);
                }
                is_poisoned(mutex, may_go).await?;
                ensure!(untouched.try_lock().is_ok(), "another mutex has gone with it");
            }
        }
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// A guard that is forgotten leaves the mutex held, whatever crashes afterwards: nobody gets at data to which there may
    /// be a reference.
    #[machine("isolation")]
    async fn a_forgotten_guard_gives_nobody_the_data() -> Outcome {
        let mutex = Arc::new(Mutex::new(0_u64));
        let forgets = mutex.clone();
        let ended = sched::procedure(move || core::mem::forget(forgets.try_lock()))?;
        ended.await?;
        for core in (0..machine::cores()).filter_map(CoreId::new) {
            let crashing = Spawn::new().pinned(core).start(async { crash(Crash::Panic) })?;
            ensure!(crashing.await.is_err(), "it did not crash");
            ensure!(mutex.try_lock().is_err(), "the data of a forgotten guard was given away");
        }
        Ok(())
    }
}

kernel_test! {
    /// Everyone on every core changes what it guards, waiting in turn; holders are preempted. No change is lost.
    async fn one_at_a_time_changes_it() -> Outcome {
        static TOTAL: Mutex<(u64, u64)> = Mutex::new((0, 0));
        const EACH: u64 = 50;
        *TOTAL.lock().await? = (0, 0);
        let mut adding = Vec::new();
        for _ in 0..8 {
            adding.push(sched::spawn(async {
                for round in 0..EACH {
                    if let Ok(mut total) = TOTAL.lock().await {
                        let before = total.0;
                        if round == EACH / 2 {
                            spin_for_slices(3);
                        }
                        total.0 = before + 1;
                        total.1 += 1;
                    }
                    sched::yield_now().await;
                }
            })?);
        }
        for adding in adding {
            adding.await?;
        }
        let total = *TOTAL.lock().await?;
        ensure_eq!(total, (8 * EACH, 8 * EACH), "changes");
        Ok(())
    }
}

kernel_test! {
    /// With memory used up a process can wait for a mutex, and is told.
    async fn waiting_for_it_needs_no_memory() -> Outcome {
        let process = Spawn::new().pinned(CoreId::BOOT).start(async {
            let mutex = Arc::new(Mutex::new(0_u64));
            let (held, go) = (mutex.clone(), Arc::new(AtomicBool::new(false)));
            let may_go = go.clone();
            let holder = Spawn::new().pinned(CoreId::BOOT).start(async move {
                let guard = take(&held);
                while !may_go.load(Ordering::Acquire) {
                    core::hint::spin_loop();
                }
                drop(guard);
            })?;
            while refusal(&mutex) != Some(TryLockError::Held) {
                sched::yield_now().await;
            }
            let mut lock = Box::pin(mutex.lock());
            let exhauster = HeapExhauster::everything(16);
            let mut polls = 0_u64;
            let number = poll_fn(|context| {
                polls += 1;
                let polled = lock.as_mut().poll(context);
                go.store(true, Ordering::Release);
                polled.map_ok(|mut number| {
                    *number += 1;
                    *number
                })
            })
            .await;
            drop(exhauster);
            holder.await?;
            ensure_eq!(number, Ok(1), "what it guards");
            ensure_eq!(polls, 2, "polls: one to wait, one when it was told");
            Ok(())
        });
        process?.await?
    }
}
