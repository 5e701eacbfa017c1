//! Random numbers by an instruction: `RNDR`, of cores that have the extension `FEAT_RNG`.

use core::arch::asm;

use aarch64_cpu::registers::{ID_AA64ISAR0_EL1, Readable};

/// 64 random bits; `None` if this core has no such instruction, or nothing came in time.
pub fn bits() -> Option<u64> {
    if !ID_AA64ISAR0_EL1.is_set(ID_AA64ISAR0_EL1::RNDR) {
        return None;
    }
    let (bits, came): (u64, u64);
    // SAFETY: the core has the register `RNDR`. It sets the flag Z if nothing came, which no option here says is kept.
    unsafe {
        asm!("mrs {bits}, s3_3_c2_c4_0", "cset {came}, ne", bits = out(reg) bits, came = out(reg) came, options(nomem, nostack));
    }
    (came != 0).then_some(bits)
}
