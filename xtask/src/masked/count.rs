//! What an instruction does to the count that disables preemption: the first word of the running stack's block, to which `SP_EL0`
//! points. A guard is a load, an addition and a store there (`kernel/src/sync/preempt.rs`), so what is looked for are stores through
//! a register that was read from `SP_EL0`, and what the stored value was made by. A register's last writer is looked for on the ways that
//! lead to the store from above.

use std::collections::VecDeque;

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

/// How far above a store the origins of its value and of its address are looked for.
const MOST_ABOVE: usize = 4000;

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

/// What the last of these words does.
pub fn decode(words: &[u32], sources: &[Vec<usize>]) -> Counts {
    let Some((&word, above)) = words.split_last() else { return Counts::Nothing };
    if word & !0x1f == 0xd518_4100 {
        // msr sp_el0, x
        return Counts::Switch;
    }
    let (value, address) = (word & 0x1f, word >> 5 & 0x1f);
    // str w, [x]
    if word & !0x3ff != 0xb900_0000 || !writer(above, sources, address).is_some_and(is_block) {
        return Counts::Nothing;
    }
    if value == ZERO_REGISTER {
        return Counts::Zero;
    }
    match writer(above, sources, value).map(|writer| writer & !0x3ff) {
        Some(0x1100_0400) => Counts::Up,
        // sub, subs
        Some(0x5100_0400 | 0x7100_0400) => Counts::Down,
        // movz with a number below 32, which is one.
        Some(0x5280_0000) => Counts::One,
        // A request, or one that is forgotten.
        _ => Counts::Nothing,
    }
}

/// Whether it is `mrs x, sp_el0`.
fn is_block(word: u32) -> bool {
    word & !0x1f == 0xd538_4100
}

/// The last instruction that writes a register on a way down to the end, the shortest one: all have the same origin of what is looked for.
fn writer(above: &[u32], sources: &[Vec<usize>], register: u32) -> Option<u32> {
    let lowest = above.len().saturating_sub(MOST_ABOVE);
    let mut seen = vec![false; above.len() + 1];
    let mut next = VecDeque::from([above.len()]);
    while let Some(at) = next.pop_front() {
        let before = at.checked_sub(1).filter(|&before| !is_end(above[before]));
        let jumps = sources.get(at).into_iter().flatten().copied().filter(|&from| from < above.len());
        for from in before.into_iter().chain(jumps) {
            if from < lowest || std::mem::replace(&mut seen[from], true) {
                continue;
            }
            if writes(above[from], register) {
                return Some(above[from]);
            }
            next.push_back(from);
        }
    }
    None
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
        super::decode(words, &sources(words))
    }

    #[test]
    fn guards_are_known() {
        // mrs x19, sp_el0; ldr w8, [x19]; add w8, w8, #1; str w8, [x19]; nop; ldr w8, [x19]; subs w8, w8, #1; str w8, [x19]
        let words = [
            0xd538_4113,
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
        // mrs x20, sp_el0; str wzr, [x20]; mov w9, #1; str w9, [x20]; msr sp_el0, x1
        let words = [0xd538_4114, 0xb900_029f, 0x5280_0029, 0xb900_0289, 0xd518_4101];
        let counts: Vec<_> = (1..=words.len()).map(|end| decode(&words[..end])).collect();
        assert_eq!(counts, [Counts::Nothing, Counts::Zero, Counts::Nothing, Counts::One, Counts::Switch]);
    }

    #[test]
    fn what_a_return_restores_is_not_on_the_way() {
        // mrs x19, sp_el0; cbz x0, to the last but two; ldp x20, x19, [sp], #16; ret; ldr w8, [x19]; subs w8, w8, #1; str w8, [x19]
        let words =
            [0xd538_4113, 0xb400_0060, 0xa8c1_4ff4, 0xd65f_03c0, 0xb940_0268, 0x7100_0508, 0xb900_0268];
        assert_eq!(sources(&words)[4], [1]);
        assert_eq!(decode(&words), Counts::Down);
    }

    #[test]
    fn blocks_that_lead_elsewhere_are_not_on_the_way() {
        // mrs x21, sp_el0; cbz x0, to the last but two; mov x21, x1; cbz x0, behind all; nop; b, behind all; and the end of a section.
        let words = [
            0xd538_4115,
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
    fn other_words_of_memory_do_not_count() {
        // The address comes from elsewhere: mrs x19, sp_el0; ldr x19, [x0]; add w8, w8, #1; str w8, [x19]
        assert_eq!(decode(&[0xd538_4113, 0xf940_0013, 0x1100_0508, 0xb900_0268]), Counts::Nothing);
        // A request: mrs x19, sp_el0; ldr w8, [x19]; orr w8, w8, #0x80000000; str w8, [x19]
        assert_eq!(decode(&[0xd538_4113, 0xb940_0268, 0x3201_0108, 0xb900_0268]), Counts::Nothing);
        // The next word: str w8, [x19, #4]
        assert_eq!(decode(&[0xd538_4113, 0x1100_0508, 0xb900_0668]), Counts::Nothing);
    }
}
