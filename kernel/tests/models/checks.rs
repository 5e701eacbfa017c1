//! Mail in hand that is delivered without a look at its actor's word, because its sender has looked: `actor/mail/hand/checks.rs`.
//!
//! One task of a model is all that runs on the core of worker A, which has the mailbox in hand: behaviours that send, and the
//! worker. Appending is this model's own, because on the machine it is assembly; the word, the look under the side queue's lock,
//! the processing flag and the flag that says that an actor has gone are the kernel's.
//!
//! In the models of the queue the sender may be anywhere, and looks with the mailbox's lock.

use magpie::internals::sync::detachment::{self, Found};
use magpie::internals::sync::{GoneFlag, ProcessingFlag, SpinGuard, SpinLock, WordCell};

use crate::harness::{Model, ordering, step};
use crate::tool::{Arc, Plain, mutant, run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "checks::comes_back",
        preemptions: Some(3),
        body: comes_back,
        mutants: &[
            step("checks-unnoted"),
            ordering("checks-peeked"),
            ordering("word-set-relaxed"),
            ordering("word-get-relaxed"),
        ],
    },
    Model {
        name: "checks::taken_in_hand",
        preemptions: Some(3),
        body: taken_in_hand,
        mutants: &[
            step("checks-early"),
            step("checks-of-queued"),
            ordering("gulp-flag-relaxed"),
            ordering("done-relaxed"),
        ],
    },
    Model {
        name: "checks::queued",
        preemptions: Some(3),
        body: queued,
        mutants: &[
            step("checks-queued-early"),
            step("checks-queued-unnoted"),
            step("checks-gone-unnoted"),
            ordering("gulp-flag-relaxed"),
            ordering("done-relaxed"),
        ],
    },
    Model {
        name: "checks::comes_back_queued",
        preemptions: Some(3),
        body: comes_back_queued,
        mutants: &[step("checks-queued-unnoted"), ordering("checks-peeked"), ordering("word-set-relaxed")],
    },
];

const ATTACHED: u64 = 1;
const DETACHED: u64 = 2;
const ENDED: u64 = 3;

/// The message with which an actor ends.
const LAST: u64 = 9;

/// An actor and its mailbox. Messages are digits, and mail is the number that they make.
struct Actor {
    word: WordCell,
    /// What it has handled.
    handled: Plain,
    side: SpinLock<Plain>,
    queue: SpinLock<Plain>,
    /// Whether something in the queue is for an actor that was not found attached. With the queue's lock.
    is_unchecked: Plain,
    being_processed: ProcessingFlag,
    gone: GoneFlag,
}

/// Somebody else had the lock.
struct Refused;

/// A try, for two that wait would keep loom busy for ever.
fn enter(lock: &SpinLock<Plain>) -> Result<SpinGuard<'_, Plain>, Refused> {
    if cfg!(loom) { lock.try_lock().ok_or(Refused) } else { Ok(lock.lock()) }
}

fn join(front: u64, behind: u64) -> u64 {
    let length = behind.checked_ilog10().map_or(0, |log| log + 1);
    front * 10_u64.pow(length) + behind
}

impl Actor {
    fn new(word: u64) -> Arc<Self> {
        Arc::new(Self {
            word: WordCell::new(word),
            handled: Plain::new(0),
            side: SpinLock::new(Plain::new(0)),
            queue: SpinLock::new(Plain::new(0)),
            is_unchecked: Plain::new(0),
            being_processed: ProcessingFlag::new(),
            gone: GoneFlag::new(),
        })
    }

    fn handle(&self, mail: u64) {
        self.handled.set(join(self.handled.get(), mail));
    }

    /// As `append`, on core A. Whether what is in hand is checked still.
    fn append(&self) -> bool {
        let word = if mutant("checks-peeked") { self.word.peek() } else { self.word.get() };
        word == ATTACHED || mutant("checks-unnoted")
    }

    /// As `delivery::deliver`, of one message. Whether it was handled, or put aside; else it is a dead letter.
    fn deliver(&self, message: u64, is_checked: bool) -> Result<bool, Refused> {
        while !is_checked && self.word.get() != ATTACHED {
            let side = enter(&self.side)?;
            match detachment::look(
                &self.word,
                |word| word == ATTACHED,
                |word| word == DETACHED || word == ATTACHED,
            ) {
                Found::Detached => {
                    side.set(join(side.get(), message));
                    return Ok(true);
                }
                Found::Attached => {}
                Found::Other => return Ok(false),
            }
        }
        self.handle(message);
        Ok(true)
    }

    /// As `send::write_at_once` or, for an actor that is not attached, `send_slowly`, from any core.
    fn send(&self, message: u64) -> Result<(), Refused> {
        let early = mutant("checks-queued-early").then(|| self.append());
        let queue = enter(&self.queue)?;
        if !early.unwrap_or_else(|| self.append()) && !mutant("checks-queued-unnoted") {
            self.is_unchecked.set(1);
        }
        queue.set(join(queue.get(), message));
        Ok(())
    }

    /// As `Mailbox::gulp`, or as `gulp_again` for the one that has it in hand: mail, and whether it is checked. `None` if another has it.
    fn take(&self, is_mine: bool) -> Result<Option<(u64, bool)>, Refused> {
        let queue = enter(&self.queue)?;
        if !is_mine {
            if !self.being_processed.is_free() {
                return Ok(None);
            }
            self.being_processed.take();
        }
        let mail = queue.get();
        queue.set(0);
        let is_unchecked = self.gone.take() | (self.is_unchecked.get() != 0);
        self.is_unchecked.set(0);
        Ok(Some((mail, !is_unchecked)))
    }

