//! Supervisors misused: trees of ten levels that fall from the bottom, a thousand children, children that come while all end, that stop
//! their own supervisor, or that cannot be made; supervisors killed at any moment. Nobody outlives its supervisor, and nothing is left.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::future::pending;
use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use critical_section::Mutex;
use magpie::internals::mem::heap::HEAP;
use magpie::sched::{self, ProcessRef, Setting};
use magpie::supervise::{self, Backoff, Child, Shutdown, Supervisor, SupervisorRef};
use magpie::time;
use magpie_tests::{Changed, Failure, HANGS_AFTER, Outcome, amount, ensure, ensure_eq, kernel_test};

use crate::not_started;

/// The processes of all children that have begun, and may live. One that is killed while it runs drops nothing, so no destructor can
/// count them.
static BEGUN: Mutex<RefCell<Vec<ProcessRef>>> = Mutex::new(RefCell::new(Vec::new()));

/// The child that the caller is has begun.
fn begin() {
    let Some(own) = sched::current_process() else { return };
    // Nobody is killed in the middle of a critical section.
    critical_section::with(|section| BEGUN.borrow_ref_mut(section).push(own));
}

/// How many of them live.
fn living() -> usize {
    let ended: Vec<_> = critical_section::with(|section| {
        let mut begun = BEGUN.borrow_ref_mut(section);
        begun.extract_if(.., |process| process.is_done()).collect()
    });
    // Outside: it frees them.
    drop(ended);
    critical_section::with(|section| BEGUN.borrow_ref(section).len())
}

async fn wait(mut shutdown: Shutdown) {
    begin();
    shutdown.requested().await;
}

async fn until(mut is_so: impl FnMut() -> bool, what: &'static str) -> Outcome {
    let waiting = async {
        while !is_so() {
            sched::yield_now().await;
        }
    };
    time::background_timeout(HANGS_AFTER / 4, waiting).await.map_err(|_| Failure(what.into()))
}

async fn ended(supervisor: &SupervisorRef) -> Outcome {
    until(|| supervisor.process().is_done(), "the supervisor goes on").await?;
    until(|| living() == 0, "a child outlives its supervisor").await?;
    let is_it = |seen: supervise::SupervisorInfo| seen.process.id() == supervisor.process().id();
    ensure!(!supervise::supervisors().any(is_it), "it is listed although it has ended");
    Ok(())
}

fn started(supervisor: Supervisor) -> Result<SupervisorRef, Failure> {
    supervisor.start().map_err(|error| Failure(alloc::format!("not started: {error}")))
}

async fn in_use() -> usize {
    sched::out_of_work().await;
    HEAP.usage().0
}

/// What is in use when that has settled to so much, or if it does not. Who was killed while it ran has dropped nothing, so what it had comes back with the next
/// collection: which comes when enough has crashed.
async fn settled_within(most: usize) -> Result<usize, Failure> {
    const POINTERS: usize = 1024;
    let before = magpie::stats::collections().finished;
    let _no_limit = Changed::new(&[(Setting::CollectMicroseconds, 600_000_000)])?;
    loop {
        let now = in_use().await;
        if now <= most || magpie::stats::collections().finished >= before + 3 {
            return Ok(now);
        }
        let crashes = sched::spawn(async {
            let pointers: [Box<usize>; POINTERS] = core::array::from_fn(Box::new);
            assert!(black_box(&pointers).len() != POINTERS, "on purpose");
        });
        let _ = crashes.map_err(not_started)?.await;
    }
}

/// So many levels, each with a child beside; at the bottom `leaf`.
fn tower(levels: usize, leaf: Child, restarts: usize) -> Supervisor {
    let mut below = leaf;
    for _ in 1..levels {
        let level = Supervisor::one_for_all()
            .restarts(restarts, Duration::MAX)
            .backoff(Backoff::NONE)
            .child(Child::process("beside", wait))
            .child(below);
        below = Child::supervisor("level", level);
    }
    Supervisor::rest_for_one()
        .restarts(restarts, Duration::ZERO)
        .backoff(Backoff::new(Duration::ZERO, Duration::MAX).jitter_percent(u32::MAX))
        .child(Child::process("beside", wait))
        .child(below)
}

kernel_test! {
    /// Ten levels: what fails at the bottom ends all of them in order, and a stop of the top does.
    #[machine("the kernel's heap")]
    async fn ten_levels_fall_from_the_bottom() -> Outcome {
        let mut settled = 0;
        for round in 0..amount("towers", 8) {
            let fails = Child::process("fails", |_| async { Err::<(), ()>(()) });
            let tower_falls = started(tower(10, fails, 0))?;
            ended(&tower_falls).await?;
            ensure!(tower_falls.process().has_failed(), "the top has not failed");
            let stands = started(tower(10, Child::process("leaf", wait), 0))?;
            until(|| living() == 11, "not all levels have started").await?;
            stands.stop().await?;
            ended(&stands).await?;
            let stands = started(tower(10, Child::process("leaf", wait), 3))?;
            if round % 2 == 0 {
                until(|| living() == 11, "not all levels have started").await?;
            }
            stands.process().kill();
            ended(&stands).await?;
            drop((tower_falls, stands));
            let most = if settled == 0 { usize::MAX } else { settled + 4096 };
            let now = settled_within(most).await?;
            if round == 2 {
                settled = now;
            }
            let found = magpie::stats::collections();
            ensure!(now <= most, "{now} bytes are in use, {settled} were: {found:?}");
        }
        Ok(())
    }
}

