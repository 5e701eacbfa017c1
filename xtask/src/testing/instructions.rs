//! The built kernel, disassembled: each lock-free primitive must have the exclusives, acquire and release
//! forms and barriers that were checked against the Arm memory model, in that order and no others.
//!
//! The suite `asm` contains one function with a symbol for each primitive. An edit that drops a barrier or
//! turns an LDAR into an LDR passes every test on QEMU, which orders memory more strongly than a real core:
//! here it fails. The check is checked too: with any one of the instructions overwritten by a NOP it must
//! object.

use super::Tally;
use crate::progress::say;
use anyhow::{Context, Result, bail};
use object::{Object, ObjectSection, ObjectSymbol};
use std::path::Path;
use yaxpeax_arch::{Arch, Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::ARMv8;

/// A primitive's function and the synchronising instructions it must have, in the order of their addresses.
struct Expected {
    symbol: &'static str,
    instructions: &'static [&'static str],
}

/// From `kernel/src/arch/aarch64/{deque_ops,swap,locked_append,barrier}.rs`; `kernel/litmus` says why each is there.
const EXPECTED: &[Expected] = &[
    // top, to see free slots; bottom, to publish the item.
    Expected { symbol: "probe_push_bottom", instructions: &["ldar", "stlr"] },
    // bottom lowered, the fence before the look at top, the last item's exchange.
    Expected { symbol: "probe_pop_bottom", instructions: &["stlr", "dmb ish", "ldxr", "stxr"] },
    // The owner's take from the top: the exchange alone.
    Expected { symbol: "probe_pop_oldest", instructions: &["ldxr", "stxr"] },
    // Both, one after the other: the acquire is the exclusive load's.
    Expected { symbol: "probe_rotate", instructions: &["ldaxr", "stxr", "stlr"] },
    // The thief: fence between top and bottom, acquire of bottom, release in the exchange.
    Expected { symbol: "probe_pop_top", instructions: &["dmb ish", "ldar", "ldxr", "stlxr"] },
    // Steps 2, 3 and 4, and the restore.
    Expected {
        symbol: "probe_double_swap",
        instructions: &["ldaxr", "stxr", "ldaxr", "stlxr", "stlr", "stlr"],
    },
    // The lock, its end where there is no room, the actor's word, and the lock's end; and that by an interrupt.
    Expected { symbol: "probe_locked_append", instructions: &["ldaxr", "stxr", "stlr", "ldar", "stlr"] },
    Expected { symbol: "magpie_withdraw", instructions: &["stlr"] },
    Expected { symbol: "probe_barrier_full", instructions: &["dmb ish"] },
];

const NOP: [u8; 4] = 0xd503_201f_u32.to_le_bytes();

/// Checks an ELF of the suite `asm`: one test for each primitive.
pub fn check_instructions(elf: &Path) -> Result<Tally> {
    let bytes = std::fs::read(elf).with_context(|| format!("cannot read {}", elf.display()))?;
    let file = object::File::parse(&*bytes).context("not an ELF file")?;
    let mut tally = Tally::default();
    for expected in EXPECTED {
        match code_of(&file, expected.symbol).and_then(|code| judge(expected, code)) {
            Ok(()) => tally.passed += 1,
            Err(error) => tally.fail(format!("instructions, {}: {error:#}", expected.symbol)),
        }
    }
    say!("instructions of the primitives: {tally}");
    Ok(tally)
}

/// The bytes of a function.
fn code_of<'a>(file: &object::File<'a>, name: &str) -> Result<&'a [u8]> {
    let symbol = file
        .symbols()
        .find(|symbol| symbol.name() == Ok(name))
        .context("the image has no such function; is it in tests/suites/asm/probes.rs?")?;
    let index = symbol.section_index().context("the function is in no section")?;
    let section = file.section_by_index(index).context("its section is missing")?;
    let code = section.data_range(symbol.address(), symbol.size()).context("its section cannot be read")?;
    code.filter(|code| !code.is_empty()).context("the function has no code")
}

