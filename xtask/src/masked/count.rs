//! What an instruction does to the count that disables preemption: the first word of the running stack's block, to which `TPIDR_EL0`
//! points. A guard is a load, an addition and a store there (`kernel/src/sync/preempt.rs`), so what is looked for are stores through
//! a register that was read from `TPIDR_EL0`, and what the stored value was made by. A register's last writer is looked for on the ways that
//! lead to the store.

use std::collections::{HashSet, VecDeque};

/// What it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// Nothing.
    Nothing,
    /// Begins a section.
    Up,
    /// Ends one.
    Down,
    /// Sets it to zero: a turn begins, or goes on.
    Zero,
    /// Sets it to one: a turn is over, or begins its suspension.
    One,
    /// Another stack runs from here on, with the count at one.
    Switch,
}

/// After so many instructions the origins of a store's value and address are no longer looked for.
const MOST_SEEN: usize = 8000;

/// So many instructions before a load from the stack it is looked for what was kept there.
const MOST_BACK: usize = 4000;

const ZERO_REGISTER: u32 = 31;

/// From where branches lead to each of these words.
pub fn sources(words: &[u32]) -> Vec<Vec<usize>> {
    let mut found = vec![Vec::new(); words.len()];
    for (index, &word) in words.iter().enumerate() {
        let (bits, shift) = match word >> 24 {
            // b
            0x14..=0x17 => (26, 0),
            // b.cond, cbz, cbnz
            0x54 | 0x34 | 0x35 | 0xb4 | 0xb5 => (19, 5),
            // tbz, tbnz
            0x36 | 0x37 | 0xb6 | 0xb7 => (14, 5),
            _ => continue,
        };
        // Sign-extended.
        let distance = ((word >> shift << (32 - bits)) as i32 >> (32 - bits)) as isize;
        if let Some(target) = index.checked_add_signed(distance).and_then(|target| found.get_mut(target)) {
            target.push(index);
        }
    }
    found
}

/// Whether what follows this is reached by a branch alone: `b`, `br`, `ret`.
fn is_end(word: u32) -> bool {
    word >> 26 == 0b00_0101 || word & 0xffff_fc1f == 0xd61f_0000 || word & 0xffff_fc1f == 0xd65f_0000
}

/// What one of these words does.
pub fn decode(words: &[u32], sources: &[Vec<usize>], index: usize) -> Counts {
    let word = words[index];
    if word & !0x1f == 0xd51b_d040 {
        // msr tpidr_el0, x
        return Counts::Switch;
    }
    let (value, address) = (word & 0x1f, word >> 5 & 0x1f);
    // str w, [x]
    let is_store = word & !0x3ff == 0xb900_0000;
    if !is_store || !leads_to_block(words, sources, index, address) {
        return Counts::Nothing;
    }
    if value == ZERO_REGISTER {
        return Counts::Zero;
    }
    // Of the ways that lead here some may be impossible, for a register may have had something else where the compiler knows that it is one now.
    let known = |(_, writer): (usize, u32)| match writer & !0x3ff {
        0x1100_0400 => Some(Counts::Up),
        // sub, subs
        0x5100_0400 | 0x7100_0400 => Some(Counts::Down),
        // movz with a number below 32, which is one.
        0x5280_0000 => Some(Counts::One),
        _ => None,
    };
    writers(words, sources, index, value).find_map(known).unwrap_or(Counts::Nothing)
}

/// Whether a register has what was read from `TPIDR_EL0`, and was kept on the stack meanwhile at most.
fn leads_to_block(words: &[u32], sources: &[Vec<usize>], index: usize, register: u32) -> bool {
    let is_kept_block = |(at, word): (usize, u32)| {
        loaded_from(word, register).is_some_and(|place| {
            (at.saturating_sub(MOST_BACK)..at).rev().any(|kept_at| {
                let kept = stored_to(words[kept_at], place);
                kept.is_some_and(|kept| {
                    writers(words, sources, kept_at, kept).any(|(_, word)| is_block(word))
                })
            })
        })
    };
    writers(words, sources, index, register).any(|(at, word)| is_block(word) || is_kept_block((at, word)))
}

/// From which word of the stack a load has this register: `ldr x, [sp, #]`, `ldp x, x, [sp, #]`.
fn loaded_from(word: u32, register: u32) -> Option<u32> {
    match () {
        () if word & 0xffc0_03e0 == 0xf940_03e0 && word & 0x1f == register => Some(word >> 10 & 0xfff),
        () if word & 0xffc0_03e0 == 0xa940_03e0 => pair(word, register),
        () => None,
    }
}

