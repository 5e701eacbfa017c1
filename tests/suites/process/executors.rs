//! Executors that processes start and stop, many at once on all cores: what one leaves behind is no longer its own.

use alloc::vec::Vec;
use core::hint::black_box;
use core::time::Duration;

use magpie::actor::{Actor, Config, Context, Executor, Receive, StartError};
use magpie::arch::CoreId;
use magpie::machine;
use magpie::sched::{self, Priority, Setting, Spawn};
use magpie::time;
use magpie_tests::{Changed, Failure, HANGS_AFTER, Outcome, amount, ensure, ensure_eq, kernel_test};

#[derive(Clone, Copy)]
struct Bytes<const COUNT: usize>([u8; COUNT]);

struct Sink;

impl Actor for Sink {}

impl<const COUNT: usize> Receive<Bytes<COUNT>> for Sink {
    type Reply = ();

    fn receive(&mut self, message: Bytes<COUNT>, _: &mut Context<Self>) {
        black_box(message.0[0]);
    }
}

/// An executor with mail waiting everywhere, which is stopped before it has looked at all of that. Whether there were mailboxes for one.
fn start_and_stop() -> Result<bool, Failure> {
    let executor = match Executor::start(&Config::default()) {
        Err(StartError::MailboxesInUse) => return Ok(false),
        started => started?,
    };
    for _ in 0..50 {
        let sink = executor.handle().spawn(Sink)?;
        sink.send(Bytes([1; 8]))?;
        sink.send(Bytes([1; 1200]))?;
    }
    drop(executor.stop());
    Ok(true)
}

/// On each core what is pinned there comes to its end.
async fn all_cores_go_on() -> Outcome {
    for core in (0..machine::cores()).filter_map(CoreId::new) {
        let pinned = Spawn::new().pinned(core).start(async move {
            time::sleep(Duration::from_micros(100)).await;
            core
        })?;
        let ended = time::background_timeout(HANGS_AFTER, pinned).await;
        ensure_eq!(ended, Ok(Ok(core)), "what runs on a core");
    }
    Ok(())
}

kernel_test! {
    /// A worker that has ended has guests in its list. If its turn is interrupted before it is over, nobody looks at them any more: they are
    /// in the lists of the next executors. A core that did went on for ever.
    async fn who_has_ended_is_not_looked_at() -> Outcome {
        const PRIORITIES: [Priority; 4] = [Priority::High, Priority::Low, Priority::Normal, Priority::Normal];
        // Turns are interrupted often.
        let _slice = Changed::new(&[(Setting::SliceMicroseconds, 50)])?;
        for _ in 0..amount("work", 20_000) / 1000 {
            let mut processes = Vec::new();
            for number in 0..30 {
                let process = Spawn::new().priority(PRIORITIES[number % 4]).start(async move {
                    let mut started = 0;
                    for round in 0..6 {
                        started += usize::from(start_and_stop()?);
                        if (round + number) % 3 == 0 {
                            sched::yield_now().await;
                        }
                    }
                    Ok::<_, Failure>(started)
                })?;
                processes.push(process);
            }
            let mut started = 0;
            for process in processes {
                started += process.await??;
            }
            ensure!(started > 0, "no executor was started");
            all_cores_go_on().await?;
        }
        Ok(())
    }
}
