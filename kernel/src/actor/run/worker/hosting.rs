//! Guests: mailboxes of idle workers, whose mail was sent on this worker's core and is handled here.
//!
//! Waking an idle core for one message costs more than handling it. So whoever sends a lone message to an actor whose
//! worker is idle takes the mailbox in hand for the worker on its own core (`run_list.rs`). Where that is not possible,
//! because there is no segment for it, say, the mailbox becomes a *guest* of that worker, the *host*, which gulps it itself.
//! The mailbox stays where it is in the table, and its owner stays its owner: the next message may find that one awake.
//!
//! - Guests wait in the host's run list, behind what came before them. A mailbox is a guest of one host at most: [`GuestFlag`](crate::actor::mail::guest_flag::GuestFlag) says so, and why no
//!   mail is overlooked.
//! - Only code on the host's core touches the list, with preemption off. So a host that goes to
//!   sleep cannot miss a guest: whoever invites one runs before that or after it, and then wakes the host.
//! - No more than [`MOST_GUESTS`] are there at once, for others the owner is woken: who empties the host's hand passes all of them.
//! - What excludes two workers is `being_processed`, for guests as for all: the owner may take the mailbox all the same
//!   (see [`surplus`](super::surplus)), a thief may steal it from the owner. Then the host finds nothing, or misses.
//! - The list is the host's alone and ends with it. Mailboxes are closed by then; the next executor that opens one takes
//!   the flag back.

use super::Worker;
use crate::actor::mail::Mailbox;
use crate::actor::mail::list::Waiting;
use crate::arch::atomic::Ordering;
use crate::sync::PreemptGuard;

/// How many guests a worker has at once, at most.
const MOST_GUESTS: usize = 128;

impl Worker {
    /// Whether it may have one more guest. On its core, with preemption off.
    pub(in crate::actor::run) fn has_room_for_guest(&self, _here: &PreemptGuard) -> bool {
        self.guests.get() < MOST_GUESTS
    }

    /// A sender on this worker's core gives it a mailbox to handle, whose flag it has claimed. There is room.
    #[inline(always)]
    pub(in crate::actor::run) fn invite(&self, mailbox: &Mailbox, _here: &PreemptGuard) {
        self.guests.set(self.guests.get() + 1);
        self.run_list.push(Waiting::Guest(mailbox.for_ever()));
        self.count_guest();
    }

    /// Mail of an idle worker's mailbox is handled here.
    pub(in crate::actor::run) fn count_guest(&self) {
        self.statistics.guests.bump();
    }

    /// Whether more waits for it than what it has in hand. On its own core, with preemption off or in its turn where no batch is armed.
    #[inline(always)]
    pub(in crate::actor::run) fn has_other_work(&self) -> bool {
        // SAFETY: the caller is on the worker's core, and interrupts what it does there at most between two accesses.
        let round = unsafe { self.private() }.round.get();
        // Relaxed: an estimate.
        round != 0 || self.hints.load(Ordering::Relaxed) != 0 || self.run_list.any()
    }

    /// A guest was taken out of the list, and has its turn. In the worker's turn.
    pub(super) fn receive(&self, mailbox: &Mailbox) {
        let here = PreemptGuard::new();
        self.guests.set(self.guests.get() - 1);
        drop(here);
        // From here on it may be invited again, here or elsewhere.
        mailbox.guest.clear();
    }

    /// A mailbox could not be gulped. If there was no memory for a buffer, a guest comes round again, because nobody else
    /// looks at it.
    #[cold]
    #[inline(never)]
    pub(super) fn not_gulped(&self, mailbox: &Mailbox, was_guest: bool) {
        if was_guest && mailbox.is_ripe() {
            self.executor.notify(mailbox, &PreemptGuard::new());
        }
    }
}
