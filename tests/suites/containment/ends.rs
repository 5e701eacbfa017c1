//! What is dropped at an end: states, messages and results, in applications of safe code alone.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::{self, Display, Formatter};
use core::future::Future;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context as TaskContext, Waker};
use core::time::Duration;

use magpie::actor::{Actor, Bound, Config, Context, Executor, Receive, WhenFull, stop};
use magpie::arch::CoreId;
use magpie::channel::ProcessMailbox;
use magpie::{sched, time};
use magpie_tests::{ensure, kernel_test};

use crate::misdeeds::{ALL, Harmless, Trouble, in_one_go, is_contained, reset};

/// An actor whose state is trouble, or none.
struct Owner {
    _trouble: Option<Trouble>,
    _harmless: Harmless,
}

impl Owner {
    fn new(trouble: Option<Trouble>) -> Self {
        Self { _trouble: trouble, _harmless: Harmless }
    }
}

impl Actor for Owner {}

/// What is to wait for the behaviour below has been sent.
static ALL_WAITS: AtomicBool = AtomicBool::new(false);

/// Takes so long that the behaviour is suspended, and until all that is to wait for it does.
struct EndAfterSlices;

impl Receive<EndAfterSlices> for Owner {
    type Reply = ();

    fn receive(&mut self, _: EndAfterSlices, context: &mut Context<Self>) {
        outlast_slices();
        context.end();
    }
}

/// Crashes after as long.
struct CrashLater;

impl Receive<CrashLater> for Owner {
    type Reply = ();

    fn receive(&mut self, _: CrashLater, _: &mut Context<Self>) {
        outlast_slices();
        panic!("on purpose, before what waits is dropped")
    }
}

fn outlast_slices() {
    let began = time::Instant::now();
    let long = Duration::from_micros(6 * sched::setting(sched::Setting::SliceMicroseconds));
    while began.elapsed() < long || !ALL_WAITS.load(Ordering::Relaxed) {
        core::hint::spin_loop();
    }
}

impl Receive<Option<Trouble>> for Owner {
    type Reply = ();

    fn receive(&mut self, _: Option<Trouble>, _: &mut Context<Self>) {}
}

impl Receive<Harmless> for Owner {
    type Reply = ();

    fn receive(&mut self, _: Harmless, _: &mut Context<Self>) {}
}

kernel_test! {
    /// The state of an actor that ends, by a short behaviour or by one that was suspended.
    #[machine("isolation")]
    async fn the_state_of_an_actor_that_ends() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let handle = executor.handle();
        for misdeed in ALL {
            for suspended in [false, true] {
                reset();
                let owner = handle.spawn_pinned(CoreId::BOOT, Owner::new(Some(Trouble::knowing(misdeed, handle))))?;
                let neighbour = handle.spawn_pinned(CoreId::BOOT, Owner::new(None))?;
                ALL_WAITS.store(true, Ordering::Relaxed);
                if suspended {
                    owner.send(EndAfterSlices)?;
                } else {
                    owner.send(stop::End)?;
                }
                // Behind it in the mailbox, and ends as well.
                neighbour.send(stop::End)?;
                // Of what is dropped in a field after one that crashes nothing is said: it is lost with the rest.
                let harmless = if misdeed.crashes() { 1 } else { 2 };
                is_contained("state", misdeed, 1, harmless).await?;
            }
        }
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// A message for an actor that ends before it; what comes behind it is dropped, too.
    #[machine("isolation")]
    async fn a_dead_letter() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let handle = executor.handle();
        for misdeed in ALL {
            reset();
            let dead = handle.spawn_pinned(CoreId::BOOT, Owner::new(None))?;
            let trouble = Trouble::knowing(misdeed, handle);
            // In one batch, so that what comes after the end is a dead letter.
            let sent = in_one_go(move || {
                dead.send(stop::End).is_ok()
                    && dead.send(Some(trouble)).is_ok()
                    && dead.send(Harmless).is_ok()
            });
            ensure!(sent.await?, "it was not sent");
            is_contained("dead letter", misdeed, 1, 2).await?;
        }
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// What waits for a suspended behaviour that crashes, or ends its actor.
    #[machine("isolation")]
    async fn what_waits_for_a_suspended_behaviour() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let handle = executor.handle();
        for misdeed in ALL {
            for crashes in [false, true] {
                reset();
                let owner = handle.spawn_pinned(CoreId::BOOT, Owner::new(None))?;
                ALL_WAITS.store(false, Ordering::Relaxed);
                if crashes {
                    owner.send(CrashLater)?;
                } else {
                    owner.send(EndAfterSlices)?;
                }
                owner.send(Some(Trouble::knowing(misdeed, handle)))?;
                owner.send(Harmless)?;
                ALL_WAITS.store(true, Ordering::Relaxed);
                // A crash loses the state.
                is_contained("waiting for a suspended one", misdeed, 1, if crashes { 1 } else { 2 }).await?;
            }
        }
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// Messages and states at the end of an executor: each that is trouble ends its own drop, and the stop ends.
    #[machine("isolation")]
    async fn the_end_of_an_executor() -> Outcome {
        for misdeed in ALL {
            reset();
            let other = Executor::start(&Config::default())?;
            let executor = Executor::start(&Config::default())?;
            let handle = executor.handle();
            let owner = handle.spawn_pinned(CoreId::BOOT, Owner::new(None))?;
            let mut messages = Vec::new();
            for _ in 0..3 {
                messages.push(Trouble::knowing(misdeed, other.handle()));
                handle.spawn_pinned(CoreId::BOOT, Owner::new(Some(Trouble::knowing(misdeed, other.handle()))))?;
            }
            let stopping = in_one_go(move || {
                let all = messages
                    .into_iter()
                    .all(|trouble| owner.send(Some(trouble)).is_ok() && owner.send(Harmless).is_ok());
                // From its first poll on nothing is delivered.
                let mut stop = Box::pin(executor.stop());
                let waits = stop.as_mut().poll(&mut TaskContext::from_waker(Waker::noop())).is_pending();
                (all && waits).then_some(stop)
            });
            let Some(stop) = stopping.await? else { return Err("it was not sent".into()) };
            let stopped = sched::spawn(stop)?;
            let harmless = if misdeed.crashes() { 4 } else { 7 };
            is_contained("the end", misdeed, 6, harmless).await?;
            ensure!(time::timeout(magpie_tests::HANGS_AFTER, stopped).await.is_ok(), "it did not stop");
            other.stop().await;
        }
        Ok(())
    }
}

