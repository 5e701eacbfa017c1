//! Priorities, and the bounds of waiting that follow from them.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use magpie::arch::CoreId;
use magpie::internals::sync::SpinLock;
use magpie::sched::{self, Dispatch, Priority, Setting, Spawn, yield_now};
use magpie::time;
use magpie_tests::{Changed, ensure, ensure_eq, kernel_test};

kernel_test! {
    /// On one core, what waits runs in order of priority.
    async fn more_urgent_goes_first() -> Outcome {
        let order = Arc::new(SpinLock::new(Vec::new()));
        let gather = order.clone();
        // A `Max` process starts the others, so that none runs before all wait.
        let starter = Spawn::new().pinned(CoreId::BOOT).priority(Priority::Max).start(async move {
            let mut handles = Vec::new();
            for priority in [Priority::Low, Priority::Normal, Priority::High] {
                let order = gather.clone();
                let body = async move { order.lock().push(priority) };
                handles.push(Spawn::new().pinned(CoreId::BOOT).priority(priority).start(body));
            }
            handles
        });
        let starter = starter.map_err(|error| magpie_tests::Failure(alloc::format!("{error:?}")))?;
        let Ok(handles) = starter.await else { return Err("the starter crashed".into()) };
        for handle in handles {
            let Ok(handle) = handle else { return Err("a process was not started".into()) };
            ensure!(handle.await.is_ok(), "a process crashed");
        }
        ensure_eq!(*order.lock(), [Priority::High, Priority::Normal, Priority::Low], "order of running");
        Ok(())
    }
}

kernel_test! {
    /// Everybody waits as long as the others: those for whom the deque has no room, too.
    async fn more_than_fit_into_a_deque_take_turns() -> Outcome {
        const PROCESSES: usize = 3000;
        const ROUNDS: usize = 3;
        // Nobody steals, and nobody is suspended.
        let _scheme = Changed::new(&[(Setting::Dispatch, Dispatch::PerCore as u64)])?;
        let _whole_turns = Changed::no_preemption()?;
        let order = Arc::new(SpinLock::new(Vec::with_capacity(PROCESSES * ROUNDS)));
        let gather = order.clone();
        // A `Max` process starts the others, so that none runs before all wait.
        let starter = Spawn::new().pinned(CoreId::BOOT).priority(Priority::Max).start(async move {
            let start = |number| {
                let order = gather.clone();
                Spawn::new().start(async move {
                    for _ in 0..ROUNDS {
                        order.lock().push(number);
                        yield_now().await;
                    }
                })
            };
            (0..PROCESSES).map(start).collect::<Result<Vec<_>, _>>()
        })?;
        let Ok(handles) = starter.await else { return Err("the starter crashed".into()) };
        for handle in handles? {
            ensure!(handle.await.is_ok(), "a process crashed");
        }
        let order = order.lock();
        ensure_eq!(order.len(), PROCESSES * ROUNDS, "turns");
        let early = order.iter().enumerate().find(|(turn, number)| turn % PROCESSES != **number);
        ensure!(early.is_none(), "turn and process: {early:?}");
        Ok(())
    }
}

