//! Executors are started and stopped without a leak.

use core::time::Duration;

use magpie::actor::{Actor, Config, Context, Executor, MailboxVictim, Receive};
use magpie::arch::CoreId;
use magpie::internals::actor::chunk_bytes;
use magpie::internals::arch::cpu;
use magpie::internals::mem::heap::HEAP;
use magpie::time::Instant;
use magpie::{sched, stats, time};
use magpie_tests::{HANGS_AFTER, amount, ensure, kernel_test};

struct Echo;

impl Actor for Echo {}

impl Receive<u64> for Echo {
    type Reply = ();

    fn receive(&mut self, left: u64, context: &mut Context<Self>) {
        if left > 0 {
            let _ = context.address().send(left - 1);
        }
    }
}

/// Keeps its worker for so many microseconds, so that what is behind it waits long enough to be stolen.
struct Slow;

impl Actor for Slow {}

impl Receive<u64> for Slow {
    type Reply = ();

    fn receive(&mut self, microseconds: u64, _: &mut Context<Self>) {
        let began = Instant::now();
        while began.elapsed() < Duration::from_micros(microseconds) {
            cpu::relax();
        }
    }
}

/// A core keeps 512 free cells of a type at most, and these have fewer than 64 bytes.
const MOST_CHUNK_BYTES_ON_A_CORE: usize = 512 * 64;

kernel_test! {
    /// After the first few, a thousand executors leave the heap as they found it. What is counted apart are the cells of
    /// actors: an actor may end on another core than it began on, so each core comes to keep some.
    #[machine("the kernel's heap")]
    async fn a_thousand_executors_at_constant_heap() -> Outcome {
        let without_cells = || HEAP.usage().0 - chunk_bytes();
        // Each wakes every core twice, which takes its time where those share few cores of a host.
        let rounds = amount("restarts", if magpie::machine::cores() <= 8 { 1000 } else { 200 });
        let (mut settled, mut chunks) = (0, 0);
        for round in 0..rounds {
            if round == 50 {
                (settled, chunks) = (without_cells(), chunk_bytes());
            }
            let executor = Executor::start(&Config::default())?;
            for _ in 0..4 {
                executor.handle().spawn(Echo)?.send(3_u64)?;
            }
            executor.stop().await;
        }
        // A core that the host has put aside may have what is left of the last executor in hand.
        let is_back = async {
            while without_cells() > settled + 4096 {
                sched::yield_now().await;
            }
        };
        let is_back = time::background_timeout(HANGS_AFTER, is_back).await.is_ok();
        ensure!(is_back, "the heap grew from {settled} to {} bytes", without_cells());
        let grown = chunk_bytes() - chunks;
        let most = magpie::machine::cores() * MOST_CHUNK_BYTES_ON_A_CORE;
        ensure!(grown <= most, "cells of actors grew by {grown} bytes");
        Ok(())
    }
}

kernel_test! {
    /// Several at once do not disturb one another.
    async fn several_executors_at_once() -> Outcome {
        let mut executors = alloc::vec::Vec::new();
        for _ in 0..5 {
            let executor = Executor::start(&Config::default())?;
            for _ in 0..10 {
                executor.handle().spawn(Echo)?.send(100_u64)?;
            }
            executors.push(executor);
        }
        sched::out_of_work().await;
        for executor in executors {
            ensure!(executor.stop().await == 0, "messages were left over");
        }
        Ok(())
    }
}

kernel_test! {
    /// One with as many mailboxes as workers, and one whose workers never steal, leave nothing behind that keeps the
    /// workers of the next from stealing.
    #[cores(2)]
    async fn an_executor_that_cannot_steal_leaves_others_alone() -> Outcome {
        let stolen = || stats::worker_total(|worker| worker.mailboxes_stolen.get());
        let few = Config::default().mailboxes(magpie::machine::cores());
        let never = Config::default().victim(MailboxVictim::None);
        for config in [&few, &never] {
            let executor = Executor::start(config)?;
            executor.handle().spawn_on(CoreId::BOOT, Echo)?.send(10_u64)?;
            sched::out_of_work().await;
            executor.stop().await;
        }
        let before = stolen();
        let executor = Executor::start(&Config::default())?;
        while stolen() == before {
            for _ in 0..20 {
                executor.handle().spawn_on(CoreId::BOOT, Slow)?.send(100_u64)?;
            }
            sched::out_of_work().await;
        }
        executor.stop().await;
        Ok(())
    }
}