    /// Delivers a batch of at most two messages. The first `9` in it, or what is called for after it, ends the actor.
    fn deliver_batch(&self, mail: u64, mut is_checked: bool) -> Result<(), Refused> {
        for message in [mail / 10, mail % 10].into_iter().filter(|&message| message != 0) {
            let is_handled = self.deliver(message, is_checked)?;
            assert!(
                !is_handled || self.word.peek() == ATTACHED,
                "an actor that has ended has handled a message"
            );
            if is_handled && message == LAST {
                if !mutant("checks-gone-unnoted") {
                    self.gone.note();
                }
                self.word.set(ENDED);
                is_checked = false;
            }
        }
        Ok(())
    }

    /// As `detach::finish_detached`, on another core.
    fn come_back(&self) -> Result<(), Refused> {
        loop {
            let side = enter(&self.side)?;
            let waiting = side.get();
            if detachment::reattach(&self.word, ATTACHED, waiting == 0) {
                return Ok(());
            }
            side.set(0);
            drop(side);
            self.handle(waiting);
        }
    }
}

/// A behaviour was suspended, and ends on another core, while messages are sent to its actor in hand, and delivered one after the other:
/// each is handled once, in order, and whoever handles one sees what was done before.
fn comes_back() {
    let actor = Actor::new(DETACHED);
    let activation = task(|actor: &Actor| {
        actor.handle(1);
        actor.come_back()
    });
    let core = task(|actor: &Actor| {
        for message in [2, 3] {
            let is_checked = actor.append();
            actor.deliver(message, is_checked)?;
        }
        Ok(())
    });
    if run(&actor, [activation, core]).iter().any(Result::is_err) {
        return;
    }
    assert_eq!(actor.handled.get(), 123, "lost, handled twice, or out of order");
    assert_eq!(actor.side.lock().get(), 0, "a message waits for ever in the side queue");
}

/// A behaviour sends the first message to a mailbox that another worker has in hand, puts down, and takes again. The other one's batch
/// ends the actor: after that nothing is handled.
fn taken_in_hand() {
    let actor = Actor::new(ATTACHED);
    let core = task(|actor: &Actor| {
        let early = mutant("checks-early").then(|| actor.append());
        let queue = enter(&actor.queue)?;
        queue.set(join(queue.get(), 1));
        if !actor.being_processed.is_free() {
            return Ok(());
        }
        actor.being_processed.take();
        let mail = queue.get();
        queue.set(0);
        // Only the message that was sent just now, and looked at since the mailbox is in hand.
        let is_checked = mutant("checks-of-queued") || early.unwrap_or_else(|| actor.append());
        drop(queue);
        let is_handled = actor.deliver(mail, is_checked)?;
        assert!(!is_handled || actor.word.get() == ATTACHED, "an actor that has ended has handled a message");
        actor.being_processed.put_down();
        Ok(())
    });
    let other = task(|actor: &Actor| {
        let queue = enter(&actor.queue)?;
        if !actor.being_processed.is_free() {
            return Ok(());
        }
        actor.being_processed.take();
        drop(queue);
        // Its state is dropped.
        actor.handle(9);
        actor.word.set(ENDED);
        actor.being_processed.put_down();
        Ok(())
    });
    // What is refused is judged, too: each step holds by itself.
    let _: [Result<(), Refused>; 2] = run(&actor, [core, other]);
}

/// A sender anywhere, while two workers take mail one after the other, or one of them twice. The first message ends the actor: after that
/// nothing is handled, whenever it was sent.
fn queued() {
    let actor = Actor::new(ATTACHED);
    actor.queue.lock().set(LAST);
    let sender = task(|actor: &Actor| {
        actor.send(1)?;
        actor.send(2)
    });
    let worker = |rounds: u32| {
        task(move |actor: &Actor| {
            let Some((mail, is_checked)) = actor.take(false)? else { return Ok(()) };
            actor.deliver_batch(mail, is_checked)?;
            for _ in 1..rounds {
                if let Some((mail, is_checked)) = actor.take(true)? {
                    actor.deliver_batch(mail, is_checked)?;
                }
            }
            actor.being_processed.put_down();
            Ok(())
        })
    };
    // What is refused is judged, too: each step holds by itself.
    let _: [Result<(), Refused>; 3] = run(&actor, [sender, worker(2), worker(1)]);
}

/// A behaviour was suspended, and ends on another core, while a message comes through the queue: it is handled once, after that, by who
/// sees what was done before.
fn comes_back_queued() {
    let actor = Actor::new(DETACHED);
    let activation = task(|actor: &Actor| {
        actor.handle(1);
        actor.come_back()
    });
    let sender = task(|actor: &Actor| actor.send(2));
    let worker = task(|actor: &Actor| {
        let Some((mail, is_checked)) = actor.take(false)? else { return Ok(()) };
        if mail != 0 {
            actor.deliver(mail, is_checked)?;
        }
        actor.being_processed.put_down();
        Ok(())
    });
    if run(&actor, [activation, sender, worker]).iter().any(Result::is_err) {
        return;
    }
    let left = actor.queue.lock().get();
    assert_eq!(join(actor.handled.get(), left), 12, "lost, handled twice, or out of order");
}
