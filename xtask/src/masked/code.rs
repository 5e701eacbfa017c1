//! What each instruction of an image does to the interrupt mask, and to the count that disables preemption.

use super::count::{self, Counts};
use crate::stream::Symbols;
use anyhow::{Context, Result};
use object::{Object, ObjectSection, ObjectSymbol, SectionKind};

/// What an instruction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Does {
    /// Nothing to the mask.
    Nothing,
    /// Masks interrupts.
    Mask,
    /// Takes that back.
    Unmask,
    /// Returns from an exception, to code that interrupts may interrupt.
    Return,
    /// It is the first of an interrupt's handler, which runs masked.
    Enter,
    /// Waits for an interrupt.
    Wait,
    /// Waits for an event.
    Doze,
}

/// An image's code.
pub struct Code {
    begin: u64,
    does: Vec<Does>,
    counts: Vec<Counts>,
    symbols: Symbols,
}

/// What an instruction does, by its word: `msr daifset` and `msr daifclr` with a mask that has the bit for interrupts, `eret`, `wfi`,
/// `wfe`.
fn decode(word: u32) -> Does {
    const INTERRUPTS: u32 = 1 << 9;
    match word {
        0xd69f_03e0 => Does::Return,
        0xd503_207f => Does::Wait,
        0xd503_205f => Does::Doze,
        _ if word & 0xffff_f0ff == 0xd503_40df && word & INTERRUPTS != 0 => Does::Mask,
        _ if word & 0xffff_f0ff == 0xd503_40ff && word & INTERRUPTS != 0 => Does::Unmask,
        _ => Does::Nothing,
    }
}

impl Code {
    /// The code of an ELF.
    pub fn of(elf: &[u8]) -> Result<Self> {
        /// Where the vectors of the current level for interrupts are, and how far apart they lie.
        const INTERRUPT_VECTORS: [u64; 2] = [0x80, 0x280];
        let file = object::File::parse(elf).context("not an ELF file")?;
        let texts = || file.sections().filter(|section| section.kind() == SectionKind::Text);
        let begin = texts().map(|section| section.address()).min().context("the image has no code")?;
        let end = texts().map(|section| section.address() + section.size()).max().unwrap_or(begin);
        let mut does = vec![Does::Nothing; ((end - begin) / 4) as usize + 1];
        let mut counts = vec![Counts::Nothing; does.len()];
        for section in texts() {
            let first = ((section.address() - begin) / 4) as usize;
            let data = section.data().context("its code cannot be read")?;
            let words =
                data.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
            let words: Vec<_> = words.collect();
            let sources = count::sources(&words);
            for (index, &word) in words.iter().enumerate() {
                does[first + index] = decode(word);
                counts[first + index] = count::decode(&words, &sources, index);
            }
        }
        let vectors = file.symbols().find(|symbol| symbol.name() == Ok("magpie_vectors"));
        let vectors = vectors.context("the image has no vectors")?.address();
        for vector in INTERRUPT_VECTORS {
            does[((vectors + vector - begin) / 4) as usize] = Does::Enter;
        }
        Ok(Self { begin, does, counts, symbols: Symbols::from_elf(elf) })
    }

    fn index(&self, address: u64) -> Option<usize> {
        usize::try_from(address.wrapping_sub(self.begin) / 4).ok()
    }

    /// What the instruction at an address does.
    pub fn does(&self, address: u64) -> Does {
        self.index(address).and_then(|index| self.does.get(index)).copied().unwrap_or(Does::Nothing)
    }

    /// What it does to the count that disables preemption.
    pub fn counts(&self, address: u64) -> Counts {
        self.index(address).and_then(|index| self.counts.get(index)).copied().unwrap_or(Counts::Nothing)
    }

    /// The function that an address is in.
    pub fn function(&self, address: u64) -> &str {
        self.symbols.function(address).unwrap_or("assembly")
    }

    /// Code for tests: what the instructions from zero on do.
    #[cfg(test)]
    pub fn doing(does: &[Does]) -> Self {
        Self { begin: 0, does: does.to_vec(), counts: Vec::new(), symbols: Symbols::from_elf(b"") }
    }

    /// The same, with what they do to the count.
    #[cfg(test)]
    pub fn counting(does: &[Does], counts: &[Counts]) -> Self {
        Self { counts: counts.to_vec(), ..Self::doing(does) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Does, decode};

    #[test]
    fn instructions_that_change_the_mask_are_known() {
        // msr daifset, #2; msr daifclr, #2; msr daifset, #15; msr daifset, #8 (debug alone); eret; wfi; wfe; nop
        for (word, does) in [
            (0xd503_42df, Does::Mask),
            (0xd503_42ff, Does::Unmask),
            (0xd503_4fdf, Does::Mask),
            (0xd503_48df, Does::Nothing),
            (0xd69f_03e0, Does::Return),
            (0xd503_207f, Does::Wait),
            (0xd503_205f, Does::Doze),
            (0xd503_201f, Does::Nothing),
        ] {
            assert_eq!(decode(word), does, "{word:#x}");
        }
    }
}
