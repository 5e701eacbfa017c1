//! Behaviours in a lane that take long together, though none of them does.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Addr, Config, Context, Executor, Receive};
use magpie::sched;
use magpie_tests::{ensure, ensure_eq, kernel_test};

use super::node::spin;

const ACTORS: usize = 8;

/// Hops before the slow ones are sent: the lane has long been open then, and looks at the clock as seldom as it ever does.
const HOPS: u64 = 20_000;

/// Slow messages to each, fewer in all than are delivered between two looks at the clock.
const SLOW: u64 = 7;

/// So many rounds, because a lane is not always open. Where it stays open until it looks at the clock, it is one or two of five in which anything leaves.
const ROUNDS: usize = 8;

#[derive(Default)]
struct Seen {
    slow: AtomicU64,
    /// Cores that have handled one of those.
    cores: AtomicU64,
}

struct Slow {
    seen: Arc<Seen>,
    others: Arc<Vec<Addr<Slow>>>,
}

impl Actor for Slow {}

struct Others(Arc<Vec<Addr<Slow>>>);

impl Receive<Others> for Slow {
    type Reply = ();

    fn receive(&mut self, Others(others): Others, _: &mut Context<Self>) {
        self.others = others;
    }
}

/// Goes round so often; the last one sends what is slow to all.
struct Hop(u64);

impl Receive<Hop> for Slow {
    type Reply = ();

    fn receive(&mut self, Hop(left): Hop, _: &mut Context<Self>) {
        if left > 0 {
            let _ = self.others[left as usize % ACTORS].send(Hop(left - 1));
            return;
        }
        for _ in 0..SLOW {
            for other in self.others.iter() {
                let _ = other.send(Spin);
            }
        }
    }
}

/// Takes a third of a slice.
struct Spin;

impl Receive<Spin> for Slow {
    type Reply = ();

    fn receive(&mut self, _: Spin, _: &mut Context<Self>) {
        let core = sched::current_core().map_or(0, |core| 1 << core.index());
        self.seen.cores.fetch_or(core, Ordering::Relaxed);
        spin(Duration::from_micros(sched::setting(sched::Setting::SliceMicroseconds)) / 3);
        self.seen.slow.fetch_add(1, Ordering::Relaxed);
    }
}

kernel_test! {
    /// Beside an idle core what waits in a lane does not wait there for all that comes before it, each of which is over before a slice is: it
    /// leaves after two looks.
    #[cores(2)]
    #[machine("preemption")]
    async fn slow_mail_leaves_a_lane() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let mut spread = 0;
        for _ in 0..ROUNDS {
            let seen = Arc::new(Seen::default());
            let spawn = || executor.handle().spawn(Slow { seen: seen.clone(), others: Arc::default() });
            let actors: Result<Vec<_>, _> = (0..ACTORS).map(|_| spawn()).collect();
            let actors = Arc::new(actors?);
            for actor in actors.iter() {
                actor.send(Others(actors.clone()))?;
            }
            sched::out_of_work().await;
            actors[0].send(Hop(HOPS))?;
            sched::out_of_work().await;
            ensure_eq!(seen.slow.load(Ordering::Relaxed), SLOW * ACTORS as u64, "slow messages");
            spread += usize::from(seen.cores.load(Ordering::Relaxed).count_ones() > 1);
            for actor in actors.iter() {
                actor.kill()?;
            }
        }
        executor.stop().await;
        ensure!(spread > ROUNDS / 2, "what was slow came to other cores in {spread} of {ROUNDS} rounds");
        Ok(())
    }
}
