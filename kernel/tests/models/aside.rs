//! A worker that is suspended while it looks whether it puts a message aside.
//!
//! Not how an actor comes back from being held aside: that is in `lives`.
//!
//! One task is the activation on the worker's core, and what the timer's interrupt does there. Whether the interrupt has come
//! it asks wherever preemption is enabled. What a batch notes of its split is this model's own; the looks at the actor and at its
//! side queue are the kernel's.

use magpie::internals::arch::atomic::{AtomicBool, Ordering};
use magpie::internals::sync::detachment::{self, Found};
use magpie::internals::sync::{SpinGuard, SpinLock, WordCell};

use crate::harness::{Model, ordering, step};
use crate::tool::{Arc, Plain, mutant, run, task};

pub const MODELS: &[Model] = &[Model {
    name: "detachment::suspended_at_the_look",
    preemptions: Some(3),
    body: suspended_at_the_look,
    mutants: &[
        step("aside-unguarded"),
        step("detached-unasked"),
        step("reattach-unasked"),
        ordering("word-set-relaxed"),
        ordering("word-get-relaxed"),
    ],
}];

const ATTACHED: u64 = 1;
const DETACHED: u64 = 2;

/// An actor, and the messages 1 to 3 for it. The behaviour of the first has been suspended, the second comes next in the
/// worker's batch, and the third behind it.
struct Actor {
    word: WordCell,
    /// The number of the message that it is to handle next.
    next: Plain,
    /// The side queue: the messages in it are the digits.
    side: SpinLock<Plain>,
    /// The worker's slice has ended.
    timer: AtomicBool,
    /// The worker's batch was split at the second message.
    is_split: AtomicBool,
    /// Somebody sees to the third message.
    is_third_taken: AtomicBool,
}

/// Somebody else had the lock.
struct Refused;

impl Actor {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            word: WordCell::new(DETACHED),
            next: Plain::new(1),
            side: SpinLock::new(Plain::new(0)),
            timer: AtomicBool::new(false),
            is_split: AtomicBool::new(false),
            is_third_taken: AtomicBool::new(false),
        })
    }

    /// A try, for two that wait would keep loom busy for ever.
    fn enter(&self) -> Result<SpinGuard<'_, Plain>, Refused> {
        if cfg!(loom) { self.side.try_lock().ok_or(Refused) } else { Ok(self.side.lock()) }
    }

    fn handle(&self, message: u64) {
        assert_eq!(self.next.get(), message, "a message has overtaken another");
        self.next.set(message + 1);
    }

    /// As `side_queue::keep`. Whether the message was put aside; else the actor is attached.
    fn keep(&self, message: u64) -> Result<bool, Refused> {
        let side = self.enter()?;
        match detachment::look(
            &self.word,
            |word| word == ATTACHED,
            |word| word == DETACHED || word == ATTACHED,
        ) {
            Found::Detached => {
                side.set(side.get() * 10 + message);
                Ok(true)
            }
            Found::Attached => Ok(false),
            Found::Other => unreachable!("it does not end"),
        }
    }

    /// As `detach::detach`, if the interrupt has come.
    fn interrupt(&self, is_split: &mut bool) -> Result<(), Refused> {
        // An actor that another activation holds aside is left to that one.
        if *is_split || !self.timer.load(Ordering::Relaxed) || self.word.get() != ATTACHED {
            return Ok(());
        }
        let side = self.enter()?;
        self.word.set(DETACHED);
        drop(side);
        *is_split = true;
        // Release: as a process that is put into a queue.
        self.is_split.store(true, Ordering::Release);
        Ok(())
    }

    /// As `delivery::deliver`, of a message that the batch may be split at. Whether it was.
    fn deliver(&self, message: u64) -> Result<bool, Refused> {
        let mut is_split = false;
        loop {
            self.interrupt(&mut is_split)?;
            if self.word.get() == ATTACHED {
                self.interrupt(&mut is_split)?;
                self.handle(message);
                return Ok(is_split);
            }
            self.interrupt(&mut is_split)?;
            // As `deliver_slowly`. From here on preemption is disabled.
            if is_split {
                self.handle(message);
                return Ok(true);
            }
            if mutant("aside-unguarded") {
                self.interrupt(&mut is_split)?;
            }
            if self.keep(message)? {
                return Ok(is_split);
            }
        }
    }

    /// As `detach::finish_detached`, by an activation that holds the actor aside.
    fn come_back(&self) -> Result<(), Refused> {
        loop {
            let side = self.enter()?;
            let waiting = side.get();
            if detachment::reattach(&self.word, ATTACHED, waiting == 0) {
                return Ok(());
            }
            side.set(0);
            drop(side);
            for place in (0..2).rev() {
                let message = waiting / 10_u64.pow(place) % 10;
                if message != 0 {
                    self.handle(message);
                }
            }
        }
    }

    /// The worker goes on with the third message. The batch is not split at that.
    fn go_on(&self) -> Result<(), Refused> {
        if self.is_third_taken.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        while self.word.get() != ATTACHED {
            if self.keep(3)? {
                return Ok(());
            }
        }
        self.handle(3);
        Ok(())
    }
}

/// The interrupt comes while the worker looks whether it puts the second message aside, for an actor whose first message's
/// behaviour was suspended and comes back meanwhile. The third message does not overtake the second.
fn suspended_at_the_look() {
    let actor = Actor::new();
    let first = task(|actor: &Actor| {
        actor.handle(1);
        actor.come_back()
    });
    let second = task(|actor: &Actor| {
        if actor.deliver(2)? {
            actor.come_back()?;
        }
        actor.go_on()
    });
    let third = task(|actor: &Actor| {
        actor.timer.store(true, Ordering::Relaxed);
        // Acquire: as a core that takes the worker from there. Without a split it is the second task that goes on.
        if actor.is_split.load(Ordering::Acquire) { actor.go_on() } else { Ok(()) }
    });
    if run(&actor, [first, second, third]).iter().any(Result::is_err) {
        return;
    }
    assert_eq!(actor.next.get(), 4, "a message was lost");
    assert_eq!(actor.side.lock().get(), 0, "a message waits for ever in the side queue");
}
