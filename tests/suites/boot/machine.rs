//! The machine as boot describes it: every core runs, the clock goes forward everywhere.

use alloc::vec::Vec;

use magpie::arch::CoreId;
use magpie::internals::arch::clock;
use magpie::machine;
use magpie::sched::{self, Spawn};
use magpie_tests::{Failure, ensure, ensure_eq, kernel_test};

kernel_test! {
    /// A process pinned to a core runs there, for each core that boot has counted.
    async fn every_core_runs_processes() -> Outcome {
        let cores: Vec<CoreId> = (0..machine::cores()).filter_map(CoreId::new).collect();
        ensure_eq!(cores.len(), machine::cores(), "cores with a number");
        for core in cores {
            let handle = Spawn::new().pinned(core).start(async { sched::current_core() });
            let Ok(handle) = handle else { return Err(Failure::from("the process was not started")) };
            ensure_eq!(handle.await, Ok(Some(core)), "where the process ran");
        }
        Ok(())
    }
}

kernel_test! {
    /// The counter never goes back, whichever core reads it: each of a chain of processes, on one core after
    /// the other, reads it after its predecessor.
    async fn the_clock_is_one_for_all_cores() -> Outcome {
        let mut last = clock::now();
        for round in 0..20 * machine::cores() {
            let Some(core) = CoreId::new(round % machine::cores()) else { continue };
            let handle = Spawn::new().pinned(core).start(async { clock::now() });
            let Ok(handle) = handle else { return Err(Failure::from("the process was not started")) };
            let Ok(now) = handle.await else { return Err(Failure::from("the process crashed")) };
            ensure!(now >= last, "the clock went back from {last} to {now} on core {round}");
            last = now;
        }
        ensure!(clock::frequency() >= 1_000_000, "the clock ticks less than once a microsecond");
        Ok(())
    }
}

kernel_test! {
    /// No two cores have the same name, and a core is nearest to itself.
    async fn cores_are_told_apart() -> Outcome {
        let Some(machine) = machine::get() else { return Err(Failure::from("boot has described nothing")) };
        let places = &machine.places[..machine.cores];
        for (index, place) in places.iter().enumerate() {
            ensure!(!places[..index].iter().any(|other| other.affinity == place.affinity), "core {index} twice");
        }
        for a in (0..machine.cores).filter_map(CoreId::new) {
            ensure_eq!(machine::distance(a, a), 0, "a core's distance from itself");
            for b in (0..machine.cores).filter_map(CoreId::new) {
                ensure_eq!(machine::distance(a, b), machine::distance(b, a), "a distance there and back");
                ensure!(a == b || machine::distance(a, b) > 0, "two cores at one place");
            }
        }
        Ok(())
    }
}

kernel_test! {
    /// Where the device tree tells of clusters, a core is nearer to its own than to others.
    #[cores(16)]
    async fn clusters_are_told_apart() -> Outcome {
        let Some(machine) = machine::get() else { return Err(Failure::from("boot has described nothing")) };
        let clusters = machine.places[..machine.cores].iter().map(|place| place.cluster).max();
        ensure_eq!(clusters, Some(machine.cores as u32 / 4 - 1), "the last cluster's number, in clusters of four");
        let core = |index| CoreId::new(index).ok_or(Failure::from("no such core"));
        ensure!(
            machine::distance(core(0)?, core(3)?) < machine::distance(core(0)?, core(4)?),
            "core 3 is in the first core's cluster and core 4 is not"
        );
        Ok(())
    }
}