/// Which register a store puts into that word of the stack: `str x, [sp, #]`, `stp x, x, [sp, #]`.
fn stored_to(word: u32, place: u32) -> Option<u32> {
    let (first, second) = (word & 0x1f, word >> 10 & 0x1f);
    match () {
        () if word & 0xffc0_03e0 == 0xf900_03e0 => (word >> 10 & 0xfff == place).then_some(first),
        () if word & 0xffc0_03e0 == 0xa900_03e0 => {
            [first, second].into_iter().find(|&register| pair(word, register) == Some(place))
        }
        () => None,
    }
}

/// Where one register of a pair lies, above the stack's pointer.
fn pair(word: u32, register: u32) -> Option<u32> {
    let (first, second, place) = (word & 0x1f, word >> 10 & 0x1f, word >> 15 & 0x7f);
    // Below the pointer nothing is kept.
    let place = (place < 64).then_some(place)?;
    match register {
        _ if register == first => Some(place),
        _ if register == second => Some(place + 1),
        _ => None,
    }
}

/// Whether it is `mrs x, tpidr_el0`.
fn is_block(word: u32) -> bool {
    word & !0x1f == 0xd53b_d040
}

/// The instructions that have written a register last on the ways that lead to a word, nearest first. What moves a register leads to who wrote
/// that one. On some ways the value may have been kept on the stack, so one of the writers may be a load, and another the origin.
fn writers(
    words: &[u32],
    sources: &[Vec<usize>],
    index: usize,
    register: u32,
) -> impl Iterator<Item = (usize, u32)> {
    let mut seen = HashSet::new();
    let mut next = VecDeque::from([(index, register)]);
    std::iter::from_fn(move || {
        while seen.len() < MOST_SEEN
            && let Some((at, register)) = next.pop_front()
        {
            if at != index
                && let Some(word) = words.get(at).copied()
                && writes(word, register)
            {
                match moved(word) {
                    Some(from) => {
                        _ = seen.insert((at, from)).then(|| push(&mut next, words, sources, at, from))
                    }
                    None => return Some((at, word)),
                }
                continue;
            }
            if seen.insert((at, register)) {
                push(&mut next, words, sources, at, register);
            }
        }
        None
    })
}

/// What leads to this word comes next.
fn push(next: &mut VecDeque<(usize, u32)>, words: &[u32], sources: &[Vec<usize>], at: usize, register: u32) {
    let before = at.checked_sub(1).filter(|&before| !is_end(words[before]));
    let jumps = sources.get(at).into_iter().flatten().copied();
    next.extend(before.into_iter().chain(jumps).map(|from| (from, register)));
}

/// Of `mov x, x`: which register is moved.
fn moved(word: u32) -> Option<u32> {
    (word & 0xffe0_ffe0 == 0xaa00_03e0).then_some(word >> 16 & 0x1f)
}

