//! The pool: a key of 256 bits, from which each generator gets one of its own, and into which whatever is random is stirred.
//!
//! Each turn runs ChaCha20 under the key: half of the block that comes out is for whoever asked, the other half goes into the key, with what is stirred in. As that half depends
//! on the key as a whole, nobody gets from the new key to the old one, nor from one generator's to another's, and what is stirred in by somebody who knows it does no harm
//! to what was there. A turn has a number, so two at once do not get the same.

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, Ordering};

use chacha20::ChaCha20Rng;
use critical_section::Mutex;
use magpie::time::Instant;
use magpie::{device, machine};
use rand_core::{Rng, SeedableRng};

use crate::jitter;
use crate::quality::Quality;

const KEY_BYTES: usize = 32;
type Key = [u8; KEY_BYTES];

/// How often an instruction that gives nothing is asked again.
const PATIENCE: usize = 10;

#[derive(Clone, Copy)]
struct Pool {
    key: Key,
    turns: u64,
    quality: Quality,
}

// A cell that is copied, and no borrow, which whoever crashes would keep.
static POOL: Mutex<Cell<Pool>> =
    Mutex::new(Cell::new(Pool { key: [0; KEY_BYTES], turns: 0, quality: Quality::Guessable }));
/// What the machine gives was stirred in.
static IS_BEGUN: AtomicBool = AtomicBool::new(false);

/// Changes the pool, and says what it was.
fn change(change: impl FnOnce(&mut Pool)) -> Pool {
    critical_section::with(|section| {
        let pool = POOL.borrow(section);
        let was = pool.get();
        let mut is = was;
        change(&mut is);
        pool.set(is);
        was
    })
}

/// Stirs a block in, and returns a key for somebody. The work is done outside of the section: who is killed in between has taken a number, and no more.
fn turn(block: &[u8], quality: Quality) -> (Key, Quality) {
    let was = change(|pool| pool.turns += 1);
    let mut generator = ChaCha20Rng::from_seed(was.key);
    generator.set_stream(was.turns);
    let (mut inner, mut outer) = ([0; KEY_BYTES], [0; KEY_BYTES]);
    generator.fill_bytes(&mut inner);
    generator.fill_bytes(&mut outer);
    for (byte, stirred) in inner.iter_mut().zip(block) {
        *byte ^= stirred;
    }
    change(|pool| {
        // Into what is there now: others may have had turns meanwhile.
        for (byte, new) in pool.key.iter_mut().zip(inner) {
            *byte ^= new;
        }
        pool.quality = pool.quality.max(quality);
    });
    (outer, was.quality)
}

/// Stirs bytes into the pool, for whoever makes or [renews](crate::Random::renew) a generator from now on. `quality` is what these bytes by themselves are worth, and the pool's is raised to it if
/// they are 32 at least: it is believed, so say nothing that is not so. Bytes that others know do no harm.
///
/// ```
/// use magpie_random::{Quality, stir};
/// stir(b"what an operator has typed", Quality::Guessable);
/// ```
pub fn stir(bytes: &[u8], quality: Quality) {
    let is_enough = bytes.len() >= KEY_BYTES;
    let last = bytes.chunks(KEY_BYTES).count();
    for (index, block) in bytes.chunks(KEY_BYTES).enumerate() {
        // Not before all of them are in.
        let counts = is_enough && index + 1 == last;
        turn(block, if counts { quality } else { Quality::Guessable });
    }
}

/// How good a generator would be that is made now.
///
/// ```
/// assert!(magpie_random::quality() >= magpie_random::Quality::Guessable);
/// ```
pub fn quality() -> Quality {
    begin();
    change(|_| {}).quality
}

/// A key for a generator, and how good it is.
pub fn key() -> (Key, Quality) {
    begin();
    turn(&[], Quality::Guessable)
}

/// Once: what the machine gives. Where several come first at once each does it, so that none goes on without.
fn begin() {
    // Pairs with the store below: what was stirred in before it is in.
    if IS_BEGUN.load(Ordering::Acquire) {
        return;
    }
    stir(&Instant::now().ticks().to_le_bytes(), Quality::Guessable);
    if let Some(seed) = device::random_seed() {
        stir(seed, Quality::Given);
    }
    #[cfg(not(target_os = "none"))]
    stir(&of_the_host(), Quality::Given);
    if let Some(bytes) = of_the_core() {
        stir(&bytes, Quality::Source);
    }
    if change(|_| {}).quality < Quality::Given {
        let took = jitter::measure();
        let quality = if jitter::varies(&took) { Quality::Jitter } else { Quality::Guessable };
        let mut bytes = [0; 2 * jitter::ROUNDS];
        for (pair, took) in bytes.chunks_exact_mut(2).zip(took) {
            pair.copy_from_slice(&took.to_le_bytes());
        }
        stir(&bytes, quality);
    }
    // Pairs with the load above.
    IS_BEGUN.store(true, Ordering::Release);
}

/// A key's worth of the core's instruction, if it has one.
fn of_the_core() -> Option<Key> {
    let mut bytes = [0; KEY_BYTES];
    for word in bytes.chunks_exact_mut(8) {
        let bits = (0..PATIENCE).find_map(|_| machine::random_bits())?;
        word.copy_from_slice(&bits.to_le_bytes());
    }
    Some(bytes)
}

/// A key's worth of the host's system: what its hash tables begin with.
#[cfg(not(target_os = "none"))]
fn of_the_host() -> Key {
    use std::hash::{BuildHasher, RandomState};
    // All of one thread come from one number and a count, which a keyed hash hides.
    let mut bytes = [0; KEY_BYTES];
    for (index, word) in bytes.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&RandomState::new().hash_one(index).to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::{KEY_BYTES, Quality, change, key, quality, stir};
    use std::collections::HashSet;
    use std::thread;

    /// In one test, because the pool is one.
    #[test]
    fn keys_differ_and_the_quality_is_the_best_that_was_stirred_in() {
        let draw = || (0..1000).map(|_| key().0).collect::<Vec<_>>();
        let threads: Vec<_> = (0..4).map(|_| thread::spawn(draw)).collect();
        let keys: HashSet<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        assert_eq!(keys.len(), 4000);
        assert_eq!(quality(), Quality::Given);

        stir(&[1; KEY_BYTES - 1], Quality::Source);
        assert_eq!(quality(), Quality::Given, "too few bytes");
        stir(&[1; KEY_BYTES + 1], Quality::Source);
        stir(&[2; 100], Quality::Guessable);
        assert_eq!(quality(), Quality::Source);
        assert_eq!(key().1, Quality::Source);

        // From the same pool, with other bytes each time, and none.
        let same = change(|_| {});
        let mut others = HashSet::new();
        for stirred in [&b""[..], b"\0", b"\x01", &[0; 40], &[1; 33]] {
            change(|pool| *pool = same);
            stir(stirred, Quality::Guessable);
            others.insert(key().0);
        }
        // A zero is no change of the key, but a turn.
        assert_eq!(others.len(), 5);
    }
}
