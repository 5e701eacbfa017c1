//! What an actor costs that waits.

use alloc::vec::Vec;

use magpie::actor::{Actor, Addr, Config, Context, Executor, Receive};
use magpie::internals::mem::heap::HEAP;
use magpie::sched;
use magpie_tests::{amount, ensure, ensure_eq, kernel_test};

/// A state of 16 bytes.
struct Dormant {
    handled: u64,
    number: u64,
}

impl Actor for Dormant {}

impl Receive<()> for Dormant {
    type Reply = ();

    fn receive(&mut self, (): (), context: &mut Context<Self>) {
        self.handled += 1;
        if self.handled == 2 && self.number.is_multiple_of(2) {
            context.end();
        }
    }
}

/// State, word, and its share of what the heap needs: the goal is 64, two words are the state.
const MOST_BYTES: usize = 32;

kernel_test! {
    /// A million idle actors, or as many as the boot argument `actors` says: each was started once, and costs
    /// its state and one word, and a little for the chunk it lies in.
    #[machine("the kernel's heap")]
    async fn a_million_idle_actors() -> Outcome {
        let count = amount("actors", 1_000_000) as usize;
        let executor = Executor::start(&Config::default())?;
        let mut actors: Vec<Addr<Dormant>> = Vec::new();
        actors.try_reserve_exact(count)?;
        let (before, _) = HEAP.usage();
        for number in 0..count as u64 {
            let actor = executor.handle().spawn(Dormant { handled: 0, number })?;
            actor.send(())?;
            actors.push(actor);
            if number % 4096 == 0 {
                sched::yield_now().await;
            }
        }
        sched::out_of_work().await;
        let (after, _) = HEAP.usage();
        let each = after.saturating_sub(before) / count;
        ensure_eq!(executor.handle().live_actors(), count as u64, "actors that live");
        magpie::log::text!("{each} bytes for each of {count} idle actors");
        ensure!(each <= MOST_BYTES, "{each} bytes for each idle actor");
        // They can be woken, and ended one by one.
        for actor in &actors {
            actor.send(())?;
        }
        sched::out_of_work().await;
        ensure_eq!(executor.handle().live_actors(), count as u64 / 2, "actors that live after the second message");
        executor.stop().await;
        Ok(())
    }
}
