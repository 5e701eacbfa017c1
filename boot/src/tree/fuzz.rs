//! The reader of the device tree fed with random and mutated trees.
//!
//! Seeded, so a failure can be repeated: it names its seed. `MAGPIE_FUZZ` sets how many trees are tried
//! (20,000 unless told), `MAGPIE_SEED` the first seed.

extern crate std;

use alloc::vec::Vec;

use dtoolkit::fdt::Fdt;

use super::description::MOST_MEMORY;
use super::find::devices;
use super::samples::virt;
use super::{TreeError, read};
use crate::random::{Random, setting};
use magpie::arch::MAX_CORES;

/// Boot can use whatever is read from a tree without going out of bounds.
fn look(blob: &[u8], seed: u64) -> bool {
    let found = match read(blob) {
        Ok(found) => found,
        Err(
            TreeError::Unreadable
            | TreeError::TooLong
            | TreeError::NoMemory
            | TreeError::NoInterruptController
            | TreeError::NoTimer
            | TreeError::DeviceOverlaps(_),
        ) => return false,
    };
    assert!((1..=MAX_CORES).contains(&found.cores), "seed {seed}: {} cores", found.cores);
    assert!((16..32).contains(&found.timer_interrupt), "seed {seed}: the timer's interrupt");
    let known = found.memory.iter().filter(|range| range.bytes() > 0).count();
    assert!((1..=MOST_MEMORY).contains(&known), "seed {seed}: {known} ranges of memory");
    assert!(found.input.is_none_or(|input| input.start < input.end), "seed {seed}: the input");
    // What drivers ask comes to an end, whatever it is.
    let tree = Fdt::new(blob).expect("it was read");
    for device in devices(tree.root()) {
        let registers = (0..3).filter_map(|index| device.registers(index));
        assert!(registers.into_iter().all(|range| range.start <= range.end), "seed {seed}: {device:?}");
        let line = device.line(0);
        assert!(
            line.is_ok_and(|line| (32..1020).contains(&line.number)) || line.is_err(),
            "seed {seed}: {line:?}"
        );
    }
    true
}

#[test]
fn no_mutated_tree_breaks_it() {
    let first = setting("MAGPIE_SEED", 1);
    let original = virt().to_dtb();
    let mut understood = 0_u64;
    let count = setting("MAGPIE_FUZZ", 20_000);
    for seed in first..first + count {
        let mut random = Random::new(seed);
        let mut blob = original.clone();
        for _ in 0..1 + random.below(6) {
            let at = random.below(blob.len());
            match random.below(5) {
                0 => blob[at] = random.next() as u8,
                1 => blob[at] ^= 1 << random.below(8),
                // A whole cell: lengths, offsets and tokens are cells.
                2 => {
                    let word = [0, 1, 2, 3, 9, u32::MAX, random.next() as u32, blob.len() as u32];
                    let word = word[random.below(word.len())].to_be_bytes();
                    let at = at / 4 * 4;
                    let room = (blob.len() - at).min(4);
                    blob[at..at + room].copy_from_slice(&word[..room]);
                }
                3 => blob.truncate(at.max(1)),
                _ => {
                    let from = random.below(blob.len());
                    blob[at] = blob[from];
                }
            }
        }
        understood += u64::from(look(&blob, seed));
    }
    // Otherwise the mutations only ever hit the header, and the reader was not tested.
    assert!(count < 1000 || understood > count / 100, "only {understood} trees were read to the end");
}

#[test]
fn no_random_bytes_break_it() {
    let first = setting("MAGPIE_SEED", 1);
    for seed in first..first + setting("MAGPIE_FUZZ", 20_000) / 4 {
        let mut random = Random::new(seed);
        let mut blob: Vec<u8> = (0..random.below(400)).map(|_| random.next() as u8).collect();
        if blob.len() >= 4 && random.below(2) == 0 {
            blob[..4].copy_from_slice(&0xd00d_feed_u32.to_be_bytes());
        }
        look(&blob, seed);
    }
}
