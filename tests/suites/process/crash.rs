//! The mailbox of a process that crashes.

use core::future::{Future, poll_fn};
use core::hint::black_box;
use core::pin::pin;
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::Poll;

use magpie::actor::SendError;
use magpie::channel::{AskError, ProcessMailbox, Reply, Request};
use magpie::internals::mem::heap::HEAP;
use magpie::sched;
use magpie_tests::{Failure, ensure, ensure_eq, kernel_test};

static DROPS: AtomicU64 = AtomicU64::new(0);

/// A message whose loss would be noticed.
struct Precious(u64);

impl Drop for Precious {
    fn drop(&mut self) {
        DROPS.fetch_add(1, Ordering::Relaxed);
    }
}

kernel_test! {
    /// Its senders are told and get their message back, though nothing that the process owned was dropped.
    #[machine("isolation")]
    async fn a_crash_ends_the_mailbox() -> Outcome {
        for round in 1..=10 {
            DROPS.store(0, Ordering::Relaxed);
            let mut mailbox = ProcessMailbox::<Precious>::new(100)?;
            let to = mailbox.address();
            // Not its own process any more when it crashes: who received last owns it.
            to.send(Precious(0))?;
            ensure!(mailbox.try_receive().is_some(), "a message was lost");
            let crashes = sched::spawn(async move {
                while let Some(message) = mailbox.receive().await {
                    if black_box(message.0) == 7 {
                        panic!("on purpose");
                    }
                }
            });
            let crashes = crashes.map_err(|error| Failure(alloc::format!("{error:?}")))?;
            to.send(Precious(1))?.send(Precious(7))?;
            ensure!(crashes.await.is_err(), "the process did not crash in round {round}");
            let before = DROPS.load(Ordering::Relaxed);
            match to.send(Precious(8)) {
                Err(SendError::Ended(message)) => ensure_eq!(message.0, 8, "the message that came back"),
                _ => return Err(Failure("the mailbox of a crashed process accepted a message".into())),
            }
            ensure_eq!(DROPS.load(Ordering::Relaxed), before + 1, "drops: the message that came back");
            ensure!(matches!(to.send_urgent(Precious(9)), Err(SendError::Ended(_))), "it accepted another");
        }
        Ok(())
    }
}

kernel_test! {
    /// Whoever has asked a process is told of its crash, wherever the request is by then.
    #[machine("isolation")]
    async fn a_crash_is_told_to_who_has_asked() -> Outcome {
        for round in 0..10 {
            let mut mailbox = ProcessMailbox::<Request<u64, u64>>::new(100)?;
            let to = mailbox.address();
            // Kept elsewhere, so that only the crash tells.
            let mut elsewhere = ProcessMailbox::<Reply<u64>>::new(100)?;
            let keeper = elsewhere.address();
            let crashes = sched::spawn(async move {
                while let Some(Request { message, reply }) = mailbox.receive().await {
                    match black_box(message) {
                        0 => _ = reply.send(1),
                        1 => drop(keeper.send(reply)),
                        _ => panic!("on purpose"),
                    }
                }
            });
            let crashes = crashes.map_err(|error| Failure(alloc::format!("{error:?}")))?;
            ensure_eq!(to.ask(0).await, Ok(1), "an answer in round {round}");
            let (kept, fatal, behind) = (to.ask(1), to.ask(2), to.ask(0));
            ensure_eq!(fatal.await, Err(AskError::Crashed), "the request that crashed it");
            ensure_eq!(kept.await, Err(AskError::Crashed), "one that it had passed on");
            ensure!(matches!(behind.await, Err(AskError::Crashed | AskError::Ended)), "one behind it");
            ensure!(crashes.await.is_err(), "the process did not crash in round {round}");
            ensure_eq!(to.ask(0).await, Err(AskError::Ended), "one afterwards");
            drop(elsewhere.try_receive());
        }
        Ok(())
    }
}

