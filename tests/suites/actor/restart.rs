//! Executors are started and stopped without a leak.

use magpie::actor::{Actor, Config, Context, Executor, Outcome as After, Receive};
use magpie::mem::heap::HEAP;
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
        magpie::sched::out_of_work().await;
        for executor in executors {
            ensure!(executor.stop().await == 0, "messages were left over");
        }
        Ok(())
    }
}
