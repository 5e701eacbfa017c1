//! Traces: what a core has done is written down once, and only while somebody wants it; what is rare always is.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use magpie::arch::CoreId;
use magpie::internals::sync::Reading;
use magpie::internals::trace::{Event, KEPT, Kind, ring, set_tracing};
use magpie::sched::{self, Spawn, yield_now};
use magpie::stats::Activity;
use magpie::time::Instant;
use magpie::{machine, stats, time, trace};
use magpie_tests::{ensure, ensure_eq, kernel_test};

/// Turns that are given up: few enough for all that happens meanwhile to be kept.
const TURNS: usize = 20;

/// The events about `subject` since that time on all cores that are still kept. Its number may have been another's before.
fn events_of(subject: u64, since: Instant) -> Vec<Event> {
    let cores = (0..machine::cores()).filter_map(CoreId::new);
    let kept = |core| {
        let written = ring(core).written();
        (written.saturating_sub(KEPT as u64)..written).filter_map(move |number| {
            match ring(core).read(number) {
                Reading::Words(words) => Event::decode(number, words),
                _ => None,
            }
        })
    };
    cores.flat_map(kept).filter(|event| event.subject == subject && event.at >= since.ticks()).collect()
}

fn count(events: &[Event], kind: Kind) -> usize {
    events.iter().filter(|event| event.kind == kind).count()
}

/// Starts a process that yields; its number, once it has ended.
async fn yields() -> Option<u64> {
    let started = Spawn::new().pinned(CoreId::BOOT).start(async {
        for _ in 0..TURNS {
            yield_now().await;
        }
    });
    let handle = started.ok()?;
    // Kept, so that its number is nobody else's.
    let process = handle.process().clone();
    handle.await.ok()?;
    Some(process.id() as u64)
}

kernel_test! {
    /// Each turn of a process is one event, whichever way it ended; its start is one.
    async fn every_turn_is_written_down_once() -> Outcome {
        let begin = Instant::now();
        set_tracing(true);
        let number = yields().await;
        set_tracing(false);
        let Some(number) = number else { return Err("it did not run".into()) };
        let events = events_of(number, begin);
        ensure_eq!(count(&events, Kind::Spawned), 1, "starts");
        ensure_eq!(count(&events, Kind::Yielded), TURNS, "yields");
        // On a host that stands still one may be suspended before it yields: that turn goes on, and is written down when it ends.
        ensure_eq!(count(&events, Kind::Suspended), count(&events, Kind::Resumed), "suspensions");
        ensure_eq!(count(&events, Kind::Done), 1, "ends");
        // It may have been started from another core.
        let turns: Vec<_> = events.iter().filter(|event| event.kind != Kind::Spawned).collect();
        let mut ordered = true;
        turns.windows(2).for_each(|pair| ordered &= pair[0].at <= pair[1].at);
        ensure!(ordered, "turns of one core are not in order");
        Ok(())
    }
}

kernel_test! {
    /// A turn that is suspended and goes on is one turn all the same, whose end is written down once.
    #[machine("preemption")]
    async fn a_suspended_turn_ends_once() -> Outcome {
        const LONG: usize = 5;
        let begin = Instant::now();
        let done = Arc::new(AtomicBool::new(false));
        let pinned = Spawn::new().pinned(CoreId::BOOT);
        let seen = done.clone();
        set_tracing(true);
        let waits = pinned.start(async move {
            while !seen.load(Ordering::Relaxed) {
                yield_now().await;
            }
        });
        let hog = pinned.start(async move {
            let number = sched::current_process().map_or(0, |process| process.id() as u64);
            for turn in 0..LONG {
                while count(&events_of(number, begin), Kind::Suspended) <= turn {}
                yield_now().await;
            }
            let events = events_of(number, begin);
            done.store(true, Ordering::Relaxed);
            events
        });
        let (Ok(waits), Ok(hog)) = (waits, hog) else { return Err("one did not start".into()) };
        let (events, others) = (hog.await, waits.await);
        set_tracing(false);
        let Ok(events) = events else { return Err("the hog crashed".into()) };
        ensure!(others.is_ok(), "the other crashed");
        ensure_eq!(count(&events, Kind::Yielded), LONG, "ends of {LONG} turns");
        ensure!(count(&events, Kind::Suspended) >= LONG, "not every turn was suspended: {events:?}");
        ensure_eq!(count(&events, Kind::Suspended), count(&events, Kind::Resumed), "suspensions");
        Ok(())
    }
}

kernel_test! {
    /// After a trace no turn is written down any more, and what took longest is known as before.
    async fn nothing_is_written_down_unasked() -> Outcome {
        set_tracing(true);
        ensure!(yields().await.is_some(), "it did not run");
        set_tracing(false);
        // Each core sees that at its next turn.
        ensure!(yields().await.is_some(), "it did not run");
        let begin = Instant::now();
        let Some(number) = yields().await else { return Err("it did not run".into()) };
        let events = events_of(number, begin);
        ensure_eq!(count(&events, Kind::Yielded), 0, "turns");
        ensure_eq!(count(&events, Kind::Spawned) + count(&events, Kind::Done), 0, "starts and ends");
        ensure!(stats::core(CoreId::BOOT).longest_turn.get().is_some(), "no turn is the longest");
        Ok(())
    }
}

