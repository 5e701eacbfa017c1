//! Groups: who has subscribed gets what is published, and who has ended costs nothing.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use magpie::actor::{Actor, Config, Context, Executor, Receive, stop};
use magpie::channel::ProcessMailbox;
use magpie::group::{
    Group, Publish, Published, Subscribe, SubscribeMailbox, Unsubscribe, UnsubscribeMailbox,
};
use magpie::internals::mem::heap::HEAP;
use magpie::sched;
use magpie_tests::{amount, ensure, ensure_eq, kernel_test};

/// Adds up what it gets.
struct Adder(Arc<AtomicU64>);

impl Actor for Adder {}

impl Receive<u64> for Adder {
    type Reply = ();

    fn receive(&mut self, number: u64, _: &mut Context<Self>) {
        self.0.fetch_add(number, Ordering::AcqRel);
    }
}

kernel_test! {
    /// Each subscriber gets each publication once, until it has unsubscribed or ended.
    async fn each_subscriber_gets_each_publication() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let handle = executor.handle();
        let group = handle.spawn(Group::<u64>::new())?;
        let sum = Arc::new(AtomicU64::new(0));
        let adders = (0..100).map(|_| handle.spawn(Adder(sum.clone()))).collect::<Result<Vec<_>, _>>()?;
        for adder in adders.iter().chain(&adders[..10]) {
            group.ask(Subscribe(adder.recipient())).await??;
        }
        ensure_eq!(group.ask(Publish(1)).await?, Published { reached: 100, refused: 0 }, "who was reached");
        for adder in &adders[..30] {
            ensure!(group.ask(Unsubscribe(adder.recipient())).await?, "one that has subscribed is not known");
            ensure!(!group.ask(Unsubscribe(adder.recipient())).await?, "one that has unsubscribed is known");
        }
        for adder in &adders[90..] {
            adder.send(stop::End)?;
        }
        while executor.handle().live_actors() > 91 {
            magpie::sched::yield_now().await;
        }
        ensure_eq!(group.ask(Publish(1000)).await?, Published { reached: 60, refused: 0 }, "who was reached of those left");
        ensure!(executor.stop().await < 200, "more was left than there was");
        ensure!(sum.load(Ordering::Acquire) <= 60_100, "somebody has got something twice");
        Ok(())
    }
}

kernel_test! {
    /// Processes subscribe with mailboxes: each gets each publication, until it has unsubscribed, its mailbox is full or dropped, or it has crashed.
    #[machine("isolation")]
    async fn processes_subscribe_with_mailboxes() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let group = executor.handle().spawn(Group::<u64>::new())?;
        let mut first = ProcessMailbox::new(10)?;
        let mut narrow = ProcessMailbox::new(1)?;
        let dropped = ProcessMailbox::new(10)?;
        for address in [first.address(), narrow.address(), dropped.address(), first.address()] {
            group.ask(SubscribeMailbox(address)).await??;
        }
        let mut fragile = ProcessMailbox::new(10)?;
        group.ask(SubscribeMailbox(fragile.address())).await??;
        let crashes = sched::spawn(async move {
            let number: Option<u64> = fragile.receive().await;
            panic!("on purpose, with {number:?}");
        })?;
        ensure_eq!(group.ask(Publish(1)).await?, Published { reached: 4, refused: 0 }, "who was reached");
        ensure!(crashes.await.is_err(), "it has not crashed");
        drop(dropped);
        ensure_eq!(group.ask(Publish(2)).await?, Published { reached: 1, refused: 1 }, "who was reached of those left");
        ensure_eq!((first.receive().await, first.receive().await), (Some(1), Some(2)), "what has come");
        ensure_eq!(narrow.receive().await, Some(1), "what has come where there was room for one");
        ensure!(group.ask(UnsubscribeMailbox(first.address())).await?, "one that has subscribed is not known");
        ensure!(!group.ask(UnsubscribeMailbox(first.address())).await?, "one that has unsubscribed is known");
        // Nobody has an address of it any more.
        ensure_eq!(first.receive().await, None, "what comes after the end");
        ensure_eq!(group.ask(Publish(3)).await?, Published { reached: 1, refused: 0 }, "who is left");
        executor.stop().await;
        ensure_eq!((narrow.receive().await, narrow.receive().await), (Some(3), None), "what has come before the group ended");
        Ok(())
    }
}

kernel_test! {
    /// Thousands come and go: the group keeps nothing of who has ended.
    #[machine("the kernel's heap")]
    async fn who_comes_and_goes_leaves_nothing() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let handle = executor.handle();
        let group = handle.spawn(Group::<u64>::new())?;
        let sum = Arc::new(AtomicU64::new(0));
        let mut settled = 0;
        for round in 0..amount("subscriptions", 4000) {
            let adder = handle.spawn(Adder(sum.clone()))?;
            group.ask(Subscribe(adder.recipient())).await??;
            adder.send(stop::End)?;
            if round == 200 {
                settled = HEAP.usage().0;
            }
        }
        // Of 24 bytes for each, a hundredth.
        let grown = HEAP.usage().0.saturating_sub(settled);
        executor.stop().await;
        ensure!(grown < 16 * 1024, "the heap grew by {grown} bytes");
        Ok(())
    }
}