kernel_test! {
    /// A message that is due and cannot be sent: to an actor, or to a process.
    #[machine("isolation")]
    async fn a_message_that_comes_due_in_vain() -> Outcome {
        const SOON: Duration = Duration::from_micros(500);
        let bound = Bound::new(1, WhenFull::DropNewest);
        let executor = Executor::start(&Config::default().bound(bound))?;
        let handle = executor.handle();
        for misdeed in ALL {
            reset();
            let dead = handle.spawn(Owner::new(None))?;
            dead.send(stop::End)?;
            while dead.is_alive() {
                time::sleep(Duration::from_micros(100)).await;
            }
            dead.send_after(SOON, Some(Trouble::knowing(misdeed, handle)))?;
            is_contained("to an actor that has ended", misdeed, 1, 1).await?;
            reset();
            let mailbox = ProcessMailbox::<Option<Trouble>>::new(1)?;
            let address = mailbox.address();
            // First, because otherwise the message may come while there is a mailbox, and is dropped with it.
            drop(mailbox);
            address.send_after(SOON, Some(Trouble::knowing(misdeed, handle)))?;
            drop(address);
            is_contained("to a process mailbox that is gone", misdeed, 1, 0).await?;
            reset();
            let mailbox = ProcessMailbox::<Option<Trouble>>::new(1)?;
            let address = mailbox.address();
            let crashed = sched::procedure(move || {
                let mut mailbox = mailbox;
                let _address = mailbox.address();
                let _ = mailbox.try_receive();
                panic!("on purpose, with a mailbox")
            })?;
            ensure!(crashed.await.is_err(), "the receiver did not crash");
            address.send_after(SOON, Some(Trouble::knowing(misdeed, handle)))?;
            drop(address);
            is_contained("to a process that has crashed", misdeed, 1, 0).await?;
        }
        executor.stop().await;
        Ok(())
    }
}

struct Shown(Trouble);

impl Display for Shown {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.commit();
        f.write_str("shown")
    }
}

struct Logged(Trouble);

impl defmt::Format for Logged {
    fn format(&self, f: defmt::Formatter<'_>) {
        self.0.commit();
        defmt::write!(f, "logged");
    }
}

kernel_test! {
    /// What is made into a log frame.
    #[machine("isolation")]
    async fn what_is_logged() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        for misdeed in ALL {
            reset();
            let trouble = Trouble::knowing(misdeed, executor.handle());
            let logging = sched::procedure(move || {
                let logged = core::mem::ManuallyDrop::new(Logged(trouble));
                defmt::info!("{}", *logged);
            })?;
            is_contained("what is logged", misdeed, 1, 0).await?;
            ensure!(logging.await.is_err() == misdeed.crashes(), "it ended otherwise");
        }
        executor.stop().await;
        Ok(())
    }
}

kernel_test! {
    /// What is said of a panic.
    #[machine("isolation")]
    async fn what_a_panic_says() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let handle = executor.handle();
        for misdeed in ALL {
            reset();
            let trouble = Trouble::knowing(misdeed, handle);
            let crashed = sched::procedure(move || {
                let shown = core::mem::ManuallyDrop::new(Shown(trouble));
                panic!("{}", *shown)
            })?;
            is_contained("what a panic says", misdeed, 1, 0).await?;
            ensure!(crashed.await.is_err(), "it did not crash");
        }
        executor.stop().await;
        Ok(())
    }
}
