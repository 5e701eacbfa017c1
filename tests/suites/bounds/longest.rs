//! The longest turn, interrupt, stretch with interrupts masked and postponed preemption of a core are those that there were.

use core::time::Duration;

use magpie::arch::CoreId;
use magpie::internals::sync::PreemptGuard;
use magpie::machine;
use magpie::sched::{Priority, Spawn};
use magpie::stats::{self, CoreStatistics, Stretch};
use magpie::time::{self, Instant};
use magpie_tests::{ensure, ensure_eq, kernel_test};

use crate::{SLACK, needs_counted_time, slice, within};

/// What may come to a stretch at its beginning and at its end: each time a turn of the other virtual cores.
const BOTH_ENDS: Duration = Duration::from_micros(3 * SLACK.as_micros() as u64);
/// How long interrupts may be masked where no other virtual core has turns meanwhile: some 2 µs, with debug assertions.
const MASKED: Duration = Duration::from_micros(20);
/// The same for a crash, or a kill of what runs, which reports with interrupts masked: some 22 µs, with debug assertions.
const MASKED_IN_A_CRASH: Duration = Duration::from_micros(50);

/// How long a stretch was.
fn long(stretch: &Stretch) -> Duration {
    Duration::from_nanos(stretch.nanoseconds())
}

/// Of what is to become the longest, how long it must be.
fn longer_than(found: Option<Stretch>) -> Duration {
    found.map_or(Duration::ZERO, |stretch| long(&stretch)) + slice()
}

fn spin(length: Duration) {
    let end = Instant::now() + length;
    while Instant::now() < end {
        core::hint::spin_loop();
    }
}

/// The core that these tests use, away from the one that runs them where there are several.
fn elsewhere() -> (CoreId, &'static CoreStatistics) {
    let id = CoreId::new(machine::cores() - 1).unwrap_or(CoreId::BOOT);
    (id, stats::core(id))
}

kernel_test! {
    /// A turn that is longer than all before is found with its length, its name, and whose it was.
    async fn the_longest_turn_is_known() -> Outcome {
        needs_counted_time()?;
        let (core, counted) = elsewhere();
        loop {
            let length = longer_than(counted.longest_turn.get());
            let preemptions = counted.preemptions.get();
            let hog = Spawn::new().pinned(core).start(async move { spin(length) })?;
            let process = hog.process().id();
            hog.await?;
            // The balancer looks now and then for something to fetch, which ends a turn in its middle.
            if counted.preemptions.get() != preemptions {
                continue;
            }
            let Some(turn) = counted.longest_turn.get() else { return Err("no turn was counted".into()) };
            ensure!(long(&turn) >= length, "the longest turn is one of {} us", long(&turn).as_micros());
            within(long(&turn), length + BOTH_ENDS, "the longest turn")?;
            ensure_eq!(turn.place, process as u64, "whose turn it was");
            ensure!(turn.name.contains("the_longest_turn_is_known"), "it is called {}", turn.name);
            return Ok(());
        }
    }
}

kernel_test! {
    /// A section that does not let something urgent preempt it is found, from the interrupt on that wanted that.
    async fn the_longest_postponement_is_known() -> Outcome {
        needs_counted_time()?;
        let (core, counted) = elsewhere();
        let length = longer_than(counted.longest_postponement.get());
        let soon = Duration::from_micros(100);
        let urgent = Spawn::new().pinned(core).priority(Priority::High).start(async move { time::sleep(soon).await })?;
        // Once the urgent one sleeps.
        let section = Spawn::new().pinned(core).start(async move {
            let _here = PreemptGuard::new();
            spin(soon + length);
        })?;
        section.await?;
        urgent.await?;
        let Some(found) = counted.longest_postponement.get() else { return Err("none was counted".into()) };
        // The interrupt may come late, by a turn of the other virtual cores.
        ensure!(long(&found) >= length - SLACK * 3 / 2, "the longest one took {} us", long(&found).as_micros());
        within(long(&found), soon + length + BOTH_ENDS, "the longest postponement")?;
        ensure!(found.name.contains("the_longest_postponement_is_known"), "it is called {}", found.name);
        ensure!(found.place != 0, "no place is known");
        Ok(())
    }
}

kernel_test! {
    /// Interrupts and stretches with interrupts masked are counted: short ones, and a handler is such a stretch.
    async fn interrupts_are_short() -> Outcome {
        needs_counted_time()?;
        let (core, counted) = elsewhere();
        // A neighbour, so that one of them is suspended.
        let hogs = [(); 2].map(|()| Spawn::new().pinned(core).start(async { spin(4 * slice()) }));
        for hog in hogs {
            hog?.await?;
        }
        let Some(interrupt) = counted.longest_interrupt.get() else { return Err("no interrupt".into()) };
        let Some(masked) = counted.longest_masked() else { return Err("nothing was masked".into()) };
        magpie::log::text!("interrupt {} ns, masked {} ns in {}", interrupt.nanoseconds(), masked.nanoseconds(), masked.name);
        ensure!(masked.ticks >= interrupt.ticks, "a handler runs masked");
        ensure!(interrupt.ticks > 0 && interrupt.place != 0, "an interrupt takes time, and has a place");
        if machine::cores() > 1 {
            // The turns of the others count, too.
            return Ok(());
        }
        // Other tests of this suite kill.
        let most = if masked.name == "a crash" { MASKED_IN_A_CRASH } else { MASKED };
        within(long(&masked), most, "the longest with interrupts masked")
    }
}
