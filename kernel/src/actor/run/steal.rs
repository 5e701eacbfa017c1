//! Stealing mailboxes: one search, one swap, then back to normal work.
//!
//! A thief scans the range of each other worker once, up to the first mailbox that may leave, and takes that of the best victim by its rule.
//!
//! The thief exchanges the pointer in one of its own slots, whose mailbox is empty, for one in the victim's
//! range whose mailbox has mail, is not being processed, and may leave: a fresh lone message is not stolen
//! (see `worker/surplus.rs`). Senders do not notice: they write to mailboxes,
//! not to slots. The victim does not notice either, unless it had just read the pointer: then both try to
//! gulp, and one of them misses.
//!
//! To look at all mailboxes of all workers takes long, and a turn that is between two batches cannot be suspended. So the search disables
//! preemption for the exchange alone, and stops where the turn is to end: that turn then does not wait, and the next begins anew.
//!
//! Afterwards each of the two mailboxes has another worker, which the thief makes known: see
//! `mail/owner_hint.rs`.

use core::ptr::NonNull;

use super::mailbox_victim::MailboxVictim;
use super::worker::Worker;
use crate::actor::mail::Mailbox;
use crate::arch::atomic::Ordering;
use crate::arch::swap::double_swap;
use crate::arch::{SwapOutcome, clock};
use crate::machine;
use crate::sched::{self, Setting};
use crate::sync::PreemptGuard;
use crate::trace::{self, Kind};

/// Tries to steal one mailbox for a worker that has run dry. Called in its turn, between batches.
pub(super) fn try_steal(thief: &Worker) -> bool {
    let executor = &*thief.executor;
    if executor.victim_rule == MailboxVictim::None || executor.workers().len() < 2 || !executor.begin_search()
    {
        return false;
    }
    // Relaxed: a hint for other thieves. Also before a failure, or they would all keep to the same victim.
    thief.dry_since.store(clock::now(), Ordering::Relaxed);
    let stolen = search(thief);
    executor.end_search();
    stolen
}

fn search(thief: &Worker) -> bool {
    Worker::statistics(&PreemptGuard::new()).mailbox_steal_attempts.bump();
    let found = (empty_slot(thief), find(thief, clock::now()).filter(|&slot| has_mail(thief, slot)));
    // The worker's turn is its core's until it is over, so this is the core that it was before.
    let here = PreemptGuard::new();
    let statistics = Worker::statistics(&here);
    let (Some(thief_slot), Some(victim_slot)) = found else {
        statistics.steal_failures_no_candidate.bump();
        return false;
    };
    let table = &thief.executor.table;
    match double_swap(table.slot(thief_slot), table.slot(victim_slot)) {
        SwapOutcome::Swapped { gained, given } => {
            // SAFETY: mailboxes are never freed.
            unsafe { gained.as_ref() }.hand_over();
            thief.note_robbed(usize::from(table.place_of(victim_slot).worker));
            hand_over(thief, (gained, thief_slot), (given, victim_slot));
            statistics.mailboxes_stolen.bump();
            let victim = usize::from(table.place_of(victim_slot).worker);
            trace::note(Kind::MailboxStolen, gained.addr().get() as u64, victim as u32, None);
            // SAFETY: mailboxes are never freed.
            statistics.messages_stolen.add(u64::from(unsafe { gained.as_ref() }.waiting()));
            true
        }
        SwapOutcome::VictimSlotNull => {
            statistics.steal_failures_victim_slot_null.bump();
            false
        }
        SwapOutcome::LostThiefSlot => {
            statistics.steal_failures_lost_thief_slot.bump();
            false
        }
        SwapOutcome::LostVictimSlot => {
            statistics.steal_failures_lost_victim_slot.bump();
            false
        }
    }
}

/// Whether the mailbox in a slot still has mail that nobody has in hand, some time after it was found. The swap would not notice.
fn has_mail(thief: &Worker, slot: usize) -> bool {
    // SAFETY: mailboxes are never freed; null while a thief has the slot.
    unsafe { thief.executor.table.at(slot).as_ref() }
        .is_some_and(|mailbox| mailbox.waiting() > 0 && !mailbox.is_being_processed() && !mailbox.is_pinned())
}

