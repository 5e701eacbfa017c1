//! With the heap used up, what cannot be done is given back to whoever wanted it, and nothing else is lost.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use magpie::actor::{Actor, Config, Context, Executor, NotSpawned, Receive, SendError, StartError};
use magpie::arch::CoreId;
use magpie::sched::{self, Priority, Spawn};
use magpie_tests::{Changed, Failure, HeapExhauster, ensure, ensure_eq, kernel_test};

#[derive(Default)]
struct Heard {
    messages: AtomicU64,
    wrong: AtomicU64,
}

struct Listener {
    heard: Arc<Heard>,
    next: u64,
}

impl Actor for Listener {}

impl Receive<u64> for Listener {
    type Reply = ();

    fn receive(&mut self, message: u64, _: &mut Context<Self>) {
        self.heard.messages.fetch_add(1, Ordering::Relaxed);
        self.heard.wrong.fetch_add(u64::from(message != self.next), Ordering::Relaxed);
        self.next = message + 1;
    }
}

/// A message that needs a block of its own.
struct Large([u64; LARGE_WORDS]);

/// More than fits into an envelope.
const LARGE_WORDS: usize = 200;

impl Receive<Large> for Listener {
    type Reply = ();

    fn receive(&mut self, _: Large, _: &mut Context<Self>) {
        self.heard.messages.fetch_add(1, Ordering::Relaxed);
    }
}

kernel_test! {
    /// A send that would need memory returns the message; those before it and after it arrive, in order.
    #[machine("the kernel's heap")]
    async fn a_send_without_memory_gives_the_message_back() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let heard = Arc::new(Heard::default());
        // Its mailbox stays on the first core, which its worker does not get while this sends.
        let listener = executor.handle().spawn_pinned(CoreId::BOOT, Listener { heard: heard.clone(), next: 0 })?;
        let _whole_turns = Changed::no_preemption()?;
        let sender = Spawn::new().pinned(CoreId::BOOT).priority(Priority::Max).start(async move {
            let exhauster = HeapExhauster::everything(16);
            let mut sent = 0_u64;
            let refused = loop {
                match listener.send(sent) {
                    Ok(_) if sent < 10_000_000 => sent += 1,
                    Ok(_) => return Err(Failure("the mailbox grew without memory".into())),
                    Err(error) => break error,
                }
            };
            ensure!(refused == SendError::OutOfMemory(sent), "message {sent} was refused: {refused:?}");
            let mut large = 0;
            let content = loop {
                match listener.send(Large([sent; LARGE_WORDS])) {
                    Err(SendError::OutOfMemory(Large(content))) => break content,
                    // Another core that falls asleep leaves its free blocks to all.
                    Ok(_) if large < 100_000 => large += 1,
                    _ => return Err(Failure("a large message was sent without memory".into())),
                }
            };
            ensure!(content == [sent; LARGE_WORDS], "a large message came back changed");
            drop(exhauster);
            listener.send(sent)?;
            listener.send(Large(content)).map_err(|_| Failure("no memory after all was given back".into()))?;
            Ok(sent + large + 2)
        })?;
        let Ok(sent) = sender.await else { return Err("the sender crashed".into()) };
        sched::out_of_work().await;
        ensure_eq!(heard.messages.load(Ordering::Relaxed), sent?, "messages that arrived");
        ensure_eq!(heard.wrong.load(Ordering::Relaxed), 0, "messages out of order");
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// An actor that cannot be started is given back, and so is an executor's start refused; what runs goes on.
    #[machine("the kernel's heap")]
    async fn an_actor_without_memory_is_given_back() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let heard = Arc::new(Heard::default());
        let _whole_turns = Changed::no_preemption()?;
        let exhauster = HeapExhauster::everything(16);
        // Cells that are free already may do for a few.
        let mut started = 0;
        let refused = loop {
            match executor.handle().spawn(Listener { heard: heard.clone(), next: 42 }) {
                Ok(_) if started < 100_000 => started += 1,
                Ok(_) => break None,
                Err(error) => break Some(error),
            }
        };
        let Some(NotSpawned::OutOfMemory(actor)) = refused else {
            return Err(Failure("actors were started without memory".into()));
        };
        ensure_eq!(actor.next, 42, "the state that came back");
        let second = Executor::start(&Config::default());
        ensure!(matches!(second, Err(StartError::OutOfMemory)), "an executor was started without memory");
        drop(exhauster);
        executor.handle().spawn(actor).map_err(|_| "no memory after all was given back")?.send(42_u64)?;
        sched::out_of_work().await;
        ensure_eq!(heard.messages.load(Ordering::Relaxed), 1, "messages that arrived");
        executor.stop().await;
        Ok(())
    }
}
