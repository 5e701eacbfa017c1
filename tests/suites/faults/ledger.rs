//! What each watch is expected to tell, and what it has told: by its number, once.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use magpie::channel::ProcessMailbox;
use magpie::sched;
use magpie::watch::{Ended, Watch};
use magpie_tests::{Failure, Outcome, ensure};

use crate::ways::{Exits, exits_of};

/// Above what was told: what is expected.
const EXPECTED_SHIFT: u32 = 16;
/// Above both: of whom it was, for the message of a failure.
const WHO_SHIFT: u32 = 32;
/// Above all: how often it has told.
const COUNT_SHIFT: u32 = 48;
const EXITS: u64 = (1 << EXPECTED_SHIFT) - 1;
/// Expected of a watch that was given up before it told.
const NOTHING: u64 = 1 << (EXPECTED_SHIFT - 1);

/// An entry for each watch from the `first` on, the kernel's own among them, of which nothing is known here. It serves round after round: the
/// crashed have references to it.
pub struct Ledger {
    first: AtomicU64,
    entries: Vec<AtomicU64>,
    beyond: AtomicU64,
}

impl Ledger {
    /// For so many watches, for ever.
    pub fn leaked(watches: usize) -> Result<&'static Self, Failure> {
        let mut entries = Vec::new();
        entries.try_reserve_exact(watches).map_err(|_| "no memory for a ledger")?;
        entries.extend((0..watches).map(|_| AtomicU64::new(0)));
        let (first, beyond) = (AtomicU64::new(0), AtomicU64::new(0));
        Ok(Box::leak(Box::new(Self { first, entries, beyond })))
    }

    /// Begins anew, with the watches that begin from now on.
    pub async fn renew(&self) -> Outcome {
        let mailbox = ProcessMailbox::<Ended>::new(1)?;
        let process = sched::spawn(async {})?;
        let watch = process.process().watch(&mailbox.address())?;
        process.await?;
        self.first.store(watch.id().number() + 1, Ordering::Relaxed);
        self.entries.iter().for_each(|entry| entry.store(0, Ordering::Relaxed));
        Ok(())
    }

    /// Relaxed everywhere: judged when all who write here have ended.
    fn entry(&self, number: u64, change: impl FnOnce(&AtomicU64)) {
        match number
            .checked_sub(self.first.load(Ordering::Relaxed))
            .and_then(|place| self.entries.get(place as usize))
        {
            Some(entry) => change(entry),
            None => _ = self.beyond.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// That watch is to tell one of these.
    pub fn expect(&self, number: u64, exits: Exits) {
        self.entry(number, |entry| _ = entry.fetch_or(u64::from(exits) << EXPECTED_SHIFT, Ordering::Relaxed));
    }

    /// What that watch is of.
    pub fn describe(&self, number: u64, who: u16) {
        self.entry(number, |entry| _ = entry.fetch_or(u64::from(who) << WHO_SHIFT, Ordering::Relaxed));
    }

    /// Gives a watch up that is to tell one of these, unless it was faster.
    pub fn give_up(&self, watch: Watch, exits: Exits) {
        let number = watch.id().number();
        if watch.cancel() {
            self.entry(number, |entry| _ = entry.fetch_or(NOTHING << EXPECTED_SHIFT, Ordering::Relaxed));
        } else {
            self.expect(number, exits);
        }
    }

    /// A watch has told.
    pub fn note(&self, ended: Ended) {
        let exits = u64::from(exits_of(ended.exit()));
        self.entry(ended.watch().number(), |entry| {
            entry.fetch_or(exits, Ordering::Relaxed);
            entry.fetch_add(1 << COUNT_SHIFT, Ordering::Relaxed);
        });
    }

    /// How many watches have told what they should, once each. Fails if one has not, or one of which nothing is known.
    pub fn judge(&self) -> Result<u64, Failure> {
        ensure!(
            self.beyond.load(Ordering::Relaxed) == 0,
            "there were more watches than the ledger has room for"
        );
        let mut watches = 0;
        for (place, entry) in self.entries.iter().enumerate() {
            let bits = entry.load(Ordering::Relaxed);
            let (count, expected, told) = (bits >> COUNT_SHIFT, bits >> EXPECTED_SHIFT & EXITS, bits & EXITS);
            let is_right = match expected {
                0 | NOTHING => count == 0,
                _ => count == 1 && told & !expected == 0,
            };
            ensure!(
                is_right,
                "watch {} of {:#x}: told {count} times, {told:#x} where {expected:#x} was expected",
                self.first.load(Ordering::Relaxed) + place as u64,
                bits >> WHO_SHIFT & EXITS
            );
            watches += u64::from(expected != 0);
        }
        Ok(watches)
    }

    /// Whether all have told that should have by now.
    pub fn is_complete(&self) -> bool {
        self.entries.iter().all(|entry| {
            let bits = entry.load(Ordering::Relaxed);
            let expected = bits >> EXPECTED_SHIFT & EXITS;
            expected == 0 || expected == NOTHING || bits >> COUNT_SHIFT != 0
        })
    }
}