kernel_test! {
    /// `Low` runs once for every 8 `Normal` turns while both wait: never starved, never more.
    async fn low_gets_one_turn_in_nine() -> Outcome {
        const LOW_TURNS: u64 = 100;
        let normal_turns = Arc::new(AtomicU64::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let pinned = Spawn::new().pinned(CoreId::BOOT);
        let mut normals = Vec::new();
        for _ in 0..3 {
            let (turns, stop) = (normal_turns.clone(), stop.clone());
            normals.push(pinned.start(async move {
                while !stop.load(Ordering::Relaxed) {
                    turns.fetch_add(1, Ordering::Relaxed);
                    yield_now().await;
                }
            }));
        }
        let turns = normal_turns.clone();
        let low = pinned.priority(Priority::Low).start(async move {
            yield_now().await;
            let before = turns.load(Ordering::Relaxed);
            for _ in 0..LOW_TURNS {
                yield_now().await;
            }
            turns.load(Ordering::Relaxed) - before
        });
        let Ok(low) = low else { return Err("the low process was not started".into()) };
        let during = low.await;
        stop.store(true, Ordering::Relaxed);
        let Ok(during) = during else { return Err("the low process crashed".into()) };
        for normal in normals.into_iter().flatten() {
            let _ = normal.await;
        }
        let share = sched::setting(Setting::NormalPerLow);
        // This test's own process is `Normal` too, and waits; so the share is exact but for the ends.
        ensure!(
            (LOW_TURNS * (share - 1)..=LOW_TURNS * (share + 1)).contains(&during),
            "{during} normal turns during {LOW_TURNS} low turns; {share} each are promised"
        );
        Ok(())
    }
}

kernel_test! {
    /// Of each priority those that are pinned and the others have turns alike, also where two priorities take turns.
    async fn pinned_ones_and_others_take_turns_at_each_priority() -> Outcome {
        const TURNS: u64 = 2000;
        let _even = Changed::new(&[(Setting::NormalPerLow, 1), (Setting::Dispatch, Dispatch::PerCore as u64)])?;
        let stop = Arc::new(AtomicBool::new(false));
        let turns = Arc::new([const { AtomicU64::new(0) }; 4]);
        let (seen, ends) = (turns.clone(), stop.clone());
        // They begin on the core of who starts them.
        let starter = Spawn::new().pinned(CoreId::BOOT).priority(Priority::High).start(async move {
            let low = Spawn::new().priority(Priority::Low);
            let pinned = Spawn::new().pinned(CoreId::BOOT);
            let kinds = [low, pinned.priority(Priority::Low), pinned, pinned];
            let started: Result<Vec<_>, _> = (kinds.iter().enumerate())
                .map(|(index, kind)| {
                    let (turns, stop) = (seen.clone(), ends.clone());
                    kind.start(async move {
                        while !stop.load(Ordering::Relaxed) {
                            turns[index].fetch_add(1, Ordering::Relaxed);
                            yield_now().await;
                        }
                    })
                })
                .collect();
            while started.is_ok() && seen[..2].iter().map(|turns| turns.load(Ordering::Relaxed)).sum::<u64>() < TURNS {
                time::sleep(Duration::from_millis(1)).await;
            }
            ends.store(true, Ordering::Relaxed);
            started
        })?;
        let Ok(started) = starter.await else { return Err("the starter crashed".into()) };
        for process in started? {
            ensure!(process.await.is_ok(), "a process crashed");
        }
        let had = turns.each_ref().map(|turns| turns.load(Ordering::Relaxed));
        ensure!(had[..2].iter().all(|turns| *turns > TURNS / 4), "turns of low, low and pinned, normal and pinned: {had:?}");
        Ok(())
    }
}

kernel_test! {
    /// Two processes that wake each other through the run-next slot do not starve a third.
    async fn the_run_next_slot_starves_nobody() -> Outcome {
        let stop = Arc::new(AtomicBool::new(false));
        let pinned = Spawn::new().pinned(CoreId::BOOT);
        let mut players = Vec::new();
        for _ in 0..2 {
            let stop = stop.clone();
            players.push(pinned.start(async move {
                while !stop.load(Ordering::Relaxed) {
                    yield_now().await;
                }
            }));
        }
        let third = pinned.start(async {
            for _ in 0..1000 {
                yield_now().await;
            }
        });
        let Ok(third) = third else { return Err("the third process was not started".into()) };
        let ended = third.await;
        stop.store(true, Ordering::Relaxed);
        for player in players.into_iter().flatten() {
            let _ = player.await;
        }
        ensure!(ended.is_ok(), "the third process crashed");
        Ok(())
    }
}

kernel_test! {
    /// Spawning costs the parent reductions: one that does nothing else is asked to yield in the end.
    async fn spawns_are_charged() -> Outcome {
        let turn = sched::setting(Setting::Reductions);
        let (mut spawned, mut children) = (0_u64, Vec::new());
        // A new turn, with all of its reductions.
        yield_now().await;
        while !sched::is_exhausted() && spawned <= turn {
            children.push(sched::spawn(async {})?);
            spawned += 1;
        }
        for child in children {
            ensure!(child.await.is_ok(), "a child crashed");
        }
        ensure!(spawned < turn, "{spawned} spawns did not use up a turn of {turn} reductions");
        Ok(())
    }
}
