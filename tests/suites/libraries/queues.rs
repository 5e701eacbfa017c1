//! `heapless`: collections of a fixed size, in messages and between processes.

use alloc::boxed::Box;

use heapless::spsc::Queue;
use heapless::{String, Vec};
use magpie::actor::{Actor, Config, Context, Executor, Receive};
use magpie::sched;
use magpie_tests::{ensure_eq, kernel_test};

/// So many samples, in the message itself: no allocation.
struct Block {
    label: String<8>,
    samples: Vec<u16, 16>,
}

/// It adds them up.
#[derive(Default)]
struct Meter {
    sum: u64,
}

impl Actor for Meter {}

impl Receive<Block> for Meter {
    type Reply = (String<8>, u64);

    fn receive(&mut self, block: Block, _: &mut Context<Self>) -> Self::Reply {
        self.sum += block.samples.iter().map(|&sample| u64::from(sample)).sum::<u64>();
        (block.label, self.sum)
    }
}

kernel_test! {
    async fn a_message_holds_a_vector() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let meter = executor.handle().spawn(Meter::default())?;
        for round in 1..=100_u64 {
            let block = Block { label: "volts".try_into()?, samples: (0..16).collect() };
            let (label, sum) = meter.ask(block).await?;
            ensure_eq!((label.as_str(), sum), ("volts", round * 120), "the answer");
        }
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    async fn a_queue_connects_two_processes() -> Outcome {
        let queue: &'static mut Queue<u32, 8> = Box::leak(Box::new(Queue::new()));
        let (mut producer, mut consumer) = queue.split();
        let produces = sched::spawn(async move {
            for number in 0..10_000 {
                while producer.enqueue(number).is_err() {
                    sched::yield_now().await;
                }
            }
        })?;
        for expected in 0..10_000 {
            let number = loop {
                match consumer.dequeue() {
                    Some(number) => break number,
                    None => sched::yield_now().await,
                }
            };
            ensure_eq!(number, expected, "a number");
        }
        produces.await?;
        Ok(())
    }
}
