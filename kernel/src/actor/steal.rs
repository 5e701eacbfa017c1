//! Stealing mailboxes: one victim, one scan, one swap, then back to normal work.
//!
//! The thief exchanges the pointer in one of its own slots, whose mailbox is empty, for one in the victim's
//! range whose mailbox has mail and is not being processed. Senders do not notice: they write to mailboxes,
//! not to slots. The victim does not notice either, unless it had just read the pointer: then both try to
//! gulp, and one of them misses.
//!
//! Afterwards each of the two mailboxes has another owner. A sender that read the old one may have woken
//! the wrong worker, or nobody. So the thief, having published the new owners, passes a full barrier and
//! looks at the mailbox that it gave away: if there is mail, it wakes the new owner. The one it took it
//! looks at anyway, before it waits.

use core::ptr::NonNull;

use super::mailbox::Mailbox;
use super::worker::Worker;
use crate::arch::atomic::Ordering;
use crate::arch::swap::double_swap;
use crate::arch::{SwapOutcome, barrier, clock};
use crate::machine;
use crate::sync::PreemptGuard;

/// How a thief chooses its victim among the workers of its executor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VictimRule {
    /// Nobody steals.
    None,
    /// The one that has not run dry for the longest time: the rule of C∀.
    LongestVictim,
    /// Any other, with equal chance.
    Random,
    /// The one with most mailboxes that have mail.
    Load,
    /// The nearest that has mail.
    Locality,
    /// By load seven times in ten, else at random.
    Hybrid,
}

impl VictimRule {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::None, Self::LongestVictim, Self::Random, Self::Load, Self::Locality, Self::Hybrid];
}

/// Tries to steal one mailbox for a worker that has run dry. Called in its turn, between batches.
pub(super) fn try_steal(thief: &Worker) -> bool {
    let shared = &*thief.shared;
    if shared.victim_rule == VictimRule::None || shared.workers().len() < 2 || !shared.begin_search() {
        return false;
    }
    // Relaxed: a hint for other thieves. Also before a failure, or they would all keep to the same victim.
    thief.dry_since.store(clock::now(), Ordering::Relaxed);
    let stolen = search(thief);
    shared.end_search();
    stolen
}

fn search(thief: &Worker) -> bool {
    let here = PreemptGuard::new();
    let statistics = Worker::statistics(&here);
    statistics.mailbox_steal_attempts.bump();
    let Some(victim) = choose(thief) else {
        statistics.steal_failures_no_candidate.bump();
        return false;
    };
    let (Some(mine), Some(his)) = (empty_slot(thief), full_slot(thief, victim)) else {
        statistics.steal_failures_no_candidate.bump();
        return false;
    };
    let table = &thief.shared.table;
    match double_swap(&table[mine], &table[his]) {
        SwapOutcome::Swapped { gained, given } => {
            hand_over(thief, victim, gained, given);
            statistics.mailboxes_stolen.bump();
            // SAFETY: mailboxes are never freed.
            statistics.messages_stolen.add(u64::from(unsafe { gained.as_ref() }.waiting()));
            // SAFETY: this is the worker's turn.
            unsafe { thief.private() }.cursor.set(mine - thief.first);
            true
        }
        SwapOutcome::VictimSlotNull => {
            statistics.steal_failures_slot_null.bump();
            false
        }
        SwapOutcome::LostMine => {
            statistics.steal_failures_lost_mine.bump();
            false
        }
        SwapOutcome::LostHis => {
            statistics.steal_failures_lost_his.bump();
            false
        }
    }
}

fn hand_over(thief: &Worker, victim: &Worker, gained: NonNull<Mailbox>, given: NonNull<Mailbox>) {
    // SAFETY: mailboxes are never freed.
    let (gained, given) = unsafe { (gained.as_ref(), given.as_ref()) };
    gained.set_owner(thief.index);
    given.set_owner(victim.index);
    // Pairs with the barrier in `Worker::notify`: a sender that read an old owner has stored the length
    // before, and it is seen here.
    barrier::full();
    if given.waiting() > 0 {
        victim.wake_if_idle();
    }
}

/// A slot of the thief's own whose mailbox is at rest.
fn empty_slot(thief: &Worker) -> Option<usize> {
    (0..thief.slots)
        .find(|&offset| {
            let mailbox = thief.own(offset);
            mailbox.waiting() == 0 && !mailbox.is_being_processed() && !mailbox.is_pinned()
        })
        .map(|offset| thief.first + offset)
}

/// A slot of the victim's whose mailbox has mail that nobody is handling; one sweep from a random start.
fn full_slot(thief: &Worker, victim: &Worker) -> Option<usize> {
    let start = thief.random_below(victim.slots);
    (0..victim.slots).map(|offset| victim.first + (start + offset) % victim.slots).find(|&slot| {
        // Acquire: pairs with the release of the swap that put it there.
        let mailbox = thief.shared.table[slot].load(Ordering::Acquire);
        // SAFETY: mailboxes are never freed; null while a thief has the slot.
        unsafe { mailbox.as_ref() }.is_some_and(|mailbox| {
            mailbox.waiting() > 0 && !mailbox.is_being_processed() && !mailbox.is_pinned()
        })
    })
}

fn choose(thief: &Worker) -> Option<&Worker> {
    let rule = match thief.shared.victim_rule {
        VictimRule::Hybrid if thief.random_below(10) < 7 => VictimRule::Load,
        VictimRule::Hybrid => VictimRule::Random,
        rule => rule,
    };
    let workers = thief.shared.workers();
    let others = || workers.iter().filter(|worker| worker.index != thief.index).map(|worker| &**worker);
    match rule {
        VictimRule::None => None,
        // Relaxed: a hint.
        VictimRule::LongestVictim => others().min_by_key(|worker| worker.dry_since.load(Ordering::Relaxed)),
        VictimRule::Random | VictimRule::Hybrid => others().nth(thief.random_below(workers.len() - 1)),
        VictimRule::Load => others().max_by_key(|worker| worker.mailboxes_with_mail()),
        VictimRule::Locality => others()
            .filter(|worker| worker.mailboxes_with_mail() > 0)
            .min_by_key(|worker| machine::distance(thief.core(), worker.core())),
    }
}
