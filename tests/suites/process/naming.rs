//! Names: whose they are, and for how long.

use alloc::format;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use magpie::actor::{Actor, Addr, Config, Context, Executor, Receive, Recipient, stop};
use magpie::arch::CoreId;
use magpie::channel::{ProcessAddr, ProcessMailbox};
use magpie::internals::mem::heap::HEAP;
use magpie::registry::{self, NotFound, RegisterError};
use magpie::sched::{self, Spawn};
use magpie::{machine, time};
use magpie_tests::{Failure, HANGS_AFTER, Outcome, ensure, ensure_eq, kernel_test};

struct Clerk;

impl Actor for Clerk {}

/// Crashes, if it is to.
struct Work(bool);

impl Receive<Work> for Clerk {
    type Reply = u64;

    fn receive(&mut self, work: Work, _: &mut Context<Self>) -> u64 {
        assert!(!work.0, "on purpose");
        7
    }
}

async fn ended(clerk: Addr<Clerk>) -> Outcome {
    let gone = async {
        while clerk.is_alive() {
            sched::yield_now().await;
        }
    };
    time::background_timeout(HANGS_AFTER, gone).await.map_err(|_| Failure("an actor did not end".into()))
}

kernel_test! {
    /// A name is gone with its actor, whatever ends that, and nobody gets it before.
    #[machine("isolation")]
    async fn a_name_is_gone_with_its_actor() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        for round in 0..20 {
            let first = executor.handle().spawn(Clerk)?;
            let other = executor.handle().spawn(Clerk)?;
            registry::register("clerk", first)?;
            registry::register("clerk/work", first.recipient::<Work>())?;
            let found = registry::find::<Addr<Clerk>>("clerk")?;
            ensure_eq!(found.ask(Work(false)).await, Ok(7), "the answer of one who was found");
            registry::find::<Recipient<Work>>("clerk/work")?.send(Work(false))?;
            let taken = registry::register("clerk", other);
            match taken {
                Err(RegisterError::Taken { by, holder }) => {
                    ensure!(by.contains("Clerk"), "{by}");
                    ensure_eq!(holder, first.inspect().map(|seen| seen.id), "the number of who has the name");
                }
                other => return Err(Failure(format!("a name that is taken: {other:?}"))),
            }
            match registry::find::<ProcessAddr<u64>>("clerk") {
                Err(NotFound::OtherType { registered, expected }) => {
                    ensure!(registered.contains("Clerk") && expected.contains("u64"), "{registered}, {expected}");
                }
                other => return Err(Failure(format!("of another type: {:?}", other.map(|_| "found")))),
            }
            if round % 2 == 0 {
                first.send(Work(true))?;
            } else {
                first.send(stop::End)?;
            }
            ended(first).await?;
            ensure_eq!(registry::find::<Addr<Clerk>>("clerk").err(), Some(NotFound::Nobody), "after its end");
            ensure_eq!(registry::register("late", first), Err(RegisterError::Ended), "for one who has ended");
            registry::register("clerk", other)?;
            ensure!(registry::find::<Addr<Clerk>>("clerk")? == other, "the name leads to somebody else");
            ensure!(registry::unregister("clerk") && !registry::unregister("clerk"), "taken back, once");
            ensure_eq!(registry::find::<Addr<Clerk>>("clerk").err(), Some(NotFound::Nobody), "after it was taken back");
        }
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// Of many on all cores that want a name one gets it, and it is free when that one ends.
    async fn one_of_many_gets_a_name() -> Outcome {
        static HELD: AtomicU64 = AtomicU64::new(0);
        let mut processes = Vec::new();
        for number in 0..4 * machine::cores() {
            let core = CoreId::new(number % machine::cores()).unwrap_or(CoreId::BOOT);
            let process = Spawn::new().pinned(core).start(async move {
                let mut held = 0;
                while held < 20 {
                    let mailbox = ProcessMailbox::<u64>::new(1)?;
                    if registry::register("one", mailbox.address()).is_err() {
                        sched::yield_now().await;
                        continue;
                    }
                    let others = HELD.fetch_add(1, Ordering::AcqRel);
                    ensure_eq!(others, 0, "others who have the name");
                    let found = registry::find::<ProcessAddr<u64>>("one")?;
                    sched::yield_now().await;
                    found.send(number as u64)?;
                    HELD.fetch_sub(1, Ordering::AcqRel);
                    held += 1;
                }
                Ok::<(), Failure>(())
            });
            processes.push(process.map_err(|error| Failure(format!("{error}")))?);
        }
        for process in processes {
            process.await??;
        }
        ensure!(!registry::unregister("one"), "somebody has the name who has ended");
        Ok(())
    }
}

kernel_test! {
    /// Those who have ended leave no memory behind.
    async fn names_of_the_dead_leave_no_memory() -> Outcome {
        let before = HEAP.usage().0;
        for number in 0..5000 {
            let mailbox = ProcessMailbox::<u64>::new(1)?;
            registry::register(&format!("process {number}"), mailbox.address())?;
        }
        // Each list was looked through since.
        for number in 0..5000 {
            registry::unregister(&format!("process {number}"));
        }
        let grown = HEAP.usage().0.saturating_sub(before);
        ensure!(grown < 16 * 1024, "{grown} bytes more are in use");
        ensure_eq!(registry::names().count(), 0, "names");
        Ok(())
    }
}

kernel_test! {
    /// What is no name is refused.
    async fn what_is_no_name_is_refused() -> Outcome {
        let mailbox = ProcessMailbox::<u64>::new(1)?;
        ensure_eq!(registry::register("", mailbox.address()), Err(RegisterError::Unfit), "without a letter");
        let longest = "x".repeat(47);
        ensure_eq!(registry::register(&format!("{longest}x"), mailbox.address()), Err(RegisterError::Unfit), "too long");
        registry::register(&longest, mailbox.address())?;
        ensure!(registry::names().any(|name| *name == *longest), "the name is not listed");
        ensure!(registry::unregister(&longest), "the name was lost");
        Ok(())
    }
}