/// Whether an instruction writes a register: numbers, loads of integers, exclusive stores, `mrs`.
fn writes(word: u32, register: u32) -> bool {
    let (first, second, status) = (word & 0x1f, word >> 10 & 0x1f, word >> 16 & 0x1f);
    let is_load = word >> 22 & 1 == 1;
    match (word >> 25 & 0xf, word >> 27 & 7) {
        (0b1000 | 0b1001 | 0b0101 | 0b1101, _) => first == register,
        // Of a register; one that extends the sign has another bit.
        (0b1100, 0b111) => word >> 22 & 3 != 0 && first == register,
        // From the code.
        (0b1100, 0b011) => first == register,
        (0b0100, 0b101) => is_load && (first == register || second == register),
        (0b0100, 0b001) => (if is_load { first } else { status }) == register,
        (0b1010, _) => word >> 20 == 0xd53 && first == register,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{Counts, sources};

    fn decode(words: &[u32]) -> Counts {
        super::decode(words, &sources(words), words.len() - 1)
    }

    #[test]
    fn guards_are_known() {
        // mrs x19, tpidr_el0; ldr w8, [x19]; add w8, w8, #1; str w8, [x19]; nop; ldr w8, [x19]; subs w8, w8, #1; str w8, [x19]
        let words = [
            0xd53b_d053,
            0xb940_0268,
            0x1100_0508,
            0xb900_0268,
            0xd503_201f,
            0xb940_0268,
            0x7100_0508,
            0xb900_0268,
        ];
        let counts: Vec<_> = (1..=words.len()).map(|end| decode(&words[..end])).collect();
        let nothing = Counts::Nothing;
        assert_eq!(counts, [nothing, nothing, nothing, Counts::Up, nothing, nothing, nothing, Counts::Down]);
    }

    #[test]
    fn the_turns_of_the_loop_and_other_stacks_are_known() {
        // mrs x20, tpidr_el0; str wzr, [x20]; mov w9, #1; str w9, [x20]; msr tpidr_el0, x1
        let words = [0xd53b_d054, 0xb900_029f, 0x5280_0029, 0xb900_0289, 0xd51b_d041];
        let counts: Vec<_> = (1..=words.len()).map(|end| decode(&words[..end])).collect();
        assert_eq!(counts, [Counts::Nothing, Counts::Zero, Counts::Nothing, Counts::One, Counts::Switch]);
    }

    #[test]
    fn what_a_return_restores_is_not_on_the_way() {
        // mrs x19, tpidr_el0; cbz x0, to the last but two; ldp x20, x19, [sp], #16; ret; ldr w8, [x19]; subs w8, w8, #1; str w8, [x19]
        let words =
            [0xd53b_d053, 0xb400_0060, 0xa8c1_4ff4, 0xd65f_03c0, 0xb940_0268, 0x7100_0508, 0xb900_0268];
        assert_eq!(sources(&words)[4], [1]);
        assert_eq!(decode(&words), Counts::Down);
    }

    #[test]
    fn blocks_that_lead_elsewhere_are_not_on_the_way() {
        // mrs x21, tpidr_el0; cbz x0, to the last but two; mov x21, x1; cbz x0, behind all; nop; b, behind all; and the end of a section.
        let words = [
            0xd53b_d055,
            0xb400_00a0,
            0xaa01_03f5,
            0xb400_00c0,
            0xd503_201f,
            0x1400_0004,
            0xb940_02a8,
            0x5100_0508,
            0xb900_02a8,
        ];
        assert_eq!(sources(&words)[6], [1]);
        assert_eq!(decode(&words), Counts::Down);
    }

    #[test]
    fn an_address_that_was_kept_or_moved_is_known() {
        // mrs x0, tpidr_el0; cbz x1, to the last but two; ldr x0, [sp, #8]; ldr w8, [x0]; sub w8, w8, #1; str w8, [x0]
        let kept = [0xd53b_d040, 0xb400_0041, 0xf940_07e0, 0xb940_0008, 0x5100_0508, 0xb900_0008];
        assert_eq!(decode(&kept), Counts::Down);
        // mrs x12, tpidr_el0; mov x23, x12; ldr w8, [x23]; sub w8, w8, #1; str w8, [x23]
        assert_eq!(decode(&[0xd53b_d04c, 0xaa0c_03f7, 0xb940_02e8, 0x5100_0508, 0xb900_02e8]), Counts::Down);
    }

    #[test]
    fn a_block_that_was_kept_on_the_stack_is_known() {
        // mrs x9, tpidr_el0; str x9, [sp, #104]; nop; ldr x10, [sp, #104]; ldr w9, [x10]; add w9, w9, #1; str w9, [x10]
        let kept =
            [0xd53b_d049, 0xf900_37e9, 0xd503_201f, 0xf940_37ea, 0xb940_0149, 0x1100_0529, 0xb900_0149];
        assert_eq!(decode(&kept), Counts::Up);
        // The same in a pair: stp x8, x9, [sp, #96]; ldp x11, x10, [sp, #96]
        let pair =
            [0xd53b_d049, 0xa906_27e8, 0xd503_201f, 0xa946_2beb, 0xb940_0149, 0x1100_0529, 0xb900_0149];
        assert_eq!(decode(&pair), Counts::Up);
        // Another word of the stack: ldr x10, [sp, #96]
        let other =
            [0xd53b_d049, 0xf900_37e9, 0xd503_201f, 0xf940_33ea, 0xb940_0149, 0x1100_0529, 0xb900_0149];
        assert_eq!(decode(&other), Counts::Nothing);
    }

    #[test]
    fn other_words_of_memory_do_not_count() {
        // The address comes from elsewhere: mrs x19, tpidr_el0; ldr x19, [x0]; add w8, w8, #1; str w8, [x19]
        assert_eq!(decode(&[0xd53b_d053, 0xf940_0013, 0x1100_0508, 0xb900_0268]), Counts::Nothing);
        // A request: mrs x19, tpidr_el0; ldr w8, [x19]; orr w8, w8, #0x80000000; str w8, [x19]
        assert_eq!(decode(&[0xd53b_d053, 0xb940_0268, 0x3201_0108, 0xb900_0268]), Counts::Nothing);
        // The next word: str w8, [x19, #4]
        assert_eq!(decode(&[0xd53b_d053, 0x1100_0508, 0xb900_0668]), Counts::Nothing);
    }
}
