//! What is seen of actors and processes from outside.

use alloc::sync::Arc;
use core::future::pending;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, Ordering};

use magpie::actor::{Actor, ActorState, Config, Context, Executor, Receive, actors, stop};
use magpie::sched::{self, ProcessState};
use magpie::time;
use magpie_tests::{Failure, HANGS_AFTER, Outcome, ensure, ensure_eq, kernel_test};

/// Spins until it is told to stop, when it is told to begin.
struct Spinner;

impl Actor for Spinner {}

impl Receive<Arc<AtomicBool>> for Spinner {
    type Reply = ();

    fn receive(&mut self, ends: Arc<AtomicBool>, _: &mut Context<Self>) {
        while !ends.load(Ordering::Acquire) {
            spin_loop();
        }
    }
}

async fn until(holds: impl Fn() -> bool) -> Outcome {
    let waiting = async {
        while !holds() {
            sched::yield_now().await;
        }
    };
    time::background_timeout(HANGS_AFTER, waiting).await.map_err(|_| Failure("it is never seen".into()))
}

fn spinners(state: ActorState) -> usize {
    actors().filter(|actor| actor.type_name.ends_with("inspection::Spinner") && actor.state == state).count()
}

kernel_test! {
    /// Who lives is listed, by type; who has ended is not, nor who lives in its place.
    async fn who_lives_is_seen() -> Outcome {
        const ACTORS: usize = 1000;
        let executor = Executor::start(&Config::default())?;
        let handle = executor.handle();
        let spawned = (0..ACTORS).map(|_| handle.spawn(Spinner)).collect::<Result<alloc::vec::Vec<_>, _>>()?;
        ensure_eq!(spinners(ActorState::Ready), ACTORS, "how many are seen");
        let Some(first) = spawned.first() else { return Err("none was spawned".into()) };
        ensure!(first.inspect().is_some_and(|seen| !seen.is_static), "one that lives is not seen");
        first.send(stop::End)?;
        until(|| first.inspect().is_none()).await?;
        ensure_eq!(spinners(ActorState::Ready), ACTORS - 1, "how many are left");
        handle.spawn(Spinner)?;
        ensure!(first.inspect().is_none(), "a successor is taken for one that has ended");
        executor.stop().await;
        ensure_eq!(spinners(ActorState::Ready), 0, "how many are left after the stop");
        Ok(())
    }
}

kernel_test! {
    /// A behaviour that goes on is seen as suspended, and what is sent to its mailbox meanwhile as waiting or handled.
    #[machine("preemption")]
    async fn who_is_suspended_is_seen() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let ends = Arc::new(AtomicBool::new(false));
        let spinner = executor.handle().spawn(Spinner)?;
        spinner.send(ends.clone())?;
        // Others wait for the core, or the behaviour would keep it.
        let others = (0..2 * magpie::machine::cores())
            .map(|_| {
                let ends = ends.clone();
                sched::spawn(async move {
                    while !ends.load(Ordering::Acquire) {
                        sched::yield_now().await;
                    }
                })
            })
            .collect::<Result<alloc::vec::Vec<_>, _>>()?;
        until(|| spinner.inspect().is_some_and(|seen| seen.state == ActorState::Suspended)).await?;
        ends.store(true, Ordering::Release);
        for other in others {
            other.await?;
        }
        until(|| spinner.inspect().is_some_and(|seen| seen.state == ActorState::Ready)).await?;
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// A process is seen running by itself, waiting, and ended.
    async fn what_a_process_does_is_seen() -> Outcome {
        let own = sched::current_process().ok_or("no process runs")?;
        ensure_eq!(own.state(), ProcessState::Running, "what the test itself is seen doing");
        let waits = sched::spawn(pending::<()>())?;
        let process = waits.process().clone();
        until(|| process.state() == ProcessState::Waiting).await?;
        ensure!(process.type_name().contains("Pending"), "its type is said to be {}", process.type_name());
        process.kill();
        ensure!(waits.await.is_err(), "it returned");
        ensure_eq!(process.state(), ProcessState::Ended, "what one that was killed is seen doing");
        Ok(())
    }
}
