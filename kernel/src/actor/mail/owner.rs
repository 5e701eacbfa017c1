//! Whose worker a mailbox is: a hint for senders, and how it is kept true enough.
//!
//! A sender that makes an empty mailbox non-empty must wake the mailbox's worker if it sleeps. It finds the
//! worker through a number in the mailbox, which lags behind the table when the mailbox is stolen. The same
//! number says in which of its slots the worker should look; that is a hint only, for before a worker sleeps it
//! looks at all.
//!
//! ```text
//!   sender                     thief                          worker that goes to sleep
//!   ──────                     ─────                          ─────────────────────────
//!   count the message          swap the pointers              announce that it sleeps
//!   full barrier               store both owner numbers       full barrier
//!   read the owner number      full barrier                   look at its whole range
//!   wake that worker if it     look at the mailbox it gave:
//!   sleeps                     if there is mail, wake its worker
//! ```
//!
//! Of sender and thief, with a full barrier each, at least one sees the other's store. If the sender read an
//! old number, the thief sees the message: in the mailbox it gave, and wakes the worker; in the one it took,
//! at the latest when it looks before it sleeps. That look and the sender's wake-up exclude a lost wake-up in
//! the same way.
//!
//! Two thieves may move one mailbox shortly after one another and store their numbers in the wrong order. So
//! who has stored a number looks once more, after a full barrier, whether the slot still holds the mailbox,
//! and if not, finds where it is and stores again. The number that is left in the end was stored by somebody
//! who found it right afterwards. A mailbox that is in no slot is in the hands of a thief, which stores after
//! the swap.

use super::mailbox::Mailbox;
use super::place::Place;
use super::table::Table;

/// A thief has put `mailbox` into `slot`. Returns where it is now; a full barrier has passed since
/// its number was stored. `None` if another thief has it in hand, who will do the same.
pub(crate) fn publish(table: &Table, mailbox: &Mailbox, slot: usize) -> Option<Place> {
    let bits = mailbox.owner.publish(
        slot,
        |slot| table.place_of(slot).bits() as usize,
        |slot| core::ptr::eq(table.at(slot), mailbox),
        || table.slot_of(mailbox),
    )?;
    Some(Place::from_bits(bits as u32))
}

/// A sender has made `mailbox` non-empty: the worker it should wake, and where that should look.
#[inline(always)]
pub(crate) fn after_first_message(mailbox: &Mailbox) -> Place {
    Place::from_bits(mailbox.owner.after_work() as u32)
}
