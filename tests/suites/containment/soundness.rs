//! What a crash must not take with it, from applications that use only safe code.

use core::hint::black_box;
use core::time::Duration;

use magpie::actor::{Actor, Addr, Config, Context, Executor, Receive, SendError, stop};
use magpie::arch::CoreId;
use magpie::channel::ProcessMailbox;
use magpie::watch::Ended;
use magpie::{sched, time};
use magpie_tests::{ensure, ensure_eq, kernel_test};

/// Far longer than anything here takes.
const LONG: Duration = magpie_tests::HANGS_AFTER;

/// An actor that crashes when it is told to.
struct Fragile;

impl Actor for Fragile {}

/// Told to [`Fragile`]: at once, or after several slices, so that the behaviour has been suspended before.
#[derive(Clone, Copy)]
enum Crash {
    AtOnce,
    Later,
}

fn crash(when: Crash) {
    if matches!(when, Crash::Later) {
        let began = time::Instant::now();
        let several = Duration::from_micros(8 * sched::setting(sched::Setting::SliceMicroseconds));
        while began.elapsed() < several {
            core::hint::spin_loop();
        }
    }
    if black_box(true) {
        panic!("on purpose");
    }
}

impl Receive<Crash> for Fragile {
    type Reply = ();

    fn receive(&mut self, when: Crash, _: &mut Context<Self>) {
        crash(when)
    }
}

/// Tells some to end and one to crash in one go. Their mail waits in the mailbox that this actor's behaviour runs from,
/// so the next gulp takes all of it.
struct Teller {
    ending: [Addr<Fragile>; 3],
    crashing: Addr<Fragile>,
}

impl Actor for Teller {}

impl Receive<Crash> for Teller {
    type Reply = ();

    fn receive(&mut self, when: Crash, context: &mut Context<Self>) {
        let ending = self.ending.iter().all(|actor| actor.send(stop::End).is_ok());
        if !ending || self.crashing.send(when).is_err() {
            return;
        }
        context.end();
    }
}

kernel_test! {
    /// Actors that ended in the same batch before another's crash are counted, so that who waits for all is told.
    #[machine("isolation")]
    async fn a_crash_forgets_no_end_of_its_batch() -> Outcome {
        for when in [Crash::AtOnce, Crash::Later] {
            let executor = Executor::start(&Config::default())?;
            let handle = executor.handle();
            let mut fragile = alloc::vec::Vec::new();
            for _ in 0..4 {
                fragile.push(handle.spawn_pinned(CoreId::BOOT, Fragile)?);
            }
            let ending = [fragile[0], fragile[1], fragile[2]];
            let teller = handle.spawn_pinned(CoreId::BOOT, Teller { ending, crashing: fragile[3] })?;
            teller.send(when)?;
            let all = time::timeout(LONG, executor.all_ended()).await;
            ensure_eq!(handle.live_actors(), 0, "actors that are said to live");
            ensure!(all.is_ok(), "the end of all was not told");
            executor.stop().await;
        }
        Ok(())
    }
}

/// An actor with a process mailbox of its own, into which it looks before it crashes.
struct Reader(ProcessMailbox<u64>);

impl Actor for Reader {}

impl Receive<Crash> for Reader {
    type Reply = ();

    fn receive(&mut self, when: Crash, _: &mut Context<Self>) {
        if self.0.try_receive() == Some(1) {
            crash(when);
        }
    }
}

/// Looks without crashing, and says what it has seen.
struct Look;

impl Receive<Look> for Reader {
    type Reply = Option<u64>;

    fn receive(&mut self, _: Look, _: &mut Context<Self>) -> Option<u64> {
        self.0.try_receive()
    }
}

kernel_test! {
    /// A process mailbox that a behaviour received from ends with its actor, not with the worker that ran it; that of
    /// another actor of the same worker goes on.
    #[machine("isolation")]
    async fn a_crash_ends_the_mailbox_of_its_actor() -> Outcome {
        let executor = Executor::start(&Config::default())?;
        let handle = executor.handle();
        for when in [Crash::AtOnce, Crash::Later] {
            let (one, other) = (ProcessMailbox::new(100)?, ProcessMailbox::new(100)?);
            let (to_one, to_other) = (one.address(), other.address());
            to_one.send(1)?;
            to_other.send(2)?;
            let neighbour = handle.spawn_pinned(CoreId::BOOT, Reader(other))?;
            ensure_eq!(neighbour.ask(Look).await?, Some(2), "what the neighbour has received");
            let crashing = handle.spawn_pinned(CoreId::BOOT, Reader(one))?;
            // It has ended a little before; once that is told its mailboxes are closed.
            let mut ends = ProcessMailbox::<Ended>::new(1)?;
            crashing.watch(&ends.address())?;
            crashing.send(when)?;
            let gone = time::timeout(LONG, ends.receive()).await;
            ensure!(matches!(gone, Ok(Some(_))) && !crashing.is_alive(), "the actor did not crash");
            ensure!(matches!(to_one.send(3), Err(SendError::Ended(3))), "the mailbox of a crashed actor accepts");
            to_other.send(4)?;
            ensure_eq!(neighbour.ask(Look).await?, Some(4), "what the neighbour has received afterwards");
        }
        executor.stop().await;
        Ok(())
    }
}
