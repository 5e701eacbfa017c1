//! Mail for an actor that ends, crashes or is suspended while the mail is in hand: what was sent in time and cannot be handled any
//! more is dropped, once, and what can be is handled in order.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hint::black_box;
use core::sync::atomic::Ordering;

use magpie::actor::{Actor, Addr, Config, Context, Executor, Receive};
use magpie::sched;
use magpie_tests::{Failure, amount, ensure_eq, kernel_test};

use super::node::{Counted, Seen, past_two_slices, spin};

/// In the state of an actor that has not ended.
const ALIVE: u64 = 0x0a11_ce0a_11ce_0a11;

/// What happens with the last letter but some.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    End,
    Panic,
    Spin,
}

/// Gets so many letters, and then this happens.
struct Reader {
    seen: Arc<Seen>,
    alive: u64,
    read: u64,
    reads: u64,
    then: Then,
}

impl Actor for Reader {}

impl Drop for Reader {
    fn drop(&mut self) {
        self.alive = 0;
        black_box(&mut self.alive);
    }
}

struct Letter(u64, Counted);

impl Receive<Letter> for Reader {
    type Reply = ();

    fn receive(&mut self, Letter(number, _counted): Letter, context: &mut Context<Self>) {
        let is_expected = black_box(self.alive) == ALIVE && number == self.read;
        self.seen.out_of_order.fetch_add(u64::from(!is_expected), Ordering::Relaxed);
        self.seen.handled.fetch_add(1, Ordering::Relaxed);
        self.read += 1;
        if self.read != self.reads {
            return;
        }
        if self.then != Then::Spin {
            // Nobody reads these, in hand or behind what is there.
            for _ in 0..5 {
                let letter = Letter(u64::MAX, Counted::new(&self.seen));
                let refused = context.address().send(letter).is_err();
                self.seen.refused.fetch_add(u64::from(refused), Ordering::Relaxed);
            }
        }
        match self.then {
            Then::End => context.end(),
            Then::Panic => panic!("on purpose, with mail in hand"),
            Then::Spin => spin(past_two_slices()),
        }
    }
}

/// Sends letters.
struct Writer(Arc<Seen>);

impl Actor for Writer {}

struct Write(Vec<Addr<Reader>>, u64);

impl Receive<Write> for Writer {
    type Reply = ();

    fn receive(&mut self, Write(readers, letters): Write, _: &mut Context<Self>) {
        for number in 0..letters {
            for reader in &readers {
                let refused = reader.send(Letter(number, Counted::new(&self.0))).is_err();
                self.0.refused.fetch_add(u64::from(refused), Ordering::Relaxed);
            }
        }
    }
}

/// Few letters, which are a batch, and many, of which most follow one.
async fn letters_to(then: Then, config: &Config) -> Result<(), Failure> {
    const READERS: u64 = 4;
    let executor = Executor::start(config)?;
    let handle = executor.handle();
    for letters in [2, 6, 50, 600] {
        for _ in 0..amount("rounds", 4) {
            let seen = Arc::new(Seen::default());
            let writer = handle.spawn(Writer(seen.clone()))?;
            let reads = letters / 2;
            let reader = || Reader { seen: seen.clone(), alive: ALIVE, read: 0, reads, then };
            // Beside the writer and each other, and elsewhere.
            let mut readers = Vec::new();
            for index in 0..READERS {
                readers.push(if index % 2 == 0 {
                    handle.spawn_beside(writer, reader())?
                } else {
                    handle.spawn(reader())?
                });
            }
            writer.send(Write(readers.clone(), letters))?;
            sched::out_of_work().await;
            let handled = READERS * if then == Then::Spin { letters } else { reads };
            ensure_eq!(seen.handled(), handled, "of {letters} letters to each handled");
            ensure_eq!(seen.out_of_order(), 0, "out of order, or for a reader that has ended");
            let (made, dropped) = (seen.made.load(Ordering::Relaxed), seen.dropped.load(Ordering::Relaxed));
            // The letter that a reader crashes with goes with it.
            let crashed = if then == Then::Panic { READERS } else { 0 };
            ensure_eq!(dropped, made - crashed, "of {made} letters dropped");
            let alive = readers.iter().filter(|reader| reader.is_alive()).count() as u64;
            ensure_eq!(alive, if then == Then::Spin { READERS } else { 0 }, "readers alive");
        }
    }
    executor.stop().await;
    Ok(())
}

kernel_test! {
    /// A reader that ends handles nothing any more.
    async fn mail_for_one_that_has_ended_is_dropped() -> Outcome {
        letters_to(Then::End, &Config::default()).await
    }
}

kernel_test! {
    /// Nor where the rest of its mail is left to the worker's next turn.
    async fn mail_for_one_that_has_ended_is_dropped_in_the_next_turn() -> Outcome {
        letters_to(Then::End, &Config::default().reductions(7)).await
    }
}

kernel_test! {
    /// One that crashes does not, either.
    #[machine("isolation")]
    async fn mail_for_one_that_has_crashed_is_dropped() -> Outcome {
        letters_to(Then::Panic, &Config::default()).await?;
        letters_to(Then::Panic, &Config::default().reductions(7)).await
    }
}

kernel_test! {
    /// What comes for one that is suspended is put aside, and handled in order.
    #[machine("preemption")]
    async fn mail_for_one_that_is_suspended_is_put_aside() -> Outcome {
        letters_to(Then::Spin, &Config::default()).await?;
        letters_to(Then::Spin, &Config::default().reductions(7)).await
    }
}
