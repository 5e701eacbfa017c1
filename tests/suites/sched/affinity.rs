//! Affinity masks, and limits.

use alloc::vec::Vec;
use magpie::internals::arch::{CoreId, MAX_CORES};
use magpie::machine;
use magpie::sched::{self, Setting, Spawn, SpawnError, yield_now};
use magpie_tests::{ensure, ensure_eq, kernel_test};

kernel_test! {
    /// A pinned process runs on its core and nowhere else, whatever the thieves do.
    async fn a_pinned_process_stays() -> Outcome {
        let mut handles = Vec::new();
        for core in (0..machine::cores()).filter_map(CoreId::new) {
            for _ in 0..8 {
                let handle = Spawn::new().pinned(core).start(async move {
                    for _ in 0..200 {
                        if sched::current_core() != Some(core) {
                            return false;
                        }
                        yield_now().await;
                    }
                    true
                });
                let Ok(handle) = handle else { return Err("a process was not started".into()) };
                handles.push(handle);
            }
        }
        for handle in handles {
            ensure_eq!(handle.await, Ok(true), "whether the process stayed");
        }
        Ok(())
    }
}

kernel_test! {
    /// A mask without any existing core is refused with a typed error.
    async fn a_core_that_does_not_exist_is_refused() -> Outcome {
        let Some(core) = CoreId::new(MAX_CORES - 1) else { return Err("no such number".into()) };
        if machine::cores() == MAX_CORES {
            return Ok(());
        }
        let refused = Spawn::new().pinned(core).start(async {});
        ensure_eq!(refused.err(), Some(SpawnError::NoSuchCore), "the error");
        Ok(())
    }
}

kernel_test! {
    /// At the process limit a spawn is refused, and works again afterwards.
    async fn the_process_limit_is_an_error() -> Outcome {
        let before = sched::setting(Setting::ProcessLimit);
        let least = sched::live_processes().max(16);
        let _ = sched::set_setting(Setting::ProcessLimit, least);
        let mut handles = Vec::new();
        let mut refused = None;
        for _ in 0..=least {
            match sched::spawn(core::future::pending::<()>()) {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    refused = Some(error);
                    break;
                }
            }
        }
        let _ = sched::set_setting(Setting::ProcessLimit, before);
        ensure_eq!(refused, Some(SpawnError::TooManyProcesses), "the error at the limit");
        let Ok(after) = sched::spawn(async {}) else { return Err("spawning does not work afterwards".into()) };
        ensure!(after.await.is_ok(), "a process crashed");
        Ok(())
    }
}
