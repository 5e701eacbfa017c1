//! `futures-util`: joining, choosing, many at once.

use core::pin::pin;
use core::time::Duration;

use alloc::vec::Vec;

use futures_util::future::{Either, join, join_all, select};
use futures_util::stream::{FuturesUnordered, StreamExt};
use magpie::actor::{Actor, Config, Context, Executor, Receive};
use magpie::{sched, time};
use magpie_tests::{ensure, ensure_eq, kernel_test};

/// It doubles.
struct Doubler;

impl Actor for Doubler {}

impl Receive<u64> for Doubler {
    type Reply = u64;

    fn receive(&mut self, number: u64, _: &mut Context<Self>) -> u64 {
        2 * number
    }
}

kernel_test! {
    async fn both_are_awaited() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let doubler = executor.handle().spawn(Doubler)?;

        let computed = sched::spawn(async { 6 * 7 })?;
        let (number, doubled) = join(computed, doubler.ask(21)).await;
        ensure_eq!((number?, doubled?), (42, 42), "what was awaited");

        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    async fn the_first_is_taken() -> Outcome {
        let never = pin!(core::future::pending::<()>());
        let soon = pin!(time::sleep(Duration::from_millis(1)));
        match select(never, soon).await {
            Either::Left(_) => return Err("it never ends".into()),
            Either::Right(((), _never)) => {}
        }
        Ok(())
    }
}

kernel_test! {
    /// Each has a waker of the library's own, which the kernel keeps and calls.
    async fn many_are_awaited_at_once() -> Outcome {
        let mut answers = FuturesUnordered::new();
        for number in 0..200_u64 {
            answers.push(async move {
                let process = sched::spawn(async move {
                    time::sleep(Duration::from_micros(number * 37 % 1000)).await;
                    number
                });
                match process {
                    Ok(process) => process.await.ok(),
                    Err(_) => None,
                }
            });
        }
        let (mut count, mut sum) = (0, 0);
        while let Some(answer) = answers.next().await {
            count += 1;
            sum += answer.ok_or("a process has no result")?;
        }
        ensure_eq!((count, sum), (200, 199 * 200 / 2), "answers");
        let all = join_all((0..50_u64).map(|number| async move {
            sched::yield_now().await;
            number
        }));
        ensure!(all.await == (0..50).collect::<Vec<_>>(), "the order is another");
        Ok(())
    }
}
