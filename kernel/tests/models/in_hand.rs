//! Mail in hand: who takes it, in which order it is handled, and that none is left with nobody.
//!
//! One task of a model is all that runs on the core of worker A: behaviours in its turn, and the worker. Nothing but the
//! mailbox's lock and its flags orders that with the others. Who is refused the lock gives up, as in `guests`.

mod mailbox;

use magpie::internals::arch::atomic::Ordering;

use self::mailbox::{CORE_A, CORE_B, Mailbox, Refused, To, judge, judge_both, judged, length};
use crate::harness::{Model, Mutant, ordering, step};
use crate::tool::{run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "in_hand::taken_or_gulped",
        preemptions: Some(3),
        body: taken_or_gulped,
        mutants: &[
            // shuttle would have to hold up one of the two for twenty steps.
            Mutant { name: "hand-take-unasked", rejected_by: &["loom"] },
            step("gulp-unasked"),
            ordering("gulp-flag-relaxed"),
            ordering("done-relaxed"),
        ],
    },
    Model {
        name: "in_hand::held_or_gulped",
        preemptions: Some(3),
        body: held_or_gulped,
        mutants: &[
            // As above: of three messages the second would have to come while the first is handled.
            Mutant { name: "hold-unasked", rejected_by: &["loom"] },
            Mutant { name: "hold-asked-early", rejected_by: &["loom"] },
            step("gulp-unasked"),
            step("hand-add-unasked"),
            ordering("gulp-flag-relaxed"),
            ordering("done-relaxed"),
            ordering("put-down-no-fence"),
        ],
    },
    Model {
        name: "in_hand::directly_or_gulped",
        preemptions: Some(3),
        body: directly_or_gulped,
        mutants: &[
            step("direct-before-others"),
            step("direct-asked-early"),
            ordering("gulp-flag-relaxed"),
            ordering("done-relaxed"),
            ordering("put-down-no-fence"),
        ],
    },
    Model {
        name: "in_hand::sender_that_comes",
        preemptions: Some(3),
        body: sender_that_comes,
        mutants: &[step("hand-add-unasked")],
    },
    Model {
        name: "in_hand::held_again",
        preemptions: Some(3),
        body: held_again,
        mutants: &[step("hand-add-unasked")],
    },
    Model {
        name: "in_hand::sender_that_leaves",
        preemptions: Some(3),
        body: sender_that_leaves,
        mutants: &[step("hand-back-behind")],
    },
    Model {
        name: "in_hand::rest",
        preemptions: Some(3),
        body: rest,
        mutants: &[
            step("rest-unlooked"),
            ordering("wait-no-fence"),
            ordering("put-down-no-fence"),
            ordering("owner-send-no-fence"),
        ],
    },
    Model {
        name: "in_hand::put_back",
        preemptions: Some(3),
        body: put_back,
        mutants: &[step("hand-back-untold"), ordering("wait-no-fence")],
    },
];

/// A behaviour on core A sends two messages, and its worker handles what it has in hand by then; another worker gulps. One
/// of the two at a time is in the actor.
fn taken_or_gulped() {
    let mailbox = Mailbox::new(1, false, false);
    let sender = task(|mailbox: &Mailbox| {
        let sent = [mailbox.send(CORE_A, 2)?, mailbox.send(CORE_A, 3)?];
        if !sent.contains(&To::Hand) {
            return Ok(sent.contains(&To::Owner));
        }
        mailbox.deliver();
        let told = mailbox.end_rest() == Some(To::Owner);
        Ok(told || sent.contains(&To::Owner))
    });
    let owner = task(|mailbox: &Mailbox| Ok(mailbox.gulp()? == Some(To::Owner)));
    let Some([sender, owner]) = judged(run(&mailbox, [sender, owner])) else { return };
    let (all, is_left) = mailbox.all();
    judge(all, 123, 2, 3);
    assert_eq!(all / 100, 1, "out of order: {all}");
    // The first message of all was told of before.
    let began = mailbox.handled.get() == 0;
    assert!(!is_left || began || sender || owner, "the mail is with nobody");
}

/// A sender puts its first message into the queue from core B, and has the loop of core A, whose worker waits there, send the next, as a timer or a signal. Another worker
/// gulps.
fn directly_or_gulped() {
    let mailbox = Mailbox::new(0, false, false);
    let before = task(|mailbox: &Mailbox| Ok(mailbox.send_and_move()? == Some(To::Owner)));
    let direct = task(|mailbox: &Mailbox| {
        // Acquire: as a core that takes the process from there.
        let is_second = mailbox.moved.load(Ordering::Acquire);
        let to = mailbox.send_directly(if is_second { 2 } else { 3 })?;
        if to != To::Hand {
            return Ok(to == To::Owner);
        }
        mailbox.deliver();
        Ok(mailbox.end_rest() == Some(To::Owner))
    });
    let other = task(|mailbox: &Mailbox| Ok(mailbox.gulp()? == Some(To::Owner)));
    let Some(told) = judged(run(&mailbox, [before, direct, other])) else { return };
    let (all, is_left) = mailbox.all();
    // One sender's come in order; the 3 is another's.
    assert!([12, 13, 31].contains(&all), "a message was lost, handled twice, or out of order: {all}");
    assert!(!is_left || told.contains(&true), "the mail is with nobody");
}