kernel_test! {
    /// Who has crashed while it waited for an answer, which drops nothing, wants none.
    #[machine("isolation")]
    async fn who_has_crashed_wants_no_answer() -> Outcome {
        for round in 0..10 {
            let mut mailbox = ProcessMailbox::<Request<u64, u64>>::new(100)?;
            let to = mailbox.address();
            let asks = sched::spawn(async move {
                let mut answer = pin!(to.ask(round));
                let waits = poll_fn(|context| Poll::Ready(answer.as_mut().poll(context).is_pending())).await;
                if round % 2 == 0 {
                    assert!(!black_box(waits), "on purpose");
                }
                answer.await.is_ok()
            })?;
            let Some(Request { reply, .. }) = mailbox.receive().await else {
                return Err(Failure("there is no question".into()));
            };
            if round % 2 == 0 {
                ensure!(asks.await.is_err(), "the asker did not crash in round {round}");
                ensure!(!reply.is_wanted(), "an answer is wanted in round {round}, and nobody waits for it");
            } else {
                ensure!(reply.is_wanted(), "no answer is wanted in round {round}");
                ensure!(reply.send(round).is_ok(), "an answer was not wanted in round {round}");
                ensure_eq!(asks.await, Ok(true), "an answer in round {round}");
            }
        }
        Ok(())
    }
}

/// What it is dropped by may crash.
struct Fatal(bool);

impl Drop for Fatal {
    fn drop(&mut self) {
        assert!(!black_box(self.0), "on purpose");
    }
}

kernel_test! {
    /// So they are if it crashes while it drops the mailbox, with what it has looked through and with what it has not.
    #[machine("isolation")]
    async fn a_crash_in_the_drop_of_a_mailbox_is_told_to_who_has_asked() -> Outcome {
        for has_received in [false, true] {
            let mut mailbox = ProcessMailbox::<Request<Fatal, u64>>::new(100)?;
            let to = mailbox.address();
            let received = to.ask(Fatal(false));
            let (fatal, behind, last) = (to.ask(Fatal(true)), to.ask(Fatal(false)), to.ask(Fatal(false)));
            let crashes = sched::spawn(async move {
                if has_received {
                    drop(mailbox.try_receive());
                }
                drop(mailbox);
            });
            let crashes = crashes.map_err(|error| Failure(alloc::format!("{error:?}")))?;
            ensure_eq!(received.await, Err(AskError::Unanswered), "the one that was dropped before");
            ensure_eq!(fatal.await, Err(AskError::Crashed), "the one that crashed it");
            ensure_eq!(behind.await, Err(AskError::Crashed), "one behind it");
            ensure_eq!(last.await, Err(AskError::Crashed), "the last");
            ensure!(crashes.await.is_err(), "the process did not crash");
            ensure!(matches!(to.ask(Fatal(false)).await, Err(AskError::Ended)), "one afterwards");
        }
        Ok(())
    }
}

kernel_test! {
    /// Once as many nodes exist as are needed, messages to processes allocate nothing.
    #[machine("the kernel's heap")]
    async fn steady_state_allocates_nothing() -> Outcome {
        const BURST: u64 = 100;
        // Nobody else allocates meanwhile.
        sched::out_of_work().await;
        let mut mailbox = ProcessMailbox::new(BURST as usize)?;
        let to = mailbox.address();
        let mut before = 0;
        for round in 0..100 {
            if round == 1 {
                before = HEAP.allocations();
            }
            for number in 0..BURST {
                to.send(number)?;
            }
            ensure_eq!(mailbox.receive_matching(|n| n % 2 == 1).await, Some(1), "the first odd number");
            for _ in 1..BURST {
                ensure!(mailbox.receive().await.is_some(), "a message was lost in round {round}");
            }
        }
        ensure_eq!(HEAP.allocations(), before, "allocations");
        Ok(())
    }
}