/// Compares, and sees to it that the loss of any one instruction would be noticed.
fn judge(expected: &Expected, code: &[u8]) -> Result<()> {
    compare(expected, code)?;
    for (offset, instruction) in synchronising(code) {
        let mut broken = code.to_vec();
        broken[offset..offset + NOP.len()].copy_from_slice(&NOP);
        if compare(expected, &broken).is_ok() {
            bail!("the check does not notice that '{instruction}' is gone");
        }
    }
    Ok(())
}

fn compare(expected: &Expected, code: &[u8]) -> Result<()> {
    let found: Vec<String> = synchronising(code).into_iter().map(|(_, instruction)| instruction).collect();
    if found != expected.instructions {
        bail!("found {found:?}, expected {:?}", expected.instructions);
    }
    Ok(())
}

/// The instructions that order or exclude, each with its offset: barriers with their kind, accesses without
/// their operands.
fn synchronising(code: &[u8]) -> Vec<(usize, String)> {
    let decoder = <ARMv8 as Arch>::Decoder::default();
    let mut found = Vec::new();
    for (index, word) in code.chunks_exact(4).enumerate() {
        let Ok(instruction) = decoder.decode(&mut U8Reader::new(word)) else {
            // Data between instructions, or something newer than the decoder: no primitive has either, so it
            // must not pass for nothing.
            found.push((index * 4, "unknown".to_owned()));
            continue;
        };
        let text = instruction.to_string();
        let mnemonic = text.split(' ').next().unwrap_or_default();
        if ["dmb", "dsb", "isb"].contains(&mnemonic) {
            found.push((index * 4, text));
        } else if is_synchronising(mnemonic) {
            found.push((index * 4, mnemonic.to_owned()));
        }
    }
    found
}

/// Exclusives, acquires, releases, CLREX, and the single-instruction atomics that a Cortex-A72 lacks.
fn is_synchronising(mnemonic: &str) -> bool {
    let prefixes = ["ldx", "ldax", "ldar", "ldlar", "ldapr", "stx", "stlx", "stlr", "stllr", "clrex"];
    let lse = ["cas", "swp", "ldadd", "ldclr", "ldeor", "ldset"];
    prefixes.iter().chain(&lse).any(|prefix| mnemonic.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::{Expected, compare, judge, synchronising};

    const DMB_ISH: u32 = 0xd503_3bbf;
    const DMB_ISHLD: u32 = 0xd503_39bf;
    const LDAR: u32 = 0xc8df_fc00;
    const LDR: u32 = 0xf940_0000;
    const LDXR: u32 = 0xc85f_7c00;
    const STXR: u32 = 0xc802_7c00;
    const STLXR: u32 = 0xc802_fc00;

    const TAKE: Expected = Expected { symbol: "take", instructions: &["dmb ish", "ldar", "ldxr", "stlxr"] };

    fn code(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn what_is_expected_passes_among_ordinary_instructions() {
        let code = code(&[LDR, DMB_ISH, LDAR, LDR, LDXR, STLXR]);
        assert_eq!(synchronising(&code).len(), 4);
        judge(&TAKE, &code).unwrap();
    }

    #[test]
    fn a_missing_weaker_or_misplaced_instruction_is_refused() {
        for bad in [
            &[LDR, LDAR, LDR, LDXR, STLXR][..],
            &[LDR, DMB_ISHLD, LDAR, LDR, LDXR, STLXR],
            &[LDR, DMB_ISH, LDR, LDR, LDXR, STLXR],
            &[LDR, DMB_ISH, LDAR, LDR, LDXR, STXR],
            &[LDR, LDAR, DMB_ISH, LDR, LDXR, STLXR],
        ] {
            assert!(compare(&TAKE, &code(bad)).is_err(), "{bad:x?}");
        }
    }
}
