//! The tables of two functions, made by hand as the compiler lays them out, and what becomes of damaged ones.

use std::vec::Vec;

use super::{Base, Kept, Rules, UnwindTables};
use crate::random::Random;

const INDEX_AT: u64 = 0x1000;
const ENTRIES_AT: u64 = 0x2000;
/// Where the functions begin, and how long they are.
const FIRST: u64 = 0x4000;
const SECOND: u64 = 0x4100;
const BYTES: u64 = 0x40;

/// A block with its length in front, filled up with what does nothing.
fn block(mut content: Vec<u8>) -> Vec<u8> {
    while !content.len().is_multiple_of(4) {
        content.push(0);
    }
    let mut block = (content.len() as u32).to_le_bytes().to_vec();
    block.extend(content);
    block
}

struct Image {
    index: Vec<u8>,
    entries: Vec<u8>,
}

impl Image {
    fn tables(&self) -> UnwindTables<'_> {
        UnwindTables {
            index: &self.index,
            index_at: INDEX_AT,
            entries: &self.entries,
            entries_at: ENTRIES_AT,
        }
    }

    fn of(functions: &[(u64, &[u8])]) -> Self {
        let mut common = 0_u32.to_le_bytes().to_vec();
        // Version, "zR", code unit 4, data unit -8, x30, one byte: how pointers are written. Then: the frame is at sp.
        common.extend([1, b'z', b'R', 0, 4, 0x78, 30, 1, 0x1b, 0x0c, 31, 0]);
        let mut entries = block(common);
        let mut index = std::vec![1, 0x1b, 0x03, 0x3b, 0, 0, 0, 0];
        index.extend((functions.len() as u32).to_le_bytes());
        for (begin, program) in functions {
            let at = ENTRIES_AT + entries.len() as u64;
            index.extend((begin.wrapping_sub(INDEX_AT) as i32).to_le_bytes());
            index.extend((at.wrapping_sub(INDEX_AT) as i32).to_le_bytes());
            let mut entry = ((at - ENTRIES_AT) as u32 + 4).to_le_bytes().to_vec();
            entry.extend((begin.wrapping_sub(at + 8) as i32).to_le_bytes());
            entry.extend((BYTES as u32).to_le_bytes());
            entry.push(0);
            entry.extend(*program);
            entries.extend(block(entry));
        }
        Self { index, entries }
    }

    fn two() -> Self {
        Self::of(&[
            // stp x29, x30, [sp, #-32]! at 0; mov x29, sp at 4; gone again at 0x20, and back behind that.
            (
                FIRST,
                &[
                    0x41,
                    0x0e,
                    32,
                    0x80 | 29,
                    4,
                    0x80 | 30,
                    3,
                    0x41,
                    0x0d,
                    29,
                    0x46,
                    0x0a,
                    0x0c,
                    31,
                    0,
                    0xc0 | 29,
                    0xc0 | 30,
                    0x41,
                    0x0b,
                ],
            ),
            // Nothing is on the stack, and nobody called it.
            (SECOND, &[0x07, 30]),
        ])
    }
}

#[test]
fn the_rules_are_those_of_the_instruction() {
    let image = Image::two();
    let at = |offset| image.tables().rules_at(FIRST + offset);
    let saved = Rules { base: Base::Sp, offset: 32, x29: Kept::At(-32), x30: Kept::At(-24) };
    assert_eq!(at(0), Some(Rules::LEAF));
    assert_eq!(at(3), Some(Rules::LEAF));
    assert_eq!(at(4), Some(saved));
    assert_eq!(at(8), Some(Rules { base: Base::X29, ..saved }));
    assert_eq!(at(0x1c), Some(Rules { base: Base::X29, ..saved }));
    assert_eq!(at(0x20), Some(Rules::LEAF));
    assert_eq!(at(0x24), Some(Rules { base: Base::X29, ..saved }));
    assert_eq!(at(BYTES - 1), Some(Rules { base: Base::X29, ..saved }));
}

#[test]
fn what_belongs_to_no_function_has_no_rules() {
    let image = Image::two();
    for pc in [0, FIRST - 1, FIRST + BYTES, SECOND - 1, SECOND + BYTES, u64::MAX] {
        assert_eq!(image.tables().rules_at(pc), None, "{pc:#x}");
    }
    assert_eq!(image.tables().rules_at(SECOND), Some(Rules { x30: Kept::Lost, ..Rules::LEAF }));
    let empty = UnwindTables { index: &[], index_at: 0, entries: &[], entries_at: 0 };
    assert_eq!(empty.rules_at(FIRST), None);
}

#[test]
fn what_is_not_understood_has_no_rules() {
    // An expression; a register for another; states that were never remembered, or too many.
    for program in [&[0x0f, 1, 0x30][..], &[0x0c, 19, 16], &[0x0b], &[0x0a; 5], &[0x3f]] {
        let image = Image::of(&[(FIRST, program)]);
        assert_eq!(image.tables().rules_at(FIRST + 8), None, "{program:x?}");
    }
}

#[test]
fn damaged_tables_end_in_some_answer() {
    let random = Random::new(1, 0);
    for _ in 0..20_000 {
        let mut image = Image::two();
        for _ in 0..=random.below(4) {
            let bytes = if random.below(3) == 0 { &mut image.index } else { &mut image.entries };
            let place = random.below(bytes.len());
            bytes[place] = random.below(256) as u8;
        }
        if random.below(4) == 0 {
            let left = random.below(image.entries.len());
            image.entries.truncate(left);
        }
        for pc in (FIRST..SECOND + BYTES).step_by(12) {
            let _ = image.tables().rules_at(pc);
        }
    }
}
