//! Executors are started and stopped without a leak.

use magpie::actor::{Actor, Config, Context, Executor, Outcome as After, Receive, VictimRule};
use magpie::mem::heap::HEAP;
use magpie::{sched, stats};
use magpie_tests::{amount, ensure, kernel_test};

struct Echo;

impl Actor for Echo {}

impl Receive<u64> for Echo {
    fn receive(&mut self, left: u64, context: &mut Context<Self>) -> After {
        if left > 0 {
            let _ = context.address().send(left - 1);
        }
        After::Continue
    }
}

kernel_test! {
    /// After the first few, a thousand executors leave the heap as they found it.
    #[machine("the kernel's heap")]
    async fn a_thousand_executors_at_constant_heap() -> Outcome {
        // Each wakes every core twice, which takes its time where those share few cores of a host.
        let rounds = amount("restarts", if magpie::machine::cores() <= 8 { 1000 } else { 200 });
        let mut settled = 0;
        for round in 0..rounds {
            if round == 50 {
                settled = HEAP.usage().0;
            }
            let executor = Executor::start(&Config::default())?;
            for _ in 0..4 {
                executor.handle().spawn(Echo)?.send(3_u64)?;
            }
            executor.stop().await;
        }
        let end = HEAP.usage().0;
        ensure!(end <= settled + 4096, "the heap grew from {settled} to {end} bytes");
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
        let few = Config { mailboxes: Some(magpie::machine::cores()), ..Config::default() };
        let never = Config { victim: VictimRule::None, ..Config::default() };
        for config in [&few, &never] {
            let executor = Executor::start(config)?;
            executor.handle().spawn_on(0, Echo)?.send(10_u64)?;
            sched::out_of_work().await;
            executor.stop().await;
        }
        let before = stolen();
        let executor = Executor::start(&Config::default())?;
        while stolen() == before {
            for _ in 0..20 {
                executor.handle().spawn_on(0, Echo)?.send(1_000_u64)?;
            }
            sched::out_of_work().await;
        }
        executor.stop().await;
        Ok(())
    }
}