kernel_test! {
    /// While a trace is on, what goes by between turns is counted as the kernel's, and is a part of the time spent running.
    async fn what_goes_by_between_turns_is_counted() -> Outcome {
        let boot = stats::core(CoreId::BOOT);
        let both = || (boot.kernel.get(), boot.time.ticks(Activity::Running));
        ensure!(yields().await.is_some(), "it did not run");
        let (unasked, _) = both();
        ensure!(yields().await.is_some(), "it did not run");
        ensure_eq!(both().0, unasked, "ticks without a trace");
        set_tracing(true);
        let (kernel, running) = both();
        for _ in 0..TURNS {
            ensure!(yields().await.is_some(), "it did not run");
        }
        let (kernel, running) = (both().0 - kernel, both().1 - running);
        set_tracing(false);
        ensure!(kernel > 0, "nothing goes by between {TURNS} times {TURNS} turns");
        ensure!(kernel < running, "{kernel} ticks between turns, of {running}");
        Ok(())
    }
}

kernel_test! {
    /// A mark of the application's is there, with its number and value, while a trace is on, and not otherwise.
    async fn marks_are_kept_while_a_trace_is_on() -> Outcome {
        const NUMBER: u64 = 0x6d61_676b;
        let begin = Instant::now();
        trace::mark(NUMBER, 1);
        set_tracing(true);
        trace::mark(NUMBER, 2);
        set_tracing(false);
        trace::mark(NUMBER, 3);
        let values: Vec<u32> = events_of(NUMBER, begin).iter().map(|event| event.value).collect();
        ensure_eq!(values, [2], "marks");
        Ok(())
    }
}

kernel_test! {
    /// The flight recorder has a suspension and a resumption although no trace is on.
    #[machine("preemption")]
    async fn what_is_rare_is_always_written_down() -> Outcome {
        let begin = Instant::now();
        let free = Arc::new(AtomicBool::new(false));
        let seen = free.clone();
        let pinned = Spawn::new().pinned(CoreId::BOOT);
        let hog = pinned.start(async move {
            while !seen.load(Ordering::Relaxed) {
                core::hint::spin_loop();
            }
        });
        let Ok(hog) = hog else { return Err("the hog was not started".into()) };
        let number = hog.process().id() as u64;
        let neighbour = pinned.start(async move {
            yield_now().await;
            free.store(true, Ordering::Relaxed);
        });
        let Ok(neighbour) = neighbour else { return Err("the neighbour was not started".into()) };
        ensure!(neighbour.await.is_ok() && hog.await.is_ok(), "one of them crashed");
        let events = events_of(number, begin);
        ensure!(count(&events, Kind::Suspended) > 0, "no suspension was written down: {events:?}");
        ensure!(count(&events, Kind::Resumed) > 0, "no resumption was written down: {events:?}");
        ensure_eq!(count(&events, Kind::Suspended), count(&events, Kind::Resumed), "suspensions");
        Ok(())
    }
}

/// How many thefts were counted, and how much was written into each core's ring, at a time when nobody steals: a theft is written down before it is
/// counted, and what an earlier test has left may still be stolen.
async fn thefts_so_far() -> (u64, Vec<u64>) {
    const A_WHILE: Duration = Duration::from_millis(2);
    loop {
        let counted = stats::total(|core| core.processes_stolen.get());
        time::sleep(A_WHILE).await;
        let written =
            (0..machine::cores()).filter_map(CoreId::new).map(|core| ring(core).written()).collect();
        time::sleep(A_WHILE).await;
        if stats::total(|core| core.processes_stolen.get()) == counted {
            return (counted, written);
        }
    }
}

kernel_test! {
    /// Thefts of processes in the rings are as many as the counters say, from other cores than the thief.
    async fn thefts_are_those_that_are_counted() -> Outcome {
        let (before, from) = thefts_so_far().await;
        let mut handles = Vec::new();
        for _ in 0..4 * machine::cores() {
            let Ok(handle) = sched::spawn(async {
                for _ in 0..TURNS {
                    (0..10_000).for_each(|_| core::hint::spin_loop());
                    yield_now().await;
                }
            }) else {
                return Err("no process was started".into());
            };
            handles.push(handle);
        }
        for handle in handles {
            ensure!(handle.await.is_ok(), "one crashed");
        }
        let (after, to) = thefts_so_far().await;
        let (mut thefts, mut lost, mut own) = (0, 0, 0);
        let cores = (0..machine::cores()).filter_map(CoreId::new);
        for (core, (from, to)) in cores.zip(from.into_iter().zip(to)) {
            for number in from..to {
                match ring(core).read(number) {
                    Reading::Words(words) => {
                        let event = Event::decode(number, words).filter(|event| event.kind == Kind::Stolen);
                        thefts += u64::from(event.is_some());
                        own += u64::from(event.is_some_and(|event| event.value as usize == core.index()));
                    }
                    _ => lost += 1,
                }
            }
        }
        ensure_eq!(own, 0, "thefts from itself");
        let counted = after - before;
        ensure!(thefts <= counted + lost, "{thefts} thefts were written down, {counted} counted");
        if lost == 0 {
            ensure_eq!(thefts, counted, "thefts");
        }
        Ok(())
    }
}
