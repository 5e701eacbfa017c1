//! The accounts that memory is charged to: how much each has in use, and how much it may have.
//!
//! An account is one word: the bytes in use, whether somebody holds it, and how many lives it has had. It is free for another life once
//! nobody holds it and nothing is in use. Both are in one word, so whoever brings back the last byte, or lets go of it, frees
//! it, and nobody has to find out which of the two came last. A process needs no hold: its own memory is charged to its account.
//!
//! ```text
//!  63        41   40   39            0
//! +------------+------+---------------+
//! | lives      | held | bytes in use  |
//! +------------+------+---------------+
//! ```

use core::num::NonZeroU32;

use crate::arch::atomic::{AtomicU64, Ordering};

const USED_BITS: u32 = 40;
const USED: u64 = (1 << USED_BITS) - 1;
const HELD: u64 = 1 << USED_BITS;
/// One life.
const LIFE: u64 = HELD << 1;
const LIVES: u64 = !(HELD | USED);

/// The largest limit.
pub const MOST_BYTES: usize = USED as usize;

/// Who pays: an account in one of its lives. Two lives are taken for one if they are exactly 2^23 apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Payer(NonZeroU32);

/// In every payer, above the life and the number.
const PAYER: u32 = 1 << 31;
const NUMBER_BITS: u32 = 8;

impl Payer {
    /// Nobody.
    pub const NOBODY: Self = Self::new(0, 0);

    const fn new(number: u8, word: u64) -> Self {
        // There are 23 bits of it.
        let life = (word >> LIFE.trailing_zeros()) as u32;
        Self(NonZeroU32::MIN.saturating_add((PAYER | life << NUMBER_BITS | number as u32) - 1))
    }

    /// The account's number.
    pub fn number(self) -> u8 {
        // The lowest bits.
        self.0.get() as u8
    }

    /// The lives in the account's word.
    fn life(self) -> u64 {
        u64::from((self.0.get() & !PAYER) >> NUMBER_BITS) << LIFE.trailing_zeros()
    }
}

const _: () = assert!(LIVES.count_ones() + NUMBER_BITS == PAYER.trailing_zeros());

struct Account {
    word: AtomicU64,
    limit: AtomicU64,
    /// The most that was ever in use in this life.
    most: AtomicU64,
}

/// All of them: so many, of which the first is nobody's and never used. Numbers have eight bits.
pub struct Accounts<const N: usize>([Account; N]);

impl<const N: usize> Accounts<N> {
    /// All free.
    #[cfg(not(loom))]
    #[expect(clippy::new_without_default, reason = "there is one table, a static")]
    pub const fn new() -> Self {
        Self(
            [const { Account { word: AtomicU64::new(0), limit: AtomicU64::new(0), most: AtomicU64::new(0) } };
                N],
        )
    }

    /// All free.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self(core::array::from_fn(|_| Account {
            word: AtomicU64::new(0),
            limit: AtomicU64::new(0),
            most: AtomicU64::new(0),
        }))
    }

    /// Begins a life of a free account, which is held. `None` if there is none.
    pub fn open(&self, limit: usize) -> Option<Payer> {
        self.0.iter().zip(0..=u8::MAX).skip(1).find_map(|(account, number)| {
            // Relaxed: the exchange decides.
            let before = account.word.load(Ordering::Relaxed);
            if before & (USED | HELD) != 0 {
                return None;
            }
            let life = before.wrapping_add(LIFE) & LIVES;
            // Acquire: pairs with the releases in `let_go` and `give_back`, after which the life before writes nothing here.
            account.word.compare_exchange(before, life | HELD, Ordering::Acquire, Ordering::Relaxed).ok()?;
            // Relaxed, here and below: whoever reads these was told of the account, or works for it.
            account.limit.store((limit as u64).min(USED), Ordering::Relaxed);
            account.most.store(0, Ordering::Relaxed);
            Some(Payer::new(number, life))
        })
    }

    /// Ends the hold that the account's life began with.
    pub fn let_go(&self, payer: Payer) {
        // Release: pairs with the acquire in `open`.
        self.of(payer.number()).word.fetch_and(!HELD, Ordering::Release);
    }

    /// The payer whose number this is, as long as something of it is in use.
    pub fn payer(&self, number: u8) -> Payer {
        Payer::new(number, self.word(number))
    }

    /// Whether its life goes on: it is held, or something is in use.
    pub fn lives(&self, payer: Payer) -> bool {
        payer == Payer::NOBODY || is_of(self.word(payer.number()), payer)
    }

    /// Whether so many bytes more would be within the limit now.
    pub fn has_room(&self, number: u8, bytes: usize) -> bool {
        self.admits(self.word(number), number, bytes)
    }

    /// Charges it, if the limit admits that, and its life goes on.
    pub fn charge(&self, payer: Payer, bytes: usize) -> bool {
        let account = self.of(payer.number());
        let mut before = self.word(payer.number());
        loop {
            if !is_of(before, payer) || !self.admits(before, payer.number(), bytes) {
                return false;
            }
            let after = before + bytes as u64;
            // Relaxed: what is charged for is published by whoever hands it on. A read-modify-write between a release and the acquire that
            // it pairs with does not part them.
            match account.word.compare_exchange_weak(before, after, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    if account.most.load(Ordering::Relaxed) < after & USED {
                        account.most.fetch_max(after & USED, Ordering::Relaxed);
                    }
                    return true;
                }
                Err(now) => before = now,
            }
        }
    }

    /// Takes back what was charged.
    pub fn give_back(&self, number: u8, bytes: usize) {
        // Release: pairs with the acquire in `open`.
        let before = self.of(number).word.fetch_sub(bytes as u64, Ordering::Release);
        debug_assert!(before & USED >= bytes as u64, "more came back to account {number} than was charged");
    }

    /// Bytes in use now, and the most that ever were.
    pub fn usage(&self, payer: Payer) -> (usize, usize) {
        let most = self.of(payer.number()).most.load(Ordering::Relaxed);
        ((self.word(payer.number()) & USED) as usize, most as usize)
    }

    /// The limit.
    pub fn limit(&self, number: u8) -> usize {
        self.of(number).limit.load(Ordering::Relaxed) as usize
    }

    fn admits(&self, word: u64, number: u8, bytes: usize) -> bool {
        // The limit never changes in a life, so what is in use is never above it.
        bytes as u64 <= (self.limit(number) as u64).saturating_sub(word & USED)
    }

    fn of(&self, number: u8) -> &Account {
        &self.0[usize::from(number)]
    }

    fn word(&self, number: u8) -> u64 {
        self.of(number).word.load(Ordering::Relaxed)
    }
}

