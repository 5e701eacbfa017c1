//! A behaviour past its slice is suspended, and nobody but its own actor's mail waits for it.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use magpie::actor::{Actor, Config, Context, Executor, Receive};
use magpie::arch::CoreId;
use magpie::{sched, stats};
use magpie_tests::{ensure, ensure_eq, kernel_test};

/// What the actors of a test share.
#[derive(Default)]
struct Seen {
    neighbour: AtomicU64,
    hog: AtomicU64,
    wrong: AtomicU64,
}

struct Hog {
    seen: Arc<Seen>,
    next: u64,
    inside: bool,
}

impl Actor for Hog {}

/// Spin until the neighbour has handled so many.
struct SpinUntil(u64);

impl Receive<SpinUntil> for Hog {
    type Reply = ();

    fn receive(&mut self, message: SpinUntil, _: &mut Context<Self>) {
        self.inside = true;
        while self.seen.neighbour.load(Ordering::Relaxed) < message.0 {
            core::hint::spin_loop();
        }
        self.inside = false;
    }
}

impl Receive<u64> for Hog {
    type Reply = ();

    fn receive(&mut self, message: u64, _: &mut Context<Self>) {
        if self.inside || message != self.next {
            self.seen.wrong.fetch_add(1, Ordering::Relaxed);
        }
        self.next = message + 1;
        self.seen.hog.fetch_add(1, Ordering::Relaxed);
    }
}

/// The last message to a hog: it ends, while others may still lie in the side queue.
struct End;

impl Receive<End> for Hog {
    type Reply = ();

    fn receive(&mut self, _: End, context: &mut Context<Self>) {
        context.end();
    }
}

struct Neighbour(Arc<Seen>);

impl Actor for Neighbour {}

impl Receive<()> for Neighbour {
    type Reply = ();

    fn receive(&mut self, (): (), _: &mut Context<Self>) {
        self.0.neighbour.fetch_add(1, Ordering::Relaxed);
    }
}

fn hog(seen: &Arc<Seen>) -> Hog {
    Hog { seen: seen.clone(), next: 0, inside: false }
}

kernel_test! {
    /// A behaviour spins until its neighbour in the same mailbox, behind it in the same batch, has handled a
    /// hundred messages: without suspension this test could not end. What is sent to it meanwhile is handled
    /// afterwards, in order.
    #[machine("preemption")]
    async fn nobody_waits_for_a_spinning_behaviour() -> Outcome {
        const MESSAGES: u64 = 100;
        let before = stats::worker_total(|worker| worker.detached_behaviours.get());
        let executor = Executor::start(&Config::default())?;
        for round in 0..5 {
            let seen = Arc::new(Seen::default());
            let hog = executor.handle().spawn(hog(&seen))?;
            let neighbour = executor.handle().spawn_beside(hog, Neighbour(seen.clone()))?;
            hog.send(SpinUntil(MESSAGES))?;
            for number in 0..MESSAGES {
                hog.send(number)?;
                neighbour.send(())?;
            }
            sched::out_of_work().await;
            ensure_eq!(seen.neighbour.load(Ordering::Relaxed), MESSAGES, "what the neighbour handled");
            ensure_eq!(seen.hog.load(Ordering::Relaxed), MESSAGES, "what the hog handled afterwards");
            ensure_eq!(seen.wrong.load(Ordering::Relaxed), 0, "what it handled out of order");
            hog.send(SpinUntil(0))?;
            hog.send(MESSAGES)?;
            sched::out_of_work().await;
            ensure_eq!(seen.hog.load(Ordering::Relaxed), MESSAGES + 1, "what it handled after re-attaching");
            ensure_eq!(seen.wrong.load(Ordering::Relaxed), 0, "what it handled out of order, later");
            ensure!(hog.is_alive() && neighbour.is_alive(), "an actor has ended in round {round}");
        }
        let detached = stats::worker_total(|worker| worker.detached_behaviours.get()) - before;
        ensure!(detached >= 5, "only {detached} behaviours were suspended");
        ensure!(executor.handle().table_is_whole(), "the table does not hold each mailbox once");
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// A suspended actor that ends drops what waits for it, once; one whose executor stops does, too.
    #[machine("preemption")]
    async fn a_suspended_actor_ends() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        for _ in 0..5 {
            let seen = Arc::new(Seen::default());
            let hog = executor.handle().spawn(hog(&seen))?;
            let neighbour = executor.handle().spawn_beside(hog, Neighbour(seen.clone()))?;
            hog.send(SpinUntil(10))?.send(0)?.send(End)?;
            for number in 1..10 {
                let _ = hog.send(number);
                neighbour.send(())?;
            }
            neighbour.send(())?;
            sched::out_of_work().await;
            ensure_eq!(seen.hog.load(Ordering::Relaxed), 1, "what the hog handled before its end");
            ensure!(!hog.is_alive(), "the hog is alive");
            ensure_eq!(Arc::strong_count(&seen), 2, "owners: this test and the neighbour");
            neighbour.send(magpie::actor::stop::End)?;
            executor.all_ended().await;
            ensure_eq!(Arc::strong_count(&seen), 1, "owners at the end");
        }
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// Many hogs in few mailboxes, among neighbours that all make progress.
    #[machine("preemption")]
    async fn many_hogs() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let seen = Arc::new(Seen::default());
        let handle = executor.handle();
        const HOGS: u64 = 12;
        for _ in 0..HOGS {
            let hog = handle.spawn_on(CoreId::BOOT, hog(&seen))?;
            let neighbour = handle.spawn_beside(hog, Neighbour(seen.clone()))?;
            hog.send(SpinUntil(HOGS * 10))?;
            for number in 0..10 {
                hog.send(number)?;
                neighbour.send(())?;
            }
        }
        sched::out_of_work().await;
        ensure_eq!(seen.neighbour.load(Ordering::Relaxed), HOGS * 10, "what the neighbours handled");
        ensure_eq!(seen.hog.load(Ordering::Relaxed), HOGS * 10, "what the hogs handled afterwards");
        ensure_eq!(seen.wrong.load(Ordering::Relaxed), 0, "what they handled out of order");
        executor.stop().await;
        Ok(())
    }
}
