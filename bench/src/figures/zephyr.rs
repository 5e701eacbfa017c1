//! What Zephyr's `latency_measure` measures, as far as there is the like here: a mutex that is free, what stands for a semaphore
//! with the switch to who waits for it, and a process's life. Yields are in [`process`](super::process), interrupts in
//! [`latency`](super::latency).

use alloc::boxed::Box;

use magpie::actor::ExecutorHandle;
use magpie::arch::CoreId;
use magpie::channel::ProcessMailbox;
use magpie::mutex::Mutex;
use magpie::sched::{self, Spawn};

use super::Go;
use crate::failed::Failed;
use crate::stopwatch;

/// Runs a body in a process on the first core, which says at its end whether it came to that well.
fn measure<F>(rounds: u64, body: impl FnOnce(u64) -> F + Send + 'static) -> Result<Go, Failed>
where
    F: Future<Output = Option<()>> + Send + 'static,
{
    Ok(Box::new(move || {
        stopwatch::begin(1);
        let body = body(rounds);
        let measured = async move {
            if body.await.is_some() {
                stopwatch::done();
            }
        };
        Spawn::new().pinned(CoreId::BOOT).start(measured).map_err(|_| Failed::Memory)?;
        Ok(rounds)
    }))
}

/// To lock and unlock a mutex that nobody else has.
pub fn prepare_free_mutex(_: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    measure(parameters[0], |rounds| async move {
        let mutex = Mutex::new(0_u64);
        for round in 0..rounds {
            *mutex.lock().await.ok()? += round;
        }
        (*mutex.lock().await.ok()? == rounds * rounds.saturating_sub(1) / 2).then_some(())
    })
}

/// A semaphore that switches: who takes it waits until the other has given it. Each of two processes gives and takes in turns, so
/// one operation is a message to a process that waits, and the switch to it.
pub fn prepare_switch(_: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    measure(parameters[0], |rounds| async move {
        let mut mine = ProcessMailbox::<()>::new(1).ok()?;
        let here = mine.address();
        let mut others = ProcessMailbox::<()>::new(1).ok()?;
        let there = others.address();
        let turns = rounds.div_ceil(2);
        let other = Spawn::new().pinned(CoreId::BOOT).start(async move {
            for _ in 0..turns {
                others.receive().await?;
                here.send(()).ok()?;
            }
            Some(())
        });
        for _ in 0..turns {
            there.send(()).ok()?;
            mine.receive().await?;
        }
        other.ok()?.await.ok()?
    })
}

/// To start a process, which ends at once, and to wait for its end.
pub fn prepare_end(_: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    measure(parameters[0], |rounds| async move {
        for _ in 0..rounds {
            sched::spawn(async {}).ok()?.await.ok()?;
        }
        Some(())
    })
}
