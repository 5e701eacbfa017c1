//! Limits: how much memory some code may have in use, with all that it starts.
//!
//! Whoever allocates has an account or none (`sync::account`): a process from its start on, and what it starts has the same. A block is charged
//! to the account of who allocates it ([`charged`]), and comes back to it when it is freed, wherever that is ([`owners`]). How much is
//! in use is the [`accounts`]' to know.
//!
//! Memory that serves others is nobody's: mailboxes and their buffers, the kernel's lists and what it keeps for the next
//! ([`kernel_box`](super::kernel_box), [`PaidBy::nobody`](crate::sync::PaidBy::nobody)).

pub(crate) mod accounts;
mod charged;
mod owners;

use core::fmt;

pub(crate) use accounts::Payer;
use accounts::{Accounts, MOST_BYTES};
pub(super) use owners::{LEAST_BYTES as LEAST_CHARGED_BYTES, Owners};

use super::OutOfMemory;
use crate::sync::account_here;

/// As many as a byte can number.
static ACCOUNTS: Accounts<256> = Accounts::new();

/// How much memory processes, and the actors of executors, may have in use together, with all that they start.
///
/// It is given to a process at its start ([`Spawn::memory`](crate::sched::Spawn::memory)), to a supervisor's child
/// ([`Child::with`](crate::supervise::Child::with)) or to an executor ([`Config::memory`](crate::actor::Config::memory)). What such code starts has
/// the same limit, unless it is given another: processes, executors, and so their actors.
///
/// What it allocates is charged until it is freed, wherever and by whomever: what is sent away counts until the receiver has dropped it,
/// and what a crash leaves behind until it is collected. A block counts with all its bytes, of which there are 64 at least; a block that
/// grows counts twice while it is moved. A process itself counts; memory of the kernel's that serves others does not:
/// mailboxes with what fits into them, timers of sleepers, names, watches.
///
/// An allocation that would exceed the limit is refused, as if memory were used up: `try_reserve` has its error, and what cannot be refused
/// ends the process or actor with [`CrashKind::OutOfMemory`](crate::crash::CrashKind::OutOfMemory). Nobody else is touched.
///
/// Dropping it ends no limit: that stays in force as long as something is charged to it, but can be given to nobody any more.
///
/// There are 255 at a time. The first one takes a 64th of the machine's memory for good. On a host nothing is charged, and nothing refused.
///
/// ```
/// # use magpie::sched;
/// use magpie::mem::MemoryLimit;
/// use magpie::sched::Spawn;
///
/// # sched::run_on_threads(2, 1, async {
/// let limit = MemoryLimit::new(1 << 20)?;
/// let reader = Spawn::new().memory(&limit).start(async {
///     let mut line: Vec<u8> = Vec::new();
///     line.try_reserve(1000).map(|()| line.extend_from_slice(b"a line"))
/// })?;
/// assert_eq!(reader.await?, Ok(()));
/// println!("{} of {} bytes, at most {}", limit.used(), limit.bytes(), limit.most_used());
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # }).unwrap().unwrap();
/// ```
#[derive(Debug)]
pub struct MemoryLimit {
    payer: Payer,
}

/// Why there is no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LimitError {
    /// There are 255 already: that many are held, or still have something charged to them.
    TooMany,
    /// There is no memory to keep accounts in.
    OutOfMemory,
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooMany => "255 memory limits exist: drop one, and end what it was given to",
            Self::OutOfMemory => "out of memory: accounts take a 64th of it, make the first limit earlier",
        })
    }
}

impl core::error::Error for LimitError {}

impl MemoryLimit {
    /// The largest limit in bytes; a larger one is taken for it.
    pub const MOST: usize = MOST_BYTES;

    /// A limit of so many bytes. With 0 nothing can be started under it.
    ///
    /// # Errors
    /// [`LimitError`]
    pub fn new(bytes: usize) -> Result<Self, LimitError> {
        super::heap::HEAP.keep_accounts().map_err(|OutOfMemory| LimitError::OutOfMemory)?;
        ACCOUNTS.open(bytes).map(|payer| Self { payer }).ok_or(LimitError::TooMany)
    }

    /// How many bytes may be in use.
    #[must_use]
    pub fn bytes(&self) -> usize {
        ACCOUNTS.limit(self.payer.number())
    }

    /// How many bytes are in use now.
    #[must_use]
    pub fn used(&self) -> usize {
        ACCOUNTS.usage(self.payer).0
    }

    /// The most bytes that were ever in use.
    #[must_use]
    pub fn most_used(&self) -> usize {
        ACCOUNTS.usage(self.payer).1
    }

    /// Who pays.
    pub(crate) fn payer(&self) -> Payer {
        self.payer
    }
}

/// Bytes in use, and how many may be, of the limit that the caller is under, if it is.
pub fn limit_here() -> Option<(usize, usize)> {
    let payer = Payer::here();
    (payer != Payer::NOBODY).then(|| (ACCOUNTS.usage(payer).0, ACCOUNTS.limit(payer.number())))
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        ACCOUNTS.let_go(self.payer);
    }
}

impl Payer {
    /// Who pays for the caller; it does as long as the caller's process lives.
    pub(crate) fn here() -> Self {
        // Numbers have eight bits.
        match account_here() as u8 {
            0 => Self::NOBODY,
            number => ACCOUNTS.payer(number),
        }
    }

    /// Charges what is no block; whether the limit admits that. It is given back by [`Self::give_back`].
    pub(crate) fn charge(self, bytes: usize) -> bool {
        ACCOUNTS.charge(self, bytes)
    }

    /// The account with that number is charged so much less.
    pub(crate) fn give_back(number: u8, bytes: usize) {
        ACCOUNTS.give_back(number, bytes);
    }

    /// Whether it can still pay.
    pub(crate) fn lives(self) -> bool {
        ACCOUNTS.lives(self)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