kernel_test! {
    /// A thousand children, of which each tenth crashes at once; all are ended, and nothing stays.
    #[machine("isolation")]
    async fn a_thousand_children() -> Outcome {
        let mut supervisor = Supervisor::one_for_one().restarts(usize::MAX, Duration::MAX).backoff(Backoff::NONE);
        for number in 0..1000_u64 {
            let lives = AtomicU64::new(0);
            supervisor = supervisor.child(Child::process("one of many", move |shutdown| {
                assert!(number % 10 != 0 || lives.fetch_add(1, Ordering::AcqRel) > 0, "on purpose");
                wait(shutdown)
            }));
        }
        let running = started(supervisor)?;
        until(|| living() == 1000, "not all have started").await?;
        let children = running.children().await?;
        ensure_eq!(children.iter().map(|child| child.restarts).sum::<u64>(), 100, "restarts");
        running.stop().await?;
        ended(&running).await
    }
}

kernel_test! {
    /// Children are added from every core while the supervisor is stopped, killed or gives up: each is refused, or ended with it.
    #[machine("isolation")]
    async fn children_come_while_all_end() -> Outcome {
        for round in 0..amount("rounds", 60) {
            let running = started(Supervisor::one_for_one().restarts(0, Duration::ZERO))?;
            let adders: Vec<_> = (0..8)
                .map(|_| {
                    let running = running.clone();
                    sched::spawn(async move {
                        let mut taken = 0;
                        while running.start_child(Child::process("late", wait).temporary()).await.is_ok() {
                            taken += 1;
                        }
                        taken
                    })
                })
                .collect::<Result<_, _>>()
                .map_err(not_started)?;
            while living() < usize::try_from(round % 20).unwrap_or(0) {
                sched::yield_now().await;
            }
            match round % 3 {
                0 => running.stop().await?,
                1 => running.process().kill(),
                _ => _ = running.start_child(Child::process("fails", |_| async { Err::<(), ()>(()) })).await,
            }
            for adder in adders {
                adder.await?;
            }
            ended(&running).await?;
        }
        Ok(())
    }
}

kernel_test! {
    /// A child stops, terminates or kills its own supervisor; and one of which each life fails in being made.
    #[machine("isolation")]
    async fn children_turn_on_their_supervisor() -> Outcome {
        for way in 0..4 {
            let (tell, mut told) = {
                let mailbox = magpie::channel::ProcessMailbox::<SupervisorRef>::new(1)?;
                (mailbox.address(), Some(mailbox))
            };
            let slot = Arc::new(magpie::mutex::Mutex::new(told.take()));
            let rebel = Child::process("rebel", move |_| {
                let slot = slot.clone();
                async move {
                    begin();
                    let Some(mut mailbox) = slot.try_lock().ok().and_then(|mut slot| slot.take()) else { return };
                    let Some(own) = mailbox.receive().await else { return };
                    match way {
                        0 => _ = own.stop().await,
                        1 => own.process().kill(),
                        2 => {
                            for child in own.children().await.unwrap_or_default() {
                                let _ = own.terminate(child.id).await;
                            }
                        }
                        _ => while own.start_child(Child::process("never", |_| -> core::future::Ready<()> { panic!("on purpose") })).await.is_ok() {},
                    }
                    pending::<()>().await;
                }
            });
            let supervisor = Supervisor::one_for_one()
                .restarts(20, Duration::MAX)
                .backoff(Backoff::NONE)
                .child(Child::process("beside", wait))
                .child(rebel.within(Duration::ZERO).transient());
            let running = started(supervisor)?;
            tell.send(running.clone()).map_err(|_| Failure("the rebel is gone".into()))?;
            drop(tell);
            if way == 2 {
                until(|| living() == 0, "one is not terminated").await?;
                running.stop().await?;
            }
            ended(&running).await?;
            ensure_eq!(running.process().has_failed(), way == 3, "whether it has failed");
        }
        Ok(())
    }
}

kernel_test! {
    /// A supervisor without children is killed while it runs, at any moment: it is listed no more, and who asks it is told.
    #[machine("isolation")]
    async fn one_without_children_is_killed() -> Outcome {
        for round in 0..amount("kills", 4000) {
            let running = started(Supervisor::one_for_one())?;
            let asker = {
                let running = running.clone();
                sched::spawn(async move { while running.children().await.is_ok() {} })?
            };
            sched::yield_now().await;
            for _ in 0..(round * 7919) % 20_011 {
                core::hint::spin_loop();
            }
            running.process().kill();
            asker.await?;
            ended(&running).await?;
        }
        Ok(())
    }
}
