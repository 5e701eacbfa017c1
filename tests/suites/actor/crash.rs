//! A behaviour that panics or faults ends its actor alone.

use alloc::sync::Arc;
use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering};

use magpie::actor::{Actor, Config, Context, Executor, Hook, NotSpawned, Receive, StaticActor};
use magpie::arch::CoreId;
use magpie::{sched, stats};
use magpie_tests::{ensure, ensure_eq, kernel_test};

struct Fragile(Arc<AtomicU64>);

/// What a hook adds that must not run after a crash.
const STOPPED: u64 = 1_000_000_000;

impl Actor for Fragile {
    fn stopped() -> Option<Hook<Self>> {
        Some(|actor, _| _ = actor.0.fetch_add(STOPPED, Ordering::Relaxed))
    }
}

struct Panic;
struct BadAccess;
struct Descend;

impl Receive<u64> for Fragile {
    type Reply = ();

    fn receive(&mut self, message: u64, _: &mut Context<Self>) {
        self.0.fetch_add(message, Ordering::Relaxed);
    }
}

impl Receive<Panic> for Fragile {
    type Reply = ();

    fn receive(&mut self, _: Panic, _: &mut Context<Self>) {
        if black_box(true) {
            panic!("on purpose");
        }
    }
}

impl Receive<BadAccess> for Fragile {
    type Reply = ();

    fn receive(&mut self, _: BadAccess, _: &mut Context<Self>) {
        let nowhere = black_box(8_usize) as *const u64;
        // SAFETY: deliberately not: nothing is mapped there, and the actor is to be ended for it.
        self.0.fetch_add(unsafe { nowhere.read_volatile() }, Ordering::Relaxed);
    }
}

fn descend(depth: u64) -> u64 {
    let frame = black_box([depth; 64]);
    if black_box(depth) == u64::MAX { 0 } else { descend(depth + 1) + frame[(depth % 64) as usize] }
}

impl Receive<Descend> for Fragile {
    type Reply = ();

    fn receive(&mut self, _: Descend, _: &mut Context<Self>) {
        self.0.fetch_add(descend(black_box(0)), Ordering::Relaxed);
    }
}

kernel_test! {
    /// Its mail is dropped, senders are told; its neighbours in the mailbox lose nothing.
    #[machine("isolation")]
    async fn a_crash_ends_its_actor_alone() -> Outcome {
        const MESSAGES: u64 = 100;
        let executor = Executor::start(&Config::default())?;
        let handle = executor.handle();
        let before = stats::worker_total(|worker| worker.actors_crashed.get());
        let mut rounds = 0;
        for way in 0..9 {
            let sum = Arc::new(AtomicU64::new(0));
            let fragile = handle.spawn(Fragile(sum.clone()))?;
            let neighbour = handle.spawn_beside(fragile, Fragile(sum.clone()))?;
            neighbour.send(1_u64)?;
            match way % 3 {
                0 => _ = fragile.send(Panic)?,
                1 => _ = fragile.send(BadAccess)?,
                _ => _ = fragile.send(Descend)?,
            }
            for _ in 1..MESSAGES {
                // The actor may have crashed by now.
                let _ = fragile.send(1_000_000_u64);
                neighbour.send(1_u64)?;
            }
            sched::out_of_work().await;
            ensure_eq!(sum.load(Ordering::Relaxed), MESSAGES, "what the neighbour was sent");
            ensure!(fragile.send(1_u64).is_err(), "an actor that crashed was sent a message");
            ensure!(neighbour.is_alive(), "the neighbour ended, too");
            rounds += 1;
        }
        let crashed = stats::worker_total(|worker| worker.actors_crashed.get()) - before;
        ensure_eq!(crashed, rounds, "actors that crashed");
        ensure_eq!(handle.live_actors(), rounds, "actors that live");
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// Memory that a crash has freed belongs to whoever is spawned next; storage of the user's own, to a successor.
    #[machine("isolation")]
    async fn the_storage_of_a_crashed_actor_is_used_again() -> Outcome {
        static KEPT: StaticActor<Fragile> = StaticActor::new();
        let executor = Executor::start(&Config::default())?;
        let handle = executor.handle();
        let sum = Arc::new(AtomicU64::new(0));
        for _ in 0..10 {
            let fragile = handle.spawn_on(CoreId::BOOT, Fragile(sum.clone()))?;
            fragile.send(Panic)?;
            sched::out_of_work().await;
            let refused = handle.respawn(fragile, Fragile(sum.clone()));
            ensure!(matches!(refused, Err(NotSpawned::GivenBack(_))), "of one that crashed: {:?}", refused.err());
        }
        let mut kept = KEPT.start(handle, Fragile(sum.clone()))?;
        for life in 1..10 {
            let refused = handle.respawn(kept, Fragile(sum.clone()));
            ensure!(matches!(refused, Err(NotSpawned::NotFree(_))), "of one that lives: {:?}", refused.err());
            match life % 3 {
                0 => _ = kept.send(Panic)?,
                1 => _ = kept.send(BadAccess)?,
                _ => _ = kept.send(Descend)?,
            }
            sched::out_of_work().await;
            let successor = handle.respawn(kept, Fragile(sum.clone()))?;
            let refused = handle.respawn(kept, Fragile(sum.clone()));
            ensure!(matches!(refused, Err(NotSpawned::GivenBack(_))), "it has two: {:?}", refused.err());
            ensure!(kept.send(1_u64).is_err(), "an address of one that crashed is answered");
            successor.send(1_u64)?;
            sched::out_of_work().await;
            ensure_eq!(sum.load(Ordering::Relaxed), life, "what the successors were sent");
            kept = successor;
        }
        executor.stop().await;
        Ok(())
    }
}
