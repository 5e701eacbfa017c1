//! What it costs to start a child anew: its end, that its supervisor is told, and the start of its next life.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::ExecutorHandle;
use magpie::arch::CoreId;
use magpie::sched::Spawn;
use magpie::supervise::{Backoff, Child, Supervisor};

use super::Go;
use crate::failed::Failed;
use crate::stopwatch;

/// A child that ends at once, so many times, without a delay.
pub fn prepare_restart(_: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    let rounds = parameters[0];
    Ok(Box::new(move || {
        stopwatch::begin(1);
        let left = AtomicU64::new(rounds);
        let here = Spawn::new().pinned(CoreId::BOOT);
        let child = Child::process("brief", move |mut shutdown| {
            // Relaxed: one life at a time counts.
            let is_last = left.fetch_sub(1, Ordering::Relaxed) == 1;
            async move {
                if is_last {
                    stopwatch::done();
                    shutdown.requested().await;
                }
            }
        });
        // The window's moments are its own memory: as few as allow one restart after the other.
        Supervisor::one_for_one()
            .with(here)
            .backoff(Backoff::NONE)
            .restarts(rounds as usize, Duration::from_nanos(1))
            .child(child)
            .start()
            .map_err(|_| Failed::Memory)?;
        Ok(rounds)
    }))
}
