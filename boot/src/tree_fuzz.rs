//! The reader of the device tree fed with random and mutated trees.
//!
//! Seeded, so a failure can be repeated: it names its seed. `MAGPIE_FUZZ` sets how many trees are tried
//! (20,000 unless told), `MAGPIE_SEED` the first seed.

extern crate std;

use alloc::vec::Vec;

use super::{MOST_MEMORY, TreeError, read};
use magpie::arch::MAX_CORES;

/// splitmix64 (Steele, Lea and Flood, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("the variable is a number"))
}

/// Writes a flattened tree, version 17 of the format (Devicetree Specification 0.4, chapter 5).
#[derive(Default)]
struct Writer {
    structure: Vec<u8>,
    strings: Vec<u8>,
}

impl Writer {
    fn word(&mut self, word: u32) {
        self.structure.extend(word.to_be_bytes());
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.structure.extend(bytes);
        self.structure.resize(self.structure.len().next_multiple_of(4), 0);
    }

    fn node(&mut self, name: &str, inside: impl FnOnce(&mut Self)) {
        self.word(1);
        self.padded(&[name.as_bytes(), &[0]].concat());
        inside(self);
        self.word(2);
    }

    fn bytes(&mut self, name: &str, value: &[u8]) {
        let offset = self.strings.len() as u32;
        self.strings.extend(name.as_bytes());
        self.strings.push(0);
        self.word(3);
        self.word(value.len() as u32);
        self.word(offset);
        self.padded(value);
    }

    fn cells(&mut self, name: &str, cells: &[u32]) {
        let value: Vec<u8> = cells.iter().flat_map(|cell| cell.to_be_bytes()).collect();
        self.bytes(name, &value);
    }

    fn finish(mut self) -> Vec<u8> {
        self.word(9);
        const HEADER_BYTES: u32 = 40;
        const RESERVATIONS_BYTES: u32 = 16;
        let structure = HEADER_BYTES + RESERVATIONS_BYTES;
        let strings = structure + self.structure.len() as u32;
        let total = strings + self.strings.len() as u32;
        let (strings_bytes, structure_bytes) = (self.strings.len() as u32, self.structure.len() as u32);
        let header =
            [0xd00d_feed, total, structure, strings, HEADER_BYTES, 17, 16, 0, strings_bytes, structure_bytes];
        let mut blob: Vec<u8> = header.iter().flat_map(|word| word.to_be_bytes()).collect();
        blob.resize(structure as usize, 0);
        blob.extend(self.structure);
        blob.extend(self.strings);
        blob
    }
}

/// A small machine of two cores, as QEMU's `virt` describes itself.
fn sound() -> Vec<u8> {
    let mut tree = Writer::default();
    tree.node("", |tree| {
        tree.cells("#address-cells", &[2]);
        tree.cells("#size-cells", &[2]);
        tree.node("memory@40000000", |tree| {
            tree.bytes("device_type", b"memory\0");
            tree.cells("reg", &[0, 0x4000_0000, 0, 0x2000_0000]);
        });
        tree.node("intc@8000000", |tree| {
            tree.bytes("compatible", b"arm,cortex-a15-gic\0");
            tree.cells("reg", &[0, 0x800_0000, 0, 0x1_0000, 0, 0x801_0000, 0, 0x1_0000]);
        });
        tree.node("timer", |tree| {
            tree.bytes("compatible", b"arm,armv8-timer\0");
            tree.cells("interrupts", &[1, 13, 4, 1, 14, 4, 1, 11, 4, 1, 10, 4]);
        });
        tree.node("psci", |tree| {
            tree.bytes("compatible", b"arm,psci-1.0\0arm,psci-0.2\0");
            tree.bytes("method", b"hvc\0");
        });
        tree.node("cpus", |tree| {
            tree.cells("#address-cells", &[1]);
            tree.cells("#size-cells", &[0]);
            for core in 0..2 {
                tree.node(if core == 0 { "cpu@0" } else { "cpu@1" }, |tree| {
                    tree.bytes("device_type", b"cpu\0");
                    tree.cells("reg", &[core]);
                    tree.cells("phandle", &[core + 0x100]);
                });
            }
            tree.node("cpu-map", |tree| {
                tree.node("socket0", |tree| {
                    tree.node("cluster1", |tree| {
                        tree.node("core0", |tree| tree.cells("cpu", &[0x101]));
                    });
                });
            });
        });
        tree.node("chosen", |tree| {
            tree.bytes("bootargs", b"seed=7\0");
            tree.cells("linux,initrd-start", &[0x4800_0000]);
            tree.cells("linux,initrd-end", &[0x4800_1000]);
        });
    });
    tree.finish()
}

#[test]
fn the_unchanged_tree_is_understood() {
    let blob = sound();
    let found = read(&blob).expect("a sound tree");
    assert_eq!((found.cores, found.arguments, found.timer_interrupt), (2, "seed=7", 27));
    assert_eq!((found.memory[0].start, found.memory[0].bytes()), (0x4000_0000, 0x2000_0000));
    assert_eq!(found.places[1].cluster, 1);
    assert_eq!(found.input.map(|input| input.bytes()), Some(0x1000));
}

/// Whatever is read from a tree, boot can use it without going out of bounds.
fn look(blob: &[u8], seed: u64) -> bool {
    let found = match read(blob) {
        Ok(found) => found,
        Err(
            TreeError::Unreadable
            | TreeError::NoMemory
            | TreeError::NoInterruptController
            | TreeError::NoTimer,
        ) => return false,
    };
    assert!((1..=MAX_CORES).contains(&found.cores), "seed {seed}: {} cores", found.cores);
    assert!((16..32).contains(&found.timer_interrupt), "seed {seed}: the timer's interrupt");
    let known = found.memory.iter().filter(|range| range.bytes() > 0).count();
    assert!((1..=MOST_MEMORY).contains(&known), "seed {seed}: {known} ranges of memory");
    assert!(found.input.is_none_or(|input| input.start < input.end), "seed {seed}: the input");
    true
}

#[test]
fn no_mutated_tree_breaks_it() {
    let first = setting("MAGPIE_SEED", 1);
    let original = sound();
    let mut understood = 0_u64;
    let count = setting("MAGPIE_FUZZ", 20_000);
    for seed in first..first + count {
        let mut random = Random(seed);
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
    // Else the mutations only ever hit the header, and the reader was not tried.
    assert!(count < 1000 || understood > count / 100, "only {understood} trees were read to the end");
}

#[test]
fn no_random_bytes_break_it() {
    let first = setting("MAGPIE_SEED", 1);
    for seed in first..first + setting("MAGPIE_FUZZ", 20_000) / 4 {
        let mut random = Random(seed);
        let mut blob: Vec<u8> = (0..random.below(400)).map(|_| random.next() as u8).collect();
        if blob.len() >= 4 && random.below(2) == 0 {
            blob[..4].copy_from_slice(&0xd00d_feed_u32.to_be_bytes());
        }
        look(&blob, seed);
    }
}
