//! The mailboxes that an executor keeps for actors that want one alone, and who has them.
//!
//! They are in the table as all others are, from the executor's start to its end: they are stolen, gulped and closed like those. Only,
//! no actor is put there but the one that was given it. Nobody gives one back: whose it is says its cell's word, and when that shows
//! no actor of this mailbox any more, and nothing waits there, the next may have it. So it cannot be lost, however an actor ends.

use alloc::vec::Vec;

use crate::actor::mail::{Bound, Mailbox};
use crate::actor::storage::{CellRef, Life, MailboxIndex};
use crate::sync::{PreemptGuard, SpinLock};

/// So many are looked at with preemption disabled.
const LOOKS: usize = 32;

/// Whose a mailbox is.
#[derive(Clone, Copy)]
enum Tenant {
    Nobody,
    /// One that is being spawned.
    Coming,
    /// The actor in this cell, as long as there is one with this mailbox.
    In(CellRef),
}

// SAFETY: cells' words may be used from any core.
unsafe impl Send for Tenant {}

impl Tenant {
    /// Whether somebody has the mailbox with this number.
    fn stays(self, index: MailboxIndex) -> bool {
        let cell = match self {
            Self::Nobody => return false,
            Self::Coming => return true,
            Self::In(cell) => cell,
        };
        // The acquire in it is for `Mailbox::let_to_one`.
        let word = cell.word();
        // One that was vacated keeps its mailbox for a successor. In a word that was overwritten nothing is known.
        word.mailbox() == index && !matches!(word.life(), Some(Life::Free | Life::Retired))
    }
}

struct Tenants {
    list: Vec<Tenant>,
    /// Where the next search begins.
    next: usize,
    /// How many searches have found one.
    lettings: u64,
}

/// The mailboxes of an executor that are for one actor each.
pub(crate) struct OwnMailboxes {
    mailboxes: Vec<&'static Mailbox>,
    tenants: SpinLock<Tenants>,
}

/// One of them, which was found for an actor that is being spawned.
pub(crate) struct Found {
    pub mailbox: &'static Mailbox,
    number: usize,
}

impl OwnMailboxes {
    /// Nobody's yet; `None` without memory.
    pub(super) fn new(all: &[&'static Mailbox]) -> Option<Self> {
        let (mut mailboxes, mut list) = (Vec::new(), Vec::new());
        mailboxes.try_reserve_exact(all.len()).ok()?;
        list.try_reserve_exact(all.len()).ok()?;
        mailboxes.extend_from_slice(all);
        list.resize(all.len(), Tenant::Nobody);
        Some(Self { mailboxes, tenants: SpinLock::new(Tenants { list, next: 0, lettings: 0 }) })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.mailboxes.len()
    }

    /// Finds one that nobody has, for an actor with this bound. [`Self::let_to`] must follow, which preemption being off sees to: it is while the
    /// guard is there. The caller holds none, so that it is enabled in between if many are taken.
    pub(crate) fn find(&self, bound: Bound) -> Option<(Found, PreemptGuard)> {
        loop {
            let before = self.tenants.lock().lettings;
            let found = self.find_once(bound);
            // One that became free behind the look may have been let to somebody else, while another that was free before it is passed.
            if found.is_some() || self.tenants.lock().lettings == before {
                return found;
            }
        }
    }

    fn find_once(&self, bound: Bound) -> Option<(Found, PreemptGuard)> {
        let count = self.count();
        let first = self.tenants.lock().next;
        for begin in (0..count).step_by(LOOKS) {
            let here = PreemptGuard::new();
            let mut tenants = self.tenants.lock();
            for step in begin..count.min(begin + LOOKS) {
                let number = (first + step) % count;
                let mailbox = self.mailboxes[number];
                if !tenants.list[number].stays(mailbox.index()) && mailbox.let_to_one(bound) {
                    tenants.list[number] = Tenant::Coming;
                    tenants.next = number + 1;
                    tenants.lettings += 1;
                    return Some((Found { mailbox, number }, here));
                }
            }
        }
        None
    }

    /// The actor in this cell has it from now on, or nobody.
    pub(crate) fn let_to(&self, found: Found, cell: Option<CellRef>) {
        self.tenants.lock().list[found.number] = cell.map_or(Tenant::Nobody, Tenant::In);
    }
}
