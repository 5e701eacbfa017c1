//! Mail in hand: taking what has just come in hand for this core's worker, and putting it back where other cores find it.
//!
//! What is written to mail in hand, and read from it, is in `mail/hand.rs`; whose worker may have it is decided above.

use core::ptr::NonNull;

use super::{Inside, Mailbox};
use crate::actor::mail::segment::{self, Segment};
use crate::sched::{self, Setting};
use crate::sync::PreemptGuard;

impl Mailbox {
    /// The first message has been written, and nobody was told of it: takes it in hand for the worker on this core, which
    /// will look at it. Whether that is possible.
    #[inline(always)]
    pub(crate) fn take_in_hand(&self, inside: &mut Inside, here: &PreemptGuard) -> bool {
        // It pairs with `done`, as in `gulp`.
        if !self.being_processed.is_free() {
            return false;
        }
        let Some(held) = inside.queue.take_plain(|| self.hand.take_spare()) else { return false };
        self.being_processed.take();
        // SAFETY: the mail was taken out for the worker on this core, which nobody else can do from now on.
        unsafe { self.hand.hold(held, here) };
        true
    }

    /// Its batch was handled, and its gate is closed: takes what has come meanwhile in hand, in exchange for `spare`, without
    /// putting it down. Whether it could; `spare` is the mailbox's then.
    #[inline(always)]
    pub(crate) fn hold_again(&self, spare: NonNull<Segment>, here: &PreemptGuard) -> bool {
        // While a chain was handled a segment of it may have been kept.
        if self.hand.has_spare() {
            return false;
        }
        let mut inside = self.inside.lock();
        let messages = self.waiting();
        // A backlog waits where thieves see it.
        if u64::from(messages) > sched::setting(Setting::ShareBacklog) {
            return false;
        }
        let Some(held) = inside.queue.take_plain(|| Some(spare)) else { return false };
        inside.most_messages = inside.most_messages.max(messages);
        self.set_waiting(0);
        self.note_first();
        // SAFETY: the mail was taken out for the worker on this core, which nobody else can do from now on.
        unsafe { self.hand.hold(held, here) };
        true
    }

    /// Puts mail that waits in hand back in front of the queue, and puts the mailbox down. The caller is on the core that has
    /// it in hand, has taken it from the run list, and tells whoever should handle it.
    pub(crate) fn put_back(&self) {
        let mut inside = self.inside.lock();
        self.hand.close();
        if let Some(held) = self.hand.take_held() {
            // SAFETY: it was in hand, so nothing of it was delivered.
            let messages = unsafe { segment::count_between(Segment::begin(held.segment), held.end) };
            inside.queue.settle_front();
            // SAFETY: as above; settled.
            let emptied = unsafe { inside.queue.prepend(held) };
            self.set_waiting(self.waiting() + messages);
            if let Some(mut emptied) = emptied {
                // SAFETY: nobody else uses it.
                unsafe { emptied.as_mut() }.recycle();
                if !self.hand.keep_spare(emptied) {
                    // SAFETY: empty, and nobody else uses it.
                    unsafe { Segment::free(emptied) };
                }
            }
        }
        self.being_processed.put_down();
    }

    /// For whoever has counted a message and passed a full barrier since: whether a worker has a batch from here in
    /// hand, which will look again.
    #[inline(always)]
    pub(crate) fn is_left_to_holder(&self) -> bool {
        self.being_processed.is_left_to_holder()
    }
}