/// Worker A begins a round and takes what waits in hand, behaviours on its core send behind it, and it is handled. Another
/// worker gulps. One of those senders has put its first message into the queue from another core meanwhile.
fn held_or_gulped() {
    let mailbox = Mailbox::new(4, false, false);
    let before = task(|mailbox: &Mailbox| Ok(mailbox.send_and_move()? == Some(To::Owner)));
    let round = task(|mailbox: &Mailbox| {
        let mut is_held = mailbox.hold_waiting()?;
        let mut told = false;
        let mut add = |message| {
            let to = mailbox.send(CORE_A, message)?;
            is_held |= to == To::Hand;
            told |= to == To::Owner;
            Ok(())
        };
        add(5)?;
        // Acquire: as a core that takes the process from there.
        if mailbox.moved.load(Ordering::Acquire) {
            add(2)?;
        }
        if is_held {
            mailbox.deliver();
            told |= mailbox.end_rest() == Some(To::Owner);
        }
        Ok(told)
    });
    let other = task(|mailbox: &Mailbox| Ok(mailbox.gulp()? == Some(To::Owner)));
    let Some(told) = judged(run(&mailbox, [before, round, other])) else { return };
    let (all, is_left) = mailbox.all();
    let has_both = length(all) == 4;
    judge(all, if has_both { 4512 } else { 451 }, 4, 5);
    if has_both {
        judge(all, 4512, 1, 2);
    }
    assert!(!is_left || told.contains(&true), "the mail is with nobody");
}

/// A sender puts a message into the queue from core B, comes to core A, where the mailbox is in hand, and sends another.
fn sender_that_comes() {
    let mailbox = Mailbox::new(9, true, false);
    let before = task(Mailbox::send_and_move);
    let after = task(|mailbox: &Mailbox| {
        // Acquire: as a core that takes the process from there.
        if mailbox.moved.load(Ordering::Acquire) {
            mailbox.send(CORE_A, 2)?;
        }
        mailbox.deliver();
        mailbox.gulp_again()?;
        Ok(mailbox.end_rest())
    });
    judge_both(&mailbox, run(&mailbox, [before, after]));
}

/// As before, and the mailbox is taken in hand again behind its batch, without being put down. The sender comes before that
/// or after it.
fn held_again() {
    let mailbox = Mailbox::new(9, true, false);
    let before = task(Mailbox::send_and_move);
    let after = task(|mailbox: &Mailbox| {
        // Acquire, here and below: as above.
        let came_early = mailbox.moved.load(Ordering::Acquire);
        if came_early {
            mailbox.send(CORE_A, 2)?;
        }
        mailbox.deliver();
        mailbox.hold_again()?;
        if !came_early && mailbox.moved.load(Ordering::Acquire) {
            mailbox.send(CORE_A, 2)?;
        }
        mailbox.deliver();
        Ok(mailbox.end_rest())
    });
    judge_both(&mailbox, run(&mailbox, [before, after]));
}

/// A sender adds to what is in hand on core A, goes on to core B, and sends another from there. What was in hand is put back
/// meanwhile, and another worker gulps.
fn sender_that_leaves() {
    let mailbox = Mailbox::new(9, true, false);
    let before = task(|mailbox: &Mailbox| {
        mailbox.send(CORE_A, 1)?;
        // Release and acquire: as above.
        mailbox.moved.store(true, Ordering::Release);
        mailbox.put_back()
    });
    let after = task(|mailbox: &Mailbox| {
        if mailbox.moved.load(Ordering::Acquire) {
            return mailbox.send(CORE_B, 2).map(Some);
        }
        Ok(None)
    });
    let owner = task(Mailbox::gulp);
    judge_both(&mailbox, run(&mailbox, [before, after, owner]));
}

/// What a thread did about the mail: it has it in its own list, or has seen it before it would sleep.
type SeesTo = Result<bool, Refused>;

/// The mailbox rests in hand. Mail comes from elsewhere, the turn ends, the owner falls asleep.
fn rest() {
    let mailbox = Mailbox::new(0, true, false);
    let sender = task(|mailbox: &Mailbox| -> SeesTo { Ok(mailbox.send(CORE_B, 1)? == To::Me) });
    let holder = task(|mailbox: &Mailbox| -> SeesTo { Ok(mailbox.end_rest() == Some(To::Me)) });
    let owner = task(|mailbox: &Mailbox| -> SeesTo { Ok(mailbox.owner_waits()) });
    let Some(sees_to) = judged(run(&mailbox, [sender, holder, owner])) else { return };
    assert!(sees_to.contains(&true), "the mail is with nobody");
}

/// Mail in hand is put back while more comes from elsewhere, and the owner falls asleep.
fn put_back() {
    let mailbox = Mailbox::new(12, true, false);
    let sender = task(|mailbox: &Mailbox| -> SeesTo { Ok(mailbox.send(CORE_B, 3)? == To::Me) });
    let holder = task(|mailbox: &Mailbox| -> SeesTo { Ok(mailbox.put_back()? == Some(To::Me)) });
    let owner = task(|mailbox: &Mailbox| -> SeesTo { Ok(mailbox.owner_waits()) });
    let Some(sees_to) = judged(run(&mailbox, [sender, holder, owner])) else { return };
    assert_eq!(mailbox.all().0, 123, "a message was lost, or is out of order");
    assert!(sees_to.contains(&true), "the mail is with nobody");
}
