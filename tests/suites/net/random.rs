//! Random numbers: whoever draws has others, on whatever core; and what the machine has given for a seed is said.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use magpie::actor::{Actor, Config as Executors, Context, Executor, Receive};
use magpie::machine;
use magpie::sched::{Spawn, yield_now};
use magpie_net::Config;
use magpie_random::{Quality, Random, stir};
use magpie_tests::{Failure, amount, ensure, ensure_eq, kernel_test};

/// The first numbers of many generators.
async fn draw(generators: usize) -> Result<Vec<u64>, Failure> {
    let mut drawn = Vec::new();
    drawn.try_reserve_exact(generators * 4)?;
    for _ in 0..generators {
        let mut random = Random::new();
        for _ in 0..4 {
            drawn.push(random.bits());
        }
        stir(b"known to everybody", Quality::Guessable);
        yield_now().await;
    }
    Ok(drawn)
}

async fn draw_for_ever() {
    loop {
        stir(&Random::new().bits().to_le_bytes(), Quality::Guessable);
        yield_now().await;
    }
}

struct Drawer(Random);

impl Actor for Drawer {}

struct Draw;

impl Receive<Draw> for Drawer {
    type Reply = u64;

    fn receive(&mut self, _: Draw, _: &mut Context<Self>) -> u64 {
        self.0.bits()
    }
}

kernel_test! {
    /// Processes on all cores make generators all at once, and stir, and are killed meanwhile: no two draw the same.
    async fn no_two_generators_draw_the_same() -> Outcome {
        let mut drawers = Vec::new();
        for _ in 0..2 * machine::cores() {
            drawers.push(Spawn::new().start(draw(amount("generators", 300) as usize))?);
            let killed = Spawn::new().start(draw_for_ever())?;
            yield_now().await;
            killed.process().kill();
        }
        let mut all = BTreeSet::new();
        let mut count = 0;
        for drawer in drawers {
            let drawn = drawer.await??;
            count += drawn.len();
            all.extend(drawn);
        }
        // Of 64 bits each, so that two of them being equal by chance is out of the question.
        ensure_eq!(all.len(), count, "different numbers");
        let ones: u64 = all.iter().map(|number| u64::from(number.count_ones())).sum();
        let (bits, off) = (64 * count as u64, ones.abs_diff(32 * count as u64));
        // Six standard deviations, which are half of the root.
        ensure!(off < 3 * bits.isqrt(), "{ones} of {bits} bits are ones");
        Ok(())
    }
}

kernel_test! {
    /// An actor has one of its own.
    async fn actors_draw() -> Outcome {
        let executor = Executor::start(&Executors::default())?;
        let (one, other) = (executor.handle().spawn(Drawer(Random::new()))?, executor.handle().spawn(Drawer(Random::new()))?);
        let mut all = BTreeSet::new();
        for _ in 0..100 {
            all.insert(one.ask(Draw).await?);
            all.insert(other.ask(Draw).await?);
        }
        ensure_eq!(all.len(), 200, "different numbers");
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// An instruction's where the core has one, what the tree gives on `virt`, or the system on the host; the Raspberry Pi's tree that is used here has nothing.
    async fn the_quality_is_said() -> Outcome {
        let is = Random::new().quality();
        let board = machine::get().map(|machine| machine.board);
        let is_right = match board {
            _ if machine::random_bits().is_some() => is == Quality::Source,
            Some("virt" | "host") => is == Quality::Given,
            _ => is <= Quality::Jitter,
        };
        ensure!(is_right, "{is:?} on {board:?}");
        magpie::log::text!("{is:?}");
        ensure_eq!(Random::at_least(is).map(|random| random.quality()), Ok(is), "at least as good");
        let better = Random::at_least(Quality::Source).map(drop);
        ensure_eq!(better.map_err(|error| error.is), if is == Quality::Source { Ok(()) } else { Err(is) }, "better");
        Ok(())
    }
}

kernel_test! {
    /// Each network begins with other numbers.
    async fn networks_begin_with_other_numbers() -> Outcome {
        let seeds: BTreeSet<_> = (0..50).map(|_| Config::dhcp().seed).collect();
        ensure_eq!(seeds.len(), 50, "different seeds");
        Ok(())
    }
}
