//! Killed in the middle of a wake-up: whoever takes a waker has woken it before it can be ended, so nobody else waits for ever. An
//! interrupt that wants to end a process comes at any moment, and acts at the end of each of the kernel's sections.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, Ordering};

use magpie::channel::{ProcessMailbox, Request};
use magpie::mutex::Mutex;
use magpie::sched::{self, JoinHandle, SpawnError};
use magpie::time;
use magpie_tests::{Failure, HANGS_AFTER, Outcome, amount, kernel_test};

/// How many are woken by one.
const OTHERS: usize = 4;

/// Lets the victim run for a while that differs from round to round, and kills it.
async fn kill<T>(victim: JoinHandle<T>, round: u64) -> Outcome {
    sched::yield_now().await;
    for _ in 0..(round * 7919) % 20_011 {
        spin_loop();
    }
    victim.process().kill();
    // It has ended one way or the other.
    let _ = within(victim, "the victim goes on").await?;
    Ok(())
}

async fn within<T>(waiting: impl Future<Output = T>, what: &'static str) -> Result<T, Failure> {
    time::background_timeout(HANGS_AFTER, waiting).await.map_err(|_| Failure(what.into()))
}

async fn all_end(others: Vec<JoinHandle<()>>, what: &'static str) -> Outcome {
    for other in others {
        within(other, what).await??;
    }
    Ok(())
}

fn spawn_others<T: Future<Output = ()> + Send + 'static>(
    mut make: impl FnMut() -> T,
) -> Result<Vec<JoinHandle<()>>, SpawnError> {
    (0..OTHERS).map(|_| sched::spawn(make())).collect()
}

kernel_test! {
    /// Who answers is killed: each asker has an answer, or is told that there will be none.
    #[machine("isolation")]
    async fn whoever_answers_is_killed() -> Outcome {
        for round in 0..amount("kills", 400) {
            let mut desk = ProcessMailbox::<Request<u64, u64>>::new(2 * OTHERS)?;
            let address = desk.address();
            let clerk = sched::spawn(async move {
                while let Some(request) = desk.receive().await {
                    // Whoever has given up waiting gets nothing.
                    let _ = request.reply.send(request.message);
                }
            })?;
            // So that its owner is known.
            within(address.ask(1), "no answer").await??;
            let askers = spawn_others(|| {
                let address = address.clone();
                async move { while address.ask(1).await.is_ok() {} }
            })?;
            kill(clerk, round).await?;
            all_end(askers, "an asker waits for ever").await?;
        }
        Ok(())
    }
}

kernel_test! {
    /// One of those who share a mutex is killed: it is free for the others, or poisoned.
    #[machine("isolation")]
    async fn whoever_unlocks_is_killed() -> Outcome {
        for round in 0..amount("kills", 400) {
            let (mutex, is_over) = (Arc::new(Mutex::new(0_u64)), Arc::new(AtomicBool::new(false)));
            let user = || {
                let (mutex, is_over) = (mutex.clone(), is_over.clone());
                async move {
                    while !is_over.load(Ordering::Acquire) {
                        match mutex.lock().await {
                            Ok(mut guard) => {
                                *guard += 1;
                                // So that others come to wait.
                                (0..100).for_each(|_| spin_loop());
                            }
                            Err(_) => return,
                        }
                        sched::yield_now().await;
                    }
                }
            };
            let victim = sched::spawn(user())?;
            let others = spawn_others(user)?;
            kill(victim, round).await?;
            is_over.store(true, Ordering::Release);
            all_end(others, "a mutex is awaited for ever").await?;
        }
        Ok(())
    }
}

kernel_test! {
    /// One that sends is killed: what has arrived is received.
    #[machine("isolation")]
    async fn whoever_sends_is_killed() -> Outcome {
        for round in 0..amount("kills", 400) {
            let mut mailbox = ProcessMailbox::<u64>::new(4)?;
            let address = mailbox.address();
            let sending = address.clone();
            let sender = sched::spawn(async move {
                loop {
                    // What does not fit is not sent.
                    let _ = sending.send(1);
                    sched::yield_now().await;
                }
            })?;
            let receiver = sched::spawn(async move { while mailbox.receive().await == Some(1) {} })?;
            kill(sender, round).await?;
            let received = async {
                while address.waiting() > 0 {
                    sched::yield_now().await;
                }
            };
            within(received, "mail lies there, and its receiver sleeps").await?;
            address.send(2).map_err(|_| Failure("the receiver is gone".into()))?;
            within(receiver, "the receiver goes on").await??;
        }
        Ok(())
    }
}

kernel_test! {
    /// Who is about to end is killed: whoever joins it is told.
    #[machine("isolation")]
    async fn whoever_ends_is_killed() -> Outcome {
        for round in 0..amount("kills", 400) {
            let ends = sched::spawn(async move {
                for _ in 0..(round * 104_729) % 20_011 {
                    spin_loop();
                }
            })?;
            let process = ends.process().clone();
            let joins = sched::spawn(async move {
                let _ = ends.await;
            })?;
            sched::yield_now().await;
            for _ in 0..(round * 7919) % 20_011 {
                spin_loop();
            }
            process.kill();
            within(joins, "who joins waits for ever").await??;
        }
        Ok(())
    }
}
