//! What asking promises that only the booted kernel can show: crashes, and what an ask costs.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering};

use magpie::actor::{Actor, Addr, AskError, Config, Context, Executor, Receive, Reply, Request};
use magpie::internals::mem::heap::HEAP;
use magpie::sched;
use magpie_tests::{Changed, ensure, ensure_eq, kernel_test};

/// Answers numbers, keeps what is asked with `Keep`, and crashes at what is asked with `Crash`.
struct Fragile {
    kept: Vec<Reply<u64>>,
}

impl Actor for Fragile {}

struct Keep;
struct Crash;
struct Fault;

impl Receive<u64> for Fragile {
    type Reply = u64;

    fn receive(&mut self, number: u64, _: &mut Context<Self>) -> u64 {
        number * 2
    }
}

impl Receive<Request<Keep, u64>> for Fragile {
    type Reply = ();

    fn receive(&mut self, request: Request<Keep, u64>, _: &mut Context<Self>) {
        self.kept.push(request.reply);
    }
}

impl Receive<Crash> for Fragile {
    type Reply = u64;

    fn receive(&mut self, _: Crash, _: &mut Context<Self>) -> u64 {
        if black_box(true) {
            panic!("on purpose");
        }
        0
    }
}

impl Receive<Fault> for Fragile {
    type Reply = u64;

    fn receive(&mut self, _: Fault, _: &mut Context<Self>) -> u64 {
        let nowhere = black_box(8_usize) as *const u64;
        // SAFETY: deliberately not: nothing is mapped there, and the actor is to be ended for it.
        unsafe { nowhere.read_volatile() }
    }
}

/// Asks the fragile one what crashes it, and notes what it is told.
struct Curious(Addr<Fragile>, Arc<AtomicU64>);

impl Actor for Curious {}

impl Receive<Crash> for Curious {
    type Reply = bool;

    fn receive(&mut self, crash: Crash, context: &mut Context<Self>) -> bool {
        let then = |curious: &mut Self, told, _: &mut Context<Self>| {
            curious.1.fetch_add(u64::from(told == Err(AskError::Crashed)), Ordering::Relaxed);
        };
        context.ask(self.0, crash, then).is_ok()
    }
}

kernel_test! {
    /// Also to an actor that has asked, and did not wait.
    #[machine("isolation")]
    async fn a_crash_is_told_to_an_actor_that_asked() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let told = Arc::new(AtomicU64::new(0));
        for _ in 0..10 {
            let fragile = executor.handle().spawn(Fragile { kept: Vec::new() })?;
            let curious = executor.handle().spawn(Curious(fragile, told.clone()))?;
            ensure_eq!(curious.ask(Crash).await?, true, "whether it was asked");
        }
        sched::out_of_work().await;
        ensure_eq!(told.load(Ordering::Relaxed), 10, "crashes that were told");
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// The one whose request crashed it, those whose reply was kept, those behind in the mail: all are told,
    /// and nobody else is.
    #[machine("isolation")]
    async fn a_crash_is_told_to_every_asker() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        for round in 0..20 {
            let fragile = executor.handle().spawn(Fragile { kept: Vec::new() })?;
            let neighbour = executor.handle().spawn_beside(fragile, Fragile { kept: Vec::new() })?;
            let spared = neighbour.ask(Keep);
            let kept: Vec<_> = (0..10).map(|_| fragile.ask(Keep)).collect();
            let fatal = if round % 2 == 0 { fragile.ask(Crash) } else { fragile.ask(Fault) };
            let behind: Vec<_> = (0..10_u64).map(|number| fragile.ask(number)).collect();
            ensure_eq!(fatal.await, Err(AskError::Crashed), "the request that crashed it");
            for answer in kept {
                ensure_eq!(answer.await, Err(AskError::Crashed), "a reply that was kept");
            }
            for answer in behind {
                let answer = answer.await;
                ensure!(
                    matches!(answer, Err(AskError::Crashed | AskError::Unanswered | AskError::Ended)),
                    "a request behind the crash: {answer:?}"
                );
            }
            ensure_eq!(neighbour.ask(21_u64).await, Ok(42), "the neighbour's answer");
            neighbour.send(magpie::actor::stop::End)?;
            ensure_eq!(spared.await, Err(AskError::Unanswered), "the neighbour's asker");
        }
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// Once the mailboxes have grown, an ask allocates its slot and nothing else, and gives it back.
    #[machine("the kernel's heap")]
    async fn an_ask_allocates_once() -> Outcome {
        const ASKS: u64 = 100;
        const ROUNDS: u64 = 10;
        // Who handles it, and has buffers that grow, is for the moment to decide.
        const MOST_ROUNDS: u64 = 200;
        // A behaviour that is suspended allocates, too; that is not the ask's doing.
        let _whole_turns = Changed::no_preemption()?;
        let executor = Executor::start(&Config::default())?;
        let actor = executor.handle().spawn(Fragile { kept: Vec::new() })?;
        let (mut exact, mut rounds) = (0, 0);
        while exact < ROUNDS && rounds < MOST_ROUNDS {
            rounds += 1;
            sched::out_of_work().await;
            let (before, (used, _)) = (HEAP.allocations(), HEAP.usage());
            for number in 0..ASKS {
                ensure_eq!(actor.ask(number).await, Ok(number * 2), "the answer");
            }
            let allocations = HEAP.allocations() - before;
            ensure!(allocations >= ASKS, "{allocations} allocations for {ASKS} asks");
            sched::out_of_work().await;
            exact += u64::from(allocations == ASKS && HEAP.usage().0 <= used + 256);
        }
        ensure_eq!(exact, ROUNDS, "rounds with an allocation for each ask and no other, all given back");
        executor.stop().await;
        Ok(())
    }
}