/// Whether an account's word is of a life that goes on, and of this one.
fn is_of(word: u64, payer: Payer) -> bool {
    word & LIVES == payer.life() && word & (HELD | USED) != 0
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{Accounts, MOST_BYTES};
    use alloc::boxed::Box;
    use alloc::vec::Vec;

    const ACCOUNTS: usize = 256;

    fn accounts() -> Box<Accounts<ACCOUNTS>> {
        Box::new(Accounts::new())
    }

    #[test]
    fn a_limit_is_reached_to_the_byte() {
        let accounts = accounts();
        let payer = accounts.open(100).expect("free");
        assert!(accounts.charge(payer, 60) && !accounts.charge(payer, 41) && accounts.charge(payer, 40));
        assert!(!accounts.charge(payer, 1) && accounts.charge(payer, 0));
        assert!(!accounts.charge(payer, usize::MAX), "no sum may overflow");
        accounts.give_back(payer.number(), 60);
        assert_eq!((accounts.usage(payer), accounts.limit(payer.number())), ((40, 100), 100));
        let (none, all) = (accounts.open(0).expect("free"), accounts.open(usize::MAX).expect("free"));
        assert!(!accounts.charge(none, 1) && accounts.charge(all, MOST_BYTES) && !accounts.charge(all, 1));
        assert!(accounts.lives(all) && accounts.lives(none), "a full account is still held");
    }

    #[test]
    fn a_number_is_given_again_when_nobody_has_it() {
        let accounts = accounts();
        let all: Vec<_> = core::iter::from_fn(|| accounts.open(10)).collect();
        assert_eq!(all.len(), ACCOUNTS - 1);
        let payer = all[7];
        assert!(accounts.charge(payer, 3));
        accounts.let_go(payer);
        assert!(accounts.open(10).is_none() && accounts.lives(payer) && accounts.charge(payer, 1));
        accounts.give_back(payer.number(), 4);
        assert!(!accounts.lives(payer) && !accounts.charge(payer, 1), "its life has ended");
        let next = accounts.open(20).expect("free again");
        assert_eq!(next.number(), payer.number());
        assert!(next != payer && accounts.charge(next, 20) && !accounts.charge(payer, 0));
        assert_eq!(accounts.usage(next), (20, 20), "a new life");
    }

    /// Many charge one account at once: never above the limit, nothing refused below it, and it ends once.
    #[test]
    fn threads_agree_on_what_is_in_use() {
        const ROUNDS: usize = if cfg!(miri) { 50 } else { 20_000 };
        let accounts = accounts();
        for _ in 0..3 {
            // Two of three at a time.
            let payer = accounts.open(20).expect("free");
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        for _ in 0..ROUNDS {
                            assert!(accounts.charge(payer, 10), "refused below the limit");
                            assert!(accounts.usage(payer).0 <= 20);
                            accounts.give_back(payer.number(), 10);
                        }
                    });
                }
            });
            assert_eq!(accounts.usage(payer).0, 0);
            accounts.let_go(payer);
            assert!(!accounts.lives(payer));
        }
    }

    /// Lives end on one thread, by a hold or by the last bytes, while another looks for a free account.
    #[test]
    fn no_life_begins_before_the_last_has_ended() {
        const ROUNDS: usize = if cfg!(miri) { 50 } else { 10_000 };
        let accounts = accounts();
        // All but two are taken.
        let _others: Vec<_> = (0..ACCOUNTS - 3).map(|_| accounts.open(1)).collect();
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let accounts = &accounts;
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let payer = accounts.open(100).expect("there is one for each thread");
                        assert_eq!(accounts.usage(payer), (0, 0), "something is left of the life before");
                        assert!(accounts.charge(payer, 100) && !accounts.charge(payer, 1));
                        if (round + thread) % 2 == 0 {
                            accounts.let_go(payer);
                            accounts.give_back(payer.number(), 100);
                        } else {
                            accounts.give_back(payer.number(), 100);
                            accounts.let_go(payer);
                        }
                    }
                });
            }
        });
    }
}