/// Makes known where the two mailboxes are now, and wakes the worker of the one that was given if mail came
/// for it meanwhile. The one that was gained the thief looks at anyway, before it waits.
fn hand_over(thief: &Worker, gained: (NonNull<Mailbox>, usize), given: (NonNull<Mailbox>, usize)) {
    let executor = &*thief.executor;
    for ((mailbox, slot), is_given) in [(gained, false), (given, true)] {
        // SAFETY: mailboxes are never freed.
        let mailbox = unsafe { mailbox.as_ref() };
        let Some(place) = executor.table.publish(mailbox, slot) else { continue };
        let worker = &executor.workers()[usize::from(place.worker)];
        mailbox.note_core(worker.core());
        if mailbox.waiting() > 0 {
            worker.hint(usize::from(place.offset));
            if is_given || worker.index != thief.index {
                worker.wake_if_idle();
            }
        }
    }
}

/// A slot of the thief's own whose mailbox is at rest.
fn empty_slot(thief: &Worker) -> Option<usize> {
    (0..thief.range.slots)
        .find(|&offset| {
            let mailbox = thief.own(offset);
            mailbox.waiting() == 0 && !mailbox.is_being_processed() && !mailbox.is_pinned()
        })
        .map(|offset| thief.range.first + offset)
}

/// A slot of the victim's whose mailbox may leave, when mail there waits for `wait` clock ticks; one sweep from place `start` of its range,
/// until the turn is to end.
fn full_slot(thief: &Worker, victim: &Worker, start: usize, (now, wait): (u64, u64)) -> Option<usize> {
    let range = victim.range;
    let start = start.min(range.slots);
    let mailboxes = thief.executor.table.all_of_from(range, start).take_while(|_| !sched::is_exhausted());
    let may_be_stolen = |mailbox: *mut Mailbox| {
        // SAFETY: mailboxes are never freed; null while a thief has the slot.
        unsafe { mailbox.as_ref() }.is_some_and(|mailbox| mailbox.may_be_stolen(now, wait))
    };
    let place = mailboxes.map(may_be_stolen).position(|may| may)?;
    let place = start + place;
    Some(range.first + if place < range.slots { place } else { place - range.slots })
}

/// Who has found something and looked at so many mailboxes looks no further for a better one: it would be stale by then.
const ENOUGH: usize = 256;

/// A slot whose mailbox may leave, of the best victim by the rule that has one. All workers are looked at once: most searches find nothing, and to
/// try one victim after the other, each the best of those that were left, took as long as all the rest on sixteen cores.
fn find(thief: &Worker, now: u64) -> Option<usize> {
    let rule = match thief.executor.victim_rule {
        MailboxVictim::Hybrid if thief.random_below(10) < 7 => MailboxVictim::Load,
        MailboxVictim::Hybrid => MailboxVictim::Random,
        rule => rule,
    };
    // One for all: their ranges are of the same length, or one longer.
    let start = thief.random_below(thief.range.slots);
    let wait = sched::setting_ticks(Setting::ShareWaitMicroseconds);
    let (mut best, mut looked_at) = (None, 0);
    for worker in thief.executor.workers() {
        // What was found is taken, though the turn is to end: it might be asked to each time.
        if sched::is_exhausted() || (best.is_some() && looked_at > ENOUGH) {
            break;
        }
        if worker.index == thief.index {
            continue;
        }
        looked_at += worker.range.slots;
        // Counted only where that says anything.
        let with_mail = if rule == MailboxVictim::Load || worker.is_worth_robbing() {
            worker.mailboxes_with_mail()
        } else {
            1
        };
        if with_mail == 0 {
            continue;
        }
        if let Some(slot) = full_slot(thief, worker, start, (now, worker.wait_of(wait, with_mail as usize))) {
            let cost = cost(thief, worker, rule, with_mail);
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, slot));
            }
        }
    }
    best.map(|(_, slot)| slot)
}

/// How good a victim is by the rule, given how many mailboxes with mail it has, if the rule is about that: the less, the better.
fn cost(thief: &Worker, victim: &Worker, rule: MailboxVictim, with_mail: u32) -> u64 {
    match rule {
        // Relaxed: a hint.
        MailboxVictim::LongestVictim => victim.dry_since.load(Ordering::Relaxed),
        MailboxVictim::None | MailboxVictim::Random | MailboxVictim::Hybrid => {
            thief.random_below(usize::MAX) as u64
        }
        MailboxVictim::Load => u64::MAX - u64::from(with_mail),
        MailboxVictim::Locality => u64::from(machine::distance(thief.core(), victim.core())),
    }
}
